//! What is printed: aligned lines for people, or one JSON object for programs.

use std::io::{self, Write};

use segno_api::Unreadable;
use serde::Serialize;

use crate::arguments::Format;
use crate::exit::Failure;

/// Lines of a name and a value, in sections.
#[derive(Debug, Default)]
pub struct Table {
    sections: Vec<(String, Vec<(String, String)>)>,
}

impl Table {
    /// A new section; its name is empty for the first one.
    pub fn section(mut self, name: &str) -> Self {
        self.sections.push((name.to_owned(), Vec::new()));
        self
    }

    /// A line of the last section.
    pub fn line(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if self.sections.is_empty() {
            self.sections.push((String::new(), Vec::new()));
        }
        if let Some((_, lines)) = self.sections.last_mut() {
            lines.push((name.into(), value.into()));
        }
        self
    }

    /// As people read it.
    pub fn to_text(&self) -> String {
        let names = self.sections.iter().flat_map(|(_, lines)| lines).map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for (name, lines) in self.sections.iter().filter(|(_, lines)| !lines.is_empty()) {
            if !name.is_empty() {
                text.push_str(&format!("\n{name}\n"));
            }
            for (name, value) in lines {
                let gap = " ".repeat(width - name.chars().count());
                text.push_str(&format!("  {name}{gap}  {value}\n"));
            }
        }
        text
    }
}

/// Prints warnings, apart from what a command prints.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        // A warning that cannot be printed is not a reason to fail.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// Warns on stderr of rows that the server cannot read: they are in no table, and can be deleted by their ids.
pub fn warn_of_unreadable(rows: &[Unreadable]) {
    for row in rows {
        eprintln!("warning: {} cannot be read: {}", row.id, row.reason);
    }
}

/// Prints what a command has to say.
pub fn print(format: Format, json: &impl Serialize, table: Table) -> Result<(), Failure> {
    let text = match format {
        Format::Text => table.to_text(),
        Format::Json => serde_json::to_string(json).map_err(io::Error::from)? + "\n",
    };
    write(text.as_bytes())
}

/// Rows under headings, aligned.
#[derive(Debug)]
pub struct Rows {
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// No rows yet, with these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Rows { rows: vec![headings.iter().map(|heading| heading.to_uppercase()).collect()] }
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// As people read it.
    pub fn to_text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - cell.chars().count() + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Prints rows.
pub fn print_rows(format: Format, json: &impl Serialize, rows: &Rows) -> Result<(), Failure> {
    let text = match format {
        Format::Text => rows.to_text(),
        Format::Json => serde_json::to_string(json).map_err(io::Error::from)? + "\n",
    };
    write(text.as_bytes())
}

/// Prints text for people, or JSON.
pub fn print_text(format: Format, json: &impl Serialize, text: &str) -> Result<(), Failure> {
    match format {
        Format::Text => write(text.as_bytes()),
        Format::Json => write((serde_json::to_string(json).map_err(io::Error::from)? + "\n").as_bytes()),
    }
}

/// A time in UTC to the second.
pub fn short_time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Milliseconds as people say it.
pub fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Writes to standard output. A reader that has seen enough is no failure.
pub fn write(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in MiB.
pub fn size(bytes: u64) -> String {
    const BYTES_PER_MIB: f64 = 1_048_576.0;
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let mib = bytes as f64 / BYTES_PER_MIB;
    format!("{mib:.2} MiB")
}

/// A time in UTC, as people write it.
pub fn time(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{unix_ms} ms"), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_times_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(size(1_572_864), "1.50 MiB");
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_827_696_000), "2000-02-29 12:34:56 UTC");
        assert_eq!(time(1_794_700_799_999), "2026-11-14 23:59:59 UTC");
    }

    #[test]
    fn rows_are_aligned_and_durations_readable() {
        let mut rows = Rows::new(["id", "status"]);
        rows.add(["a-long-one".to_owned(), "ok".to_owned()]);
        assert_eq!(rows.to_text(), "ID          STATUS\na-long-one  ok\n");
        assert_eq!([5, 1_500, 61_000, 3_660_000].map(duration), ["5 ms", "1.5 s", "1 min 1 s", "1 h 1 min"]);
    }

    #[test]
    fn lines_are_aligned() {
        let table = Table::default().line("a", "1").section("more").line("longer", "2").section("empty");
        assert_eq!(table.to_text(), "  a       1\n\nmore\n  longer  2\n");
    }
}
