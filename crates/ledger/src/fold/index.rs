//! Indexes of what controllers ask for: tasks by what they wait for, in the order of time. A
//! controller reads the beginning of one set, so its cost follows what is actionable and not the
//! size of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::tables::{RunRow, RunState, TaskRow, TaskState};

/// Milliseconds beyond a heartbeat time-out or a task time-out before an attempt counts as lost.
pub(crate) const LOST_GRACE_MS: i64 = 30_000;

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef {
    /// The run.
    pub run_id: Arc<str>,
    /// The task.
    pub task_key: Arc<str>,
}

/// A task and the time since which, or from which on, something can be done about it.
pub type Due = (i64, TaskRef);

/// Where a task stands in the indexes, with the time by which it is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere.
    #[default]
    None,
    /// May be dispatched since.
    Ready(i64),
    /// May be expanded since.
    Expansion(i64),
    /// May be dispatched again from.
    Retry(i64),
    /// Dispatched at.
    Dispatched(i64),
    /// Counts as lost from.
    Running(i64),
}

/// Where a task belongs.
pub(super) fn place(run: Option<&RunRow>, task: &TaskRow) -> Place {
    let Some(run) = run else { return Place::None };
    let is_open = matches!(run.state, RunState::Triggered | RunState::Running);
    let may_dispatch = is_open && !run.paused && !run.cancel_requested;
    match task.state {
        TaskState::Ready if !may_dispatch => Place::None,
        TaskState::Ready if task.for_each.is_some() => Place::Expansion(task.ready_at.unwrap_or(0)),
        TaskState::Ready => Place::Ready(task.ready_at.unwrap_or(0)),
        TaskState::RetryWait if may_dispatch => Place::Retry(task.retry_not_before.unwrap_or(0)),
        TaskState::Dispatched => Place::Dispatched(task.dispatched_at.unwrap_or(0)),
        TaskState::Running => lost_at(task).map_or(Place::None, Place::Running),
        _ => Place::None,
    }
}

/// When a running attempt counts as lost: a time after its last sign of life, or after its time is
/// up.
pub(crate) fn lost_at(task: &TaskRow) -> Option<i64> {
    let after = |since: Option<i64>, seconds: u32| {
        since.map(|since| since.saturating_add(i64::from(seconds) * 1_000 + LOST_GRACE_MS))
    };
    let silent = match task.heartbeat_timeout_sec {
        0 => None,
        seconds => after(task.last_heartbeat_at.or(task.started_at), seconds),
    };
    let timed_out = task.timeout_seconds.and_then(|seconds| after(task.started_at, seconds));
    silent.into_iter().chain(timed_out).min()
}

/// Tasks by what they wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    /// By pool.
    pub(super) ready: BTreeMap<Option<Arc<str>>, BTreeSet<Due>>,
    /// By pool.
    pub(super) retry: BTreeMap<Option<Arc<str>>, BTreeSet<Due>>,
    pub(super) expansions: BTreeSet<Due>,
    pub(super) dispatched: BTreeSet<Due>,
    pub(super) running: BTreeSet<Due>,
    /// Slots that are taken, by pool.
    pub(super) used: HashMap<Arc<str>, u32>,
}

impl Indexes {
    /// Moves a task from one place to another.
    pub(super) fn shift(&mut self, task: TaskRef, pool: Option<&Arc<str>>, from: Place, to: Place) {
        let task = self.remove(task, pool, from);
        let (set, at) = match to {
            Place::None => return,
            Place::Ready(at) => (self.ready.entry(pool.cloned()).or_default(), at),
            Place::Retry(at) => (self.retry.entry(pool.cloned()).or_default(), at),
            Place::Expansion(at) => (&mut self.expansions, at),
            Place::Dispatched(at) => (&mut self.dispatched, at),
            Place::Running(at) => (&mut self.running, at),
        };
        set.insert((at, task));
    }

    fn remove(&mut self, task: TaskRef, pool: Option<&Arc<str>>, place: Place) -> TaskRef {
        let remove_pooled = |sets: &mut BTreeMap<Option<Arc<str>>, BTreeSet<Due>>, due: &Due| {
            let pool = pool.cloned();
            if let Some(set) = sets.get_mut(&pool) {
                set.remove(due);
                if set.is_empty() {
                    sets.remove(&pool);
                }
            }
        };
        let (set, due) = match place {
            Place::None => return task,
            Place::Ready(at) | Place::Retry(at) => {
                let due = (at, task);
                let sets = if matches!(place, Place::Ready(_)) { &mut self.ready } else { &mut self.retry };
                remove_pooled(sets, &due);
                return due.1;
            }
            Place::Expansion(at) => (&mut self.expansions, (at, task)),
            Place::Dispatched(at) => (&mut self.dispatched, (at, task)),
            Place::Running(at) => (&mut self.running, (at, task)),
        };
        set.remove(&due);
        due.1
    }

    /// A task took a slot of its pool.
    pub(super) fn take_slot(&mut self, pool: &Arc<str>) {
        *self.used.entry(Arc::clone(pool)).or_default() += 1;
    }

    /// A task gave its slot back.
    pub(super) fn return_slot(&mut self, pool: &Arc<str>) {
        if let Some(used) = self.used.get_mut(pool) {
            *used -= 1;
            if *used == 0 {
                self.used.remove(pool);
            }
        }
    }
}
