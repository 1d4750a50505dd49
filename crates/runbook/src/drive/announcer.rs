//! Where events of batches go: the event stream, metrics, webhooks.

use super::place::BatchPlace;
use crate::step::{Event, Notice};

/// Takes what is announced. It is called after the commit, and must not block.
pub trait Announcer: Send + Sync + 'static {
    /// Something has happened to a batch.
    fn announce(&self, place: &BatchPlace, event: &Event);

    /// People have to know something about a batch.
    fn notify(&self, place: &BatchPlace, notice: &Notice);
}

/// Announces nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Announcer for Silent {
    fn announce(&self, _: &BatchPlace, _: &Event) {}

    fn notify(&self, _: &BatchPlace, _: &Notice) {}
}
