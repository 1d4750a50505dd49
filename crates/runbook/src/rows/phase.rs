//! `phase_executions`: one phase of a batch, with the counters that decide about barriers and ends,
//! and the cursors of work over many members.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{BatchId, PhaseId, StepId};
use super::numbering::{Blocks, Ordinal, Place};
use super::status::{PhaseStatus, WorkStatus};
use super::step::StepRow;

/// One phase of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseRow {
    /// Primary key.
    pub id: PhaseId,
    /// The batch.
    pub batch_id: BatchId,
    /// Name of the phase.
    pub phase_name: String,
    /// Minutes before `batch_start_time`.
    pub offset_minutes: u64,
    /// When it becomes due; none in a manual batch until it is advanced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// State of the phase.
    pub status: PhaseStatus,
    /// When its steps were released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Place among the phases of its version, from 0. Addition, like all that follow.
    pub position: u32,
    /// Number of its steps.
    pub steps: u32,
    /// Why it failed or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PhaseReason>,
    /// The row's wake-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    /// What it ends as, once its open steps are cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<PhaseEnding>,
    /// When the creation of its steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparing_at: Option<Timestamp>,
    /// Members, by ordinal, for which steps were created or not needed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub created: Ordinal,
    /// Members, by ordinal, that may have steps from before the phase was left out and taken up again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub created_before: Ordinal,
    /// Whether a newer version has a phase of this name, which late members go through instead.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_closed: bool,
    /// First ids of the blocks of steps.
    #[serde(default, skip_serializing_if = "Blocks::is_empty")]
    pub step_blocks: Blocks,
    /// Groups of members that go through the phase one after the other; one if it has no waves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// Group that is at work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wave: u32,
    /// When the next group begins, while the phase pauses between two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave_at: Option<Timestamp>,
    /// Highest step index that members of the group may begin.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub released: u32,
    /// How far the release of steps has got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_cursor: Option<ReleaseCursor>,
    /// First member whose open steps are not cancelled yet, while the phase is being given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_cursor: Option<Ordinal>,
    /// Steps by state.
    #[serde(default)]
    pub step_counts: StepCounts,
    /// Members that have passed its last step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members_succeeded: u32,
    /// Members with a failed step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members_failed: u32,
    /// Steps that take one of the places which `max_parallel` limits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub places_taken: u32,
    /// When an approval was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_requested_at: Option<Timestamp>,
    /// When it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// Who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When the error budget was spent; a person resumes, skips or cancels the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// `members_failed` from which the error budget counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub budget_base: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Why a phase failed or was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseReason {
    /// Too few members succeeded.
    MembersFailed,
    /// An approver refused it.
    Rejected,
    /// No approver answered in time.
    ApprovalTimeout,
    /// A person cancelled the phase or the batch.
    Cancelled,
    /// A person left it out.
    Requested,
    /// It was due before its version was published, and that version ignores overdue phases.
    Overdue,
    /// A newer version has replaced it.
    NewerVersion,
    /// An earlier phase failed, and the runbook stops then.
    Stopped,
    /// An init step failed.
    InitFailed,
}

impl PhaseReason {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            PhaseReason::MembersFailed => "members_failed",
            PhaseReason::Rejected => "rejected",
            PhaseReason::ApprovalTimeout => "approval_timeout",
            PhaseReason::Cancelled => "cancelled",
            PhaseReason::Requested => "requested",
            PhaseReason::Overdue => "overdue",
            PhaseReason::NewerVersion => "newer_version",
            PhaseReason::Stopped => "stopped",
            PhaseReason::InitFailed => "init_failed",
        }
    }

    /// The reason for people.
    pub fn sentence(self) -> &'static str {
        match self {
            PhaseReason::MembersFailed => "too few members succeeded",
            PhaseReason::Rejected => "it was rejected",
            PhaseReason::ApprovalTimeout => "it was not approved in time",
            PhaseReason::Cancelled => "it was cancelled",
            PhaseReason::Requested => "a request left it out",
            PhaseReason::Overdue => "it was due before its version was published",
            PhaseReason::NewerVersion => "a newer version of the runbook replaces it",
            PhaseReason::Stopped => "an earlier phase failed",
            PhaseReason::InitFailed => "an init step failed",
        }
    }
}

/// What a phase ends as, once its open steps are cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseEnding {
    /// The state.
    pub status: PhaseStatus,
    /// Why.
    pub reason: PhaseReason,
}

/// A group of members and its counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// First ordinal after it; the last group has none and takes in late members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Ordinal>,
    /// Members that have steps.
    pub members: u32,
    /// Open steps by index.
    pub open: Vec<u32>,
    /// Steps whose rollback has yet to end.
    pub rolling_back: u32,
}

impl Group {
    /// A group without members.
    pub fn new(end: Option<Ordinal>, steps: u32) -> Self {
        Group { end, members: 0, open: vec![0; steps as usize], rolling_back: 0 }
    }

    /// Open steps up to and including an index.
    pub fn open_until(&self, index: u32) -> u32 {
        self.open.iter().take(index as usize + 1).sum()
    }

    /// Whether nothing of it is open.
    pub fn is_quiet(&self) -> bool {
        self.rolling_back == 0 && self.open.iter().all(|open| *open == 0)
    }
}

/// How far the release of steps has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseCursor {
    /// First member that has not been looked at.
    pub next: Ordinal,
    /// First member that is not to be looked at; none is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Ordinal>,
    /// The step index that is released; none looks for the step whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}

/// Steps of a phase by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepCounts {
    /// Steps in state `pending`.
    #[serde(skip_serializing_if = "is_zero")]
    pub pending: u32,
    /// Steps in state `dispatched`.
    #[serde(skip_serializing_if = "is_zero")]
    pub dispatched: u32,
    /// Steps in state `succeeded`.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u32,
    /// Steps in state `failed`.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// Steps in state `polling`.
    #[serde(skip_serializing_if = "is_zero")]
    pub polling: u32,
    /// Steps in state `poll_timeout`.
    #[serde(skip_serializing_if = "is_zero")]
    pub poll_timeout: u32,
    /// Steps in state `rolled_back`.
    #[serde(skip_serializing_if = "is_zero")]
    pub rolled_back: u32,
    /// Steps in state `cancelled`.
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u32,
    /// Steps in state `skipped`.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u32,
}

impl StepCounts {
    fn of(&mut self, status: WorkStatus) -> &mut u32 {
        match status {
            WorkStatus::Pending => &mut self.pending,
            WorkStatus::Dispatched => &mut self.dispatched,
            WorkStatus::Succeeded => &mut self.succeeded,
            WorkStatus::Failed => &mut self.failed,
            WorkStatus::Polling => &mut self.polling,
            WorkStatus::PollTimeout => &mut self.poll_timeout,
            WorkStatus::RolledBack => &mut self.rolled_back,
            WorkStatus::Cancelled => &mut self.cancelled,
            WorkStatus::Skipped => &mut self.skipped,
        }
    }

    /// Steps that have yet to end.
    pub fn open(&self) -> u32 {
        self.pending + self.dispatched + self.polling
    }
}

/// One more or one less.
#[derive(Debug, Clone, Copy)]
enum Change {
    Add,
    Subtract,
}

impl Change {
    fn apply(self, count: &mut u32, counts: bool) {
        if counts {
            match self {
                Change::Add => *count += 1,
                Change::Subtract => {
                    debug_assert!(*count > 0, "a counter of a phase would become negative");
                    *count = count.saturating_sub(1);
                }
            }
        }
    }
}

impl PhaseRow {
    /// The earliest time at which the row has to be looked at.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.wake_at
    }

    /// The id of a step, if its block exists.
    pub fn step_id(&self, ordinal: Ordinal, index: u32) -> Option<StepId> {
        (index < self.steps).then(|| self.step_blocks.id(ordinal, index)).flatten().map(StepId)
    }

    /// Member and index of a step, if it is of this phase.
    pub fn place(&self, step: StepId) -> Option<Place> {
        self.step_blocks.place(step.0, self.steps)
    }

    /// The group of a member.
    pub fn group_of(&self, ordinal: Ordinal) -> usize {
        self.groups.iter().position(|group| group.end.is_none_or(|end| ordinal < end)).unwrap_or(0)
    }

    /// First ordinal of a group.
    pub fn group_start(&self, group: usize) -> Ordinal {
        group.checked_sub(1).and_then(|before| self.groups.get(before)?.end).unwrap_or(0)
    }

    /// The group that is at work.
    pub fn current_group(&self) -> Option<&Group> {
        self.groups.get(self.wave as usize)
    }

    /// Whether waves and barrier let a member begin a step.
    pub fn is_gate_open(&self, ordinal: Ordinal, index: u32) -> bool {
        let group = self.group_of(ordinal);
        let wave = self.wave as usize;
        self.status == PhaseStatus::Dispatched
            && self.ending.is_none()
            && (group < wave || (group == wave && index <= self.released))
    }

    /// Whether steps are created for members that are not covered by `created` yet.
    pub fn takes_members(&self) -> bool {
        let is_open = match self.status {
            PhaseStatus::Pending => self.preparing_at.is_some(),
            PhaseStatus::Dispatched | PhaseStatus::Completed => true,
            PhaseStatus::Failed => self.reason == Some(PhaseReason::MembersFailed),
            PhaseStatus::Skipped | PhaseStatus::Superseded => false,
        };
        is_open && self.ending.is_none() && !self.is_closed
    }

    /// Members that have steps.
    pub fn members(&self) -> u32 {
        self.groups.iter().map(|group| group.members).sum()
    }

    /// Steps whose rollback has yet to end.
    pub fn rolling_back(&self) -> u32 {
        self.groups.iter().map(|group| group.rolling_back).sum()
    }

    /// Keeps the counters right when a step is written: the one place where they change.
    pub fn count(&mut self, ordinal: Ordinal, before: Option<&StepRow>, after: &StepRow) {
        if let Some(before) = before {
            self.count_one(ordinal, before, Change::Subtract);
        }
        self.count_one(ordinal, after, Change::Add);
    }

    fn count_one(&mut self, ordinal: Ordinal, step: &StepRow, change: Change) {
        let status = step.work.status;
        let index = step.work.step_index;
        change.apply(self.step_counts.of(status), true);
        change.apply(&mut self.members_succeeded, index + 1 == self.steps && status.is_passed());
        change.apply(&mut self.members_failed, status.is_failure());
        change.apply(&mut self.places_taken, step.work.takes_place());
        let group = self.group_of(ordinal);
        if let Some(group) = self.groups.get_mut(group) {
            change.apply(&mut group.members, index == 0);
            change.apply(&mut group.rolling_back, step.rolls_back());
            if let Some(open) = group.open.get_mut(index as usize) {
                change.apply(open, status.is_open());
            }
        }
    }
}
