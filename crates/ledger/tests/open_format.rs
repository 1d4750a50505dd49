//! The tables are read by other programs: the script of the format page by DuckDB, every file by
//! pyarrow.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use segno::Payload;
use segno::client::Instance;
use segno::clock::SystemClock;
use segno::event::{Event, EventKind, Output};
use segno::runtime::{Archive as _, ArchiveBatch, ArchivedHistory};
use segno::store::ExecutionStatus;
use segno_actions::functions::Scope;
use segno_ledger::archive::ArchiveStore;
use segno_ledger::objects::{Paths, Stores};
use segno_ledger::snapshot::{Days, Reader};
use segno_ledger::tables::Value;

/// A Python that has both; `SEGNO_PYTHON` names another than `python3`.
fn python() -> Option<String> {
    let python = std::env::var("SEGNO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let check = Command::new(&python).args(["-c", "import duckdb, pyarrow.parquet"]).output();
    if check.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: {python} has no duckdb or pyarrow; `pip install duckdb pyarrow`");
    None
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ledger")
}

fn run(python: &str, script: &str, argument: &Path) -> String {
    let output = Command::new(python).args(["-c", script]).arg(argument).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("its output is text")
}

/// Counts by state, as the script prints them.
fn counts<'a>(states: impl Iterator<Item = &'a str>) -> String {
    let mut counts = std::collections::BTreeMap::new();
    states.for_each(|state| *counts.entry(state).or_insert(0) += 1);
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("('{state}', {count})")).collect();
    format!("[{}]\n", counts.join(", "))
}

#[tokio::test]
async fn duckdb_reads_the_tables_with_the_script_of_the_format_page() {
    let Some(python) = python() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ledger-format.md");
    let page = std::fs::read_to_string(page).expect("the page exists");
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let printed = run(&python, script.expect("the page has a script"), &golden().join("acme/prod"));
    let stores = Stores::directory(&golden()).expect("the directory exists");
    let paths = Paths::new(Scope::new("prod", "acme").expect("slugs"));
    let reader = Reader::new(paths, &stores, Arc::new(SystemClock));
    let snapshot = reader.snapshot(None).await.expect("it is readable").expect("it has a manifest");
    let rows = snapshot.tables(Days::All).await.expect("it is readable");
    let expected = counts(rows.runs.iter().map(|run| run.state.text()))
        + &counts(rows.tasks.iter().map(|task| task.state.text()));
    assert_eq!(printed, expected);
    assert!(rows.runs.len() > 2 && rows.runs[0].state.to_cell() != segno_ledger::tables::Cell::Null);
}

#[test]
fn pyarrow_reads_every_file() {
    let Some(python) = python() else { return };
    let script = r#"
import pathlib, sys
import pyarrow.parquet as parquet
kinds, files = set(), 0
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.parquet")):
    file = parquet.ParquetFile(path)
    table = file.read()
    assert table.num_rows == file.metadata.num_rows > 0, path
    statistics = file.metadata.row_group(0).column(0).statistics
    assert statistics.has_min_max and statistics.min == "acme", path
    kinds |= {str(field.type) for field in table.schema}
    files += 1
print(files > 10, sorted(kinds))
"#;
    let printed = run(&python, script, &golden());
    assert_eq!(printed, "True ['bool', 'int64', 'string', 'uint32']\n");
}

/// An archive in a directory, with some rows in two files.
async fn archive_in(directory: &Path) {
    let clock = Arc::new(SystemClock);
    let store = segno::store::memory::MemoryStore::new();
    let objects = Stores::directory(directory).expect("the directory can be made");
    let archive = ArchiveStore::new(objects.ledger, store, clock);
    for number in 0..30_u64 {
        let created_at_ms = 1_700_000_000_000 + number * 3_600_000;
        let instance = |revision| Instance {
            id: format!("prod/acme/order-{number}"),
            orchestration: Some("order".to_owned()),
            version: None,
            execution_id: 1,
            status: ExecutionStatus::Completed,
            output: Some(Output::Completed(Payload::null())),
            custom_status: None,
            custom_status_version: 0,
            labels: [("team".to_owned(), "eu".to_owned())].into(),
            parent: None,
            created_at_ms,
            start_at_ms: None,
            updated_at_ms: created_at_ms,
            completed_at_ms: Some(created_at_ms + 5),
            revision,
            unreadable: None,
        };
        let event = Event { event_id: 1, at_ms: created_at_ms, kind: EventKind::TimerFired { source: 3 } };
        let history = ArchivedHistory {
            instance: format!("prod/acme/order-{number}"),
            created_at_ms,
            execution_id: 1,
            ended_at_ms: created_at_ms + 5,
            events: vec![event],
        };
        // Every third one is there in two revisions.
        for revision in [3, 4].into_iter().skip(usize::from(number % 3 != 0)) {
            let batch =
                ArchiveBatch { histories: vec![history.clone()], instances: vec![instance(revision)] };
            archive.store(batch).await.expect("it is written");
        }
    }
}

#[tokio::test]
async fn duckdb_and_pyarrow_read_the_archive() {
    let Some(python) = python() else { return };
    let directory = tempfile::tempdir().expect("there is room");
    archive_in(directory.path()).await;
    let script = r#"
import pathlib, sys
import duckdb
import pyarrow.parquet as parquet
root = pathlib.Path(sys.argv[1]) / "acme/prod/archive"
read = lambda kind: f"read_parquet('{root}/{kind}/*/*.parquet', hive_partitioning = true)"
counts = "count(*), count(DISTINCT id), max(revision), min(labels ->> 'team')"
print(duckdb.sql(f"SELECT {counts} FROM {read('instances')}").fetchall())
latest = f"SELECT * FROM {read('instances')} QUALIFY row_number() OVER (PARTITION BY id, incarnation ORDER BY revision DESC) = 1"
print(duckdb.sql(f"SELECT day::text, count(*) FROM ({latest}) GROUP BY day ORDER BY day").fetchall())
print(duckdb.sql(f"SELECT kind, min(data), count(DISTINCT id) FROM {read('events')} GROUP BY kind").fetchall())
rows = sum(parquet.ParquetFile(path).read().num_rows for path in root.rglob("*.parquet"))
print(rows)
"#;
    let printed = run(&python, script, directory.path());
    let expected = "[(40, 30, 4, 'eu')]\n\
                    [('2023-11-14', 2), ('2023-11-15', 24), ('2023-11-16', 4)]\n\
                    [('TimerFired', '{\"source\":3}', 30)]\n70\n";
    assert_eq!(printed, expected);
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("there is room");
    for entry in std::fs::read_dir(from).expect("it is a folder") {
        let entry = entry.expect("it can be read");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("it has a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("there is room")),
        }
    }
}

#[test]
fn a_query_for_a_day_opens_the_files_of_that_day_alone() {
    let Some(python) = python() else { return };
    let directory = tempfile::tempdir().expect("there is room");
    copy(&golden(), directory.path());
    // Files of other partitions cannot be read, so a query that succeeds has not opened them.
    let script = r#"
import pathlib, sys
import duckdb
import pyarrow.dataset as dataset
root = pathlib.Path(sys.argv[1]) / "acme/prod/state/orchestration"
for table in ["runs", "tasks", "dep_satisfaction"]:
    files = f"read_parquet('{root}/{table}/*/*.parquet', hive_partitioning = true)"
    count = lambda: duckdb.sql(f"SELECT count(*) FROM {files} WHERE day = '2023-11-14'").fetchall()
    rows = lambda: dataset.dataset(root / table, partitioning="hive").count_rows(filter=dataset.field("day") == "2023-11-14")
    before = count(), rows()
    active = list(root.glob(f"{table}/day=active/*.parquet"))
    for path in active:
        path.write_bytes(b"not a file of a table")
    assert (count(), rows()) == before and before[1] > 5, before
    try:
        duckdb.sql(f"SELECT count(*), max(tenant_id) FROM {files}").fetchall()
        raise SystemExit("the files of active rows were not damaged")
    except duckdb.Error:
        print(table, len(active) > 2)
"#;
    let printed = run(&python, script, directory.path());
    assert_eq!(printed, "runs True\ntasks True\ndep_satisfaction True\n");
}
