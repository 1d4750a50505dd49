//! The orchestration dispatcher: turns of locked instances.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dispatcher::{self, Workload};
use super::{Shared, turn};
use crate::store::{FetchOrchestrationItems, OrchestrationItem, ProviderError, ResidentExecutions};

/// Most instances locked by one fetch.
const MAX_FETCHED_TURNS: usize = 256;

/// Turns, bounded by
/// [`RuntimeOptions::orchestration_concurrency`](super::RuntimeOptions::orchestration_concurrency).
pub(super) struct Turns {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
    resident: Arc<dyn ResidentExecutions>,
}

impl Turns {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let slots = Arc::new(Semaphore::new(shared.options.orchestration_concurrency));
        Turns { slots, resident: shared.resident.clone(), shared }
    }
}

impl Workload for Turns {
    const NOUN: &'static str = "orchestrations";
    type Admission = OwnedSemaphorePermit;
    type Item = OrchestrationItem;
    type Place = Option<OwnedSemaphorePermit>;

    async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        dispatcher::free_slots(&self.slots, MAX_FETCHED_TURNS).await
    }

    async fn fetch(
        &self,
        permits: &mut OwnedSemaphorePermit,
    ) -> Option<Result<Vec<OrchestrationItem>, ProviderError>> {
        let request = FetchOrchestrationItems {
            max_items: permits.num_permits(),
            lock_timeout: self.shared.options.orchestrator_lock_timeout,
            poll_timeout: Duration::MAX,
            filter: Some(&self.shared.options.capabilities),
            resident: Some(&self.resident),
        };
        Some(self.shared.store.fetch_orchestration_items(request).await)
    }

    /// A store that returns more than was requested only strains the node.
    fn take_place(
        &self,
        permits: &mut OwnedSemaphorePermit,
        _item: &OrchestrationItem,
    ) -> Option<OwnedSemaphorePermit> {
        permits.split(1)
    }

    fn process(shared: &Shared, item: Box<OrchestrationItem>) -> impl Future<Output = ()> + Send {
        turn::process(shared, item)
    }
}
