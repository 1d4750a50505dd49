//! Whether the machine stood still during a case. A case in real time has a few hundred milliseconds for what takes
//! microseconds; one that fails although that was not enough has shown a defect, one that was stalled has shown nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use segno::clock::{Clock, SystemClock};

/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(5);

/// How much longer than [`TICK`] it may take until the next look. Cases can bear several times this.
const STALL: Duration = Duration::from_millis(25);

/// Looks at the time beside a case.
pub(super) struct Stalls {
    last_look_ns: AtomicU64,
    longest_pause_ns: AtomicU64,
    matter: AtomicBool,
}

impl Stalls {
    /// Nothing has happened yet.
    pub(super) fn new() -> Self {
        Stalls {
            last_look_ns: AtomicU64::new(SystemClock.monotonic_ns()),
            longest_pause_ns: AtomicU64::new(0),
            matter: AtomicBool::new(true),
        }
    }

    /// Time is not real, so that stalls do not matter.
    pub(super) fn ignore(&self) {
        self.matter.store(false, Ordering::Relaxed);
    }

    /// Looks at the time for as long as this is polled.
    #[expect(clippy::disallowed_methods, reason = "stalls are those of the real machine")]
    pub(super) async fn watch(&self) {
        loop {
            self.look(SystemClock.monotonic_ns());
            tokio::time::sleep(TICK).await;
        }
    }

    fn look(&self, now_ns: u64) {
        let pause_ns = now_ns.saturating_sub(self.last_look_ns.swap(now_ns, Ordering::Relaxed));
        self.longest_pause_ns.fetch_max(pause_ns, Ordering::Relaxed);
    }

    /// Whether there was a stall, at the latest just now.
    pub(super) fn were_there(&self) -> bool {
        self.look(SystemClock.monotonic_ns());
        let longest_pause = Duration::from_nanos(self.longest_pause_ns.load(Ordering::Relaxed));
        self.matter.load(Ordering::Relaxed) && longest_pause > TICK + STALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_comes_much_too_late_is_a_stall() {
        let stalls = Stalls::new();
        let start_ns = stalls.last_look_ns.load(Ordering::Relaxed);
        let at = |duration: Duration| start_ns + u64::try_from(duration.as_nanos()).unwrap();
        stalls.look(at(TICK + STALL));
        assert!(stalls.longest_pause_ns.load(Ordering::Relaxed) <= at(TICK + STALL) - start_ns);
        stalls.look(at(3 * (TICK + STALL)));
        assert!(stalls.were_there());
        stalls.ignore();
        assert!(!stalls.were_there());
    }
}
