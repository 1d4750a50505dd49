//! Rows from JSON: an array of objects. Names are columns; numbers and true or false become texts.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Number, Value};

use crate::definition::DataSource;
use crate::members::{Cell, InvalidMembers, Row, Rows, read_cells_into};
use crate::problem::{Position, Problem, Problems};

/// A table as the source had it, before anything is checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    /// Names of the columns: those of all objects, in the order in which they first appear.
    pub(super) columns: Vec<String>,
    /// A cell for each column.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// Reads members from objects, which must have the columns that are required. Without objects there are no members.
///
/// # Errors
/// `invalid-members` with all problems, each with its row from 1.
pub fn read_objects(
    objects: Vec<Value>,
    source: &DataSource,
    required: &BTreeSet<String>,
) -> Result<Rows, InvalidMembers> {
    let mut rows = Vec::new();
    let columns = read_objects_into(objects, source, required, &mut |row| rows.push(row))?;
    Ok(Rows { columns, rows })
}

/// The same row by row, for a caller that does not keep them. Returns the columns.
///
/// # Errors
/// `invalid-members` with all problems; rows that were taken before do not count.
pub(super) fn read_objects_into(
    objects: Vec<Value>,
    source: &DataSource,
    required: &BTreeSet<String>,
    take: &mut dyn FnMut(Row),
) -> Result<Vec<String>, InvalidMembers> {
    let table = table(objects).map_err(|problem| {
        let mut problems = Problems::default();
        problems.push(Problem::error(Position::NONE, "", problem));
        InvalidMembers { problems }
    })?;
    if table.rows.is_empty() {
        // Without a row there are no names of columns to be checked.
        return Ok(Vec::new());
    }
    read_cells_into(table.columns, table.rows, source, required, take)
}

/// Makes a table of objects.
///
/// # Errors
/// The first value that is no object, or a number that cannot be kept exactly, by its place from 1.
pub(super) fn table(values: Vec<Value>) -> Result<Table, String> {
    let mut objects: Vec<Map<String, Value>> = Vec::with_capacity(values.len());
    let mut columns: Vec<String> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (place, value) in values.into_iter().enumerate() {
        let Value::Object(object) = value else {
            return Err(format!("row {} is not an object such as {{\"Upn\": \"a@example.org\"}}", place + 1));
        };
        for name in object.keys() {
            if !seen.contains(name) {
                seen.insert(name.clone());
                columns.push(name.clone());
            }
        }
        objects.push(object);
    }
    let places: HashMap<&str, usize> =
        columns.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let mut rows = Vec::with_capacity(objects.len());
    for (row, object) in (1..).zip(objects) {
        let mut cells = vec![Cell::Missing; columns.len()];
        for (name, value) in object {
            if let Some(place) = places.get(name.as_str()) {
                cells[*place] = cell(value).map_err(|problem| format!("row {row}, {name}: {problem}"))?;
            }
        }
        rows.push(cells);
    }
    Ok(Table { columns, rows })
}

fn cell(value: Value) -> Result<Cell, String> {
    Ok(match value {
        Value::Null => Cell::Missing,
        Value::String(text) => Cell::Text(text),
        Value::Number(number) if is_rounded(&number) => {
            return Err(format!("{number} was rounded; return large numbers as texts"));
        }
        Value::Array(values) if values.iter().all(is_scalar) => {
            Cell::List(values.into_iter().map(scalar_text).collect())
        }
        other @ (Value::Number(_) | Value::Bool(_)) => Cell::Text(other.to_string()),
        other @ (Value::Array(_) | Value::Object(_)) => Cell::Json(other.to_string()),
    })
}

/// Whether a number is a whole one that does not fit 64 bits, of which only the first digits are left.
fn is_rounded(number: &Number) -> bool {
    let is_large = |value: f64| value.abs() >= 2_f64.powi(63);
    number.is_f64() && number.as_f64().is_some_and(is_large)
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn scalar_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_become_rows_with_all_columns() {
        let values =
            json!([{"Id": 7, "Upn": "a"}, {"Id": true, "Aliases": ["x", 1], "Home": {"a": 1}, "Upn": null}]);
        let table = table(serde_json::from_value(values).unwrap()).unwrap();
        let text = |text: &str| Cell::Text(text.to_owned());
        let mut found: Vec<(&str, &Cell, &Cell)> = Vec::new();
        for (place, name) in table.columns.iter().enumerate() {
            found.push((name, &table.rows[0][place], &table.rows[1][place]));
        }
        found.sort_by_key(|(name, ..)| *name);
        let list = Cell::List(vec!["x".to_owned(), "1".to_owned()]);
        assert_eq!(
            found,
            [
                ("Aliases", &Cell::Missing, &list),
                ("Home", &Cell::Missing, &Cell::Json("{\"a\":1}".to_owned())),
                ("Id", &text("7"), &text("true")),
                ("Upn", &text("a"), &Cell::Missing),
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_named_by_its_place() {
        let problem = table(vec![json!({}), json!([1])]).unwrap_err();
        assert!(problem.starts_with("row 2 is not an object"), "{problem}");
        let large: Value = serde_json::from_str("{\"Id\": 123456789012345678901}").unwrap();
        let problem = table(vec![json!({"Id": u64::MAX, "Half": 0.5}), large]).unwrap_err();
        assert_eq!(problem, "row 2, Id: 1.2345678901234567e+20 was rounded; return large numbers as texts");
    }
}
