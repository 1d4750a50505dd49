//! Leases: locks on activities that outlive the process, because their holders are elsewhere.
//!
//! Such a lock is in the row with the state of its activity, and is durable before its fetch
//! is answered. A fetch that waits is a *lessee*: an activity that is made for it is locked in the
//! commit that makes it, so the fetch is answered by the sync that it would have waited for anyway.
//! Until that sync the lock has no end, so that the activity is not shown early by an expiry.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use segno::clock::duration_ms;
use segno::store::core::peek_lock::{Attempt, Sequence, Standing};
use segno::store::core::worker_queue::ItemLock;
use segno::store::{LockLife, LockToken, LockedWorkItem, WorkerMessage};
use tokio::sync::Notify;

use crate::state::machine::State;
use crate::state::pending::{HELD_MS, LeasedItem};

/// What a fetch that waits takes.
#[derive(Debug)]
pub(crate) struct LeaseTerms {
    /// Activities with one of these tags and without a session.
    pub(crate) tags: BTreeSet<String>,
    pub(crate) max_items: usize,
    pub(crate) lock_timeout: Duration,
}

/// Fetches for leases that wait, by the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Lessees {
    numbers: Sequence,
    waiting: HashMap<u64, Lessee>,
    /// Those that have room for more.
    by_tag: HashMap<String, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Lessee {
    terms: Arc<LeaseTerms>,
    signal: Arc<Notify>,
    granted: Vec<LockedWorkItem>,
    /// The batch that has the locks of what was granted.
    batch: u64,
}

impl Lessee {
    fn has_room(&self) -> bool {
        self.granted.len() < self.terms.max_items
    }

    /// One batch at a time, so that no lease waits for a later sync than its own.
    fn accepts(&self, batch: u64) -> bool {
        self.granted.is_empty() || self.batch == batch
    }
}

impl Lessees {
    /// Adds a fetch that begins to wait; returns its number.
    pub(crate) fn join(&mut self, terms: &Arc<LeaseTerms>, signal: &Arc<Notify>) -> u64 {
        let number = self.numbers.take();
        let lessee =
            Lessee { terms: Arc::clone(terms), signal: Arc::clone(signal), granted: Vec::new(), batch: 0 };
        self.waiting.insert(number, lessee);
        self.offer(number, terms);
        number
    }

    /// Removes a fetch; returns what was granted to it and not taken.
    fn leave(&mut self, number: u64) -> Vec<LockedWorkItem> {
        let Some(lessee) = self.waiting.remove(&number) else { return Vec::new() };
        self.withdraw(number, &lessee.terms);
        lessee.granted
    }

    fn offer(&mut self, number: u64, terms: &LeaseTerms) {
        for tag in &terms.tags {
            self.by_tag.entry_ref(tag.as_str()).or_default().insert(number);
        }
    }

    fn withdraw(&mut self, number: u64, terms: &LeaseTerms) {
        for tag in &terms.tags {
            if let Some(numbers) = self.by_tag.get_mut(tag.as_str()) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_tag.remove(tag.as_str());
                }
            }
        }
    }

    /// The first fetch that takes an activity of this tag with a lock of this batch, and for how
    /// long it locks.
    fn find(&self, tag: &str, batch: u64) -> Option<(u64, Duration)> {
        let numbers = self.by_tag.get(tag)?.iter();
        let mut lessees = numbers.filter_map(|number| Some((*number, self.waiting.get(number)?)));
        let (number, lessee) = lessees.find(|(_, lessee)| lessee.accepts(batch))?;
        Some((number, lessee.terms.lock_timeout))
    }

    fn grant(&mut self, number: u64, item: LockedWorkItem, batch: u64) {
        let Some(lessee) = self.waiting.get_mut(&number) else { return };
        lessee.granted.push(item);
        lessee.batch = batch;
        if !lessee.has_room() {
            let terms = Arc::clone(&lessee.terms);
            self.withdraw(number, &terms);
        }
    }

    /// Items granted to a fetch, and the batch that must be durable before they may be delivered.
    fn take(&mut self, number: u64) -> Option<(Vec<LockedWorkItem>, u64)> {
        let lessee = self.waiting.get_mut(&number).filter(|lessee| !lessee.granted.is_empty())?;
        let was_full = !lessee.has_room();
        let (granted, batch) = (std::mem::take(&mut lessee.granted), lessee.batch);
        if was_full {
            let terms = Arc::clone(&lessee.terms);
            self.offer(number, &terms);
        }
        Some((granted, batch))
    }

    /// Wakes a fetch whose leases are durable.
    fn wake(&self, number: u64) {
        if let Some(lessee) = self.waiting.get(&number) {
            lessee.signal.notify_one();
        }
    }
}

/// How a lock is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    Done,
    /// It has to be durable: see [`State::renew_lease`].
    ByCommit,
}

impl State {
    /// Locks a new activity for a fetch that waits for it, in the batch that has the activity.
    /// Returns the activity if there is no such fetch.
    pub(crate) fn lease_on_arrival(
        &mut self,
        item_id: u64,
        message: WorkerMessage,
        visible_at_ms: u64,
        now_ms: u64,
    ) -> Option<WorkerMessage> {
        let batch = self.pending.filling_sequence();
        let tag = message.tag.as_deref().filter(|_| message.session_id.is_none() && visible_at_ms <= now_ms);
        let Some((lessee, lock_timeout)) = tag.and_then(|tag| self.lessees.find(tag, batch)) else {
            return Some(message);
        };
        let token = self.take_token();
        let lock = ItemLock { token, until_ms: now_ms.saturating_add(duration_ms(lock_timeout)) };
        let standing = Standing { id: item_id, visible_at_ms, attempts: 1 };
        self.store_item(standing, Some(lock));
        self.pending.filling_mut().leased.push(LeasedItem { item_id, lessee, lock });
        let item = LockedWorkItem {
            message: message.clone(),
            lock_token: token,
            attempt_count: standing.attempts,
            fetched_at_ms: now_ms,
        };
        self.lessees.grant(lessee, item, batch);
        self.work.restore_locked(standing, message, ItemLock { until_ms: HELD_MS, ..lock });
        None
    }

    /// What was leased to a fetch while it waited, and the batch that must be durable before it may
    /// be delivered. Activities cancelled since are left out.
    pub(crate) fn take_leased(&mut self, lessee: u64) -> Option<(Vec<LockedWorkItem>, u64)> {
        let (mut items, batch) = self.lessees.take(lessee)?;
        items.retain(|item| self.work.holds(item.lock_token));
        (!items.is_empty()).then_some((items, batch))
    }

    /// A fetch does not wait any more: returns the leases that it was granted and has not taken.
    pub(crate) fn lessee_leaves(&mut self, lessee: u64, now_ms: u64) {
        for item in self.lessees.leave(lessee) {
            self.return_work(item.lock_token, now_ms);
        }
    }

    /// Leases became durable: their time runs from now on, and the fetches that wait are woken.
    pub(crate) fn leases_synced(&mut self, leased: Vec<LeasedItem>, now_ms: u64) {
        for LeasedItem { lessee, lock, .. } in leased {
            // The activity may have been cancelled since.
            let _holds = self.work.renew(lock.token, lock.until_ms, now_ms);
            self.lessees.wake(lessee);
        }
    }

    /// Returns an activity that was locked and not delivered. It is not visible before it is
    /// durable.
    pub(crate) fn return_work(&mut self, token: LockToken, now_ms: u64) {
        let Some((id, attempts)) = self.work.locked_item(token) else { return };
        let shown_at_ms = if self.pending.hold_leased(id, now_ms) { HELD_MS } else { now_ms };
        let attempts = Attempt::Ignored.settle(attempts);
        // The token was found just above.
        let _holds = self.work.abandon(token, shown_at_ms, Attempt::Ignored, now_ms);
        self.store_item(Standing { id, visible_at_ms: now_ms, attempts }, None);
    }

    /// Renews a lock in memory if that is enough. `None` when the token does not hold.
    ///
    /// A lease that is made shorter need not wait for its row: a crash that forgets it makes the
    /// lease end later, never early.
    pub(crate) fn renew_work(&mut self, lock: ItemLock, life: LockLife, now_ms: u64) -> Option<Renewal> {
        let (id, attempts) = self.work.locked_item(lock.token)?;
        let was = self.life_of(id);
        let is_longer = lock.until_ms > self.work.lock_ends_at_ms(lock.token)?;
        match (was, life) {
            (LockLife::Process, LockLife::Durable) => return Some(Renewal::ByCommit),
            (LockLife::Durable, _) if is_longer => return Some(Renewal::ByCommit),
            (LockLife::Durable, _) => {
                self.store_item(Standing { id, visible_at_ms: now_ms, attempts }, Some(lock));
            }
            (LockLife::Process, LockLife::Process) => {}
        }
        self.work.renew(lock.token, lock.until_ms, now_ms)?;
        Some(Renewal::Done)
    }

    /// Renews a lock that outlives the process from now on. `None` when the token does not hold.
    pub(crate) fn renew_lease(&mut self, lock: ItemLock, now_ms: u64) -> Option<()> {
        let (id, attempts) = self.work.locked_item(lock.token)?;
        self.work.renew(lock.token, lock.until_ms, now_ms)?;
        self.store_item(Standing { id, visible_at_ms: now_ms, attempts }, Some(lock));
        Some(())
    }
}
