//! The orchestration dispatcher: one fetcher, many turns.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Shared, Stage, backoff, turn};
use crate::clock;
use crate::store::{FetchOrchestrationItems, ResidentExecutions};
use crate::telemetry;

/// Most instances locked by one fetch.
const MAX_FETCHED_TURNS: usize = 256;

pub(super) async fn run(shared: Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(shared.options.orchestration_concurrency));
    let resident: Arc<dyn ResidentExecutions> = shared.resident.clone();
    let mut turns = JoinSet::new();
    let mut failed_fetches = 0;
    loop {
        while turns.try_join_next().is_some() {}
        let Some(mut permits) = super::worker::free_slots(&shared, &slots, MAX_FETCHED_TURNS).await else {
            break;
        };
        let request = FetchOrchestrationItems {
            max_items: permits.num_permits(),
            lock_timeout: shared.options.orchestrator_lock_timeout,
            poll_timeout: std::time::Duration::MAX,
            filter: Some(&shared.options.capabilities),
            resident: Some(&resident),
        };
        let fetched = tokio::select! {
            biased;
            fetched = shared.store.fetch_orchestration_items(request) => fetched,
            () = shared.reached(Stage::Draining) => break,
        };
        match fetched {
            Ok(items) => {
                failed_fetches = 0;
                for item in items {
                    // A store that returns more than it was asked for only strains the node.
                    let permit = permits.split(1);
                    let (shared, item) = (shared.clone(), Box::new(item));
                    // Boxed, because spawning moves a future several times and wants more of an allocator for a large one.
                    turns.spawn(Box::pin(async move {
                        turn::process(&shared, item).await;
                        drop(permit);
                    }));
                }
            }
            Err(error) => {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                tracing::warn!(%error, "could not fetch orchestrations; trying again");
                clock::sleep(&*shared.clock, backoff::store_retry(failed_fetches)).await;
                failed_fetches += 1;
            }
        }
    }
    while turns.join_next().await.is_some() {}
}
