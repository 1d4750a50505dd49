//! Waking fetches that wait for a pool to be resumed, on every node.
//!
//! The commit that opens a closed pool also writes a record that is due at once and lives for a short time. A node with
//! fetches that wait for the pool has one wait inside the store for that record, whatever their number. The commit that
//! closes a pool deletes the record, so there is none while a pool is closed, and a wait never ends for an earlier resume.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::store::{DueRecords, Expect, ProviderError, RecordWrite, Store};
use tokio::sync::watch;

use super::stored::PoolState;

/// Kind of the records that wake waiting fetches.
pub const POOL_RESUMED_KIND: &str = "segno.pool-resumed";

/// For so long a resume can be seen by nodes: longer than the slow poll of a store that missed the notification.
const RESUMED_LIFE: Duration = Duration::from_secs(30);

/// Most pools without a waiting fetch that are remembered.
const MAX_IDLE_PLACES: usize = 1_024;

/// The fetches of a node that wait for one pool.
#[derive(Default)]
struct Place {
    /// Held by the fetch that waits inside the store.
    watching: tokio::sync::Mutex<()>,
    /// Changed for the others when that one is woken.
    woken: watch::Sender<u64>,
}

/// The fetches of a node that wait for pools, by record id. Shared by clones.
#[derive(Clone, Default)]
pub(super) struct Resumes(Arc<Mutex<HashMap<String, Arc<Place>>>>);

impl Resumes {
    /// Waits until a closed pool may have been opened, or until the time is up; returns whether it was woken.
    pub(super) async fn wait(
        &self,
        store: &dyn Store,
        id: &str,
        longest: Duration,
    ) -> Result<bool, ProviderError> {
        let place = self.place(id);
        let mut woken = place.woken.subscribe();
        let watch = async {
            let _watching = place.watching.lock().await;
            let request = DueRecords {
                kind: POOL_RESUMED_KIND,
                id_prefix: &format!("{id}/"),
                now_ms: None,
                limit: 1,
                poll_timeout: longest,
            };
            let is_woken = !store.due_records(request).await?.is_empty();
            if is_woken {
                place.woken.send_modify(|count| *count += 1);
            }
            Ok(is_woken)
        };
        tokio::select! {
            biased;
            // The place outlives the wait, so its sender is there.
            _ = woken.changed() => Ok(true),
            is_woken = watch => is_woken,
        }
    }

    fn place(&self, id: &str) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_IDLE_PLACES {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(id.to_owned()).or_default())
    }
}

impl PoolState {
    /// Whether a resume would change it.
    pub(super) fn is_closed(&self) -> bool {
        self.paused.is_some() || self.throttled_until_ms.is_some()
    }
}

/// What a change of the state of a pool writes for fetches that wait: a wake-up if it opens the pool, and none any more
/// if it closes the pool.
pub(super) fn wake_up(id: &str, before: &PoolState, after: &PoolState) -> Option<RecordWrite> {
    match (before.is_closed(), after.is_closed()) {
        (true, false) => Some(resumed(id)),
        (false, true) => Some(RecordWrite::Delete {
            kind: POOL_RESUMED_KIND.to_owned(),
            id: record_id(id),
            expect: Expect::Anything,
        }),
        _ => None,
    }
}

/// The wake-up.
pub(super) fn resumed(id: &str) -> RecordWrite {
    RecordWrite::Put {
        kind: POOL_RESUMED_KIND.to_owned(),
        id: record_id(id),
        expect: Expect::Anything,
        due_at_ms: Some(0),
        time_to_live: Some(RESUMED_LIFE),
        body: Vec::new().into(),
    }
}

/// In a folder of its pool, which a wait inside the store is about.
fn record_id(pool: &str) -> String {
    format!("{pool}/resumed")
}
