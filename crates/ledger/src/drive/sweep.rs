//! The anti-entropy sweep: scopes whose events wait although no node looks after them.
//!
//! A writer wakes a scope in the commit of its events, or after it when the scope was held. One that dies between that
//! commit and the wake-up, while the holder releases the scope, leaves events that only the next event or the next stored
//! time would bring to light. Every node looks for them now and then; waking a scope twice is harmless.
//!
//! What is stuck within a scope is found by its holder: the controller `anti_entropy` is part of each decision that follows
//! the clock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segno::clock;
use segno::store::{ListRecords, ProviderError, Store};
use segno_actions::functions::Scope;

use super::holder::Services;
use super::lease::{self, Look};
use super::limits::{SWEEP_AFTER, SWEEP_EVERY};
use super::outbox;
use super::place::{LEASES, scope_of_lease};
use crate::telemetry;

/// Leases that are read at once.
const PAGE: usize = 500;

/// Pause when the store refuses.
const PAUSE: Duration = Duration::from_secs(1);

/// Sweeps until the node stops.
pub(super) async fn watch(services: Arc<Services>) {
    let ledger = &services.ledger;
    loop {
        clock::sleep(ledger.clock(), SWEEP_EVERY).await;
        if let Err(error) = sweep(ledger.store()).await {
            tracing::warn!(%error, "ledgers cannot be swept; trying again");
            clock::sleep(ledger.clock(), PAUSE).await;
        }
    }
}

/// Wakes every free scope with an event that has waited for [`SWEEP_AFTER`]. Returns how many there were.
async fn sweep(store: &dyn Store) -> Result<usize, ProviderError> {
    let now_ms = store.now_ms().await?;
    let before_ms = now_ms.saturating_sub(clock::duration_ms(SWEEP_AFTER));
    // Usually nothing has waited for so long, and this is all.
    let oldest = outbox::waiting_since(store, None, before_ms).await?;
    let mut scopes: BTreeSet<Scope> = oldest.into_iter().collect();
    if scopes.is_empty() {
        return Ok(0);
    }
    let mut after: Option<String> = None;
    loop {
        let request = ListRecords { kind: LEASES, id_prefix: "", after_id: after.as_deref(), limit: PAGE };
        let page = store.list_records(request).await?;
        for scope in page.iter().filter_map(|record| scope_of_lease(&record.id)) {
            if outbox::waiting_since(store, Some(&scope), before_ms).await?.is_some() {
                scopes.insert(scope);
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.id.clone()),
            _ => break,
        }
    }
    let mut woken = 0;
    for scope in scopes {
        // A scope that is held, or due, is looked after.
        if let Look::Wake(..) = lease::look(store, &scope, now_ms).await? {
            lease::wake(store, &scope, now_ms).await?;
            tracing::warn!(scope = %scope.id_prefix(), "events waited and no node looked after them");
            metrics::counter!(telemetry::SWEPT).increment(1);
            woken += 1;
        }
    }
    Ok(woken)
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno::store::{RecordBatch, RecordWrite};
    use segno_testkit::clock::VirtualClock;

    use super::super::place::lease_id;
    use super::super::post::{Posting, post};
    use super::*;
    use crate::event::RunCancelRequested;

    async fn commit(store: &dyn Store, write: RecordWrite) {
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        store.commit_records(batch).await.unwrap();
    }

    async fn due(store: &dyn Store, scope: &Scope) -> Option<u64> {
        store.get_record(LEASES, &lease_id(scope)).await.unwrap().unwrap().due_at_ms
    }

    #[tokio::test]
    async fn a_free_scope_whose_events_wait_is_woken_and_others_are_not() {
        let clock = VirtualClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let store: &dyn Store = &*store;
        let event = RunCancelRequested {
            run_id: "run1".into(),
            reason: None,
            requested_by: "ada".into(),
            generation: 0,
        };
        let posting = |key: &str| Posting {
            key: key.to_owned(),
            events: vec![event.clone().into()],
            writes: Vec::new(),
        };
        let scopes = ["lost", "quiet", "held"].map(|tenant| Scope::new("eu", tenant).unwrap());
        let [lost, quiet, held] = &scopes;
        for scope in &scopes {
            post(store, scope, posting("first")).await.unwrap();
        }
        let holder = |node: &str| lease::Holder {
            node: node.to_owned(),
            process: None,
            lease: Duration::from_secs(3_600),
        };
        let now_ms = store.now_ms().await.unwrap();
        for scope in &scopes {
            let record = store.get_record(LEASES, &lease_id(scope)).await.unwrap().unwrap();
            let lease = lease::Lease::acquire(store, &record, holder("a"), now_ms).await.unwrap().unwrap();
            if scope != held {
                for waiting in outbox::read(store, scope, Duration::ZERO).await.unwrap() {
                    commit(store, outbox::delete(waiting.id)).await;
                }
                lease.release(store, None).await.unwrap();
            }
        }
        // A writer that saw the scope held, and died before it looked again.
        commit(store, outbox::put(lost, "second", vec![event.clone().into()], now_ms)).await;
        assert_eq!(sweep(store).await.unwrap(), 0, "it has not waited for long");
        clock.advance(SWEEP_AFTER + Duration::from_secs(1));
        assert_eq!(due(store, lost).await, None);
        assert_eq!(sweep(store).await.unwrap(), 1);
        assert!(due(store, lost).await.is_some());
        assert_eq!(due(store, quiet).await, None);
        assert_eq!(sweep(store).await.unwrap(), 0, "it is due, and a node takes it");
    }
}
