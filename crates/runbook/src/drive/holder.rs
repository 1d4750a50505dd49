//! A batch that this node holds: takes waiting messages and due rows in parts until nothing is left
//! to do, waits for the next, and releases the batch when it is quiet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::{Record, Store};
use segno_actions::pools::RoomCalls;
use tokio::sync::watch;

use super::announcer::Announcer;
use super::calls::Calls;
use super::definitions::{Definitions, LoadedDefinitions};
use super::error::DriveError;
use super::inbox;
use super::lease::{self, Holder, Lease};
use super::load::Loader;
use super::outbox::Outbox;
use super::part::Progress;
use super::place::{BatchPlace, HEADS, head_id};
use super::post::timestamp;
use super::published::RunbookHead;
use super::unsent::Unsent;
use super::wakeups::Wakeups;
use crate::message::{Action, Message, Request};
use crate::rows::{BatchStatus, PhaseRow, Rows, Want};
use crate::step::limits::{DISPATCH_TIMEOUT_SEC, ROWS_PER_PART};
use crate::step::{Context, StepTemplates};
use crate::telemetry::{self, Share};

/// How long a quiet batch is kept, because messages often come in bursts.
const KEEP_QUIET: Duration = Duration::from_secs(2);

/// Pause after inputs that changed nothing, which is a defect.
const STUCK_PAUSE: Duration = Duration::from_secs(5);

/// Settings of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverOptions {
    /// How long a call may be without a lease before its step fails.
    pub dispatch_timeout: Duration,
    /// Most rows that one part of cursor work reads.
    pub rows_per_part: u32,
    /// After how long the batches of a node that died are taken by others.
    pub lease: Duration,
    /// How long batches that have ended are kept; for ever without it.
    pub retention: Option<Duration>,
    /// How long the calls of ended steps are kept; as long as other instances without it.
    pub keep_invocations: Option<Duration>,
}

/// How long the calls of ended steps are kept, unless set otherwise.
pub const KEEP_INVOCATIONS: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for DriverOptions {
    fn default() -> Self {
        let dispatch_timeout = Duration::from_secs(DISPATCH_TIMEOUT_SEC);
        DriverOptions {
            dispatch_timeout,
            rows_per_part: ROWS_PER_PART,
            lease: lease::LEASE,
            retention: None,
            keep_invocations: Some(KEEP_INVOCATIONS),
        }
    }
}

/// Everything that drivers of batches share.
#[derive(Clone)]
pub struct Services {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Calls of functions through worker pools.
    pub calls: RoomCalls,
    /// Published runbooks.
    pub definitions: Definitions,
    /// Where events go.
    pub announcer: Arc<dyn Announcer>,
    /// The bus that jobs and messages of a tenant go to.
    pub bus: Option<Outbox>,
    /// Settings.
    pub options: DriverOptions,
}

/// What a decision depends on besides the rows.
pub(super) fn context<'a>(
    services: &'a Services,
    known: &'a LoadedDefinitions,
    rows_per_part: u32,
    now_ms: u64,
) -> Context<'a> {
    Context {
        now: timestamp(now_ms),
        definitions: known,
        templates: &StepTemplates,
        zones: services.definitions.zones(),
        rows_per_part,
        dispatch_timeout_sec: services.options.dispatch_timeout.as_secs(),
    }
}

/// A batch that this node holds.
pub(super) struct Held {
    pub(super) services: Arc<Services>,
    pub(super) place: BatchPlace,
    pub(super) calls: Calls,
    pub(super) lease: Lease,
    pub(super) rows: Rows,
    pub(super) known: LoadedDefinitions,
    /// Name of the runbook.
    pub(super) runbook: String,
    /// Messages that this holder made: reports about calls, a newer version.
    pub(super) own: VecDeque<Message>,
    pub(super) wakeups: Wakeups,
    /// Jobs whose starts are part of the next commit, for the metric.
    pub(super) dispatched: Vec<String>,
    pub(super) rows_per_part: u32,
    /// State of the batch in the index.
    pub(super) indexed: Option<BatchStatus>,
    /// Jobs that could not be sent to their pools.
    pub(super) unsent: Unsent,
    /// Newest version that the batch was told of.
    offered_version: u32,
    /// How far the store's clock is ahead of this node's, in milliseconds.
    ahead_ms: i64,
}

impl Held {
    /// Takes the batch of a due lease record, unless another node holds it.
    pub(super) async fn acquire(
        services: Arc<Services>,
        place: BatchPlace,
        record: &Record,
        holder: Holder,
    ) -> Result<Option<Self>, DriveError> {
        let store = &*services.store;
        let now_ms = store.now_ms().await?;
        let ahead_ms = difference(now_ms, services.clock.now_ms());
        let Some(lease) = Lease::acquire(store, record, holder, now_ms).await? else { return Ok(None) };
        let loader = Loader { store, place: &place, definitions: &services.definitions };
        let rows = loader.begin().await?;
        let batch = rows.batch();
        let mut held = Held {
            calls: Calls::new(services.calls.clone(), Arc::clone(&services.store), services.bus.clone()),
            runbook: batch.map(|batch| batch.runbook_name.clone()).unwrap_or_default(),
            indexed: batch.map(|batch| batch.status),
            unsent: Unsent::default(),
            offered_version: 0,
            rows_per_part: services.options.rows_per_part,
            services,
            place,
            lease,
            rows,
            known: LoadedDefinitions::new(),
            own: VecDeque::new(),
            wakeups: Wakeups::unknown(),
            dispatched: Vec::new(),
            ahead_ms,
        };
        held.check_version().await?;
        Ok(Some(held))
    }

    /// Drives the batch until it is quiet or the node stops, then releases it.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), DriveError> {
        let _held = Share::new(telemetry::BATCHES_HELD, 1);
        let mut depth = Share::new(telemetry::INBOX_DEPTH, 0);
        let mut quiet_since_ms = None;
        let mut wait = Duration::ZERO;
        loop {
            self.look_at_pools().await?;
            if !self.own.is_empty() {
                wait = Duration::ZERO;
            }
            let messages = tokio::select! {
                biased;
                () = stopped(&mut stop) => return self.hand_over().await,
                messages = inbox::read(&*self.services.store, &self.place, wait) => messages?,
            };
            depth.set(messages.len());
            let progress = self.part(messages).await?;
            if progress == Progress::Made {
                (quiet_since_ms, wait) = (None, Duration::ZERO);
                continue;
            }
            let now_ms = self.now_ms();
            if self.lease.time_to_renewal(now_ms).is_zero() {
                self.check_version().await?;
                self.lease.renew(&*self.services.store, now_ms).await?;
            }
            if !self.own.is_empty() {
                wait = Duration::ZERO;
                continue;
            }
            let since_ms = *quiet_since_ms.get_or_insert(now_ms);
            let is_quiet = now_ms.saturating_sub(since_ms) >= clock::duration_ms(KEEP_QUIET);
            if is_quiet && !self.has_open_calls() {
                return self.release().await;
            }
            if is_quiet {
                // A batch that only waits for its calls needs no memory for their rows.
                self.rows.forget_unchanged();
            }
            wait = self.next_wait(now_ms);
            if progress == Progress::Stuck {
                tracing::error!(batch = %self.place.id(), "due rows of a batch do not change; this is a defect");
                clock::sleep(&*self.services.clock, STUCK_PAUSE).await;
            }
        }
    }

    /// Now, by the store's clock, in Unix milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        self.services.clock.now_ms().saturating_add_signed(self.ahead_ms)
    }

    pub(super) async fn load(&mut self, wants: Vec<Want>) -> Result<(), DriveError> {
        let services = &self.services;
        let loader =
            Loader { store: &*services.store, place: &self.place, definitions: &services.definitions };
        loader.load(&mut self.rows, &mut self.known, &self.runbook, wants).await
    }

    /// Tells the batch of a newer version of its runbook. Publishing tells it too; this finds what
    /// a publisher that died, or that came at the same time as the creation, has left undone.
    async fn check_version(&mut self) -> Result<(), DriveError> {
        let Some(batch) = self.rows.batch().filter(|batch| !batch.status.is_terminal()) else {
            return Ok(());
        };
        if batch.is_manual {
            return Ok(());
        }
        let id = head_id(&self.place.scope, &self.runbook);
        let Some(record) = self.services.store.get_record(HEADS, &id).await? else { return Ok(()) };
        let head = RunbookHead::read(&record).map_err(|error| DriveError::Unreadable {
            kind: HEADS,
            id,
            problem: error.to_string(),
        })?;
        if head.active_version > batch.runbook_version.max(self.offered_version) {
            self.offered_version = head.active_version;
            self.own.push_back(Message::Request(publish_request(&head)));
        }
        Ok(())
    }

    /// Whether results may arrive, which wake the holder only.
    fn has_open_calls(&self) -> bool {
        let Some(batch) = self.rows.batch() else { return false };
        let is_at_work = |phase: &PhaseRow| {
            phase.step_counts.dispatched + phase.step_counts.polling + phase.rolling_back() > 0
        };
        self.rows.phases().any(is_at_work)
            || self.rows.inits().any(|init| init.work.is_called())
            || batch.rollback_of.is_some()
            || batch.member_counts.leaving > 0
    }

    /// How long to wait for messages: until the lease has to be renewed, a row is due, or the batch
    /// has been quiet for long enough to be released, or its rows to be forgotten.
    fn next_wait(&self, now_ms: u64) -> Duration {
        let due_ms = self.wakeups.next_ms(&self.rows);
        let to_due = Duration::from_millis(due_ms.saturating_sub(now_ms));
        let is_at_rest = self.has_open_calls() && self.rows.loaded() == 0;
        let to_quiet = if is_at_rest { Duration::MAX } else { KEEP_QUIET };
        let to_pools = self.time_to_pools(now_ms);
        let wait = self.lease.time_to_renewal(now_ms).min(to_due).min(to_quiet).min(to_pools);
        wait.max(Duration::from_millis(1))
    }

    /// Releases the batch until its next wake-up. A message that was written while the batch was
    /// still held is found by looking again.
    async fn release(self) -> Result<(), DriveError> {
        let store = Arc::clone(&self.services.store);
        let due_at_ms = self.wakeups.exact_ms(&*store, &self.place, &self.rows).await?;
        let now_ms = self.now_ms();
        let place = self.place;
        self.lease.release(&*store, due_at_ms).await?;
        if inbox::has_messages(&*store, &place).await? {
            lease::wake(&*store, &place, now_ms).await?;
        }
        Ok(())
    }

    /// Releases the batch for another node to take at once.
    async fn hand_over(self) -> Result<(), DriveError> {
        let now_ms = self.now_ms();
        self.lease.release(&*self.services.store, Some(now_ms)).await
    }
}

/// Resolves when the node stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The request that tells a batch of the active version of its runbook.
pub(super) fn publish_request(head: &RunbookHead) -> Request {
    Request {
        key: format!("publish-{}", head.active_version),
        by: None,
        action: Action::PublishVersion {
            runbook_id: head.runbook_id,
            runbook_version: head.active_version,
            overdue_behavior: head.overdue_behavior,
            rerun_init: head.rerun_init,
        },
    }
}

/// How much later the first time is.
fn difference(first_ms: u64, second_ms: u64) -> i64 {
    i64::try_from(i128::from(first_ms) - i128::from(second_ms)).unwrap_or(0)
}
