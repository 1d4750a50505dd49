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

const TYPES: &[&str] = &[
    "batch-init",
    "phase-due",
    "member-added",
    "member-removed",
    "poll-check",
    "retry-check",
    "dispatch-timeout",
];

/// Why a message is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventProblem {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    NotJson(String),
    /// Neither the body nor the property names a type.
    #[error("neither the property MessageType nor the field messageType names its type")]
    NoType,
    /// There is no such type.
    #[error("there is no message type {0:?}")]
    UnknownType(String),
    /// Body and property differ.
    #[error("the field messageType is {own:?}, the property MessageType is {named:?}")]
    OtherType {
        /// In the body.
        own: String,
        /// In the property.
        named: String,
    },
    /// A field is missing, or has a value that it cannot have.
    #[error("{0}")]
    Fields(String),
}

impl EventMessage {
    /// Reads a message; names may begin with a capital letter, as some senders write them.
    ///
    /// # Errors
    /// When it is not JSON, of an unknown type, or without a field that it needs.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let value = serde_json::from_slice(body)?;
        serde_json::from_value(with_known_names(value, NAMES))
    }

    /// Reads a message whose property `MessageType` is known. The body may leave its own type out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_as(body: &[u8], message_type: Option<&str>) -> Result<Self, EventProblem> {
        let value = serde_json::from_slice(body).map_err(|error| EventProblem::NotJson(error.to_string()))?;
        let mut value = with_known_names(value, NAMES);
        let fields =
            value.as_object_mut().ok_or_else(|| EventProblem::NotJson("it is no object".to_owned()))?;
        let own = fields.get("messageType").and_then(|own| own.as_str()).map(str::to_ascii_lowercase);
        let named = message_type.map(str::to_ascii_lowercase);
        if let (Some(own), Some(named)) = (&own, &named)
            && own != named
        {
            return Err(EventProblem::OtherType { own: own.clone(), named: named.clone() });
        }
        let of = own.or(named).ok_or(EventProblem::NoType)?;
        if !TYPES.contains(&of.as_str()) {
            return Err(EventProblem::UnknownType(of));
        }
        fields.insert("messageType".to_owned(), of.into());
        serde_json::from_value(value).map_err(|error| EventProblem::Fields(error.to_string()))
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
