//! What the drivers of batches commit, summarized: one event for each commit, whatever it changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno_runbook::drive::{Announcer, BatchPlace, Committed};
use segno_runbook::rows::{BatchStatus, Origin, PhaseHeld, RowState};
use segno_runbook::step::{Event, Notice};
use serde::{Deserialize, Serialize};

use super::hub::Hub;

/// Rows of a commit that are shown one by one. The others are counted, so that the ring stays
/// small.
pub const MAX_ROWS: usize = 50;

/// What a commit changed in a batch. Stored, when nodes relay changes to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedBatch {
    /// What ids of the tenant begin with.
    pub scope: String,
    /// Id of the batch.
    pub batch: u64,
    /// Name of its runbook.
    pub runbook: String,
    /// State of the batch.
    pub batch_status: BatchStatus,
    /// When it was committed.
    pub at_ms: u64,
    /// The first rows.
    pub rows: Vec<ObservedRow>,
    /// How many further ones, by kind and state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<RowKind, BTreeMap<String, u64>>,
}

/// The new state of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedRow {
    /// Which kind of row.
    pub kind: RowKind,
    /// Its id.
    pub id: u64,
    /// Its state.
    pub status: String,
    /// What keeps it from going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The phase of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u64>,
    /// The member of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
}

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The batch.
    Batch,
    /// A phase.
    Phase,
    /// An init step.
    Init,
    /// A member.
    Member,
    /// A step.
    Step,
    /// A rollback of a step.
    Rollback,
    /// A rollback of an init step.
    InitRollback,
    /// A removal of a member.
    Removal,
}

/// What keeps a row from going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// A person has paused it.
    Paused,
    /// It waits for an approval.
    Approval,
    /// Its error budget is spent.
    Budget,
}

impl ObservedBatch {
    /// Summarizes a commit.
    pub fn of(place: &BatchPlace, commit: &Committed<'_>, at_ms: u64) -> Option<Self> {
        let row = |state: &RowState| observed(state, place.batch.0);
        let rows = commit.states.iter().take(MAX_ROWS).map(row).collect();
        let mut left_out: BTreeMap<RowKind, BTreeMap<String, u64>> = BTreeMap::new();
        for row in commit.states.iter().skip(MAX_ROWS).map(row) {
            *left_out.entry(row.kind).or_default().entry(row.status).or_default() += 1;
        }
        Some(ObservedBatch {
            scope: place.scope.id_prefix(),
            batch: place.batch.0,
            runbook: commit.runbook.to_owned(),
            batch_status: commit.status?,
            at_ms,
            rows,
            left_out,
        })
    }
}

fn observed(state: &RowState, batch: u64) -> ObservedRow {
    let row = |kind, id, status: &str| {
        let status = status.to_owned();
        ObservedRow { kind, id, status, held: None, phase: None, member: None }
    };
    match *state {
        RowState::Batch { status, is_paused, .. } => {
            let held = (is_paused && !status.is_terminal()).then_some(Held::Paused);
            ObservedRow { held, ..row(RowKind::Batch, batch, status.name()) }
        }
        RowState::Phase { id, status, held } => {
            let held = held.map(|held| match held {
                PhaseHeld::Approval => Held::Approval,
                PhaseHeld::Budget => Held::Budget,
            });
            ObservedRow { held, ..row(RowKind::Phase, id.0, status.name()) }
        }
        RowState::Init { id, status } => row(RowKind::Init, id.0, status.name()),
        RowState::Member { id, status } => row(RowKind::Member, id.0, status.name()),
        RowState::Step { id, phase, member, status } => ObservedRow {
            phase: Some(phase.0),
            member: Some(member.0),
            ..row(RowKind::Step, id.0, status.name())
        },
        RowState::Rollback { origin: Origin::Step(id), status, .. } => {
            row(RowKind::Rollback, id.0, status.name())
        }
        RowState::Rollback { origin: Origin::Init(id), status, .. } => {
            row(RowKind::InitRollback, id.0, status.name())
        }
        RowState::Removal { member, status, .. } => row(RowKind::Removal, member.0, status.name()),
    }
}

/// Announces what drivers commit to the listeners of the hub.
pub struct BatchAnnouncer(pub Arc<Hub>);

impl Announcer for BatchAnnouncer {
    // States of rows have all that listeners follow.
    fn announce(&self, _: &BatchPlace, _: &Event) {}

    fn notify(&self, _: &BatchPlace, _: &Notice) {}

    fn committed(&self, place: &BatchPlace, commit: &Committed<'_>) {
        self.0.batch_committed(|at_ms| ObservedBatch::of(place, commit, at_ms));
    }
}

#[cfg(test)]
mod tests {
    use segno_actions::functions::Scope;
    use segno_runbook::rows::{BatchId, MemberId, PhaseId, PhaseStatus, StepId, WorkStatus};

    use super::*;

    fn step(id: u64) -> RowState {
        let (id, phase, member) = (StepId(id), PhaseId(7), MemberId(id));
        RowState::Step { id, phase, member, status: WorkStatus::Pending }
    }

    #[test]
    fn a_large_commit_is_one_summary() {
        let place = BatchPlace::new(Scope::new("eu", "acme").unwrap(), BatchId(42));
        let phase =
            RowState::Phase { id: PhaseId(7), status: PhaseStatus::Pending, held: Some(PhaseHeld::Approval) };
        let states: Vec<RowState> = [phase].into_iter().chain((1..=1_000).map(step)).collect();
        let commit = Committed { runbook: "wave", status: Some(BatchStatus::Active), states: &states };
        let batch = ObservedBatch::of(&place, &commit, 5).unwrap();
        assert_eq!(batch.rows.len(), MAX_ROWS);
        assert_eq!(batch.rows[0].held, Some(Held::Approval));
        assert_eq!(batch.left_out[&RowKind::Step]["pending"], 951);
        let stored =
            serde_json::to_string(&ObservedBatch { rows: batch.rows[..2].to_vec(), ..batch }).unwrap();
        let golden = concat!(
            r#"{"scope":"eu/acme/","batch":42,"runbook":"wave","batch_status":"active","at_ms":5,"rows":["#,
            r#"{"kind":"phase","id":7,"status":"pending","held":"approval"},"#,
            r#"{"kind":"step","id":1,"status":"pending","phase":7,"member":1}],"#,
            r#""left_out":{"step":{"pending":951}}}"#
        );
        assert_eq!(stored, golden);
    }
}
