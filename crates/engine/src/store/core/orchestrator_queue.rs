//! The orchestrator queue: messages per instance, instance locks, and the order in which instances are
//! fetched.
//!
//! A message is in one of three places, and every change is a move between them:
//!
//! | from | to | when |
//! |---|---|---|
//! | (enqueue) | visible, or delayed until its time | `enqueue` |
//! | delayed | visible | `advance` past its time |
//! | visible | fetched, under the instance lock | `take_next` |
//! | fetched | visible, or delayed | lock expiry in `advance`, `abandon` |
//! | fetched | (removed) | `consume` |
//! | any | (removed) | `cancel_timer`, `remove_instance` |
//!
//! An instance is *ready* when it has visible messages and no lock. Ready instances are indexed by the
//! version that they are pinned to, and within it by their oldest visible message. A fetch reads the
//! head of each version group, so instances that a runtime cannot replay cost nothing, however many
//! they are.
//!
//! **Invariant.** Every method except `advance` requires that `advance` was called with the same time:
//! then every lock in the queue is valid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use semver::Version;

use super::messages::{Message, Messages};
use super::peek_lock::{Attempt, Depths, Sequence, Standing, earliest};
use crate::store::{
    AfterAck, DispatcherCapabilityFilter, LockToken, MessageContent, OrchestratorMessage, QueuedMessage,
    StartGuard, TimerIdentifier,
};

/// Messages for instances, with one lock per instance. See the module for its states.
#[derive(Debug, Default)]
pub struct OrchestratorQueue {
    message_ids: Sequence,
    instances: HashMap<Arc<str>, InstanceQueue>,
    ready: BTreeMap<Option<Version>, BTreeMap<u64, Arc<str>>>,
    delayed: BTreeMap<(u64, u64), Arc<str>>,
    locks: HashMap<LockToken, Arc<str>>,
    expiries: BTreeSet<(u64, LockToken)>,
    depths: Depths,
}

/// The queue of one instance; exists only while there is a message or a lock.
#[derive(Debug, Default)]
struct InstanceQueue {
    pin: Option<Version>,
    visible: Messages,
    /// By id. Boxed, because most instances have one message and a map node has room for eleven.
    delayed: BTreeMap<u64, Box<Message>>,
    lock: Option<InstanceLock>,
    timers: BTreeSet<(TimerIdentifier, u64)>,
    guarded_start: Option<u64>,
    /// Key of the instance in the ready order, if it is there.
    ready_key: Option<u64>,
    /// No message of the instance is visible before this time: its batch was abandoned with a delay.
    not_before_ms: u64,
}

#[derive(Debug)]
struct InstanceLock {
    token: LockToken,
    until_ms: u64,
    fetched: Messages,
}

/// A locked instance with everything that was visible for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedBatch {
    /// The locked instance.
    pub instance: Arc<str>,
    /// Its messages, oldest first.
    pub messages: Vec<QueuedMessage>,
    /// Proof of the lock.
    pub lock_token: LockToken,
    /// The highest attempt count among the messages, this fetch included.
    pub attempt_count: u32,
}

impl InstanceQueue {
    fn is_idle(&self) -> bool {
        self.lock.is_none() && self.visible.is_empty() && self.delayed.is_empty()
    }

    /// The key that the instance should have in the ready order.
    fn wanted_ready_key(&self) -> Option<u64> {
        if self.lock.is_some() {
            return None;
        }
        self.visible.first_id()
    }

    /// Removes the references to a message that is removed.
    fn unlink(&mut self, message_id: u64, timer: Option<TimerIdentifier>) {
        if let Some(timer) = timer {
            self.timers.remove(&(timer, message_id));
        }
        if self.guarded_start == Some(message_id) {
            self.guarded_start = None;
        }
    }
}

impl OrchestratorQueue {
    /// An empty queue whose message ids continue after `last_message_id`, for a store that was
    /// restarted.
    pub fn after(last_message_id: u64) -> Self {
        OrchestratorQueue { message_ids: Sequence::after(last_message_id), ..OrchestratorQueue::default() }
    }

    /// Adds a message and returns its id. `pin` returns the pinned version of the instance, and is
    /// called if the queue has no entry for the instance. The caller checks guards with
    /// [`Self::has_guarded_start`].
    pub fn enqueue(
        &mut self,
        message: OrchestratorMessage,
        now_ms: u64,
        pin: impl FnOnce(&str) -> Option<Version>,
    ) -> u64 {
        let id = self.message_ids.take();
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        self.restore(Standing { id, visible_at_ms, attempts: 0 }, message, now_ms, pin);
        id
    }

    /// Restores a message to its state before the store was closed.
    pub fn restore(
        &mut self,
        standing: Standing,
        message: OrchestratorMessage,
        now_ms: u64,
        pin: impl FnOnce(&str) -> Option<Version>,
    ) {
        let Standing { id: message_id, visible_at_ms, attempts } = standing;
        let instance = match self.instances.get_key_value(message.instance.as_str()) {
            Some((instance, _)) => Arc::clone(instance),
            None => {
                let instance: Arc<str> = Arc::from(message.instance);
                let queue = InstanceQueue { pin: pin(&instance), ..InstanceQueue::default() };
                self.instances.insert(Arc::clone(&instance), queue);
                instance
            }
        };
        let queue = self.instances.get_mut(&instance).expect("looked up or inserted just above");
        if let Some(timer) = message.timer {
            queue.timers.insert((timer, message_id));
        }
        if message.guard == StartGuard::IfAbsent {
            queue.guarded_start = Some(message_id);
        }
        let stored = Message { visible_at_ms, timer: message.timer, attempts, body: message.body };
        self.show(&instance, [(message_id, stored)], now_ms);
    }

    /// Moves a message that is delayed until `from_ms` to another time. Has no effect if there is no such
    /// message any more.
    pub fn reschedule(&mut self, message_id: u64, from_ms: u64, to_ms: u64, now_ms: u64) {
        let Some(instance) = self.delayed.remove(&(from_ms, message_id)) else { return };
        self.depths.delayed -= 1;
        let queue = self.instances.get_mut(&instance).expect("a delayed message has an instance");
        let mut message = queue.delayed.remove(&message_id).expect("the delayed index names messages");
        message.visible_at_ms = to_ms;
        self.show(&instance, [(message_id, *message)], now_ms);
    }

    /// Whether a message of the instance is in the queue and delayed.
    pub fn delays(&self, instance: &str, message_id: u64) -> bool {
        self.instances.get(instance).is_some_and(|queue| queue.delayed.contains_key(&message_id))
    }

    /// Whether the queue has a message or a lock of the instance, and so its pin.
    pub fn knows(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
    }

    /// The messages under a lock, with their attempts, this fetch included.
    pub fn fetched(&self, token: LockToken) -> impl Iterator<Item = (u64, u32)> {
        let lock = self.locks.get(&token).and_then(|instance| self.instances.get(instance)?.lock.as_ref());
        let fetched = lock.into_iter().flat_map(|lock| lock.fetched.iter());
        fetched.map(|(message_id, message)| (message_id, message.attempts))
    }

    /// Whether a guarded start for the instance is queued, visible or not.
    pub fn has_guarded_start(&self, instance: &str) -> bool {
        self.instances.get(instance).is_some_and(|queue| queue.guarded_start.is_some())
    }

    /// The time from which the guarded start for the instance is visible, or now if that is later;
    /// `None` without such a start.
    pub fn guarded_start_ms(&self, instance: &str, now_ms: u64) -> Option<u64> {
        let queue = self.instances.get(instance)?;
        let start_id = queue.guarded_start?;
        let fetched = queue.lock.iter().flat_map(|lock| lock.fetched.iter());
        let delayed = queue.delayed.get(&start_id).map(|message| message.visible_at_ms);
        let shown = || queue.visible.iter().chain(fetched).find(|(id, _)| *id == start_id);
        let visible_at_ms = delayed.or_else(|| shown().map(|(_, message)| message.visible_at_ms));
        Some(visible_at_ms.unwrap_or(now_ms).min(now_ms))
    }

    /// Makes delayed messages visible whose time has come, and ends expired locks.
    pub fn advance(&mut self, now_ms: u64) {
        while let Some(&(until_ms, token)) = self.expiries.first()
            && until_ms <= now_ms
        {
            let (instance, fetched) = self.unlock(token).expect("every expiry belongs to a lock");
            self.show(&instance, fetched, now_ms);
        }
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now_ms
        {
            let ((_, message_id), instance) = entry.remove_entry();
            self.depths.delayed -= 1;
            let queue = self.instances.get_mut(&instance).expect("a delayed message has an instance");
            let message = queue.delayed.remove(&message_id).expect("the delayed index names messages");
            self.show(&instance, [(message_id, *message)], now_ms);
        }
    }

    /// The next time at which [`Self::advance`] has something to do.
    pub fn next_change_ms(&self) -> Option<u64> {
        let delayed = self.delayed.first_key_value().map(|((visible_at_ms, _), _)| *visible_at_ms);
        earliest(delayed, self.expiries.first().map(|(until_ms, _)| *until_ms))
    }

    /// Number of instances that a fetch with this filter could lock now.
    pub fn ready_count(&self, filter: Option<&DispatcherCapabilityFilter>) -> usize {
        self.matching(filter).map(BTreeMap::len).sum()
    }

    /// Locks the ready instance with the oldest visible message and takes all its visible messages.
    pub fn take_next(
        &mut self,
        filter: Option<&DispatcherCapabilityFilter>,
        until_ms: u64,
        tokens: &mut Sequence,
    ) -> Option<FetchedBatch> {
        let heads = self.matching(filter).filter_map(BTreeMap::first_key_value);
        let instance = heads.min_by_key(|(message_id, _)| **message_id).map(|(_, id)| Arc::clone(id))?;
        let queue = self.instances.get_mut(&instance).expect("a ready instance has messages");
        let mut fetched = std::mem::take(&mut queue.visible);
        fetched.sort();
        let mut attempt_count = 0;
        let mut messages = Vec::with_capacity(fetched.iter().len());
        for (message_id, message) in fetched.iter_mut() {
            message.attempts = message.attempts.saturating_add(1);
            attempt_count = attempt_count.max(message.attempts);
            messages.push(QueuedMessage { message_id, body: message.body.clone() });
        }
        self.depths.visible -= messages.len() as u64;
        self.depths.locked += messages.len() as u64;
        let lock_token = LockToken(tokens.take());
        queue.lock = Some(InstanceLock { token: lock_token, until_ms, fetched });
        self.locks.insert(lock_token, Arc::clone(&instance));
        self.expiries.insert((until_ms, lock_token));
        self.settle(&instance);
        Some(FetchedBatch { instance, messages, lock_token, attempt_count })
    }

    /// The instance that the token locks.
    pub fn locked_instance(&self, token: LockToken) -> Option<&Arc<str>> {
        self.locks.get(&token)
    }

    /// Whether an instance has no lock, no visible message and no delay.
    pub fn is_at_rest(&self, instance: &str, now_ms: u64) -> bool {
        self.instances.get(instance).is_none_or(|queue| {
            queue.lock.is_none() && queue.visible.is_empty() && queue.not_before_ms <= now_ms
        })
    }

    /// Removes the fetched messages, and the lock unless it is kept. Returns their ids; `None` if the
    /// token is not valid.
    pub fn consume(
        &mut self,
        token: LockToken,
        after: AfterAck,
    ) -> Option<impl Iterator<Item = u64> + use<>> {
        let instance = Arc::clone(self.locks.get(&token)?);
        let fetched = match after {
            AfterAck::Release => self.unlock(token)?.1,
            AfterAck::KeepLock => {
                let lock = self.lock_mut(&instance);
                let fetched = std::mem::take(&mut lock.fetched);
                self.depths.locked -= fetched.len();
                fetched
            }
        };
        let queue = self.instances.get_mut(&instance).expect("a locked instance is in the queue");
        for (message_id, message) in fetched.iter() {
            queue.unlink(message_id, message.timer);
        }
        self.settle(&instance);
        Some(fetched.into_iter().map(|(message_id, _)| message_id))
    }

    /// Abandons the fetched messages; they are visible at `visible_at_ms`. `None` if the token is not
    /// valid.
    pub fn abandon(
        &mut self,
        token: LockToken,
        visible_at_ms: u64,
        attempt: Attempt,
        now_ms: u64,
    ) -> Option<()> {
        let (instance, mut fetched) = self.unlock(token)?;
        for (_, message) in fetched.iter_mut() {
            message.attempts = attempt.settle(message.attempts);
            message.visible_at_ms = visible_at_ms;
        }
        if visible_at_ms > now_ms {
            self.hide(&instance, visible_at_ms);
        }
        self.show(&instance, fetched, now_ms);
        Some(())
    }

    /// Delays all messages of an instance, for a store that was restarted after the batch of the instance
    /// was abandoned.
    pub fn hold_back(&mut self, instance: &str, until_ms: u64) {
        let Some((id, _)) = self.instances.get_key_value(instance) else { return };
        let id = Arc::clone(id);
        self.hide(&id, until_ms);
        self.settle(&id);
    }

    /// Delays all messages of an instance, so that none overtakes an abandoned batch.
    fn hide(&mut self, instance: &Arc<str>, until_ms: u64) {
        let queue = self.instances.get_mut(instance).expect("the caller found the instance in the queue");
        queue.not_before_ms = until_ms;
        self.depths.visible -= queue.visible.len();
        self.depths.delayed += queue.visible.len();
        let shown = std::mem::take(&mut queue.visible);
        let shown = shown.into_iter().map(|(message_id, message)| (message_id, Box::new(message)));
        let early = queue.delayed.extract_if(.., |_, message| message.visible_at_ms < until_ms);
        let early: Vec<(u64, Box<Message>)> = early.collect();
        for (message_id, message) in &early {
            self.delayed.remove(&(message.visible_at_ms, *message_id));
        }
        for (message_id, mut message) in shown.chain(early) {
            message.visible_at_ms = until_ms;
            self.delayed.insert((until_ms, message_id), Arc::clone(instance));
            queue.delayed.insert(message_id, message);
        }
    }

    /// Moves the end of a lock. `None` if the token is not valid.
    pub fn renew(&mut self, token: LockToken, until_ms: u64) -> Option<()> {
        let instance = Arc::clone(self.locks.get(&token)?);
        let lock = self.lock_mut(&instance);
        let ended_at_ms = std::mem::replace(&mut lock.until_ms, until_ms);
        self.expiries.remove(&(ended_at_ms, token));
        self.expiries.insert((until_ms, token));
        Some(())
    }

    /// Removes a timer of an instance, except from a fetched batch, whose messages are removed by the ack
    /// that cancels. Unknown timers are ignored. Returns the ids of the removed messages.
    pub fn cancel_timer(&mut self, instance: &str, timer: TimerIdentifier) -> Vec<u64> {
        let Some((id, queue)) = self.instances.get_key_value(instance) else { return Vec::new() };
        let (id, same_timer) = (Arc::clone(id), (timer, 0)..=(timer, u64::MAX));
        let mut message_ids: Vec<u64> =
            queue.timers.range(same_timer).map(|&(_, message_id)| message_id).collect();
        let queue = self.instances.get_mut(&id).expect("found just above");
        message_ids.retain(|&message_id| {
            if queue.visible.remove(message_id).is_some() {
                self.depths.visible -= 1;
            } else if let Some(message) = queue.delayed.remove(&message_id) {
                self.depths.delayed -= 1;
                self.delayed.remove(&(message.visible_at_ms, message_id));
            } else {
                return false;
            }
            queue.unlink(message_id, Some(timer));
            true
        });
        self.settle(&id);
        message_ids
    }

    /// Removes all timers of an instance and ends its lock, without counting the fetch; the messages under
    /// the lock become visible. Returns the ids of the removed messages.
    pub fn reset(&mut self, instance: &str, now_ms: u64) -> Vec<u64> {
        let Some(queue) = self.instances.get(instance) else { return Vec::new() };
        if let Some(token) = queue.lock.as_ref().map(|lock| lock.token) {
            // No message of the batch is delayed, so the times do not matter.
            let _held = self.abandon(token, now_ms, Attempt::Ignored, now_ms);
        }
        self.end_delay(instance, now_ms);
        let Some(queue) = self.instances.get(instance) else { return Vec::new() };
        let timers: BTreeSet<TimerIdentifier> = queue.timers.iter().map(|(timer, _)| *timer).collect();
        timers.into_iter().flat_map(|timer| self.cancel_timer(instance, timer)).collect()
    }

    /// Ends the delay that an abandoned batch has caused.
    fn end_delay(&mut self, instance: &str, now_ms: u64) {
        let Some(queue) = self.instances.get_mut(instance) else { return };
        let until_ms = std::mem::take(&mut queue.not_before_ms);
        if until_ms <= now_ms {
            return;
        }
        let hidden = queue.delayed.iter().filter(|(_, message)| message.visible_at_ms == until_ms);
        let hidden: Vec<u64> = hidden.map(|(message_id, _)| *message_id).collect();
        for message_id in hidden {
            self.reschedule(message_id, until_ms, now_ms, now_ms);
        }
    }

    /// Pins an instance, for its current execution, to another version.
    pub fn set_pin(&mut self, instance: &Arc<str>, pin: Option<&Version>) {
        let Some(queue) = self.instances.get_mut(instance) else { return };
        if queue.pin.as_ref() == pin {
            return;
        }
        if let Some(ready_key) = queue.ready_key.take() {
            remove_ready(&mut self.ready, &queue.pin, ready_key);
        }
        queue.pin = pin.cloned();
        self.settle(instance);
    }

    /// Removes all messages and the lock of an instance; returns the ids of the messages.
    pub fn remove_instance(&mut self, instance: &str) -> Vec<u64> {
        let Some(queue) = self.instances.remove(instance) else { return Vec::new() };
        if let Some(ready_key) = queue.ready_key {
            remove_ready(&mut self.ready, &queue.pin, ready_key);
        }
        for (message_id, message) in &queue.delayed {
            self.delayed.remove(&(message.visible_at_ms, *message_id));
        }
        self.depths.visible -= queue.visible.len();
        self.depths.delayed -= queue.delayed.len() as u64;
        let mut removed: Vec<u64> = queue.visible.ids().chain(queue.delayed.into_keys()).collect();
        if let Some(lock) = queue.lock {
            self.locks.remove(&lock.token);
            self.expiries.remove(&(lock.until_ms, lock.token));
            self.depths.locked -= lock.fetched.len();
            removed.extend(lock.fetched.ids());
        }
        removed
    }

    /// Id of the last message that was enqueued.
    pub fn last_message_id(&self) -> u64 {
        self.message_ids.last()
    }

    /// Every message under a lock, with its attempts.
    pub fn locked(&self) -> impl Iterator<Item = (u64, u32)> {
        self.locks.keys().flat_map(|token| self.fetched(*token))
    }

    /// Every message with its state, locked or not, by id.
    pub fn content(&self, taken_at_ms: u64) -> Vec<MessageContent> {
        let mut content: Vec<MessageContent> = Vec::new();
        for (instance, queue) in &self.instances {
            let locked = queue.lock.iter().flat_map(|lock| lock.fetched.iter());
            let delayed = queue.delayed.iter().map(|(id, message)| (*id, &**message));
            for (id, message) in queue.visible.iter().chain(delayed).chain(locked) {
                let is_start = queue.guarded_start == Some(id);
                let plain = OrchestratorMessage {
                    instance: instance.as_ref().to_owned(),
                    visible_at_ms: None,
                    timer: message.timer,
                    guard: if is_start { StartGuard::IfAbsent } else { StartGuard::None },
                    body: message.body.clone(),
                };
                let visible_at_ms = message.visible_at_ms;
                let standing = Standing { id, visible_at_ms, attempts: message.attempts };
                let mut standing = MessageContent::standing(standing, plain, taken_at_ms);
                standing.holds_instance = visible_at_ms > taken_at_ms && visible_at_ms == queue.not_before_ms;
                content.push(standing);
            }
        }
        content.sort_unstable_by_key(|message| message.id);
        content
    }

    /// Number of messages in each state.
    pub fn depths(&self) -> Depths {
        self.depths
    }

    fn matching<'a>(
        &'a self,
        filter: Option<&'a DispatcherCapabilityFilter>,
    ) -> impl Iterator<Item = &'a BTreeMap<u64, Arc<str>>> {
        let passes =
            move |pin: &Option<Version>| filter.is_none_or(|filter| filter.is_compatible(pin.as_ref()));
        self.ready.iter().filter(move |(pin, _)| passes(pin)).map(|(_, instances)| instances)
    }

    fn lock_mut(&mut self, instance: &Arc<str>) -> &mut InstanceLock {
        let queue = self.instances.get_mut(instance).expect("a locked instance is in the queue");
        queue.lock.as_mut().expect("a lock token belongs to a lock")
    }

    /// Ends a lock and returns its messages. The caller places them and settles the instance.
    fn unlock(&mut self, token: LockToken) -> Option<(Arc<str>, Messages)> {
        let instance = self.locks.remove(&token)?;
        let queue = self.instances.get_mut(&instance).expect("a locked instance is in the queue");
        let lock = queue.lock.take().expect("a lock token belongs to a lock");
        self.expiries.remove(&(lock.until_ms, token));
        self.depths.locked -= lock.fetched.len();
        Some((instance, lock.fetched))
    }

    /// Adds messages to the visible or the delayed ones, by their time.
    fn show(&mut self, instance: &Arc<str>, messages: impl IntoIterator<Item = (u64, Message)>, now_ms: u64) {
        let queue = self.instances.get_mut(instance).expect("the caller found the instance in the queue");
        for (message_id, mut message) in messages {
            message.visible_at_ms = message.visible_at_ms.max(queue.not_before_ms);
            if message.visible_at_ms <= now_ms {
                queue.visible.add(message_id, message);
                self.depths.visible += 1;
            } else {
                self.delayed.insert((message.visible_at_ms, message_id), Arc::clone(instance));
                queue.delayed.insert(message_id, Box::new(message));
                self.depths.delayed += 1;
            }
        }
        self.settle(instance);
    }

    /// Updates the ready order after a change of an instance, and drops an instance without messages and
    /// lock.
    fn settle(&mut self, instance: &Arc<str>) {
        let Some(queue) = self.instances.get_mut(instance) else { return };
        let wanted = queue.wanted_ready_key();
        if queue.ready_key != wanted {
            if let Some(ready_key) = queue.ready_key {
                remove_ready(&mut self.ready, &queue.pin, ready_key);
            }
            if let Some(ready_key) = wanted {
                self.ready.entry(queue.pin.clone()).or_default().insert(ready_key, Arc::clone(instance));
            }
            queue.ready_key = wanted;
        }
        if queue.is_idle() {
            self.instances.remove(instance);
        }
    }
}

fn remove_ready(
    ready: &mut BTreeMap<Option<Version>, BTreeMap<u64, Arc<str>>>,
    pin: &Option<Version>,
    ready_key: u64,
) {
    let group = ready.get_mut(pin).expect("a ready instance is in the group of its pin");
    group.remove(&ready_key);
    if group.is_empty() {
        ready.remove(pin);
    }
}

#[cfg(test)]
#[path = "orchestrator_queue_tests.rs"]
mod tests;
