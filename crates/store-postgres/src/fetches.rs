//! Fetches that wait in one queue, in groups that want the same, and the slots that each exchange may fill.
//!
//! | a group of fetches | becomes | when |
//! |---|---|---|
//! | at rest | looking for new work | an item of the next exchange brings work |
//! | at rest, looking for new work | looking at the queue | a notification, the time, the slow poll, an impatient fetch; or the exchange that brought work was planned without this group |
//! | looking | at rest | it is part of an exchange, which answers as many of its fetches as there is work for |
//!
//! An exchange reserves slots of the group that it fetches for: as many as its items can fill when the queue is known to
//! be empty, else its share of those that are free. Other exchanges in flight leave these slots alone, so together they
//! lock at most what the waiting fetches have room for.
//!
//! A group without waiting fetches is retained for a while, because it has the state of the queue: a fetch that follows
//! right after the last piece of work needs no exchange. Work that arrives between two fetches of the same dispatcher
//! stays with the group for [`KEEP`].

use std::collections::VecDeque;
use std::time::Duration;

use segno::store::{LockToken, LockedWorkItem, ProviderError};
use tokio::sync::oneshot;

use crate::answer::LockedTurn;

/// Most turns or activities that one exchange locks.
const MAX_FETCH: usize = 512;

/// Most groups that are kept without a waiting fetch.
const MAX_IDLE_GROUPS: usize = 16;

/// How long locked work waits for the next fetch of a dispatcher that has just been answered by another exchange.
pub(crate) const KEEP: Duration = Duration::from_millis(50);

/// What a fetch of turns wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnWish {
    pub(crate) lock_ms: i64,
    /// Lowest and highest pins of ranges; `None` takes all.
    pub(crate) pins: Option<(Vec<String>, Vec<String>)>,
}

/// What a fetch of activities wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkWish {
    pub(crate) lock_ms: i64,
    /// Lanes; `None` takes all.
    pub(crate) lanes: Option<Vec<String>>,
    pub(crate) session: Option<SessionWish>,
}

/// How a fetch treats sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionWish {
    pub(crate) owner: String,
    pub(crate) lock_ms: i64,
    pub(crate) claims: bool,
}

/// Something locked that can be given back.
pub(crate) trait Locked {
    fn lock_token(&self) -> LockToken;
}

impl Locked for LockedTurn {
    fn lock_token(&self) -> LockToken {
        self.lock_token
    }
}

impl Locked for LockedWorkItem {
    fn lock_token(&self) -> LockToken {
        self.lock_token
    }
}

/// Fetches that wait in one queue, by what they want.
#[derive(Debug)]
pub(crate) struct Fetches<W, T> {
    groups: VecDeque<Group<W, T>>,
    last_waiter: u64,
}

#[derive(Debug)]
struct Group<W, T> {
    wish: W,
    look: Look,
    /// Local time at which to look again.
    next_look_ms: Option<u64>,
    waiters: VecDeque<Waiter<T>>,
    /// How many items the exchanges in flight may lock for this group.
    reserved: usize,
    /// Whether the last fetch that left was answered, so that the next one follows.
    is_followed: bool,
    /// Locked work that the next fetch takes.
    kept: VecDeque<T>,
    /// Steady time since which it waits.
    kept_since_ns: u64,
}

/// What there may be to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    /// Nothing.
    Rest,
    /// What the next exchange brings itself.
    New,
    /// Anything that is in the queue.
    Queue,
}

#[derive(Debug)]
struct Waiter<T> {
    id: u64,
    max_items: usize,
    is_patient: bool,
    answer: oneshot::Sender<Result<Vec<T>, ProviderError>>,
}

/// What an exchange fetches for a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchPlan<W> {
    pub(crate) wish: W,
    pub(crate) max_items: usize,
    /// The last waiter that this exchange is made for.
    last_waiter: u64,
}

/// What an exchange fetched.
#[derive(Debug)]
pub(crate) struct Fetched<T> {
    pub(crate) items: Vec<T>,
    /// Local time at which time alone may bring more.
    pub(crate) next_look_ms: Option<u64>,
    /// Steady time of the answer.
    pub(crate) at_ns: u64,
}

impl<W, T> Group<W, T> {
    fn new(wish: W) -> Self {
        Group {
            wish,
            look: Look::Queue,
            next_look_ms: None,
            waiters: VecDeque::new(),
            reserved: 0,
            is_followed: false,
            kept: VecDeque::new(),
            kept_since_ns: 0,
        }
    }

    /// How many items the waiting fetches take that no exchange in flight may bring.
    fn free(&self) -> usize {
        let wanted: usize = self.waiters.iter().map(|waiter| waiter.max_items).sum();
        wanted.saturating_sub(self.reserved).min(MAX_FETCH)
    }

    fn is_due(&self, local_now_ms: u64) -> bool {
        self.next_look_ms.is_some_and(|at_ms| at_ms <= local_now_ms)
    }

    fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.reserved == 0 && self.kept.is_empty()
    }
}

impl<W, T> Default for Fetches<W, T> {
    fn default() -> Self {
        Fetches { groups: VecDeque::new(), last_waiter: 0 }
    }
}

impl<W: Clone + PartialEq, T: Locked> Fetches<W, T> {
    /// Adds a fetch. An impatient one is answered by the next exchange, with nothing if there is nothing.
    pub(crate) fn join(
        &mut self,
        wish: W,
        max_items: usize,
        is_patient: bool,
    ) -> (u64, oneshot::Receiver<Result<Vec<T>, ProviderError>>) {
        let (answer, receiver) = oneshot::channel();
        self.last_waiter += 1;
        let id = self.last_waiter;
        let place = self.groups.iter().position(|group| group.wish == wish).unwrap_or_else(|| {
            self.groups.push_back(Group::new(wish));
            self.groups.len() - 1
        });
        let group = &mut self.groups[place];
        if group.kept.is_empty() {
            if !is_patient {
                group.look = Look::Queue;
            }
            group.waiters.push_back(Waiter { id, max_items, is_patient, answer });
        } else {
            let share = group.kept.drain(..max_items.min(group.kept.len())).collect();
            if let Err(Ok(returned)) = answer.send(Ok(share)) {
                returned.into_iter().rev().for_each(|item| group.kept.push_front(item));
            }
        }
        (id, receiver)
    }

    /// Takes a fetch out, answered or not.
    pub(crate) fn leave(&mut self, id: u64) {
        for group in &mut self.groups {
            let before = group.waiters.len();
            group.waiters.retain(|waiter| waiter.id != id);
            if group.waiters.len() < before {
                group.is_followed = false;
            }
        }
        self.forget_idle();
    }

    /// Forgets groups beyond those that are kept, the longest untouched first.
    fn forget_idle(&mut self) {
        let mut idle = self.groups.iter().filter(|group| group.is_idle()).count();
        self.groups.retain(|group| {
            let forget = group.is_idle() && idle > MAX_IDLE_GROUPS;
            idle -= usize::from(forget);
            !forget
        });
    }

    /// There may be work in the queue for every group.
    pub(crate) fn look(&mut self) {
        for group in &mut self.groups {
            group.look = Look::Queue;
        }
    }

    /// What the next exchange fetches, whose items bring at most `brings` pieces of work, beside so many exchanges in
    /// flight; the group is at rest then until something else arrives.
    pub(crate) fn plan(&mut self, local_now_ms: u64, brings: usize, beside: usize) -> Option<FetchPlan<W>> {
        if brings > 0 {
            self.groups.iter_mut().for_each(|group| group.look = group.look.max(Look::New));
        }
        let wants = |group: &Group<W, T>| {
            group.free() > 0 && (group.look != Look::Rest || group.is_due(local_now_ms))
        };
        let planned = self.groups.iter().position(wants).and_then(|place| self.groups.remove(place));
        // What this exchange brings is in the queue for the groups that it does not fetch for.
        for group in self.groups.iter_mut().filter(|group| group.look == Look::New) {
            group.look = Look::Queue;
        }
        let mut group = planned?;
        let all = group.look == Look::Queue || group.is_due(local_now_ms);
        // Work of an exchange that finds no free slot goes through the queue. If a look at the queue took all slots, the
        // work of the next exchange would be there for the next look, and so on.
        // One more than the items can bring: if it is found, the queue was not empty.
        let max_items = if all { group.free().div_ceil(beside + 1) } else { group.free().min(brings + 1) };
        group.look = Look::Rest;
        group.next_look_ms = None;
        group.reserved += max_items;
        let plan = FetchPlan { wish: group.wish.clone(), max_items, last_waiter: self.last_waiter };
        // The group that had its turn goes to the end of the line.
        self.groups.push_back(group);
        Some(plan)
    }

    /// Hands out what was fetched, oldest waiter first. Returns what no fetch takes any more.
    pub(crate) fn hand_out(&mut self, plan: &FetchPlan<W>, fetched: Fetched<T>) -> Vec<T> {
        let Some(group) = self.groups.iter_mut().find(|group| group.wish == plan.wish) else {
            return fetched.items;
        };
        group.reserved = group.reserved.saturating_sub(plan.max_items);
        let was_full = fetched.items.len() >= plan.max_items;
        let mut left = VecDeque::from(fetched.items);
        let waiters = std::mem::take(&mut group.waiters);
        for waiter in waiters {
            if left.is_empty() {
                if waiter.is_patient || waiter.id > plan.last_waiter {
                    group.waiters.push_back(waiter);
                } else {
                    let _gone = waiter.answer.send(Ok(Vec::new()));
                }
                continue;
            }
            let share: Vec<T> = left.drain(..waiter.max_items.min(left.len())).collect();
            match waiter.answer.send(Ok(share)) {
                Ok(()) => group.is_followed = true,
                Err(Ok(returned)) => {
                    group.is_followed = false;
                    returned.into_iter().rev().for_each(|item| left.push_front(item));
                }
                Err(Err(_)) => {}
            }
        }
        // Another exchange in flight may know of an earlier time.
        group.next_look_ms = [group.next_look_ms, fetched.next_look_ms].into_iter().flatten().min();
        if group.is_followed && !left.is_empty() {
            group.kept_since_ns = if group.kept.is_empty() { fetched.at_ns } else { group.kept_since_ns };
            group.kept.append(&mut left);
        }
        // What no fetch took goes back and can be fetched again.
        if was_full || !left.is_empty() {
            group.look = Look::Queue;
        }
        self.forget_idle();
        left.into()
    }

    /// Takes out the locked work that no fetch has taken for [`KEEP`].
    pub(crate) fn take_stale(&mut self, now_ns: u64) -> Vec<T> {
        let keep_ns = u64::try_from(KEEP.as_nanos()).unwrap_or(u64::MAX);
        let mut stale = Vec::new();
        for group in self.groups.iter_mut().filter(|group| !group.kept.is_empty()) {
            if now_ns.saturating_sub(group.kept_since_ns) >= keep_ns {
                stale.extend(group.kept.drain(..));
                group.is_followed = false;
                group.look = Look::Queue;
            }
        }
        stale
    }

    /// Whether there is locked work that waits for the next fetch.
    pub(crate) fn keeps_work(&self) -> bool {
        self.groups.iter().any(|group| !group.kept.is_empty())
    }

    /// Ends a plan that was not carried out, and fails all fetches.
    pub(crate) fn fail(&mut self, plan: Option<&FetchPlan<W>>, error: &ProviderError) {
        for group in &mut self.groups {
            if let Some(plan) = plan.filter(|plan| plan.wish == group.wish) {
                group.reserved = group.reserved.saturating_sub(plan.max_items);
            }
            // A fetch that follows looks anew: what the group knew may be long ago.
            group.look = Look::Queue;
            group.next_look_ms = None;
            group.is_followed = false;
            for waiter in group.waiters.drain(..) {
                let _gone = waiter.answer.send(Err(error.clone()));
            }
        }
        self.forget_idle();
    }

    pub(crate) fn next_look_ms(&self) -> Option<u64> {
        let waited_for = self.groups.iter().filter(|group| !group.waiters.is_empty());
        waited_for.filter_map(|group| group.next_look_ms).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Piece(u64);

    impl Locked for Piece {
        fn lock_token(&self) -> LockToken {
            LockToken(self.0)
        }
    }

    type Queue = Fetches<&'static str, Piece>;
    type Answer = oneshot::Receiver<Result<Vec<Piece>, ProviderError>>;

    fn pieces(numbers: &[u64]) -> Fetched<Piece> {
        Fetched { items: numbers.iter().copied().map(Piece).collect(), next_look_ms: None, at_ns: 0 }
    }

    fn taken(answer: &mut Answer) -> Vec<u64> {
        let items = answer.try_recv().expect("an answer").expect("work");
        items.iter().map(|piece| piece.0).collect()
    }

    /// A queue with one patient fetch of ten that has found it empty.
    fn resting() -> (Queue, Answer) {
        let mut queue = Queue::default();
        let (_, answer) = queue.join("a", 10, true);
        let first = queue.plan(0, 0, 0).expect("the first fetch looks");
        assert_eq!(first.max_items, 10);
        assert!(queue.hand_out(&first, pieces(&[])).is_empty());
        assert_eq!(queue.plan(0, 0, 0), None, "it is at rest");
        (queue, answer)
    }

    #[test]
    fn exchanges_in_flight_share_the_slots_of_a_fetch() {
        let (mut queue, mut answer) = resting();
        let one = queue.plan(0, 3, 0).expect("for what it brings");
        let other = queue.plan(0, 20, 0).expect("for the rest of the slots");
        assert_eq!((one.max_items, other.max_items), (4, 6));
        assert_eq!(queue.plan(0, 1, 0), None, "no slot is free");
        assert!(queue.hand_out(&one, pieces(&[1, 2, 3])).is_empty());
        assert_eq!(taken(&mut answer), [1, 2, 3]);
        let (_, mut next) = queue.join("a", 7, true);
        assert!(queue.hand_out(&other, pieces(&[4, 5])).is_empty());
        assert_eq!(taken(&mut next), [4, 5]);
    }

    #[test]
    fn an_exchange_fetches_one_more_than_it_brings_and_looks_again_if_it_gets_it() {
        let (mut queue, mut answer) = resting();
        let plan = queue.plan(0, 2, 0).expect("for what it brings");
        assert_eq!(plan.max_items, 3);
        queue.hand_out(&plan, pieces(&[1, 2, 3]));
        assert_eq!(taken(&mut answer).len(), 3);
        let (_, _answer) = queue.join("a", 10, true);
        assert_eq!(queue.plan(0, 0, 0).map(|plan| plan.max_items), Some(10), "the queue is not empty");
    }

    #[test]
    fn work_that_a_group_could_not_be_planned_for_is_looked_for_in_the_queue() {
        let (mut queue, _answer) = resting();
        let (_, _other) = queue.join("b", 5, true);
        let first = queue.plan(0, 0, 0).expect("a new group looks");
        queue.hand_out(&first, pieces(&[]));
        assert_eq!(queue.plan(0, 0, 0), None, "both are at rest");
        let both = queue.plan(0, 2, 0).expect("one group");
        let next = queue.plan(0, 0, 0).expect("the other group");
        assert_ne!(both.wish, next.wish);
        assert_eq!(next.max_items, if next.wish == "a" { 10 } else { 5 });
    }

    #[test]
    fn work_between_two_fetches_waits_for_the_second_and_not_for_long() {
        let (mut queue, mut answer) = resting();
        let one = queue.plan(0, 1, 0).expect("the first exchange");
        let other = queue.plan(0, 2, 0).expect("the second exchange");
        queue.hand_out(&one, pieces(&[1]));
        assert_eq!(taken(&mut answer), [1]);
        assert!(queue.hand_out(&other, pieces(&[2, 3])).is_empty() && queue.keeps_work());
        assert!(queue.take_stale(1).is_empty());
        let (_, mut next) = queue.join("a", 1, true);
        assert_eq!(taken(&mut next), [2]);
        let after_ns = u64::try_from(KEEP.as_nanos()).expect("it fits");
        assert_eq!(queue.take_stale(after_ns), [Piece(3)]);
        assert!(!queue.keeps_work());
        let (_, _answer) = queue.join("a", 10, true);
        assert_eq!(queue.plan(0, 0, 0).map(|plan| plan.max_items), Some(10), "it is in the queue again");
    }

    #[test]
    fn work_for_a_fetch_that_was_given_up_goes_back_at_once() {
        let mut queue = Queue::default();
        let (id, answer) = queue.join("a", 10, true);
        let plan = queue.plan(0, 0, 0).expect("it looks");
        queue.leave(id);
        drop(answer);
        assert_eq!(queue.hand_out(&plan, pieces(&[1])), [Piece(1)]);
    }

    #[test]
    fn the_earliest_time_of_all_exchanges_in_flight_counts() {
        let (mut queue, _answer) = resting();
        let (one, other) = (queue.plan(0, 1, 0).expect("one"), queue.plan(0, 1, 0).expect("another"));
        queue.hand_out(&other, Fetched { next_look_ms: Some(5), ..pieces(&[]) });
        queue.hand_out(&one, Fetched { next_look_ms: Some(9), ..pieces(&[]) });
        assert_eq!(queue.next_look_ms(), Some(5));
        assert_eq!(queue.plan(4, 0, 0), None);
        assert!(queue.plan(5, 0, 0).is_some());
    }

    #[test]
    fn an_impatient_fetch_is_answered_by_the_exchange_that_looked_for_it() {
        let (mut queue, mut patient) = resting();
        let before = queue.plan(0, 1, 0).expect("an exchange in flight");
        let (_, mut impatient) = queue.join("a", 1, false);
        let looking = queue.plan(0, 0, 0).expect("the exchange of the impatient fetch");
        queue.hand_out(&before, pieces(&[]));
        assert!(impatient.try_recv().is_err(), "that exchange did not look for it");
        queue.hand_out(&looking, pieces(&[]));
        assert!(taken(&mut impatient).is_empty());
        assert!(patient.try_recv().is_err());
    }

    #[test]
    fn a_look_at_the_queue_leaves_slots_for_exchanges_in_flight() {
        let mut queue = Queue::default();
        let (_, _answer) = queue.join("a", 10, true);
        assert_eq!(queue.plan(0, 0, 1).map(|plan| plan.max_items), Some(5));
        assert_eq!(
            queue.plan(0, 4, 1).map(|plan| plan.max_items),
            Some(5),
            "for what it brings, and one more"
        );
    }

    #[test]
    fn slots_are_free_again_after_a_failure() {
        let (mut queue, mut answer) = resting();
        let plan = queue.plan(0, 20, 0).expect("all slots");
        queue.fail(Some(&plan), &ProviderError::unavailable("fetch", "away"));
        assert!(answer.try_recv().expect("an answer").is_err());
        let (_, _answer) = queue.join("a", 10, true);
        assert_eq!(queue.plan(0, 0, 0).map(|plan| plan.max_items), Some(10));
    }
}
