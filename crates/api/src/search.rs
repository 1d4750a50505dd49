//! Search across kinds, by how ids and names begin.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// How an id or name begins; 1 to 200 bytes. Names of schedules are compared without letter case.
    #[param(min_length = 1, max_length = 200)]
    pub q: String,
    /// At most this many of each kind; 5 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 20)]
    pub limit: Option<usize>,
}

/// What something is that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// An instance, by its id.
    Instance,
    /// A function, by its name.
    Function,
    /// A recurring action, by its name or id.
    Schedule,
    /// An action, by its id.
    Action,
    /// A runbook, by its name.
    Runbook,
    /// A batch, by its number.
    Batch,
    /// A DAG, by its name.
    Dag,
    /// A webhook, by its route.
    Hook,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchHit {
    /// What it is.
    pub kind: SearchKind,
    /// What it is asked for by: its id or name.
    pub id: String,
    /// What people call it, if that is something else: the name of a schedule, the orchestration or function of an instance, the
    /// runbook of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its state, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchResult {
    /// By kind, and within a kind in the order of its list.
    pub hits: Vec<SearchHit>,
    /// Kinds of which there may be more than was found: a search looks at a bounded number of rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<SearchKind>,
}
