//! Admission control of a pool: how many calls may be handed out now, by its state and its rate. Pure.
//!
//! The rate limiter is a GCRA (a token bucket as one number): `free_at_ms` is the time at which all calls that were
//! handed out are paid for. A call may be handed out while that is less than a burst ahead.
//!
//! Workers that are throttled by what they call report it, and the pool backs off: exponentially from 2 s to 120 s
//! while it goes on, or for as long as the worker was told to wait.

use std::time::Duration;

use segno::clock::duration_ms;

use super::stored::PoolState;

/// Code of a failure with which a worker says that it was throttled. The call is not failed: it is handed out again
/// later, and so are others of its pool.
pub const THROTTLED: &str = "throttled";

/// First and longest pause of a pool that is throttled.
const FIRST_BACKOFF: Duration = Duration::from_secs(2);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);

/// Longest pause that a worker may ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// A pool that was not throttled for so long begins again with the first pause.
const FORGIVEN_AFTER: Duration = Duration::from_secs(5 * 60);

/// Calls that may be handed out at once after a rest: those of this time, and at least one.
const BURST: Duration = Duration::from_secs(1);

/// What may be handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// So many calls.
    pub calls: usize,
    /// After what time more may be by the rate, if not all that were wanted may. `None` while the pool is paused or throttled:
    /// its state has until when, and a resume ends it earlier.
    pub delay: Option<Duration>,
}

/// What could be handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// So many calls at most.
    pub calls: usize,
    /// After what time there is room again, if there is none; `None` while the pool is paused.
    pub rest: Option<Duration>,
    /// Whether a resume makes room earlier: the pool is paused or throttled, and not only at its rate.
    pub is_closed: bool,
}

/// The rate of a pool in numbers of the GCRA.
struct Gcra {
    /// What a call costs, in microseconds: at a high rate less than a millisecond.
    cost_us: u64,
    burst_us: u64,
    now_us: u64,
    /// When all calls that were handed out are paid for.
    free_us: u64,
}

impl Gcra {
    fn new(calls_per_second: f64, free_at_us: u64, now_ms: u64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is more than 0 and bounded, so that a cost is bounded too"
        )]
        let cost_us = ((1e6 / calls_per_second).ceil() as u64).max(1);
        let (now_us, burst_us) = (now_ms.saturating_mul(1_000), (duration_ms(BURST) * 1_000).max(cost_us));
        Gcra { cost_us, burst_us, now_us, free_us: free_at_us.max(now_us) }
    }

    fn calls(&self) -> usize {
        let room_us = self.now_us.saturating_add(self.burst_us).saturating_sub(self.free_us);
        usize::try_from(room_us / self.cost_us).unwrap_or(usize::MAX)
    }

    /// Until there is room for one more call.
    fn delay(&self) -> Duration {
        let again_us = self.free_us.saturating_add(self.cost_us).saturating_sub(self.burst_us);
        let delay_ms = again_us.saturating_sub(self.now_us).div_ceil(1_000);
        Duration::from_millis(delay_ms.max(1))
    }
}

impl PoolState {
    /// How many calls could be handed out now, and how long to leave the pool alone if that is none.
    pub(super) fn headroom(&self, calls_per_second: Option<f64>, now_ms: u64) -> Headroom {
        if self.paused.is_some() {
            return Headroom { calls: 0, rest: None, is_closed: true };
        }
        if let Some(until_ms) = self.throttled_until_ms.filter(|until_ms| *until_ms > now_ms) {
            let rest = Some(Duration::from_millis(until_ms - now_ms));
            return Headroom { calls: 0, rest, is_closed: true };
        }
        let Some(rate) = calls_per_second else {
            return Headroom { calls: usize::MAX, rest: None, is_closed: false };
        };
        let gcra = Gcra::new(rate, self.free_at_us, now_ms);
        let calls = gcra.calls();
        Headroom { calls, rest: (calls == 0).then(|| gcra.delay()), is_closed: false }
    }

    /// How many of so many calls may be handed out, which takes them out of the rate.
    pub(super) fn admit(&mut self, wanted: usize, calls_per_second: Option<f64>, now_ms: u64) -> Admission {
        let Headroom { calls, is_closed, .. } = self.headroom(calls_per_second, now_ms);
        let calls = calls.min(wanted);
        let Some(rate) = calls_per_second.filter(|_| !is_closed) else {
            return Admission { calls, delay: None };
        };
        let mut gcra = Gcra::new(rate, self.free_at_us, now_ms);
        gcra.free_us = gcra.free_us.saturating_add(gcra.cost_us.saturating_mul(calls as u64));
        self.free_at_us = gcra.free_us;
        Admission { calls, delay: (calls < wanted).then(|| gcra.delay()) }
    }

    /// Notes that a worker was throttled, and says until when the pool rests.
    pub(super) fn throttle(&mut self, retry_after: Option<Duration>, now_ms: u64) -> u64 {
        let last_ms = self.throttled_until_ms.unwrap_or(0);
        // Calls that were under way at the same time are throttled together, and count once.
        if last_ms <= now_ms {
            let is_forgiven = last_ms.saturating_add(duration_ms(FORGIVEN_AFTER)) < now_ms;
            self.throttles = if is_forgiven { 1 } else { self.throttles.saturating_add(1) };
        }
        let doublings = self.throttles.saturating_sub(1).min(16);
        let backoff = (FIRST_BACKOFF * 2_u32.saturating_pow(doublings)).min(LONGEST_BACKOFF);
        let pause = retry_after.map_or(backoff, |asked| asked.min(LONGEST_RETRY_AFTER).max(backoff));
        let until_ms = now_ms.saturating_add(duration_ms(pause)).max(last_ms);
        self.throttled_until_ms = Some(until_ms);
        until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::Pause;

    const NOW_MS: u64 = 1_000_000;

    fn admitted(state: &mut PoolState, wanted: usize, rate: f64, now_ms: u64) -> (usize, Option<u64>) {
        let room = state.headroom(Some(rate), now_ms);
        let Admission { calls, delay } = state.admit(wanted, Some(rate), now_ms);
        assert_eq!(calls, room.calls.min(wanted), "a fetch asks for what it gets");
        assert_eq!(room.rest, delay.filter(|_| calls == 0));
        (calls, delay.map(|delay| now_ms - NOW_MS + duration_ms(delay)))
    }

    #[test]
    fn a_pool_without_a_rate_gives_what_is_wanted() {
        let mut state = PoolState::default();
        assert_eq!(state.admit(100, None, NOW_MS), Admission { calls: 100, delay: None });
        assert_eq!(state, PoolState::default());
    }

    #[test]
    fn a_rate_holds_over_any_time() {
        let mut state = PoolState::default();
        assert_eq!(admitted(&mut state, 25, 10.0, NOW_MS), (10, Some(100)), "a second's worth at once");
        assert_eq!(admitted(&mut state, 1, 10.0, NOW_MS + 99), (0, Some(100)));
        assert_eq!(admitted(&mut state, 5, 10.0, NOW_MS + 100), (1, Some(200)));
        assert_eq!(admitted(&mut state, 3, 10.0, NOW_MS + 400), (3, None));
        for rate in [0.3, 1.0, 7.0, 333.0, 10_000.0] {
            let (mut state, mut calls, seconds) = (PoolState::default(), 0, 20);
            for ms in 0..seconds * 1_000 {
                calls += state.admit(50, Some(rate), NOW_MS + ms).calls;
            }
            #[expect(clippy::cast_precision_loss, reason = "a small count")]
            let (calls, most) = (calls as f64, rate * (seconds + 1) as f64 + 1.0);
            assert!(calls <= most && calls >= rate * (seconds - 1) as f64, "{rate}: {calls}");
        }
    }

    #[test]
    fn a_rate_below_one_a_second_gives_one_at_a_time() {
        let mut state = PoolState::default();
        assert_eq!(admitted(&mut state, 5, 0.1, NOW_MS), (1, Some(10_000)));
        assert_eq!(admitted(&mut state, 5, 0.1, NOW_MS + 9_999), (0, Some(10_000)));
        assert_eq!(admitted(&mut state, 5, 0.1, NOW_MS + 10_000), (1, Some(20_000)));
    }

    #[test]
    fn a_paused_pool_gives_nothing() {
        let mut state = PoolState { paused: Some(Pause::default()), ..PoolState::default() };
        assert_eq!(state.admit(1, None, NOW_MS), Admission { calls: 0, delay: None });
    }

    #[test]
    fn a_throttled_pool_backs_off_and_is_forgiven() {
        let mut state = PoolState::default();
        let mut now_ms = NOW_MS;
        for seconds in [2, 4, 8, 16, 32, 64, 120, 120] {
            assert_eq!(state.throttle(None, now_ms), now_ms + seconds * 1_000);
            assert_eq!(state.throttle(None, now_ms + 1), now_ms + 1 + seconds * 1_000, "it counts once");
            assert_eq!(state.admit(1, None, now_ms + 1).calls, 0);
            now_ms = state.throttled_until_ms.unwrap();
            assert_eq!(state.admit(1, None, now_ms).calls, 1);
        }
        now_ms += 5 * 60 * 1_000 + 1;
        assert_eq!(state.throttle(None, now_ms), now_ms + 2_000);
        let asked = Some(Duration::from_secs(30));
        assert_eq!(state.throttle(asked, now_ms), now_ms + 30_000, "a worker knows better");
        assert_eq!(state.throttle(Some(Duration::MAX), now_ms), now_ms + 3_600_000);
        assert_eq!(state.throttle(None, now_ms), now_ms + 3_600_000, "and is not shortened");
    }
}
