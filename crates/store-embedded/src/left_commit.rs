//! A commit that is left to whoever is at work: one piece of memory for what is to be done, what came of it, and who waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use segno::store::ProviderError;

use crate::committing::{Ran, Tried, panicked};
use crate::refusal::{Outcome, Refusal};
use crate::shared::{Answer, Core, Shared};
use crate::state::State;

/// A commit, as whoever does it and whoever answers it sees it.
pub trait LeftCommit: Send + Sync {
    /// Runs the operation and has its caller told what becomes of its batch.
    fn run(self: Arc<Self>, core: &Core, shared: &mut Shared, now_ms: u64);

    /// Tells its caller what became of its batch.
    fn tell(&self, outcome: Outcome);
}

/// A commit that must be answered: dropped, it is answered that the store has been closed.
pub struct Unanswered(Option<Arc<dyn LeftCommit>>);

impl Unanswered {
    pub fn tell(mut self, outcome: Outcome) {
        if let Some(commit) = self.0.take() {
            commit.tell(outcome);
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(commit) = self.0.take() {
            commit.tell(Err(Refusal::closed()));
        }
    }
}

/// A commit and what became of it so far.
struct Commit<T, F> {
    operation: &'static str,
    /// Whether its caller hears only of a failure.
    is_quiet: bool,
    progress: Mutex<Progress<T, F>>,
}

struct Progress<T, F> {
    /// Until it is run.
    change: Option<F>,
    ran: Option<Ran<T, F>>,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl<T, F> Commit<T, F> {
    fn lock(&self) -> MutexGuard<'_, Progress<T, F>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, F> LeftCommit for Commit<T, F>
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    fn run(self: Arc<Self>, core: &Core, shared: &mut Shared, now_ms: u64) {
        // Its caller hears of a panic as well.
        let answer = Unanswered(Some(Arc::clone(&self) as Arc<dyn LeftCommit>));
        let Some(change) = self.lock().change.take() else { return };
        let (ran, batch) = core.run(shared, now_ms, self.operation, change);
        self.lock().ran = Some(ran);
        shared.tell(batch, Answer::ToCommit(answer));
    }

    fn tell(&self, outcome: Outcome) {
        let waker = {
            let mut progress = self.lock();
            let has_worked = outcome.is_ok() && matches!(progress.ran, Some(Ok(Tried::Run(Ok(_)))));
            progress.outcome = Some(outcome);
            progress.waker.take_if(|_| !(self.is_quiet && has_worked))
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The future of a commit that was left.
pub struct Left<T, F>(Arc<Commit<T, F>>);

/// A commit, and the future of what becomes of it. It must be run. A quiet one does not wake its caller when it has worked.
pub fn leave<T, F>(operation: &'static str, is_quiet: bool, change: F) -> (Arc<dyn LeftCommit>, Left<T, F>)
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    let progress = Progress { change: Some(change), ran: None, outcome: None, waker: None };
    let commit = Arc::new(Commit { operation, is_quiet, progress: Mutex::new(progress) });
    (Arc::clone(&commit) as Arc<dyn LeftCommit>, Left(commit))
}

impl<T, F> Future for Left<T, F> {
    /// What came of the operation, once its batch is durable.
    type Output = Ran<T, F>;

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
    use std::time::Duration;

    use segno::store::{OrchestratorMessage, Provider, StartGuard};

    use super::*;
    use crate::store::EmbeddedStore;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn open() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
        while store.core().lock().call_writer_at.is_none() {
            // The writer is at work itself before it sleeps.
            std::thread::yield_now();
        }
        (directory, store)
    }

    /// Runs a commit that somebody waits for. Says how often that one was woken, and what it heard.
    fn outcome(
        is_quiet: bool,
        outcome: Outcome,
        change: impl FnOnce(&mut State, u64) -> Result<u32, ProviderError> + Send + 'static,
    ) -> (u32, Result<u32, ProviderError>) {
        let (_directory, store) = open();
        let (commit, mut left) = leave("test", is_quiet, change);
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut left).poll(&mut context).is_pending());
        let mut shared = store.core().lock();
        shared.refusal = outcome.err();
        // It changes nothing, so that it is answered at once.
        let run = std::panic::AssertUnwindSafe(|| commit.run(store.core(), &mut shared, 1));
        drop(std::panic::catch_unwind(run));
        drop(shared);
        let heard = match Pin::new(&mut left).poll(&mut context) {
            Poll::Ready(Ok(Tried::Run(output))) => output,
            Poll::Ready(Ok(Tried::Crowded(_))) => panic!("there is room"),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => panic!("it was answered"),
        };
        (counter.0.load(Ordering::SeqCst), heard)
    }

    #[test]
    fn a_quiet_commit_wakes_its_caller_only_when_it_fails() {
        let refused = || ProviderError::lock_lost("test");
        assert_eq!(outcome(false, Ok(()), |_, _| Ok(7)), (1, Ok(7)));
        assert_eq!(outcome(true, Ok(()), |_, _| Ok(7)), (0, Ok(7)));
        assert_eq!(outcome(true, Ok(()), move |_, _| Err(refused())), (1, Err(refused())));
        let closed = Refusal::closed();
        let (woken, heard) = outcome(true, Err(closed.clone()), |_, _| Ok(7));
        assert_eq!((woken, heard), (1, Err(closed.at("test"))));
        let (woken, heard) = outcome(true, Ok(()), |_, _| panic!("a defect"));
        assert_eq!((woken, heard), (1, Err(panicked("test"))));
    }

    #[test]
    fn a_watched_start_that_is_given_up_leaves_no_watch() {
        let (_directory, store) = open();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let start = OrchestratorMessage {
                guard: StartGuard::IfAbsent,
                ..OrchestratorMessage::new("i1", "start")
            };
            let mut watching = Box::pin(store.start_and_watch(start));
            let polled = std::future::poll_fn(|context| Poll::Ready(watching.as_mut().poll(context)));
            assert!(polled.await.is_pending());
            assert_eq!(store.core().lock().state.watches.watched(), [Arc::from("i1")]);
            drop(watching);
            assert!(store.core().lock().state.watches.watched().is_empty());
            let fetched =
                store.fetch_orchestration_item(Duration::from_secs(9), Duration::from_secs(9), None);
            assert!(fetched.await.expect("a store that works").is_some(), "it was started all the same");
        });
    }
}
