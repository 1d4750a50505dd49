//! Runs of DAGs and their tasks, from the tables of the ledger. Columns that a query does not name are not decoded.

use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno_ledger::drive::RunDetail;
use segno_ledger::snapshot::Part;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Row, Rows, Scan, Table, TableInfo, Value};
use segno_ledger::tables::{Cell, Row as TableRow, RunRow, TaskRow};

use super::listing::is_absence;
use super::{column, pushed};
use crate::app::{Refused, Tenant};
use crate::problem::Refusal;

/// Runs of DAGs.
pub static RUNS: TableInfo = TableInfo {
    name: "runs",
    doc: "Runs of DAGs.",
    columns: &[
        pushed("id", Kind::Text, Pushdown::Equal, "Id of the run"),
        column("dag", Kind::Text, "Name of its DAG"),
        column("dag_version", Kind::Text, "Version of the DAG"),
        column("status", Kind::Text, "`triggered`, `running`, `succeeded`, `failed` or `cancelled`"),
        column("paused", Kind::Flag, "Whether no further attempts are dispatched"),
        column("cancel_requested", Kind::Flag, "Whether its cancellation was requested"),
        column("reason", Kind::Text, "Why it was cancelled, or why its plan was refused"),
        column("run_key", Kind::Text, "The key under which it was requested once"),
        column("parent_run", Kind::Text, "The run that it repeats"),
        column("labels", Kind::Json, "Labels as an object"),
        column("params", Kind::Json, "Its parameters as an object"),
        pushed("triggered_at", Kind::Time, Pushdown::Range, "When it was triggered"),
        column("completed_at", Kind::Time, "When its last task ended"),
        column("duration_ms", Kind::Integer, "Milliseconds from its trigger to its end"),
        column("tasks_total", Kind::Integer, "Its tasks"),
        column("tasks_completed", Kind::Integer, "Tasks that have ended"),
        column("tasks_succeeded", Kind::Integer, "Tasks that succeeded"),
        column("tasks_failed", Kind::Integer, "Tasks that failed"),
        column("tasks_skipped", Kind::Integer, "Tasks that were left out"),
        column("tasks_cancelled", Kind::Integer, "Tasks that were cancelled"),
    ],
    key: &["id"],
    newest_first: None,
};

/// Tasks of runs.
pub static TASKS: TableInfo = TableInfo {
    name: "tasks",
    doc: "Tasks of runs of DAGs.",
    columns: &[
        pushed("run", Kind::Text, Pushdown::Equal, "Id of the run"),
        column("key", Kind::Text, "Key of the task in its run"),
        column(
            "status",
            Kind::Text,
            "`planned`, `blocked`, `ready`, `dispatched`, `running`, `retry_wait`, `skipped`, `cancelled`, `failed` or `succeeded`",
        ),
        column("function", Kind::Text, "The function that it calls"),
        column("orchestration", Kind::Text, "The orchestration that it starts"),
        column("pool", Kind::Text, "The concurrency pool that it takes a slot of"),
        column("tag", Kind::Text, "The tag of the workers that run it"),
        column(
            "attempt",
            Kind::Integer,
            "The attempt that is under way, or was the last; 0 before the first",
        ),
        column("max_attempts", Kind::Integer, "Attempts before it fails"),
        column("ready_at", Kind::Time, "When it became ready to be dispatched"),
        column("dispatched_at", Kind::Time, "When the attempt was dispatched"),
        column("started_at", Kind::Time, "When the attempt started, if its worker told before its end"),
        column("completed_at", Kind::Time, "When the task ended"),
        column("duration_ms", Kind::Integer, "Milliseconds from the dispatch of the last attempt to the end"),
        column("error_message", Kind::Text, "Why the last attempt failed, or why the task was left out"),
        column("error_category", Kind::Text, "The category of that error"),
        column("output", Kind::Json, "What it returned, if that is small enough for the table"),
        column("worker", Kind::Text, "The worker that runs the attempt"),
        column("progress_percent", Kind::Integer, "How far the attempt says that it is"),
        column("expanded_from", Kind::Text, "The task that added it for an item of a list"),
        column("asset", Kind::Text, "The asset that it makes"),
        column("partition", Kind::Text, "The partition of the asset"),
        column("marked_by", Kind::Text, "Who set its state by hand"),
    ],
    key: &["run", "key"],
    newest_first: None,
};

/// The runs of a tenant.
pub struct Runs(pub Tenant);

/// The tasks of a tenant's runs.
pub struct Tasks(pub Tenant);

impl Table for Runs {
    fn info(&self) -> &'static TableInfo {
        &RUNS
    }

    fn scan(&self, scan: Scan) -> Rows {
        match scan.equals_text("id").map(str::to_owned) {
            Some(id) => {
                let cells = |found: RunDetail| vec![found.run.to_cells()];
                one::<RunRow>(self.0.clone(), id, Mapping::new(&scan, run_source), cells)
            }
            None => all::<RunRow>(self.0.clone(), scan, run_source),
        }
    }
}

impl Table for Tasks {
    fn info(&self) -> &'static TableInfo {
        &TASKS
    }

    fn scan(&self, scan: Scan) -> Rows {
        match scan.equals_text("run").map(str::to_owned) {
            Some(id) => {
                let cells = |found: RunDetail| found.tasks.iter().map(TaskRow::to_cells).collect();
                one::<TaskRow>(self.0.clone(), id, Mapping::new(&scan, task_source), cells)
            }
            None => all::<TaskRow>(self.0.clone(), scan, task_source),
        }
    }
}

/// How a cell of a query is made of cells of the ledger.
#[derive(Clone, Copy)]
enum Source {
    /// It is the cell of this column.
    Column(&'static str),
    /// It is the name of a state.
    State(&'static str),
    /// It is the time from one column to another.
    Between(&'static str, &'static str),
}

impl Source {
    fn columns(self) -> impl Iterator<Item = &'static str> {
        let (first, second) = match self {
            Source::Column(name) | Source::State(name) => (name, None),
            Source::Between(from, to) => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

fn run_source(name: &'static str) -> Source {
    match name {
        "id" => Source::Column("run_id"),
        "status" => Source::State("state"),
        "dag_version" => Source::Column("code_version"),
        "parent_run" => Source::Column("parent_run_id"),
        "duration_ms" => Source::Between("triggered_at", "completed_at"),
        name => Source::Column(name),
    }
}

fn task_source(name: &'static str) -> Source {
    match name {
        "run" => Source::Column("run_id"),
        "key" => Source::Column("task_key"),
        "status" => Source::State("state"),
        "duration_ms" => Source::Between("dispatched_at", "completed_at"),
        "worker" => Source::Column("worker_id"),
        "progress_percent" => Source::Column("progress_pct"),
        "asset" => Source::Column("asset_key"),
        "partition" => Source::Column("partition_key"),
        name => Source::Column(name),
    }
}

/// Which columns of the ledger a scan needs, and how its cells are made of them.
struct Mapping {
    wanted: Vec<&'static str>,
    sources: Vec<Source>,
}

impl Mapping {
    fn new(scan: &Scan, source: fn(&'static str) -> Source) -> Self {
        let sources: Vec<Source> = scan.columns.iter().map(|name| source(name)).collect();
        let mut wanted: Vec<&'static str> = sources.iter().flat_map(|source| source.columns()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Mapping { wanted, sources }
    }

    fn row(&self, cells: &[Cell]) -> Row {
        let cell = |name: &str| {
            let place = self.wanted.binary_search(&name).ok();
            place.and_then(|place| cells.get(place)).unwrap_or(&Cell::Null)
        };
        let made = |source: &Source| match *source {
            Source::Column(name) => value(cell(name)),
            Source::State(name) => match cell(name) {
                Cell::Text(state) => Value::Text(state.to_ascii_lowercase()),
                _ => Value::Null,
            },
            Source::Between(from, to) => match (cell(from), cell(to)) {
                (Cell::Integer(from), Cell::Integer(to)) => Value::Integer(to.saturating_sub(*from).max(0)),
                _ => Value::Null,
            },
        };
        self.sources.iter().map(made).collect()
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Text(text) => Value::Text(text.as_ref().to_owned()),
        Cell::Integer(number) => Value::Integer(*number),
        Cell::Count(count) => Value::Integer(i64::from(*count)),
        Cell::Flag(flag) => Value::flag(*flag),
    }
}

/// The parts of the tables that a scan needs: active rows, and the days of its range, newest first.
fn all<R: TableRow>(tenant: Tenant, scan: Scan, source: fn(&'static str) -> Source) -> Rows {
    let mapping = std::sync::Arc::new(Mapping::new(&scan, source));
    let (from, before) = scan.range("triggered_at");
    let reader = tenant.clone();
    let parts = async move {
        let Some(snapshot) = tenant.run_tables().await? else { return Ok(None) };
        let mut days: Vec<String> = snapshot.days().map(str::to_owned).collect();
        days.sort_unstable_by(|one, other| other.cmp(one));
        let is_needed = |day: &String| {
            let ends = from.is_none_or(|from| *day >= day_of(from));
            ends && before.is_none_or(|before| *day <= day_of(before.saturating_sub(1)))
        };
        let days: Vec<Part> = days.into_iter().filter(is_needed).map(Part::Day).collect();
        Ok::<_, Refusal>(Some((snapshot, std::iter::once(Part::Active).chain(days).collect::<Vec<_>>())))
    };
    let rows = stream::once(parts).flat_map(move |found| -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
        let (snapshot, parts) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return stream::empty().boxed(),
            Err(refusal) => return stream::iter([Err(refusal)]).boxed(),
        };
        let (reader, mapping) = (reader.clone(), mapping.clone());
        let read = move |part: Part| {
            let (tenant, snapshot, mapping) = (reader.clone(), snapshot.clone(), mapping.clone());
            async move {
                let cells = tenant.run_cells::<R>(&snapshot, &part, &mapping.wanted).await?;
                Ok(cells.iter().map(|cells| mapping.row(cells)).collect())
            }
        };
        stream::iter(parts).then(read).boxed()
    });
    rows.map(|page| page.map_err(|refusal| Refused(refusal).into())).boxed()
}

/// The rows of one run, found by its id.
fn one<R: TableRow>(
    tenant: Tenant,
    id: String,
    mapping: Mapping,
    cells_of: fn(RunDetail) -> Vec<Vec<Cell>>,
) -> Rows {
    let read = async move {
        if tenant.run_tables().await.map_err(Refused)?.is_none() {
            return Ok(Vec::new());
        }
        let found = match tenant.run_rows(&id).await {
            Err(refusal) if is_absence(&refusal) => Vec::new(),
            found => cells_of(found.map_err(Refused)?),
        };
        let pick = |cells: Vec<Cell>| {
            let cell = |name: &&str| {
                let place = R::COLUMNS.iter().position(|column| column.name == *name);
                place.and_then(|place| cells.get(place)).cloned().unwrap_or(Cell::Null)
            };
            mapping.row(&mapping.wanted.iter().map(cell).collect::<Vec<_>>())
        };
        Ok(found.into_iter().map(pick).collect())
    };
    stream::once(read).boxed()
}

/// The day of a time (UTC), as partitions have it.
fn day_of(at_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at_ms);
    time.unwrap_or(if at_ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX })
        .strftime("%Y-%m-%d")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_made_of_columns_of_the_ledger() {
        fn check<R: TableRow>(info: &TableInfo, source: fn(&'static str) -> Source) {
            for column in info.columns {
                for name in source(column.name).columns() {
                    assert!(R::COLUMNS.iter().any(|known| known.name == name), "{} {name}", info.name);
                }
            }
        }
        check::<RunRow>(&RUNS, run_source);
        check::<TaskRow>(&TASKS, task_source);
    }
}
