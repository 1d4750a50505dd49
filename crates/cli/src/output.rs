//! What is printed: aligned lines for people, or one JSON object for programs.

use std::io::{self, Write};

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

    fn text(&self) -> String {
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

/// Prints what a command has to say.
pub fn print(format: Format, json: &impl Serialize, table: Table) -> Result<(), Failure> {
    let text = match format {
        Format::Text => table.text(),
        Format::Json => serde_json::to_string(json).map_err(io::Error::from)? + "\n",
    };
    write(text.as_bytes())
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
    fn lines_are_aligned() {
        let table = Table::default().line("a", "1").section("more").line("longer", "2").section("empty");
        assert_eq!(table.text(), "  a       1\n\nmore\n  longer  2\n");
    }
}
