//! A commit from the wish to the answer: one piece of memory for what is to be done, what came of it, and who waits for it. Whoever
//! is at work on the state runs it; its caller need not be that one.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use segno::store::ProviderError;

use crate::committing::{Ran, Tried, panicked};
use crate::refusal::{Outcome, Refusal};
use crate::shared::{Core, Shared, Waiter};
use crate::state::State;

/// A commit, as whoever does it and whoever answers it sees it.
trait Submission: Send + Sync {
    /// Runs the operation and has its caller told what becomes of its batch.
    fn run(&self, caller: UntoldCaller, core: &Core, shared: &mut Shared, now_ms: u64);

    /// Tells its caller what became of its batch.
    fn tell(&self, outcome: Outcome);
}

/// The caller of a commit. It is told what became of it, whatever happens: dropped untold, it hears that the store
/// has been closed, or that the operation has panicked.
pub struct UntoldCaller(Option<Arc<dyn Submission>>);

impl UntoldCaller {
    /// Runs its operation.
    pub fn run(self, core: &Core, shared: &mut Shared, now_ms: u64) {
        if let Some(commit) = self.0.clone() {
            commit.run(self, core, shared, now_ms);
        }
    }

    pub fn tell(mut self, outcome: Outcome) {
        if let Some(commit) = self.0.take() {
            commit.tell(outcome);
        }
    }
}

impl Drop for UntoldCaller {
    fn drop(&mut self) {
        if let Some(commit) = self.0.take() {
            commit.tell(Err(Refusal::closed()));
        }
    }
}

/// Whether whoever waits for a commit that has come to this need not be woken.
pub type IsQuiet<T> = fn(&T) -> bool;

/// A commit and what became of it so far.
struct Commit<T, F> {
    operation: &'static str,
    is_quiet: IsQuiet<T>,
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

impl<T, F> Submission for Commit<T, F>
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    fn run(&self, caller: UntoldCaller, core: &Core, shared: &mut Shared, now_ms: u64) {
        let Some(change) = self.lock().change.take() else { return };
        let (ran, batch) = core.run(shared, now_ms, self.operation, change);
        self.lock().ran = Some(ran);
        shared.tell(batch, Waiter::Commit(caller));
    }

    fn tell(&self, outcome: Outcome) {
        let waker = {
            let mut progress = self.lock();
            let is_quiet = match &progress.ran {
                Some(Ok(Tried::Run(Ok(output)))) => outcome.is_ok() && (self.is_quiet)(output),
                _ => false,
            };
            progress.outcome = Some(outcome);
            progress.waker.take_if(|_| !is_quiet)
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

/// What will come of a commit.
pub struct Submitted<T, F>(Arc<Commit<T, F>>);

/// A commit, and what will come of it.
pub fn submit<T, F>(
    operation: &'static str,
    is_quiet: IsQuiet<T>,
    change: F,
) -> (UntoldCaller, Submitted<T, F>)
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    let progress = Progress { change: Some(change), ran: None, outcome: None, waker: None };
    let commit = Arc::new(Commit { operation, is_quiet, progress: Mutex::new(progress) });
    let caller = UntoldCaller(Some(Arc::clone(&commit) as Arc<dyn Submission>));
    (caller, Submitted(commit))
}

impl<T, F> Future for Submitted<T, F> {
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

    use super::*;
    use crate::store::EmbeddedStore;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Has something done with a commit that somebody waits for and that is quiet from 5 on. Says how often that one was
    /// woken, and what it heard.
    fn heard(
        change: impl FnOnce(&mut State, u64) -> Result<u32, ProviderError> + Send + 'static,
        what: impl FnOnce(UntoldCaller, &Core, &mut Shared),
    ) -> (u32, Result<u32, ProviderError>) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
        let (caller, mut left) = submit("test", |output| *output >= 5, change);
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut left).poll(&mut context).is_pending());
        let mut shared = store.core().lock();
        let what = std::panic::AssertUnwindSafe(|| what(caller, store.core(), &mut shared));
        drop(std::panic::catch_unwind(what));
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
        // It changes nothing, so that it is answered at once.
        let run = |caller: UntoldCaller, core: &Core, shared: &mut Shared| caller.run(core, shared, 1);
        let lost = || ProviderError::lock_lost("test");
        assert_eq!(heard(|_, _| Ok(4), run), (1, Ok(4)));
        assert_eq!(heard(|_, _| Ok(5), run), (0, Ok(5)));
        assert_eq!(heard(move |_, _| Err(lost()), run), (1, Err(lost())));
        assert_eq!(heard(|_, _| panic!("a defect"), run), (1, Err(panicked("test"))));
        let refused = heard(
            |_, _| Ok(5),
            |caller, core, shared| {
                shared.refusal = Some(Refusal::failed("a test"));
                caller.run(core, shared, 1);
            },
        );
        assert_eq!(refused, (1, Err(Refusal::failed("a test").at("test").nothing_changed())));
    }

    #[test]
    fn a_commit_that_nobody_does_is_answered_all_the_same() {
        assert_eq!(heard(|_, _| Ok(5), |caller, _, _| drop(caller)), (1, Err(panicked("test"))));
    }
}
