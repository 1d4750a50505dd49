//! A bounded pool of threads with a stated stack for the recursion of the schema compiler and validator. Async threads
//! are never held by it. Tenants share it by fair queueing (`fair_queue`): a tenant never has all threads, and one whose
//! jobs are slow delays the job of another by at most one of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use segno::clock::{self, Clock, SystemClock};
use tokio::sync::oneshot;

use super::fair_queue::{Abandonable, Admitted, Ahead, Bounds, FairQueue};
use crate::functions::error::FunctionError;
use crate::functions::limits::{
    MAX_WAITING_CHECKS, MAX_WAITING_CHECKS_PER_TENANT, SCHEDULED_CHECK_PATIENCE, SCHEMA_STACK_BYTES,
    SCHEMA_THREADS, SCHEMA_THREADS_PER_TENANT,
};
use crate::functions::names::Scope;
use crate::telemetry;

/// How long a job may wait for a thread.
#[derive(Clone, Copy)]
pub(in crate::functions) enum Patience<'a> {
    /// Until its caller gives up.
    Caller,
    /// [`SCHEDULED_CHECK_PATIENCE`] on this clock behind other jobs of its tenant. A job that has none before it waits
    /// for as long as it takes, so that every tenant makes progress.
    Scheduler(&'a dyn Clock),
}

/// The pool of the process, started with the first job. Its threads hold nothing that a shutdown waits for.
pub(in crate::functions) fn shared() -> &'static Pool {
    static SHARED: OnceLock<Pool> = OnceLock::new();
    SHARED.get_or_init(|| {
        Pool::start(
            SCHEMA_THREADS,
            Bounds {
                running_per_key: SCHEMA_THREADS_PER_TENANT,
                waiting: MAX_WAITING_CHECKS,
                waiting_per_key: MAX_WAITING_CHECKS_PER_TENANT,
            },
        )
    })
}

/// Runs a job on a thread of its own and waits, for callers that are not async.
///
/// # Errors
/// `unavailable` when no thread can be started, `invalid-function` when the job panicked.
pub(in crate::functions) fn run_blocking<T: Send>(
    job: impl FnOnce() -> T + Send,
) -> Result<T, FunctionError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("segno-schema".to_owned()).stack_size(SCHEMA_STACK_BYTES);
        let thread = thread.spawn_scoped(scope, job).map_err(|_| FunctionError::Busy)?;
        thread.join().map_err(|_| panicked())
    })
}

/// Threads and the queue that they take jobs from. The threads end when it is dropped.
pub(in crate::functions) struct Pool {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    jobs: FairQueue<Scope, Box<dyn Job>>,
    /// Threads that could be started.
    threads: usize,
    is_closed: bool,
}

impl Pool {
    fn start(threads: usize, bounds: Bounds) -> Self {
        let state = State { jobs: FairQueue::new(bounds), threads: 0, is_closed: false };
        let queue = Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() });
        for number in 0..threads {
            let taken_from = Arc::clone(&queue);
            let thread = thread::Builder::new().name(format!("segno-schema-{number}"));
            match thread.stack_size(SCHEMA_STACK_BYTES).spawn(move || taken_from.work()) {
                Ok(_) => queue.lock().threads += 1,
                Err(error) => {
                    tracing::error!(%error, "a thread that checks inputs could not be started");
                }
            }
        }
        Pool { queue }
    }

    /// Runs a job of a tenant.
    ///
    /// # Errors
    /// `unavailable` when too many wait already, or when the patience is over; `invalid-function` when the job panicked.
    pub(in crate::functions) async fn run<T: Send + 'static>(
        &self,
        scope: &Scope,
        patience: Patience<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FunctionError> {
        let (answer, answered) = oneshot::channel();
        let (begins, begun) = oneshot::channel();
        let ahead = self.push(scope, Box::new(Pending { work, begins, answer }))?;
        if let (Patience::Scheduler(clock), Ahead::OwnJobs) = (patience, ahead)
            && clock::timeout(clock, SCHEDULED_CHECK_PATIENCE, begun).await.is_none()
        {
            return Err(refused());
        }
        answered.await.unwrap_or_else(|_| Err(panicked()))
    }

    fn push(&self, scope: &Scope, job: Box<dyn Job>) -> Result<Ahead, FunctionError> {
        let mut state = self.queue.lock();
        if state.threads == 0 {
            return Err(refused());
        }
        let pushed = state.jobs.push(scope, job);
        drop(state);
        let Ok(Admitted { ahead, displaced }) = pushed else { return Err(refused()) };
        self.queue.changed.notify_one();
        if let Some(displaced) = displaced {
            displaced.refuse();
        }
        Ok(ahead)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the pool is dropped.
    fn work(&self) {
        while let Some((scope, job)) = self.next() {
            let begun_ns = SystemClock.monotonic_ns();
            // A panic is logged by its hook, and the caller is answered because the job is dropped.
            catch_unwind(AssertUnwindSafe(|| job.run())).ok();
            let cost_ns = SystemClock.monotonic_ns().saturating_sub(begun_ns);
            self.lock().jobs.finish(&scope, cost_ns);
        }
    }

    fn next(&self) -> Option<(Scope, Box<dyn Job>)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(job) = state.jobs.begin() {
                return Some(job);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What waits for a thread.
trait Job: Send {
    fn run(self: Box<Self>);
    /// Answers the caller that it will not be run.
    fn refuse(self: Box<Self>);
    fn has_caller(&self) -> bool;
}

impl Abandonable for Box<dyn Job> {
    fn is_abandoned(&self) -> bool {
        !self.has_caller()
    }
}

struct Pending<T, W> {
    work: W,
    begins: oneshot::Sender<()>,
    answer: oneshot::Sender<Result<T, FunctionError>>,
}

impl<T: Send, W: FnOnce() -> T + Send> Job for Pending<T, W> {
    fn run(self: Box<Self>) {
        // The caller may give up at any time; then the answer is dropped.
        self.begins.send(()).ok();
        self.answer.send(Ok((self.work)())).ok();
    }

    fn refuse(self: Box<Self>) {
        self.answer.send(Err(refused())).ok();
    }

    fn has_caller(&self) -> bool {
        !self.answer.is_closed()
    }
}

fn refused() -> FunctionError {
    metrics::counter!(telemetry::SCHEMA_CHECKS_REFUSED).increment(1);
    FunctionError::Busy
}

fn panicked() -> FunctionError {
    FunctionError::invalid(
        "input_schema",
        "the validator failed on this schema and input; simplify the schema",
    )
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
