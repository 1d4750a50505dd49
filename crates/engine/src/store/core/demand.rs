//! Demand: what a waiting fetch waits for, over any state that has these queues.

use super::orchestrator_queue::OrchestratorQueue;
use super::waiters::Waiters;
use super::worker_queue::{WorkFilter, WorkerQueue};
use crate::store::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};

/// A state that fetches read.
pub trait Queues {
    /// Messages for instances.
    fn orchestrations(&self) -> &OrchestratorQueue;

    /// Activities.
    fn work(&self) -> &WorkerQueue;

    /// When the first record of a kind under an id prefix is due.
    fn next_due_ms(&self, kind: &str, id_prefix: &str, now_ms: u64) -> Option<u64>;
}

/// All waiting fetches, by sort of demand.
#[derive(Debug, Default)]
pub struct WaitQueues {
    turns: Waiters<TurnDemand>,
    work: Waiters<WorkDemand>,
    due: Waiters<DueDemand>,
}

impl WaitQueues {
    /// Wakes as many fetches as there is work for.
    pub fn wake(&mut self, queues: &impl Queues, now_ms: u64) {
        wake(&mut self.turns, queues, now_ms);
        wake(&mut self.work, queues, now_ms);
        wake(&mut self.due, queues, now_ms);
    }

    /// Whether no fetch waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.work.is_empty() && self.due.is_empty()
    }
}

fn wake<W: Demand>(waiters: &mut Waiters<W>, queues: &impl Queues, now_ms: u64) {
    waiters.wake(|demand| demand.ready_count(queues, now_ms), |demand| demand.next_change_ms(queues, now_ms));
}

/// The consequence of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchKind {
    /// It locks work, which needs a commit.
    Work,
    /// It only reads.
    Notification,
}

/// What a fetch waits for.
pub trait Demand: PartialEq + Sized {
    /// The consequence of such a fetch.
    const KIND: FetchKind;

    /// The waiting fetches of this sort.
    fn waiters(all: &mut WaitQueues) -> &mut Waiters<Self>;

    /// Number of fetches that would succeed now; zero exactly if none would.
    fn ready_count(&self, queues: &impl Queues, now_ms: u64) -> usize;

    /// The next time at which the clock alone may change that.
    fn next_change_ms(&self, queues: &impl Queues, now_ms: u64) -> Option<u64>;
}

/// Turns of instances that a runtime can replay.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnDemand {
    /// What the runtime can replay; `None` for everything.
    pub filter: Option<DispatcherCapabilityFilter>,
}

impl Demand for TurnDemand {
    const KIND: FetchKind = FetchKind::Work;

    fn waiters(all: &mut WaitQueues) -> &mut Waiters<Self> {
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
pub struct WorkDemand {
    /// The tags that the fetch takes.
    pub tags: TagFilter,
    /// The sessions that the fetch takes.
    pub session: Option<SessionFetchConfig>,
}

impl Demand for WorkDemand {
    const KIND: FetchKind = FetchKind::Work;

    fn waiters(all: &mut WaitQueues) -> &mut Waiters<Self> {
        &mut all.work
    }

    fn ready_count(&self, queues: &impl Queues, _now_ms: u64) -> usize {
        queues.work().ready_count(&WorkFilter { tags: &self.tags, session: self.session.as_ref() })
    }

    fn next_change_ms(&self, queues: &impl Queues, _now_ms: u64) -> Option<u64> {
        // The clock makes nothing visible to a node that takes no activities; without this, the node
        // would wake for every lock that ends.
        if self.tags == TagFilter::None { None } else { queues.work().next_change_ms() }
    }
}

/// Due records of a kind under an id prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct DueDemand {
    /// The kind.
    pub kind: String,
    /// The prefix of the ids.
    pub id_prefix: String,
}

impl Demand for DueDemand {
    const KIND: FetchKind = FetchKind::Notification;

    fn waiters(all: &mut WaitQueues) -> &mut Waiters<Self> {
        &mut all.due
    }

    fn ready_count(&self, queues: &impl Queues, now_ms: u64) -> usize {
        // Reading a due record does not remove it, so one is enough for all fetches.
        match queues.next_due_ms(&self.kind, &self.id_prefix, now_ms) {
            Some(due_at_ms) if due_at_ms <= now_ms => usize::MAX,
            _ => 0,
        }
    }

    fn next_change_ms(&self, queues: &impl Queues, now_ms: u64) -> Option<u64> {
        queues.next_due_ms(&self.kind, &self.id_prefix, now_ms)
    }
}
