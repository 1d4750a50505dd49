//! Instances: starting, reading, steering and listing them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::call::CallDetails;
use crate::unreadable::Unreadable;
use crate::{Json, several};

/// State of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its start lies ahead.
    Pending,
    /// Started and not ended.
    Running,
    /// Held by an operator, or by an activity that used up its attempts.
    Paused,
    /// Ended with a result.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Ended because it was cancelled.
    Cancelled,
    /// Between two executions.
    ContinuedAsNew,
}

/// What made an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A caller called a function.
    Call,
    /// An action whose time had come.
    Action,
    /// An occurrence of a recurring action.
    Schedule,
    /// A payload of a webhook.
    Hook,
    /// A step of a runbook.
    Runbook,
    /// A task of a DAG run.
    Dag,
}

impl Kind {
    /// The name, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Call => "call",
            Kind::Action => "action",
            Kind::Schedule => "schedule",
            Kind::Hook => "hook",
            Kind::Runbook => "runbook",
            Kind::Dag => "dag",
        }
    }
}

/// What a start does when there is an instance of the id already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Answers 409.
    #[default]
    Reject,
    /// Takes the one that is there, whatever its state.
    UseExisting,
    /// Begins the next execution of the one that is there; its earlier executions stay. One that has not ended is cancelled in the
    /// same step, with its children.
    Replace,
}

/// A start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartInstance {
    /// Name of the orchestration.
    #[schema(example = "greet")]
    pub orchestration: String,
    /// Version of the orchestration; the registered default without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Id of the instance; a new one without it. With an id a start can be repeated safely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Input; `null` without it.
    #[serde(default = "Json::null")]
    pub input: Json,
    /// Labels to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// What to do when there is one of this id already.
    #[serde(default)]
    pub on_conflict: OnConflict,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// Its namespace.
    pub namespace: String,
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub id: String,
    /// Name of its orchestration, `invoke` for a call of a function; absent until its first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The function that it calls; absent for an orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What made it; absent for an orchestration that a caller or its parent started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Version of its orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// State.
    pub status: Status,
    /// Number of the current execution, from 1.
    pub execution: u64,
    /// Its result, when it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Its failure, when it failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    /// Status that its code has set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<Json>,
    /// Raised by every change of the custom status.
    pub custom_status_version: u64,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Id of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its delayed start is due, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// When something was last committed for it.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Raised by every commit; also its `ETag`.
    pub revision: u64,
    /// What of its stored data cannot be read, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Whether it is in the archive: retention has removed it from the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// How far a call of a function is; only of one instance, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallDetails>>,
}

impl Instance {
    /// What people call what it runs: the function of a call, else the orchestration.
    pub fn shown_name(&self) -> Option<&str> {
        self.function.as_deref().or(self.orchestration.as_deref())
    }
}

/// How something failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// `application`, `timeout`, `cancelled`, `configuration`, `infrastructure` or `poison`.
    pub category: String,
    /// What happened, for people.
    pub message: String,
    /// A stable word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Anything that the code handed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

/// The answer to a start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Started {
    /// Its namespace.
    pub namespace: String,
    /// Its tenant.
    pub tenant: String,
    /// Id of the instance.
    pub id: String,
    /// Whether this call made it.
    pub created: bool,
    /// The instance at its end, if the call waited for it and it ended in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Box<Instance>>,
}

/// A page of instances, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InstanceList {
    /// The instances.
    pub instances: Vec<Instance>,
    /// Instances whose rows cannot be read. Whether they meet the filters is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which instances to list. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListInstances {
    /// Only ids that start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
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
    /// Only calls of this function, whatever made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only with all of these labels, each `key=value`.
    #[serde(
        default,
        skip_serializing_if = "several::is_sent_apart",
        deserialize_with = "several::deserialize"
    )]
    #[param(pattern = "^[^=]+=")]
    pub label: Vec<String>,
    /// Only children of this instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Only created at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Timestamp>,
    /// Only created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// Only those that failed with this code, or with this category where there is no code. For this and all that follow rows are
    /// looked at, not found by an index: a page may have fewer than `limit` although more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Only those that ended at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Timestamp>,
    /// Only those that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Timestamp>,
    /// Only those that took longer than this from their start to their end, or to now if they have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
    /// Only those that took less than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shorter_than_ms: Option<u64>,
    /// At most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Why something is done to an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Kept in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A signal, or a message for a mailbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// Name of the signal or mailbox.
    #[schema(example = "approved")]
    pub name: String,
    /// What is sent.
    #[serde(default = "Json::null")]
    pub data: Json,
    /// The sender's id of this message; repeats are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Answer to something that was accepted and will be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// Id of the instance.
    pub id: String,
}

/// A new start with the input of the last one, or with another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Also when the instance has not ended: its execution is cancelled in the same step.
    #[serde(default)]
    pub force: bool,
    /// Start it under this id and leave the old one as it is; without it the next execution of the instance begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_id: Option<String>,
    /// Begin with this input; with that of the last start without it. The input of a call is checked against the schema of its
    /// function.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub input: Option<Json>,
    /// Why; kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A field that is there, also when it is `null`.
fn given<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(field).map(Some)
}

/// What was retried at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retried {
    /// The instance.
    pub id: String,
    /// Activities that were delayed and may run now.
    pub activities: u64,
}

/// An instance in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeNode {
    /// Its id.
    pub id: String,
    /// Generations below the root; 0 is the root itself.
    pub depth: usize,
    /// Id of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Name of its orchestration; absent until its first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The function that it calls; absent for an orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// State.
    pub status: Status,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// A page of an instance and its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tree {
    /// The root.
    pub root: String,
    /// Depth first: each before its children, those newest first. The root is first of all.
    pub nodes: Vec<TreeNode>,
    /// Children on this page that cannot be read, which are not among the nodes, nor is what is
    /// below them; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The custom status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CustomStatus {
    /// The status; absent when it was removed or never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Json>,
    /// Its version, to wait for the next change.
    pub version: u64,
    /// Whether the instance has ended: there will be no further change.
    pub ended: bool,
}

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deleted {
    /// Instances, descendants included.
    pub instances: u64,
    /// Events.
    pub events: u64,
    /// Queued messages.
    pub queued_messages: u64,
}
