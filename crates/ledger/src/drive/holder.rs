//! A scope that this node holds: waits for events and for the next stored time, appends and folds, decides, dispatches, and
//! releases the scope when it is quiet.
//!
//! One round is fetch → decide → commit: what waits in the outbox and what the last round decided is appended as one object
//! and folded; controllers decide on the folded state; then one commit of records deletes what was appended, starts calls
//! and keeps the lease.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use segno::clock;
use segno::store::{ErrorKind, Record, RecordBatch};
use segno_actions::functions::Scope;
use segno_actions::pools::RoomCalls;
use tokio::sync::watch;

use super::announce::RunAnnouncer;
use super::append::Writer;
use super::begun::begun;
use super::checks::Checks;
use super::dispatch::Dispatches;
use super::error::{DriveError, LedgerError};
use super::lease::{self, Holder, Lease};
use super::ledger::Ledger;
use super::limits::{ACKNOWLEDGE_WITHIN, KEEP_QUIET, LEASE, LOG_POLL};
use super::outbox::{self, Waiting, WaitingEvent};
use super::wakeups;
use crate::compactor::{Compactor, Options, Setup};
use crate::controllers::Freshness;
use crate::fold::{FailedRun, State};
use crate::telemetry::{self, Share};

/// Pause after the object store did not answer; it doubles with each further failure.
const STORAGE_PAUSE: Duration = Duration::from_secs(1);

/// Longest such pause, unless a third of a lease is shorter.
const LONGEST_STORAGE_PAUSE: Duration = Duration::from_secs(8);

/// How often such failures are logged while they go on.
const WARN_EVERY_MS: u64 = 60_000;

/// Longest work at the end of a tenure: merges and deletions that are under way.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);

/// Settings of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverOptions {
    /// After how long the scopes of a node that died are taken by others.
    pub lease: Duration,
    /// How long a scope that has nothing to do is kept.
    pub keep_quiet: Duration,
    /// How often the log is listed for events that others have appended.
    pub log_poll: Duration,
    /// Shortest time between two appends of a scope: an object store that takes long for a call, or money, is called for more
    /// events at once.
    pub fold_interval: Duration,
    /// Settings of the compactor.
    pub compactor: Options,
}

impl Default for DriverOptions {
    fn default() -> Self {
        DriverOptions {
            lease: LEASE,
            keep_quiet: KEEP_QUIET,
            log_poll: LOG_POLL,
            fold_interval: Duration::ZERO,
            compactor: Options::default(),
        }
    }
}

/// Everything that drivers of scopes share.
#[derive(Clone)]
pub struct Services {
    /// Records, log and tables.
    pub ledger: Ledger,
    /// Calls of functions.
    pub calls: RoomCalls,
    /// Those who follow runs.
    pub announcer: Arc<dyn RunAnnouncer>,
    /// Settings.
    pub options: DriverOptions,
}

/// A scope that this node holds.
pub(super) struct Held {
    pub(super) services: Arc<Services>,
    pub(super) scope: Scope,
    pub(super) lease: Lease,
    pub(super) compactor: Compactor<State>,
    pub(super) writer: Writer,
    /// The secret from which run ids are derived.
    pub(super) secret: Arc<[u8]>,
    /// What the last round decided: appended with the next events.
    pub(super) own: Vec<WaitingEvent>,
    /// Record writes and messages of the next commit.
    pub(super) commit: RecordBatch,
    pub(super) dispatches: Dispatches,
    pub(super) checks: Checks,
    /// Failures of which notices could not be sent yet.
    pub(super) unsent: Vec<FailedRun>,
    /// When the log was last listed.
    pub(super) listed_at_ms: u64,
    /// When events were last appended.
    pub(super) appended_at_ms: u64,
    /// Failures of the object store in a row.
    pub(super) failures: u32,
    /// When one was last logged.
    pub(super) warned_at_ms: u64,
    /// When controllers that follow the clock were last run.
    pub(super) ticked_at_ms: u64,
    /// How far the store's clock is ahead of this node's, in milliseconds.
    pub(super) ahead_ms: i64,
}

/// A lease that is renewed while work on the object store goes on, which may take longer than the lease.
pub(super) struct Renewed<'a> {
    pub(super) lease: &'a mut Lease,
    pub(super) ledger: &'a Ledger,
    /// How far the store's clock is ahead of this node's, in milliseconds.
    pub(super) ahead_ms: i64,
}

impl Renewed<'_> {
    /// Waits for work. It is given up when the lease is lost to another node.
    pub(super) async fn during<T>(self, mut work: BoxFuture<'_, T>) -> Result<T, DriveError> {
        let Renewed { lease, ledger, ahead_ms } = self;
        let time = ledger.clock();
        loop {
            let now_ms = time.now_ms().saturating_add_signed(ahead_ms);
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = clock::sleep(time, lease.time_to_renewal(now_ms)) => {}
            }
            let now_ms = time.now_ms().saturating_add_signed(ahead_ms);
            lease.commit(ledger.store(), RecordBatch::default(), now_ms).await?;
        }
    }
}

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Something was appended or started.
    Made,
    /// There was nothing to do.
    None,
}

impl Held {
    /// Takes the scope of a due lease record, unless another node holds it.
    pub(super) async fn acquire(
        services: Arc<Services>,
        scope: Scope,
        record: Record,
        holder: Holder,
    ) -> Result<Option<Self>, DriveError> {
        let ledger = &services.ledger;
        let now_ms = ledger.store().now_ms().await?;
        let ahead_ms = difference(now_ms, ledger.clock().now_ms());
        let Some(mut lease) = Lease::acquire(ledger.store(), &record, holder, now_ms).await? else {
            return Ok(None);
        };
        let newest: BoxFuture<'_, _> = ledger.snapshot(&scope).boxed();
        if let Some(published) = newest.await?.map(|newest| newest.manifest().epoch)
            && published >= lease.epoch()
        {
            lease.raise_epoch(ledger.store(), published, now_ms).await?;
        }
        let options = ledger.options();
        let setup = Setup {
            scope: scope.clone(),
            stores: ledger.objects().clone(),
            clock: Arc::clone(&options.clock),
            ids: Arc::clone(&options.ids),
            epoch: lease.epoch(),
            options: services.options.compactor.clone(),
        };
        // A slow object store may take longer than a lease.
        let opened: BoxFuture<'_, _> = Compactor::open(setup).boxed();
        let compactor = Renewed { lease: &mut lease, ledger, ahead_ms }.during(opened).await??;
        if !ledger.has_begun(&scope).await? {
            let batch = RecordBatch { writes: vec![begun(&scope)], ..RecordBatch::default() };
            let now_ms = ledger.clock().now_ms().saturating_add_signed(ahead_ms);
            lease.commit(ledger.store(), batch, now_ms).await?;
        }
        let mut held = Held {
            secret: ledger.secret(&scope).await?,
            writer: Writer::new(&scope, options),
            lease,
            compactor,
            own: Vec::new(),
            commit: RecordBatch::default(),
            dispatches: Dispatches::default(),
            checks: Checks::default(),
            unsent: Vec::new(),
            listed_at_ms: 0,
            appended_at_ms: 0,
            failures: 0,
            warned_at_ms: 0,
            ticked_at_ms: 0,
            ahead_ms,
            services,
            scope,
        };
        held.catch_up().await?;
        held.services.ledger.tried(&held.scope, None);
        Ok(Some(held))
    }

    /// Drives the scope until it is quiet or the node stops, then releases it.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), DriveError> {
        let _held = Share::new(telemetry::SCOPES_HELD, 1);
        let mut depth = Share::new(telemetry::OUTBOX_DEPTH, 0);
        let mut quiet_since_ms = None;
        let mut wait = Duration::ZERO;
        let time = Arc::clone(&self.services.ledger.options().clock);
        loop {
            let pause = self.until_append(self.now_ms());
            let waiting = tokio::select! {
                biased;
                () = stopped(&mut stop) => return self.hand_over().await,
                () = clock::sleep(&*time, pause), if !pause.is_zero() => continue,
                waiting = outbox::read(self.services.ledger.store(), &self.scope, wait), if pause.is_zero() => waiting?,
            };
            depth.set(waiting.len());
            let progress = match self.round(waiting).await {
                Ok(progress) => {
                    self.services.ledger.tried(&self.scope, None);
                    (self.failures, self.warned_at_ms) = (0, 0);
                    progress
                }
                Err(error) if error.is_passing() => {
                    self.recover(error).await?;
                    wait = Duration::ZERO;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let now_ms = self.now_ms();
            if progress == Progress::Made {
                quiet_since_ms = None;
            }
            let since_ms = *quiet_since_ms.get_or_insert(now_ms);
            let quiet_ms = clock::duration_ms(self.services.options.keep_quiet);
            if now_ms.saturating_sub(since_ms) >= quiet_ms && self.is_at_rest(now_ms) {
                return self.release().await;
            }
            wait = self.next_wait(now_ms);
        }
    }

    /// Appends, folds, decides, dispatches.
    async fn round(&mut self, waiting: Vec<Waiting>) -> Result<Progress, DriveError> {
        let now_ms = self.now_ms();
        // Also when it is over by this node's clock: the commit fails if another node has taken the scope, and only then is the
        // lease lost. A node that stood still for a while goes on otherwise.
        if self.lease.time_to_renewal(now_ms).is_zero() {
            self.lease.commit(self.services.ledger.store(), RecordBatch::default(), now_ms).await?;
        }
        let appended = self.append(waiting, now_ms).await?;
        if appended > 0 {
            self.appended_at_ms = now_ms;
        }
        self.list_log(now_ms).await?;
        self.notify(Vec::new()).await?;
        self.decide(now_ms).await?;
        self.check(now_ms).await?;
        let started = self.dispatch(now_ms).await?;
        Ok(if appended + started > 0 { Progress::Made } else { Progress::None })
    }

    /// Folds what others have appended, and lets the compactor do what is due.
    async fn list_log(&mut self, now_ms: u64) -> Result<(), DriveError> {
        let listed_until_ms =
            self.listed_at_ms.saturating_add(clock::duration_ms(self.services.options.log_poll));
        let is_due = self.compactor.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        if now_ms >= listed_until_ms || is_due {
            self.fold_waiting().await?;
            self.listed_at_ms = now_ms;
        }
        Ok(())
    }

    /// At the begin of a tenure: folds what a former holder has left in the log, and takes up the attempts that are under
    /// way.
    async fn catch_up(&mut self) -> Result<(), DriveError> {
        self.fold_waiting().await?;
        self.listed_at_ms = self.now_ms();
        self.checks.take_up(self.compactor.state(), self.listed_at_ms);
        // A former holder may have died between a fold and the commit of its notices.
        let failed = self.compactor.state().all_failed();
        self.notify(failed).await
    }

    /// The object store did not answer: what was decided and not appended is decided again.
    async fn recover(&mut self, error: DriveError) -> Result<(), DriveError> {
        metrics::counter!(telemetry::OBJECT_ERRORS).increment(1);
        self.services.ledger.tried(&self.scope, Some(error.to_string()));
        let now_ms = self.now_ms();
        if now_ms.saturating_sub(self.warned_at_ms) >= WARN_EVERY_MS {
            self.warned_at_ms = now_ms;
            let (scope, failures) = (self.scope.id_prefix(), self.failures + 1);
            tracing::warn!(%scope, %error, failures, "the ledger did not answer; trying again, and logging this once a minute");
        }
        self.own.clear();
        self.commit = RecordBatch::default();
        self.dispatches = Dispatches::default();
        let time = Arc::clone(&self.services.ledger.options().clock);
        clock::sleep(&*time, self.storage_pause()).await;
        self.failures += 1;
        let now_ms = self.now_ms();
        self.lease.commit(self.services.ledger.store(), RecordBatch::default(), now_ms).await?;
        // A batch whose put timed out may be in the log.
        self.listed_at_ms = 0;
        let failed = self.compactor.state().all_failed();
        self.unsent.clear();
        self.notify(failed).await
    }

    /// The pause before the object store is tried again: with backoff, so that a store without room is not filled with the files
    /// of tries that fail.
    fn storage_pause(&self) -> Duration {
        let longest = LONGEST_STORAGE_PAUSE.min(self.services.options.lease / 3);
        STORAGE_PAUSE.saturating_mul(1 << self.failures.min(10)).min(longest)
    }

    /// Now, by the store's clock.
    pub(super) fn now_ms(&self) -> u64 {
        self.services.ledger.clock().now_ms().saturating_add_signed(self.ahead_ms)
    }

    /// How current the state is: nothing above the watermark is unknown to the only writer, and the log was listed in full
    /// a moment ago.
    pub(super) fn freshness(&self, now_ms: u64) -> Freshness {
        Freshness { complete_at: as_time(self.listed_at_ms), tail_checked_at: as_time(now_ms) }
    }

    /// Whether nothing is under way that only wakes the holder.
    fn is_at_rest(&self, now_ms: u64) -> bool {
        let state = self.compactor.state();
        let is_busy = !self.own.is_empty()
            || !self.unsent.is_empty()
            || self.dispatches.has_open()
            || state.dispatched().next().is_some()
            || state.pending_dispatches().next().is_some()
            || self.checks.has_open(state);
        let upkeep_ms = now_ms.saturating_add(2 * 60_000);
        let has_upkeep = self.compactor.next_due_ms().is_some_and(|due_ms| due_ms <= upkeep_ms);
        !is_busy && !has_upkeep
    }

    /// How long to wait for events: until the lease has to be renewed, something is due, or the scope may be released.
    fn next_wait(&self, now_ms: u64) -> Duration {
        if self.own.iter().any(|event| !event.is_acknowledgement()) {
            return Duration::ZERO;
        }
        let options = &self.services.options;
        let to = |at_ms: Option<u64>| {
            at_ms.map_or(Duration::MAX, |at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms)))
        };
        let unsent = if self.unsent.is_empty() { Duration::MAX } else { STORAGE_PAUSE };
        let acknowledge = if self.dispatches.has_open() { ACKNOWLEDGE_WITHIN } else { Duration::MAX };
        let listed_until_ms = self.listed_at_ms.saturating_add(clock::duration_ms(options.log_poll));
        let times = [
            self.lease.time_to_renewal(now_ms),
            acknowledge,
            unsent,
            to(Some(listed_until_ms)),
            to(self.compactor.next_due_ms()),
            to(self.checks.next_due_ms()),
            to(self.dispatches.again_at_ms()),
            to(wakeups::next_ms(self.compactor.state(), &self.services.ledger.options().zones, now_ms)),
            options.keep_quiet,
        ];
        let wait = times.into_iter().min().unwrap_or(options.keep_quiet);
        wait.max(Duration::from_millis(1))
    }

    /// How long the next append waits for more events. A clock that was set back does not prolong it.
    fn until_append(&self, now_ms: u64) -> Duration {
        let interval_ms = clock::duration_ms(self.services.options.fold_interval);
        let passed_ms = now_ms.checked_sub(self.appended_at_ms).unwrap_or(interval_ms);
        Duration::from_millis(interval_ms.saturating_sub(passed_ms))
    }

    /// Releases the scope until its next wake-up. An event that was written while the scope was still held is found by
    /// looking again.
    async fn release(mut self) -> Result<(), DriveError> {
        let ledger = self.services.ledger.clone();
        self.settle().await;
        let now_ms = self.now_ms();
        let wakeup_ms = wakeups::next_ms(self.compactor.state(), &ledger.options().zones, now_ms);
        let due_at_ms = [wakeup_ms, self.compactor.next_expiry_ms()].into_iter().flatten().min();
        let scope = self.scope;
        self.lease.release(ledger.store(), due_at_ms).await?;
        if outbox::has_waiting(ledger.store(), &scope).await? {
            lease::wake(ledger.store(), &scope, now_ms).await?;
        }
        Ok(())
    }

    /// Releases the scope for another node to take at once.
    async fn hand_over(mut self) -> Result<(), DriveError> {
        self.settle().await;
        let now_ms = self.now_ms();
        self.lease.release(self.services.ledger.store(), Some(now_ms)).await
    }

    /// Ends what the compactor does beside folding. What is missed is done by the next holder.
    async fn settle(&mut self) {
        let time = Arc::clone(&self.services.ledger.options().clock);
        let settled = tokio::select! {
            settled = self.compactor.settle() => settled,
            () = clock::sleep(&*time, SETTLE_WITHIN) => Ok(()),
        };
        if let Err(error) = settled {
            tracing::debug!(%error, "merges of a ledger were left to its next holder");
        }
    }
}

impl DriveError {
    /// Whether it goes away by itself, while the scope is still held.
    fn is_passing(&self) -> bool {
        match self {
            DriveError::Storage(error) => {
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Conflict)
            }
            DriveError::Calls(error) => error.kind() == ErrorKind::Unavailable,
            DriveError::Ledger(LedgerError::Busy) => true,
            _ => false,
        }
    }
}

/// Resolves when the node stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// How much later the first time is.
fn difference(first_ms: u64, second_ms: u64) -> i64 {
    i64::try_from(i128::from(first_ms) - i128::from(second_ms)).unwrap_or(0)
}

/// A time as rows have it.
pub(super) fn as_time(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}
