//! Members from the cells of a query: the same rules as for comma-separated values, without lines.

use std::collections::BTreeSet;

use segno_actions::document::{did_you_mean, folded, shown};
use serde_json::{Map, Value};

use super::csv::{Row, Rows};
use super::error::InvalidMembers;
use super::keys::MemberKeys;
use super::values::split_values;
use crate::definition::DataSource;
use crate::limits::{MAX_COLUMNS, MAX_ROW_BYTES, MAX_SOURCE_ROWS, MAX_VALUES};
use crate::names::NameKind;
use crate::problem::{Position, Problem, Problems};

/// A value of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// None: NULL, or a name that the row does not have.
    Missing,
    /// A text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// The JSON text of an object, or of an array with more than texts in it.
    Json(String),
}

/// Reads rows of a query, which must have the columns that are required. Each row has a cell for every column.
///
/// # Errors
/// `invalid-members` with all problems, each with its row from 1.
pub fn read_cells(
    columns: Vec<String>,
    cells: Vec<Vec<Cell>>,
    source: &DataSource,
    required: &BTreeSet<String>,
) -> Result<Rows, InvalidMembers> {
    let mut rows = Vec::new();
    let columns = read_cells_into(columns, cells, source, required, &mut |row| rows.push(row))?;
    Ok(Rows { columns, rows })
}

/// The same row by row, for a caller that does not keep them. Returns the columns.
///
/// # Errors
/// `invalid-members` with all problems; rows that were taken before do not count.
pub fn read_cells_into(
    columns: Vec<String>,
    cells: Vec<Vec<Cell>>,
    source: &DataSource,
    required: &BTreeSet<String>,
    take: &mut dyn FnMut(Row),
) -> Result<Vec<String>, InvalidMembers> {
    let mut reading = Reading { source, problems: Problems::default(), keys: MemberKeys::new("row") };
    reading.check_columns(&columns, required);
    if cells.len() > MAX_SOURCE_ROWS {
        reading.push("", format!("there are more than {MAX_SOURCE_ROWS} rows"));
    }
    if !reading.problems.has_errors() {
        for (place, cells) in (1..).zip(cells) {
            if let Some(row) = reading.row(place, cells, &columns) {
                take(row);
            }
        }
    }
    if reading.problems.has_errors() {
        return Err(InvalidMembers { problems: reading.problems });
    }
    Ok(columns)
}

struct Reading<'s> {
    source: &'s DataSource,
    problems: Problems,
    keys: MemberKeys,
}

impl Reading<'_> {
    fn push(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.problems.push(Problem::error(Position::NONE, path, problem));
    }

    fn check_columns(&mut self, columns: &[String], required: &BTreeSet<String>) {
        if columns.len() > MAX_COLUMNS {
            self.push("", format!("there are {} columns, the limit is {MAX_COLUMNS}", columns.len()));
            return;
        }
        let mut seen = BTreeSet::new();
        for name in columns {
            if let Err(problem) = NameKind::Column.check(name) {
                self.push(format!("column {:?}", shown(name)), problem);
            } else if !seen.insert(folded(name)) {
                let problem = "two columns have this name; letter case does not matter";
                self.push(format!("column {name:?}"), problem);
            }
        }
        let others = required.iter().filter(|name| **name != self.source.primary_key);
        for name in std::iter::once(&self.source.primary_key).chain(others) {
            if !columns.contains(name) {
                let problem = Problem::error(Position::NONE, "", format!("the column {name:?} is missing"));
                let advice = did_you_mean(name, columns.iter().map(String::as_str));
                self.problems.push(problem.maybe_advice(advice));
            }
        }
    }

    fn row(&mut self, place: u64, cells: Vec<Cell>, names: &[String]) -> Option<Row> {
        let bytes: usize = cells.iter().map(Cell::bytes).sum();
        if bytes > MAX_ROW_BYTES {
            self.push(format!("row {place}"), format!("it has {bytes} bytes, the limit is {MAX_ROW_BYTES}"));
            return None;
        }
        let mut columns = Map::new();
        let mut key = None;
        for (name, cell) in names.iter().zip(cells) {
            if *name == self.source.primary_key {
                match key_text(&cell).and_then(|text| self.keys.take(text, place)) {
                    Ok(taken) => key = Some(taken),
                    Err(problem) => self.push(format!("row {place}, {name}"), problem),
                }
            }
            match self.value(name, cell) {
                Ok(value) => drop(columns.insert(name.clone(), value)),
                Err(problem) => self.push(format!("row {place}, {name}"), problem),
            }
        }
        Some(Row { line: place, key: key?, columns })
    }

    fn value(&self, name: &str, cell: Cell) -> Result<Value, String> {
        match (cell, self.source.multi_valued(name)) {
            (Cell::Missing, None) => Ok(Value::Null),
            (Cell::Missing, Some(_)) => Ok(Value::Array(Vec::new())),
            (Cell::Text(text) | Cell::Json(text), None) => Ok(Value::String(text)),
            (Cell::Text(text) | Cell::Json(text), Some(format)) => {
                split_values(&text, format).map(|values| values.into_iter().map(Value::String).collect())
            }
            (Cell::List(values), _) if values.len() > MAX_VALUES => {
                Err(format!("it has {} values, the limit is {MAX_VALUES}", values.len()))
            }
            (Cell::List(values), _) => Ok(values.into_iter().map(Value::String).collect()),
        }
    }
}

/// The text of a key.
fn key_text(cell: &Cell) -> Result<&str, String> {
    match cell {
        Cell::Missing => Ok(""),
        Cell::Text(text) => Ok(text),
        Cell::List(_) | Cell::Json(_) => {
            Err("the key is a list or an object; it must be a text, a number, true or false".to_owned())
        }
    }
}

impl Cell {
    fn bytes(&self) -> usize {
        match self {
            Cell::Missing => 0,
            Cell::Text(text) | Cell::Json(text) => text.len(),
            Cell::List(values) => values.iter().map(String::len).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{BatchTime, MultiValued, MultiValuedFormat, SourceKind};
    use crate::limits::MAX_MEMBER_KEY_CHARS;

    fn source() -> DataSource {
        DataSource {
            kind: SourceKind::Manual,
            primary_key: "Id".to_owned(),
            batch_time: BatchTime::Immediate,
            multi_valued_columns: vec![MultiValued {
                name: "Aliases".to_owned(),
                format: MultiValuedFormat::SemicolonDelimited,
            }],
            interval_sec: 300,
            max_removed_percent: 20,
        }
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    fn read(columns: &[&str], rows: Vec<Vec<Cell>>, required: &[&str]) -> Result<Rows, String> {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let required = required.iter().map(|name| (*name).to_owned()).collect();
        read_cells(columns, rows, &source(), &required).map_err(|error| error.problems.to_string())
    }

    #[test]
    fn cells_become_members() {
        let list = Cell::List(vec!["x".to_owned(), "y".to_owned()]);
        let rows = vec![
            vec![text(" a "), text("p;q"), Cell::Missing],
            vec![text("b"), list.clone(), list],
            vec![text("c"), Cell::Missing, text("1")],
        ];
        let read = read(&["Id", "Aliases", "Home"], rows, &["Home"]).unwrap();
        let found: Vec<(&str, Value)> =
            read.rows.iter().map(|row| (row.key.as_str(), Value::Object(row.columns.clone()))).collect();
        assert_eq!(
            found,
            [
                ("a", json!({"Id": " a ", "Aliases": ["p", "q"], "Home": null})),
                ("b", json!({"Id": "b", "Aliases": ["x", "y"], "Home": ["x", "y"]})),
                ("c", json!({"Id": "c", "Aliases": [], "Home": "1"})),
            ]
        );
    }

    #[test]
    fn all_problems_are_listed_with_their_rows() {
        let rows = vec![
            vec![text("a")],
            vec![text("A")],
            vec![Cell::Missing],
            vec![text("a\u{7}b")],
            vec![text(&"x".repeat(MAX_MEMBER_KEY_CHARS + 1))],
            vec![text(&"x".repeat(MAX_ROW_BYTES + 1))],
            vec![Cell::List(vec!["b".to_owned()])],
            vec![Cell::Json("{\"x\":1}".to_owned())],
        ];
        let problems = read(&["Id"], rows, &[]).unwrap_err();
        assert_eq!(
            problems.lines().collect::<Vec<_>>(),
            [
                "row 2, Id: the key \"A\" is already on row 1; letter case does not matter",
                "row 3, Id: the key is empty",
                "row 4, Id: the key \"a\\u{7}b\" has a control character",
                "row 5, Id: the key is longer than 256 characters",
                "row 6: it has 65537 bytes, the limit is 65536",
                "row 7, Id: the key is a list or an object; it must be a text, a number, true or false",
                "row 8, Id: the key is a list or an object; it must be a text, a number, true or false",
            ]
        );
        let problems = read(&["ID", "Upn", "upn", "_batch_id"], Vec::new(), &["Home"]).unwrap_err();
        assert_eq!(
            problems.lines().collect::<Vec<_>>(),
            [
                "column \"upn\": two columns have this name; letter case does not matter",
                "column \"_batch_id\": \"_batch_id\" is a variable of the system; use another name",
                "the column \"Id\" is missing; did you mean \"ID\"?",
                "the column \"Home\" is missing",
            ]
        );
    }
}
