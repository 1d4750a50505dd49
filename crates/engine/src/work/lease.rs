//! The right to answer for one attempt, as plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ending::HeldAttempt;
use crate::clock::duration_ms;
use crate::error::{Code, Error};
use crate::limits::{MAX_LEASE, MIN_LEASE};
use crate::store::{LockToken, LockedWorkItem, ScheduledActivityIdentifier};
use crate::work_item::ActivityExecute;

/// How long the lock outlasts the end of an attempt with a timeout: long enough for the heartbeat that finds the
/// time to be up, and for an answer that was under way.
const ANSWER_GRACE: Duration = Duration::from_secs(15);

/// The right to answer for one attempt of an activity, until it expires.
///
/// It is data without secrets: a caller that forges one can answer for work of others, so sign it before you
/// pass it to a caller that you do not trust. Any process on the same store can take it. Times are the store's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Number of the lock; no two leases of a store have the same.
    pub lock_token: u64,
    /// Instance that called the activity.
    pub instance: String,
    /// Execution of that instance.
    pub execution_id: u64,
    /// The event that scheduled the activity.
    pub activity_id: u64,
    /// Name of the activity.
    pub name: String,
    /// Attempt by the retry policy, from 1.
    pub attempt: u32,
    /// Number of deliveries of the attempt, this one included; 0 in leases of earlier
    /// versions.
    #[serde(default)]
    pub delivery: u32,
    /// The same for every attempt and delivery of the call.
    pub idempotency_key: String,
    /// When the attempt was delivered, in Unix milliseconds.
    pub fetched_at_ms: u64,
    /// When the lease ends unless a heartbeat extends it, in Unix milliseconds. Never later than the attempt's end.
    pub expires_at_ms: u64,
    /// Longest time of the attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest silence between two heartbeats, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// Whether progress is stored that a success has to remove.
    #[serde(default)]
    pub has_progress: bool,
}

/// How long the lock is to last, and until when the holder may run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) lock: Duration,
    pub(super) expires_at_ms: u64,
}

impl Lease {
    /// When the attempt must have ended, by the store's clock in Unix milliseconds, if its call has a timeout.
    pub fn attempt_ends_at_ms(&self) -> Option<u64> {
        self.timeout_ms.map(|timeout_ms| self.fetched_at_ms.saturating_add(timeout_ms))
    }

    /// The lease on an activity that was just locked. Its end follows from the term.
    pub(super) fn of(item: &ActivityExecute, locked: &LockedWorkItem) -> Self {
        Lease {
            lock_token: locked.lock_token.0,
            instance: item.instance.clone(),
            execution_id: item.execution_id,
            activity_id: item.id,
            name: item.name.clone(),
            attempt: item.attempt,
            delivery: locked.attempt_count,
            idempotency_key: item.idempotency_key.clone(),
            fetched_at_ms: locked.fetched_at_ms,
            expires_at_ms: locked.fetched_at_ms,
            timeout_ms: item.options.timeout_ms,
            heartbeat_timeout_ms: item.options.heartbeat_timeout_ms,
            has_progress: false,
        }
    }

    /// The granted part of the requested time.
    pub(super) fn term(&self, asked: Duration, now_ms: u64) -> Term {
        let ends_at_ms = self.attempt_ends_at_ms().unwrap_or(u64::MAX);
        let grace_ms = ends_at_ms.saturating_sub(now_ms).saturating_add(duration_ms(ANSWER_GRACE));
        let silence_ms = self.heartbeat_timeout_ms.unwrap_or(u64::MAX);
        let lock_ms = duration_ms(asked).min(silence_ms).min(grace_ms).max(1);
        Term {
            lock: Duration::from_millis(lock_ms),
            expires_at_ms: now_ms.saturating_add(lock_ms).min(ends_at_ms),
        }
    }

    pub(super) fn token(&self) -> LockToken {
        LockToken(self.lock_token)
    }

    pub(super) fn held(&self) -> HeldAttempt {
        let activity = ScheduledActivityIdentifier {
            instance: self.instance.clone(),
            execution_id: self.execution_id,
            activity_id: self.activity_id,
        };
        HeldAttempt { lock_token: self.token(), activity, attempt: self.attempt }
    }

    /// The lease does not hold any more.
    pub(super) fn lost(&self) -> Error {
        let message = format!(
            "the lease on attempt {} of activity {:?} of instance {} does not hold: it expired, was answered, or the \
             activity is not wanted any more; drop the work and fetch again",
            self.attempt, self.name, self.instance
        );
        Error::new(Code::LeaseLost, message)
    }
}

/// Refuses leases that are too short to be kept alive, or so long that a dead worker would hold its work for ever.
pub(super) fn check_length(lease: Duration) -> Result<(), Error> {
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(());
    }
    let message = format!("a lease of {lease:?} is not possible; ask for {MIN_LEASE:?} to {MAX_LEASE:?}");
    Err(Error::new(Code::InvalidOption, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(timeout_ms: Option<u64>, heartbeat_timeout_ms: Option<u64>) -> Lease {
        Lease {
            lock_token: 7,
            instance: "i".to_owned(),
            execution_id: 1,
            activity_id: 2,
            name: "work".to_owned(),
            attempt: 1,
            delivery: 1,
            idempotency_key: "key".to_owned(),
            fetched_at_ms: 1_000,
            expires_at_ms: 1_000,
            timeout_ms,
            heartbeat_timeout_ms,
            has_progress: false,
        }
    }

    #[test]
    fn the_term_is_bounded_by_the_attempt_and_by_its_silence() {
        // Timeout, heartbeat timeout, now; how long the lock lasts, until when the holder may run.
        for (timeout_ms, silence_ms, now_ms, lock_ms, expires_at_ms) in [
            (None, None, 1_000, 60_000, 61_000),
            (None, Some(5_000), 1_000, 5_000, 6_000),
            (Some(600_000), None, 1_000, 60_000, 61_000),
            (Some(70_000), None, 31_000, 55_000, 71_000),
            (Some(10_000), None, 1_000, 25_000, 11_000),
            (Some(10_000), None, 9_000, 17_000, 11_000),
            (Some(10_000), Some(3_000), 9_000, 3_000, 11_000),
            (Some(10_000), Some(0), 1_000, 1, 1_001),
            (Some(u64::MAX), None, 1_000, 60_000, 61_000),
        ] {
            let term = lease(timeout_ms, silence_ms).term(Duration::from_secs(60), now_ms);
            let expected = Term { lock: Duration::from_millis(lock_ms), expires_at_ms };
            assert_eq!(term, expected, "{timeout_ms:?} {silence_ms:?} at {now_ms}");
        }
    }

    #[test]
    fn a_lease_travels_as_text() {
        let lease = lease(Some(5), None);
        let text = serde_json::to_string(&lease).unwrap();
        assert_eq!(serde_json::from_str::<Lease>(&text).unwrap(), lease);
    }

    #[test]
    fn lengths_out_of_range_are_refused() {
        for length in [Duration::ZERO, MIN_LEASE / 2, MAX_LEASE * 2, Duration::MAX] {
            assert_eq!(check_length(length).unwrap_err().code(), Code::InvalidOption, "{length:?}");
        }
        check_length(MIN_LEASE).unwrap();
        check_length(MAX_LEASE).unwrap();
    }
}
