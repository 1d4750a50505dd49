//! The handle of all ledgers of a process: the store of records, the object stores, the time, and what is cached of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;
use segno_actions::schedule::Zones;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::backfills::Backfills;
use super::dags::Dags;
use super::definitions::Definitions;
use super::error::LedgerError;
use super::lineage::Graphs;
use super::place::{SECRETS, secret_id};
use super::runs::Runs;
use crate::objects::{Paths, Stores};
use crate::snapshot::{Reader, Snapshot};
use crate::telemetry;

/// Most scopes whose readers and snapshots are kept in memory.
const MAX_CACHED_SCOPES: usize = 1_024;

/// Bytes of the secret from which run ids are derived.
const SECRET_BYTES: usize = 32;

/// What the ledgers of a process share.
#[derive(Clone)]
pub struct LedgerOptions {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn IdSource>,
    /// Time zones of schedules and partitions.
    pub zones: Arc<Zones>,
}

/// All ledgers of a store. Cheap to clone; clones share what is cached.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    objects: Stores,
    options: LedgerOptions,
    definitions: Definitions,
    graphs: Graphs,
    scopes: Mutex<HashMap<Scope, Cached>>,
    /// Writers of this process that wait until their record of the outbox is in the tables, by its id.
    waiting: Mutex<HashMap<String, Vec<oneshot::Sender<()>>>>,
    /// Why this process could not drive scopes, of those that it tried last without success.
    stuck: Mutex<HashMap<Scope, String>>,
    /// Why this process drives no scope at all yet.
    unproven: Mutex<Option<String>>,
}

/// What is kept of a scope.
#[derive(Clone)]
struct Cached {
    reader: Reader,
    newest: Option<Snapshot>,
}

/// The stored secret of a tenant.
#[derive(Serialize, Deserialize)]
struct Secret {
    secret: String,
}

impl Ledger {
    /// The ledgers whose records are in a store, and whose log and tables are in object stores.
    pub fn new(store: Arc<dyn Store>, objects: Stores, options: LedgerOptions) -> Self {
        let definitions = Definitions::new(Arc::clone(&store), Arc::clone(&options.zones));
        let inner = Inner {
            store,
            objects,
            options,
            definitions,
            graphs: Graphs::default(),
            scopes: Mutex::default(),
            waiting: Mutex::default(),
            stuck: Mutex::default(),
            unproven: Mutex::default(),
        };
        Ledger { inner: Arc::new(inner) }
    }

    /// Published DAGs.
    pub fn dags(&self) -> Dags {
        Dags { ledger: self.clone() }
    }

    /// Runs.
    pub fn runs(&self) -> Runs {
        Runs { ledger: self.clone() }
    }

    /// Backfills.
    pub fn backfills(&self) -> Backfills {
        Backfills { ledger: self.clone() }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(super) fn objects(&self) -> &Stores {
        &self.inner.objects
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.inner.options.clock
    }

    pub(super) fn options(&self) -> &LedgerOptions {
        &self.inner.options
    }

    pub(super) fn definitions(&self) -> &Definitions {
        &self.inner.definitions
    }

    /// The lineage graphs that are kept.
    pub(super) fn graphs(&self) -> &Graphs {
        &self.inner.graphs
    }

    /// A fresh text that no other request has.
    pub(super) fn fresh(&self) -> String {
        self.inner.options.ids.new_uuid().simple().to_string()
    }

    /// Now, by the store's clock.
    pub(super) async fn now(&self) -> Result<Timestamp, LedgerError> {
        Ok(timestamp(self.store().now_ms().await?))
    }

    /// The newest snapshot of a scope's tables; nothing before the first fold.
    ///
    /// # Errors
    /// `ledger-unavailable`, also when the scope has had tables and they are not there; `stored-data-unreadable`.
    pub async fn snapshot(&self, scope: &Scope) -> Result<Option<Snapshot>, LedgerError> {
        let Cached { reader, newest } = self.cached(scope);
        let snapshot = reader.snapshot(newest.as_ref()).await?;
        if let Some(cached) = self.lock().get_mut(scope) {
            cached.newest.clone_from(&snapshot);
        }
        if snapshot.is_none() && self.has_begun(scope).await? {
            return Err(LedgerError::Gone(scope.id_prefix().trim_end_matches('/').to_owned()));
        }
        Ok(snapshot)
    }

    fn cached(&self, scope: &Scope) -> Cached {
        let mut scopes = self.lock();
        if let Some(cached) = scopes.get(scope) {
            return cached.clone();
        }
        if scopes.len() >= MAX_CACHED_SCOPES {
            scopes.clear();
        }
        let clock = Arc::clone(&self.inner.options.clock);
        let reader = Reader::new(Paths::new(scope.clone()), &self.inner.objects, clock);
        let cached = Cached { reader, newest: None };
        scopes.insert(scope.clone(), cached.clone());
        cached
    }

    /// The secret of a tenant, from which the ids of runs with a key are derived. It is drawn at its first use.
    pub(super) async fn secret(&self, scope: &Scope) -> Result<Arc<[u8]>, LedgerError> {
        let id = secret_id(scope);
        loop {
            if let Some(record) = self.store().get_record(SECRETS, &id).await? {
                let secret: Secret = serde_json::from_slice(&record.body)
                    .map_err(|error| LedgerError::unreadable(SECRETS, &id, &error))?;
                return Ok(secret.secret.into_bytes().into());
            }
            let ids = &self.inner.options.ids;
            let secret = (0..SECRET_BYTES / 8).map(|_| format!("{:016x}", ids.new_seed())).collect();
            let write = RecordWrite::Put {
                kind: SECRETS.to_owned(),
                id: id.clone(),
                expect: Expect::Absent,
                due_at_ms: None,
                time_to_live: None,
                body: serde_json::to_vec(&Secret { secret }).expect("a secret is text").into(),
            };
            let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
            match self.store().commit_records(batch).await {
                Err(error) if error.kind() != ErrorKind::Conflict => return Err(error.into()),
                // Drawn now, or by another at the same time: read what is stored.
                _ => {}
            }
        }
    }

    /// Resolves when the holder of the scope has published the events of a record of the outbox, if it is in this process.
    pub(super) fn wait_published(&self, id: String) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, senders| {
            senders.retain(|sender| !sender.is_closed());
            !senders.is_empty()
        });
        // Several requests with one run key wait for the same record.
        waiting.entry(id).or_default().push(sender);
        receiver
    }

    /// The events of a record are in the tables.
    pub(super) fn published(&self, id: &str) {
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in waiting.remove(id).into_iter().flatten() {
            // The writer may have given up.
            let _ = sender.send(());
        }
    }

    /// How many scopes this process could not drive at its last try, and why one of them.
    pub fn stuck(&self) -> Option<(usize, String)> {
        let stuck = self.inner.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, problem) = stuck.iter().min_by_key(|(scope, _)| scope.id_prefix())?;
        Some((stuck.len(), problem.clone()))
    }

    /// Notes why this process drives no scope yet: its object stores have not passed their probe. `None` once they have.
    pub fn unproven(&self, problem: Option<String>) {
        *self.inner.unproven.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    pub(super) fn why_unproven(&self) -> Option<String> {
        self.inner.unproven.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether a scope could be driven. `None` stands for success.
    pub(super) fn tried(&self, scope: &Scope, problem: Option<String>) {
        let mut stuck = self.inner.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            None => drop(stuck.remove(scope)),
            Some(problem) if stuck.len() < MAX_CACHED_SCOPES || stuck.contains_key(scope) => {
                stuck.insert(scope.clone(), problem);
            }
            Some(_) => {}
        }
        let count = u32::try_from(stuck.len()).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::SCOPES_STUCK).set(f64::from(count));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Cached>> {
        self.inner.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time in Unix milliseconds, at most the last that calendars have.
pub(super) fn timestamp(at_ms: u64) -> Timestamp {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX)
}
