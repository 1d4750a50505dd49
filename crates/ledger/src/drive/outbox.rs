//! The outbox: events that wait to be appended, written in the commit of what they are about (the transactional outbox
//! pattern). The holder of a scope is the only one that moves them to the log.
//!
//! A record has one or several events without ids; they are appended together. Due times give the order: they ascend within
//! a process. A record that is appended twice, because its holder died before it was deleted, is harmless: events have
//! idempotency keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{DueRecords, Expect, ProviderError, Record, RecordWrite, Store};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::limits::{OUTBOX_BYTES_PER_PART, OUTBOX_RECORDS_PER_PART};
use super::place::{OUTBOX, outbox_id, scope_of};
use crate::event::EventData;

/// Records are due by so much earlier than they were written: a clock that is ahead of the store's does not delay them.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// How far due times may be ahead of the clock before they follow it back.
const AHEAD: Duration = Duration::from_secs(60);

/// How long a record that cannot be read is kept for people to look at.
const KEEP_UNREADABLE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// An event that waits to be appended: everything but its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingEvent {
    /// What it says.
    pub data: EventData,
    /// Its idempotency key, if it is not the one that follows from what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
}

impl<T: Into<EventData>> From<T> for WaitingEvent {
    fn from(data: T) -> Self {
        WaitingEvent { data: data.into(), key: None }
    }
}

/// The stored form of a record.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    events: Vec<WaitingEvent>,
}

/// A record of the outbox.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Its id.
    pub(super) id: String,
    /// Its stored form.
    pub(super) body: bytes::Bytes,
    /// When it was written, in Unix milliseconds.
    pub(super) written_at_ms: u64,
    /// Its events; the reason if it cannot be read.
    pub(super) events: Result<Vec<WaitingEvent>, String>,
}

/// The record of events, under a key that is unique within the scope. A record with the same key is replaced: it was about
/// the same facts.
pub(super) fn put(scope: &Scope, key: &str, events: Vec<WaitingEvent>, now_ms: u64) -> RecordWrite {
    let body = serde_json::to_vec(&Body { events }).expect("events are JSON with text keys");
    RecordWrite::Put {
        kind: OUTBOX.to_owned(),
        id: outbox_id(scope, key),
        expect: Expect::Anything,
        due_at_ms: Some(due_ms(&LAST_MS, now_ms)),
        time_to_live: None,
        body: body.into(),
    }
}

/// Waits for records of a scope and reads the first ones, by number and bytes as many as one append takes.
pub(super) async fn read(
    store: &dyn Store,
    scope: &Scope,
    wait: Duration,
) -> Result<Vec<Waiting>, ProviderError> {
    let folder = scope.id_prefix();
    let request = DueRecords {
        kind: OUTBOX,
        id_prefix: &folder,
        now_ms: None,
        limit: OUTBOX_RECORDS_PER_PART,
        poll_timeout: wait,
    };
    let mut bytes = 0;
    let records = store.due_records(request).await?.into_iter().enumerate();
    let fitting = records.take_while(|(index, record)| {
        bytes += record.body.len();
        *index == 0 || bytes <= OUTBOX_BYTES_PER_PART
    });
    Ok(fitting.map(|(_, record)| waiting(record)).collect())
}

/// Whether a record waits.
pub(super) async fn has_waiting(store: &dyn Store, scope: &Scope) -> Result<bool, ProviderError> {
    let folder = scope.id_prefix();
    let request =
        DueRecords { kind: OUTBOX, id_prefix: &folder, now_ms: None, limit: 1, poll_timeout: Duration::ZERO };
    Ok(!store.due_records(request).await?.is_empty())
}

/// The scope of a record that was written before a time and still waits: of one scope, or of the oldest of all.
pub(super) async fn waiting_since(
    store: &dyn Store,
    scope: Option<&Scope>,
    before_ms: u64,
) -> Result<Option<Scope>, ProviderError> {
    let folder = scope.map(Scope::id_prefix).unwrap_or_default();
    let due_ms = before_ms.saturating_sub(duration_ms(CLOCK_SKEW));
    let request = DueRecords {
        kind: OUTBOX,
        id_prefix: &folder,
        now_ms: Some(due_ms),
        limit: 1,
        poll_timeout: Duration::ZERO,
    };
    let found = store.due_records(request).await?;
    Ok(found.first().and_then(|record| scope_of(&record.id)))
}

/// Removes a record whose events are in the log.
pub(super) fn delete(id: String) -> RecordWrite {
    RecordWrite::Delete { kind: OUTBOX.to_owned(), id, expect: Expect::Anything }
}

/// Puts a record that cannot be read aside: it is listed, and no longer due.
pub(super) fn put_aside(waiting: Waiting) -> RecordWrite {
    RecordWrite::Put {
        kind: OUTBOX.to_owned(),
        id: waiting.id,
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: Some(KEEP_UNREADABLE),
        body: waiting.body,
    }
}

/// When a record was written, in Unix milliseconds; nothing for one that was put aside.
pub(super) fn written_at_ms(record: &Record) -> Option<u64> {
    Some(record.due_at_ms?.saturating_add(duration_ms(CLOCK_SKEW)))
}

fn waiting(record: Record) -> Waiting {
    let body = serde_json::from_slice::<Body>(&record.body);
    let written_at_ms = written_at_ms(&record).unwrap_or_default();
    Waiting {
        id: record.id,
        written_at_ms,
        events: body.map(|body| body.events).map_err(|error| error.to_string()),
        body: record.body,
    }
}

/// The due time of the last record of this process.
static LAST_MS: AtomicU64 = AtomicU64::new(0);

/// A due time after all before in this process, so that records are appended in the order in which they were written, also
/// within one millisecond. A clock that jumped back far is followed.
fn due_ms(last: &AtomicU64, now_ms: u64) -> u64 {
    let now_ms = now_ms.saturating_sub(duration_ms(CLOCK_SKEW)).max(1);
    let next = |last_ms: u64| match last_ms.saturating_sub(now_ms) {
        ahead_ms if ahead_ms > duration_ms(AHEAD) => now_ms,
        _ => now_ms.max(last_ms.saturating_add(1)),
    };
    next(last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunCancelRequested;

    fn cancel() -> WaitingEvent {
        RunCancelRequested { run_id: "run1".into(), reason: None, requested_by: "ada".into(), generation: 0 }
            .into()
    }

    #[test]
    fn a_record_is_stored_in_a_form_that_does_not_change() {
        let scope = Scope::new("eu", "acme").unwrap();
        let events = vec![cancel(), WaitingEvent { key: Some("k".into()), ..cancel() }];
        let RecordWrite::Put { id, body, time_to_live, .. } = put(&scope, "request-1", events.clone(), 5)
        else {
            unreachable!("a put")
        };
        let stored = r#"{"events":[{"data":{"type":"run_cancel_requested","run_id":"run1","requested_by":"ada"}},{"data":{"type":"run_cancel_requested","run_id":"run1","requested_by":"ada"},"key":"k"}]}"#;
        assert_eq!((id.as_str(), &*body, time_to_live), ("eu/acme/request-1", stored.as_bytes(), None));
        let body: Body = serde_json::from_str(stored).unwrap();
        assert_eq!(body.events, events);
    }

    #[test]
    fn due_times_ascend_within_a_millisecond_and_follow_a_clock_that_jumped_back() {
        let (skew, last) = (duration_ms(CLOCK_SKEW), AtomicU64::new(0));
        let first = skew + 1_000;
        let taken: Vec<u64> =
            [first, first, first + 5, first + 3].iter().map(|now| due_ms(&last, *now)).collect();
        assert_eq!(taken, [1_000, 1_001, 1_005, 1_006]);
        last.store(1_000_000, Ordering::Relaxed);
        assert_eq!(due_ms(&last, first), 1_000);
    }
}
