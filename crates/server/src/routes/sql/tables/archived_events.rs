//! Archived events, behind the live ones.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno_ledger::archive::{ArchivedFile, EVENTS};
use segno_ledger::sql::{Row, Scan, Value};
use segno_ledger::tables::Cell;

use super::archived::value;
use crate::app::Tenant;
use crate::problem::Refusal;

/// An execution: the id of its instance, when that was created, and its number.
type Execution<'a> = (&'a str, u64, u64);

/// The columns that tell events apart.
const KEY: [&str; 4] = ["id", "incarnation", "execution", "event_id"];

/// Which events a scan has delivered. Keys are kept as hashes.
#[derive(Clone, Default)]
pub struct Delivered(Arc<Mutex<Events>>);

#[derive(Default)]
struct Events {
    /// The last event of each live execution; those before it were delivered too.
    live: HashMap<u64, u64>,
    archived: HashSet<u64>,
}

impl Delivered {
    /// Takes note of the events of a live execution up to this one.
    pub fn note_live(&self, execution: Execution<'_>, last: u64) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.live.insert(hash(execution), last);
    }

    /// Whether an archived event is to be delivered; only once.
    fn is_new(&self, execution: Execution<'_>, event: u64) -> bool {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_live = events.live.get(&hash(execution)).is_some_and(|last| event <= *last);
        !is_live && events.archived.insert(hash((execution, event)))
    }
}

fn hash(key: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// What is left to read.
struct Reading {
    tenant: Tenant,
    scan: Scan,
    columns: Vec<&'static str>,
    delivered: Delivered,
    unread: Option<Vec<ArchivedFile>>,
    read: HashSet<String>,
}

/// The archived events of a scan that were not delivered.
pub fn rows(
    tenant: Tenant,
    scan: Scan,
    delivered: Delivered,
) -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
    let there = scan.columns.iter().filter_map(|name| column(name));
    let columns = KEY.into_iter().chain(there).collect();
    let reading = Reading { tenant, scan, columns, delivered, unread: None, read: HashSet::new() };
    let pages = stream::try_unfold(reading, |mut reading| async move {
        if reading.unread.is_none() {
            reading.list().await?;
        }
        let Some(file) = reading.unread.as_mut().and_then(Vec::pop) else { return Ok(None) };
        let rows = reading.rows(&file).await?;
        Ok::<_, Refusal>(Some((rows, reading)))
    });
    pages.boxed()
}

/// The column of the archive that a column of the table has; `None` for one that only live rows have.
fn column(name: &'static str) -> Option<&'static str> {
    match name {
        "instance" => Some("id"),
        "id" => Some("event_id"),
        "instance_created_at" => Some("incarnation"),
        "archived" | "unreadable" => None,
        name => Some(name),
    }
}

impl Reading {
    async fn list(&mut self) -> Result<(), Refusal> {
        let (from, before) = self.scan.range("instance_created_at");
        let mut files = match self.scan.equals_text("instance") {
            Some(id) => self.tenant.archived_files_of(&EVENTS, id).await?,
            None => self.tenant.archived_files(&EVENTS).await?,
        };
        files.retain(|file| {
            !self.read.contains(&file.name.digest)
                && from.is_none_or(|from| file.name.to_ms >= from)
                && before.is_none_or(|before| file.name.from_ms < before)
        });
        self.unread = Some(files);
        Ok(())
    }

    async fn rows(&mut self, file: &ArchivedFile) -> Result<Vec<Row>, Refusal> {
        let wanted: Vec<(&str, &str)> =
            self.scan.equals_text("instance").map(|id| ("id", id)).into_iter().collect();
        let found = self.tenant.archived_rows(&EVENTS, file, &self.columns, &wanted).await?;
        let Some(found) = found else {
            // It was merged with others: their rows are in a file that is listed now.
            self.unread = None;
            return Ok(Vec::new());
        };
        self.read.insert(file.name.digest.clone());
        let execution = self.scan.equals("execution").cloned();
        let is_wanted = |cells: &Vec<Cell>| {
            let is_execution = execution
                .as_ref()
                .is_none_or(|wanted| cells.get(2).is_some_and(|cell| value(cell.clone()) == *wanted));
            let number = |at: usize| match cells.get(at) {
                Some(Cell::Integer(number)) => u64::try_from(*number).unwrap_or(0),
                _ => 0,
            };
            let id = match cells.first() {
                Some(Cell::Text(id)) => id.as_ref(),
                _ => "",
            };
            is_execution && self.delivered.is_new((id, number(1), number(2)), number(3))
        };
        Ok(found.into_iter().filter(is_wanted).map(|cells| self.row(cells)).collect())
    }

    fn row(&self, cells: Vec<Cell>) -> Row {
        let mut cells = cells.into_iter().skip(KEY.len());
        let cell = |name: &&'static str| match (*name, column(name)) {
            ("archived", _) => Value::flag(true),
            (_, None) => Value::Null,
            (_, Some(_)) => cells.next().map_or(Value::Null, value),
        };
        self.scan.columns.iter().map(cell).collect()
    }
}
