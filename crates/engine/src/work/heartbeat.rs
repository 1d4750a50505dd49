//! Heartbeats: they extend a lease, and report when the attempt has to stop.

use std::fmt;
use std::time::Duration;

use super::ending;
use super::lease::{self, Lease};
use super::progress;
use super::queue::WorkQueue;
use crate::error::Error;
use crate::payload::Payload;
use crate::store::{ErrorKind, Expect, LockLife};
use crate::telemetry;

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heartbeat {
    /// Go on until this lease ends. Show it from now on: with an older one of the same attempt, answers still count,
    /// but a cancellation cannot be distinguished from a lost lease, and stored progress is left behind for a week.
    GoOn(Lease),
    /// Stop: whatever the attempt would answer is not wanted.
    Stop(StopReason),
}

/// Why an attempt is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The orchestration does not wait for the activity any more.
    Cancelled,
    /// The attempt took longer than its timeout, and has failed.
    TimedOut,
}

impl StopReason {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed-out",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl WorkQueue {
    /// Shows that the attempt is alive, extends its lease to `extend` from now, and stores its progress for the
    /// next attempt. Timeouts of the call make the extension shorter.
    ///
    /// From then on the lease outlives the process, whatever the fetch requested.
    ///
    /// The first heartbeat after the end of an attempt with a timeout fails the attempt with `attempt-timeout`.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; nothing is changed. `payload-too-large`, `payload-too-deep`, `payload-not-json` and `invalid-option`
    /// when the heartbeat is out of range; `store` when the store is unavailable.
    pub async fn heartbeat(
        &self,
        lease: &Lease,
        extend: Duration,
        progress: Option<Payload>,
    ) -> Result<Heartbeat, Error> {
        lease::check_length(extend)?;
        progress.as_ref().map_or(Ok(()), Payload::check)?;
        let now_ms = self.store.now_ms().await?;
        if lease.attempt_ends_at_ms().is_some_and(|ends_at_ms| ends_at_ms <= now_ms) {
            return self.time_out(lease, progress).await;
        }
        // Read while the lease is valid: a later write changes the version.
        let expect = match &progress {
            Some(_) => Some(progress::version(&*self.store, &lease.idempotency_key).await?),
            None => None,
        };
        let term = lease.term(extend, now_ms);
        let renewed = self.store.renew_work_item_lock(lease.token(), term.lock, LockLife::Durable).await;
        if let Err(error) = renewed {
            return if error.kind() == ErrorKind::LockLost {
                self.gone(lease).await
            } else {
                Err(error.into())
            };
        }
        let mut renewed = Lease { expires_at_ms: term.expires_at_ms, ..lease.clone() };
        if let (Some(progress), Some(expect)) = (progress, expect) {
            self.keep_progress(lease, expect, &progress).await;
            renewed.has_progress = true;
        }
        Ok(Heartbeat::GoOn(renewed))
    }

    /// Makes a lease outlive the process and extends it to `extend` from now: for one that was
    /// fetched with [`LockLife::Process`] and has been handed to a worker elsewhere. Timeouts of
    /// the call make the extension shorter.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold, as after an answer of that worker;
    /// `invalid-option` when the extension is out of range; `store` when the store is unavailable.
    pub async fn keep(&self, lease: &Lease, extend: Duration) -> Result<(), Error> {
        lease::check_length(extend)?;
        let term = lease.term(extend, self.store.now_ms().await?);
        let kept = self.store.renew_work_item_lock(lease.token(), term.lock, LockLife::Durable).await;
        kept.map_err(|error| match error.kind() {
            ErrorKind::LockLost => lease.lost(),
            _ => error.into(),
        })
    }

    /// A heartbeat does not fail for its progress: the next one brings newer.
    async fn keep_progress(&self, lease: &Lease, expect: Expect, progress: &Payload) {
        let stored = progress::store(&*self.store, &lease.idempotency_key, expect, progress).await;
        if let Err(error) = stored {
            tracing::debug!(%error, "progress could not be stored");
        }
    }

    async fn time_out(&self, lease: &Lease, progress: Option<Payload>) -> Result<Heartbeat, Error> {
        let failure = ending::attempt_timeout(&lease.name, lease.timeout_ms.unwrap_or_default());
        let put = |progress| progress::put(&lease.idempotency_key, Expect::Anything, &progress);
        self.end(lease, Err(failure), progress.map(put)).await?;
        Ok(Heartbeat::Stop(StopReason::TimedOut))
    }

    /// The lock is gone. If its time was not up, then the item was taken out of the queue.
    async fn gone(&self, lease: &Lease) -> Result<Heartbeat, Error> {
        let was_removed = self.store.now_ms().await? < lease.expires_at_ms;
        let outcome = if was_removed { "cancelled" } else { "lock_lost" };
        metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => outcome).increment(1);
        if was_removed { Ok(Heartbeat::Stop(StopReason::Cancelled)) } else { Err(lease.lost()) }
    }
}
