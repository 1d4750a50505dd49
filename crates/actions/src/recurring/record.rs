//! How recurring actions are stored.
//!
//! | kind | id | due | what |
//! |---|---|---|---|
//! | `segno.recurring` | `namespace/tenant/id` | when somebody has to look at it | the recurring action, as JSON |
//! | `segno.recurring-history` | `namespace/tenant/id/` and the time, newest first | when it is to be archived | what became of an occurrence, as JSON |
//! | `segno.recurring-end` | `namespace/tenant/id/`, when it ended, `-` and a hash of the instance | at once | the [end](super::run_end) of a run that the action has not taken in yet, as JSON |
//! | `segno.recurring-order` | `namespace/tenant/` and its [place](crate::listing::Place) | | nothing: the listing, newest first |
//! | `segno.recurring-order-built` | `namespace/tenant/` | | nothing: that the listing is complete |
//! | `segno.recurring-count` | `namespace/tenant/` | | how many recurring actions there are |
//! | `segno.recurring-run` | `namespace/tenant/id/` and a hash of the key | | what became of a run out of schedule, as JSON; it has a life |
//! | `segno.recurring-name` | `namespace/tenant/`, a hash of the name, `/` and the id | | nothing: the index by name |
//! | `segno.recurring-name-built` | `namespace/tenant/` | | nothing: that the index by name is complete |
//! | `segno.action-dedup` | `namespace/tenant/` and a hash of the key | | that a dedup key was seen; it has a life |

use std::time::Duration;

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::history::HistoryEntry;
use super::model::RecurringAction;
use super::run::Run;
use crate::action::ActionError;
use crate::functions::Scope;
use crate::keep::Keep;
use crate::listing::{Index, Place};
use crate::moment::due_ms;

/// Kind of the records that are recurring actions.
pub const RECURRING_KIND: &str = "segno.recurring";

/// Kind of the records that say what became of occurrences.
pub const RECURRING_HISTORY_KIND: &str = "segno.recurring-history";

/// Kind of the records that say how many recurring actions a tenant has.
pub(crate) const COUNT_KIND: &str = "segno.recurring-count";

/// Kind of the records that say that a dedup key was seen.
pub(crate) const DEDUP_KIND: &str = "segno.action-dedup";

/// Kind of the records that say that the key of a run was used.
pub(crate) const RUN_KIND: &str = "segno.recurring-run";

/// The form in which all of them are stored.
const FORMAT: u32 = 1;

/// Largest definition in bytes. What becomes of one is bounded and not refused: it would never fire or end again.
const MAX_RECURRING_BYTES: usize = 4 * 1024 * 1024;

/// All recurring actions, newest first.
pub(crate) const LISTING: Index =
    Index { of: RECURRING_KIND, entries: "segno.recurring-order", built: "segno.recurring-order-built" };

#[derive(Serialize, Deserialize)]
struct Body<T> {
    format: u32,
    value: T,
}

/// A recurring action as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredRecurring {
    pub(crate) version: u64,
    pub(crate) action: RecurringAction,
}

/// The id of a recurring action's record. Its own id has no slash, so no other one begins with it and a slash.
pub(crate) fn record_id(scope: &Scope, id: &str) -> String {
    format!("{}{id}", scope.id_prefix())
}

/// What the ids of an action's history begin with.
pub(crate) fn history_prefix(scope: &Scope, id: &str) -> String {
    format!("{}{id}/", scope.id_prefix())
}

/// The id of what became of the occurrence of a time. Ids ascend from new to old, so that a listing begins with the newest.
pub(crate) fn history_id(scope: &Scope, id: &str, time: Timestamp) -> String {
    format!("{}{:016x}", history_prefix(scope, id), u64::MAX - due_ms(time))
}

/// The time of the occurrence that an entry of a history is about, by its id.
pub(crate) fn history_time(record: &Record) -> Option<Timestamp> {
    let (_, time) = record.id.rsplit_once('/')?;
    let at_ms = u64::MAX - u64::from_str_radix(time, 16).ok()?;
    Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()
}

/// The id of the record that says that a dedup key was seen.
pub(crate) fn dedup_id(scope: &Scope, key: &str) -> String {
    let hash: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{hash}", scope.id_prefix())
}

/// The id of the record that says that the key of a run was used.
pub(crate) fn run_id(scope: &Scope, id: &str, key: &str) -> String {
    let hash: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{hash}", history_prefix(scope, id))
}

pub(crate) fn decode(record: &Record) -> Result<StoredRecurring, ActionError> {
    let action: RecurringAction = read(record)?;
    let id = record_id(&action.scope(), &action.id);
    if record.id != id {
        return Err(unreadable(record, format!("it is that of recurring action {id}")));
    }
    Ok(StoredRecurring { version: record.version, action })
}

pub(crate) fn decode_history(record: &Record) -> Result<HistoryEntry, ActionError> {
    read(record)
}

impl HistoryEntry {
    /// Reads a record of a history.
    ///
    /// # Errors
    /// `stored-data-unreadable`.
    pub fn read(record: &Record) -> Result<Self, ActionError> {
        decode_history(record)
    }
}

/// An entry of a history, unless it cannot be read: then it is as if there were none, so that one bad entry neither keeps a
/// schedule from firing nor a call from ending. It is logged.
pub(crate) fn readable_history(record: &Record) -> Option<HistoryEntry> {
    decode_history(record)
        .inspect_err(|error| tracing::error!(id = record.id, %error, "an entry of a history cannot be read"))
        .ok()
}

pub(crate) fn decode_run(record: &Record) -> Result<Run, ActionError> {
    read(record)
}

pub(crate) fn decode_count(record: &Record) -> Result<u64, ActionError> {
    read(record)
}

pub(super) fn read<T: DeserializeOwned>(record: &Record) -> Result<T, ActionError> {
    let body: Body<T> =
        serde_json::from_slice(&record.body).map_err(|error| unreadable(record, error.to_string()))?;
    if body.format != FORMAT {
        let reason = format!("its format is {}, this version reads {FORMAT}", body.format);
        return Err(unreadable(record, reason));
    }
    Ok(body.value)
}

fn unreadable(record: &Record, reason: String) -> ActionError {
    ActionError::Unreadable { what: format!("the record {:?} of kind {:?}", record.id, record.kind), reason }
}

pub(super) fn write<T: Serialize>(value: &T) -> Result<bytes::Bytes, ActionError> {
    let body = serde_json::to_vec(&Body { format: FORMAT, value })
        .map_err(|error| ActionError::invalid("payload", format!("it has no JSON form: {error}")))?;
    Ok(body.into())
}

/// Where the recurring action of a record is listed. One that cannot be read comes last.
pub(crate) fn place_of(record: &Record) -> Option<Place> {
    match decode(record) {
        Ok(stored) => stored.action.place(),
        Err(_) => {
            let (_, id) = record.id.rsplit_once('/')?;
            Some(Place::new(Timestamp::UNIX_EPOCH, id.parse().ok()?))
        }
    }
}

impl RecurringAction {
    /// Where it is listed.
    pub fn place(&self) -> Option<Place> {
        Some(Place::new(self.created_at, self.id.parse().ok()?))
    }

    /// Refuses a definition that is too large.
    pub(super) fn check_size(&self) -> Result<(), ActionError> {
        let bytes = write(self)?.len();
        if bytes <= MAX_RECURRING_BYTES {
            return Ok(());
        }
        let problem = format!(
            "it has {bytes} bytes with the rest, the limit is {MAX_RECURRING_BYTES}; store large data elsewhere"
        );
        Err(ActionError::invalid("payload", problem))
    }

    /// The write that stores it, due when somebody has to look at it next.
    pub fn write(&self, expect: Expect) -> Result<RecordWrite, ActionError> {
        let body = write(self)?;
        Ok(RecordWrite::Put {
            kind: RECURRING_KIND.to_owned(),
            id: record_id(&self.scope(), &self.id),
            expect,
            due_at_ms: self.due_at_ms(),
            time_to_live: None,
            body,
        })
    }

    /// The write that says what became of an occurrence.
    pub(crate) fn history_write(&self, entry: &HistoryEntry, keep: Keep) -> Result<RecordWrite, ActionError> {
        let id = history_id(&self.scope(), &self.id, entry.time);
        history_write(id, entry, Expect::Anything, keep)
    }

    /// The write that says that a dedup key was seen. It fails if it was seen before.
    pub(crate) fn dedup_write(&self, key: &str, time: Timestamp) -> Result<RecordWrite, ActionError> {
        Ok(RecordWrite::Put {
            kind: DEDUP_KIND.to_owned(),
            id: dedup_id(&self.scope(), key),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(self.policy.dedup_window.get()),
            body: write(&(&self.id, time))?,
        })
    }
}

/// The write of an entry of a history under this id.
pub(crate) fn history_write(
    id: String,
    entry: &HistoryEntry,
    expect: Expect,
    keep: Keep,
) -> Result<RecordWrite, ActionError> {
    Ok(RecordWrite::Put {
        kind: RECURRING_HISTORY_KIND.to_owned(),
        id,
        expect,
        due_at_ms: keep.due_at_ms(entry.ended_at.unwrap_or(entry.decided_at)),
        time_to_live: keep.life(),
        body: write(entry)?,
    })
}

/// The write that says what became of a run. It fails if its key was used before.
pub(crate) fn run_write(id: String, run: &Run, keep: Duration) -> Result<RecordWrite, ActionError> {
    Ok(RecordWrite::Put {
        kind: RUN_KIND.to_owned(),
        id,
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: Some(keep),
        body: write(run)?,
    })
}

/// The write that says how many there are.
pub(crate) fn count_write(scope: &Scope, count: u64, expect: Expect) -> Result<RecordWrite, ActionError> {
    Ok(RecordWrite::Put {
        kind: COUNT_KIND.to_owned(),
        id: scope.id_prefix(),
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: write(&count)?,
    })
}
