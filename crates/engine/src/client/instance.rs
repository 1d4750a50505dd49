//! What a client sees of an instance.

use std::collections::BTreeMap;

use crate::event::{Event, Output};
use crate::failure::Failure;
use crate::names::START_AT_LABEL;
use crate::payload::Payload;
use crate::store::{
    ExecutionInfo, ExecutionStatus, InstanceCursor, InstanceInfo, UnreadableEvents, UnreadableInstance,
};

/// An instance as it was when it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// Orchestration name; `None` while only messages that came before the start are there.
    pub orchestration: Option<String>,
    /// Orchestration version.
    pub version: Option<String>,
    /// Number of the current execution, from 1.
    pub execution_id: u64,
    /// State of the current execution.
    pub status: ExecutionStatus,
    /// How it ended, or why it is paused.
    pub output: Option<Output>,
    /// Custom status, as the code set it.
    pub custom_status: Option<Payload>,
    /// Raised by every change of the custom status.
    pub custom_status_version: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Parent instance.
    pub parent: Option<String>,
    /// When it was created, in Unix milliseconds.
    pub created_at_ms: u64,
    /// When its delayed start is due, in Unix milliseconds, while it is pending.
    pub start_at_ms: Option<u64>,
    /// When something was last committed for it.
    pub updated_at_ms: u64,
    /// When it ended.
    pub completed_at_ms: Option<u64>,
    /// Raised by every commit.
    pub revision: u64,
    /// What of its stored data cannot be read, and why. The rest is shown, and it can be deleted.
    pub unreadable: Option<String>,
}

impl Instance {
    pub(crate) fn from_info(info: InstanceInfo) -> Self {
        let mut unreadable = None;
        let output = info.output.as_ref().map(|bytes| Output::decode(bytes)).transpose();
        let output = output.unwrap_or_else(|reason| {
            unreadable = Some(format!("its output cannot be read: {reason}"));
            None
        });
        // The row keeps the reason of the last pause until the end replaces it.
        let output = output
            .filter(|output| info.status == ExecutionStatus::Paused || !matches!(output, Output::Paused(_)));
        let custom_status = info.custom_status.as_ref().map(|bytes| read_status(bytes)).transpose();
        let custom_status = custom_status.unwrap_or_else(|reason| {
            unreadable = Some(format!("its custom status cannot be read: {reason}"));
            None
        });
        // The label may outlive the start: code without labels of its own writes none.
        let mut labels = info.labels;
        let start_at_ms = labels.remove(START_AT_LABEL).and_then(|at_ms| at_ms.parse().ok());
        let start_at_ms = start_at_ms.filter(|_| info.status == ExecutionStatus::Pending);
        Instance {
            output,
            custom_status,
            unreadable,
            id: info.instance_id,
            orchestration: info.orchestration_name.as_deref().map(str::to_owned),
            version: info.orchestration_version.as_deref().map(str::to_owned),
            execution_id: info.current_execution_id,
            status: info.status,
            custom_status_version: info.custom_status_version,
            labels,
            parent: info.parent_instance_id,
            created_at_ms: info.created_at_ms,
            start_at_ms,
            updated_at_ms: info.updated_at_ms,
            completed_at_ms: info.completed_at_ms,
            revision: info.revision,
        }
    }

    /// An instance whose start is queued since a time.
    pub(super) fn queued(id: &str, since_ms: u64) -> Self {
        Instance {
            id: id.to_owned(),
            orchestration: None,
            version: None,
            execution_id: 1,
            status: ExecutionStatus::Pending,
            output: None,
            custom_status: None,
            custom_status_version: 0,
            labels: BTreeMap::new(),
            parent: None,
            created_at_ms: since_ms,
            start_at_ms: None,
            updated_at_ms: since_ms,
            completed_at_ms: None,
            revision: 0,
            unreadable: None,
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.status.is_terminal()
    }

    /// The failure with which it ended.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.output {
            Some(Output::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The result with which it ended.
    pub fn result(&self) -> Option<&Payload> {
        match &self.output {
            Some(Output::Completed(result)) => Some(result),
            _ => None,
        }
    }

    /// Why it is paused.
    pub fn pause_reason(&self) -> Option<&str> {
        match &self.output {
            Some(Output::Paused(reason)) if self.status == ExecutionStatus::Paused => Some(reason),
            _ => None,
        }
    }
}

/// A page of a history, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct EventList {
    /// The events.
    pub events: Vec<Event>,
    /// Events that cannot be read.
    pub unreadable: Vec<UnreadableEvents>,
    /// After which event the next page starts; `None` when this is the last.
    pub next: Option<u64>,
}

/// A page of executions, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionList {
    /// The executions.
    pub executions: Vec<ExecutionInfo>,
    /// Executions whose rows cannot be read, by number, and why.
    pub unreadable: Vec<(u64, String)>,
    /// Before which execution the next page begins; `None` when this is the last.
    pub next: Option<u64>,
}

/// A page of instances, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceList {
    /// The instances.
    pub instances: Vec<Instance>,
    /// Instances whose rows cannot be read, in the same order. They count like the others.
    pub unreadable: Vec<UnreadableInstance>,
    /// Why instances are missing whose ids cannot be read either.
    pub damaged: Option<String>,
    /// Where the next page starts; `None` when this is the last.
    pub next: Option<InstanceCursor>,
}

fn read_status(bytes: &[u8]) -> Result<Payload, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    Payload::stored(text).map_err(|error| error.to_string())
}
