//! What happens to instances, as it happens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::instance::{Kind, Status};
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

/// Which changes to follow. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FollowChanges {
    /// Only of instances whose ids start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only changes that led to one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
    #[serde(default, skip_serializing, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<Status>,
    /// Only of this orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Only of calls of this function, whatever made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only of instances with all of these labels, each `key=value`.
    #[serde(default, skip_serializing, deserialize_with = "several::deserialize")]
    #[param(pattern = "^[^=]+=")]
    pub label: Vec<String>,
}
