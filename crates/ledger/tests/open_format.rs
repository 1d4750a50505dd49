//! The tables are read by other programs: the script of the format page by DuckDB, every file by
//! pyarrow.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use segno::clock::SystemClock;
use segno_actions::functions::Scope;
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
