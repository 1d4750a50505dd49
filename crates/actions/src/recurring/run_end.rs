//! Ends of runs that the recurring action has not taken in yet: one record of its own for each.
//!
//! The commit that ends a run writes such a record and nothing that other runs share, so any number
//! of runs end side by side, on any number of nodes. The record is due at once: the scheduler folds
//! all that wait for one action into the action's record and deletes them, in one commit on
//! condition that the action is as it was read. A fold that loses that race has lost it to a commit
//! that made progress. What was deleted was counted, so every end counts once.

use jiff::Timestamp;
use segno::store::{Expect, ListRecords, ProviderError, Record, RecordWrite, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::history::Outcome;
use super::model::RecurringAction;
use super::record::{history_prefix, read, write};
use crate::action::ActionError;
use crate::functions::Scope;
use crate::moment::due_ms;

/// Kind of the records that say that a run has ended.
pub(crate) const RUN_END_KIND: &str = "segno.recurring-end";

/// Most ends of one fold. What is left is still due, and comes next.
pub(crate) const MAX_FOLDED: usize = 256;

/// Bytes of the hash that tells runs apart which end in the same millisecond.
const HASH_BYTES: usize = 16;

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    /// The scheduled time of its occurrence.
    pub(crate) time: Timestamp,
    /// The instance that has ended.
    pub(crate) instance: String,
    /// When it ended.
    pub(crate) ended_at: Timestamp,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Whether the history has the outcome, from the same commit. An end that is not in the history
    /// counts only if the action knows that the instance runs.
    #[serde(rename = "in_history")]
    pub(crate) is_in_history: bool,
}

impl RunEnd {
    /// The write that stores it, due at once. Ids ascend with the times of the ends, so that a page
    /// has the earliest.
    pub(crate) fn write(&self, scope: &Scope, id: &str) -> Result<RecordWrite, ActionError> {
        let digest = Sha256::digest(self.instance.as_bytes());
        let hash: String = digest.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let ended_ms = due_ms(self.ended_at);
        Ok(RecordWrite::Put {
            kind: RUN_END_KIND.to_owned(),
            id: format!("{}{ended_ms:016x}-{hash}", history_prefix(scope, id)),
            expect: Expect::Anything,
            due_at_ms: Some(ended_ms),
            time_to_live: None,
            body: write(self)?,
        })
    }
}

pub(crate) fn decode_end(record: &Record) -> Result<RunEnd, ActionError> {
    read(record)
}

/// The ends that wait for one action, earliest first.
#[derive(Debug)]
pub(crate) struct RunEnds {
    ends: Vec<(RunEnd, RecordWrite)>,
    /// Whether these are all of them.
    pub(crate) is_complete: bool,
}

impl RunEnds {
    /// No ends, and there are none.
    pub(crate) fn none() -> Self {
        RunEnds { ends: Vec::new(), is_complete: true }
    }

    /// Reads those in the folder of an action. One that cannot be read is left to the lane, which
    /// puts it aside.
    pub(crate) async fn read(store: &dyn Store, folder: &str) -> Result<Self, ProviderError> {
        let request =
            ListRecords { kind: RUN_END_KIND, id_prefix: folder, after_id: None, limit: MAX_FOLDED };
        let records = store.list_records_around_damage(request).await?.records;
        let is_complete = records.len() < MAX_FOLDED;
        let readable = records.into_iter().filter_map(|record| {
            let end = decode_end(&record).ok()?;
            let Record { kind, id, version, .. } = record;
            Some((end, RecordWrite::Delete { kind, id, expect: Expect::Version(version) }))
        });
        Ok(RunEnds { ends: readable.collect(), is_complete })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Takes them into an action.
    pub(crate) fn fold_into(&self, action: &mut RecurringAction) {
        for (end, _) in &self.ends {
            action.take_end(end);
        }
    }

    /// The writes that remove them.
    pub(crate) fn into_deletes(self) -> impl Iterator<Item = RecordWrite> {
        self.ends.into_iter().map(|(_, delete)| delete)
    }
}

impl RecurringAction {
    fn take_end(&mut self, end: &RunEnd) {
        let runs = self.progress.running.iter().any(|running| running.instance == end.instance);
        if !end.is_in_history && !runs {
            return;
        }
        match end.outcome {
            Outcome::Completed => self.succeeded(&end.instance),
            Outcome::Cancelled => self.superseded(&end.instance),
            Outcome::Failed => {
                self.failed(Some(&end.instance), end.error.as_deref().unwrap_or_default(), end.ended_at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(outcome: Outcome, error: Option<&str>) -> RunEnd {
        RunEnd {
            time: "2026-02-10T14:00:00Z".parse().unwrap(),
            instance: "default/default/invoke:x".to_owned(),
            ended_at: "2026-02-10T14:00:01.5Z".parse().unwrap(),
            outcome,
            error: error.map(str::to_owned),
            is_in_history: true,
        }
    }

    #[test]
    fn the_end_of_a_run_is_stored_in_a_form_that_does_not_change() {
        for (end, stored) in [
            (
                end(Outcome::Completed, None),
                r#"{"format":1,"value":{"time":"2026-02-10T14:00:00Z","instance":"default/default/invoke:x","ended_at":"2026-02-10T14:00:01.5Z","outcome":"completed","in_history":true}}"#,
            ),
            (
                end(Outcome::Failed, Some("it broke")),
                r#"{"format":1,"value":{"time":"2026-02-10T14:00:00Z","instance":"default/default/invoke:x","ended_at":"2026-02-10T14:00:01.5Z","outcome":"failed","error":"it broke","in_history":true}}"#,
            ),
        ] {
            let RecordWrite::Put { kind, id, due_at_ms, body, .. } =
                end.write(&Scope::default(), "7").unwrap()
            else {
                panic!("it is not stored");
            };
            assert_eq!(kind, "segno.recurring-end");
            assert_eq!(id, "default/default/7/0000019c47da18dc-4ef743b1cd670d1ef701edd1d76bf633");
            assert_eq!(due_at_ms, Some(1_770_732_001_500));
            assert_eq!(std::str::from_utf8(&body).unwrap(), stored);
            let record = Record { kind, id, version: 1, due_at_ms, expires_at_ms: None, body };
            assert_eq!(decode_end(&record).unwrap(), end);
        }
    }
}
