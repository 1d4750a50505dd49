//! The dispatcher: one fetch loop for turns and activities that fills free places with work.
//!
//! `orchestrator.rs` dispatches turns, `worker.rs` activities.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::{Shared, Stage, backoff};
use crate::clock;
use crate::store::ProviderError;
use crate::telemetry;

/// A kind of work: how it is fetched and processed.
pub(super) trait Workload: Send + Sync + 'static {
    /// What the log calls it, in the plural.
    const NOUN: &'static str;
    /// Free places, and whatever else decides what is fetched.
    type Admission: Send;
    /// One piece of locked work.
    type Item: Send + 'static;
    /// Is held while a piece of work is processed.
    type Place: Send + 'static;

    /// Waits for a free place; `None` if there will never be one.
    fn admit(&self) -> impl Future<Output = Option<Self::Admission>> + Send;

    /// Waits for work and locks it. `None` if the admission has changed meanwhile, so that the wait
    /// was in vain.
    fn fetch(
        &self,
        admission: &mut Self::Admission,
    ) -> impl Future<Output = Option<Result<Vec<Self::Item>, ProviderError>>> + Send;

    /// Takes a place for an item.
    fn take_place(&self, admission: &mut Self::Admission, item: &Self::Item) -> Self::Place;

    /// Processes an item. In every case its lock is released, abandoned, or left to expire.
    fn process(shared: &Shared, item: Box<Self::Item>) -> impl Future<Output = ()> + Send;
}

/// Dispatches work until the node drains, and returns when the last piece has been processed.
pub(super) async fn run<W: Workload>(shared: Arc<Shared>, workload: W) {
    let mut running = JoinSet::new();
    let mut failed_fetches = 0;
    loop {
        while running.try_join_next().is_some() {}
        let admission = tokio::select! {
            biased;
            () = shared.reached(Stage::Draining) => break,
            admission = workload.admit() => admission,
        };
        let Some(mut admission) = admission else { break };
        let fetched = tokio::select! {
            biased;
            fetched = workload.fetch(&mut admission) => fetched,
            () = shared.reached(Stage::Draining) => break,
        };
        match fetched {
            None => {}
            Some(Ok(items)) => {
                failed_fetches = 0;
                for item in items {
                    let place = workload.take_place(&mut admission, &item);
                    let (shared, item) = (shared.clone(), Box::new(item));
                    // Boxed, because spawning moves a future several times and makes large
                    // allocations for a large one.
                    running.spawn(Box::pin(async move {
                        W::process(&shared, item).await;
                        drop(place);
                    }));
                }
            }
            Some(Err(error)) => {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                tracing::warn!(%error, "could not fetch {}; trying again", W::NOUN);
                clock::sleep(&*shared.clock, backoff::store_retry(failed_fetches)).await;
                failed_fetches += 1;
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Waits for a free slot and takes all that are free, up to a limit.
pub(super) async fn free_slots(slots: &Arc<Semaphore>, most: usize) -> Option<OwnedSemaphorePermit> {
    let mut permits = slots.clone().acquire_owned().await.ok()?;
    let more = slots.available_permits().min(most - 1) as u32;
    if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
        permits.merge(more);
    }
    Some(permits)
}
