//! Who waits inside the store, and for what: items to be committed, fetches, watches.
//!
//! | a group of fetches | becomes | when |
//! |---|---|---|
//! | at rest | looking | something may have come: a commit, a notification, the time, the slow poll, an impatient fetch |
//! | looking | at rest | it was part of an exchange, which answered as many of its fetches as there was work for |
//!
//! A group that has nobody waiting is kept for a while, because it knows whether there is something to look for: a fetch
//! that comes back right after the last piece of work does not ask again.
//!
//! **Invariant.** No lock is held across an await, and nothing in here talks to the database.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use segno::store::core::watch::Watches;
use segno::store::{ExecutionStatus, LockToken, LockedWorkItem, ProviderError, WatchUntil};
use tokio::sync::oneshot;

use crate::answer::LockedTurn;
use crate::item::{Item, Key};
use crate::ticket::Ticket;

/// Most items in one exchange.
const MAX_ITEMS: usize = 1_024;

/// Most bytes of bodies in one exchange, unless a single item has more.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Most turns or activities that one exchange locks.
const MAX_FETCH: usize = 512;

/// Most groups that are kept without anybody waiting.
const MAX_IDLE_GROUPS: usize = 16;

/// Most instances that one exchange looks at for watches.
const MAX_CHECKS: usize = 512;

/// Most locks that are remembered with what they are on; the oldest are forgotten first.
const MAX_REMEMBERED_LOCKS: usize = 100_000;

/// Where the outcome of an item goes: versions of its records.
pub(crate) type ItemAnswer = oneshot::Sender<Result<Vec<u64>, ProviderError>>;

/// An item that waits to be committed, and who waits for it; nobody for locks that are given back unasked.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) item: Item,
    /// What it holds by its lock, as far as this process knows.
    pub(crate) held: Option<Held>,
    pub(crate) answer: Option<ItemAnswer>,
    /// Whether it was sent, or its caller has taken it back.
    pub(crate) ticket: Ticket,
}

/// What a lock of this process is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Instance(String),
    /// The row of an activity.
    Activity(i64),
}

impl Held {
    pub(crate) fn instance(&self) -> Option<&str> {
        match self {
            Held::Instance(instance) => Some(instance),
            Held::Activity(_) => None,
        }
    }

    pub(crate) fn activity(&self) -> Option<i64> {
        match self {
            Held::Instance(_) => None,
            Held::Activity(row) => Some(*row),
        }
    }
}

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
    is_looking: bool,
    /// Local time at which to look again.
    next_look_ms: Option<u64>,
    waiters: VecDeque<Waiter<T>>,
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
        let waiter = Waiter { id, max_items, is_patient, answer };
        match self.groups.iter_mut().find(|group| group.wish == wish) {
            Some(group) => {
                group.is_looking |= !is_patient;
                group.waiters.push_back(waiter);
            }
            None => self.groups.push_back(Group {
                wish,
                is_looking: true,
                next_look_ms: None,
                waiters: VecDeque::from([waiter]),
            }),
        }
        (id, receiver)
    }

    /// Takes a fetch out, answered or not.
    pub(crate) fn leave(&mut self, id: u64) {
        for group in &mut self.groups {
            group.waiters.retain(|waiter| waiter.id != id);
        }
        self.forget_idle();
    }

    /// Forgets groups beyond those that are kept, the longest untouched first.
    fn forget_idle(&mut self) {
        let mut idle = self.groups.iter().filter(|group| group.waiters.is_empty()).count();
        self.groups.retain(|group| {
            let forget = group.waiters.is_empty() && idle > MAX_IDLE_GROUPS;
            idle -= usize::from(forget);
            !forget
        });
    }

    /// Something may have come for everybody.
    pub(crate) fn look(&mut self) {
        for group in &mut self.groups {
            group.is_looking = true;
        }
    }

    /// The next group that looks; it is at rest then until something else comes.
    fn plan(&mut self, local_now_ms: u64) -> Option<FetchPlan<W>> {
        let due = |group: &Group<W, T>| group.next_look_ms.is_some_and(|at_ms| at_ms <= local_now_ms);
        let wants = |group: &Group<W, T>| !group.waiters.is_empty() && (group.is_looking || due(group));
        let place = self.groups.iter().position(wants)?;
        // Whoever had its turn goes to the end of the line.
        let mut group = self.groups.remove(place)?;
        group.is_looking = false;
        group.next_look_ms = None;
        let wanted: usize = group.waiters.iter().map(|waiter| waiter.max_items).sum();
        let plan = FetchPlan {
            wish: group.wish.clone(),
            max_items: wanted.min(MAX_FETCH),
            last_waiter: self.last_waiter,
        };
        self.groups.push_back(group);
        Some(plan)
    }

    /// Hands out what was fetched, oldest waiter first. Returns what nobody wants any more.
    fn hand_out(&mut self, plan: &FetchPlan<W>, found: Vec<T>, next_look_ms: Option<u64>) -> Vec<T> {
        let Some(group) = self.groups.iter_mut().find(|group| group.wish == plan.wish) else { return found };
        let was_full = found.len() >= plan.max_items;
        let mut left = VecDeque::from(found);
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
            if let Err(Ok(returned)) = waiter.answer.send(Ok(share)) {
                returned.into_iter().rev().for_each(|item| left.push_front(item));
            }
        }
        group.next_look_ms = next_look_ms;
        // What nobody took goes back and can be fetched again.
        group.is_looking |= was_full || !left.is_empty();
        self.forget_idle();
        left.into()
    }

    /// Tells everybody that it cannot be done now.
    pub(crate) fn fail(&mut self, error: &ProviderError) {
        // Whoever comes back looks anew: what the groups knew may be long ago.
        for waiter in self.groups.drain(..).flat_map(|group| group.waiters) {
            let _gone = waiter.answer.send(Err(error.clone()));
        }
    }

    fn next_look_ms(&self) -> Option<u64> {
        let waited_for = self.groups.iter().filter(|group| !group.waiters.is_empty());
        waited_for.filter_map(|group| group.next_look_ms).min()
    }

    fn is_looking(&self) -> bool {
        self.groups.iter().any(|group| group.is_looking && !group.waiters.is_empty())
    }
}

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Bounded by the calls under way.
    items: VecDeque<Pending>,
    pub(crate) turns: Fetches<TurnWish, LockedTurn>,
    pub(crate) work: Fetches<WorkWish, LockedWorkItem>,
    pub(crate) watches: Watches,
    watched: BTreeMap<String, Watched>,
    /// Watched instances to look at.
    checks: BTreeSet<String>,
    /// What the locks of this process are on.
    held: BTreeMap<u64, Held>,
    pub(crate) is_closed: bool,
}

/// How many watch an instance, and how many of them for more than its end.
#[derive(Debug, Default)]
struct Watched {
    watches: usize,
    of_changes: usize,
}

/// What to do in one exchange.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) items: Vec<Pending>,
    pub(crate) turns: Option<FetchPlan<TurnWish>>,
    pub(crate) work: Option<FetchPlan<WorkWish>>,
    pub(crate) checks: Vec<String>,
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.turns.is_none() && self.work.is_none() && self.checks.is_empty()
    }
}

impl Waiting {
    /// Adds an item to be committed.
    pub(crate) fn add(&mut self, pending: Pending) {
        self.items.push_back(pending);
    }

    /// Begins to watch an instance; it is looked at soon.
    pub(crate) fn begin_watch(&mut self, instance: &str, until: WatchUntil) {
        let watched = self.watched.entry(instance.to_owned()).or_default();
        watched.watches += 1;
        watched.of_changes += usize::from(until != WatchUntil::Terminal);
        self.checks.insert(instance.to_owned());
    }

    /// Ends one watch of an instance.
    pub(crate) fn end_watch(&mut self, instance: &str, until: WatchUntil) {
        if let Some(watched) = self.watched.get_mut(instance) {
            watched.watches -= 1;
            watched.of_changes -= usize::from(until != WatchUntil::Terminal);
            if watched.watches == 0 {
                self.watched.remove(instance);
                self.checks.remove(instance);
            }
        }
    }

    /// An instance may have changed.
    pub(crate) fn check(&mut self, instance: &str) {
        if self.watched.contains_key(instance) {
            self.checks.insert(instance.to_owned());
        }
    }

    /// Anything may have changed.
    pub(crate) fn check_all(&mut self) {
        self.checks.extend(self.watched.keys().cloned());
    }

    /// The next exchange.
    pub(crate) fn plan(&mut self, local_now_ms: u64) -> Plan {
        let mut items = self.take_items();
        for pending in &mut items {
            pending.held = pending.item.token().and_then(|token| self.held.get(&token.0).cloned());
        }
        if items.iter().any(|pending| pending.item.shows_turns()) {
            self.turns.look();
        }
        if items.iter().any(|pending| pending.item.shows_activities()) {
            self.work.look();
        }
        for pending in &items {
            if let (Item::Turn(turn), Some(instance)) =
                (&pending.item, pending.held.as_ref().and_then(Held::instance))
            {
                let is_end = turn.metadata.status.is_some_and(ExecutionStatus::is_terminal);
                let watched = self.watched.get(instance);
                if watched.is_some_and(|watched| is_end || watched.of_changes > 0) {
                    self.checks.insert(instance.to_owned());
                }
            }
        }
        let turns = self.turns.plan(local_now_ms);
        let work = self.work.plan(local_now_ms);
        let mut checks = Vec::new();
        while checks.len() < MAX_CHECKS
            && let Some(instance) = self.checks.pop_first()
        {
            checks.push(instance);
        }
        Plan { items, turns, work, checks }
    }

    /// As many items as go together, in order. An item that touches what another one touches waits for the next time.
    fn take_items(&mut self) -> Vec<Pending> {
        let mut taken: Vec<Pending> = Vec::new();
        let mut passed = VecDeque::new();
        let mut keys: HashSet<u64> = HashSet::new();
        let mut bytes = 0;
        while let Some(pending) = self.items.pop_front() {
            if pending.ticket.is_withdrawn() {
                continue;
            }
            let size = pending.item.size();
            let alone = pending.item.goes_alone();
            let full = taken.len() >= MAX_ITEMS || (!taken.is_empty() && (bytes + size > MAX_BYTES || alone));
            if full {
                self.items.push_front(pending);
                break;
            }
            let its_keys: Vec<u64> = pending.item.keys().map(|key| hash(&key)).collect();
            if its_keys.iter().any(|key| keys.contains(key)) {
                passed.push_back(pending);
                continue;
            }
            keys.extend(its_keys);
            bytes += size;
            taken.push(pending);
            if alone {
                break;
            }
        }
        // What was passed over was there before what is left.
        passed.append(&mut self.items);
        self.items = passed;
        taken
    }

    /// Hands out what an exchange fetched. Returns the locks that nobody wants any more.
    pub(crate) fn hand_out_turns(
        &mut self,
        plan: &FetchPlan<TurnWish>,
        found: Vec<LockedTurn>,
        next_look_ms: Option<u64>,
    ) -> Vec<LockedTurn> {
        self.turns.hand_out(plan, found, next_look_ms)
    }

    /// The same for activities.
    pub(crate) fn hand_out_work(
        &mut self,
        plan: &FetchPlan<WorkWish>,
        found: Vec<LockedWorkItem>,
        next_look_ms: Option<u64>,
    ) -> Vec<LockedWorkItem> {
        self.work.hand_out(plan, found, next_look_ms)
    }

    /// Remembers what new locks of this process are on.
    pub(crate) fn remember_locks(&mut self, locks: impl IntoIterator<Item = (LockToken, Held)>) {
        self.held.extend(locks.into_iter().map(|(token, held)| (token.0, held)));
        while self.held.len() > MAX_REMEMBERED_LOCKS {
            self.held.pop_first();
        }
    }

    /// What a lock of this process is on.
    pub(crate) fn held(&self, token: LockToken) -> Option<&Held> {
        self.held.get(&token.0)
    }

    /// A lock of this process is gone.
    pub(crate) fn forget_lock(&mut self, token: LockToken) {
        self.held.remove(&token.0);
    }

    /// Whether there is something to do at once.
    pub(crate) fn has_work(&self) -> bool {
        !self.items.is_empty() || !self.checks.is_empty() || self.turns.is_looking() || self.work.is_looking()
    }

    /// Local time at which there is something to do.
    pub(crate) fn next_look_ms(&self) -> Option<u64> {
        [self.turns.next_look_ms(), self.work.next_look_ms()].into_iter().flatten().min()
    }

    /// Takes out everything that has not been sent, to be refused.
    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        self.items.drain(..).collect()
    }
}

fn hash(key: &Key<'_>) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
