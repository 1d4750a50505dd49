//! Archived records behind live ones: a table of a listing that reads both as one.
//!
//! Archived rows come newest first: files are opened in the order of their newest rows, and a row
//! is delivered when no other file can have a newer one. The files are listed after a page of live
//! rows was read, so a row that leaves the store while the query runs is in one of the two.
//!
//! A listing whose order is newest first is merged with them, page by page. Of any other, the live
//! rows come first, and their keys are kept, so that a row that is archived meanwhile is delivered
//! once.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use segno_ledger::archive::{ArchivedFile, Kind};
use segno_ledger::tables::Cell;
use serde_json::value::RawValue;

use super::listing::{Fields, Parts, text_of};
use crate::app::Tenant;
use crate::problem::Refusal;

/// Rows that are delivered at once.
const ROWS_PER_PART: usize = 1_000;

/// The columns that every row is read with, before the others of its key and those that are shown.
const PLACE: [&str; 3] = ["id", "incarnation", "revision"];

/// The columns that begin the key of every kind.
const COMMON_KEY: [&str; 2] = ["id", "incarnation"];

/// What of the archive belongs to a scan.
pub struct Retired {
    /// The kind of rows.
    pub kind: &'static Kind,
    /// The columns that `show` gets.
    pub columns: &'static [&'static str],
    /// Texts that columns must have.
    pub wanted: Vec<(&'static str, String)>,
    /// Only rows of this time, in milliseconds: from the first, before the second.
    pub range: (Option<i64>, Option<i64>),
    /// The fields that tell rows apart.
    pub key: &'static [&'static str],
    /// The field by which live rows come newest first, and of one time by their field `id`; nothing
    /// for another order.
    pub newest_first: Option<&'static str>,
    /// The fields of a row, as the listing has them.
    pub show: Show,
}

/// Makes the fields of a row.
pub type Show = fn(&Tenant, Shown<'_>) -> Result<Fields, Refusal>;

/// A row that is to be shown.
pub struct Shown<'a> {
    /// Its id.
    pub id: &'a str,
    /// The cells of the columns that were asked for.
    pub cells: &'a [Cell],
}

impl Shown<'_> {
    /// The text of a cell; empty without one.
    pub fn text(&self, at: usize) -> &str {
        match self.cells.get(at) {
            Some(Cell::Text(text)) => text,
            _ => "",
        }
    }
}

/// The place of a row, newest first: its time, its id with what else is in its key, and its
/// revision, largest first.
type Place = (Reverse<i64>, String, Reverse<i64>);

struct Waiting {
    place: Place,
    id: String,
    cells: Vec<Cell>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The first is the greatest, for a heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

struct Reading {
    tenant: Tenant,
    retired: Retired,
    /// Keys of the live rows of a listing of another order.
    live: HashSet<String>,
    /// Files that have not been read, the one with the newest row last.
    unread: Vec<ArchivedFile>,
    read: HashSet<String>,
    heap: BinaryHeap<Waiting>,
    /// Time and id of the last row that was delivered.
    last: Option<(Reverse<i64>, String)>,
    /// What the archive was like when its files were listed.
    generation: Option<u64>,
}

/// The rows of a listing and archived ones. All of them have a field `archived`.
pub fn with_archive(tenant: &Tenant, live: Parts, retired: Retired) -> Parts {
    if !tenant.has_archive() {
        return live.map(|part| part.and_then(flagged)).boxed();
    }
    let reading = Reading {
        tenant: tenant.clone(),
        retired,
        live: HashSet::new(),
        unread: Vec::new(),
        read: HashSet::new(),
        heap: BinaryHeap::new(),
        last: None,
        generation: None,
    };
    let rows = stream::try_unfold((live, reading), |(mut live, mut reading)| async move {
        let rows = match live.next().await.transpose()? {
            Some(part) => reading.merged(flagged(part)?).await?,
            None => {
                let rows = reading.next_rows().await?;
                if rows.is_empty() {
                    return Ok(None);
                }
                live = stream::empty().boxed();
                rows
            }
        };
        Ok::<_, Refusal>(Some((rows, (live, reading))))
    });
    rows.boxed()
}

fn flagged(mut part: Vec<Fields>) -> Result<Vec<Fields>, Refusal> {
    for row in &mut part {
        flag(row, false)?;
    }
    Ok(part)
}

/// What tells a row apart, as text.
fn key(row: &Fields, columns: &[&str]) -> String {
    let texts = columns.iter().map(|name| row.get(*name).map_or("", |raw| raw.get()));
    texts.collect::<Vec<_>>().join("\n")
}

/// A cell of a key as text that sorts as it does, behind the id. Ids have no control characters.
fn part_of_key(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => format!("\0{text}"),
        Cell::Integer(number) => format!("\0{number:020}"),
        _ => "\0".to_owned(),
    }
}

/// A field that is a time, in milliseconds.
fn time_of(row: &Fields, column: &str) -> Option<i64> {
    Some(text_of(row, column)?.parse::<Timestamp>().ok()?.as_millisecond())
}

fn flag(row: &mut Fields, is_archived: bool) -> Result<(), Refusal> {
    let value = RawValue::from_string(is_archived.to_string()).map_err(super::listing::unshown)?;
    row.insert("archived".to_owned(), value);
    Ok(())
}

impl Reading {
    /// A part of the live rows, with the archived rows among them.
    async fn merged(&mut self, part: Vec<Fields>) -> Result<Vec<Fields>, Refusal> {
        let Some(column) = self.retired.newest_first else {
            self.live.extend(part.iter().map(|row| key(row, self.retired.key)));
            return Ok(part);
        };
        self.look().await?;
        let mut rows = Vec::with_capacity(part.len());
        for row in part {
            // One that cannot be read has no time.
            if let Some(time) = time_of(&row, column) {
                let place = (Reverse(time), text_of(&row, "id").unwrap_or_default());
                while let Some((time, id, _)) = self.newest(time).await? {
                    if (time, &id) >= (place.0, &place.1) {
                        break;
                    }
                    rows.extend(self.take()?);
                }
                self.last = Some(place);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Lists the files again if rows came into the archive since the last look.
    async fn look(&mut self) -> Result<(), Refusal> {
        let generation = self.tenant.archive_generation().await?;
        if self.generation != Some(generation) {
            self.list().await?;
            self.generation = Some(generation);
        }
        Ok(())
    }

    /// The place of the next archived row, if it is not before a time. Files are read until no
    /// other one can have a row before it.
    async fn newest(&mut self, from: i64) -> Result<Option<Place>, Refusal> {
        loop {
            let next = self.heap.peek().map(|waiting| waiting.place.0.0);
            match (next, self.unread.last().map(|file| file.name.to_ms)) {
                (None, None) => return Ok(None),
                (None, Some(unread)) if unread < from => return Ok(None),
                // Rows of one time may be in several files.
                (Some(next), Some(unread)) if next <= unread => self.read_newest().await?,
                (None, Some(_)) => self.read_newest().await?,
                (Some(_), _) => return Ok(self.heap.peek().map(|waiting| waiting.place.clone())),
            }
        }
    }

    async fn list(&mut self) -> Result<(), Refusal> {
        let Retired { kind, wanted, range: (from, before), .. } = &self.retired;
        let mut files = match wanted.iter().find(|(column, _)| *column == "id") {
            Some((_, id)) => self.tenant.archived_files_of(kind, id).await?,
            None => self.tenant.archived_files(kind).await?,
        };
        files.retain(|file| {
            !self.read.contains(&file.name.digest)
                && from.is_none_or(|from| file.name.to_ms >= from)
                && before.is_none_or(|before| file.name.from_ms < before)
        });
        files.sort_by_key(|file| file.name.to_ms);
        self.unread = files;
        Ok(())
    }

    async fn read_newest(&mut self) -> Result<(), Refusal> {
        let Some(file) = self.unread.pop() else { return Ok(()) };
        let key = self.retired.kind.key.iter().filter(|column| !COMMON_KEY.contains(column));
        let key: Vec<&str> = key.copied().collect();
        let columns: Vec<&str> = PLACE
            .into_iter()
            .chain(key.iter().copied())
            .chain(self.retired.columns.iter().copied())
            .collect();
        let wanted: Vec<(&str, &str)> =
            self.retired.wanted.iter().map(|(column, text)| (*column, text.as_str())).collect();
        let Some(rows) = self.tenant.archived_rows(self.retired.kind, &file, &columns, &wanted).await? else {
            // It was merged with others: their rows are in a file that is listed now.
            return self.list().await;
        };
        self.read.insert(file.name.digest);
        let (from, before) = self.retired.range;
        for mut cells in rows {
            let mut rest = cells.split_off(PLACE.len());
            let shown = rest.split_off(key.len());
            let number = |at: usize| match cells.get(at) {
                Some(Cell::Integer(number)) => *number,
                _ => 0,
            };
            let (time, revision) = (number(1), number(2));
            let id = match cells.first() {
                Some(Cell::Text(id)) => id.as_ref().to_owned(),
                _ => String::new(),
            };
            let is_in_range =
                from.is_none_or(|from| time >= from) && before.is_none_or(|before| time < before);
            let place = (Reverse(time), rest.iter().fold(id.clone(), |text, cell| text + &part_of_key(cell)));
            if is_in_range && self.last.as_ref().is_none_or(|last| place > *last) {
                let place = (place.0, place.1, Reverse(revision));
                self.heap.push(Waiting { place, id, cells: shown });
            }
        }
        Ok(())
    }

    /// Some of the rows behind the live ones; none at the end.
    async fn next_rows(&mut self) -> Result<Vec<Fields>, Refusal> {
        self.look().await?;
        let mut rows = Vec::new();
        while rows.len() < ROWS_PER_PART && self.newest(i64::MIN).await?.is_some() {
            rows.extend(self.take()?);
        }
        Ok(rows)
    }

    /// Takes the next row, unless another revision of it or the live one was delivered.
    fn take(&mut self) -> Result<Option<Fields>, Refusal> {
        let Some(Waiting { place: (time, text, _), id, cells }) = self.heap.pop() else { return Ok(None) };
        let place = (time, text);
        if self.last.as_ref().is_some_and(|last| place <= *last) {
            return Ok(None);
        }
        let mut row = (self.retired.show)(&self.tenant, Shown { id: &id, cells: &cells })?;
        self.last = Some(place);
        let key = key(&row, self.retired.key);
        if self.live.contains(&key) {
            return Ok(None);
        }
        flag(&mut row, true)?;
        Ok(Some(row))
    }
}
