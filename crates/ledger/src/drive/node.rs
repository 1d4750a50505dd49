//! The scopes of a node: waits for scopes that have to be looked after, and drives those that it can get.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::clock;
use segno::store::{DueRecords, ProviderError, Record};
use segno_actions::functions::Scope;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::error::DriveError;
use super::freshness;
use super::holder::{Held, Services};
use super::lease::{self, Holder, Tenure};
use super::limits::MAX_HELD_SCOPES;
use super::place::{LEASES, scope_of_lease};
use super::processes::Processes;
use super::sensing;
use super::sweep;
use crate::telemetry;

/// Most due records that are read at once.
const PAGE: usize = 64;

/// Longest wait for a scope that has to be looked after.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store refuses, and before a scope that could not be driven is taken again.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause when everything that is due is held here already, or was just lost: it is about to change.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// How long scopes may take to be handed over when the node stops.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Most leases that a start looks at, to find those of processes that are gone.
const MAX_LOOKED_AT: usize = 10_000;

/// Leases that are ended at the same time.
const ENDED_AT_ONCE: usize = 64;

/// Drives scopes. Leases of a node that dies expire, and other nodes take its scopes.
pub struct Driver {
    services: Arc<Services>,
    node: String,
    processes: Option<Arc<dyn Processes>>,
    held: Arc<Mutex<HashSet<Scope>>>,
}

impl Driver {
    /// A driver for a node, whose name appears in leases.
    pub fn new(services: Services, node: impl Into<String>) -> Self {
        Driver { services: Arc::new(services), node: node.into(), processes: None, held: Arc::default() }
    }

    /// Which processes are alive. Leases of those that are gone are void when this driver starts; without it, they last
    /// until their end.
    #[must_use]
    pub fn processes(mut self, processes: Arc<dyn Processes>) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Drives scopes until told to stop, and then hands them over. Stopping at any moment is safe: what was not appended
    /// waits in the outbox.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        telemetry::show();
        let stopping = watch::Sender::new(false);
        let mut scopes = JoinSet::new();
        let work = async {
            self.end_void_leases().await;
            let sensors = sensing::watch(Arc::clone(&self.services));
            let assets = freshness::watch(Arc::clone(&self.services));
            let sweep = sweep::watch(Arc::clone(&self.services));
            tokio::join!(self.watch_leases(&mut scopes, &stopping), sensors, assets, sweep);
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = work => {}
        }
        stopping.send_replace(true);
        let handed_over = async { while scopes.join_next().await.is_some() {} };
        if clock::timeout(self.clock(), HAND_OVER, handed_over).await.is_none() {
            tracing::warn!(
                "ledgers could not be handed over in time; other nodes take them when leases expire"
            );
        }
    }

    fn clock(&self) -> &dyn clock::Clock {
        self.services.ledger.clock()
    }

    /// Ends the leases of processes that are gone. An embedded store lets in one process at a time, so after a crash its
    /// scopes are driven at once. What is missed here expires.
    async fn end_void_leases(&self) {
        let Some(processes) = &self.processes else { return };
        if let Err(error) = self.try_end_void_leases(&**processes).await {
            tracing::warn!(%error, "leases of processes that are gone cannot be ended; they expire");
        }
    }

    async fn try_end_void_leases(&self, processes: &dyn Processes) -> Result<(), ProviderError> {
        let store = self.services.ledger.store();
        let now_ms = store.now_ms().await?;
        // A lease that is held is due at its end.
        let until_ms = now_ms.saturating_add(clock::duration_ms(self.services.options.lease));
        let request = DueRecords {
            kind: LEASES,
            id_prefix: "",
            now_ms: Some(until_ms),
            limit: MAX_LOOKED_AT,
            poll_timeout: Duration::ZERO,
        };
        let (mut alive, mut void) = (HashMap::<String, bool>::new(), Vec::new());
        for record in store.due_records(request).await? {
            let tenure = Tenure::of(&record, now_ms);
            let Some(process) = tenure.and_then(|tenure| tenure.process) else { continue };
            let is_alive = match alive.get(&process) {
                Some(is_alive) => *is_alive,
                None => *alive.entry(process.clone()).or_insert(processes.is_alive(&process).await?),
            };
            if !is_alive {
                void.push(record);
            }
        }
        let ends: Vec<_> = void.iter().map(|record| lease::end(store, record, now_ms)).collect();
        stream::iter(ends).buffer_unordered(ENDED_AT_ONCE).try_collect().await
    }

    fn holder(&self) -> Holder {
        Holder {
            node: self.node.clone(),
            process: self.processes.as_ref().map(|processes| processes.id().to_owned()),
            lease: self.services.options.lease,
        }
    }

    async fn watch_leases(&self, scopes: &mut JoinSet<()>, stopping: &watch::Sender<bool>) {
        let request =
            DueRecords { kind: LEASES, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        loop {
            while scopes.try_join_next().is_some() {}
            let due = match self.services.ledger.store().due_records(request.clone()).await {
                Ok(due) => due,
                Err(error) => {
                    tracing::warn!(%error, "leases of ledgers cannot be read; trying again");
                    clock::sleep(self.clock(), PAUSE).await;
                    continue;
                }
            };
            let taken = due.iter().filter(|record| self.take(record, scopes, stopping)).count();
            if taken == 0 && !due.is_empty() {
                clock::sleep(self.clock(), SHORT_PAUSE).await;
            }
        }
    }

    /// Drives the scope of a due lease record, unless this node is at it. Returns whether it is new.
    fn take(&self, record: &Record, scopes: &mut JoinSet<()>, stopping: &watch::Sender<bool>) -> bool {
        let Some(scope) = scope_of_lease(&record.id) else { return false };
        {
            let mut held = lock(&self.held);
            if held.len() >= MAX_HELD_SCOPES || !held.insert(scope.clone()) {
                return false;
            }
        }
        let (services, holder, record) = (Arc::clone(&self.services), self.holder(), record.clone());
        let (held, stop) = (Arc::clone(&self.held), stopping.subscribe());
        scopes.spawn(async move {
            let time = Arc::clone(&services.ledger.options().clock);
            let driven = drive(Arc::clone(&services), scope.clone(), record, (holder.clone(), stop)).await;
            match driven {
                Ok(()) => {}
                Err(DriveError::LeaseLost) => {
                    // The node that has it reports what is wrong with it.
                    services.ledger.tried(&scope, None);
                    tracing::info!(scope = %scope.id_prefix(), "another node has taken the ledger");
                }
                Err(DriveError::Store(error)) => {
                    services.ledger.tried(&scope, Some(error.to_string()));
                    let prefix = scope.id_prefix();
                    tracing::error!(scope = %prefix, %error, "a ledger waits for the store; it goes on when that answers");
                    give_back(&services, &scope, &holder).await;
                }
                Err(error) => {
                    services.ledger.tried(&scope, Some(error.to_string()));
                    let scope = scope.id_prefix();
                    tracing::error!(%scope, %error, "a ledger cannot be driven; it is tried again");
                    clock::sleep(&*time, PAUSE).await;
                }
            }
            lock(&held).remove(&scope);
        });
        true
    }
}

async fn drive(
    services: Arc<Services>,
    scope: Scope,
    record: Record,
    (holder, stop): (Holder, watch::Receiver<bool>),
) -> Result<(), DriveError> {
    // Boxed, so that each is known to be `Send` by itself.
    let acquired: BoxFuture<'static, _> = Held::acquire(services, scope, record, holder).boxed();
    match acquired.await? {
        Some(held) => {
            let driven: BoxFuture<'static, _> = held.run(stop).boxed();
            driven.await
        }
        None => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries to give a scope back until the store answers, or its lease has ended by itself.
async fn give_back(services: &Services, scope: &Scope, holder: &Holder) {
    let (store, time) = (services.ledger.store(), &services.ledger.options().clock);
    let mut left = holder.lease;
    while !left.is_zero() {
        clock::sleep(&**time, PAUSE).await;
        match lease::give_back(store, scope, holder).await {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(scope = %scope.id_prefix(), %error, "a ledger cannot be given back; trying again");
            }
        }
        left = left.saturating_sub(PAUSE);
    }
}
