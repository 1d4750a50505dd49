//! Spreading what is due at the same moment.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// How much later than its time an occurrence begins: anything from nothing to `max`, in whole milliseconds.
///
/// The same id and time always give the same answer, on every node and after every restart, and neighbouring ids and
/// times give answers that have nothing to do with each other.
pub fn jitter_of(max: Duration, id: &str, time: Timestamp) -> Duration {
    let max_ms = segno::clock::duration_ms(max);
    let mut hash = Sha256::new();
    // The time comes first and has a fixed length, so that no id can be mistaken for part of it.
    hash.update(time.as_nanosecond().to_be_bytes());
    hash.update(id);
    let bytes: [u8; 32] = hash.finalize().into();
    let random = bytes.into_iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(byte));
    match max_ms.checked_add(1) {
        Some(choices) => Duration::from_millis(random % choices),
        None => Duration::from_millis(random),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_the_same_each_time_within_bounds_and_spread() {
        let time: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        let max = Duration::from_secs(10);
        let of = |id: u32| jitter_of(max, &format!("action-{id}"), time);
        let all: Vec<Duration> = (0..1_000).map(of).collect();
        assert!(all.iter().all(|jitter| *jitter <= max));
        assert_eq!(all, (0..1_000).map(of).collect::<Vec<_>>());
        let tenths: BTreeSet<u128> = all.iter().map(|jitter| jitter.as_millis() / 1_001).collect();
        assert_eq!(tenths.len(), 10, "every tenth of the time is used");
        let later = time + jiff::SignedDuration::from_secs(60);
        assert_ne!(jitter_of(max, "a", time), jitter_of(max, "a", later));
    }

    #[test]
    fn no_jitter_is_none_and_the_largest_does_not_overflow() {
        let time = Timestamp::UNIX_EPOCH;
        assert_eq!(jitter_of(Duration::ZERO, "a", time), Duration::ZERO);
        assert!(jitter_of(Duration::MAX, "a", time) > Duration::ZERO);
    }
}
