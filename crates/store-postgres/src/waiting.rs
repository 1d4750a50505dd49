//! What waits inside the store: items to be committed, fetches ([`Fetches`]), watches; and what is in flight.
//!
//! **Order.** Items are sent in the order of their calls. Several exchanges may be in flight, each over a connection of
//! its own, and the database may commit them in any order. So an item that shares a [`Key`] with an item in flight waits
//! until that exchange has been answered, and so does every later item that shares a key with it.
//!
//! **Invariant.** No lock is held across an await, and nothing in here talks to the database.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use segno::store::memory::watch::Watches;
use segno::store::{ExecutionStatus, LockToken, LockedWorkItem, ProviderError, WatchUntil};
use tokio::sync::oneshot;

use crate::answer::LockedTurn;
use crate::fetches::{FetchPlan, Fetches, TurnWish, WorkWish};
use crate::item::{Item, Key};
use crate::ticket::Ticket;

/// Most items in one exchange.
const MAX_ITEMS: usize = 1_024;

/// Most bytes of bodies in one exchange, unless a single item has more.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The part of the items in flight that must wait before another exchange follows: half of them. Smaller exchanges cost
/// the server more for each item than the wait that they save.
const WORTH_DIVISOR: usize = 2;

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

impl Pending {
    /// What it has in common with items whose order to it matters.
    fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        let instance = self.held.as_ref().map(|held| Key::Instance(held.instance()));
        self.item.keys().chain(instance)
    }
}

/// What a lock of this process is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Instance(String),
    /// The row of an activity, and the instance that scheduled it.
    Activity(i64, String),
}

impl Held {
    pub(crate) fn instance(&self) -> &str {
        let (Held::Instance(instance) | Held::Activity(_, instance)) = self;
        instance
    }

    pub(crate) fn activity(&self) -> Option<i64> {
        match self {
            Held::Instance(_) => None,
            Held::Activity(row, _) => Some(*row),
        }
    }
}

/// Everything that waits.
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
    in_flight: InFlight,
    /// Local time at which to look for what no notification announced.
    pub(crate) next_slow_poll_ms: u64,
    pub(crate) is_closed: bool,
}

/// All exchanges in flight.
#[derive(Debug, Default)]
struct InFlight {
    exchanges: usize,
    items: usize,
    /// Hashes of the keys of their items.
    keys: HashSet<u64>,
}

/// What one exchange has in flight.
#[derive(Debug, Default)]
pub(crate) struct Load {
    items: usize,
    keys: HashSet<u64>,
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
    /// In order.
    pub(crate) checks: Vec<String>,
    /// Given back by [`Waiting::land`] when the plan has been carried out.
    pub(crate) load: Load,
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

    /// Whether there is enough for an exchange beside those in flight. What waits is sent by the next of them that lands
    /// otherwise.
    pub(crate) fn is_worth_an_exchange(&self) -> bool {
        let in_flight = &self.in_flight;
        in_flight.exchanges == 0 || self.items.len() >= (in_flight.items / WORTH_DIVISOR).max(1)
    }

    /// Whether exchanges are in flight, which look at everything when they land.
    pub(crate) fn has_exchanges_in_flight(&self) -> bool {
        self.in_flight.exchanges > 0
    }

    /// The next exchange.
    pub(crate) fn plan(&mut self, local_now_ms: u64) -> Plan {
        if !self.is_worth_an_exchange() {
            return Plan::default();
        }
        let (items, keys) = self.take_items();
        if items.is_empty() && self.in_flight.exchanges > 0 {
            return Plan::default();
        }
        for pending in &items {
            self.check_after(pending, &[]);
        }
        let brings =
            |shown: fn(&Item) -> usize| items.iter().map(|pending| shown(&pending.item)).sum::<usize>();
        let beside = self.in_flight.exchanges;
        let turns = self.turns.plan(local_now_ms, brings(Item::turns_shown), beside);
        let work = self.work.plan(local_now_ms, brings(Item::activities_shown), beside);
        let mut checks = Vec::new();
        while checks.len() < MAX_CHECKS
            && let Some(instance) = self.checks.pop_first()
        {
            checks.push(instance);
        }
        let mut plan = Plan { items, turns, work, checks, load: Load::default() };
        if !plan.is_empty() {
            self.in_flight.exchanges += 1;
            self.in_flight.items += plan.items.len();
            self.in_flight.keys.extend(&keys);
            plan.load = Load { items: plan.items.len(), keys };
        }
        plan
    }

    /// An exchange has been answered or given up.
    pub(crate) fn land(&mut self, load: &Load) {
        self.in_flight.exchanges -= 1;
        self.in_flight.items -= load.items;
        for key in &load.keys {
            self.in_flight.keys.remove(key);
        }
    }

    /// Looks at the instance of a turn, if a watch of it may end with the turn and it is not among those that are looked
    /// at after the turn already.
    pub(crate) fn check_after(&mut self, pending: &Pending, checks: &[String]) {
        if let (Item::Turn(turn), Some(instance)) = (&pending.item, pending.held.as_ref().map(Held::instance))
        {
            let is_end = turn.metadata.status.is_some_and(ExecutionStatus::is_terminal);
            let watched = self.watched.get(instance);
            let may_end = watched.is_some_and(|watched| is_end || watched.of_changes > 0);
            if may_end && checks.binary_search_by(|check| check.as_str().cmp(instance)).is_err() {
                self.checks.insert(instance.to_owned());
            }
        }
    }

    /// As many items as go together, in order, with the hashes of their keys. An item waits for the next time if its
    /// order to one in flight or to one that waits matters, or if it touches what another one in the call touches.
    fn take_items(&mut self) -> (Vec<Pending>, HashSet<u64>) {
        let mut taken: Vec<Pending> = Vec::new();
        let mut passed = VecDeque::new();
        let (mut keys, mut passed_keys) = (HashSet::new(), HashSet::new());
        let mut bytes = 0;
        while let Some(mut pending) = self.items.pop_front() {
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
            pending.held = pending.item.token().and_then(|token| self.held.get(&token.0).cloned());
            let its_keys: Vec<(u64, bool)> =
                pending.keys().map(|key| (hash(&key), key.is_exclusive())).collect();
            let waits = its_keys.iter().any(|(key, is_exclusive)| {
                self.in_flight.keys.contains(key)
                    || passed_keys.contains(key)
                    || (*is_exclusive && keys.contains(key))
            });
            let its_keys = its_keys.into_iter().map(|(key, _)| key);
            if waits {
                passed_keys.extend(its_keys);
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
        (taken, keys)
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

#[cfg(test)]
mod tests {
    use segno::store::OrchestratorMessage;

    use super::*;
    use crate::item::GiveBack;

    fn pending(item: Item) -> Pending {
        Pending { item, held: None, answer: None, ticket: Ticket::default() }
    }

    fn send(waiting: &mut Waiting, instances: &[&str]) {
        for instance in instances {
            let message = OrchestratorMessage::new(*instance, "go");
            waiting.add(pending(Item::Message { message, delay_ms: None }));
        }
    }

    fn give_back(waiting: &mut Waiting, token: u64) {
        let back = GiveBack { token: LockToken(token), delay_ms: 0, ignore_attempt: true };
        waiting.add(pending(Item::GiveBackTurn(back)));
    }

    /// The instances of the messages in a plan; a lock that is given back is shown by its token.
    fn planned(plan: &Plan) -> Vec<String> {
        let name = |pending: &Pending| match (&pending.item, pending.item.token()) {
            (_, Some(token)) => token.0.to_string(),
            (item, None) => item.messages()[0].instance.to_string(),
        };
        plan.items.iter().map(name).collect()
    }

    #[test]
    fn messages_for_an_instance_in_flight_wait_in_their_order() {
        let mut waiting = Waiting::default();
        send(&mut waiting, &["a", "a", "b"]);
        let one = waiting.plan(0);
        assert_eq!(planned(&one), ["a", "a", "b"], "one call may have several");
        send(&mut waiting, &["a", "c", "b", "d", "a"]);
        let other = waiting.plan(0);
        assert_eq!(planned(&other), ["c", "d"]);
        waiting.land(&one.load);
        assert_eq!(planned(&waiting.plan(0)), ["a", "b", "a"]);
    }

    #[test]
    fn an_item_does_not_overtake_one_that_waits() {
        let mut waiting = Waiting::default();
        waiting.remember_locks([(LockToken(7), Held::Instance("a".to_owned()))]);
        give_back(&mut waiting, 7);
        let one = waiting.plan(0);
        // The second use of the lock waits for the first one, and the message behind it for the second one.
        give_back(&mut waiting, 7);
        send(&mut waiting, &["a", "b"]);
        let other = waiting.plan(0);
        assert_eq!(planned(&other), ["b"]);
        waiting.land(&one.load);
        assert_eq!(planned(&waiting.plan(0)), ["7", "a"]);
    }

    #[test]
    fn another_exchange_follows_when_half_as_much_waits_as_is_in_flight() {
        let mut waiting = Waiting::default();
        send(&mut waiting, &["a", "b", "c", "d"]);
        let one = waiting.plan(0);
        assert_eq!((one.items.len(), waiting.is_worth_an_exchange()), (4, false));
        send(&mut waiting, &["e"]);
        assert!(waiting.plan(0).is_empty() && !waiting.is_worth_an_exchange());
        send(&mut waiting, &["f"]);
        assert!(waiting.is_worth_an_exchange());
        let other = waiting.plan(0);
        assert_eq!(planned(&other), ["e", "f"]);
        send(&mut waiting, &["g"]);
        waiting.land(&one.load);
        assert_eq!(planned(&waiting.plan(0)), ["g"]);
    }

    #[test]
    fn nothing_is_sent_while_everything_waits_for_what_is_in_flight() {
        let mut waiting = Waiting::default();
        send(&mut waiting, &["a"]);
        let one = waiting.plan(0);
        send(&mut waiting, &["a", "a", "a"]);
        assert!(waiting.plan(0).is_empty());
        waiting.land(&one.load);
        assert_eq!(planned(&waiting.plan(0)), ["a", "a", "a"]);
    }

    #[test]
    fn a_watch_that_began_while_its_turn_was_in_flight_is_looked_at() {
        let mut waiting = Waiting::default();
        let held = Some(Held::Instance("a".to_owned()));
        let mut turn = segno::store::AckOrchestrationItem::empty(LockToken(7), 1);
        turn.metadata.status = Some(ExecutionStatus::Completed);
        let ended = Pending { held, ..pending(Item::Turn(std::sync::Arc::new(turn))) };
        waiting.begin_watch("a", WatchUntil::Terminal);
        let looked = waiting.plan(0);
        assert_eq!(looked.checks, ["a"]);
        waiting.land(&looked.load);
        waiting.check_after(&ended, &looked.checks);
        assert!(waiting.plan(0).is_empty(), "the exchange of the turn has looked");
        waiting.check_after(&ended, &[]);
        assert_eq!(waiting.plan(0).checks, ["a"]);
    }
}
