//! Exponential backoff of retries and redeliveries. Pure.

use std::time::Duration;

/// Delay before a call to an unavailable store is retried: 10 ms, doubling, up to one second.
pub(super) fn store_retry(tries: u32) -> Duration {
    doubling(Duration::from_millis(10), tries, Duration::from_secs(1))
}

/// Delay before work that cannot run here is redelivered: 1 s, doubling, up to one minute.
pub(super) fn redelivery(attempt: u32) -> Duration {
    doubling(Duration::from_secs(1), attempt.saturating_sub(1), Duration::from_secs(60))
}

fn doubling(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let seconds: Vec<u64> = (1..=9).map(|attempt| redelivery(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(store_retry(0), Duration::from_millis(10));
        assert_eq!(store_retry(u32::MAX), Duration::from_secs(1));
    }
}
