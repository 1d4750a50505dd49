//! Folded batches joined into Parquet files: one for each day of the ids, with the JSON of every
//! event to the letter.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use segno_actions::functions::Scope;

use super::batch::{Event, EventRecord};
use crate::columnar::{ColumnarFile, Damaged, Encoder, Layout};
use crate::ids::Ulid;
use crate::tables::{Cell, Column, Kind};

/// The name of the table of joined events.
pub const EVENTS: &str = "events";

/// The columns of the table of joined events.
pub fn events_layout() -> Layout {
    let column = |name, kind, nullable| Column { name, kind, nullable };
    let columns = vec![
        column("tenant_id", Kind::Text, false),
        column("workspace_id", Kind::Text, false),
        column("event_id", Kind::Text, false),
        column("event_type", Kind::Text, false),
        column("run_id", Kind::Text, true),
        column("recorded_at", Kind::Integer, false),
        column("envelope", Kind::Text, false),
    ];
    Layout::new(EVENTS, columns, &["tenant_id", "workspace_id", "event_id"])
}

const RUN_ID: usize = 4;
const ENVELOPE: usize = 6;

/// The day of a time in Unix milliseconds, `YYYY-MM-DD` in UTC.
pub fn day_of(time_ms: i64) -> String {
    let time = Timestamp::from_millisecond(time_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}

/// A file of joined events of one day.
pub(crate) struct Segment {
    pub(crate) day: String,
    pub(crate) bytes: Bytes,
    pub(crate) rows: u64,
    pub(crate) first: Ulid,
    pub(crate) last: Ulid,
}

/// Events of a scope as files, one for each day, sorted by id; an event that is there twice is kept
/// once.
pub(crate) fn encode_days<'a>(
    scope: &Scope,
    events: impl Iterator<Item = &'a EventRecord>,
) -> Result<Vec<Segment>, Damaged> {
    let tenant: Arc<str> = scope.tenant.as_str().into();
    let workspace: Arc<str> = scope.namespace.as_str().into();
    let mut days: BTreeMap<String, BTreeMap<Ulid, &EventRecord>> = BTreeMap::new();
    for event in events {
        days.entry(day_of(event.event_id.time_ms())).or_default().insert(event.event_id, event);
    }
    let segment = |(day, events): (String, BTreeMap<Ulid, &EventRecord>)| {
        let mut encoder = Encoder::new(events_layout())?;
        for event in events.values() {
            let mut cells = vec![Cell::Text(Arc::clone(&tenant)), Cell::Text(Arc::clone(&workspace))];
            cells.extend(cells_of(event));
            encoder.push(cells)?;
        }
        let id = |entry: Option<(&Ulid, _)>| entry.map_or(Ulid::MIN, |(id, _)| *id);
        let (first, last) = (id(events.first_key_value()), id(events.last_key_value()));
        Ok(Segment { day, rows: encoder.rows(), first, last, bytes: encoder.finish()? })
    };
    days.into_iter().map(segment).collect()
}

fn cells_of(event: &EventRecord) -> [Cell; 5] {
    [
        Cell::Text(event.event_id.to_string().into()),
        Cell::Text(Arc::clone(&event.event_type)),
        event.run_id.as_ref().map_or(Cell::Null, |run| Cell::Text(Arc::clone(run))),
        Cell::Integer(event.event_id.time_ms()),
        Cell::Text(Arc::clone(&event.json)),
    ]
}

/// The events of a segment, or those of one run, in the order of their ids.
pub(crate) fn decode_events(bytes: &Bytes, run_id: Option<&str>) -> Result<Vec<Event>, Damaged> {
    let opened = ColumnarFile::open(&events_layout(), bytes.len() as u64, bytes)?;
    let file = opened.map_err(|_| Damaged("its footer is longer than the file".to_owned()))?;
    let mut events = Vec::new();
    for group in 0..file.groups() {
        if run_id.is_some_and(|run| !file.may_have(group, &[(RUN_ID, run)])) {
            continue;
        }
        let range = file.range(group);
        let part = bytes.slice(range.start as usize..(range.end as usize).min(bytes.len()));
        let mut columns = file.cells(group, &part, &[RUN_ID])?;
        let runs = columns.pop().unwrap_or_default();
        let is_wanted = |cell: &Cell| match (run_id, cell) {
            (None, _) => true,
            (Some(wanted), Cell::Text(run)) => **run == *wanted,
            _ => false,
        };
        if !runs.iter().any(is_wanted) {
            continue;
        }
        let envelopes = file.cells(group, &part, &[ENVELOPE])?.pop().unwrap_or_default();
        for (run, envelope) in runs.iter().zip(envelopes) {
            if let (true, Cell::Text(json)) = (is_wanted(run), envelope) {
                events.push(Event::read(json).map_err(Damaged)?);
            }
        }
    }
    Ok(events)
}
