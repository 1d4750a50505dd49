//! What happens to instances, batches and runs, as it happens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::batch::BatchStatus;
use crate::instance::{Kind, Status};
use crate::run::{RunStatus, TaskStatus};
use crate::several;

/// What happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Its first execution began.
    Started,
    /// Its code set or cleared its status.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The instance.
    pub id: String,
    /// What happened.
    pub change: ChangeKind,
    /// When a node noticed that it was committed.
    pub at: Timestamp,
    /// In which execution.
    pub execution: u64,
    /// The state that it led to.
    pub status: Status,
    /// The orchestration, `invoke` for a call of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The function that it calls; absent for an orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What made it; absent for an orchestration that a caller or its parent started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What one commit changed in a batch: the new states of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchChange {
    /// Id of the batch.
    pub batch: u64,
    /// Name of its runbook.
    pub runbook: String,
    /// State of the batch.
    pub status: BatchStatus,
    /// When a node committed it.
    pub at: Timestamp,
    /// Rows with another state than before: the batch, phases, init steps, members, steps. At most 50; the others are counted
    /// in `left_out`.
    #[serde(default)]
    pub rows: Vec<RowChange>,
    /// How many further rows have changed, by kind and new state, as in `{"step":{"pending":950}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<RowKind, BTreeMap<String, u64>>,
}

/// What was published of a run of a DAG: the new states of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunChange {
    /// Id of the run.
    pub run: String,
    /// Name of its DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// State of the run.
    pub status: RunStatus,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// When a node noticed that it was published.
    pub at: Timestamp,
    /// Tasks that have changed, by key. At most 50; the others are counted in `left_out`.
    #[serde(default)]
    pub tasks: Vec<TaskChange>,
    /// How many further tasks have changed, by their new state, as in `{"ready":950}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<TaskStatus, u64>,
}

/// The new state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskChange {
    /// Its key.
    pub key: String,
    /// Its state.
    pub status: TaskStatus,
    /// Its attempt; 0 before the first.
    pub attempt: u32,
}

/// The data of an event: `change` has the first form, `batch` the second, `run` the third.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum FollowedChange {
    /// Of an instance.
    Instance(Change),
    /// Of a batch of a runbook.
    Batch(BatchChange),
    /// Of a run of a DAG.
    Run(RunChange),
}

/// Which row of a batch a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The batch.
    Batch,
    /// A phase.
    Phase,
    /// An init step.
    Init,
    /// A member.
    Member,
    /// A step of a member.
    Step,
    /// The rollback of a step; `id` is that of the step.
    Rollback,
    /// The rollback of an init step; `id` is that of the init step.
    InitRollback,
    /// Removal steps of a member; `id` is that of the member.
    Removal,
}

/// The new state of a row of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RowChange {
    /// Which kind of row.
    pub kind: RowKind,
    /// Its id.
    pub id: u64,
    /// Its state, as in the row: `succeeded`, `polling`.
    pub status: String,
    /// What keeps it from going on: `paused`, `approval` or `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The phase of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u64>,
    /// The member of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
}

/// Which changes to follow. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FollowChanges {
    /// Only of instances whose ids start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only changes that led to one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
    #[serde(
        default,
        skip_serializing_if = "several::is_sent_apart",
        deserialize_with = "several::deserialize"
    )]
    #[param(inline)]
    pub status: Vec<Status>,
    /// Only of this orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Only of calls of this function, whatever made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only of instances with all of these labels, each `key=value`.
    #[serde(
        default,
        skip_serializing_if = "several::is_sent_apart",
        deserialize_with = "several::deserialize"
    )]
    #[param(pattern = "^[^=]+=")]
    pub label: Vec<String>,
    /// Only changes of this batch of a runbook, and none of instances. Without it, changes of batches are shown unless a filter
    /// of instances is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Only changes of this run of a DAG, and none of instances or batches. Without it, changes of runs are shown unless a filter
    /// of instances or `batch` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}
