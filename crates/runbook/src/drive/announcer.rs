//! Where events of batches go: the event stream, metrics, webhooks.

use super::place::BatchPlace;
use crate::rows::{BatchStatus, RowState};
use crate::step::{Event, Notice};

/// What one commit changed in a batch. A part may change thousands of rows.
#[derive(Debug)]
pub struct Committed<'a> {
    /// Name of the runbook.
    pub runbook: &'a str,
    /// State of the batch; none before it is created.
    pub status: Option<BatchStatus>,
    /// The new states of rows that have another one than before; batch, phases and members first.
    pub states: &'a [RowState],
}

/// Takes what is announced. It is called after the commit, and must not block.
pub trait Announcer: Send + Sync + 'static {
    /// Something has happened to a batch.
    fn announce(&self, place: &BatchPlace, event: &Event);

    /// People have to know something about a batch.
    fn notify(&self, place: &BatchPlace, notice: &Notice);

    /// A commit has changed states of rows of a batch.
    fn committed(&self, place: &BatchPlace, commit: &Committed<'_>);
}

/// Announces nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Announcer for Silent {
    fn announce(&self, _: &BatchPlace, _: &Event) {}

    fn notify(&self, _: &BatchPlace, _: &Notice) {}

    fn committed(&self, _: &BatchPlace, _: &Committed<'_>) {}
}
