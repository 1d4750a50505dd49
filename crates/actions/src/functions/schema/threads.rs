//! A bounded pool of threads with a stated stack for the recursion of the schema compiler and validator. Async threads
//! are never held by it, and what nobody waits for any more is skipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::{mpsc, oneshot};

use crate::functions::error::FunctionError;
use crate::functions::limits::{MAX_WAITING_CHECKS, SCHEMA_STACK_BYTES, SCHEMA_THREADS};

type Job = Box<dyn FnOnce() + Send>;

/// The pool of the process, started with the first job. Its threads hold nothing that a shutdown waits for.
static POOL: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Runs a job on the pool.
///
/// # Errors
/// `unavailable` when too many wait already, `invalid-function` when the job panicked.
pub(in crate::functions) async fn run<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FunctionError> {
    submit(POOL.get_or_init(|| start(MAX_WAITING_CHECKS)), job).await
}

async fn submit<T: Send + 'static>(
    pool: &mpsc::Sender<Job>,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FunctionError> {
    let (answer, answered) = oneshot::channel();
    let job: Job = Box::new(move || {
        if !answer.is_closed() {
            // The caller may have given up since; then the answer is dropped.
            answer.send(job()).ok();
        }
    });
    pool.try_send(job).map_err(|_| FunctionError::Busy)?;
    answered.await.map_err(|_| panicked())
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

fn start(queue: usize) -> mpsc::Sender<Job> {
    let (sender, receiver) = mpsc::channel::<Job>(queue);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..SCHEMA_THREADS {
        let receiver = Arc::clone(&receiver);
        let thread = thread::Builder::new().name(format!("segno-schema-{number}"));
        let started = thread.stack_size(SCHEMA_STACK_BYTES).spawn(move || {
            // The lock is held while waiting: one thread waits for the next job, the others for the lock.
            let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            while let Some(job) = next() {
                // A panic is logged by its hook, and the caller is answered because the job is dropped.
                catch_unwind(AssertUnwindSafe(job)).ok();
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "a thread that checks inputs could not be started");
        }
    }
    sender
}

fn panicked() -> FunctionError {
    FunctionError::invalid(
        "input_schema",
        "the validator failed on this schema and input; simplify the schema",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::poll_immediate;
    use std::sync::mpsc as std_mpsc;

    #[tokio::test]
    async fn a_full_queue_is_answered_and_a_panic_leaves_the_threads_at_work() {
        let pool = start(1);
        let (open, gate) = std_mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut held = Vec::new();
        let (began, mut beginning) = mpsc::channel(SCHEMA_THREADS);
        for _ in 0..SCHEMA_THREADS {
            let (pool, gate, began) = (pool.clone(), Arc::clone(&gate), began.clone());
            held.push(tokio::spawn(async move {
                submit(&pool, move || {
                    began.blocking_send(()).unwrap();
                    gate.lock().unwrap().recv().unwrap();
                })
                .await
            }));
            beginning.recv().await.unwrap();
        }
        let mut waiting = Box::pin(submit(&pool, || 7));
        assert!(poll_immediate(&mut waiting).await.is_none());
        let error = submit(&pool, || 8).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("unavailable", segno::store::ErrorKind::Unavailable));
        for _ in 0..SCHEMA_THREADS {
            open.send(()).unwrap();
        }
        assert_eq!(waiting.await.unwrap(), 7);
        for task in held {
            task.await.unwrap().unwrap();
        }
        for _ in 0..=SCHEMA_THREADS {
            let error = submit(&pool, || panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
            assert_eq!(error.code(), "invalid-function");
        }
        assert_eq!(submit(&pool, || 9).await.unwrap(), 9);
    }

    #[tokio::test]
    async fn a_job_that_nobody_waits_for_is_skipped() {
        let pool = start(8);
        let (open, gate) = std_mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut held = Vec::new();
        for _ in 0..SCHEMA_THREADS {
            let gate = Arc::clone(&gate);
            let mut job = Box::pin(submit(&pool, move || gate.lock().unwrap().recv().unwrap()));
            assert!(poll_immediate(&mut job).await.is_none());
            held.push(job);
        }
        let (ran, runs) = std_mpsc::channel();
        let mut given_up = Box::pin(submit(&pool, move || ran.send(()).unwrap()));
        assert!(poll_immediate(&mut given_up).await.is_none());
        drop(given_up);
        for _ in 0..SCHEMA_THREADS {
            open.send(()).unwrap();
        }
        for job in held {
            job.await.unwrap();
        }
        submit(&pool, || ()).await.unwrap();
        assert!(runs.recv().is_err(), "the job ran, or is still waiting");
    }
}
