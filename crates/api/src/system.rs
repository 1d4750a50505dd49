//! The state of a node and of the store.

use std::collections::BTreeMap;

use jiff::Timestamp;
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

/// A node that was heard of in the last hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Whether it works.
    pub state: NodeState,
    /// Its version.
    pub version: String,
    /// What it does: `api`, `orchestrator`, `worker`.
    pub roles: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it was last heard of, by the clock of the store. A node that is up may have been heard of 10 seconds ago.
    pub last_seen_at: Timestamp,
    /// When it stopped, if it did so in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// Turns that it runs at once.
    pub orchestrations: usize,
    /// Functions that it runs at once.
    pub functions: usize,
    /// It takes also work with one of these tags.
    pub tags: Vec<String>,
}

/// Whether a node works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It was heard of within 35 seconds.
    Up,
    /// It has stopped in order.
    Stopped,
    /// It is silent and has not stopped in order: it was killed, or cannot reach the store.
    Lost,
}

/// Nodes, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// What the store takes on its disk. Figures that a store does not have are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreFigures {
    /// Kind of store.
    pub store: String,
    /// Where it is, without passwords.
    pub place: String,
    /// Bytes of all its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Of these, bytes of its log, which a checkpoint has not freed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Size of the disk that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// What is free on that disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// Damage that the store has met, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// A setting of the node that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// Its name, as in `server.listen`.
    pub setting: String,
    /// Its value as TOML; `unset` without one. Secrets are left out.
    pub value: String,
    /// Where it comes from: `default`, `program`, a file, `$VARIABLE` or `--flag`.
    pub origin: String,
}

/// Settings, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingList {
    /// The node that has them.
    pub node: String,
    /// The settings.
    pub settings: Vec<Setting>,
}
