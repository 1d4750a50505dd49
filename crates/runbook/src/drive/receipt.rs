//! The receipt of a request: what became of it. Senders read it; a request with a key that has a
//! receipt is not posted again.
//!
//! While the request waits, its receipt is due every [`REMIND_AFTER`] and has a node look after the
//! batch. So a writer that dies right after its commit leaves nothing without a wake-up.

use std::time::Duration;

use jiff::Timestamp;
use segno::clock::duration_ms;
use segno::store::{Expect, Record, RecordWrite};
use serde::{Deserialize, Serialize};

use super::inbox::{digest, plain};
use super::place::{BatchPlace, RECEIPTS};
use crate::message::{EventMessage, Message, Request};
use crate::step::{IgnoredReason, Verdict};

/// A request that was not applied after this time has its batch woken.
pub(super) const REMIND_AFTER: Duration = Duration::from_secs(60);

/// How long the receipt of an answered request is kept.
pub(super) const KEEP_ANSWERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// It waits in the inbox.
    Waiting,
    /// It was applied.
    Applied,
    /// It cannot be fulfilled; `reason` tells why.
    Refused,
    /// It changed nothing: what it is about had ended, or was done before.
    Ignored,
}

/// The receipt of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Key of the request.
    pub key: String,
    /// Name of what was requested.
    pub action: String,
    /// Who requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Digest of the request, by which another one under the same key is found out.
    pub digest: String,
    /// What became of it.
    pub state: ReceiptState,
    /// Why it was refused or changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it was refused because the batch has no row that it names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_not_found: bool,
    /// When it was posted.
    pub posted_at: Timestamp,
    /// When it was applied or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}

/// Id of the receipt of a request with a key.
pub(super) fn receipt_id(place: &BatchPlace, key: &str) -> String {
    format!("{}{}", place.folder(), plain(key))
}

impl Receipt {
    /// The receipt of a message that waits; none for results and reports of calls.
    pub(super) fn waiting(message: &Message, posted_at: Timestamp) -> Option<Self> {
        let Message::Request(Request { key, by, action }) = message else { return None };
        let body = serde_json::to_vec(action).expect("requests are JSON with text keys");
        Some(Receipt {
            key: key.clone(),
            action: action.name().to_owned(),
            by: by.clone(),
            digest: digest(&body),
            state: ReceiptState::Waiting,
            reason: None,
            is_not_found: false,
            posted_at,
            answered_at: None,
        })
    }

    /// The receipt of an event of the bus that waits, under the key of its message.
    pub(super) fn of_event(event: &EventMessage, key: &str, posted_at: Timestamp) -> Self {
        let body = serde_json::to_vec(event).expect("events are JSON with text keys");
        Receipt {
            key: key.to_owned(),
            action: event.message_type().to_owned(),
            by: Some("bus".to_owned()),
            digest: digest(&body),
            state: ReceiptState::Waiting,
            reason: None,
            posted_at,
            is_not_found: false,
            answered_at: None,
        }
    }

    /// The same with the verdict about the request.
    pub(super) fn answered(mut self, verdict: &Verdict, now: Timestamp) -> Self {
        self.is_not_found = matches!(verdict, Verdict::NotFound(_));
        (self.state, self.reason) = match verdict {
            Verdict::Applied | Verdict::Again => (ReceiptState::Applied, None),
            Verdict::Refused(reason) | Verdict::NotFound(reason) => {
                (ReceiptState::Refused, Some(reason.clone()))
            }
            Verdict::Ignored(reason) => (ReceiptState::Ignored, Some(sentence(*reason).to_owned())),
        };
        self.answered_at = Some(now);
        self
    }

    /// Writes the receipt. One that waits is due after a while; one that is answered expires.
    pub(super) fn write(&self, place: &BatchPlace, expect: Expect, now_ms: u64) -> RecordWrite {
        let is_waiting = self.state == ReceiptState::Waiting;
        RecordWrite::Put {
            kind: RECEIPTS.to_owned(),
            id: receipt_id(place, &self.key),
            expect,
            due_at_ms: is_waiting.then(|| now_ms.saturating_add(duration_ms(REMIND_AFTER))),
            time_to_live: (!is_waiting).then_some(KEEP_ANSWERED),
            body: serde_json::to_vec(self).expect("a receipt has plain fields").into(),
        }
    }

    /// Reads a record.
    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }
}

fn sentence(reason: IgnoredReason) -> &'static str {
    match reason {
        IgnoredReason::Unknown => "there is no such row",
        IgnoredReason::Ended => "it has ended",
        IgnoredReason::Stale => "it is about an earlier attempt or version",
        IgnoredReason::Duplicate => "it was applied before",
        IgnoredReason::Early => "its time has not come",
    }
}
