//! Answers as comma-separated values (RFC 4180).

use std::fmt::Write as _;

use segno_ledger::sql::{Answer, Value};

/// The lines of an answer, the first with the names of the columns.
pub fn written(answer: &Answer) -> String {
    let mut text = String::new();
    line(&mut text, answer.columns.iter().map(|name| quoted(name)));
    for row in &answer.rows {
        line(&mut text, row.iter().map(cell));
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(&cell);
    }
    text.push_str("\r\n");
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => quoted(text),
        Value::Blob(bytes) => hex(bytes),
    }
}

/// A text as a cell. One without characters has quotes, so that it is not read as no value.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let text = |text: &str| Value::Text(text.to_owned());
        let answer = Answer {
            columns: vec!["a".to_owned(), "b,c".to_owned()],
            rows: vec![
                vec![text("plain"), text("say \"hi\"\nagain")],
                vec![Value::Null, text("")],
                vec![Value::Integer(-1), Value::Real(2.5)],
                vec![Value::Blob(vec![0, 255]), text("ü")],
            ],
            is_truncated: false,
            fetched: Vec::new(),
            fetch_ms: 0,
            evaluate_ms: 0,
        };
        let expected = "a,\"b,c\"\r\nplain,\"say \"\"hi\"\"\nagain\"\r\n,\"\"\r\n-1,2.5\r\n00ff,ü\r\n";
        assert_eq!(written(&answer), expected);
    }
}
