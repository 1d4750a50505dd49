//! `notify`: the function that is called when people have to know something.

use serde::Serialize;

/// Which function is called for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notify {
    /// The function.
    pub function: String,
    /// The events that it is called for.
    pub on: Vec<NotifyEvent>,
}

/// What people have to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// A run ended as failed.
    RunFailed,
    /// A task has failed for good.
    TaskFailed,
    /// An asset is older than its `freshness`.
    AssetStale,
}
