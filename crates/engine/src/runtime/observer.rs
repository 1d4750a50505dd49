//! Telling somebody in the process what happened to instances, after it was committed.

use serde::{Deserialize, Serialize};

use crate::store::{AckOrchestrationItem, ExecutionStatus};

/// What happened to an instance. The names are for ever: nodes tell them each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Its first execution began.
    Started,
    /// Its code set or cleared the custom status.
    StatusChanged,
    /// It is held.
    Paused,
    /// It goes on after a pause.
    Resumed,
    /// It goes on as a new execution.
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
}

/// Hears of what the turns of a node have changed.
pub trait Observer: Send + Sync + 'static {
    /// A turn is committed. Called between two turns of the instance's node, so it must be quick and never wait.
    fn committed(&self, change: InstanceChange<'_>);
}

/// What a commit changes, in the order in which it happened.
pub(super) fn kinds_of(turn: &AckOrchestrationItem) -> impl Iterator<Item = ChangeKind> + use<> {
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
