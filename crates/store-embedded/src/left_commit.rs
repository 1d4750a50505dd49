//! A commit that is left to whoever is at work: one piece of memory for what is to be done, what came of it, and who waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use segno::store::ProviderError;

use crate::committing::{Ran, panicked};
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
            progress.outcome = Some(outcome);
            progress.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The future of a commit that was left.
pub struct Left<T, F>(Arc<Commit<T, F>>);

/// A commit, and the future of what becomes of it. It must be run.
pub fn leave<T, F>(operation: &'static str, change: F) -> (Arc<dyn LeftCommit>, Left<T, F>)
where
    F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
    T: Send + 'static,
{
    let progress = Progress { change: Some(change), ran: None, outcome: None, waker: None };
    let commit = Arc::new(Commit { operation, progress: Mutex::new(progress) });
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
