//! A new execution: the first of an instance, the next after continue-as-new, or one that begins by
//! a restart.

use crate::event::Started;
use crate::store::ENGINE_VERSION;
use crate::work_item::{ContinueAsNew, StartOrchestration};

/// An execution that is about to begin.
pub(super) struct Begin {
    /// The requested version, if any.
    pub(super) version: Option<String>,
    pub(super) execution_id: u64,
    /// Whether the previous execution continued as this one.
    pub(super) continues: bool,
    /// What will be recorded; its version is filled in when the code is found.
    pub(super) started: Started,
}

impl Begin {
    /// The execution that a start begins.
    pub(super) fn first(start: StartOrchestration, execution_id: u64, seed: u64) -> Self {
        Begin {
            version: start.version,
            execution_id,
            continues: false,
            started: Started {
                name: start.orchestration,
                version: String::new(),
                input: start.input,
                parent: start.parent,
                seed: start.seed.unwrap_or(seed),
                carried: Vec::new(),
                seen_message_ids: Vec::new(),
                custom_status: None,
                labels: start.labels,
                traceparent: start.traceparent,
                settle: start.settle,
                engine_version: ENGINE_VERSION.to_owned(),
                first_execution_id: Some(execution_id).filter(|id| *id > 1),
            },
        }
    }

    pub(super) fn next(next: ContinueAsNew, seed: u64) -> Self {
        Begin {
            version: next.version,
            execution_id: next.execution_id,
            continues: true,
            started: Started {
                name: next.orchestration,
                version: String::new(),
                input: next.input,
                parent: next.parent,
                seed,
                carried: next.carried,
                seen_message_ids: next.seen_message_ids,
                custom_status: next.custom_status,
                labels: next.labels,
                traceparent: next.traceparent,
                settle: next.settle,
                engine_version: ENGINE_VERSION.to_owned(),
                first_execution_id: next.first_execution_id,
            },
        }
    }

    /// The start that begins it later, or on another node.
    pub(super) fn into_start(self) -> StartOrchestration {
        StartOrchestration {
            orchestration: self.started.name,
            input: self.started.input,
            version: self.version,
            parent: self.started.parent,
            labels: self.started.labels,
            start_at_ms: None,
            traceparent: self.started.traceparent,
            execution_id: Some(self.execution_id),
            seed: Some(self.started.seed),
            settle: self.started.settle,
            follows_another: false,
        }
    }

    /// What will be recorded of an execution whose code is not found.
    pub(super) fn started_without_code(self) -> Started {
        let version = self.version.unwrap_or_else(|| "0.0.0".to_owned());
        Started { version, ..self.started }
    }

    pub(super) fn describe(&self) -> String {
        match &self.version {
            Some(version) => format!("{:?} {version}", self.started.name),
            None => format!("{:?}", self.started.name),
        }
    }
}
