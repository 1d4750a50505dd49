//! Calls that wait inside the store, and how a case lets time pass around them.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::fixture::Env;
use super::harness::ClockHandle;

/// Real time after which a call that should have been woken counts as forgotten. Only a failing case waits this long.
const WATCHDOG: Duration = Duration::from_secs(10);

/// How often other tasks get to run before a case believes that a call has settled down to wait.
const SETTLE_YIELDS: usize = 32;

/// The same for a store with its own clock, in real time: answers travel.
const SETTLE_REAL: Duration = Duration::from_millis(30);

/// How much longer than asked the suite waits for a store with its own clock, against rounding.
const REAL_SLACK: Duration = Duration::from_millis(25);

/// A call that runs beside the case.
pub(crate) struct Waiting<T>(JoinHandle<T>);

impl<T: Send + 'static> Waiting<T> {
    /// Starts a call and gives it time to settle down.
    pub(crate) async fn start(env: &Env, call: impl Future<Output = T> + Send + 'static) -> Self {
        let waiting = Waiting(tokio::spawn(call));
        env.settle().await;
        waiting
    }

    /// Fails if the call has answered already.
    #[track_caller]
    pub(crate) fn still_waits(&self) {
        assert!(!self.0.is_finished(), "the call answered although it had nothing to answer");
    }

    /// The answer, which must come without any time passing.
    #[expect(
        clippy::disallowed_methods,
        reason = "a watchdog against a store that forgets to wake; real by nature"
    )]
    pub(crate) async fn answer(self) -> T {
        match tokio::time::timeout(WATCHDOG, self.0).await {
            Ok(answer) => answer.expect("the call did not panic"),
            Err(_) => panic!("the call was not woken"),
        }
    }

    /// The answer, which must come while this much time passes.
    pub(crate) async fn answer_within(self, env: &Env, limit: Duration) -> T {
        const STEPS: u32 = 20;
        for _ in 0..STEPS {
            if self.0.is_finished() {
                break;
            }
            env.advance(limit / STEPS).await;
        }
        self.answer().await
    }

    /// Drops the call in the middle of its wait.
    pub(crate) async fn give_up(self) {
        self.0.abort();
        let outcome = self.0.await;
        assert!(
            outcome.is_err_and(|error| error.is_cancelled()),
            "the call had answered before it was dropped"
        );
    }
}

impl Env {
    /// Lets this much time pass on the store's clock.
    #[expect(clippy::disallowed_methods, reason = "a store with its own clock can only be waited for")]
    pub(crate) async fn advance(&self, duration: Duration) {
        match self.clock() {
            ClockHandle::Virtual(clock) => clock.advance(duration),
            ClockHandle::Stepped(clock) => clock.advance(duration).await,
            ClockHandle::Real => tokio::time::sleep(duration + REAL_SLACK).await,
        }
        self.settle().await;
    }

    /// Lets other tasks run until those that wait have settled down.
    #[expect(clippy::disallowed_methods, reason = "a store with its own clock can only be waited for")]
    pub(crate) async fn settle(&self) {
        match self.clock() {
            ClockHandle::Virtual(_) => {
                for _ in 0..SETTLE_YIELDS {
                    tokio::task::yield_now().await;
                }
            }
            ClockHandle::Stepped(_) | ClockHandle::Real => tokio::time::sleep(SETTLE_REAL).await,
        }
    }

    /// A span that a case can afford to wait for: the lock, delay or life in everything that is about time.
    pub(crate) fn span(&self) -> Duration {
        match self.clock() {
            ClockHandle::Virtual(_) | ClockHandle::Stepped(_) => Duration::from_secs(30),
            ClockHandle::Real => Duration::from_millis(300),
        }
    }

    /// Lets nearly a whole [`Env::span`] pass: all but a millisecond, or a third where time is real.
    pub(crate) async fn advance_short_of_span(&self) {
        match self.clock() {
            ClockHandle::Virtual(_) | ClockHandle::Stepped(_) => {
                self.advance(self.span() - Duration::from_millis(1)).await;
            }
            ClockHandle::Real => self.advance(self.span() / 3).await,
        }
    }

    /// Lets a [`Env::span`] pass.
    pub(crate) async fn advance_span(&self) {
        self.advance(self.span()).await;
    }

    /// Lets enough time pass that two timestamps differ.
    pub(crate) async fn tick(&self) {
        self.advance(Duration::from_millis(2)).await;
    }
}
