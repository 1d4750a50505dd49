//! What a fold changed, for those who follow runs as they happen.

use segno_actions::functions::Scope;

use crate::tables::{RunRow, TaskRow};

/// Announces what folds change in runs. It is called on the way of the driver, so it only notes what it is given.
pub trait RunAnnouncer: Send + Sync + 'static {
    /// Whether anything is announced at present; rows are collected only then.
    fn is_wanted(&self) -> bool;

    /// A run has changed, or tasks of it have. The rows are those after the fold, and they are published.
    fn changed(&self, scope: &Scope, run: &RunRow, tasks: &[TaskRow]);
}

/// Announces nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl RunAnnouncer for Silent {
    fn is_wanted(&self) -> bool {
        false
    }

    fn changed(&self, _: &Scope, _: &RunRow, _: &[TaskRow]) {}
}
