//! What a watch on an instance waits for.

use super::{ExecutionStatus, InstanceInfo};

/// When a watch answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchUntil {
    /// When the instance has ended.
    Terminal,
    /// When the custom status has a higher version than this, or the instance has ended.
    CustomStatusAfter(u64),
    /// When anything has been committed beyond this revision.
    RevisionAfter(u64),
}

impl WatchUntil {
    /// Whether an instance in this state answers the watch.
    pub fn is_met(self, info: &InstanceInfo) -> bool {
        self.is_met_by(info.status, info.custom_status_version, info.revision)
    }

    /// Whether an instance of which this is known answers the watch.
    pub fn is_met_by(self, status: ExecutionStatus, custom_status_version: u64, revision: u64) -> bool {
        match self {
            WatchUntil::Terminal => status.is_terminal(),
            WatchUntil::CustomStatusAfter(seen) => custom_status_version > seen || status.is_terminal(),
            WatchUntil::RevisionAfter(seen) => revision > seen,
        }
    }
}
