//! The source of time: one injected clock, so that tests control it. The only file that reads the system's clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A source of time. Everything in the engine and its stores reads time and waits for it through this.
pub trait Clock: Send + Sync + 'static {
    /// Now, in Unix milliseconds.
    fn now_ms(&self) -> u64;

    /// Now, in Unix milliseconds, rounded up: a wait that is counted from here does not end early. A clock that knows no smaller
    /// unit has nothing to round.
    fn now_rounded_up_ms(&self) -> u64 {
        self.now_ms()
    }

    /// Resolves once `now_ms() >= at_ms`, never before.
    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// A steady reading in nanoseconds for measuring durations; its zero means nothing.
    fn monotonic_ns(&self) -> u64;
}

/// The time that never comes.
pub const NEVER_MS: u64 = u64::MAX;

/// Waits until a time on a clock; for [`NEVER_MS`] it waits without troubling the clock.
pub async fn sleep_until(clock: &dyn Clock, at_ms: u64) {
    if at_ms == NEVER_MS {
        std::future::pending().await
    }
    clock.sleep_until_ms(at_ms).await;
}

/// The first millisecond at which a duration from now has passed in full; now for no duration.
pub fn deadline_ms(clock: &dyn Clock, duration: Duration) -> u64 {
    let now_ms = if duration.is_zero() { clock.now_ms() } else { clock.now_rounded_up_ms() };
    now_ms.saturating_add(duration_ms(duration))
}

/// Waits for a duration on a clock, rounded up to whole milliseconds.
pub async fn sleep(clock: &dyn Clock, duration: Duration) {
    sleep_until(clock, deadline_ms(clock, duration)).await;
}

/// `Some(output)` if the future ends within the duration on this clock.
pub async fn timeout<F: Future>(clock: &dyn Clock, duration: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = sleep(clock, duration) => None,
    }
}

/// A duration in whole milliseconds, rounded up so that nothing is ever early.
pub fn duration_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The machine's clock, shared.
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }
}

/// Longest single wait of a sleeper before it reads the wall clock again, so that a jump of the wall clock is
/// noticed within this time.
const MAX_NAP: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "the one file that asks the system for the time")]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since_epoch.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    fn now_rounded_up_ms(&self) -> u64 {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since_epoch.map_or(0, duration_ms)
    }

    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let clock = *self;
        Box::pin(async move {
            loop {
                let now_ms = clock.now_ms();
                if now_ms >= at_ms {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(at_ms - now_ms).min(MAX_NAP)).await;
            }
        })
    }

    fn monotonic_ns(&self) -> u64 {
        use std::sync::OnceLock;
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        let start = *START.get_or_init(std::time::Instant::now);
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that stands 0.9 ms behind a full millisecond.
    struct Between;

    impl Clock for Between {
        fn now_ms(&self) -> u64 {
            10
        }

        fn now_rounded_up_ms(&self) -> u64 {
            11
        }

        fn sleep_until_ms(&self, _at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }

        fn monotonic_ns(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_wait_lasts_in_full_and_none_ends_at_once() {
        for (duration, deadline) in [
            (Duration::ZERO, 10),
            (Duration::from_millis(5), 16),
            (Duration::from_micros(1), 12),
            (Duration::MAX, NEVER_MS),
        ] {
            assert_eq!(deadline_ms(&Between, duration), deadline, "{duration:?}");
        }
        let (floor, up) = (SystemClock.now_ms(), SystemClock.now_rounded_up_ms());
        assert!(up >= floor);
    }
}
