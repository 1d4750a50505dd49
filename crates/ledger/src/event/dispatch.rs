//! Dispatches: requested, accepted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The queue of tasks without a tag.
pub(crate) const DEFAULT_QUEUE: &str = "default-queue";

/// An attempt is to be dispatched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DispatchRequested {
    /// The run.
    pub run_id: Arc<str>,
    /// The task.
    pub task_key: Arc<str>,
    /// The attempt.
    pub attempt: u32,
    /// Its id.
    pub attempt_id: Arc<str>,
    /// The queue of the workers.
    #[serde(default = "default_queue")]
    pub worker_queue: Arc<str>,
    /// The dispatch.
    pub dispatch_id: Arc<str>,
}

/// A dispatch was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DispatchEnqueued {
    /// The dispatch.
    pub dispatch_id: Arc<str>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Arc<str>>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_key: Option<Arc<str>>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Under which name.
    pub cloud_task_id: Arc<str>,
    /// Which repair this was; 0 for the first acceptance. Each has a key of its own, so that it
    /// refreshes the age of the dispatch.
    #[serde(default, skip_serializing_if = "super::run::is_zero")]
    pub repair: u32,
}

fn default_queue() -> Arc<str> {
    DEFAULT_QUEUE.into()
}
