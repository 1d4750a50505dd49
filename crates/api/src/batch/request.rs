//! Requests about batches, and what became of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is requested of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum BatchAction {
    /// Begin init or the next phase of a batch that is advanced by hand.
    Advance {},
    /// Send nothing new; what is running goes on.
    PauseBatch {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Go on after a pause.
    ResumeBatch {},
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
    RetryInit {},
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
    /// Code of the refusal: `batch-request-refused`, or `not-found` when the batch has no row that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// When it was stored.
    pub posted_at: Timestamp,
    /// When it was applied or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}
