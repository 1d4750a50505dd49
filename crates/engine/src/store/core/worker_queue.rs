//! The worker queue: activities, routed by tag and session, locked one by one.
//!
//! | from | to | when |
//! |---|---|---|
//! | (enqueue) | ready, or delayed until its time | `enqueue`, `restore` |
//! | (enqueue) | locked | `restore_locked` |
//! | delayed | ready | `advance` past its time |
//! | ready | locked | `take_next` |
//! | locked | ready, or delayed | lock expiry in `advance`, `abandon` |
//! | locked | (removed) | `finish` |
//! | any | (removed) | `cancel`, `remove_instance` |
//!
//! Ready items without a session are in one lane per tag, oldest first; ready items of a session are
//! with the session.
//!
//! **Invariant.** Every method except `advance` requires that `advance` was called with the same time:
//! then every lock in the queue is valid.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::peek_lock::{Attempt, Depths, Sequence, Standing, earliest};
use super::sessions::{SessionItem, Sessions};
use super::tag_lanes::TagLanes;
use crate::clock::duration_ms;
use crate::store::{
    LockToken, LockedWorkItem, QueuePlace, QueuedActivity, QueuedWork, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, WorkItemContent, WorkerMessage,
};

/// Activities that wait for a worker or are locked by one. See the module for their states.
#[derive(Debug, Default)]
pub struct WorkerQueue {
    item_ids: Sequence,
    items: HashMap<u64, Item>,
    /// (execution id, activity id, item id) of everything queued for an instance.
    by_instance: HashMap<Arc<str>, BTreeSet<(u64, u64, u64)>>,
    ready: TagLanes<BTreeSet<u64>>,
    sessions: Sessions,
    delayed: BTreeSet<(u64, u64)>,
    locks: HashMap<LockToken, u64>,
    expiries: BTreeSet<(u64, LockToken)>,
    depths: Depths,
}

#[derive(Debug)]
struct Item {
    message: WorkerMessage,
    tag: Option<Arc<str>>,
    session: Option<Arc<str>>,
    attempts: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Ready,
    Delayed { visible_at_ms: u64 },
    Locked(ItemLock),
}

/// The lock on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemLock {
    /// The token of its holder.
    pub token: LockToken,
    /// When it ends.
    pub until_ms: u64,
}

/// The work that a fetch may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFilter<'a> {
    /// By tag.
    pub tags: &'a TagFilter,
    /// By session; `None` takes only work without one.
    pub session: Option<&'a SessionFetchConfig>,
}

impl WorkerQueue {
    /// An empty queue whose item ids continue after `last_item_id`, for a store that was restarted.
    pub fn after(last_item_id: u64) -> Self {
        WorkerQueue { item_ids: Sequence::after(last_item_id), ..WorkerQueue::default() }
    }

    /// Adds an activity and returns the id of its item.
    pub fn enqueue(&mut self, message: WorkerMessage, now_ms: u64) -> u64 {
        let id = self.item_ids.take();
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        self.restore(Standing { id, visible_at_ms, attempts: 0 }, message, now_ms);
        id
    }

    /// Restores an activity to its state before the store was closed.
    pub fn restore(&mut self, standing: Standing, message: WorkerMessage, now_ms: u64) {
        self.insert(standing, message);
        self.show(standing.id, standing.visible_at_ms, now_ms);
    }

    /// Adds an activity under a lock: one that it had before the store was closed, or one from its
    /// start.
    pub fn restore_locked(&mut self, standing: Standing, message: WorkerMessage, lock: ItemLock) {
        self.insert(standing, message);
        self.lock(standing.id, lock);
    }

    /// Adds an item, not yet in any order.
    fn insert(&mut self, standing: Standing, message: WorkerMessage) {
        let Standing { id: item_id, attempts, .. } = standing;
        let activity = &message.activity;
        let key = (activity.execution_id, activity.activity_id, item_id);
        match self.by_instance.get_mut(activity.instance.as_str()) {
            Some(keys) => {
                keys.insert(key);
            }
            None => {
                self.by_instance.insert(Arc::from(activity.instance.as_str()), BTreeSet::from([key]));
            }
        }
        let tag = message.tag.as_deref().map(Arc::from);
        let session = message.session_id.as_deref().map(|session| self.sessions.add_queued(session));
        self.items.insert(item_id, Item { message, tag, session, attempts, place: Place::Ready });
    }

    /// Locks an item that is in no order.
    fn lock(&mut self, item_id: u64, lock: ItemLock) {
        let item = self.items.get_mut(&item_id).expect("the caller found the item");
        item.place = Place::Locked(lock);
        self.locks.insert(lock.token, item_id);
        self.expiries.insert((lock.until_ms, lock.token));
        self.depths.locked += 1;
    }

    /// Makes delayed items ready whose time has come, and ends expired locks of items and sessions.
    pub fn advance(&mut self, now_ms: u64) {
        self.sessions.advance(now_ms);
        while let Some(&(until_ms, token)) = self.expiries.first()
            && until_ms <= now_ms
        {
            let item_id = self.unlock(token).expect("every expiry belongs to a lock");
            self.show(item_id, now_ms, now_ms);
        }
        while let Some(&(visible_at_ms, item_id)) = self.delayed.first()
            && visible_at_ms <= now_ms
        {
            self.delayed.pop_first();
            self.depths.delayed -= 1;
            self.show(item_id, visible_at_ms, now_ms);
        }
    }

    /// The next time at which [`Self::advance`] has something to do.
    pub fn next_change_ms(&self) -> Option<u64> {
        let delayed = self.delayed.first().map(|(visible_at_ms, _)| *visible_at_ms);
        let expiry = self.expiries.first().map(|(until_ms, _)| *until_ms);
        earliest(earliest(delayed, expiry), self.sessions.next_change_ms())
    }

    /// Number of items, or sessions with items, that a fetch could take from now.
    pub fn ready_count(&self, filter: &WorkFilter<'_>) -> usize {
        let plain: usize = self.ready.matching(filter.tags).map(BTreeSet::len).sum();
        plain + filter.session.map_or(0, |config| self.sessions.ready_count(config, filter.tags))
    }

    /// Locks the oldest item that the fetch may take; claims its session if it is free.
    pub fn take_next(
        &mut self,
        filter: &WorkFilter<'_>,
        until_ms: u64,
        now_ms: u64,
        tokens: &mut Sequence,
    ) -> Option<LockedWorkItem> {
        let plain = self.ready.matching(filter.tags).filter_map(|lane| lane.first().copied()).min();
        let bound = filter.session.and_then(|config| self.sessions.oldest_ready(config, filter.tags));
        let item_id = earliest(plain, bound)?;
        self.leave_ready(item_id);
        let lock_token = LockToken(tokens.take());
        self.lock(item_id, ItemLock { token: lock_token, until_ms });
        let item = self.items.get_mut(&item_id).expect("a ready item is in the queue");
        item.attempts = item.attempts.saturating_add(1);
        if let (Some(session), Some(config)) = (&item.session, filter.session) {
            let session_until_ms = now_ms.saturating_add(duration_ms(config.lock_timeout));
            self.sessions.claim(session, &config.owner_id, session_until_ms, now_ms);
        }
        Some(LockedWorkItem {
            message: item.message.clone(),
            lock_token,
            attempt_count: item.attempts,
            fetched_at_ms: now_ms,
        })
    }

    /// Whether the token is the lock of an item.
    pub fn holds(&self, token: LockToken) -> bool {
        self.locks.contains_key(&token)
    }

    /// Moves an item that is delayed until `from_ms` to another time. Has no effect if there is no such item
    /// any more.
    pub fn reschedule(&mut self, item_id: u64, from_ms: u64, to_ms: u64, now_ms: u64) {
        if self.delayed.remove(&(from_ms, item_id)) {
            self.depths.delayed -= 1;
            self.show(item_id, to_ms, now_ms);
        }
    }

    /// The end of the lock of the token. `None` if the token is not valid.
    pub fn lock_ends_at_ms(&self, token: LockToken) -> Option<u64> {
        let item = self.items.get(self.locks.get(&token)?)?;
        match item.place {
            Place::Locked(lock) => Some(lock.until_ms),
            Place::Ready | Place::Delayed { .. } => None,
        }
    }

    /// The item that the token locks, with its attempts, this fetch included.
    pub fn locked_item(&self, token: LockToken) -> Option<(u64, u32)> {
        let item_id = *self.locks.get(&token)?;
        self.items.get(&item_id).map(|item| (item_id, item.attempts))
    }

    /// The instance of the item that the token locks, and the attempts of the item, this fetch included.
    pub fn locked_activity(&self, token: LockToken) -> Option<(&Arc<str>, u32)> {
        let item = self.items.get(self.locks.get(&token)?)?;
        let (instance, _) = self.by_instance.get_key_value(item.message.activity.instance.as_str())?;
        Some((instance, item.attempts))
    }

    /// Removes the item that the token locks and returns its id. `None` if the token is not valid.
    pub fn finish(&mut self, token: LockToken, now_ms: u64) -> Option<u64> {
        let item_id = *self.locks.get(&token)?;
        self.touch_session(item_id, now_ms);
        self.remove(item_id);
        Some(item_id)
    }

    /// Abandons an item; it is ready at `visible_at_ms`. `None` if the token is not valid.
    pub fn abandon(
        &mut self,
        token: LockToken,
        visible_at_ms: u64,
        attempt: Attempt,
        now_ms: u64,
    ) -> Option<()> {
        let item_id = self.unlock(token)?;
        let item = self.items.get_mut(&item_id).expect("a locked item is in the queue");
        item.attempts = attempt.settle(item.attempts);
        self.show(item_id, visible_at_ms, now_ms);
        Some(())
    }

    /// Moves the end of a lock and keeps the session of the item active. `None` if the token is not valid.
    pub fn renew(&mut self, token: LockToken, until_ms: u64, now_ms: u64) -> Option<()> {
        let item_id = *self.locks.get(&token)?;
        let item = self.items.get_mut(&item_id).expect("a locked item is in the queue");
        if let Place::Locked(before) = item.place {
            self.expiries.remove(&(before.until_ms, token));
        }
        item.place = Place::Locked(ItemLock { token, until_ms });
        self.expiries.insert((until_ms, token));
        self.touch_session(item_id, now_ms);
        Some(())
    }

    /// Removes an activity, locked or not. Unknown ones are ignored. Returns the ids of the removed items.
    pub fn cancel(&mut self, activity: &ScheduledActivityIdentifier) -> Vec<u64> {
        let Some(keys) = self.by_instance.get(activity.instance.as_str()) else { return Vec::new() };
        let named = (activity.execution_id, activity.activity_id);
        let same = (named.0, named.1, 0)..=(named.0, named.1, u64::MAX);
        let item_ids: Vec<u64> = keys.range(same).map(|&(_, _, item_id)| item_id).collect();
        for &item_id in &item_ids {
            self.remove(item_id);
        }
        item_ids
    }

    /// The states of the activities of an instance, by execution and activity.
    pub fn of_instance(&self, instance: &str) -> Vec<QueuedActivity> {
        let keys = self.by_instance.get(instance).into_iter().flatten();
        let queued = keys.filter_map(|&(execution_id, activity_id, item_id)| {
            let work = self.standing(item_id)?;
            Some(QueuedActivity { execution_id, activity_id, work })
        });
        queued.collect()
    }

    /// The delayed items of an instance, with the time and the attempts of each. Call `advance` before.
    pub fn delayed_of(&self, instance: &str) -> Vec<Standing> {
        let keys = self.by_instance.get(instance).into_iter().flatten();
        let delayed = keys.filter_map(|&(_, _, id)| {
            let item = self.items.get(&id)?;
            let Place::Delayed { visible_at_ms } = item.place else { return None };
            Some(Standing { id, visible_at_ms, attempts: item.attempts })
        });
        delayed.collect()
    }

    /// The state of an item. Call `advance` before.
    fn standing(&self, item_id: u64) -> Option<QueuedWork> {
        let item = self.items.get(&item_id)?;
        let place = match item.place {
            Place::Ready => QueuePlace::Ready,
            Place::Delayed { visible_at_ms } => QueuePlace::Delayed { visible_at_ms },
            Place::Locked(ItemLock { token: lock_token, until_ms }) => {
                QueuePlace::Locked { lock_token, until_ms }
            }
        };
        let WorkerMessage { tag, session_id, .. } = &item.message;
        let (tag, session_id) = (tag.clone(), session_id.clone());
        Some(QueuedWork { place, attempt_count: item.attempts, tag, session_id })
    }

    /// Removes all activities of an instance. Returns the ids of their items.
    pub fn remove_instance(&mut self, instance: &str) -> Vec<u64> {
        let Some(keys) = self.by_instance.get(instance) else { return Vec::new() };
        let item_ids: Vec<u64> = keys.iter().map(|&(_, _, item_id)| item_id).collect();
        for &item_id in &item_ids {
            self.remove(item_id);
        }
        item_ids
    }

    /// The sessions.
    pub fn sessions_mut(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    /// Id of the last item that was enqueued.
    pub fn last_item_id(&self) -> u64 {
        self.item_ids.last()
    }

    /// Every item under a lock, with its attempts.
    pub fn locked(&self) -> impl Iterator<Item = (u64, u32)> {
        self.locks.values().filter_map(|id| self.items.get(id).map(|item| (*id, item.attempts)))
    }

    /// Every item with its state, locked or not, by id.
    pub fn content(&self, taken_at_ms: u64) -> Vec<WorkItemContent> {
        let stands = |(&id, item): (&u64, &Item)| {
            let visible_at_ms = match item.place {
                Place::Delayed { visible_at_ms } => visible_at_ms,
                Place::Ready | Place::Locked(_) => 0,
            };
            let standing = Standing { id, visible_at_ms, attempts: item.attempts };
            WorkItemContent::standing(standing, item.message.clone(), taken_at_ms)
        };
        let mut content: Vec<WorkItemContent> = self.items.iter().map(stands).collect();
        content.sort_unstable_by_key(|item| item.id);
        content
    }

    /// Number of items in each state.
    pub fn depths(&self) -> Depths {
        self.depths
    }

    fn touch_session(&mut self, item_id: u64, now_ms: u64) {
        if let Some(session) = self.items.get(&item_id).and_then(|item| item.session.as_ref()) {
            self.sessions.touch(session, now_ms);
        }
    }

    fn unlock(&mut self, token: LockToken) -> Option<u64> {
        let item_id = self.locks.remove(&token)?;
        let item = self.items.get(&item_id).expect("a locked item is in the queue");
        if let Place::Locked(lock) = item.place {
            self.expiries.remove(&(lock.until_ms, token));
        }
        self.depths.locked -= 1;
        Some(item_id)
    }

    /// Adds an item that is in no order to the ready or the delayed ones, by its time.
    fn show(&mut self, item_id: u64, visible_at_ms: u64, now_ms: u64) {
        let item = self.items.get_mut(&item_id).expect("the caller found the item");
        if visible_at_ms > now_ms {
            item.place = Place::Delayed { visible_at_ms };
            self.delayed.insert((visible_at_ms, item_id));
            self.depths.delayed += 1;
            return;
        }
        item.place = Place::Ready;
        let tag = item.tag.as_ref();
        match &item.session {
            Some(session) => self.sessions.add_ready(SessionItem { session, tag, item_id }),
            None => {
                self.ready.lane_mut(tag).insert(item_id);
            }
        }
        self.depths.visible += 1;
    }

    fn leave_ready(&mut self, item_id: u64) {
        let item = self.items.get(&item_id).expect("a ready item is in the queue");
        let tag = item.tag.as_ref();
        self.depths.visible -= 1;
        if let Some(session) = &item.session {
            return self.sessions.remove_ready(SessionItem { session, tag, item_id });
        }
        let lane = self.ready.lane_mut(tag);
        lane.remove(&item_id);
        if lane.is_empty() {
            self.ready.drop_lane(tag);
        }
    }

    /// Removes an item from every index.
    fn remove(&mut self, item_id: u64) {
        match self.items.get(&item_id).expect("the caller found the item").place {
            Place::Ready => self.leave_ready(item_id),
            Place::Delayed { visible_at_ms } => {
                self.delayed.remove(&(visible_at_ms, item_id));
                self.depths.delayed -= 1;
            }
            Place::Locked(lock) => {
                self.unlock(lock.token);
            }
        }
        let item = self.items.remove(&item_id).expect("found just above");
        let activity = &item.message.activity;
        let keys = self.by_instance.get_mut(activity.instance.as_str()).expect("every item is indexed");
        keys.remove(&(activity.execution_id, activity.activity_id, item_id));
        if keys.is_empty() {
            self.by_instance.remove(activity.instance.as_str());
        }
        if let Some(session) = &item.session {
            self.sessions.remove_queued(session);
        }
    }
}

#[cfg(test)]
#[path = "worker_queue_tests.rs"]
mod tests;
