//! The state of a node and of the store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A node and its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct System {
    /// Version of the server.
    pub version: String,
    /// Name of the node that answered.
    pub node: String,
    /// What the node does: `api`, `orchestrator`, `worker`.
    pub roles: Vec<String>,
    /// Kind of store.
    pub store: String,
    /// Orchestrations that the node knows, with their versions.
    pub orchestrations: BTreeMap<String, Vec<String>>,
    /// Counts over the whole store.
    pub counts: Counts,
}

/// Counts over the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// All instances.
    pub instances: u64,
    /// Whose start lies ahead.
    pub pending: u64,
    /// That run.
    pub running: u64,
    /// That are held.
    pub paused: u64,
    /// That completed.
    pub completed: u64,
    /// That failed.
    pub failed: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// All executions.
    pub executions: u64,
    /// All events.
    pub events: u64,
}

/// Lengths of the queues at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queues {
    /// Messages for instances that nobody has taken yet.
    pub orchestrator: u64,
    /// Activities that nobody has taken yet.
    pub worker: u64,
    /// What is not due yet, of both queues.
    pub delayed: u64,
    /// Messages for instances that are not due yet.
    #[serde(default)]
    pub orchestrator_delayed: u64,
    /// Activities that are not due yet.
    #[serde(default)]
    pub worker_delayed: u64,
    /// What somebody works on.
    pub locked: u64,
}

/// Whether a node is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// What does not work although the server does, such as writing to the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
