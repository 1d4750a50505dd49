//! Admission control for activities: a program decides before each fetch how many activities its
//! node takes, and with which routing tags, so that no group of them takes all places.

use std::any::Any;

use futures_util::future::BoxFuture;

use crate::store::TagFilter;

/// What a node may fetch.
pub struct AdmittedFetch {
    /// At most so many activities, at least 1.
    pub max_items: usize,
    /// With these tags.
    pub tags: TagFilter,
    /// Done when the answer would be another one: the fetch ends then, and the next begins.
    pub changed: BoxFuture<'static, ()>,
}

/// A place that a running activity takes. It is free when this is dropped.
pub type ActivityPlace = Box<dyn Any + Send>;

/// Decides which activities a node runs. They run beside those of
/// [`RuntimeOptions::tag_filter`](super::RuntimeOptions::tag_filter), and do not count for
/// [`worker_concurrency`](super::RuntimeOptions::worker_concurrency): the admission control bounds
/// them.
pub trait ActivityAdmission: Send + Sync + 'static {
    /// Waits until something may be fetched.
    fn admit(&self) -> BoxFuture<'_, AdmittedFetch>;

    /// Takes a place for an activity with this tag.
    fn take(&self, tag: &str) -> ActivityPlace;
}
