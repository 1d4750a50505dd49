//! What fetches wait for, over any state that has these queues.

use super::orchestrator_queue::OrchestratorQueue;
use super::waiters::Waiters;
use super::worker_queue::{WorkWanted, WorkerQueue};
use crate::store::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};

/// A state that fetches look at.
pub trait Queues {
    /// Messages for instances.
    fn orchestrations(&self) -> &OrchestratorQueue;

    /// Activities.
    fn work(&self) -> &WorkerQueue;

    /// When the first record of a kind under an id prefix is due.
    fn next_due_ms(&self, kind: &str, id_prefix: &str, now_ms: u64) -> Option<u64>;
}

/// Everybody who waits, by what they wait for.
#[derive(Debug, Default)]
pub struct AllWaiters {
    turns: Waiters<TurnWish>,
    work: Waiters<WorkWish>,
    due: Waiters<DueWish>,
}

impl AllWaiters {
    /// Wakes as many waiters as there is work for.
    pub fn wake(&mut self, queues: &impl Queues, now_ms: u64) {
        wake(&mut self.turns, queues, now_ms);
        wake(&mut self.work, queues, now_ms);
        wake(&mut self.due, queues, now_ms);
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.work.is_empty() && self.due.is_empty()
    }
}

fn wake<W: Wish>(waiters: &mut Waiters<W>, queues: &impl Queues, now_ms: u64) {
    waiters.wake(|wish| wish.ready_count(queues, now_ms), |wish| wish.next_change_ms(queues, now_ms));
}

/// What comes of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetches {
    /// Something to be done and committed.
    Work,
    /// Something to look at.
    News,
}

/// What a fetch waits for.
pub trait Wish: PartialEq + Sized {
    /// What comes of a fetch.
    const FETCHES: Fetches;

    /// Where fetches of this sort wait.
    fn waiters(all: &mut AllWaiters) -> &mut Waiters<Self>;

    /// For how many fetches there is something now; not zero exactly when a fetch would find something.
    fn ready_count(&self, queues: &impl Queues, now_ms: u64) -> usize;

    /// When time alone may change that.
    fn next_change_ms(&self, queues: &impl Queues, now_ms: u64) -> Option<u64>;
}

/// Turns of instances that a runtime can replay.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnWish {
    /// What the runtime can replay; `None` for everything.
    pub filter: Option<DispatcherCapabilityFilter>,
}

impl Wish for TurnWish {
    const FETCHES: Fetches = Fetches::Work;

    fn waiters(all: &mut AllWaiters) -> &mut Waiters<Self> {
        &mut all.turns
    }

    fn ready_count(&self, queues: &impl Queues, _now_ms: u64) -> usize {
        queues.orchestrations().ready_count(self.filter.as_ref())
    }

    fn next_change_ms(&self, queues: &impl Queues, _now_ms: u64) -> Option<u64> {
        queues.orchestrations().next_change_ms()
    }
}

/// Activities by tag and session.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkWish {
    /// Which tags are taken.
    pub tags: TagFilter,
    /// Which sessions are taken.
    pub session: Option<SessionFetchConfig>,
}

impl Wish for WorkWish {
    const FETCHES: Fetches = Fetches::Work;

    fn waiters(all: &mut AllWaiters) -> &mut Waiters<Self> {
        &mut all.work
    }

    fn ready_count(&self, queues: &impl Queues, _now_ms: u64) -> usize {
        queues.work().ready_count(&WorkWanted { tags: &self.tags, session: self.session.as_ref() })
    }

    fn next_change_ms(&self, queues: &impl Queues, _now_ms: u64) -> Option<u64> {
        // Time brings nothing to a node that takes no activities; without this it would wake for every lock.
        if self.tags == TagFilter::None { None } else { queues.work().next_change_ms() }
    }
}

/// Due records of a kind under an id prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct DueWish {
    /// The kind.
    pub kind: String,
    /// What the ids begin with.
    pub id_prefix: String,
}

impl Wish for DueWish {
    const FETCHES: Fetches = Fetches::News;

    fn waiters(all: &mut AllWaiters) -> &mut Waiters<Self> {
        &mut all.due
    }

    fn ready_count(&self, queues: &impl Queues, now_ms: u64) -> usize {
        // Reading a due record takes it from nobody, so one is enough for all.
        match queues.next_due_ms(&self.kind, &self.id_prefix, now_ms) {
            Some(due_at_ms) if due_at_ms <= now_ms => usize::MAX,
            _ => 0,
        }
    }

    fn next_change_ms(&self, queues: &impl Queues, now_ms: u64) -> Option<u64> {
        queues.next_due_ms(&self.kind, &self.id_prefix, now_ms)
    }
}
