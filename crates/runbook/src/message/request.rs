//! What people, data sources and publishers request of a batch.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::rows::{BatchId, InitId, MemberId, PhaseId, RetryFrom, RunbookId, StepId};

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Key of the message in the inbox.
    pub key: String,
    /// Who requested it, for the audit and for `approved_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What is requested.
    #[serde(flatten)]
    pub action: Action,
}

/// What is requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Action {
    /// Create the batch, without members. Nothing begins before it is sealed.
    CreateBatch {
        /// Id of the batch, which its creator has drawn.
        batch_id: BatchId,
        /// The version of the runbook, as a row.
        runbook_id: RunbookId,
        /// Name of the runbook.
        runbook_name: String,
        /// Version of the runbook.
        runbook_version: u32,
        /// Reference time of the phases; none for a manual batch.
        batch_start_time: Option<Timestamp>,
    },
    /// Add members, update the data of those that exist, and take back those that had left.
    PutMembers {
        /// The members.
        members: Vec<MemberEntry>,
    },
    /// Remove members that the source no longer has.
    RemoveMembers {
        /// Their keys.
        keys: Vec<String>,
    },
    /// All first members were sent: the batch may begin.
    Seal,
    /// Begin init or the next phase of a manual batch.
    Advance,
    /// Approve a phase, also before it is due.
    ApprovePhase {
        /// The phase.
        phase_execution_id: PhaseId,
    },
    /// Refuse a phase: it fails without having begun.
    RejectPhase {
        /// The phase.
        phase_execution_id: PhaseId,
    },
    /// Send nothing new; what is at work goes on.
    PauseBatch {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Go on after a pause.
    ResumeBatch,
    /// Go on with a phase whose error budget was spent, with a fresh budget.
    ResumePhase {
        /// The phase.
        phase_execution_id: PhaseId,
    },
    /// Go on with a member that was cancelled or has failed.
    ResumeMember {
        /// The member.
        batch_member_id: MemberId,
    },
    /// Give up the batch.
    CancelBatch {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Give up a phase: its open steps are cancelled, and it fails.
    CancelPhase {
        /// The phase.
        phase_execution_id: PhaseId,
    },
    /// Give up a member: its open steps are cancelled.
    CancelMember {
        /// The member.
        batch_member_id: MemberId,
    },
    /// Give up an open step, and its member with it.
    CancelStep {
        /// The step.
        step_execution_id: StepId,
    },
    /// Leave out a phase.
    SkipPhase {
        /// The phase.
        phase_execution_id: PhaseId,
    },
    /// Leave out a step, also one that has failed; the member goes on with the next.
    SkipStep {
        /// The step.
        step_execution_id: StepId,
    },
    /// Try failed members again; all of them unless some are named.
    RetryMembers {
        /// Members to try again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch_member_ids: Option<Vec<MemberId>>,
        /// From where.
        #[serde(default)]
        from: RetryFrom,
    },
    /// Try the failed init step of a failed batch again.
    RetryInit,
    /// Try the failed rollback of a step again, from the step of it that failed.
    RetryRollback {
        /// The step.
        step_execution_id: StepId,
    },
    /// Try the failed rollback of an init step again.
    RetryInitRollback {
        /// The init step.
        init_execution_id: InitId,
    },
    /// Try the failed removal steps of a member again.
    RetryRemoval {
        /// The member.
        batch_member_id: MemberId,
    },
    /// Move the reference time; phases that have not begun move with it.
    Reschedule {
        /// The new reference time.
        batch_start_time: Timestamp,
    },
    /// A newer version of the runbook was published.
    PublishVersion {
        /// The version, as a row.
        runbook_id: RunbookId,
        /// The version.
        runbook_version: u32,
        /// What happens to phases that were due before.
        overdue_behavior: OverdueBehavior,
        /// Whether the init steps of the new version run.
        #[serde(default)]
        rerun_init: bool,
    },
}

/// A member as its source has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberEntry {
    /// Value of the primary key column.
    pub key: String,
    /// All columns.
    pub data: Map<String, Value>,
    /// Digest of the columns, by which the next query finds out whether they have changed.
    #[serde(default)]
    pub digest: String,
}

/// What happens to phases of a new version that were due before it was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverdueBehavior {
    /// They run at once.
    #[default]
    Rerun,
    /// They are skipped, unless the older version had not begun them.
    Ignore,
}

impl Action {
    /// Name of the action, as in its JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Action::CreateBatch { .. } => "create-batch",
            Action::PutMembers { .. } => "put-members",
            Action::RemoveMembers { .. } => "remove-members",
            Action::Seal => "seal",
            Action::Advance => "advance",
            Action::ApprovePhase { .. } => "approve-phase",
            Action::RejectPhase { .. } => "reject-phase",
            Action::PauseBatch { .. } => "pause-batch",
            Action::ResumeBatch => "resume-batch",
            Action::ResumePhase { .. } => "resume-phase",
            Action::ResumeMember { .. } => "resume-member",
            Action::CancelBatch { .. } => "cancel-batch",
            Action::CancelPhase { .. } => "cancel-phase",
            Action::CancelMember { .. } => "cancel-member",
            Action::CancelStep { .. } => "cancel-step",
            Action::SkipPhase { .. } => "skip-phase",
            Action::SkipStep { .. } => "skip-step",
            Action::RetryMembers { .. } => "retry-members",
            Action::RetryInit => "retry-init",
            Action::RetryRollback { .. } => "retry-rollback",
            Action::RetryInitRollback { .. } => "retry-init-rollback",
            Action::RetryRemoval { .. } => "retry-removal",
            Action::Reschedule { .. } => "reschedule",
            Action::PublishVersion { .. } => "publish-version",
        }
    }
}
