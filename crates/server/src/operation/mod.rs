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
//!
//! A request outlives its deadline ([`detached`](crate::detached)). An operation without marks is
//! therefore closed when its deadline passes: from then on the store refuses its writes, so that
//! "nothing was changed" stays true. One with marks goes on, and its answer is `outcome-unknown`.

pub mod damage;
mod store;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::Method;
use segno::clock::{self, Clock, duration_ms};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::problem::{Code, Refusal};

pub use store::TrackedStore;

/// An operation is answered within this time, once its request has arrived. Longer than a write
/// waits for a store that is away, with the time for the audit entry and the kept answer on top.
pub const LIMIT: Duration = Duration::from_secs(35);

/// An operation that was closed has this long to end by itself, and to release its claims, before
/// its caller is answered.
const CLOSING: Duration = Duration::from_secs(1);

/// The bit of [`Operation::writes`] that is set when the operation is closed.
const CLOSED: usize = 1 << (usize::BITS - 1);

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
    /// Writes that were done, are under way, or have an unknown outcome; or [`CLOSED`].
    writes: AtomicUsize,
    closed: CancellationToken,
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
        let (earlier, closed) = (Notify::new(), CancellationToken::new());
        Arc::new(Operation { clock, kind, deadline_ms, earlier, writes, closed })
    }

    /// Runs a future as this operation; `None` when its deadline has passed before its end. One
    /// that has written nothing is closed then.
    pub async fn run<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(CURRENT.scope(Arc::clone(self), work));
        tokio::select! {
            biased;
            done = work.as_mut() => return Some(done),
            () = self.overdue() => {}
        }
        match self.close() {
            true => clock::timeout(&*self.clock, CLOSING, work).await,
            false => None,
        }
    }

    /// Resolves when the deadline has passed.
    async fn overdue(&self) {
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
    }

    /// Keeps an operation that has written nothing from writing anything. False when it has
    /// written, or only reads.
    fn close(&self) -> bool {
        let is_closed = self.kind == Kind::Write
            && self.writes.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_closed {
            self.closed.cancel();
        }
        is_closed
    }

    /// Marks the operation before a write; false when it is closed, so that the write must not
    /// begin.
    fn begin_write(&self) -> bool {
        let marked = |writes| (writes != CLOSED).then_some(writes + 1);
        self.writes.fetch_update(Ordering::AcqRel, Ordering::Acquire, marked).is_ok()
    }

    /// Takes the mark of a write back that has changed nothing.
    fn undo_write(&self) {
        self.writes.fetch_sub(1, Ordering::AcqRel);
    }

    /// How far the operation may have got.
    pub fn effect(&self) -> Effect {
        match (self.kind, self.writes.load(Ordering::Acquire)) {
            (Kind::Read, _) => Effect::ReadOnly,
            (Kind::Write, 0 | CLOSED) => Effect::NothingChanged,
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

/// Makes a future part of the current operation, also in another task.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = CURRENT.try_with(Arc::clone).ok();
    async move {
        match current {
            Some(operation) => CURRENT.scope(operation, work).await,
            None => work.await,
        }
    }
}

/// Resolves when the current operation is closed: it must not begin anything more.
pub async fn closed() {
    match CURRENT.try_with(|operation| operation.closed.clone()) {
        Ok(closed) => closed.cancelled().await,
        Err(_outside) => std::future::pending().await,
    }
}

/// The answer to an operation whose deadline has passed.
pub fn timed_out(effect: Effect) -> Refusal {
    Refusal::unavailable("the operation timed out", effect)
}

/// The answer to an operation whose deadline has passed while its document was checked. Nothing was changed.
pub fn too_long_to_check() -> Refusal {
    let seconds = LIMIT.as_secs();
    let detail = format!(
        "the document was not checked within {seconds} s, and the same one would take as long again; split it, or write \
         fewer steps, templates and aliases"
    );
    Refusal::new(Code::BodyTooLarge, detail)
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;

    use super::*;

    #[tokio::test]
    async fn the_deadline_is_that_of_the_arrival_also_when_it_was_waited_for_before() {
        let clock = VirtualClock::new();
        let operation = Operation::new(Kind::Read, clock.clone(), Duration::from_secs(30));
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
    #[tokio::test]
    async fn an_operation_that_was_closed_writes_nothing_and_one_that_has_written_is_not_closed() {
        let clock = VirtualClock::new();
        for (writes, is_done, effect) in
            [(0, Some("refused"), Effect::NothingChanged), (1, None, Effect::Unknown)]
        {
            let operation = Operation::new(Kind::Write, clock.clone(), Duration::ZERO);
            (0..writes).for_each(|_| assert!(operation.begin_write()));
            clock.advance(LIMIT);
            let late = async {
                tokio::task::yield_now().await;
                closed().await;
                CURRENT.with(|operation| if operation.begin_write() { "written" } else { "refused" })
            };
            assert_eq!(operation.run(late).await, is_done);
            assert_eq!(operation.effect(), effect);
        }
    }
}
