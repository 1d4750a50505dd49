//! Messages of the topic `orchestrator-events`. Their JSON is the seed's, in names, order and values.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::letter_case::with_known_names;
use crate::rows::{BatchId, MemberId, PhaseId};

/// A message of the topic `orchestrator-events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "messageType", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EventMessage {
    /// A new batch has init steps.
    BatchInit {
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// Its reference time; none in a manual batch.
        batch_start_time: Option<Timestamp>,
        /// Members that it has.
        member_count: u32,
    },
    /// A phase is due, and its steps exist.
    PhaseDue {
        /// Name of the runbook.
        runbook_name: String,
        /// Version of the phase.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// The phase.
        phase_execution_id: PhaseId,
        /// Its name.
        phase_name: String,
        /// Minutes before the batch's reference time.
        offset_minutes: u64,
        /// When it became due.
        due_at: Option<Timestamp>,
        /// The members that begin. A phase with many members has several messages.
        member_ids: Vec<MemberId>,
    },
    /// A member has joined a batch that exists.
    MemberAdded {
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// The member.
        batch_member_id: MemberId,
        /// Its key.
        member_key: String,
    },
    /// A member has left its batch.
    MemberRemoved {
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// The member.
        batch_member_id: MemberId,
        /// Its key.
        member_key: String,
    },
    /// The poll interval of a step has elapsed.
    PollCheck {
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// The step, or the init step.
        step_execution_id: u64,
        /// Its name.
        step_name: String,
        /// Polls so far.
        poll_count: u32,
        /// Whether it is an init step.
        #[serde(default, skip_serializing_if = "is_false")]
        is_init_step: bool,
    },
    /// The retry interval of a step has elapsed.
    RetryCheck {
        /// The step, or the init step.
        step_execution_id: u64,
        /// Whether it is an init step.
        is_init_step: bool,
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
    },
    /// A step was dispatched long ago, and no result has arrived.
    DispatchTimeout {
        /// The step, or the init step.
        step_execution_id: u64,
        /// Whether it is an init step.
        is_init_step: bool,
        /// Name of the runbook.
        runbook_name: String,
        /// Its version.
        runbook_version: u32,
        /// The batch.
        batch_id: BatchId,
        /// Name of the step.
        step_name: String,
        /// When it was dispatched.
        dispatched_at: Timestamp,
    },
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

const NAMES: &[&str] = &[
    "messageType",
    "runbookName",
    "runbookVersion",
    "batchId",
    "batchStartTime",
    "memberCount",
    "phaseExecutionId",
    "phaseName",
    "offsetMinutes",
    "dueAt",
    "memberIds",
    "batchMemberId",
    "memberKey",
    "stepExecutionId",
    "stepName",
    "pollCount",
    "isInitStep",
    "dispatchedAt",
];

impl EventMessage {
    /// Reads a message; names may begin with a capital letter, as some senders write them.
    ///
    /// # Errors
    /// When it is not JSON, of an unknown type, or without a field that it needs.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let value = serde_json::from_slice(body)?;
        serde_json::from_value(with_known_names(value, NAMES))
    }

    /// The value of the property `MessageType`.
    pub fn message_type(&self) -> &'static str {
        match self {
            EventMessage::BatchInit { .. } => "batch-init",
            EventMessage::PhaseDue { .. } => "phase-due",
            EventMessage::MemberAdded { .. } => "member-added",
            EventMessage::MemberRemoved { .. } => "member-removed",
            EventMessage::PollCheck { .. } => "poll-check",
            EventMessage::RetryCheck { .. } => "retry-check",
            EventMessage::DispatchTimeout { .. } => "dispatch-timeout",
        }
    }

    /// The batch that it is about.
    pub fn batch_id(&self) -> BatchId {
        match self {
            EventMessage::BatchInit { batch_id, .. }
            | EventMessage::PhaseDue { batch_id, .. }
            | EventMessage::MemberAdded { batch_id, .. }
            | EventMessage::MemberRemoved { batch_id, .. }
            | EventMessage::PollCheck { batch_id, .. }
            | EventMessage::RetryCheck { batch_id, .. }
            | EventMessage::DispatchTimeout { batch_id, .. } => *batch_id,
        }
    }
}
