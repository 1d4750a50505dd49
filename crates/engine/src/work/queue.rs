//! The door itself, and the answers that end a lease.

use std::sync::Arc;
use std::time::Duration;

use super::ending;
use super::lease::Lease;
use super::progress;
use crate::clock::{Clock, SystemClock};
use crate::dead_letter::{LetterPrefix, Letterbox, no_prefix};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::ids::{IdSource, SystemIds};
use crate::limits::{DEFAULT_MAX_DELIVERIES, MAX_LEASE};
use crate::payload::Payload;
use crate::runtime::TurnJoiner;
use crate::runtime::join::Joined;
use crate::store::{ErrorKind, ProviderError, RecordWrite, Store};
use crate::telemetry;

/// Hands activities to workers outside the process and takes their answers. Cheap to clone; see the
/// [module](crate::work).
#[derive(Clone)]
pub struct WorkQueue {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) max_deliveries: u32,
    dead_letter_prefix: LetterPrefix,
    joiner: Option<TurnJoiner>,
}

impl WorkQueue {
    /// The queue of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let WorkQueueBuilder { store, clock, ids, max_deliveries, dead_letter_prefix, joiner } =
            Self::builder(store);
        WorkQueue { store, clock, ids, max_deliveries, dead_letter_prefix, joiner }
    }

    /// Where the dead letters of this queue are made.
    pub(super) fn letters(&self) -> Letterbox<'_> {
        Letterbox { ids: &*self.ids, prefix: self.dead_letter_prefix }
    }

    /// Prepares a queue with other settings and parts.
    pub fn builder(store: Arc<dyn Store>) -> WorkQueueBuilder {
        WorkQueueBuilder {
            store,
            clock: SystemClock::shared(),
            ids: SystemIds::shared(),
            max_deliveries: DEFAULT_MAX_DELIVERIES,
            dead_letter_prefix: no_prefix,
            joiner: None,
        }
    }

    /// Ends the attempt with a result.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; nothing is changed. `payload-too-large`, `payload-too-deep` or `payload-not-json` when the
    /// result is. `store`
    /// when the store is unavailable; then the outcome is unknown, and a repeat that gets `lease-lost` may have been
    /// taken the first time.
    pub async fn complete(&self, lease: &Lease, result: Payload) -> Result<(), Error> {
        result.check()?;
        let forget = lease.has_progress.then(|| progress::delete(&lease.idempotency_key));
        self.end(lease, Ok(result), forget).await
    }

    /// Ends the attempt with a failure, which the retry policy of the call judges.
    ///
    /// # Errors
    /// As for [`complete`](WorkQueue::complete). A failure that is too large is cut.
    pub async fn fail(&self, lease: &Lease, failure: Failure) -> Result<(), Error> {
        self.end(lease, Err(failure), None).await
    }

    /// Returns the activity to the queue, to be delivered again after `delay`. It counts neither as an attempt nor as
    /// a delivery.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; `invalid-option` when the delay is longer than [`MAX_LEASE`]; `store`
    /// when the store is unavailable.
    pub async fn release(&self, lease: &Lease, delay: Option<Duration>) -> Result<(), Error> {
        if let Some(delay) = delay.filter(|delay| *delay > MAX_LEASE) {
            let message = format!("a delay of {delay:?} is too long; the limit is {MAX_LEASE:?}");
            return Err(Error::new(Code::InvalidOption, message));
        }
        let released = self.store.abandon_work_item(lease.token(), delay, true).await;
        released.map_err(|error| refused(lease, error))
    }

    /// Commits the end of an attempt.
    pub(super) async fn end(
        &self,
        lease: &Lease,
        result: Result<Payload, Failure>,
        record: Option<RecordWrite>,
    ) -> Result<(), Error> {
        let succeeded = result.is_ok();
        let records: Vec<RecordWrite> = record.into_iter().collect();
        let joined = match &self.joiner {
            Some(joiner) => joiner.end(lease, &result, records.clone()).await,
            None => Joined::Not,
        };
        match joined {
            Joined::Committed => {}
            Joined::Not => {
                let ack = lease.held().ended(result, records);
                self.store.ack_work_item(ack).await.map_err(|error| refused(lease, error))?;
            }
            Joined::Unknown(error) => return Err(error.into()),
        }
        ending::count(succeeded);
        // By two clocks, the store's and ours; nothing but this figure depends on their difference.
        let took_ms = self.clock.now_ms().saturating_sub(lease.fetched_at_ms);
        metrics::histogram!(telemetry::ACTIVITY_SECONDS).record(took_ms as f64 / 1e3);
        Ok(())
    }
}

/// The error of an answer that the store did not take.
fn refused(lease: &Lease, error: ProviderError) -> Error {
    if error.kind() != ErrorKind::LockLost {
        return error.into();
    }
    metrics::counter!(telemetry::LOCKS_LOST, "what" => "activity").increment(1);
    lease.lost()
}

/// Settings and parts of a [`WorkQueue`].
pub struct WorkQueueBuilder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    max_deliveries: u32,
    dead_letter_prefix: LetterPrefix,
    joiner: Option<TurnJoiner>,
}

impl WorkQueueBuilder {
    /// The end of an activity becomes part of the turn that it brings, if this node holds the
    /// execution: one commit instead of two, as for activities that the node runs itself.
    #[must_use]
    pub fn joining(mut self, joiner: TurnJoiner) -> Self {
        self.joiner = Some(joiner);
        self
    }

    /// What the ids of the dead letters of an instance begin with; see
    /// [`RuntimeOptions::dead_letter_prefix`](crate::RuntimeOptions::dead_letter_prefix).
    #[must_use]
    pub fn dead_letter_prefix(mut self, prefix: LetterPrefix) -> Self {
        self.dead_letter_prefix = prefix;
        self
    }

    /// Deliveries of an attempt without an answer before it fails as poison.
    #[must_use]
    pub fn max_deliveries(mut self, max_deliveries: u32) -> Self {
        self.max_deliveries = max_deliveries;
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another source of ids, for tests.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Finishes the queue.
    ///
    /// # Errors
    /// `invalid-option` when no delivery would be allowed.
    pub fn build(self) -> Result<WorkQueue, Error> {
        let WorkQueueBuilder { store, clock, ids, max_deliveries, dead_letter_prefix, joiner } = self;
        if max_deliveries == 0 {
            return Err(Error::new(Code::InvalidOption, "max_deliveries must be at least 1"));
        }
        Ok(WorkQueue { store, clock, ids, max_deliveries, dead_letter_prefix, joiner })
    }
}
