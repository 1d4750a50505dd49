//! The operation that a request performs: its deadline, and whether it may have changed something.
//!
//! Every answer must be true. An error after a commit must not read as "nothing happened", and a
//! write that was refused must not read as done. [`TrackedStore`] marks the current operation
//! before each write, so an error is judged by what the operation has really sent to the store, not
//! by which call of a handler happened to fail.
//!
//! | marks | an error of the store, or the deadline, is answered with |
//! |---|---|
//! | none | `unavailable`: nothing was changed |
//! | a write was done, or its outcome is unknown | `outcome-unknown` |

pub mod damage;
mod store;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::Method;
use segno::clock::{Clock, duration_ms};
use tokio::sync::Notify;

pub use store::TrackedStore;

/// An operation is answered within this time, once its request has arrived. Longer than a write
/// waits for a store that is away, with the time for the audit entry and the kept answer on top.
pub const LIMIT: Duration = Duration::from_secs(35);

tokio::task_local! {
    static CURRENT: Arc<Operation>;
}

/// What is known of an operation.
pub struct Operation {
    clock: Arc<dyn Clock>,
    kind: Kind,
    deadline_ms: AtomicU64,
    /// Notified when the deadline has become an earlier one.
    earlier: Notify,
    /// Writes that were done, are under way, or have an unknown outcome.
    writes: AtomicUsize,
}

/// How far an operation that failed may have got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    ReadOnly,
    /// It would change something, and has not.
    NothingChanged,
    /// It may have changed something, or may still.
    Unknown,
}

/// What a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To see something. What the server writes beside is not the caller's concern.
    Read,
    /// To change something.
    Write,
}

impl From<&Method> for Kind {
    fn from(method: &Method) -> Self {
        if method.is_safe() { Kind::Read } else { Kind::Write }
    }
}

impl Operation {
    /// An operation whose request may take this long to arrive.
    pub fn new(kind: Kind, clock: Arc<dyn Clock>, arrival: Duration) -> Arc<Self> {
        let deadline_ms = clock.now_ms().saturating_add(duration_ms(arrival + LIMIT));
        let (deadline_ms, writes) = (AtomicU64::new(deadline_ms), AtomicUsize::new(0));
        Arc::new(Operation { clock, kind, deadline_ms, earlier: Notify::new(), writes })
    }

    /// Runs a future as this operation; `None` when its deadline has passed before its end.
    pub async fn run<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Option<T> {
        let overdue = async {
            loop {
                let deadline_ms = self.deadline_ms.load(Ordering::Relaxed);
                if self.clock.now_ms() >= deadline_ms {
                    return;
                }
                // The deadline may have moved meanwhile, in both directions.
                tokio::select! {
                    () = self.clock.sleep_until_ms(deadline_ms) => {}
                    () = self.earlier.notified() => {}
                }
            }
        };
        tokio::select! {
            biased;
            done = CURRENT.scope(Arc::clone(self), work) => Some(done),
            () = overdue => None,
        }
    }

    /// How far the operation may have got.
    pub fn effect(&self) -> Effect {
        match (self.kind, self.writes.load(Ordering::Relaxed)) {
            (Kind::Read, _) => Effect::ReadOnly,
            (Kind::Write, 0) => Effect::NothingChanged,
            (Kind::Write, _) => Effect::Unknown,
        }
    }

    fn extend(&self, by: Duration) {
        let deadline_ms = self.clock.now_ms().saturating_add(duration_ms(by + LIMIT));
        self.deadline_ms.fetch_max(deadline_ms, Ordering::Relaxed);
    }
}

/// The request has arrived; from now on its operation has [`LIMIT`].
pub fn arrived() {
    let _outside = CURRENT.try_with(|operation| {
        let deadline_ms = operation.clock.now_ms().saturating_add(duration_ms(LIMIT));
        operation.deadline_ms.fetch_min(deadline_ms, Ordering::Relaxed);
        operation.earlier.notify_one();
    });
}

/// The current operation may take this much longer: its caller waits for something, or there is
/// much to do.
pub fn extend(by: Duration) {
    let _outside = CURRENT.try_with(|operation| operation.extend(by));
}

/// How far the current operation may have got.
pub fn effect() -> Effect {
    CURRENT.try_with(|operation| operation.effect()).unwrap_or(Effect::ReadOnly)
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn the_deadline_is_that_of_the_arrival_also_when_it_was_waited_for_before() {
        let clock = VirtualClock::new();
        let operation = Operation::new(Kind::Write, clock.clone(), Duration::from_secs(30));
        let running = tokio::spawn(async move {
            let arrives_late = async {
                tokio::task::yield_now().await;
                arrived();
                std::future::pending::<()>().await;
            };
            operation.run(arrives_late).await
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        clock.advance(LIMIT);
        assert_eq!(running.await.unwrap(), None);
    }
}
