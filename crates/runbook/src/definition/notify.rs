//! What is called when people have to know something.

use serde::{Deserialize, Serialize};

/// Something that people have to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeEvent {
    /// A phase waits for an approval.
    ApprovalWanted,
    /// A phase has failed.
    PhaseFailed,
    /// The error budget of a phase is spent.
    BudgetSpent,
}

/// The function that is called, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// A function of the catalogue.
    pub function: String,
    /// The events that it is called for.
    pub on: Vec<NoticeEvent>,
}
