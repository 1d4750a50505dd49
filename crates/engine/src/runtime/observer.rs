//! Reports of committed changes to an observer in the same process.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Output, Started};
use crate::replay::find_started;
use crate::store::{AckOrchestrationItem, ExecutionStatus};

/// What happened to an instance. Nodes exchange the names, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Its first execution began.
    Started,
    /// Its code set or cleared the custom status.
    StatusChanged,
    /// It is paused.
    Paused,
    /// It was resumed after a pause.
    Resumed,
    /// It continues as a new execution.
    ContinuedAsNew,
    /// It ended with a result.
    Completed,
    /// It ended with a failure.
    Failed,
    /// It ended because it was cancelled.
    Cancelled,
}

/// Something that happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceChange<'a> {
    /// The instance.
    pub instance: &'a str,
    /// The execution that it happened in.
    pub execution_id: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The execution that ended, if one did and its start could be read.
    pub ended: Option<EndedExecution<'a>>,
}

/// An execution that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedExecution<'a> {
    /// Its orchestration.
    pub orchestration: &'a str,
    /// Labels of the instance when it began.
    pub labels: &'a BTreeMap<String, String>,
    /// When it began, in Unix milliseconds.
    pub started_at_ms: u64,
    /// When it ended, in Unix milliseconds.
    pub ended_at_ms: u64,
    /// Code of the failure that it ended with; its category if that has no code.
    pub failure: Option<&'a str>,
}

/// The lifetime of an execution, for the report of its end.
#[derive(Debug, Clone)]
pub(super) struct ExecutionSpan {
    pub(super) started: Arc<Started>,
    pub(super) started_at_ms: u64,
    pub(super) ended_at_ms: u64,
}

impl ExecutionSpan {
    /// For an execution whose code does not run, if its start can be read.
    pub(super) fn of_history(history: &[Event], ended_at_ms: u64) -> Option<Self> {
        let (at, started) = find_started(history)?;
        Some(ExecutionSpan { started: Arc::clone(started), started_at_ms: history[at].at_ms, ended_at_ms })
    }
}

/// Reports what a commit has changed.
pub(super) fn report(
    observer: &dyn Observer,
    instance: &str,
    turn: &AckOrchestrationItem,
    span: Option<&ExecutionSpan>,
) {
    for kind in kinds_of(turn) {
        let ends = matches!(kind, ChangeKind::Completed | ChangeKind::Failed | ChangeKind::Cancelled);
        let span = span.filter(|_| ends);
        let failure = span.filter(|_| kind == ChangeKind::Failed).and_then(|_| failure_code(turn));
        let ended = span.map(|span| EndedExecution {
            orchestration: &span.started.name,
            labels: &span.started.labels,
            started_at_ms: span.started_at_ms,
            ended_at_ms: span.ended_at_ms,
            failure: failure.as_deref(),
        });
        observer.committed(InstanceChange { instance, execution_id: turn.execution_id, kind, ended });
    }
}

fn failure_code(turn: &AckOrchestrationItem) -> Option<String> {
    match Output::decode(turn.metadata.output.as_ref()?) {
        Ok(Output::Failed(failure)) => Some(failure.code.unwrap_or_else(|| failure.category.to_string())),
        _ => None,
    }
}

/// Receives reports of what the turns of a node have changed.
pub trait Observer: Send + Sync + 'static {
    /// A turn is committed. Called between two turns of the instance's node, so it must be quick
    /// and never wait.
    fn committed(&self, change: InstanceChange<'_>);

    /// A timer was delivered so long after its time. Must be quick and never wait, too.
    fn timer_fired(&self, instance: &str, late_ms: u64) {
        let _ = (instance, late_ms);
    }
}

/// What a commit changes, in the order in which it happened.
fn kinds_of(turn: &AckOrchestrationItem) -> impl Iterator<Item = ChangeKind> + use<> {
    let metadata = &turn.metadata;
    let begins = metadata.pinned_version.is_some();
    let started = (begins && turn.execution_id == 1).then_some(ChangeKind::Started);
    let status = metadata.custom_status.is_some().then_some(ChangeKind::StatusChanged);
    let state = metadata.status.and_then(|status| match status {
        ExecutionStatus::Completed => Some(ChangeKind::Completed),
        ExecutionStatus::Failed => Some(ChangeKind::Failed),
        ExecutionStatus::Cancelled => Some(ChangeKind::Cancelled),
        ExecutionStatus::Paused => Some(ChangeKind::Paused),
        ExecutionStatus::ContinuedAsNew => Some(ChangeKind::ContinuedAsNew),
        ExecutionStatus::Running => (!begins).then_some(ChangeKind::Resumed),
        ExecutionStatus::Pending => None,
    });
    [started, status, state].into_iter().flatten()
}
