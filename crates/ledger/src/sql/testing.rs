//! Two tables in memory for tests: `things`, and `parts` of things.

use std::sync::{Arc, Mutex};

use futures_util::stream::{self, StreamExt as _};
use segno::clock::SystemClock;

use super::{
    Answer, ColumnInfo, ColumnKind, Constraint, Engine, Pushdown, Query, Row, Rows, Scan, SqlError, Table,
    TableInfo, Tables, Value,
};

const fn column(name: &'static str, kind: ColumnKind, pushdown: Pushdown) -> ColumnInfo {
    ColumnInfo { name, kind, pushdown, doc: "" }
}

pub static THINGS: TableInfo = TableInfo {
    name: "things",
    doc: "",
    columns: &[
        column("id", ColumnKind::Text, Pushdown::Prefix),
        column("name", ColumnKind::Text, Pushdown::Equal),
        column("status", ColumnKind::Text, Pushdown::Equal),
        column("size", ColumnKind::Integer, Pushdown::No),
        column("created_at", ColumnKind::Time, Pushdown::Range),
        column("labels", ColumnKind::Json, Pushdown::No),
    ],
    key: &["id"],
    newest_first: Some("created_at"),
};

pub static PARTS: TableInfo = TableInfo {
    name: "parts",
    doc: "",
    columns: &[
        column("thing", ColumnKind::Text, Pushdown::Equal),
        column("number", ColumnKind::Integer, Pushdown::No),
        column("status", ColumnKind::Text, Pushdown::No),
        column("at", ColumnKind::Time, Pushdown::No),
    ],
    key: &["thing", "number"],
    newest_first: None,
};

/// What was asked of the tables.
pub type Scans = Arc<Mutex<Vec<(&'static str, Vec<Constraint>)>>>;

/// A table in memory.
pub struct Fake {
    info: &'static TableInfo,
    rows: Arc<Vec<Row>>,
    scans: Scans,
    applies: Applies,
}

/// What a table makes of constraints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// It delivers what meets them.
    All,
    /// It delivers everything, which it is free to do.
    Nothing,
}

impl Table for Fake {
    fn info(&self) -> &'static TableInfo {
        self.info
    }

    fn scan(&self, scan: Scan) -> Rows {
        self.scans.lock().unwrap().push((self.info.name, scan.constraints.clone()));
        let place = |name: &str| self.info.columns.iter().position(|column| column.name == name).unwrap();
        let meets = |row: &&Row| {
            self.applies == Applies::Nothing
                || scan.constraints.iter().all(|c| c.test.accepts(&row[place(c.column)]))
        };
        let cells = |row: &Row| scan.columns.iter().map(|name| row[place(name)].clone()).collect::<Row>();
        let rows: Vec<Row> = self.rows.iter().filter(meets).map(cells).collect();
        let pages: Vec<_> = rows.chunks(3).map(|page| Ok(page.to_vec())).collect();
        stream::iter(pages).boxed()
    }
}

/// Tables with 40 things and about 60 parts.
pub fn tables() -> (Tables, Scans) {
    tables_that(Applies::All)
}

/// The same with tables of one sort.
pub fn tables_that(applies: Applies) -> (Tables, Scans) {
    let scans = Scans::default();
    let fake = |info, rows| -> Arc<dyn Table> {
        Arc::new(Fake { info, rows: Arc::new(rows), scans: scans.clone(), applies })
    };
    (Tables::new([fake(&THINGS, things()), fake(&PARTS, parts())]), scans)
}

/// Newest first.
pub fn things() -> Vec<Row> {
    let text = |text: String| Value::Text(text);
    (0..40_i64)
        .rev()
        .map(|n| {
            let status = ["failed", "completed", "running"][(n % 3) as usize];
            vec![
                text(format!("{}-{n}", ["order", "Order", "invoice"][(n % 3) as usize])),
                if n % 7 == 0 { Value::Null } else { text(format!("f{}", n % 4)) },
                text(status.to_owned()),
                if n % 5 == 0 { Value::Null } else { Value::Integer(n * n % 11) },
                Value::Integer(1_800_000_000_000 + n / 2 * 60_000),
                text(format!("{{\"region\":\"{}\"}}", ["eu", "us"][(n % 2) as usize])),
            ]
        })
        .collect()
}

pub fn parts() -> Vec<Row> {
    let things = things();
    let part = |thing: &Row, number: i64| {
        let status = Value::Text(["failed", "completed"][(number % 2) as usize].to_owned());
        vec![thing[0].clone(), Value::Integer(number), status, Value::Integer(1_800_000_000_000 + number)]
    };
    let of = |(n, thing): (usize, &Row)| (0..(n % 4) as i64).map(|k| part(thing, k)).collect::<Vec<_>>();
    let mut parts: Vec<Row> = things.iter().enumerate().flat_map(of).collect();
    parts.push(vec![Value::Null, Value::Integer(99), Value::Null, Value::Null]);
    parts
}

pub async fn run(text: &str) -> Result<Answer, SqlError> {
    let engine = Engine::new(SystemClock::shared());
    engine.run("default/default/", Query::new(text), &tables().0).await
}

/// The rows of an answer as text.
pub async fn rows(text: &str) -> String {
    match run(text).await {
        Ok(answer) => {
            let row = |row: &Vec<Value>| row.iter().map(shown).collect::<Vec<_>>().join(" ");
            answer.rows.iter().map(row).collect::<Vec<_>>().join("; ")
        }
        Err(error) => format!("{}: {error}", error.code().unwrap_or("-")),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}
