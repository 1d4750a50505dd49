//! Waiting fetches: which are woken, and when.
//!
//! Waiters with equal demand form a group. A waiter is *parked* or *woken*; a woken one has a
//! notification on its way and will examine the state again. Within a group they follow the
//! leader-follower pattern, as in Java's `DelayQueue`: only the leader sleeps until a time. After
//! every change, [`Waiters::wake`] establishes this for each group:
//!
//! * as many waiters are woken as there is work for the group, oldest first, and no more;
//! * if none is woken and the passing of time will change something, one parked waiter, the
//!   *leader*, sleeps no longer than until then. The followers sleep until they are woken.
//!
//! A woken waiter that is dropped without taking its work leaves through [`Waiters::leave`], after
//! which the next `wake` passes the notification on. So no notification is lost, whichever future is
//! dropped at whichever time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Notify;

use super::peek_lock::Sequence;

/// All waiters of one sort of work, grouped by their demand `W`.
#[derive(Debug)]
pub struct Waiters<W> {
    ids: Sequence,
    groups: BTreeMap<u64, Group<W>>,
}

#[derive(Debug)]
struct Group<W> {
    demand: W,
    parked: BTreeMap<u64, Arc<Notify>>,
    woken: BTreeSet<u64>,
    leader: Option<Leader>,
}

#[derive(Debug)]
struct Leader {
    waiter: u64,
    wakes_at_ms: u64,
}

/// Identifies a waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaiterKey {
    group: u64,
    waiter: u64,
}

impl<W> Default for Waiters<W> {
    fn default() -> Self {
        Waiters { ids: Sequence::default(), groups: BTreeMap::new() }
    }
}

impl<W: PartialEq> Waiters<W> {
    /// Adds a waiter to the group with the same demand. It counts as woken until it parks.
    pub fn join(&mut self, demand: W) -> WaiterKey {
        let waiter = self.ids.take();
        let same = self.groups.iter().find(|(_, group)| group.demand == demand).map(|(&group, _)| group);
        let group = same.unwrap_or(waiter);
        let members = self.groups.entry(group).or_insert_with(|| Group {
            demand,
            parked: BTreeMap::new(),
            woken: BTreeSet::new(),
            leader: None,
        });
        members.woken.insert(waiter);
        WaiterKey { group, waiter }
    }

    /// Parks a waiter that found nothing. Returns the end of its sleep if it is the leader of its
    /// group.
    pub fn park(
        &mut self,
        key: WaiterKey,
        signal: &Arc<Notify>,
        next_change_ms: impl FnOnce(&W) -> Option<u64>,
    ) -> Option<u64> {
        let group = self.groups.get_mut(&key.group).expect("a waiter has a group until it leaves");
        group.woken.remove(&key.waiter);
        group.parked.insert(key.waiter, Arc::clone(signal));
        if group.leader.as_ref().is_none_or(|leader| leader.waiter == key.waiter) {
            let next_change_ms = next_change_ms(&group.demand);
            group.leader = next_change_ms.map(|wakes_at_ms| Leader { waiter: key.waiter, wakes_at_ms });
            return next_change_ms;
        }
        None
    }

    /// Removes a waiter. Follow with [`Self::wake`], so that a notification or the leadership is
    /// passed on.
    pub fn leave(&mut self, key: WaiterKey) {
        let Some(group) = self.groups.get_mut(&key.group) else { return };
        group.woken.remove(&key.waiter);
        group.parked.remove(&key.waiter);
        group.leader.take_if(|leader| leader.waiter == key.waiter);
        if group.woken.is_empty() && group.parked.is_empty() {
            self.groups.remove(&key.group);
        }
    }

    /// Wakes waiters after a change. `ready` is the number of waiters with a demand that would
    /// succeed, `next_change_ms` the time at which the clock alone may change that.
    pub fn wake(&mut self, ready: impl Fn(&W) -> usize, next_change_ms: impl Fn(&W) -> Option<u64>) {
        for group in self.groups.values_mut() {
            if group.parked.is_empty() {
                continue;
            }
            let wanted = ready(&group.demand);
            while group.woken.len() < wanted
                && let Some((&oldest, _)) = group.parked.first_key_value()
            {
                group.signal(oldest);
            }
            if group.woken.is_empty()
                && let Some(next_change_ms) = next_change_ms(&group.demand)
            {
                group.arm(next_change_ms);
            }
        }
    }
}

/// Reschedules the task once, behind all tasks that are ready. Unlike a task that yields to its
/// runtime, a rescheduled one can be stolen by an idle thread.
pub async fn reschedule_once() {
    let mut is_rescheduled = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_rescheduled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<W> Waiters<W> {
    /// Whether there is no waiter.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl<W> Group<W> {
    fn signal(&mut self, waiter: u64) {
        let signal = self.parked.remove(&waiter).expect("the caller found the waiter parked");
        self.leader.take_if(|leader| leader.waiter == waiter);
        self.woken.insert(waiter);
        signal.notify_one();
    }

    /// Ensures that a waiter wakes at `at_ms` at the latest: a woken one that finds nothing becomes
    /// the leader.
    fn arm(&mut self, at_ms: u64) {
        match &self.leader {
            Some(leader) if leader.wakes_at_ms <= at_ms => {}
            Some(leader) => self.signal(leader.waiter),
            None => {
                if let Some((&oldest, _)) = self.parked.first_key_value() {
                    self.signal(oldest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` parked waiters with equal demand, without a leader.
    fn parked(waiters: &mut Waiters<u8>, count: usize) -> Vec<(WaiterKey, Arc<Notify>)> {
        let park_one = |_| {
            let (key, signal) = (waiters.join(0), Arc::new(Notify::new()));
            waiters.park(key, &signal, |_| None);
            (key, signal)
        };
        (0..count).map(park_one).collect()
    }

    fn woken(waiters: &Waiters<u8>) -> usize {
        waiters.groups.values().map(|group| group.woken.len()).sum()
    }

    #[test]
    fn as_many_are_woken_as_there_is_work() {
        let mut waiters = Waiters::default();
        parked(&mut waiters, 3);
        for (ready, expected) in [(0, 0), (1, 1), (1, 1), (2, 2), (1, 2), (9, 3)] {
            waiters.wake(|_| ready, |_| None);
            assert_eq!(woken(&waiters), expected, "{ready} ready");
        }
    }

    #[test]
    fn a_woken_waiter_that_leaves_passes_the_notification_on() {
        let mut waiters = Waiters::default();
        let keys = parked(&mut waiters, 2);
        waiters.wake(|_| 1, |_| None);
        waiters.leave(keys[0].0);
        waiters.wake(|_| 1, |_| None);
        assert!(waiters.groups[&keys[1].0.group].woken.contains(&keys[1].0.waiter));
    }

    #[test]
    fn one_waiter_leads_and_is_woken_for_an_earlier_time() {
        let mut waiters = Waiters::default();
        let keys = parked(&mut waiters, 2);
        waiters.wake(|_| 0, |_| Some(50));
        assert_eq!(woken(&waiters), 1, "one must become the leader");
        assert_eq!(waiters.park(keys[0].0, &keys[0].1, |_| Some(50)), Some(50));
        for (next, expected) in [(50, 0), (60, 0), (40, 1)] {
            waiters.wake(|_| 0, |_| Some(next));
            assert_eq!(woken(&waiters), expected, "next change at {next}");
        }
        assert_eq!(waiters.park(keys[0].0, &keys[0].1, |_| Some(40)), Some(40));
        waiters.leave(keys[0].0);
        waiters.wake(|_| 0, |_| Some(40));
        assert_eq!(
            waiters.park(keys[1].0, &keys[1].1, |_| Some(40)),
            Some(40),
            "the leadership is passed on"
        );
    }

    #[test]
    fn waiters_with_different_demand_are_woken_for_different_work() {
        let mut waiters: Waiters<u8> = Waiters::default();
        for demand in [1, 2] {
            let key = waiters.join(demand);
            waiters.park(key, &Arc::new(Notify::new()), |_| None);
        }
        waiters.wake(|demand| usize::from(*demand == 2), |_| None);
        assert_eq!(woken(&waiters), 1);
        assert!(waiters.groups.values().all(|group| (group.demand == 2) == group.parked.is_empty()));
    }
}
