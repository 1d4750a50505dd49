//! What a bulk call did, and what kept it from acting on an instance.

use crate::error::{Code, Error};
use crate::store::{ErrorKind, InstanceCursor};

/// Ids that a result names, of those that were acted on and of those that were left.
pub const MAX_BULK_SAMPLE: usize = 20;

/// What a bulk call would do to each instance, for a count of those that it would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkPreview {
    /// Send it a message: cancel, pause or resume.
    Send,
    /// Delete it if it has ended.
    Delete,
    /// Delete it whether or not it has ended.
    ForceDelete,
    /// Restart it if it has ended.
    Restart,
    /// Restart it whether or not it has ended.
    ForceRestart,
    /// Let its delayed activities run at once.
    Retry,
}

/// What a bulk call did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkResult {
    /// Instances that matched, up to the limit, or up to where the call stopped ([`Bulk::until`](super::Bulk::until)).
    pub matched: usize,
    /// Instances that were acted on, or would be by a call that only counts.
    pub done: usize,
    /// The first of these, at most [`MAX_BULK_SAMPLE`].
    pub sample: Vec<String>,
    /// The others, by what is in the way.
    pub left: BulkLeft,
    /// The first of the others, at most [`MAX_BULK_SAMPLE`].
    pub left_sample: Vec<(String, BulkObstacle)>,
    /// Where the instances begin that the call did not come to; `None` when there are none. With this as the cursor of
    /// the next call's query, each instance is acted on and counted once. Of a call by ids only the id counts.
    pub next: Option<InstanceCursor>,
}

/// Instances that match and are left as they are, by what is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkLeft {
    /// They are passed over ([`Bulk::passing_over`](super::Bulk::passing_over)).
    pub passed_over: usize,
    /// They have ended, so that no message reaches them.
    pub ended: usize,
    /// They or descendants of theirs still run, so that they are neither deleted nor restarted without force.
    pub running: usize,
    /// They are children, which are deleted with the root of their tree.
    pub children: usize,
    /// None of their activities waits for its next attempt.
    pub not_waiting: usize,
    /// The caller of [`Bulk::apply`](super::Bulk::apply) refused to act on them.
    pub refused: usize,
    /// They vanished meanwhile, as children do whose root was deleted, or never existed.
    pub gone: usize,
    /// What is stored of them cannot be read.
    pub unreadable: usize,
}

/// What is in the way of acting on an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkObstacle {
    /// It is passed over.
    PassedOver,
    /// It has ended.
    Ended,
    /// It or a descendant of it still runs.
    Running,
    /// It is a child.
    Child,
    /// None of its activities waits for its next attempt.
    NotWaiting,
    /// The caller refused to act on it.
    Refused,
    /// It does not exist.
    Gone,
    /// What is stored of it cannot be read.
    Unreadable,
}

impl BulkObstacle {
    /// The one that an error reports; `None` if the error is about more than the instance.
    pub fn of(error: &Error) -> Option<Self> {
        match (error.code(), error.kind()) {
            (Code::StoredDataUnreadable, _) => Some(BulkObstacle::Unreadable),
            (Code::InstanceEnded, _) => Some(BulkObstacle::Ended),
            (Code::InstanceRunning, _) => Some(BulkObstacle::Running),
            (_, ErrorKind::NotFound) => Some(BulkObstacle::Gone),
            (_, ErrorKind::Conflict | ErrorKind::Invalid) => Some(BulkObstacle::Child),
            _ => None,
        }
    }
}

impl BulkLeft {
    pub(super) fn add(&mut self, obstacle: BulkObstacle) {
        let count = match obstacle {
            BulkObstacle::PassedOver => &mut self.passed_over,
            BulkObstacle::Ended => &mut self.ended,
            BulkObstacle::Running => &mut self.running,
            BulkObstacle::Child => &mut self.children,
            BulkObstacle::NotWaiting => &mut self.not_waiting,
            BulkObstacle::Refused => &mut self.refused,
            BulkObstacle::Gone => &mut self.gone,
            BulkObstacle::Unreadable => &mut self.unreadable,
        };
        *count += 1;
    }
}
