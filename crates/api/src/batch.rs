//! Batches of runbooks: their members, phases, steps, and requests about them. Columns have the names of the tables.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// A batch that is to be created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBatch {
    /// Name of the runbook.
    pub runbook: String,
    /// Version of the runbook; the active one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Reference time of the phases. A batch without one is advanced by hand, phase by phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// Members as CSV text whose first line has the names of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_csv: Option<String>,
    /// Members as objects: names are columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Map<String, Value>>,
}

/// Members to add to a batch, or to update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutMembers {
    /// Members as CSV text whose first line has the names of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_csv: Option<String>,
    /// Members as objects: names are columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Map<String, Value>>,
}

/// Members to remove from a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveMembers {
    /// Their keys; letter case does not matter.
    pub keys: Vec<String>,
}

/// State of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// Created; init has not begun.
    Detected,
    /// Init steps are running.
    InitDispatched,
    /// Phases run when they are due.
    Active,
    /// All phases have ended and none has failed.
    Completed,
    /// A phase or an init step has failed, and nothing is left to do.
    Failed,
    /// Cancelled by a request.
    Cancelled,
}

/// A batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Batch {
    /// Id of the batch.
    pub id: u64,
    /// Name of its runbook.
    pub runbook_name: String,
    /// Version that it follows.
    pub runbook_version: u32,
    /// Reference time of the phases; absent in a batch that is advanced by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// State of the batch.
    pub status: BatchStatus,
    /// When it was created.
    pub detected_at: Timestamp,
    /// When its init steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    /// Whether all its first members are stored; nothing begins before.
    pub is_sealed: bool,
    /// Members by state.
    pub member_counts: MemberCounts,
}

/// Members of a batch by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberCounts {
    /// Members that take part.
    pub active: u32,
    /// Members that have left.
    pub removed: u32,
    /// Members with a step that failed for good.
    pub failed: u32,
    /// Members that were cancelled.
    pub cancelled: u32,
}

/// Batches, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchList {
    /// The batches.
    pub batches: Vec<Batch>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A batch with its phases and init steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchDetails {
    /// The batch.
    #[serde(flatten)]
    pub batch: Batch,
    /// Its phases, in due order.
    pub phases: Vec<Phase>,
    /// Its init steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Step>,
    /// Notices that were sent to people, oldest first; the last 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Why it waits, what will wake it, and when.
    pub explanation: Explanation,
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// Its call has not ended.
    Sending,
    /// The function has returned.
    Delivered,
    /// The function has failed for good, or could not be called.
    Failed,
}

/// A notice of a batch: a call of the function that the runbook names under `notify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notice {
    /// `approval_wanted`, `phase_failed` or `budget_spent`.
    pub event: String,
    /// The phase.
    pub phase_execution_id: u64,
    /// Its name.
    pub phase_name: String,
    /// The function.
    pub function_name: String,
    /// Id of the call's instance.
    pub instance: String,
    /// What became of it.
    pub state: NoticeState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was delivered or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// State of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Not due yet, or waits for its predecessor, its steps or an approval.
    Pending,
    /// Its steps are running.
    Dispatched,
    /// Ended, and enough members have succeeded.
    Completed,
    /// Ended, and too few members have succeeded.
    Failed,
    /// Left out.
    Skipped,
    /// Replaced by a phase of a newer version before it began.
    Superseded,
}

/// A phase of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Phase {
    /// Id of the phase execution.
    pub id: u64,
    /// The batch.
    pub batch_id: u64,
    /// Name of the phase.
    pub phase_name: String,
    /// Minutes before `batch_start_time`.
    pub offset_minutes: u64,
    /// When it becomes due; absent in a batch that is advanced by hand until it is advanced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// State of the phase.
    pub status: PhaseStatus,
    /// When its steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it failed or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of its steps.
    pub steps: u32,
    /// Steps of all members by state.
    pub step_counts: BTreeMap<String, u64>,
    /// Members that have passed its last step.
    pub members_succeeded: u32,
    /// Members with a failed step.
    pub members_failed: u32,
    /// When an approval was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_requested_at: Option<Timestamp>,
    /// When it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// Id of the API key with which it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When its error budget was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// Takes part.
    Active,
    /// Has left.
    Removed,
    /// A step has failed for good.
    Failed,
    /// Cancelled by a request.
    Cancelled,
}

/// A member of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// Id of the member.
    pub id: u64,
    /// The batch.
    pub batch_id: u64,
    /// Value of the primary key column.
    pub member_key: String,
    /// State of the member.
    pub status: MemberStatus,
    /// When it was added, or added again.
    pub added_at: Timestamp,
    /// When it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
    /// When it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// Columns of the source's row.
    pub data: Map<String, Value>,
    /// Variables that results have set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub worker_data: Map<String, Value>,
}

/// Members of a batch, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberList {
    /// The members.
    pub members: Vec<Member>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A member with its steps in all phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberDetails {
    /// The member.
    #[serde(flatten)]
    pub member: Member,
    /// Its steps, phase by phase.
    pub steps: Vec<Step>,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not yet sent to a worker, or waiting for its next attempt.
    Pending,
    /// Sent to a worker.
    Dispatched,
    /// Completed by the worker.
    Succeeded,
    /// The worker returned an error, and there is no further attempt.
    Failed,
    /// The worker reported that it is still in progress.
    Polling,
    /// Polling took longer than allowed.
    PollTimeout,
    /// The rollback of a failed step has succeeded.
    RolledBack,
    /// Given up before it ended.
    Cancelled,
    /// Left out by a request.
    Skipped,
}

/// One step for one member, or an init step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// Id of the step execution.
    pub id: u64,
    /// The phase; absent for an init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_execution_id: Option<u64>,
    /// The member; absent for an init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_member_id: Option<u64>,
    /// Name of the step.
    pub step_name: String,
    /// Order within its phase, from 0.
    pub step_index: u32,
    /// The worker pool.
    pub worker_id: String,
    /// The function.
    pub function_name: String,
    /// Its parameters as JSON text.
    pub params_json: String,
    /// State of the step.
    pub status: StepStatus,
    /// Job that was sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What the worker returned, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_json: Option<String>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When the current attempt was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Polls of the current attempt.
    pub poll_count: u32,
    /// Attempts after the first.
    pub retry_count: u32,
    /// How far its rollback has got: `waiting`, `running`, `succeeded` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_state: Option<String>,
}

/// Why a row waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// A sentence.
    pub why: String,
    /// What releases it; absent if it has ended or waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_by: Option<String>,
    /// When it wakes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
}

/// What is requested of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum BatchAction {
    /// Begin init or the next phase of a batch that is advanced by hand.
    Advance,
    /// Send nothing new; what is running goes on.
    PauseBatch {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Go on after a pause.
    ResumeBatch,
    /// Give up the batch: open steps are cancelled.
    CancelBatch {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Move the reference time; phases that have not begun move with it.
    Reschedule {
        /// The new reference time.
        batch_start_time: Timestamp,
    },
    /// Try failed members again; all of them unless some are named.
    RetryMembers {
        /// Ids of members.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch_member_ids: Option<Vec<u64>>,
        /// From where.
        #[serde(default)]
        from: RetryFrom,
    },
    /// Try the failed init step of a failed batch again.
    RetryInit,
    /// Approve a phase, also before it is due.
    ApprovePhase {
        /// The phase.
        phase_execution_id: u64,
    },
    /// Refuse a phase: it fails without having begun.
    RejectPhase {
        /// The phase.
        phase_execution_id: u64,
    },
    /// Go on with a phase whose error budget was spent.
    ResumePhase {
        /// The phase.
        phase_execution_id: u64,
    },
    /// Leave out a phase.
    SkipPhase {
        /// The phase.
        phase_execution_id: u64,
    },
    /// Give up a phase: its open steps are cancelled, and it fails.
    CancelPhase {
        /// The phase.
        phase_execution_id: u64,
    },
    /// Give up a member: its open steps are cancelled.
    CancelMember {
        /// The member.
        batch_member_id: u64,
    },
    /// Go on with a member that was cancelled or has failed.
    ResumeMember {
        /// The member.
        batch_member_id: u64,
    },
    /// Try the failed removal steps of a member again.
    RetryRemoval {
        /// The member.
        batch_member_id: u64,
    },
    /// Leave out a step, also one that has failed; the member goes on with the next.
    SkipStep {
        /// The step.
        step_execution_id: u64,
    },
    /// Give up an open step, and its member with it.
    CancelStep {
        /// The step.
        step_execution_id: u64,
    },
    /// Try the failed rollback of a step again.
    RetryRollback {
        /// The step.
        step_execution_id: u64,
    },
    /// Try the failed rollback of an init step again.
    RetryInitRollback {
        /// The init step.
        init_execution_id: u64,
    },
}

/// From where a failed member is tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryFrom {
    /// The step that failed.
    #[default]
    Step,
    /// The first step of the phase in which it failed.
    Phase,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It is stored and waits for the node that holds the batch.
    Waiting,
    /// It was applied.
    Applied,
    /// It was refused; `reason` has the cause.
    Refused,
    /// It changed nothing: what it is about had ended, or was done before.
    Ignored,
}

/// A request about a batch, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchRequest {
    /// Key of the request, by which it can be looked up for 7 days.
    pub key: String,
    /// What was requested.
    pub action: String,
    /// Id of the API key with which it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What became of it.
    pub state: RequestState,
    /// Why it was refused or changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was stored.
    pub posted_at: Timestamp,
    /// When it was applied or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}
