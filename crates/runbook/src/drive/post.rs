//! Posting messages into the inbox of a batch, so that its holder sees them or a node takes the
//! batch.
//!
//! A free batch is made due in the commit of the message. If the batch is held, its holder waits
//! for messages; the writer looks at the lease again after its commit and wakes the batch if it was
//! released meanwhile, and the holder looks at its inbox again after the release. Should both die
//! in between, the message's receipt is due until the message was consumed.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Store};

use super::inbox;
use super::lease::{self, Look};
use super::place::{BatchPlace, RECEIPTS};
use super::receipt::{Receipt, receipt_id};
use crate::message::{EventMessage, Message, Request};

/// Attempts to post beside a lease record that others change.
const ATTEMPTS: usize = 32;

/// What became of a posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Posting {
    /// The messages wait.
    Posted(Vec<Receipt>),
    /// A request with the same key was posted before.
    Before(Receipt),
    /// There is no such batch.
    NoBatch,
}

/// Posts requests in order, all or none.
///
/// # Errors
/// Those of the store.
pub(super) async fn post(
    store: &dyn Store,
    place: &BatchPlace,
    requests: &[Request],
) -> Result<Posting, ProviderError> {
    let keys: Vec<&str> = requests.iter().map(|request| request.key.as_str()).collect();
    post_writes(store, place, &keys, |now_ms| writes(place, requests, now_ms)).await
}

/// Posts an event of the bus under the key of its message.
///
/// # Errors
/// Those of the store.
pub(super) async fn post_event(
    store: &dyn Store,
    place: &BatchPlace,
    key: &str,
    event: &EventMessage,
) -> Result<Posting, ProviderError> {
    let message = Message::Event(event.clone());
    let writes = |now_ms: u64| {
        let posted_at_ms = later_than_last(&LAST_MS, now_ms, 1);
        let receipt = Receipt::of_event(event, key, timestamp(posted_at_ms));
        let waiting = inbox::put_request(place, key, &message, posted_at_ms);
        (vec![waiting, receipt.write(place, Expect::Absent, now_ms)], vec![receipt])
    };
    post_writes(store, place, &[key], writes).await
}

/// Commits messages with their receipts, and has the batch looked after.
async fn post_writes(
    store: &dyn Store,
    place: &BatchPlace,
    keys: &[&str],
    writes: impl Fn(u64) -> (Vec<RecordWrite>, Vec<Receipt>),
) -> Result<Posting, ProviderError> {
    for _ in 0..ATTEMPTS {
        let now_ms = store.now_ms().await?;
        let (mut writes, receipts) = writes(now_ms);
        let is_attended = match lease::look(store, place, now_ms).await? {
            Look::Absent => return Ok(Posting::NoBatch),
            Look::Attended => true,
            Look::Wake(write) => {
                writes.push(write);
                false
            }
        };
        match store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => {
                if is_attended {
                    lease::wake(store, place, now_ms).await?;
                }
                return Ok(Posting::Posted(receipts));
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                if let Some(receipt) = find_receipt(store, place, keys).await? {
                    return Ok(Posting::Before(receipt));
                }
                // Otherwise others changed the lease, or the batch was deleted.
                if is_attended {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let message = format!("batch {} is changed by many writers; try again", place.batch);
    Err(ProviderError::unavailable("post", message).nothing_changed())
}

/// The records of requests that wait: messages and receipts.
pub(super) fn writes(
    place: &BatchPlace,
    requests: &[Request],
    now_ms: u64,
) -> (Vec<RecordWrite>, Vec<Receipt>) {
    let (mut writes, mut receipts) = (Vec::new(), Vec::new());
    let first_ms = later_than_last(&LAST_MS, now_ms, requests.len() as u64);
    for (posted_at_ms, request) in (first_ms..).zip(requests) {
        let message = Message::Request(request.clone());
        let posted_at = timestamp(posted_at_ms);
        writes.push(inbox::put_request(place, &request.key, &message, posted_at_ms));
        if let Some(receipt) = Receipt::waiting(&message, posted_at) {
            writes.push(receipt.write(place, Expect::Absent, now_ms));
            receipts.push(receipt);
        }
    }
    (writes, receipts)
}

/// The first receipt that one of the requests has.
async fn find_receipt(
    store: &dyn Store,
    place: &BatchPlace,
    keys: &[&str],
) -> Result<Option<Receipt>, ProviderError> {
    for key in keys {
        if let Some(receipt) = read_receipt(store, place, key).await? {
            return Ok(Some(receipt));
        }
    }
    Ok(None)
}

/// The receipt of a request with a key.
pub(super) async fn read_receipt(
    store: &dyn Store,
    place: &BatchPlace,
    key: &str,
) -> Result<Option<Receipt>, ProviderError> {
    let id = receipt_id(place, key);
    let Some(record) = store.get_record(RECEIPTS, &id).await? else { return Ok(None) };
    let unreadable = |error: serde_json::Error| {
        ProviderError::new(ErrorKind::Corrupt, "read_receipt", format!("record {id} of {RECEIPTS}: {error}"))
    };
    Receipt::read(&record).map(Some).map_err(unreadable)
}

/// The time of the last posting of this process.
static LAST_MS: AtomicU64 = AtomicU64::new(0);

/// How far postings may be ahead of the clock before they follow it back.
const AHEAD_MS: u64 = 60_000;

/// The first of `count` times for one posting, each a millisecond after the other and later than all
/// before in this process: requests are applied in the order in which they were posted, also within
/// one millisecond. A clock that jumped back far is followed, but never within one posting.
fn later_than_last(last: &AtomicU64, now_ms: u64, count: u64) -> u64 {
    let first = |last_ms: u64| match last_ms.saturating_sub(now_ms) {
        ahead_ms if ahead_ms > AHEAD_MS => now_ms,
        _ => now_ms.max(last_ms.saturating_add(1)),
    };
    let next = |last_ms: u64| Some(first(last_ms).saturating_add(count.saturating_sub(1)));
    first(last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default())
}

/// A time in Unix milliseconds, at most the last that calendars have.
pub fn timestamp(at_ms: u64) -> Timestamp {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_posting_ascend_wherever_the_clock_has_jumped_to() {
        for (last_ms, first_ms) in [
            (0, 100_000),
            (99_999, 100_000),
            (100_000, 100_001),
            (159_999, 160_000),
            (160_000, 160_001),
            (160_001, 100_000),
            (9_000_000, 100_000),
        ] {
            let last = AtomicU64::new(last_ms);
            assert_eq!(later_than_last(&last, 100_000, 3), first_ms, "{last_ms}");
            assert_eq!(last.load(Ordering::Relaxed), first_ms + 2, "{last_ms}: all three are taken");
        }
        let last = AtomicU64::new(0);
        assert_eq!((later_than_last(&last, 5, 1), later_than_last(&last, 5, 1)), (5, 6));
    }
}
