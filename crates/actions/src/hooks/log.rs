//! The event log: bounded by number and by time, also against those who are refused.
//!
//! What is taken has its event in its own commit. What is refused is counted in memory and written at most once a second
//! for each route and reason, so that nobody can fill a disk with requests that are refused. Events beyond the number
//! that is kept are deleted in the background.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use tokio::sync::Notify;

use super::catalogue::Hooks;
use super::error::HookError;
use super::event::{Outcome, StoredEvent};
use super::records::{EVENT, event_id, put};
use crate::functions::{HookName, Scope};
use crate::moment::timestamp;

/// Between two writes of what was refused, at least.
const PAUSE: Duration = Duration::from_secs(1);

/// Most different refusals that are remembered between two writes; more are counted in the metrics only.
const MAX_NOTED: usize = 256;

/// So many new events of a tenant are waited for before old ones are deleted.
const EVENTS_PER_TRIM: u64 = 50;

/// Most events that one commit deletes.
const MAX_DELETED: usize = 1_000;

/// What is to be written or deleted.
#[derive(Default)]
pub(super) struct EventLog {
    noted: Mutex<Noted>,
    wake: Notify,
}

#[derive(Default)]
struct Noted {
    /// How often each was refused since the last write.
    refused: BTreeMap<(Scope, HookName, &'static str), u64>,
    /// How many events were stored since the last deletion.
    stored: HashMap<Scope, u64>,
}

impl EventLog {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        // Counts are never left half changed, so those of a thread that panicked are sound.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request was refused.
    pub(super) fn refused(&self, scope: &Scope, name: &HookName, reason: &'static str) {
        let mut noted = self.noted();
        let key = (scope.clone(), name.clone(), reason);
        if noted.refused.len() < MAX_NOTED || noted.refused.contains_key(&key) {
            *noted.refused.entry(key).or_default() += 1;
            self.wake.notify_one();
        }
    }

    /// Notes that an event was stored.
    pub(super) fn stored(&self, scope: &Scope) {
        let mut noted = self.noted();
        let count = noted.stored.entry(scope.clone()).or_default();
        *count += 1;
        if *count >= EVENTS_PER_TRIM {
            self.wake.notify_one();
        }
    }
}

impl Hooks {
    /// Looks after the event log until it is told to stop.
    pub async fn keep_events(&self, stopping: impl Future<Output = ()>) {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                biased;
                () = &mut stopping => break,
                () = self.inner.log.wake.notified() => {}
            }
            if let Err(error) = self.write_events().await {
                tracing::warn!(%error, "the event log of webhooks could not be written");
            }
            tokio::select! {
                biased;
                () = &mut stopping => break,
                () = clock::sleep(&*self.inner.clock, PAUSE) => {}
            }
        }
        if let Err(error) = self.write_events().await {
            tracing::warn!(%error, "the event log of webhooks could not be written");
        }
    }

    /// Writes what was refused since the last time, and deletes what is beyond the number of events that are kept.
    ///
    /// # Errors
    /// `store` when the store cannot be written. Counts that could not be written are lost; they are in the metrics.
    pub async fn write_events(&self) -> Result<(), HookError> {
        let refused = std::mem::take(&mut self.inner.log.noted().refused);
        let mut writes = Vec::new();
        for ((scope, name, reason), count) in refused {
            let outcome = Outcome::Refused { reason: reason.to_owned(), count };
            writes.push(self.event(&scope, self.event_of(&name, outcome))?);
            self.inner.log.stored(&scope);
        }
        if !writes.is_empty() {
            self.inner.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        }
        let full: Vec<Scope> = {
            let mut noted = self.inner.log.noted();
            noted.stored.extract_if(|_, count| *count >= EVENTS_PER_TRIM).map(|(scope, _)| scope).collect()
        };
        for scope in full {
            self.trim(&scope).await?;
        }
        Ok(())
    }

    /// The write of an event.
    pub(super) fn event(&self, scope: &Scope, event: StoredEvent) -> Result<RecordWrite, HookError> {
        let id = self.new_id(self.inner.clock.now_ms());
        let life = Some(self.inner.settings.event_retention);
        put((EVENT, event_id(scope, id)), Expect::Anything, life, &event)
    }

    /// An event of now that has no payload.
    pub(super) fn event_of(&self, route: &HookName, outcome: Outcome) -> StoredEvent {
        let at = timestamp(self.inner.clock.now_ms());
        StoredEvent { at, route: route.clone(), payload: None, content_type: None, body_bytes: 0, outcome }
    }

    async fn trim(&self, scope: &Scope) -> Result<(), HookError> {
        let (store, keep) = (&self.inner.store, self.inner.settings.max_events);
        let id_prefix = scope.id_prefix();
        loop {
            let request =
                ListRecords { kind: EVENT, id_prefix: &id_prefix, after_id: None, limit: keep + MAX_DELETED };
            let old = store.list_records(request).await?.into_iter().skip(keep);
            let writes: Vec<RecordWrite> = old
                .map(|record| RecordWrite::Delete {
                    kind: record.kind,
                    id: record.id,
                    expect: Expect::Anything,
                })
                .collect();
            let is_last = writes.len() < MAX_DELETED;
            if !writes.is_empty() {
                store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}
