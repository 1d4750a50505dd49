//! The activity dispatchers: activities within the concurrency of the node, and those that an
//! admission control admits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dispatcher::{self, Workload};
use super::{ActivityAdmission, ActivityPlace, AdmittedFetch, Shared, attempt};
use crate::store::{FetchWorkItems, LockLife, LockedWorkItem, ProviderError};

/// Most activities locked by one fetch.
const MAX_FETCHED_ACTIVITIES: usize = 256;

/// Activities, bounded by
/// [`RuntimeOptions::worker_concurrency`](super::RuntimeOptions::worker_concurrency).
pub(super) struct Activities {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
}

impl Activities {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let slots = Arc::new(Semaphore::new(shared.options.worker_concurrency));
        Activities { shared, slots }
    }
}

impl Workload for Activities {
    const NOUN: &'static str = "activities";
    type Admission = OwnedSemaphorePermit;
    type Item = LockedWorkItem;
    type Place = Option<OwnedSemaphorePermit>;

    async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        dispatcher::free_slots(&self.slots, MAX_FETCHED_ACTIVITIES).await
    }

    async fn fetch(
        &self,
        permits: &mut OwnedSemaphorePermit,
    ) -> Option<Result<Vec<LockedWorkItem>, ProviderError>> {
        let Shared { options, sessions, store, .. } = &*self.shared;
        let (session, most) = sessions.fetch_config(permits.num_permits());
        let request = FetchWorkItems {
            max_items: most,
            lock_timeout: options.worker_lock_timeout,
            poll_timeout: sessions.longest_wait(session.as_ref()),
            session: session.as_ref(),
            tag_filter: &options.tag_filter,
            life: LockLife::Process,
        };
        tokio::select! {
            biased;
            fetched = store.fetch_work_items(request) => Some(fetched),
            // A session was released, so another one may be claimed.
            () = sessions.freed() => None,
        }
    }

    /// A store that returns more than was requested only strains the node.
    fn take_place(
        &self,
        permits: &mut OwnedSemaphorePermit,
        item: &LockedWorkItem,
    ) -> Option<OwnedSemaphorePermit> {
        self.shared.sessions.touch(item.message.session_id.as_deref());
        permits.split(1)
    }

    fn process(shared: &Shared, item: Box<LockedWorkItem>) -> impl Future<Output = ()> + Send {
        attempt::process(shared, item)
    }
}

/// Activities that an admission control admits, beside [`Activities`].
pub(super) struct AdmittedActivities {
    shared: Arc<Shared>,
    admission: Arc<dyn ActivityAdmission>,
}

impl AdmittedActivities {
    pub(super) fn new(shared: Arc<Shared>, admission: Arc<dyn ActivityAdmission>) -> Self {
        AdmittedActivities { shared, admission }
    }
}

impl Workload for AdmittedActivities {
    const NOUN: &'static str = "activities";
    type Admission = AdmittedFetch;
    type Item = LockedWorkItem;
    type Place = ActivityPlace;

    async fn admit(&self) -> Option<AdmittedFetch> {
        Some(self.admission.admit().await)
    }

    async fn fetch(
        &self,
        admitted: &mut AdmittedFetch,
    ) -> Option<Result<Vec<LockedWorkItem>, ProviderError>> {
        let request = FetchWorkItems {
            max_items: admitted.max_items.min(MAX_FETCHED_ACTIVITIES),
            lock_timeout: self.shared.options.worker_lock_timeout,
            poll_timeout: Duration::MAX,
            session: None,
            tag_filter: &admitted.tags,
            life: LockLife::Process,
        };
        tokio::select! {
            biased;
            fetched = self.shared.store.fetch_work_items(request) => Some(fetched),
            () = &mut admitted.changed => None,
        }
    }

    fn take_place(&self, _admitted: &mut AdmittedFetch, item: &LockedWorkItem) -> ActivityPlace {
        self.admission.take(item.message.tag.as_deref().unwrap_or_default())
    }

    fn process(shared: &Shared, item: Box<LockedWorkItem>) -> impl Future<Output = ()> + Send {
        attempt::process(shared, item)
    }
}
