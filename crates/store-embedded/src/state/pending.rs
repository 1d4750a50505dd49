//! Pending batches, which are not durable yet: the one that is being written and the one that is being
//! filled.
//!
//! Activities of a batch, and messages that a turn or a batch of records sends, are in their queues, so
//! that they can be cancelled and counted, but held back until the batch is durable: no fetch returns
//! them. Messages from clients and of finished activities are visible at once, unless their instance
//! has pending changes. A fetch of an instance whose last commit is pending waits for that commit.

use std::sync::Arc;

use hashbrown::HashSet;
use segno::store::core::worker_queue::ItemLock;

/// The time until which entries are held back.
pub(crate) const HELD_MS: u64 = u64::MAX;

/// Both pending batches. They are numbered like the commits of the log.
#[derive(Debug)]
pub(crate) struct PendingBatches {
    filling: PendingBatch,
    writing: Option<PendingBatch>,
}

/// The changes that become visible when a batch is durable.
#[derive(Debug, Default)]
pub(crate) struct PendingBatch {
    sequence: u64,
    instances: HashSet<Arc<str>>,
    /// Instances with messages that are held back, except those that changed.
    awaiting: HashSet<Box<str>>,
    is_requested: bool,
    /// Ids of messages with the time from which they are visible.
    pub(crate) messages: Vec<(u64, u64)>,
    /// Ids of activities with the time from which they are visible.
    pub(crate) items: Vec<(u64, u64)>,
    /// Activities that were locked for a fetch on arrival.
    pub(crate) leased: Vec<LeasedItem>,
}

/// An activity that was locked for a fetch in the batch that contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeasedItem {
    pub(crate) item_id: u64,
    /// Number of the fetch.
    pub(crate) lessee: u64,
    /// The lock in its row.
    pub(crate) lock: ItemLock,
}

impl PendingBatch {
    fn affects(&self, instance: &str) -> bool {
        self.instances.contains(instance) || self.awaiting.contains(instance)
    }
}

impl PendingBatches {
    /// No pending changes; the next batch has this number.
    pub(crate) fn new(sequence: u64) -> Self {
        PendingBatches { filling: PendingBatch { sequence, ..PendingBatch::default() }, writing: None }
    }

    /// The batch that is being filled.
    pub(crate) fn filling_mut(&mut self) -> &mut PendingBatch {
        &mut self.filling
    }

    /// Number of the batch that is being filled.
    pub(crate) fn filling_sequence(&self) -> u64 {
        self.filling.sequence
    }

    /// Holds back an activity that was locked on arrival; it will be visible from this time. `false` if it
    /// was not locked, or is durable already.
    pub(crate) fn hold_leased(&mut self, item_id: u64, visible_at_ms: u64) -> bool {
        let mut stages = std::iter::once(&mut self.filling).chain(&mut self.writing);
        stages.any(|stage| {
            let place = stage.leased.iter().position(|leased| leased.item_id == item_id);
            let was_leased = place.map(|place| stage.leased.swap_remove(place)).is_some();
            if was_leased {
                stage.items.push((item_id, visible_at_ms));
            }
            was_leased
        })
    }

    /// Makes a held-back activity visible as soon as it is durable. `false` if that was due anyway.
    pub(crate) fn expedite_held(&mut self, item_id: u64, now_ms: u64) -> bool {
        let stages = std::iter::once(&mut self.filling).chain(&mut self.writing);
        let mut items = stages.flat_map(|stage| &mut stage.items);
        let held = items.find(|(id, visible_at_ms)| *id == item_id && *visible_at_ms > now_ms);
        held.map(|(_, visible_at_ms)| *visible_at_ms = now_ms).is_some()
    }

    /// The time from which a held-back activity is visible, once it is durable.
    pub(crate) fn held_until_ms(&self, item_id: u64) -> Option<u64> {
        let stages = std::iter::once(&self.filling).chain(&self.writing);
        let mut items = stages.flat_map(|stage| &stage.items);
        items.find(|(id, _)| *id == item_id).map(|(_, visible_at_ms)| *visible_at_ms)
    }

    /// Instances that changed in either batch; one may be returned twice.
    pub(crate) fn changed_instances(&self) -> impl Iterator<Item = &str> {
        let stages = std::iter::once(&self.filling).chain(&self.writing);
        stages.flat_map(|stage| stage.instances.iter().map(|instance| &**instance))
    }

    /// The instance changed in the batch that is being filled.
    pub(crate) fn touch(&mut self, instance: &Arc<str>) {
        if !self.filling.instances.contains(instance) {
            self.filling.instances.insert(Arc::clone(instance));
        }
    }

    /// A message for the instance is held back until the batch that is being filled is durable.
    pub(crate) fn hold_back(&mut self, instance: &str, message_id: u64, visible_at_ms: u64) {
        let stage = &mut self.filling;
        stage.messages.push((message_id, visible_at_ms));
        if !stage.affects(instance) {
            stage.awaiting.insert(Box::from(instance));
        }
    }

    /// Messages that are held back, oldest first, with the time from which they are visible.
    pub(crate) fn held_messages(&self) -> Vec<(u64, u64)> {
        let oldest_first = self.writing.iter().chain(std::iter::once(&self.filling));
        oldest_first.flat_map(|stage| stage.messages.iter().copied()).collect()
    }

    /// Whether the instance has pending changes: a commit, or a message that is held back.
    pub(crate) fn affects(&self, instance: &str) -> bool {
        self.filling.affects(instance) || self.writing.as_ref().is_some_and(|stage| stage.affects(instance))
    }

    /// Requests the write of the batch that is being filled, as a caller waits for it. Returns its number.
    pub(crate) fn request_write(&mut self) -> u64 {
        self.filling.is_requested = true;
        self.filling.sequence
    }

    /// The last batch that is not being filled.
    pub(crate) fn last(&self) -> u64 {
        self.filling.sequence - 1
    }

    /// The last batch that is durable.
    pub(crate) fn durable(&self) -> u64 {
        self.writing().unwrap_or(self.filling.sequence) - 1
    }

    /// Whether a caller waits for the batch that is being filled.
    pub(crate) fn is_write_requested(&self) -> bool {
        self.filling.is_requested
    }

    /// Number of the batch that is being written.
    pub(crate) fn writing(&self) -> Option<u64> {
        self.writing.as_ref().map(|stage| stage.sequence)
    }

    /// The newest batch with a waiting caller: everything visible is in it or before it.
    pub(crate) fn newest(&self) -> Option<u64> {
        if self.filling.is_requested { Some(self.filling.sequence) } else { self.writing() }
    }

    /// The batch that holds the last commit of an instance, if it is not durable.
    pub(crate) fn of_instance(&self, instance: &str) -> Option<u64> {
        let mut newest_first = std::iter::once(&self.filling).chain(&self.writing);
        newest_first.find(|stage| stage.instances.contains(instance)).map(|stage| stage.sequence)
    }

    /// The batch that was being filled is being written now. Returns its number.
    pub(crate) fn begin_write(&mut self) -> u64 {
        let sequence = self.filling.sequence;
        let next = PendingBatch { sequence: sequence + 1, ..PendingBatch::default() };
        self.writing = Some(std::mem::replace(&mut self.filling, next));
        sequence
    }

    /// The batch that was being written is durable. Returns what becomes visible.
    pub(crate) fn end_write(&mut self) -> Option<PendingBatch> {
        self.writing.take()
    }
}
