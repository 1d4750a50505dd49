//! A submitted commit, from its call to its answer: one allocation for the operation, its result and
//! the waker of its caller. The lock holder runs the operation, which may be another caller.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use segno::store::ProviderError;

use crate::commit::execute::{CommitOutcome, CommitResult, panicked};
use crate::commit::refusal::{Outcome, Refusal};
use crate::commit::shared::{BatchWaiter, Core, Shared};
use crate::state::machine::State;

/// A commit, without the type of its result.
trait Submission: Send + Sync {
    /// Runs the operation. Its caller is answered after the batch.
    fn run(&self, caller: PendingReply, core: &Core, shared: &mut Shared, now_ms: u64);

    /// Answers the caller with the outcome of the batch.
    fn answer(&self, outcome: Outcome);
}

/// The pending reply to the caller of a commit. Dropped without an answer, it answers that the store has
/// been closed, or that the operation has panicked.
pub(crate) struct PendingReply(Option<Arc<dyn Submission>>);

impl PendingReply {
    /// Runs the operation.
    pub(crate) fn run(self, core: &Core, shared: &mut Shared, now_ms: u64) {
        if let Some(commit) = self.0.clone() {
            commit.run(self, core, shared, now_ms);
        }
    }

    pub(crate) fn answer(mut self, outcome: Outcome) {
        if let Some(commit) = self.0.take() {
            commit.answer(outcome);
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let Some(commit) = self.0.take() {
            commit.answer(Err(Refusal::closed()));
        }
    }
}

/// Whether the caller of a commit with this result need not be woken.
pub(crate) type IsQuiet<T> = fn(&T) -> bool;

/// A commit and its progress.
struct Commit<T, F> {
    operation: &'static str,
    is_quiet: IsQuiet<T>,
    progress: Mutex<Progress<T, F>>,
}

struct Progress<T, F> {
    /// Set until the operation runs.
    change: Option<F>,
    ran: Option<CommitResult<T, F>>,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl<T, F> Commit<T, F> {
    fn lock(&self) -> MutexGuard<'_, Progress<T, F>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, F> Submission for Commit<T, F>
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    fn run(&self, caller: PendingReply, core: &Core, shared: &mut Shared, now_ms: u64) {
        let Some(change) = self.lock().change.take() else { return };
        let (ran, batch) = core.run(shared, now_ms, self.operation, change);
        self.lock().ran = Some(ran);
        shared.answer_after(batch, BatchWaiter::Commit(caller));
    }

    fn answer(&self, outcome: Outcome) {
        let waker = {
            let mut progress = self.lock();
            let is_quiet = match &progress.ran {
                Some(Ok(CommitOutcome::Run(Ok(output)))) => outcome.is_ok() && (self.is_quiet)(output),
                _ => false,
            };
            progress.outcome = Some(outcome);
            progress.waker.take_if(|_| !is_quiet)
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The future result of a commit.
pub(crate) struct CommitFuture<T, F>(Arc<Commit<T, F>>);

/// A commit, and its future result.
pub(crate) fn submit<T, F>(
    operation: &'static str,
    is_quiet: IsQuiet<T>,
    change: F,
) -> (PendingReply, CommitFuture<T, F>)
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    let progress = Progress { change: Some(change), ran: None, outcome: None, waker: None };
    let commit = Arc::new(Commit { operation, is_quiet, progress: Mutex::new(progress) });
    let caller = PendingReply(Some(Arc::clone(&commit) as Arc<dyn Submission>));
    (caller, CommitFuture(commit))
}

impl<T, F> Future for CommitFuture<T, F> {
    /// The result of the operation, once its batch is durable.
    type Output = CommitResult<T, F>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Commit { operation, .. } = *self.0;
        let mut progress = self.0.lock();
        let Some(outcome) = progress.outcome.take() else {
            match &mut progress.waker {
                Some(waker) => waker.clone_from(context.waker()),
                waker => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        };
        let Some(ran) = progress.ran.take() else { return Poll::Ready(Err(panicked(operation))) };
        Poll::Ready(outcome.map_err(|refusal| refusal.at(operation)).and(ran))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::store::EmbeddedStore;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Runs a commit that has a waiting caller and is quiet from 5 on. Returns the number of wake-ups of
    /// the caller, and its result.
    fn answered(
        change: impl FnOnce(&mut State, u64) -> Result<u32, ProviderError> + Send + 'static,
        run: impl FnOnce(PendingReply, &Core, &mut Shared),
    ) -> (u32, Result<u32, ProviderError>) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
        let (caller, mut submitted) = submit("test", |output| *output >= 5, change);
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut submitted).poll(&mut context).is_pending());
        let mut shared = store.core().lock();
        let run = std::panic::AssertUnwindSafe(|| run(caller, store.core(), &mut shared));
        drop(std::panic::catch_unwind(run));
        drop(shared);
        let result = match Pin::new(&mut submitted).poll(&mut context) {
            Poll::Ready(Ok(CommitOutcome::Run(output))) => output,
            Poll::Ready(Ok(CommitOutcome::Backpressure(_))) => panic!("there is room"),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => panic!("it was answered"),
        };
        (counter.0.load(Ordering::SeqCst), result)
    }

    #[test]
    fn a_quiet_commit_wakes_its_caller_only_when_it_fails() {
        // The operation changes nothing, so it is answered at once.
        let run = |caller: PendingReply, core: &Core, shared: &mut Shared| caller.run(core, shared, 1);
        let lost = || ProviderError::lock_lost("test");
        assert_eq!(answered(|_, _| Ok(4), run), (1, Ok(4)));
        assert_eq!(answered(|_, _| Ok(5), run), (0, Ok(5)));
        assert_eq!(answered(move |_, _| Err(lost()), run), (1, Err(lost())));
        assert_eq!(answered(|_, _| panic!("a defect"), run), (1, Err(panicked("test"))));
        let refused = answered(
            |_, _| Ok(5),
            |caller, core, shared| {
                shared.refusal = Some(Refusal::failed("a test"));
                caller.run(core, shared, 1);
            },
        );
        assert_eq!(refused, (1, Err(Refusal::failed("a test").at("test").nothing_changed())));
    }

    #[test]
    fn a_commit_that_does_not_run_is_answered() {
        assert_eq!(answered(|_, _| Ok(5), |caller, _, _| drop(caller)), (1, Err(panicked("test"))));
    }
}
