//! Folded batches joined into Parquet files: one for each day of the ids, with the JSON of every event to the letter.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::batch::Event;
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

/// Events as files, one for each day, sorted by id; an event that is there twice is kept once.
pub(crate) fn encode_days<'a>(events: impl Iterator<Item = &'a Event>) -> Result<Vec<Segment>, Damaged> {
    let mut days: BTreeMap<String, BTreeMap<Ulid, &Event>> = BTreeMap::new();
    for event in events {
        let id = event.envelope.event_id;
        days.entry(day_of(id.time_ms())).or_default().insert(id, event);
    }
    let segment = |(day, events): (String, BTreeMap<Ulid, &Event>)| {
        let mut encoder = Encoder::new(events_layout())?;
        for event in events.values() {
            encoder.push(cells(event))?;
        }
        let (first, last) = (events.first_key_value(), events.last_key_value());
        let id = |entry: Option<(&Ulid, _)>| entry.map_or(Ulid::MIN, |(id, _)| *id);
        Ok(Segment { day, rows: encoder.rows(), first: id(first), last: id(last), bytes: encoder.finish()? })
    };
    days.into_iter().map(segment).collect()
}

fn cells(event: &Event) -> Vec<Cell> {
    let envelope = &event.envelope;
    vec![
        Cell::Text(Arc::clone(&envelope.tenant_id)),
        Cell::Text(Arc::clone(&envelope.workspace_id)),
        Cell::Text(envelope.event_id.to_string().into()),
        Cell::Text(Arc::clone(&envelope.event_type)),
        envelope.run_id().map_or(Cell::Null, |run| Cell::Text(Arc::clone(run))),
        Cell::Integer(envelope.event_id.time_ms()),
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
