//! A clock that stands still until a test moves it.
//!
//! Sleepers register when they are first polled and are woken in the order of their times. The wall clock can jump
//! in both directions ([`VirtualClock::set_ms`]); the steady clock only follows [`VirtualClock::advance`].

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use segno::clock::{Clock, NEVER_MS, duration_ms};
use tokio::sync::Notify;

/// Where every virtual clock starts: 2023-11-14 22:13:20 UTC.
pub const VIRTUAL_EPOCH_MS: u64 = 1_700_000_000_000;

/// How long the runtime must have been idle, on tokio's own paused clock, before an automatic clock skips ahead.
const IDLE_BEFORE_SKIP: Duration = Duration::from_millis(1);

const NANOS_PER_MS: u64 = 1_000_000;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct VirtualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Tells the automatic skipper that the first sleeper came, or that the clock is gone.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    now_ms: u64,
    monotonic_ns: u64,
    next_sleeper: u64,
    sleepers: BTreeMap<(u64, u64), Waker>,
    closed: bool,
}

impl VirtualClock {
    /// A clock at [`VIRTUAL_EPOCH_MS`] that only moves by hand.
    pub fn new() -> Arc<VirtualClock> {
        let state = State {
            now_ms: VIRTUAL_EPOCH_MS,
            monotonic_ns: 0,
            next_sleeper: 0,
            sleepers: BTreeMap::new(),
            closed: false,
        };
        Arc::new(VirtualClock {
            shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }),
        })
    }

    /// A clock that skips to its next sleeper whenever everything else is idle, so that days pass in microseconds.
    ///
    /// Call it inside a current-thread runtime that was started with `start_paused(true)`: tokio's paused clock is
    /// what tells "idle" apart from "busy". The skipping task ends when the clock is dropped.
    pub fn auto() -> Arc<VirtualClock> {
        let clock = Self::new();
        tokio::spawn(skip_when_idle(Arc::clone(&clock.shared)));
        clock
    }

    /// Moves both the wall clock and the steady clock forward and wakes whoever is due.
    pub fn advance(&self, duration: Duration) {
        let at_ms = self.now_ms().saturating_add(duration_ms(duration));
        self.advance_to_ms(at_ms);
    }

    /// Moves forward to this time; does nothing when it has passed already.
    pub fn advance_to_ms(&self, at_ms: u64) {
        self.shared.advance_to_ms(at_ms);
    }

    /// Sets the wall clock, also backwards, as an operator or a time server would. The steady clock does not move.
    pub fn set_ms(&self, now_ms: u64) {
        let mut state = self.shared.lock();
        state.now_ms = now_ms;
        let due = state.take_due();
        drop(state);
        wake_all(due);
    }

    /// When the earliest sleeper wants to be woken.
    pub fn next_waiter_ms(&self) -> Option<u64> {
        self.shared.lock().next_waiter_ms()
    }

    /// How many sleepers there are.
    pub fn waiter_count(&self) -> usize {
        self.shared.lock().sleepers.len()
    }

    /// Moves to the time of the earliest sleeper and returns it; `None` when nobody sleeps.
    pub fn skip_to_next(&self) -> Option<u64> {
        self.shared.skip_to_next()
    }
}

impl Drop for VirtualClock {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        self.shared.lock().now_ms
    }

    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Sleep { shared: Arc::clone(&self.shared), at_ms, key: None })
    }

    fn monotonic_ns(&self) -> u64 {
        self.shared.lock().monotonic_ns
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance_to_ms(&self, at_ms: u64) {
        let mut state = self.lock();
        let step_ms = at_ms.saturating_sub(state.now_ms);
        state.now_ms += step_ms;
        state.monotonic_ns = state.monotonic_ns.saturating_add(step_ms.saturating_mul(NANOS_PER_MS));
        let due = state.take_due();
        drop(state);
        wake_all(due);
    }

    fn skip_to_next(&self) -> Option<u64> {
        let at_ms = self.lock().next_waiter_ms()?;
        self.advance_to_ms(at_ms);
        Some(at_ms)
    }
}

impl State {
    fn next_waiter_ms(&self) -> Option<u64> {
        self.sleepers.keys().next().map(|(at_ms, _)| *at_ms)
    }

    /// Removes everyone whose time has come, earliest first.
    fn take_due(&mut self) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(sleeper) = self.sleepers.first_entry() {
            if sleeper.key().0 > self.now_ms {
                break;
            }
            due.push(sleeper.remove());
        }
        due
    }
}

/// Wakes outside the clock's lock, because a woken task may ask for the time at once.
fn wake_all(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

struct Sleep {
    shared: Arc<Shared>,
    at_ms: u64,
    key: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.now_ms >= self.at_ms {
            if let Some(key) = self.key.take() {
                state.sleepers.remove(&key);
            }
            return Poll::Ready(());
        }
        let at_ms = self.at_ms;
        if at_ms == NEVER_MS {
            // Not registered, or skipping to the next sleeper would lead to the end of time.
            return Poll::Pending;
        }
        let key = *self.key.get_or_insert_with(|| {
            state.next_sleeper += 1;
            (at_ms, state.next_sleeper)
        });
        state.sleepers.insert(key, context.waker().clone());
        drop(state);
        shared.changed.notify_one();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.shared.lock().sleepers.remove(&key);
        }
    }
}

/// Skips to the next sleeper each time the runtime has nothing else to do; waits without spinning when nobody sleeps.
#[expect(
    clippy::disallowed_methods,
    reason = "tokio's paused clock only moves when the runtime is idle; that is the signal"
)]
async fn skip_when_idle(shared: Arc<Shared>) {
    loop {
        let (closed, idle) = {
            let state = shared.lock();
            (state.closed, state.sleepers.is_empty())
        };
        if closed {
            return;
        }
        if idle {
            shared.changed.notified().await;
            continue;
        }
        tokio::time::sleep(IDLE_BEFORE_SKIP).await;
        shared.skip_to_next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno::clock::sleep;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[tokio::test]
    async fn a_sleeper_wakes_at_its_time_and_not_before() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep_until_ms(VIRTUAL_EPOCH_MS + 100));
        tokio::task::yield_now().await;
        assert_eq!(clock.next_waiter_ms(), Some(VIRTUAL_EPOCH_MS + 100));
        clock.advance(Duration::from_millis(99));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(1));
        sleeper.await.unwrap();
        assert_eq!(clock.next_waiter_ms(), None);
    }

    #[tokio::test]
    async fn sleepers_wake_in_the_order_of_their_times() {
        let clock = VirtualClock::new();
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = [30_u64, 10, 20]
            .into_iter()
            .map(|after_ms| {
                let (order, sleep) = (Arc::clone(&order), clock.sleep_until_ms(VIRTUAL_EPOCH_MS + after_ms));
                tokio::spawn(async move {
                    sleep.await;
                    order.lock().unwrap().push(after_ms);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        clock.advance(DAY);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
    }

    #[tokio::test]
    async fn a_dropped_sleeper_is_forgotten() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep_until_ms(VIRTUAL_EPOCH_MS + 1));
        tokio::task::yield_now().await;
        assert_eq!(clock.waiter_count(), 1);
        sleeper.abort();
        assert!(sleeper.await.unwrap_err().is_cancelled());
        assert_eq!((clock.waiter_count(), clock.skip_to_next()), (0, None));
    }

    #[tokio::test]
    async fn a_sleep_for_ever_does_not_draw_the_clock_to_the_end_of_time() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep_until_ms(NEVER_MS));
        tokio::task::yield_now().await;
        assert_eq!(clock.skip_to_next(), None);
        assert!(!sleeper.is_finished());
    }

    #[test]
    fn the_steady_clock_ignores_jumps_of_the_wall_clock() {
        let clock = VirtualClock::new();
        clock.advance(Duration::from_millis(5));
        clock.set_ms(1_000);
        assert_eq!((clock.now_ms(), clock.monotonic_ns()), (1_000, 5 * NANOS_PER_MS));
        clock.advance_to_ms(900);
        assert_eq!(clock.now_ms(), 1_000, "advancing never goes back");
    }

    #[tokio::test]
    async fn a_backward_jump_keeps_sleepers_waiting_for_their_wall_time() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep_until_ms(VIRTUAL_EPOCH_MS + 10));
        tokio::task::yield_now().await;
        clock.set_ms(VIRTUAL_EPOCH_MS - 1_000);
        clock.advance(Duration::from_millis(1_009));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(1));
        sleeper.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_automatic_clock_lets_days_pass_while_nothing_runs() {
        let clock = VirtualClock::auto();
        for _ in 0..365 {
            sleep(clock.as_ref(), DAY).await;
        }
        assert_eq!(clock.now_ms(), VIRTUAL_EPOCH_MS + 365 * duration_ms(DAY));
    }

    #[tokio::test(start_paused = true)]
    async fn an_automatic_clock_stops_for_each_sleeper_in_turn() {
        let clock = VirtualClock::auto();
        let seen = |after: Duration| {
            let clock = Arc::clone(&clock);
            tokio::spawn(async move {
                sleep(clock.as_ref(), after).await;
                clock.now_ms() - VIRTUAL_EPOCH_MS
            })
        };
        let (late, early) = (seen(2 * DAY), seen(DAY));
        assert_eq!(early.await.unwrap(), duration_ms(DAY));
        assert_eq!(late.await.unwrap(), duration_ms(2 * DAY));
    }

    #[tokio::test(start_paused = true)]
    async fn the_skipping_task_ends_with_its_clock() {
        let clock = VirtualClock::auto();
        tokio::task::yield_now().await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
        drop(clock);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_automatic_clock_without_sleepers_does_not_move_time() {
        let clock = VirtualClock::auto();
        let before = tokio::time::Instant::now();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(before.elapsed(), Duration::ZERO, "the skipping task has no timer of its own");
        assert_eq!(clock.now_ms(), VIRTUAL_EPOCH_MS);
    }
}
