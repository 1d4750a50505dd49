//! The inbox of a batch: one record for each message, so that writers never contend.
//!
//! Ids are `{batch}/{source}-{key}`. The key follows from the message, so a message that is sent
//! twice waits once. Due times give the order: requests come first, in the order in which they were
//! posted, then results in the order in which calls ended.

use std::time::Duration;

use bytes::Bytes;
use segno::clock::duration_ms;
use segno::store::{DueRecords, Expect, ProviderError, Record, RecordWrite, Store};
use sha2::{Digest, Sha256};

use super::place::{BatchPlace, INBOX};
use crate::message::{CallResult, Message};

/// Most messages that are applied in one commit.
pub const MESSAGES_PER_PART: usize = 1_000;

/// Most bytes of messages that are applied in one commit, unless the first alone has more.
pub const BYTES_PER_PART: usize = 4 * 1024 * 1024;

/// Longest key that is part of an id as it is; longer ones are hashed.
const MAX_PLAIN_KEY_BYTES: usize = 200;

/// Requests are due by so much earlier than they were posted, so that they precede all results.
const REQUESTS_FIRST_MS: u64 = 1_500_000_000_000;

/// Results are due by so much earlier than their calls ended: a node whose clock is ahead of the
/// store's does not delay its results.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// A message that cannot be read is read again after this time: there may be a build by then that can.
const UNREAD_AGAIN: Duration = Duration::from_secs(10 * 60);

/// Results of calls that no batch waits for are deleted after this time.
const RESULT_LIFE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A message and its record.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Id of the record.
    pub(super) id: String,
    /// Length of the stored message.
    pub(super) bytes: usize,
    /// When a request was posted, in Unix milliseconds.
    pub(super) posted_at_ms: u64,
    /// The message.
    pub(super) message: Result<Message, Unread>,
}

/// A message that cannot be read: a newer build wrote it, or it is damaged.
#[derive(Debug)]
pub(super) struct Unread {
    /// Why.
    pub(super) problem: String,
    body: Bytes,
}

/// The record of a request or an event.
pub(super) fn put_request(
    place: &BatchPlace,
    key: &str,
    message: &Message,
    posted_at_ms: u64,
) -> RecordWrite {
    RecordWrite::Put {
        kind: INBOX.to_owned(),
        id: request_id(place, key),
        expect: Expect::Absent,
        due_at_ms: Some(posted_at_ms.saturating_sub(REQUESTS_FIRST_MS).max(1)),
        time_to_live: None,
        body: encode(message).into(),
    }
}

/// The record of a result.
pub(super) fn put_result(place: &BatchPlace, result: CallResult, ended_at_ms: u64) -> RecordWrite {
    let id = format!("{}result-{}", place.folder(), plain(&result.job_id));
    RecordWrite::Put {
        kind: INBOX.to_owned(),
        id,
        expect: Expect::Anything,
        due_at_ms: Some(ended_at_ms.saturating_sub(duration_ms(CLOCK_SKEW)).max(1)),
        time_to_live: Some(RESULT_LIFE),
        body: encode(&Message::Result(result)).into(),
    }
}

/// The record of a result that came over the bus, by the key of its message. It waits beside other
/// results of the same job: the first one counts.
pub(super) fn put_bus_result(
    place: &BatchPlace,
    key: &str,
    result: CallResult,
    ended_at_ms: u64,
) -> RecordWrite {
    RecordWrite::Put {
        kind: INBOX.to_owned(),
        id: format!("{}{}", place.folder(), plain(key)),
        expect: Expect::Anything,
        due_at_ms: Some(ended_at_ms.saturating_sub(duration_ms(CLOCK_SKEW)).max(1)),
        time_to_live: Some(RESULT_LIFE),
        body: encode(&Message::Result(result)).into(),
    }
}

/// The key of a message of the bus: its id, and a digest of its body, because senders may use an id
/// again. It can be part of ids as it is.
pub(super) fn bus_key(message_id: &str, body: &str) -> String {
    let digest = digest(body.as_bytes());
    let id = match plain(message_id) {
        id if id == message_id && id.len() <= MAX_PLAIN_KEY_BYTES / 2 => id,
        _ => hex(&Sha256::digest(message_id.as_bytes())),
    };
    format!("bus-{id}-{}", &digest[..16])
}

/// The key of a request or an event of the bus, if it stands in the id as it is.
pub(super) fn key_of<'a>(place: &BatchPlace, id: &'a str) -> Option<&'a str> {
    id.strip_prefix(&place.folder())?.strip_prefix("request-")
}

/// Id of the record of a request with a key.
pub(super) fn request_id(place: &BatchPlace, key: &str) -> String {
    format!("{}request-{}", place.folder(), plain(key))
}

/// Waits for messages of a batch and reads the first ones.
pub(super) async fn read(
    store: &dyn Store,
    place: &BatchPlace,
    wait: Duration,
) -> Result<Vec<Waiting>, ProviderError> {
    let folder = place.folder();
    let request = DueRecords {
        kind: INBOX,
        id_prefix: &folder,
        now_ms: None,
        limit: MESSAGES_PER_PART,
        poll_timeout: wait,
    };
    let mut bytes = 0;
    let records = store.due_records(request).await?.into_iter().enumerate();
    let fitting = records.take_while(|(index, record)| {
        bytes += record.body.len();
        *index == 0 || bytes <= BYTES_PER_PART
    });
    Ok(fitting.map(|(_, record)| waiting(record)).collect())
}

/// Whether a message waits.
pub(super) async fn has_messages(store: &dyn Store, place: &BatchPlace) -> Result<bool, ProviderError> {
    Ok(first(store, place, None).await?.is_some())
}

/// When the first message that waits was posted, in Unix milliseconds. It is a look at what is due at `now_ms`, which a
/// store answers even if it takes no writes; what [`read`] fetches is to be committed, so a store refuses it then.
pub(super) async fn oldest_ms(
    store: &dyn Store,
    place: &BatchPlace,
    now_ms: u64,
) -> Result<Option<u64>, ProviderError> {
    Ok(first(store, place, Some(now_ms)).await?.map(|record| waits_since_ms(&record)))
}

/// When a message was posted, or its call ended: its due time is earlier by what gives messages their order.
fn waits_since_ms(record: &Record) -> u64 {
    let due_ms = record.due_at_ms.unwrap_or_default();
    let is_request = due_ms < REQUESTS_FIRST_MS;
    due_ms.saturating_add(if is_request { REQUESTS_FIRST_MS } else { duration_ms(CLOCK_SKEW) })
}

async fn first(
    store: &dyn Store,
    place: &BatchPlace,
    now_ms: Option<u64>,
) -> Result<Option<Record>, ProviderError> {
    let folder = place.folder();
    let request =
        DueRecords { kind: INBOX, id_prefix: &folder, now_ms, limit: 1, poll_timeout: Duration::ZERO };
    Ok(store.due_records(request).await?.into_iter().next())
}

/// Puts off a message that cannot be read, so that it neither blocks the inbox nor is lost.
pub(super) fn put_off(id: String, unread: Unread, now_ms: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: INBOX.to_owned(),
        id,
        expect: Expect::Anything,
        due_at_ms: Some(now_ms.saturating_add(duration_ms(UNREAD_AGAIN))),
        time_to_live: None,
        body: unread.body,
    }
}

/// Removes a message.
pub(super) fn delete(id: String) -> RecordWrite {
    RecordWrite::Delete { kind: INBOX.to_owned(), id, expect: Expect::Anything }
}

fn encode(message: &Message) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages are JSON with text keys")
}

fn waiting(record: Record) -> Waiting {
    let message = serde_json::from_slice(&record.body)
        .map_err(|error| Unread { problem: error.to_string(), body: record.body.clone() });
    let posted_at_ms = waits_since_ms(&record);
    Waiting { id: record.id, bytes: record.body.len(), posted_at_ms, message }
}

/// A key that can be part of an id: without a slash, and not longer than allowed.
pub(super) fn plain(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if !key.is_empty() && key.len() <= MAX_PLAIN_KEY_BYTES && key.bytes().all(is_plain) {
        return key.to_owned();
    }
    format!("sha256:{}", hex(&Sha256::digest(key.as_bytes())))
}

/// A digest of a text of JSON, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_text_give_ids_without_slashes_that_differ() {
        assert_eq!(plain("step-1042-poll-3"), "step-1042-poll-3");
        let long = "k".repeat(MAX_PLAIN_KEY_BYTES + 1);
        let keys = ["", "a/b", "a:b", "ä", long.as_str()];
        let ids: std::collections::BTreeSet<String> = keys.iter().map(|key| plain(key)).collect();
        assert_eq!(ids.len(), keys.len());
        assert!(ids.iter().all(|id| id.starts_with("sha256:") && !id.contains('/')), "{ids:?}");
    }

    #[test]
    fn keys_of_messages_of_the_bus_stand_in_ids_as_they_are() {
        let long = "k".repeat(256);
        let mut keys = std::collections::BTreeSet::new();
        for (id, body) in [("m-1", "{}"), ("m-1", "{ }"), ("m-2", "{}"), ("a/b", "{}"), (&long, "{}")] {
            let key = bus_key(id, body);
            assert_eq!(plain(&key), key, "{id}");
            keys.insert(key);
        }
        assert_eq!(keys.len(), 5);
        let place = BatchPlace::new(
            segno_actions::functions::Scope::new("eu", "acme").unwrap(),
            crate::rows::BatchId(42),
        );
        assert_eq!(key_of(&place, &request_id(&place, "bus-m-1")), Some("bus-m-1"));
    }
}
