//! What is stored about the query of a runbook.

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::control::RemovalDecision;
use crate::drive::place::{QUERIES, head_id};
use crate::drive::post::timestamp;
use crate::rows::BatchId;
use crate::source::Decisions;
use crate::step::limits::MAX_ERROR_BYTES;

/// Members of a pending removal that are shown.
pub const MAX_HELD_SAMPLES: usize = 10;

/// The query of a runbook: its next run, its lease, and what came of the last run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueryRow {
    /// Name of the runbook.
    pub name: String,
    /// The node that runs the query; none while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When the lease of the node ends, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Runs that were begun, also such that were cut off.
    #[serde(default)]
    pub run: u64,
    /// Runs since one came to its end.
    #[serde(default)]
    pub attempts: u32,
    /// When the query is due, or was due that is run now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// Start of the batch whose first members are being sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creating: Option<Timestamp>,
    /// When the last run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
    /// What the last run that succeeded found and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<QueryCounts>,
    /// Why the last run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<QueryFailure>,
    /// Members whose removal waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_removal: Option<PendingRemoval>,
    /// What was decided last about members whose removal waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<DecidedRemoval>,
    /// Removals of members that were held up to this run are approved.
    #[serde(default)]
    pub approved_run: u64,
    /// Members that were held up to this run stay.
    #[serde(default)]
    pub rejected_run: u64,
}

/// What a run found and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueryCounts {
    /// Rows of the query.
    pub rows: u64,
    /// Batches that they belong to.
    pub batches: u64,
    /// Batches that were created.
    pub created: u64,
    /// Members that were added, or have returned.
    pub added: u64,
    /// Members whose data has changed.
    pub changed: u64,
    /// Members that were removed.
    pub removed: u64,
    /// Rows without a batch: their batch time cannot be read, or their batch has ended.
    pub skipped: u64,
    /// Those of them whose batch has ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_ended: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like that")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryFailure {
    /// The stable code, with a page in `docs/errors/`.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

impl QueryFailure {
    /// A failure whose message has a bounded length.
    pub(super) fn new(code: &str, message: &str, at: Timestamp) -> Self {
        let suffix = format!(" [{code}]");
        let mut message = message.strip_suffix(&suffix).unwrap_or(message).to_owned();
        if message.len() > MAX_ERROR_BYTES {
            message.truncate(message.floor_char_boundary(MAX_ERROR_BYTES));
            message.push('…');
        }
        QueryFailure { code: code.to_owned(), message, at }
    }
}

/// Members that the query no longer has, and that are not removed without approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRemoval {
    /// Names these members: the run in which the last of them was found missing.
    pub set: u64,
    /// How many there are.
    pub count: u64,
    /// Members that the batches have in all, these included.
    pub of: u64,
    /// Batches that they are in.
    pub batches: u64,
    /// The first of them.
    pub sample: Vec<HeldMember>,
    /// When the last of them was found missing.
    pub at: Timestamp,
    /// Whether people have approved the removal, which the next run makes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_approved: bool,
}

/// A decision about members whose removal waited for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedRemoval {
    /// Names the members.
    pub set: u64,
    /// What was decided.
    pub decision: RemovalDecision,
    /// How many members there were.
    pub count: u64,
    /// When.
    pub at: Timestamp,
    /// Id of the API key that decided; none on a server without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A member whose removal waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldMember {
    /// Its batch.
    pub batch_id: BatchId,
    /// Its key, in the form in which keys are compared.
    pub key: String,
}

impl QueryRow {
    /// The query of a runbook that was never run.
    pub(super) fn new(name: &str) -> Self {
        QueryRow { name: name.to_owned(), ..QueryRow::default() }
    }

    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    pub(super) fn write(&self, scope: &Scope, expect: Expect) -> RecordWrite {
        RecordWrite::Put {
            kind: QUERIES.to_owned(),
            id: head_id(scope, &self.name),
            expect,
            due_at_ms: self.due_ms(),
            time_to_live: None,
            body: serde_json::to_vec(self).expect("rows are JSON with text keys").into(),
        }
    }

    /// Whether a node runs it.
    pub fn is_running(&self, now_ms: u64) -> bool {
        self.node.is_some() && self.until_ms.is_some_and(|until_ms| until_ms > now_ms)
    }

    /// What people have decided about removals.
    pub(super) fn decisions(&self) -> Decisions {
        Decisions { approved: self.approved_run, rejected: self.rejected_run }
    }

    /// Has it run at once, unless a node is at it.
    pub(super) fn make_due(&mut self, now_ms: u64) {
        if !self.is_running(now_ms) {
            (self.node, self.until_ms) = (None, None);
            self.next_run_at = Some(timestamp(now_ms));
        }
    }

    /// The end of the lease, or the next run.
    fn due_ms(&self) -> Option<u64> {
        let next_ms = |at: Timestamp| u64::try_from(at.as_millisecond()).unwrap_or_default().max(1);
        self.until_ms.or_else(|| self.next_run_at.map(next_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_does_not_change() {
        let at: Timestamp = "2026-02-10T14:00:00Z".parse().unwrap();
        let sample = vec![HeldMember { batch_id: BatchId(42), key: "ada".to_owned() }];
        let row = QueryRow {
            name: "wave".to_owned(),
            node: Some("n1".to_owned()),
            until_ms: Some(7),
            run: 3,
            attempts: 1,
            next_run_at: Some(at),
            creating: Some(at),
            last_run_at: Some(at),
            counts: Some(QueryCounts { rows: 5, batches: 2, created: 1, added: 3, ..QueryCounts::default() }),
            last_error: Some(QueryFailure::new("source-failed", "it is away [source-failed]", at)),
            pending_removal: Some(PendingRemoval {
                set: 3,
                count: 9,
                of: 12,
                batches: 1,
                sample,
                at,
                is_approved: false,
            }),
            last_decision: Some(DecidedRemoval {
                set: 2,
                decision: RemovalDecision::Reject,
                count: 4,
                at,
                by: Some("k1".to_owned()),
            }),
            approved_run: 2,
            rejected_run: 1,
        };
        let stored = r#"{"name":"wave","node":"n1","until_ms":7,"run":3,"attempts":1,"next_run_at":"2026-02-10T14:00:00Z","creating":"2026-02-10T14:00:00Z","last_run_at":"2026-02-10T14:00:00Z","counts":{"rows":5,"batches":2,"created":1,"added":3,"changed":0,"removed":0,"skipped":0},"last_error":{"code":"source-failed","message":"it is away","at":"2026-02-10T14:00:00Z"},"pending_removal":{"set":3,"count":9,"of":12,"batches":1,"sample":[{"batch_id":42,"key":"ada"}],"at":"2026-02-10T14:00:00Z"},"last_decision":{"set":2,"decision":"reject","count":4,"at":"2026-02-10T14:00:00Z","by":"k1"},"approved_run":2,"rejected_run":1}"#;
        assert_eq!(serde_json::to_string(&row).unwrap(), stored);
        assert_eq!(serde_json::from_str::<QueryRow>(stored).unwrap(), row);
        let early = r#"{"name":"wave"}"#;
        assert_eq!(serde_json::from_str::<QueryRow>(early).unwrap(), QueryRow::new("wave"));
    }
}
