//! Random queries return the same with pushdown as over all rows.

use segno::clock::SystemClock;

use super::database::Database;
use super::testing::{Applies, PARTS, THINGS, parts, tables_that, things};
use super::{Engine, Query, Row, Value};

/// All rows of both tables.
fn everything() -> Database {
    let mut database = Database::open(0, || false).unwrap();
    for (table, rows) in [(&THINGS, things()), (&PARTS, parts())] {
        let columns: Vec<&'static str> = table.columns.iter().map(|column| column.name).collect();
        database.create(table, None).unwrap();
        database.insert(table, &columns, rows.iter().map(Vec::as_slice)).unwrap();
    }
    database.close_off(["things".to_owned(), "parts".to_owned(), "x".to_owned()]).unwrap();
    database
}

struct Random(fastrand::Rng);

impl Random {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())]
    }

    /// A condition on one table.
    fn simple(&mut self, alias: &str, table: &str) -> String {
        let text = ["'failed'", "'running'", "'order-3'", "'f1'", "'Order-1'", "''", "4", "NULL"];
        let number = ["0", "2", "4", "9", "-1", "'4'", "2.5", "NULL"];
        let time = ["'2027-01-15T08:10:00.000Z'", "'2027-01-15T08:00:00.001Z'", "'2027-01-15T08:05:00.000Z'"];
        let op = self.one(&["=", "<", "<=", ">", ">=", "<>", "="]);
        let (texts, numbers, times): (&[&str], &[&str], &[&str]) = match table {
            "things" => (&["id", "name", "status"], &["size"], &["created_at"]),
            _ => (&["thing", "status"], &["number"], &["at"]),
        };
        match self.0.u8(..9) {
            0 => format!("{alias}.{} {op} {}", self.one(numbers), self.one(&number)),
            1 => format!("{alias}.{} {op} {}", self.one(times), self.one(&time)),
            2 => format!("{} {op} {alias}.{}", self.one(&text), self.one(texts)),
            3 => format!(
                "{alias}.{} LIKE '{}'",
                self.one(texts),
                self.one(&["order-%", "o%", "%", "f_", "ord%r%"])
            ),
            4 => format!("{alias}.{} GLOB '{}'", self.one(texts), self.one(&["order-*", "O*", "*", "f?"])),
            5 => format!("{alias}.{} IN ({}, {})", self.one(texts), self.one(&text), self.one(&text)),
            6 => format!(
                "{alias}.{} BETWEEN {} AND {}",
                self.one(numbers),
                self.one(&number),
                self.one(&number)
            ),
            7 => format!("{alias}.{} IS {}NULL", self.one(texts), self.one(&["", "NOT "])),
            _ => format!("{alias}.{} {op} {}", self.one(texts), self.one(&text)),
        }
    }

    fn condition(&mut self, references: &[(&str, &str)], depth: u8) -> String {
        let (alias, table) = self.one(references);
        match self.0.u8(..if depth == 0 { 4 } else { 10 }) {
            0..=3 => self.simple(alias, table),
            4..=6 => format!(
                "{} AND {}",
                self.condition(references, depth - 1),
                self.condition(references, depth - 1)
            ),
            7 => format!(
                "({} OR {})",
                self.condition(references, depth - 1),
                self.condition(references, depth - 1)
            ),
            8 => format!("NOT ({})", self.condition(references, depth - 1)),
            _ if table == "things" => {
                let inner = self.condition(&[("x", "parts")], depth - 1);
                let correlated =
                    if self.0.bool() { format!(" AND x.status = {alias}.status") } else { String::new() };
                format!(
                    "{alias}.id {}IN (SELECT x.thing FROM parts x WHERE ({inner}){correlated})",
                    self.one(&["", "NOT "])
                )
            }
            _ => format!(
                "EXISTS (SELECT 1 FROM things x WHERE x.id = {alias}.thing AND {})",
                self.simple("x", "things")
            ),
        }
    }

    fn query(&mut self) -> String {
        let all = [("a", "things"), ("b", "parts"), ("c", "things")];
        let count = 1 + self.0.usize(..3);
        let begin = self.0.usize(..2);
        let references: Vec<(&str, &str)> = (0..count).map(|n| all[(begin + n) % 3]).collect();
        let mut from = format!("{} {}", references[0].1, references[0].0);
        for n in 1..count {
            let (alias, table) = references[n];
            let (before, other) = references[n - 1];
            let key = |alias: &str, table: &str| {
                format!("{alias}.{}", if table == "things" { "id" } else { "thing" })
            };
            let join = self.one(&["JOIN", "LEFT JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let more = if self.0.bool() {
                let seen = references[..=n].to_vec();
                format!(" AND {}", self.condition(&seen, 0))
            } else {
                String::new()
            };
            from.push_str(&format!(
                " {join} {table} {alias} ON {} = {}{more}",
                key(alias, table),
                key(before, other)
            ));
        }
        let filter = if self.0.u8(..5) == 0 {
            String::new()
        } else {
            format!(" WHERE {}", self.condition(&references, 2))
        };
        if count == 1 && references[0].1 == "things" && self.0.bool() {
            let limit = self.0.u8(..6);
            let offset = self.one(&["", " OFFSET 1", " OFFSET 3"]);
            return format!(
                "SELECT a.created_at FROM {from}{filter} ORDER BY a.created_at DESC LIMIT {limit}{offset}"
            );
        }
        let columns = references.iter().map(|(alias, table)| match *table {
            "things" => format!("{alias}.id, {alias}.size"),
            _ => format!("{alias}.thing, {alias}.number"),
        });
        let columns = if self.0.bool() { columns.collect::<Vec<_>>().join(", ") } else { "*".to_owned() };
        match self.0.u8(..4) {
            0 => format!("SELECT count(*) FROM {from}{filter}"),
            1 => format!("SELECT * FROM (SELECT {columns} FROM {from}{filter})"),
            _ => format!("SELECT {columns} FROM {from}{filter}"),
        }
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<String> {
    let mut rows: Vec<String> = rows.drain(..).map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn pushdown_changes_no_answer() {
    let cases = std::env::var("SEGNO_SQL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let engine = Engine::new(SystemClock::shared());
    let all = everything();
    let (mut pushed, mut answered) = (0, 0);
    for seed in 0..cases {
        let query = Random(fastrand::Rng::with_seed(seed)).query();
        let (tables, scans) = tables_that(if seed % 3 == 0 { Applies::Nothing } else { Applies::All });
        let expected = all.query(&query, 20_000, usize::MAX).unwrap();
        let asked = Query { max_rows: 20_000, ..Query::new(query.clone()) };
        let found =
            engine.run("t", asked, &tables).await.unwrap_or_else(|error| panic!("{seed}: {query}: {error}"));
        assert!(!expected.is_truncated, "{seed}: the case is too large");
        answered += usize::from(!expected.rows.is_empty() && expected.rows != [[Value::Integer(0)]]);
        assert_eq!(sorted(found.rows), sorted(expected.rows), "{seed}: {query}");
        pushed += usize::from(scans.lock().unwrap().iter().any(|(_, constraints)| !constraints.is_empty()));
    }
    assert!(
        pushed > cases as usize / 3 && answered > cases as usize / 3,
        "{pushed} pushed, {answered} with rows"
    );
}
