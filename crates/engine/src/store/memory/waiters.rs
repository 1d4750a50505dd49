//! Fetches that wait for work: who is woken when, and who keeps the time.
//!
//! Waiters with equal wishes form a group. A waiter is *parked* or *woken*; a woken one has a signal on its way and
//! will look at the state again. After every change, [`Waiters::wake`] brings each group to this rest state:
//!
//! * as many waiters are woken as there is work for the group, oldest first, and no more;
//! * if nobody is woken and something will change with time, one parked waiter, the *timekeeper*, sleeps no longer
//!   than until then. The others sleep on; the timekeeper wakes them if the change is for them.
//!
//! A woken waiter that goes away without taking its work leaves through [`Waiters::leave`], after which the next
//! `wake` passes the signal on. So no signal is lost, whatever is dropped when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Notify;

use super::peek_lock::Sequence;

/// All waiters of one sort of work, by their wish `W`.
#[derive(Debug)]
pub struct Waiters<W> {
    ids: Sequence,
    groups: BTreeMap<u64, Group<W>>,
}

#[derive(Debug)]
struct Group<W> {
    wish: W,
    parked: BTreeMap<u64, Arc<Notify>>,
    woken: BTreeSet<u64>,
    timekeeper: Option<Timekeeper>,
}

#[derive(Debug)]
struct Timekeeper {
    waiter: u64,
    wakes_at_ms: u64,
}

/// One waiter's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    group: u64,
    waiter: u64,
}

impl<W> Default for Waiters<W> {
    fn default() -> Self {
        Waiters { ids: Sequence::default(), groups: BTreeMap::new() }
    }
}

impl<W: PartialEq> Waiters<W> {
    /// A seat among those with the same wish. The waiter counts as woken until it parks.
    pub fn join(&mut self, wish: W) -> Seat {
        let waiter = self.ids.take();
        let same = self.groups.iter().find(|(_, group)| group.wish == wish).map(|(&group, _)| group);
        let group = same.unwrap_or(waiter);
        let members = self.groups.entry(group).or_insert_with(|| Group {
            wish,
            parked: BTreeMap::new(),
            woken: BTreeSet::new(),
            timekeeper: None,
        });
        members.woken.insert(waiter);
        Seat { group, waiter }
    }

    /// Parks a waiter that found nothing. Returns the time to sleep to when the waiter is its group's timekeeper.
    pub fn park(
        &mut self,
        seat: Seat,
        signal: &Arc<Notify>,
        next_change_ms: impl FnOnce(&W) -> Option<u64>,
    ) -> Option<u64> {
        let group = self.groups.get_mut(&seat.group).expect("a seated waiter has a group");
        group.woken.remove(&seat.waiter);
        group.parked.insert(seat.waiter, Arc::clone(signal));
        if group.timekeeper.as_ref().is_none_or(|timekeeper| timekeeper.waiter == seat.waiter) {
            let next_change_ms = next_change_ms(&group.wish);
            group.timekeeper =
                next_change_ms.map(|wakes_at_ms| Timekeeper { waiter: seat.waiter, wakes_at_ms });
            return next_change_ms;
        }
        None
    }

    /// Gives up a seat. Follow with [`Self::wake`], so that a signal or the time is passed on.
    pub fn leave(&mut self, seat: Seat) {
        let Some(group) = self.groups.get_mut(&seat.group) else { return };
        group.woken.remove(&seat.waiter);
        group.parked.remove(&seat.waiter);
        group.timekeeper.take_if(|timekeeper| timekeeper.waiter == seat.waiter);
        if group.woken.is_empty() && group.parked.is_empty() {
            self.groups.remove(&seat.group);
        }
    }

    /// Brings every group to rest after a change. `ready` says for how many waiters with a wish there is work,
    /// `next_change_ms` when time alone may change that.
    pub fn wake(&mut self, ready: impl Fn(&W) -> usize, next_change_ms: impl Fn(&W) -> Option<u64>) {
        for group in self.groups.values_mut() {
            if group.parked.is_empty() {
                continue;
            }
            let wanted = ready(&group.wish);
            while group.woken.len() < wanted
                && let Some((&oldest, _)) = group.parked.first_key_value()
            {
                group.signal(oldest);
            }
            if group.woken.is_empty()
                && let Some(next_change_ms) = next_change_ms(&group.wish)
            {
                group.arm(next_change_ms);
            }
        }
    }
}

/// Lets everybody who is ready go first, once. Unlike a task that yields to its runtime, one that waits here can be run by any
/// thread that has nothing to do.
pub async fn others_first() {
    let mut have_gone = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut have_gone, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<W> Waiters<W> {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl<W> Group<W> {
    fn signal(&mut self, waiter: u64) {
        let signal = self.parked.remove(&waiter).expect("the caller found the waiter parked");
        self.timekeeper.take_if(|timekeeper| timekeeper.waiter == waiter);
        self.woken.insert(waiter);
        signal.notify_one();
    }

    /// Makes sure that somebody wakes up at `at_ms` at the latest: a woken waiter that finds nothing becomes timekeeper.
    fn arm(&mut self, at_ms: u64) {
        match &self.timekeeper {
            Some(timekeeper) if timekeeper.wakes_at_ms <= at_ms => {}
            Some(timekeeper) => self.signal(timekeeper.waiter),
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

    /// Seats for `count` waiters with one wish, all parked, with nothing to happen in time.
    fn parked(waiters: &mut Waiters<u8>, count: usize) -> Vec<(Seat, Arc<Notify>)> {
        let park_one = |_| {
            let (seat, signal) = (waiters.join(0), Arc::new(Notify::new()));
            waiters.park(seat, &signal, |_| None);
            (seat, signal)
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
    fn a_woken_waiter_that_leaves_passes_the_signal_on() {
        let mut waiters = Waiters::default();
        let seats = parked(&mut waiters, 2);
        waiters.wake(|_| 1, |_| None);
        waiters.leave(seats[0].0);
        waiters.wake(|_| 1, |_| None);
        assert!(waiters.groups[&seats[1].0.group].woken.contains(&seats[1].0.waiter));
    }

    #[test]
    fn one_waiter_keeps_the_time_and_is_called_for_an_earlier_one() {
        let mut waiters = Waiters::default();
        let seats = parked(&mut waiters, 2);
        waiters.wake(|_| 0, |_| Some(50));
        assert_eq!(woken(&waiters), 1, "somebody must take the time");
        assert_eq!(waiters.park(seats[0].0, &seats[0].1, |_| Some(50)), Some(50));
        for (next, expected) in [(50, 0), (60, 0), (40, 1)] {
            waiters.wake(|_| 0, |_| Some(next));
            assert_eq!(woken(&waiters), expected, "next change at {next}");
        }
        assert_eq!(waiters.park(seats[0].0, &seats[0].1, |_| Some(40)), Some(40));
        waiters.leave(seats[0].0);
        waiters.wake(|_| 0, |_| Some(40));
        assert_eq!(waiters.park(seats[1].0, &seats[1].1, |_| Some(40)), Some(40), "the time is handed over");
    }

    #[test]
    fn different_wishes_are_woken_for_different_work() {
        let mut waiters: Waiters<u8> = Waiters::default();
        for wish in [1, 2] {
            let seat = waiters.join(wish);
            waiters.park(seat, &Arc::new(Notify::new()), |_| None);
        }
        waiters.wake(|wish| usize::from(*wish == 2), |_| None);
        assert_eq!(woken(&waiters), 1);
        assert!(waiters.groups.values().all(|group| (group.wish == 2) == group.parked.is_empty()));
    }
}
