//! Dead letters: work that the engine stopped retrying, parked with its reason until it is resubmitted.
//!
//! A letter is two records under one id, written in the commit that parks it: a small one for listings, and the body. Ids
//! ascend from new to old behind a prefix of the instance's choosing, so that a listing begins with the newest and a program
//! with tenants lists those of one.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::ids::IdSource;
use crate::limits::{DEAD_LETTER_RETENTION, MAX_DEAD_LETTER_REASON_BYTES};
use crate::store::{Expect, Record, RecordWrite, WorkerMessage};
use crate::work_item::ActivityExecute;

/// Kind of the records that list dead letters.
pub(crate) const DEAD_LETTER_KIND: &str = "segno.dead-letter";

/// Kind of the records that hold what dead letters carried.
pub(crate) const DEAD_LETTER_BODY_KIND: &str = "segno.dead-letter-body";

/// The kind of parked work, and so the effect of resubmitting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GivenUp {
    /// A message that its instance could not take. It can be sent again.
    Message,
    /// A turn that was delivered too often. Its instance has failed, and can be started again.
    Turn,
    /// An activity that could not be read or was delivered too often. Its orchestration got the failure; if that failed
    /// the instance, it can be started again.
    Activity,
}

impl GivenUp {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            GivenUp::Message => "message",
            GivenUp::Turn => "turn",
            GivenUp::Activity => "activity",
        }
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parked work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// The parked work.
    pub what: GivenUp,
    /// The instance that it was for.
    pub instance: String,
    /// The execution of the instance, if it is known.
    pub execution_id: Option<u64>,
    /// Name of the activity, if it can be read.
    pub name: Option<String>,
    /// Why.
    pub reason: String,
    /// How often it was delivered.
    pub deliveries: u32,
    /// When it was parked, in Unix milliseconds.
    pub parked_at_ms: u64,
    /// When it is forgotten, in Unix milliseconds; `None` before it is stored.
    pub expires_at_ms: Option<u64>,
}

/// What the ids of the dead letters of an instance begin with.
pub type LetterPrefix = fn(&str) -> &str;

/// No prefix: all letters are listed together.
pub(crate) fn no_prefix(_: &str) -> &str {
    ""
}

/// Makes dead letters.
#[derive(Clone, Copy)]
pub(crate) struct Letterbox<'a> {
    pub(crate) ids: &'a dyn IdSource,
    pub(crate) prefix: LetterPrefix,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    what: GivenUp,
    instance: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    execution_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    reason: String,
    deliveries: u32,
    at_ms: u64,
}

impl Letterbox<'_> {
    /// A message of an instance that could not be taken.
    pub(crate) fn message(&self, instance: &str, deliveries: u32, reason: String, now_ms: u64) -> DeadLetter {
        self.letter(GivenUp::Message, instance, deliveries, (reason, now_ms))
    }

    /// A turn of an execution that was delivered too often.
    pub(crate) fn turn(&self, instance: &str, deliveries: u32, reason: String, now_ms: u64) -> DeadLetter {
        self.letter(GivenUp::Turn, instance, deliveries, (reason, now_ms))
    }

    /// An activity that is not run any more. Its name is that of the item, if that could be read.
    pub(crate) fn activity(
        &self,
        message: &WorkerMessage,
        item: Option<&ActivityExecute>,
        deliveries: u32,
        (reason, now_ms): (String, u64),
    ) -> DeadLetter {
        let activity = &message.activity;
        DeadLetter {
            execution_id: Some(activity.execution_id),
            name: item.map(|item| item.name.clone()),
            ..self.letter(GivenUp::Activity, &activity.instance, deliveries, (reason, now_ms))
        }
    }

    fn letter(
        &self,
        what: GivenUp,
        instance: &str,
        deliveries: u32,
        (mut reason, now_ms): (String, u64),
    ) -> DeadLetter {
        reason.truncate(reason.floor_char_boundary(MAX_DEAD_LETTER_REASON_BYTES));
        let id =
            format!("{}{:016x}-{}", (self.prefix)(instance), u64::MAX - now_ms, self.ids.new_uuid().simple());
        DeadLetter {
            id,
            what,
            instance: instance.to_owned(),
            execution_id: None,
            name: None,
            reason,
            deliveries,
            parked_at_ms: now_ms,
            expires_at_ms: None,
        }
    }
}

impl DeadLetter {
    /// The same, of an execution.
    pub(crate) fn of_execution(self, execution_id: u64) -> Self {
        DeadLetter { execution_id: Some(execution_id), ..self }
    }

    /// The writes that store it, with what it carried if there is something.
    pub(crate) fn writes(&self, body: Option<Bytes>) -> Vec<RecordWrite> {
        let stored = Stored {
            what: self.what,
            instance: self.instance.clone(),
            execution_id: self.execution_id,
            name: self.name.clone(),
            reason: self.reason.clone(),
            deliveries: self.deliveries,
            at_ms: self.parked_at_ms,
        };
        let put = |kind: &str, body: Bytes| RecordWrite::Put {
            kind: kind.to_owned(),
            id: self.id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(DEAD_LETTER_RETENTION),
            body,
        };
        let mut writes = vec![put(DEAD_LETTER_KIND, codec::encode(&stored))];
        writes.extend(body.map(|body| put(DEAD_LETTER_BODY_KIND, body)));
        writes
    }

    pub(crate) fn from_record(record: &Record) -> Result<Self, String> {
        let stored: Stored = codec::decode(&record.body)?;
        Ok(DeadLetter {
            id: record.id.clone(),
            what: stored.what,
            instance: stored.instance,
            execution_id: stored.execution_id,
            name: stored.name,
            reason: stored.reason,
            deliveries: stored.deliveries,
            parked_at_ms: stored.at_ms,
            expires_at_ms: record.expires_at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SystemIds;

    #[test]
    fn letters_are_listed_newest_first_behind_their_prefix() {
        let first_word: LetterPrefix = |id| id.split_inclusive('/').next().unwrap_or_default();
        let letters = Letterbox { ids: &SystemIds, prefix: first_word };
        let ids = [2_000, 1_000].map(|now_ms| letters.message("a/i", 1, "x".to_owned(), now_ms).id);
        assert!(ids.is_sorted() && ids[0].starts_with("a/"), "{ids:?}");
        let plain = Letterbox { ids: &SystemIds, prefix: no_prefix }.turn("a/i", 1, "x".to_owned(), 1);
        assert!(!plain.id.contains('/'), "{}", plain.id);
    }

    #[test]
    fn a_letter_is_read_as_it_was_written_and_its_reason_is_bounded() {
        let letters = Letterbox { ids: &SystemIds, prefix: no_prefix };
        let letter = letters.turn("i", 11, "ü".repeat(MAX_DEAD_LETTER_REASON_BYTES), 7).of_execution(3);
        assert_eq!(letter.reason.len(), MAX_DEAD_LETTER_REASON_BYTES);
        let writes = letter.writes(Some(Bytes::from_static(b"body")));
        let [RecordWrite::Put { kind, id, body, .. }, RecordWrite::Put { kind: other, .. }] = &writes[..]
        else {
            panic!("{writes:?}");
        };
        assert_eq!((kind.as_str(), other.as_str()), (DEAD_LETTER_KIND, DEAD_LETTER_BODY_KIND));
        let record = Record {
            kind: kind.clone(),
            id: id.clone(),
            version: 1,
            due_at_ms: None,
            expires_at_ms: None,
            body: body.clone(),
        };
        assert_eq!(DeadLetter::from_record(&record).unwrap(), letter);
    }
}
