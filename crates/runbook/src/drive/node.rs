//! The batches of a node: waits for batches that have to be looked after, and drives those that it
//! can get.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::clock;
use segno::store::{DueRecords, ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::error::DriveError;
use super::holder::{Held, Services};
use super::inbox::request_id;
use super::lease::{self, Holder, Tenure};
use super::place::{BatchPlace, INBOX, LEASES, RECEIPTS};
use super::processes::Processes;
use super::receipt::{KEEP_ANSWERED, REMIND_AFTER, Receipt};
use crate::telemetry;

/// Most batches that a node holds at once. A batch is held while calls of it are open.
const MAX_HELD: usize = 4_096;

/// Most due records that are read at once.
const PAGE: usize = 64;

/// Longest wait for a batch that has to be looked after.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store refuses, and before a batch that could not be driven is taken again.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause when everything that is due is held here already, or was just lost: it is about to change.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// How long batches may take to be handed over when the node stops.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Most leases that a start looks at, to find those of processes that are gone.
const MAX_LOOKED_AT: usize = 10_000;

/// Leases that are ended at the same time.
const ENDED_AT_ONCE: usize = 64;

/// Drives batches. Leases of a node that dies expire, and other nodes take its batches.
pub struct Driver {
    services: Arc<Services>,
    node: String,
    processes: Option<Arc<dyn Processes>>,
    held: Arc<Mutex<HashSet<BatchPlace>>>,
}

impl Driver {
    /// A driver for a node, whose name appears in leases.
    pub fn new(services: Services, node: impl Into<String>) -> Self {
        Driver { services: Arc::new(services), node: node.into(), processes: None, held: Arc::default() }
    }

    /// Which processes are alive. Leases of those that are gone are void when this driver starts;
    /// without it, they last until their end.
    #[must_use]
    pub fn processes(mut self, processes: Arc<dyn Processes>) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Drives batches until told to stop, and then hands them over. Stopping at any moment is safe:
    /// what was not committed was not done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        telemetry::show(&[telemetry::BATCHES_HELD, telemetry::INBOX_DEPTH]);
        let stopping = watch::Sender::new(false);
        let mut batches = JoinSet::new();
        let work = async {
            self.end_void_leases().await;
            tokio::join!(self.watch_leases(&mut batches, &stopping), self.watch_receipts())
        };
        tokio::select! {
            biased;
            () = stop => {}
            _ = work => {}
        }
        stopping.send_replace(true);
        let handed_over = async { while batches.join_next().await.is_some() {} };
        if clock::timeout(&*self.services.clock, HAND_OVER, handed_over).await.is_none() {
            tracing::warn!(
                "batches could not be handed over in time; other nodes take them when leases expire"
            );
        }
    }

    /// Ends the leases of processes that are gone. An embedded store lets in one process at a time, so
    /// after a crash its batches go on at once. What is missed here expires.
    async fn end_void_leases(&self) {
        let Some(processes) = &self.processes else { return };
        if let Err(error) = self.try_end_void_leases(&**processes).await {
            tracing::warn!(%error, "leases of processes that are gone cannot be ended; they expire");
        }
    }

    async fn try_end_void_leases(&self, processes: &dyn Processes) -> Result<(), ProviderError> {
        let store = &*self.services.store;
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
        let ends =
            stream::iter(void).map(|record: Record| async move { lease::end(store, &record, now_ms).await });
        ends.buffer_unordered(ENDED_AT_ONCE).try_collect().await
    }

    fn holder(&self) -> Holder {
        Holder {
            node: self.node.clone(),
            process: self.processes.as_ref().map(|processes| processes.id().to_owned()),
            lease: self.services.options.lease,
        }
    }

    async fn watch_leases(&self, batches: &mut JoinSet<()>, stopping: &watch::Sender<bool>) {
        loop {
            while batches.try_join_next().is_some() {}
            let due = match self.due(LEASES).await {
                Ok(due) => due,
                Err(error) => {
                    tracing::warn!(%error, "batches of runbooks cannot be read; trying again");
                    clock::sleep(&*self.services.clock, PAUSE).await;
                    continue;
                }
            };
            let taken = due.iter().filter(|record| self.take(record, batches, stopping)).count();
            if taken == 0 && !due.is_empty() {
                clock::sleep(&*self.services.clock, SHORT_PAUSE).await;
            }
        }
    }

    async fn due(&self, kind: &str) -> Result<Vec<Record>, ProviderError> {
        let request = DueRecords { kind, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        self.services.store.due_records(request).await
    }

    /// Drives the batch of a due lease record, unless this node is at it. Returns whether it is
    /// new.
    fn take(&self, record: &Record, batches: &mut JoinSet<()>, stopping: &watch::Sender<bool>) -> bool {
        let Some(place) = BatchPlace::of_lease(&record.id) else { return false };
        {
            let mut held = lock(&self.held);
            if held.len() >= MAX_HELD || !held.insert(place.clone()) {
                return false;
            }
        }
        let (services, holder, record) = (Arc::clone(&self.services), self.holder(), record.clone());
        let (held, stop) = (Arc::clone(&self.held), stopping.subscribe());
        batches.spawn(async move {
            let clock = Arc::clone(&services.clock);
            let driven = drive(Arc::clone(&services), &place, &record, (holder.clone(), stop)).await;
            match driven {
                Ok(()) => {}
                Err(DriveError::LeaseLost) => {
                    tracing::info!(batch = %place.id(), "another node has taken the batch");
                }
                Err(DriveError::Store(error)) => {
                    tracing::warn!(batch = %place.id(), %error, "a batch waits for the store; it goes on when that answers");
                    give_back(&services, &place, &holder).await;
                }
                Err(error) => {
                    tracing::warn!(batch = %place.id(), %error, "a batch cannot be driven; it is tried again");
                    clock::sleep(&*clock, PAUSE).await;
                }
            }
            lock(&held).remove(&place);
        });
        true
    }

    /// Wakes batches whose requests were not applied in time.
    async fn watch_receipts(&self) {
        loop {
            let woken = match self.due(RECEIPTS).await {
                Ok(due) => self.remind(due).await,
                Err(error) => Err(error),
            };
            if let Err(error) = woken {
                tracing::warn!(%error, "requests of batches cannot be looked after; trying again");
                clock::sleep(&*self.services.clock, PAUSE).await;
            }
        }
    }

    async fn remind(&self, due: Vec<Record>) -> Result<(), ProviderError> {
        for record in due {
            match self.remind_of(record).await {
                // Another node, or the holder of the batch, was first.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// A request was not applied in time: its batch is woken, and the receipt is due again.
    async fn remind_of(&self, record: Record) -> Result<(), ProviderError> {
        let store = &*self.services.store;
        let now_ms = store.now_ms().await?;
        let expect = Expect::Version(record.version);
        let place = BatchPlace::of_record(&record.id);
        let receipt = Receipt::read(&record).ok();
        let due_at_ms = match (&place, &receipt) {
            (Some(place), Some(receipt)) => {
                let message = store.get_record(INBOX, &request_id(place, &receipt.key)).await?;
                // A batch without a lease record was deleted: no node will ever apply the message.
                let is_gone = store.get_record(LEASES, &place.id()).await?.is_none();
                message.filter(|_| !is_gone).map(|_| now_ms.saturating_add(clock::duration_ms(REMIND_AFTER)))
            }
            _ => None,
        };
        if let (Some(place), Some(_)) = (&place, due_at_ms) {
            lease::wake(store, place, now_ms).await?;
        }
        let write = RecordWrite::Put {
            kind: RECEIPTS.to_owned(),
            id: record.id,
            expect,
            due_at_ms,
            // One whose message is gone has nothing to wait for.
            time_to_live: due_at_ms.is_none().then_some(KEEP_ANSWERED),
            body: record.body,
        };
        store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.map(drop)
    }
}

async fn drive(
    services: Arc<Services>,
    place: &BatchPlace,
    record: &Record,
    (holder, stop): (Holder, watch::Receiver<bool>),
) -> Result<(), DriveError> {
    match Held::acquire(services, place.clone(), record, holder).await? {
        Some(held) => held.run(stop).await,
        None => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries to give a batch back until the store answers, or its lease has ended by itself.
async fn give_back(services: &Services, place: &BatchPlace, holder: &Holder) {
    let mut left = holder.lease;
    while !left.is_zero() {
        clock::sleep(&*services.clock, PAUSE).await;
        match lease::give_back(&*services.store, place, holder).await {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(batch = %place.id(), %error, "a batch cannot be given back; trying again")
            }
        }
        left = left.saturating_sub(PAUSE);
    }
}
