//! Recorded histories as golden files: written from a running system, replayed against today's code in CI.
//!
//! The readable form is JSON lines: a header that names the execution, then one object for each event. The stored
//! form is what a store keeps, as lines of hexadecimal digits; decoding it for ever is a promise of the engine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use segno::event::{Event, EventKind};
use segno::store::StoredEvent;
use segno::{Client, Error, Registry};
use serde::{Deserialize, Serialize};

/// Extension of the files that [`replay_dir`] reads.
pub const EXTENSION: &str = "jsonl";

/// Why a recorded history is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The text is not a recorded history.
    #[error("line {line}: {reason}")]
    Unreadable {
        /// Line in the text, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The code does not do what the history says.
    #[error(transparent)]
    Replay(#[from] Error),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// One of several files is not accepted.
    #[error("{}: {source}", file.display())]
    In {
        /// The file.
        file: PathBuf,
        /// Why.
        source: Box<HistoryError>,
    },
    /// There is nothing to replay, which is hardly what a check was set up for.
    #[error("{} has no .{EXTENSION} file", .0.display())]
    Empty(PathBuf),
}

/// The history of one execution.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The instance.
    pub instance: String,
    /// Its execution.
    pub execution_id: u64,
    /// What happened.
    pub events: Vec<Event>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    instance: String,
    execution_id: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    event_id: u64,
    at_ms: u64,
    kind: EventKind,
}

impl History {
    /// Reads the history of an execution.
    ///
    /// # Errors
    /// Those of the client.
    pub async fn of(client: &Client, instance: &str, execution_id: u64) -> Result<History, Error> {
        let events = client.history_of_execution(instance, execution_id).await?;
        Ok(History { instance: instance.to_owned(), execution_id, events })
    }

    /// The readable form.
    pub fn to_json_lines(&self) -> String {
        let header = Header { instance: self.instance.clone(), execution_id: self.execution_id };
        let mut text = json(&header);
        for Event { event_id, at_ms, kind } in self.events.clone() {
            text.push('\n');
            text.push_str(&json(&Line { event_id, at_ms, kind }));
        }
        text.push('\n');
        text
    }

    /// Reads the readable form.
    ///
    /// # Errors
    /// Names the first line that cannot be read.
    pub fn from_json_lines(text: &str) -> Result<History, HistoryError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let unreadable = |at: usize, error: serde_json::Error| HistoryError::Unreadable {
            line: at + 1,
            reason: error.to_string(),
        };
        let (at, header) = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_str(header).map_err(|error| unreadable(at, error))?;
        let mut events = Vec::new();
        for (at, line) in lines {
            let line: Line = serde_json::from_str(line).map_err(|error| unreadable(at, error))?;
            events.push(Event { event_id: line.event_id, at_ms: line.at_ms, kind: line.kind });
        }
        Ok(History { instance: header.instance, execution_id: header.execution_id, events })
    }

    /// The stored form: for each event its id and its bytes in hexadecimal digits.
    pub fn to_stored_lines(&self) -> String {
        let mut text = String::new();
        for stored in self.events.iter().map(Event::to_stored) {
            let _ = write!(text, "{} ", stored.event_id);
            for byte in &stored.data {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        text
    }

    /// Replays the history on the registered code.
    ///
    /// # Errors
    /// When the code is not registered or does something else.
    pub fn replay(&self, registry: &Registry) -> Result<(), Error> {
        registry.replay(&self.instance, self.execution_id, &self.events)
    }
}

/// Reads events in the stored form, as [`History::to_stored_lines`] writes it.
///
/// # Errors
/// Names the first line that cannot be read.
pub fn read_stored_lines(text: &str) -> Result<Vec<Event>, HistoryError> {
    let read = |(at, line): (usize, &str)| {
        let unreadable = |reason: String| HistoryError::Unreadable { line: at + 1, reason };
        let parts = line.split_once(' ').and_then(|(id, digits)| Some((id.parse().ok()?, bytes(digits)?)));
        let (event_id, data) =
            parts.ok_or_else(|| unreadable("not an id and hexadecimal digits".to_owned()))?;
        Event::from_stored(&StoredEvent { event_id, data: data.into() }).map_err(unreadable)
    };
    text.lines().enumerate().map(read).collect()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("recorded types have a JSON form")
}

/// Records the history of an execution in the readable form.
///
/// # Errors
/// Those of the client.
pub async fn record(client: &Client, instance: &str, execution_id: u64) -> Result<String, Error> {
    Ok(History::of(client, instance, execution_id).await?.to_json_lines())
}

/// Replays a recorded history on the registered code.
///
/// # Errors
/// When the text cannot be read or the code does something else.
pub fn replay(registry: &Registry, text: &str) -> Result<(), HistoryError> {
    Ok(History::from_json_lines(text)?.replay(registry)?)
}

/// Replays every recorded history of a directory; returns how many there were.
///
/// # Errors
/// Names the first file that is not accepted; also when there is none.
pub fn replay_dir(directory: impl AsRef<Path>, registry: &Registry) -> Result<usize, HistoryError> {
    let directory = directory.as_ref();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == EXTENSION) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(HistoryError::Empty(directory.to_owned()));
    }
    for file in &files {
        let replayed = std::fs::read_to_string(file)
            .map_err(HistoryError::from)
            .and_then(|text| replay(registry, &text));
        replayed.map_err(|source| HistoryError::In { file: file.clone(), source: Box::new(source) })?;
    }
    Ok(files.len())
}
