//! Who is at work on the state. One caller at a time is; what others want meanwhile they leave to that one, so that the state
//! stays with one processor and nobody waits for it who could do something else. Only threads of the store and seldom
//! operations wait, and it is handed to them directly.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::shared::{Core, Shared};
use crate::submitted::UntoldCaller;

/// Most commits that are done before others who want the state get hold of it.
const MOST_AT_ONCE: usize = 16;

/// Most commits that one caller does for others.
const MOST_LEFT: usize = 256;

/// Something to be done with the state before any commit that is left.
pub type Ask = Box<dyn FnOnce(&Core, &mut Shared, u64) + Send>;

/// Something to be done with the state.
enum Job {
    Ask(Ask),
    Commit(UntoldCaller),
}

/// The state, who is at work on it, and what is left to them.
pub struct Desk {
    /// Locked by whoever is at work, so nobody waits for it.
    shared: Mutex<Shared>,
    left: Mutex<Left>,
    /// Where those wait who cannot leave what they do to others.
    handed: Condvar,
}

/// What is left to whoever is at work.
#[derive(Default)]
struct Left {
    is_taken: bool,
    /// How many threads wait for the state, and whether it has been given to one of them.
    blocked: usize,
    is_handed: bool,
    /// What is done first.
    asks: VecDeque<Ask>,
    commits: VecDeque<UntoldCaller>,
}

impl Left {
    /// Moves what is to be done next.
    fn take_round(&mut self, round: &mut Vec<Job>, most_commits: usize) {
        let commits = self.commits.len().min(most_commits);
        round.extend(self.asks.drain(..).map(Job::Ask));
        round.extend(self.commits.drain(..commits).map(Job::Commit));
    }
}

/// Is at work on the state. When that ends, what others have left is done.
pub struct AtWork<'a> {
    core: &'a Core,
    /// `None` when it has ended.
    shared: Option<MutexGuard<'a, Shared>>,
}

impl Deref for AtWork<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        self.shared.as_ref().expect("it is there until the end")
    }
}

impl DerefMut for AtWork<'_> {
    fn deref_mut(&mut self) -> &mut Shared {
        self.shared.as_mut().expect("it is there until the end")
    }
}

impl AtWork<'_> {
    /// Ends without doing the commits that are left: those who come next do them, and the caller is sure to come back.
    pub fn let_go(mut self) {
        if let Some(shared) = self.shared.take() {
            self.core.end_work(shared, 0);
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.core.end_work(shared, MOST_LEFT);
        }
    }
}

/// Leaves something to whoever is at work.
pub struct Leaving<'a> {
    left: MutexGuard<'a, Left>,
}

impl Leaving<'_> {
    /// It is done soon.
    pub fn ask(mut self, ask: Ask) {
        self.left.asks.push_back(ask);
    }

    /// It is done in time.
    pub fn commit(mut self, commit: UntoldCaller) {
        self.left.commits.push_back(commit);
    }
}

impl Desk {
    pub fn new(shared: Shared) -> Self {
        Desk { shared: Mutex::new(shared), left: Mutex::default(), handed: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`; the latter is asked
        // when the state is whole, so going on is right and a poisoned store would only hide the first message.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Waits for the state. For threads of the store, and for operations that are seldom or borrow something.
    pub fn lock(&self) -> AtWork<'_> {
        let mut left = self.desk.left();
        if left.is_taken {
            left.blocked += 1;
            left = self
                .desk
                .handed
                .wait_while(left, |left| !left.is_handed)
                .unwrap_or_else(PoisonError::into_inner);
            left.blocked -= 1;
            left.is_handed = false;
        }
        self.take(left)
    }

    fn take(&self, mut left: MutexGuard<'_, Left>) -> AtWork<'_> {
        left.is_taken = true;
        drop(left);
        AtWork { core: self, shared: Some(self.desk.shared()) }
    }

    /// The state, if nobody is at work on it.
    pub fn try_lock(&self) -> Result<AtWork<'_>, Leaving<'_>> {
        let left = self.desk.left();
        if left.is_taken { Err(Leaving { left }) } else { Ok(self.take(left)) }
    }

    /// Does what others have left, at most so many commits, and gives the state to whoever waits for it.
    fn end_work<'a>(&'a self, mut shared: MutexGuard<'a, Shared>, most_left: usize) {
        let mut round = Vec::new();
        let mut done = 0;
        loop {
            shared.wake(self.clock.now_ms());
            let mut is_called = shared.call_writer();
            let mut left = self.desk.left();
            // A writer that has ended does not come for the rest.
            let is_enough = done >= most_left && shared.has_writer();
            if done == 0 || left.blocked == 0 {
                left.take_round(&mut round, if is_enough { 0 } else { MOST_AT_ONCE });
            }
            if round.is_empty() {
                let is_handed = left.blocked > 0;
                if !left.commits.is_empty() && !is_handed {
                    // Whoever comes next does the rest, the writer at the latest. If it is awake, it comes by itself.
                    is_called |= shared.call_writer_at.take().is_some();
                }
                drop(shared);
                left.is_taken = is_handed;
                left.is_handed = is_handed;
                drop(left);
                if is_handed {
                    self.desk.handed.notify_one();
                }
                if is_called {
                    self.to_writer.call();
                }
                return;
            }
            drop(left);
            if is_called {
                self.to_writer.call();
            }
            done += round.len();
            // Whatever is done happens after it was wished for, by the clock as well.
            let now_ms = self.clock.now_ms();
            round.drain(..).for_each(|job| self.do_job(job, &mut shared, now_ms));
        }
    }

    /// Does all commits that are left.
    pub fn do_left(&self, shared: &mut Shared) {
        let commits = std::mem::take(&mut self.desk.left().commits);
        let now_ms = self.clock.now_ms();
        commits.into_iter().for_each(|commit| self.do_job(Job::Commit(commit), shared, now_ms));
    }

    /// Does something with the state before what others have left, or has it done by whoever is at work. In the first case the
    /// caller is still at work. `None` when it has panicked. It blocks, so it is for the writer only.
    pub fn do_first<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut Shared, u64) -> T + Send + 'static,
    ) -> Option<(T, Option<AtWork<'_>>)> {
        let mut left = self.desk.left();
        if left.is_taken {
            let (answer, output) = oneshot::channel();
            left.asks.push_front(Box::new(move |core, shared, now_ms| {
                // The writer waits for it.
                let _heard = answer.send(work(core, shared, now_ms));
            }));
            drop(left);
            return output.blocking_recv().ok().map(|output| (output, None));
        }
        let mut shared = self.take(left);
        let now_ms = self.clock.now_ms();
        let output = catch_unwind(AssertUnwindSafe(|| work(self, &mut shared, now_ms))).ok();
        output.map(|output| (output, Some(shared)))
    }

    fn do_job(&self, job: Job, shared: &mut Shared, now_ms: u64) {
        // Whoever left a job that panics hears of it: by an answer that does not come, or by one that says so.
        drop(catch_unwind(AssertUnwindSafe(|| match job {
            Job::Ask(ask) => ask(self, shared, now_ms),
            Job::Commit(commit) => commit.run(self, shared, now_ms),
        })));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use segno::store::{
        ErrorKind, FetchOrchestrationItems, OrchestratorMessage, Provider, ProviderError, WatchUntil,
    };

    use super::*;
    use crate::at_rest::open;
    use crate::refusal::Refusal;
    use crate::state::State;
    use crate::store::EmbeddedStore;

    fn touch(state: &mut State, said: u32) -> Result<u32, ProviderError> {
        state.touch();
        Ok(said)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime without drivers").block_on(future)
    }

    /// Polls once, as somebody who has other things to do.
    fn begin<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
        let mut future = Box::pin(future);
        let is_pending = block_on(std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        }));
        assert!(is_pending, "somebody else is at work");
        future
    }

    fn leave(store: &EmbeddedStore, count: usize) -> Vec<impl Future<Output = Result<u32, ProviderError>>> {
        (0..count).map(|_| store.core().commit("left", |state, _| touch(state, 2))).collect()
    }

    /// A thread that does something as the writer does, once it is known to those who are at work.
    fn as_writer<T: Send + 'static>(
        store: &Arc<EmbeddedStore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<Option<T>> {
        let asks = store.core().desk.left().asks.len();
        let waits = Arc::clone(store);
        let writer = thread::spawn(move || Some(waits.core().do_first(move |_, _, _| work())?.0));
        while store.core().desk.left().asks.len() == asks {
            thread::yield_now();
        }
        writer
    }

    #[test]
    fn whoever_is_at_work_does_what_others_leave() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let refused = |state: &mut State, _| {
            state.touch();
            Err(ProviderError::unavailable("first", "it says so"))
        };
        let first = store.core().commit::<(), _>("first", refused);
        let second = store.core().commit("second", |state, _| touch(state, 2));
        assert_eq!(store.core().desk.left().commits.len(), 2, "nobody waits who has something to leave");
        drop(hold);
        assert_eq!(block_on(first), Err(ProviderError::unavailable("first", "it says so")));
        assert_eq!(block_on(second), Ok(2));
    }

    #[test]
    fn the_writer_comes_before_all_that_is_left() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |who: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().expect("nobody has panicked").push(who)
        };
        let (left, writer) = (note("left"), note("writer"));
        let left = store.core().commit("left", move |state, _| {
            left();
            touch(state, 2)
        });
        let writer = as_writer(&store, writer);
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(()));
        assert_eq!(block_on(left), Ok(2));
        assert_eq!(*order.lock().expect("nobody has panicked"), ["writer", "left"]);
    }

    #[test]
    fn a_panic_of_whoever_is_at_work_does_not_hold_others_up() {
        let (_directory, store) = open();
        let panics = Arc::clone(&store);
        let (say, said) = std::sync::mpsc::channel();
        let at_work = thread::spawn(move || {
            let _hold = panics.core().lock();
            said.recv().expect("a word");
            panic!("a defect");
        });
        while !store.core().desk.left().is_taken {
            thread::yield_now();
        }
        let left = store.core().commit("left", |state, _| touch(state, 2));
        let writer = as_writer(&store, || 7);
        say.send(()).expect("somebody listens");
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(7));
        assert_eq!(block_on(left), Ok(2));
        assert!(at_work.join().is_err());
        assert_eq!(block_on(store.core().commit("later", |state, _| touch(state, 5))), Ok(5));
    }

    #[test]
    fn the_writer_hears_that_its_wish_has_panicked() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let writer = as_writer::<()>(&store, || panic!("a defect"));
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), None);
        let alone = store.core().do_first::<()>(|_, _, _| panic!("a defect"));
        assert!(alone.is_none(), "nobody else is at work");
        assert_eq!(block_on(store.core().commit("later", |state, _| touch(state, 5))), Ok(5));
    }

    #[test]
    fn a_panic_is_the_end_of_one_operation_only() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let panicking = store.core().commit::<(), _>("first", |_, _| panic!("a defect"));
        let second = store.core().commit("second", |state, _| touch(state, 2));
        drop(hold);
        assert_eq!(block_on(panicking).map_err(|error| error.kind()), Err(ErrorKind::Internal));
        assert_eq!(block_on(second), Ok(2));
        while store.core().desk.left().is_taken {
            // The writer answers before it has ended.
            thread::yield_now();
        }
        let alone = catch_unwind(AssertUnwindSafe(|| {
            drop(store.core().commit::<(), _>("third", |_, _| panic!("a defect")));
        }));
        assert!(alone.is_err(), "whoever is at work hears of its own panic");
        assert_eq!(block_on(store.core().commit("fourth", |state, _| touch(state, 4))), Ok(4));
    }

    #[test]
    fn whoever_waits_gets_the_state_before_all_that_is_left_is_done() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let left = leave(&store, 3 * MOST_AT_ONCE);
        let waits = Arc::clone(&store);
        let waiting = thread::spawn(move || {
            let _hold = waits.core().lock();
            waits.core().desk.left().commits.len()
        });
        while store.core().desk.left().blocked == 0 {
            thread::yield_now();
        }
        drop(hold);
        assert_eq!(waiting.join().expect("the thread has not panicked"), 2 * MOST_AT_ONCE);
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
    }

    #[test]
    fn what_the_writer_lets_go_is_done_by_whoever_comes_next() {
        let (_directory, store) = open();
        let mut hold = store.core().lock();
        // As when the writer does not sleep.
        let call_writer_at = hold.call_writer_at.take();
        let left = leave(&store, 3);
        let asked = as_writer(&store, || 7);
        hold.let_go();
        assert_eq!(asked.join().expect("the thread has not panicked"), Some(7), "it cannot wait");
        assert_eq!(store.core().desk.left().commits.len(), 3);
        store.core().lock().call_writer_at = call_writer_at;
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
    }

    #[test]
    fn a_caller_does_only_so_much_and_the_writer_the_rest() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let left = leave(&store, 2 * MOST_LEFT);
        drop(hold);
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
        assert!(store.core().desk.left().commits.is_empty());
    }

    #[test]
    fn whoever_is_at_work_answers_all_when_the_writer_has_ended() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let left = leave(&store, 2 * MOST_LEFT);
        let closes = Arc::clone(&store);
        let closing = thread::spawn(move || closes.close());
        while store.core().desk.left().blocked == 0 {
            thread::yield_now();
        }
        drop(hold);
        closing.join().expect("the thread has not panicked");
        for left in left {
            let answer = block_on(left).map_err(|error| error.kind());
            assert!(matches!(answer, Ok(2) | Err(ErrorKind::Closed)), "{answer:?}");
        }
        let hold = store.core().lock();
        let late = leave(&store, 2 * MOST_LEFT);
        drop(hold);
        for late in late {
            assert_eq!(block_on(late).map_err(|error| error.kind()), Err(ErrorKind::Closed));
        }
    }

    #[test]
    fn what_is_left_when_the_writer_gives_up_is_refused() {
        let (_directory, store) = open();
        let mut hold = store.core().lock();
        let left = leave(&store, 2 * MOST_LEFT);
        hold.refusal = Some(Refusal::failed("a test"));
        drop(hold);
        let late = store.core().commit("late", |state, _| touch(state, 3));
        assert_eq!(block_on(late).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        for left in left {
            assert_eq!(block_on(left).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        }
        assert!(
            store.core().desk.left().commits.is_empty(),
            "nothing is left to a writer that does not come"
        );
    }

    #[test]
    fn a_full_disk_does_not_heal_a_store_that_only_reads() {
        let (_directory, store) = open();
        let failed = Refusal::failed("a test");
        store.core().refuse(failed.clone());
        store.core().refuse(Refusal::full(&std::io::Error::other("a test")));
        assert_eq!(store.core().lock().refusal, Some(failed));
    }

    /// Drops a future before and after what it has left is done, and calls `check` both times.
    fn dropped<F: Future + Send>(store: &EmbeddedStore, future: impl Fn() -> F, check: impl Fn()) {
        let hold = store.core().lock();
        let left = begin(future());
        thread::scope(|scope| {
            scope.spawn(|| drop(left));
            while store.core().desk.left().blocked == 0 {
                thread::yield_now();
            }
            drop(hold);
        });
        check();
        let hold = store.core().lock();
        let left = begin(future());
        drop(hold);
        drop(left);
        check();
    }

    #[test]
    fn a_watch_that_is_given_up_while_somebody_is_at_work_is_forgotten() {
        let (_directory, store) = open();
        let watch = || store.watch_instance("i1", WatchUntil::Terminal, Duration::from_secs(9));
        dropped(&store, watch, || assert!(store.core().lock().state.watches.watched().is_empty()));
    }

    #[test]
    fn what_was_fetched_for_somebody_who_is_gone_is_given_back() {
        let (_directory, store) = open();
        let message = OrchestratorMessage::new("i1", "go");
        block_on(store.enqueue_for_orchestrator(message, None)).expect("a store that writes");
        let request = || FetchOrchestrationItems::one(Duration::from_secs(9));
        dropped(
            &store,
            || store.fetch_orchestration_items(request()),
            || {
                assert_eq!(store.core().lock().state.orchestrations.depths().visible, 1);
            },
        );
        let fetched = block_on(store.fetch_orchestration_items(request())).expect("a store that works");
        assert_eq!(fetched[0].attempt_count, 1, "nobody has tried it");
    }

    #[test]
    fn a_fetch_that_is_given_up_while_somebody_is_at_work_leaves_its_place() {
        let (_directory, store) = open();
        let request = || FetchOrchestrationItems {
            poll_timeout: Duration::from_secs(9),
            ..FetchOrchestrationItems::one(Duration::from_secs(9))
        };
        dropped(
            &store,
            || store.fetch_orchestration_items(request()),
            || {
                assert!(store.core().lock().waiters.is_empty());
            },
        );
    }
}
