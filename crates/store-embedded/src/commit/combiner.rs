//! Flat combining: one caller at a time holds the lock on the state, and runs the operations that
//! other callers have queued meanwhile. So the state stays in the cache of one processor, and callers
//! delegate instead of blocking.
//!
//! The technique is from Hendler, Incze, Shavit and Tzafrir: "Flat combining and the
//! synchronization-parallelism tradeoff" (SPAA 2010). Here the publication list is a queue, as a
//! caller awaits the result and may run on any thread. Only threads of the store and rare operations
//! block; the lock is handed over to them directly.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::commit::shared::{Core, Shared};
use crate::commit::submission::PendingReply;

/// Most queued commits that run before the lock is handed over to a blocked thread.
const MAX_COMMITS_PER_ROUND: usize = 16;

/// Most queued commits that one lock holder runs for other callers.
const MAX_COMMITS_FOR_OTHERS: usize = 256;

/// An operation on the state that runs before all queued commits.
pub(crate) type StateRequest = Box<dyn FnOnce(&Core, &mut Shared, u64) + Send>;

/// A queued operation.
enum Job {
    Request(StateRequest),
    Commit(PendingReply),
}

/// The state, its lock, and the queued operations.
pub(crate) struct Combiner {
    /// Uncontended: only the lock holder locks it.
    shared: Mutex<Shared>,
    queue: Mutex<CombinerQueue>,
    /// Where threads wait that cannot delegate.
    handover: Condvar,
}

/// The queued operations, and the state of the lock.
#[derive(Default)]
struct CombinerQueue {
    is_locked: bool,
    /// Number of threads that wait for the lock.
    blocked: usize,
    /// Whether the lock has been handed over to one of them.
    is_handed_over: bool,
    /// Run before the commits.
    requests: VecDeque<StateRequest>,
    commits: VecDeque<PendingReply>,
}

impl CombinerQueue {
    /// Moves the operations of the next round.
    fn take_round(&mut self, round: &mut Vec<Job>, most_commits: usize) {
        let commits = self.commits.len().min(most_commits);
        round.extend(self.requests.drain(..).map(Job::Request));
        round.extend(self.commits.drain(..commits).map(Job::Commit));
    }
}

/// The lock on the state. Its holder runs the queued operations when it drops the guard.
pub(crate) struct CombinerGuard<'a> {
    core: &'a Core,
    /// `None` after the release.
    shared: Option<MutexGuard<'a, Shared>>,
}

impl Deref for CombinerGuard<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        self.shared.as_ref().expect("the guard has the state until its release")
    }
}

impl DerefMut for CombinerGuard<'_> {
    fn deref_mut(&mut self) -> &mut Shared {
        self.shared.as_mut().expect("the guard has the state until its release")
    }
}

impl CombinerGuard<'_> {
    /// Releases the lock without running the queued commits: the next lock holder runs them, which
    /// is the caller at the latest.
    pub(crate) fn release(mut self) {
        if let Some(shared) = self.shared.take() {
            self.core.combine(shared, 0);
        }
    }
}

impl Drop for CombinerGuard<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            self.core.combine(shared, MAX_COMMITS_FOR_OTHERS);
        }
    }
}

/// Delegates an operation to the lock holder.
pub(crate) struct Delegation<'a> {
    queue: MutexGuard<'a, CombinerQueue>,
}

impl Delegation<'_> {
    /// Queues an operation that runs before all commits.
    pub(crate) fn request(mut self, request: StateRequest) {
        self.queue.requests.push_back(request);
    }

    /// Queues a commit.
    pub(crate) fn commit(mut self, commit: PendingReply) {
        self.queue.commits.push_back(commit);
    }
}

impl Combiner {
    pub(crate) fn new(shared: Shared) -> Self {
        Combiner { shared: Mutex::new(shared), queue: Mutex::default(), handover: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, CombinerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`. The
        // latter is called when the state is consistent, so it is right to continue: a poisoned store
        // would only hide the first message.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Blocks until the caller has the lock. For threads of the store, and for operations that are
    /// rare or borrow something.
    pub(crate) fn lock(&self) -> CombinerGuard<'_> {
        let mut queue = self.combiner.queue();
        if queue.is_locked {
            queue.blocked += 1;
            queue = self
                .combiner
                .handover
                .wait_while(queue, |queue| !queue.is_handed_over)
                .unwrap_or_else(PoisonError::into_inner);
            queue.blocked -= 1;
            queue.is_handed_over = false;
        }
        self.take_lock(queue)
    }

    fn take_lock(&self, mut queue: MutexGuard<'_, CombinerQueue>) -> CombinerGuard<'_> {
        queue.is_locked = true;
        drop(queue);
        CombinerGuard { core: self, shared: Some(self.combiner.shared()) }
    }

    /// Takes the lock if it is free; otherwise the caller delegates.
    pub(crate) fn try_lock(&self) -> Result<CombinerGuard<'_>, Delegation<'_>> {
        let queue = self.combiner.queue();
        if queue.is_locked { Err(Delegation { queue }) } else { Ok(self.take_lock(queue)) }
    }

    /// Runs queued operations, about `most_commits` commits, and releases the lock or hands it over
    /// to a blocked thread.
    fn combine<'a>(&'a self, mut shared: MutexGuard<'a, Shared>, most_commits: usize) {
        let mut round = Vec::new();
        let mut done = 0;
        loop {
            shared.wake(self.clock.now_ms());
            let mut notify_writer = shared.take_writer_notification();
            let mut queue = self.combiner.queue();
            // A writer that has ended does not run the rest.
            let is_enough = done >= most_commits && shared.has_writer();
            if done == 0 || queue.blocked == 0 {
                queue.take_round(&mut round, if is_enough { 0 } else { MAX_COMMITS_PER_ROUND });
            }
            if round.is_empty() {
                let hand_over = queue.blocked > 0;
                if !queue.commits.is_empty() && !hand_over {
                    // The next lock holder runs the rest, the writer at the latest. A writer that is
                    // awake takes the lock without a notification.
                    notify_writer |= shared.notify_writer_at.take().is_some();
                }
                drop(shared);
                queue.is_locked = hand_over;
                queue.is_handed_over = hand_over;
                drop(queue);
                if hand_over {
                    self.combiner.handover.notify_one();
                }
                if notify_writer {
                    self.writer_signal.notify();
                }
                return;
            }
            drop(queue);
            if notify_writer {
                self.writer_signal.notify();
            }
            done += round.len();
            // Read after the operations were queued: each runs at a time after its submission.
            let now_ms = self.clock.now_ms();
            round.drain(..).for_each(|job| self.run_job(job, &mut shared, now_ms));
        }
    }

    /// Runs all queued commits.
    pub(crate) fn run_queued_commits(&self, shared: &mut Shared) {
        let commits = std::mem::take(&mut self.combiner.queue().commits);
        let now_ms = self.clock.now_ms();
        commits.into_iter().for_each(|commit| self.run_job(Job::Commit(commit), shared, now_ms));
    }

    /// Runs an operation before all queued ones: under the lock, which the caller keeps, or by the
    /// lock holder. `None` if the operation panicked. It blocks, so only the writer calls it.
    pub(crate) fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut Shared, u64) -> T + Send + 'static,
    ) -> Option<(T, Option<CombinerGuard<'_>>)> {
        let mut queue = self.combiner.queue();
        if queue.is_locked {
            let (answer, output) = oneshot::channel();
            queue.requests.push_front(Box::new(move |core, shared, now_ms| {
                // The writer waits for the answer.
                let _sent = answer.send(work(core, shared, now_ms));
            }));
            drop(queue);
            return output.blocking_recv().ok().map(|output| (output, None));
        }
        let mut shared = self.take_lock(queue);
        let now_ms = self.clock.now_ms();
        let output = catch_unwind(AssertUnwindSafe(|| work(self, &mut shared, now_ms))).ok();
        output.map(|output| (output, Some(shared)))
    }

    fn run_job(&self, job: Job, shared: &mut Shared, now_ms: u64) {
        // The caller of an operation that panics detects it: its channel is closed, or its commit is
        // answered with an error.
        drop(catch_unwind(AssertUnwindSafe(|| match job {
            Job::Request(request) => request(self, shared, now_ms),
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
    use crate::commit::refusal::Refusal;
    use crate::idle_store::open;
    use crate::state::machine::State;
    use crate::store::EmbeddedStore;

    fn touch(state: &mut State, output: u32) -> Result<u32, ProviderError> {
        state.touch();
        Ok(output)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime without drivers").block_on(future)
    }

    /// Polls once, without blocking.
    fn begin<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
        let mut future = Box::pin(future);
        let is_pending = block_on(std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        }));
        assert!(is_pending, "another caller holds the lock");
        future
    }

    fn delegate(
        store: &EmbeddedStore,
        count: usize,
    ) -> Vec<impl Future<Output = Result<u32, ProviderError>>> {
        (0..count).map(|_| store.core().commit("queued", |state, _| touch(state, 2))).collect()
    }

    /// A thread that runs an operation as the writer does, once the operation is queued.
    fn as_writer<T: Send + 'static>(
        store: &Arc<EmbeddedStore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<Option<T>> {
        let requests = store.core().combiner.queue().requests.len();
        let waits = Arc::clone(store);
        let writer = thread::spawn(move || Some(waits.core().run_first(move |_, _, _| work())?.0));
        while store.core().combiner.queue().requests.len() == requests {
            thread::yield_now();
        }
        writer
    }

    #[test]
    fn the_lock_holder_runs_the_queued_operations() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let refused = |state: &mut State, _| {
            state.touch();
            Err(ProviderError::unavailable("first", "it says so"))
        };
        let first = store.core().commit::<(), _>("first", refused);
        let second = store.core().commit("second", |state, _| touch(state, 2));
        assert_eq!(store.core().combiner.queue().commits.len(), 2, "callers delegate instead of blocking");
        drop(hold);
        assert_eq!(block_on(first), Err(ProviderError::unavailable("first", "it says so")));
        assert_eq!(block_on(second), Ok(2));
    }

    #[test]
    fn the_writer_runs_before_all_queued_commits() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().expect("no thread has panicked").push(name)
        };
        let (queued, writer) = (note("queued"), note("writer"));
        let queued = store.core().commit("queued", move |state, _| {
            queued();
            touch(state, 2)
        });
        let writer = as_writer(&store, writer);
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(()));
        assert_eq!(block_on(queued), Ok(2));
        assert_eq!(*order.lock().expect("no thread has panicked"), ["writer", "queued"]);
    }

    #[test]
    fn a_panic_of_the_lock_holder_does_not_block_others() {
        let (_directory, store) = open();
        let panics = Arc::clone(&store);
        let (send_panic, panic_now) = std::sync::mpsc::channel();
        let holder = thread::spawn(move || {
            let _hold = panics.core().lock();
            panic_now.recv().expect("the sender is alive");
            panic!("a defect");
        });
        while !store.core().combiner.queue().is_locked {
            thread::yield_now();
        }
        let queued = store.core().commit("queued", |state, _| touch(state, 2));
        let writer = as_writer(&store, || 7);
        send_panic.send(()).expect("the receiver is alive");
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(7));
        assert_eq!(block_on(queued), Ok(2));
        assert!(holder.join().is_err());
        assert_eq!(block_on(store.core().commit("later", |state, _| touch(state, 5))), Ok(5));
    }

    #[test]
    fn the_writer_detects_a_panic_of_its_operation() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let writer = as_writer::<()>(&store, || panic!("a defect"));
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), None);
        let alone = store.core().run_first::<()>(|_, _, _| panic!("a defect"));
        assert!(alone.is_none(), "no other caller holds the lock");
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
        while store.core().combiner.queue().is_locked {
            // The answer precedes the release of the lock.
            thread::yield_now();
        }
        let alone = catch_unwind(AssertUnwindSafe(|| {
            drop(store.core().commit::<(), _>("third", |_, _| panic!("a defect")));
        }));
        assert!(alone.is_err(), "the lock holder gets its own panic");
        assert_eq!(block_on(store.core().commit("fourth", |state, _| touch(state, 4))), Ok(4));
    }

    #[test]
    fn a_blocked_thread_gets_the_lock_before_all_queued_commits_have_run() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let queued = delegate(&store, 3 * MAX_COMMITS_PER_ROUND);
        let waits = Arc::clone(&store);
        let waiting = thread::spawn(move || {
            let _hold = waits.core().lock();
            waits.core().combiner.queue().commits.len()
        });
        while store.core().combiner.queue().blocked == 0 {
            thread::yield_now();
        }
        drop(hold);
        assert_eq!(waiting.join().expect("the thread has not panicked"), 2 * MAX_COMMITS_PER_ROUND);
        queued.into_iter().for_each(|queued| assert_eq!(block_on(queued), Ok(2)));
    }

    #[test]
    fn commits_that_the_writer_leaves_queued_run_under_the_next_lock() {
        let (_directory, store) = open();
        let mut hold = store.core().lock();
        // As if the writer were awake.
        let notify_writer_at = hold.notify_writer_at.take();
        let queued = delegate(&store, 3);
        let requested = as_writer(&store, || 7);
        hold.release();
        assert_eq!(
            requested.join().expect("the thread has not panicked"),
            Some(7),
            "requests run at every release"
        );
        assert_eq!(store.core().combiner.queue().commits.len(), 3);
        store.core().lock().notify_writer_at = notify_writer_at;
        queued.into_iter().for_each(|queued| assert_eq!(block_on(queued), Ok(2)));
    }

    #[test]
    fn a_caller_runs_a_bounded_number_of_commits_and_the_writer_the_rest() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let queued = delegate(&store, 2 * MAX_COMMITS_FOR_OTHERS);
        drop(hold);
        queued.into_iter().for_each(|queued| assert_eq!(block_on(queued), Ok(2)));
        assert!(store.core().combiner.queue().commits.is_empty());
    }

    #[test]
    fn the_lock_holder_answers_all_commits_after_the_writer_has_ended() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let queued = delegate(&store, 2 * MAX_COMMITS_FOR_OTHERS);
        let closes = Arc::clone(&store);
        let closing = thread::spawn(move || closes.close());
        while store.core().combiner.queue().blocked == 0 {
            thread::yield_now();
        }
        drop(hold);
        closing.join().expect("the thread has not panicked");
        for queued in queued {
            let answer = block_on(queued).map_err(|error| error.kind());
            assert!(matches!(answer, Ok(2) | Err(ErrorKind::Closed)), "{answer:?}");
        }
        let hold = store.core().lock();
        let late = delegate(&store, 2 * MAX_COMMITS_FOR_OTHERS);
        drop(hold);
        for late in late {
            assert_eq!(block_on(late).map_err(|error| error.kind()), Err(ErrorKind::Closed));
        }
    }

    #[test]
    fn queued_commits_are_refused_when_the_writer_has_failed() {
        let (_directory, store) = open();
        let mut hold = store.core().lock();
        let queued = delegate(&store, 2 * MAX_COMMITS_FOR_OTHERS);
        hold.refusal = Some(Refusal::failed("a test"));
        drop(hold);
        let late = store.core().commit("late", |state, _| touch(state, 3));
        assert_eq!(block_on(late).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        for queued in queued {
            assert_eq!(block_on(queued).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        }
        assert!(
            store.core().combiner.queue().commits.is_empty(),
            "no commit stays queued for a writer that has ended"
        );
    }

    #[test]
    fn a_full_disk_does_not_end_the_read_only_mode_of_a_failed_store() {
        let (_directory, store) = open();
        let failed = Refusal::failed("a test");
        store.core().refuse(failed.clone());
        store.core().refuse(Refusal::full(&std::io::Error::other("a test")));
        assert_eq!(store.core().lock().refusal, Some(failed));
    }

    /// Drops a future before and after its delegated operation has run, and calls `check` both times.
    fn dropped<F: Future + Send>(store: &EmbeddedStore, future: impl Fn() -> F, check: impl Fn()) {
        let hold = store.core().lock();
        let queued = begin(future());
        thread::scope(|scope| {
            scope.spawn(|| drop(queued));
            while store.core().combiner.queue().blocked == 0 {
                thread::yield_now();
            }
            drop(hold);
        });
        check();
        let hold = store.core().lock();
        let queued = begin(future());
        drop(hold);
        drop(queued);
        check();
    }

    #[test]
    fn a_watch_that_is_dropped_while_the_state_is_locked_is_removed() {
        let (_directory, store) = open();
        let watch = || store.watch_instance("i1", WatchUntil::Terminal, Duration::from_secs(9));
        dropped(&store, watch, || assert!(store.core().lock().state.watches.watched().is_empty()));
    }

    #[test]
    fn work_fetched_for_a_dropped_caller_is_abandoned() {
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
        assert_eq!(fetched[0].attempt_count, 1, "no worker has tried it");
    }

    #[test]
    fn a_fetch_that_is_dropped_while_the_state_is_locked_removes_its_waiter() {
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
