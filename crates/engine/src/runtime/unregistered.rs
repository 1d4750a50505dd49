//! Work for names that are not registered here: redelivered for a time, because a rolling deploy
//! may bring the code, then failed.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;

use crate::clock::duration_ms;

/// Most pieces of such work that are remembered at once.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(65_536).expect("the number is not zero");

/// When this node first saw each piece of work that it cannot run.
pub(super) struct Unregistered {
    first_seen_ms: Mutex<LruCache<String, u64>>,
    timeout_ms: u64,
}

/// The decision about such work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Redeliver it after this time, to this node or another.
    Wait(Duration),
    /// It has waited long enough.
    Fail,
}

impl Unregistered {
    pub(super) fn new(timeout: Duration) -> Self {
        Unregistered {
            first_seen_ms: Mutex::new(LruCache::new(MAX_REMEMBERED)),
            timeout_ms: duration_ms(timeout),
        }
    }

    /// Judges one piece of work. The pause grows with its age, from 1 s up to 60 s.
    pub(super) fn judge(&self, key: &str, now_ms: u64) -> Verdict {
        let mut first_seen = self.first_seen_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let first_ms = *first_seen.get_or_insert(key.to_owned(), || now_ms);
        let age_ms = now_ms.saturating_sub(first_ms);
        if age_ms >= self.timeout_ms {
            first_seen.pop(key);
            return Verdict::Fail;
        }
        let rest_ms = self.timeout_ms - age_ms;
        Verdict::Wait(Duration::from_millis((age_ms / 2).clamp(1_000, 60_000).min(rest_ms.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_longer_and_longer_and_then_fails() {
        let unregistered = Unregistered::new(Duration::from_secs(600));
        let mut now_ms = 5_000;
        let mut waits = Vec::new();
        while let Verdict::Wait(delay) = unregistered.judge("x", now_ms) {
            waits.push(delay.as_secs());
            now_ms += delay.as_millis() as u64;
        }
        assert_eq!(now_ms, 605_000);
        assert!(waits.windows(2).rev().skip(1).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.first(), Some(&1));
        assert!(waits.iter().all(|wait| *wait <= 60));
    }
}
