//! Answers as tables, comma-separated values and documents.

use std::fmt::Write as _;

use segno_api::Json;
use segno_api::sql::{SqlAnswer, SqlFetched};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::exit::Failure;
use crate::output::{self, Output, Page, Rows, count, size};

/// In which form an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// That of `--output`.
    Chosen,
    /// Comma-separated values.
    Csv,
}

/// A row as an object: the names of the columns, in their order.
struct Row<'a> {
    columns: &'a [String],
    cells: &'a [Json],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            map.serialize_entry(column, cell)?;
        }
        map.end()
    }
}

/// Prints an answer. That rows are missing is told on stderr.
pub fn print(answer: &SqlAnswer, form: Form, output: &Output) -> Result<(), Failure> {
    match form {
        Form::Csv => output::write(csv(answer).as_bytes())?,
        Form::Chosen => {
            let rows = answer.rows.iter().map(|cells| Row { columns: &answer.columns, cells });
            output.list(&Page::whole(rows.collect()), &table(answer))?;
        }
    }
    if answer.truncated {
        let shown = answer.rows.len();
        output.warn(&format!(
            "there are more rows than the {shown} shown; raise --max-rows or narrow the query"
        ));
    }
    Ok(())
}

fn table(answer: &SqlAnswer) -> Rows {
    let mut rows = Rows::named(answer.columns.clone());
    for row in &answer.rows {
        rows.push(row.iter().map(text).collect());
    }
    rows
}

/// A cell as people read it.
fn text(cell: &Json) -> String {
    if cell.text() == "null" {
        return String::new();
    }
    serde_json::from_str::<String>(cell.text()).unwrap_or_else(|_| cell.text().to_owned())
}

/// Lines of comma-separated values, the first with the names of the columns.
fn csv(answer: &SqlAnswer) -> String {
    let mut text = String::new();
    line(&mut text, answer.columns.iter().map(|name| quoted(name)));
    for row in &answer.rows {
        line(
            &mut text,
            row.iter().map(|cell| match serde_json::from_str::<String>(cell.text()) {
                Ok(text) => quoted(&text),
                Err(_) if cell.text() == "null" => String::new(),
                Err(_) => cell.text().to_owned(),
            }),
        );
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&cells.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// Tells on stderr what was read for an answer.
pub fn explain(answer: &SqlAnswer, output: &Output) {
    let mut report = String::new();
    for fetched in &answer.fetched {
        of_table(&mut report, fetched);
    }
    let _ = write!(report, "read in {} ms, evaluated in {} ms", answer.fetch_ms, answer.evaluate_ms);
    if output.format.is_for_programs() {
        output.note_object(&serde_json::json!({
            "fetched": answer.fetched, "fetch_ms": answer.fetch_ms, "evaluate_ms": answer.evaluate_ms,
        }));
    } else {
        output.hint(&report);
    }
}

fn of_table(report: &mut String, fetched: &SqlFetched) {
    let _ = writeln!(report, "table {}", fetched.table);
    let columns = if fetched.columns.is_empty() { "none".to_owned() } else { fetched.columns.join(", ") };
    let _ = writeln!(report, "  columns  {columns}");
    for pushed in &fetched.pushed {
        let _ = writeln!(report, "  pushed   {pushed}");
    }
    for filtered in &fetched.filtered {
        let _ = writeln!(report, "  filtered {filtered}");
    }
    if let Some(limit) = fetched.limit {
        let _ = writeln!(report, "  limit    {limit}");
    }
    let (read, kept) = (count(fetched.read_rows), count(fetched.kept_rows));
    let _ = writeln!(report, "  read     {read} rows, {}; {kept} kept", size(fetched.read_bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> SqlAnswer {
        let cell = |text: &str| Json::from_text(text.to_owned()).unwrap();
        SqlAnswer {
            columns: vec!["id".to_owned(), "count(*)".to_owned()],
            rows: vec![vec![cell("\"a, \\\"b\\\"\""), cell("1.50")], vec![cell("null"), cell("\"\"")]],
            truncated: false,
            fetched: Vec::new(),
            fetch_ms: 1,
            evaluate_ms: 2,
        }
    }

    #[test]
    fn cells_are_printed_in_every_form() {
        let answer = answer();
        assert_eq!(csv(&answer), "id,count(*)\r\n\"a, \"\"b\"\"\",1.50\r\n,\"\"\r\n");
        let row = Row { columns: &answer.columns, cells: &answer.rows[0] };
        assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"id":"a, \"b\"","count(*)":1.50}"#);
        let shown = table(&answer).to_text(crate::output::Colours::Plain);
        assert_eq!(shown, "id      count(*)\na, \"b\"  1.50\n\n");
    }

    #[test]
    fn the_report_names_what_was_read() {
        let fetched = SqlFetched {
            table: "instances".to_owned(),
            columns: vec!["id".to_owned(), "status".to_owned()],
            pushed: vec!["id = 'a'".to_owned()],
            filtered: vec!["version = '1'".to_owned()],
            limit: Some(11),
            read_rows: 1_200,
            read_bytes: 2_048,
            kept_rows: 7,
            ..SqlFetched::default()
        };
        let mut report = String::new();
        of_table(&mut report, &fetched);
        let expected = "table instances\n  columns  id, status\n  pushed   id = 'a'\n  filtered version = '1'\n  limit    11\n";
        assert!(report.starts_with(expected), "{report}");
        assert!(report.contains("7 kept"), "{report}");
    }
}
