//! What is not durable yet: the batch that is being written and the one that is being filled.
//!
//! Activities of a batch, and messages that a turn or a batch of records sends, are in their queues, so that they can be
//! cancelled and counted, but held back until the batch is durable: no fetch sees them. Messages from clients and of
//! finished activities are shown at once, unless something of their instance is on its way. A fetch of an instance whose
//! last commit is on its way waits for that commit.

use std::sync::Arc;

use hashbrown::HashSet;
use segno::store::memory::worker_queue::ItemLock;

/// The time until which entries are held back.
pub const HELD_MS: u64 = u64::MAX;

/// Both batches. They are numbered like the commits of the log.
#[derive(Debug)]
pub struct Unsynced {
    filling: Stage,
    writing: Option<Stage>,
}

/// What becomes visible when a batch is durable.
#[derive(Debug, Default)]
pub struct Stage {
    sequence: u64,
    instances: HashSet<Arc<str>>,
    /// Instances with messages that are held back, those that changed left out.
    awaiting: HashSet<Box<str>>,
    wanted: bool,
    /// Version of the first record that was put. Versions ascend.
    first_version: Option<u64>,
    has_deleted_records: bool,
    /// Ids of messages with the time from which they are visible.
    pub messages: Vec<(u64, u64)>,
    /// Ids of activities with the time from which they are visible.
    pub items: Vec<(u64, u64)>,
    /// Activities that were locked for a fetch as they came.
    pub leased: Vec<LeasedItem>,
}

/// An activity that was locked for a fetch in the batch that has it.
#[derive(Debug, Clone, Copy)]
pub struct LeasedItem {
    pub item_id: u64,
    /// Number of the fetch.
    pub lessee: u64,
    /// The lock as its row has it.
    pub lock: ItemLock,
}

impl Stage {
    /// A record was put with this version, or deleted.
    pub fn note_record(&mut self, version: Option<u64>) {
        match version {
            Some(version) => self.first_version = self.first_version.or(Some(version)),
            None => self.has_deleted_records = true,
        }
    }

    /// Whether the version of a record, or its absence, may be from this batch.
    fn may_have_record(&self, version: Option<u64>) -> bool {
        match version {
            Some(version) => self.first_version.is_some_and(|first| first <= version),
            None => self.has_deleted_records,
        }
    }

    fn concerns(&self, instance: &str) -> bool {
        self.instances.contains(instance) || self.awaiting.contains(instance)
    }
}

impl Unsynced {
    /// Nothing is waiting; the next batch has this number.
    pub fn new(sequence: u64) -> Self {
        Unsynced { filling: Stage { sequence, ..Stage::default() }, writing: None }
    }

    /// The batch that is being filled.
    pub fn filling_mut(&mut self) -> &mut Stage {
        &mut self.filling
    }

    /// Number of the batch that is being filled.
    pub fn filling_sequence(&self) -> u64 {
        self.filling.sequence
    }

    /// Makes an activity that was locked as it came one that is held back, visible from this time.
    /// `false` when it was not, or is durable already.
    pub fn hold_leased(&mut self, item_id: u64, visible_at_ms: u64) -> bool {
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

    /// Shows an activity that is held back as soon as it is durable. `false` when it was to be shown then anyway.
    pub fn expedite_held(&mut self, item_id: u64, now_ms: u64) -> bool {
        let stages = std::iter::once(&mut self.filling).chain(&mut self.writing);
        let mut items = stages.flat_map(|stage| &mut stage.items);
        let held = items.find(|(id, visible_at_ms)| *id == item_id && *visible_at_ms > now_ms);
        held.map(|(_, visible_at_ms)| *visible_at_ms = now_ms).is_some()
    }

    /// From when on an activity is shown that is held back, once it is durable.
    pub fn held_until_ms(&self, item_id: u64) -> Option<u64> {
        let stages = std::iter::once(&self.filling).chain(&self.writing);
        let mut items = stages.flat_map(|stage| &stage.items);
        items.find(|(id, _)| *id == item_id).map(|(_, visible_at_ms)| *visible_at_ms)
    }

    /// Instances that changed in either batch; one may come twice.
    pub fn changed_instances(&self) -> impl Iterator<Item = &str> {
        let stages = std::iter::once(&self.filling).chain(&self.writing);
        stages.flat_map(|stage| stage.instances.iter().map(|instance| &**instance))
    }

    /// The instance changed in the batch that is being filled.
    pub fn touch(&mut self, instance: &Arc<str>) {
        if !self.filling.instances.contains(instance) {
            self.filling.instances.insert(Arc::clone(instance));
        }
    }

    /// A message for the instance is held back until the batch that is being filled is durable.
    pub fn hold_back(&mut self, instance: &str, message_id: u64, visible_at_ms: u64) {
        let stage = &mut self.filling;
        stage.messages.push((message_id, visible_at_ms));
        if !stage.concerns(instance) {
            stage.awaiting.insert(Box::from(instance));
        }
    }

    /// Messages that are held back, oldest first, with the time from which they are visible.
    pub fn held_messages(&self) -> Vec<(u64, u64)> {
        let oldest_first = self.writing.iter().chain(std::iter::once(&self.filling));
        oldest_first.flat_map(|stage| stage.messages.iter().copied()).collect()
    }

    /// Whether something of the instance is on its way: a commit, or a message that is held back.
    pub fn concerns(&self, instance: &str) -> bool {
        self.filling.concerns(instance) || self.writing.as_ref().is_some_and(|stage| stage.concerns(instance))
    }

    /// Somebody waits for the batch that is being filled; returns its number.
    pub fn want(&mut self) -> u64 {
        self.filling.wanted = true;
        self.filling.sequence
    }

    /// The last batch that is not being filled.
    pub fn last(&self) -> u64 {
        self.filling.sequence - 1
    }

    /// The last batch that is durable.
    pub fn durable(&self) -> u64 {
        self.writing().unwrap_or(self.filling.sequence) - 1
    }

    /// Whether somebody waits for the batch that is being filled.
    pub fn is_wanted(&self) -> bool {
        self.filling.wanted
    }

    /// Number of the batch that is being written.
    pub fn writing(&self) -> Option<u64> {
        self.writing.as_ref().map(|stage| stage.sequence)
    }

    /// The newest batch that somebody waits for: everything that can be seen now is in it or before it.
    pub fn newest(&self) -> Option<u64> {
        if self.filling.wanted { Some(self.filling.sequence) } else { self.writing() }
    }

    /// The batch that holds the last commit of an instance, if it is not durable.
    pub fn of_instance(&self, instance: &str) -> Option<u64> {
        let mut newest_first = std::iter::once(&self.filling).chain(&self.writing);
        newest_first.find(|stage| stage.instances.contains(instance)).map(|stage| stage.sequence)
    }

    /// The newest batch that what is seen of a record may be from, its version or that it is absent, if that
    /// batch is not durable.
    pub fn of_record(&self, version: Option<u64>) -> Option<u64> {
        let mut newest_first = std::iter::once(&self.filling).chain(&self.writing);
        newest_first.find(|stage| stage.may_have_record(version)).map(|stage| stage.sequence)
    }

    /// The batch that was being filled is being written now. Returns its number.
    pub fn begin_write(&mut self) -> u64 {
        let sequence = self.filling.sequence;
        let next = Stage { sequence: sequence + 1, ..Stage::default() };
        self.writing = Some(std::mem::replace(&mut self.filling, next));
        sequence
    }

    /// The batch that was being written is durable; returns what becomes visible.
    pub fn end_write(&mut self) -> Option<Stage> {
        self.writing.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_from_the_batch_that_put_its_version_or_deletes_records() {
        let mut unsynced = Unsynced::new(7);
        unsynced.filling_mut().note_record(Some(11));
        unsynced.filling_mut().note_record(Some(12));
        assert_eq!([10, 11, 12].map(|version| unsynced.of_record(Some(version))), [None, Some(7), Some(7)]);
        assert_eq!(unsynced.of_record(None), None);
        unsynced.begin_write();
        unsynced.filling_mut().note_record(Some(13));
        unsynced.filling_mut().note_record(None);
        assert_eq!([10, 12, 13].map(|version| unsynced.of_record(Some(version))), [None, Some(7), Some(8)]);
        assert_eq!(unsynced.of_record(None), Some(8));
        unsynced.end_write();
        assert_eq!(unsynced.of_record(Some(12)), None);
    }
}
