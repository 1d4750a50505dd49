//! How many instances there are, by state, name or failure.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::instance::Status;
use crate::several;

/// What instances are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountBy {
    /// Their state.
    #[default]
    Status,
    /// Their orchestration; calls are counted as `invoke`.
    Orchestration,
    /// The function that they call; what calls none is left out.
    Function,
    /// The code of their failure, or its category without one; what has not failed is left out.
    Failure,
}

/// Which instances are counted, and by what. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CountInstances {
    /// By what; by state without it.
    #[serde(default)]
    #[param(inline)]
    pub by: CountBy,
    /// Only ids that start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only in one of these states, repeated or with commas.
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
    /// Only created at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Timestamp>,
    /// Only created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// Only those that failed with this code, or with this category where there is no code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Only those that ended at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Timestamp>,
    /// Only those that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Timestamp>,
    /// Look at this many instances at most; 10,000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 100000)]
    pub limit: Option<usize>,
}

/// How many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceCounts {
    /// Most first, at most 100; the others are under `(others)`.
    pub counts: Vec<NamedCount>,
    /// All of them together.
    pub total: u64,
    /// Instances that were looked at, newest first.
    pub examined: u64,
    /// Whether older instances were not looked at, because of `limit` or because it took too long: the counts are those of
    /// the newest instances then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// When the oldest instance was created that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
}

/// How many there are of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedCount {
    /// A state, a name or a code.
    pub name: String,
    /// How many.
    pub count: u64,
}
