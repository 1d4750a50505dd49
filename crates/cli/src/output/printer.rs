//! Prints: data to stdout in the format that was asked for, everything else to stderr.

use std::io::{self, Write};
use std::sync::Once;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use segno::clock::SystemClock;
use segno_api::Unreadable;
use serde::Serialize;
use serde_json::json;

use super::colours::{Colours, without_controls};
use super::command_line::CommandLine;
use super::format::Format;
use super::listing::Page;
use super::table::{Rows, Table};
use super::units::{Precision, local_time};
use super::yaml;
use super::zone::Zone;
use crate::exit::Failure;
use crate::moment::{self, Moment};

/// How a command prints.
#[derive(Debug, Clone)]
pub struct Output {
    /// The format of data.
    pub format: Format,
    /// The zone of the times in tables, and of times that are given without one.
    pub zone: Zone,
    /// Whether tables have colours.
    pub colours: Colours,
    /// The command as it was given.
    pub command: CommandLine,
}

impl Output {
    /// Prints one thing: a table, or JSON.
    pub fn print(&self, data: &impl Serialize, table: Table) -> Result<(), Failure> {
        self.text(data, &table.to_text(self.colours))
    }

    /// Prints one thing: a text for people, or JSON.
    pub fn text(&self, data: &impl Serialize, text: &str) -> Result<(), Failure> {
        match self.format {
            Format::Table => write(without_controls(text).as_bytes()),
            Format::Json | Format::Jsonl => write((to_json(data)? + "\n").as_bytes()),
            Format::Yaml => write(yaml::of_json(&to_json(data)?)?.as_bytes()),
        }
    }

    /// Prints a list: rows, `{"items":[…],"next_cursor":…}`, or one item per line. What cannot be read
    /// and how to go on are on stderr.
    pub fn list<T: Serialize>(&self, page: &Page<T>, rows: &Rows) -> Result<(), Failure> {
        self.list_as(page, &rows.to_text(self.colours))
    }

    /// The same with a text of one's own for people.
    pub fn list_as<T: Serialize>(&self, page: &Page<T>, text: &str) -> Result<(), Failure> {
        if self.format == Format::Jsonl {
            for item in &page.items {
                self.item(&to_json(item)?, String::new)?;
            }
        } else {
            self.text(page, text)?;
        }
        self.missing(&page.unreadable);
        self.more(page.next_cursor.as_deref());
        Ok(())
    }

    /// Warns of rows that the server cannot read, unless the output has them.
    pub fn missing(&self, unreadable: &[Unreadable]) {
        if matches!(self.format, Format::Table | Format::Jsonl) {
            for row in unreadable {
                let what = if row.id.is_empty() { "a part of it" } else { &row.id };
                self.warn(&format!("{what} cannot be read: {}", row.reason));
            }
        }
    }

    /// Tells on stderr how to get the next page of a list, if there is one.
    pub fn more(&self, next_cursor: Option<&str>) {
        if let Some(cursor) = next_cursor {
            let more = self.command.with_cursor(cursor);
            self.note(&format!("more: {more}"), || json!({ "more": more, "next_cursor": cursor }));
        }
    }

    /// Prints an item of a stream, which is JSON already: one line, or one document.
    pub fn item(&self, json: &str, text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.format {
            Format::Table => write(without_controls(&text()).as_bytes()),
            Format::Json | Format::Jsonl => write(format!("{json}\n").as_bytes()),
            Format::Yaml => write(format!("---\n{}", yaml::of_json(json)?).as_bytes()),
        }
    }

    /// Warns on stderr.
    pub fn warn(&self, warning: &str) {
        self.note(&format!("warning: {warning}"), || json!({ "warning": warning }));
    }

    /// Tells something on stderr that only people want to know.
    pub fn hint(&self, text: &str) {
        if !self.format.is_for_programs() {
            // What cannot be told is not a reason to fail.
            let _ = writeln!(io::stderr(), "{}", without_controls(text));
        }
    }

    /// Tells programs something on stderr.
    pub fn note_object(&self, object: &serde_json::Value) {
        self.note("", || object.clone());
    }

    /// Tells something on stderr, which programs read as an object.
    fn note(&self, text: &str, object: impl FnOnce() -> serde_json::Value) {
        let line = if self.format.is_for_programs() {
            object().to_string()
        } else {
            without_controls(text).into_owned()
        };
        // What cannot be told is not a reason to fail.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// The zone of times in tables. That it is not the one of `TZ` is told once, where a table has times.
    fn clocks(&self) -> &TimeZone {
        static TOLD: Once = Once::new();
        if let Some(wrong) = self.zone.wrong.as_ref().filter(|_| !self.format.is_for_programs()) {
            TOLD.call_once(|| {
                self.warn(&format!("TZ is {wrong:?}, which is no time zone, so times are shown in UTC"));
            });
        }
        &self.zone.zone
    }

    /// A time to the second.
    pub fn time(&self, at: Timestamp) -> String {
        local_time(at, self.clocks(), Precision::Second)
    }

    /// A time, or nothing.
    pub fn time_or_none(&self, at: Option<Timestamp>) -> String {
        at.map(|at| self.time(at)).unwrap_or_default()
    }

    /// A time to the millisecond.
    pub fn exact_time(&self, at: Timestamp) -> String {
        local_time(at, self.clocks(), Precision::Millisecond)
    }

    /// A time that is stored as milliseconds.
    pub fn time_of_ms(&self, unix_ms: u64) -> String {
        let at = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        at.map_or_else(|| format!("{unix_ms} ms"), |at| self.time(at))
    }

    /// When a moment is that a flag names.
    ///
    /// # Errors
    /// When it is on local clocks, and `TZ` names no zone.
    pub fn moment(&self, moment: Moment) -> Result<Timestamp, Failure> {
        match (&self.zone.wrong, moment) {
            (Some(wrong), Moment::Local(local)) => Err(Failure::Refused(format!(
                "{local} is a local time, and TZ is {wrong:?}, which is no time zone; correct TZ, pass --utc, or write RFC 3339"
            ))),
            _ => Ok(moment.resolve(moment::now(&SystemClock), &self.zone.zone)),
        }
    }

    /// The same for a flag that may be absent.
    ///
    /// # Errors
    /// When it is on local clocks, and `TZ` names no zone.
    pub fn optional_moment(&self, moment: Option<Moment>) -> Result<Option<Timestamp>, Failure> {
        moment.map(|moment| self.moment(moment)).transpose()
    }
}

fn to_json(data: &(impl Serialize + ?Sized)) -> Result<String, Failure> {
    Ok(serde_json::to_string(data).map_err(io::Error::from)?)
}

/// Writes to standard output. A reader that has seen enough is no failure.
pub fn write(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
