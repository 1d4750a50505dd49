//! The quarantine: instances whose last change is not on disk, while the store refuses writes.
//!
//! A batch that finds no room, or whose sync fails, stays in memory: it may still be written, and a
//! crash may lose it. Its changes are uncertain, so its instances are quarantined: reads of them fail,
//! and listings report them as unreadable. Commits are refused before they change anything, so the
//! quarantine has the instances of the batches that were pending when the refusal began.

use hashbrown::HashSet;
use segno::store::{QueuePlace, QueuedActivity, StartGuard};

use crate::error::RowError;
use crate::log::batch::{Batch, Logged};
use crate::rows::codec::Undecodable;
use crate::rows::instance_row::{ExecutionRow, InstanceRow};
use crate::rows::keys::{self, Table};
use crate::rows::queue_row;
use crate::state::machine::State;
use crate::state::pending::HELD_MS;

/// Quarantined instances, and the reason.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    instances: HashSet<Box<str>>,
    reason: String,
}

impl Quarantine {
    /// An empty quarantine, with the condition of a store that refuses writes.
    pub(crate) fn in_condition(condition: &str) -> Self {
        let reason = format!(
            "the last change of the instance is not on disk yet, and the store takes no writes: {condition}"
        );
        Quarantine { instances: HashSet::new(), reason }
    }

    /// Adds an instance.
    pub(crate) fn add(&mut self, instance: &str) {
        if !self.has(instance) {
            self.instances.insert(Box::from(instance));
        }
    }

    /// Adds the instances that a batch changes, deletes or starts.
    pub(crate) fn add_batch(&mut self, batch: &Batch) -> Result<(), Undecodable> {
        for change in batch.changes()? {
            match change {
                Logged::Put(key, value) if keys::queued_id(Table::OrchestratorQueue, &key).is_some() => {
                    let message = queue_row::decode_message(&value)?;
                    // Other messages are seen by nothing that reads their instance.
                    if message.guard == StartGuard::IfAbsent {
                        self.add(&message.instance);
                    }
                }
                Logged::Put(key, _) | Logged::Delete(key) => {
                    keys::instance_id(&key).into_iter().for_each(|instance| self.add(instance));
                }
            }
        }
        Ok(())
    }

    /// Whether no instance is quarantined.
    pub(crate) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Whether this instance is quarantined.
    pub(crate) fn has(&self, instance: &str) -> bool {
        self.instances.contains(instance)
    }

    /// The instances, in no order.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &str> {
        self.instances.iter().map(|instance| &**instance)
    }

    /// The reason of the quarantine, without a path of the machine.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// Fails for a quarantined instance.
    pub(crate) fn check(&self, instance: &str) -> Result<(), RowError> {
        match self.has(instance) {
            true => Err(RowError::NotDurable(self.reason.clone())),
            false => Ok(()),
        }
    }
}

impl State {
    /// Quarantines the instances of all batches that are not durable, because the store refuses writes. The
    /// writer may have the batch that is being written: only the instances that it changes are known.
    pub(crate) fn quarantine_pending(&mut self, condition: &str, writing: Option<&Batch>) {
        let mut quarantine = Quarantine::in_condition(condition);
        self.pending.changed_instances().for_each(|instance| quarantine.add(instance));
        for batch in writing.into_iter().chain([&self.tables.batch]) {
            quarantine.add_batch(batch).expect("a batch holds what this store has encoded");
        }
        self.quarantine = quarantine;
    }

    /// The states of the activities of an instance. One that is not durable yet, or is locked for a fetch
    /// that has not been answered, is reported as ready, or as delayed until its time.
    pub(crate) fn queued_activities(
        &self,
        instance: &str,
        now_ms: u64,
    ) -> Result<Vec<QueuedActivity>, RowError> {
        self.quarantine.check(instance)?;
        let mut found = self.work.of_instance(instance);
        // Both go through the activities of the instance in the same order.
        let mut delayed = self.work.delayed_of(instance).into_iter();
        for activity in &mut found {
            let place = &mut activity.work.place;
            match place {
                QueuePlace::Delayed { .. } => {
                    let held = delayed.next().filter(|item| item.visible_at_ms == HELD_MS);
                    let shown_at_ms = held.map(|item| self.pending.held_until_ms(item.id).unwrap_or(now_ms));
                    match shown_at_ms {
                        Some(at_ms) if at_ms > now_ms => {
                            *place = QueuePlace::Delayed { visible_at_ms: at_ms }
                        }
                        Some(_) => *place = QueuePlace::Ready,
                        None => {}
                    }
                }
                QueuePlace::Locked { until_ms: HELD_MS, .. } => {
                    // The delivery that is counted has not been made.
                    activity.work.attempt_count = activity.work.attempt_count.saturating_sub(1);
                    *place = QueuePlace::Ready;
                }
                QueuePlace::Ready | QueuePlace::Locked { .. } => {}
            }
        }
        Ok(found)
    }

    /// The row of an instance, unless that is quarantined.
    pub(crate) fn instance(&self, instance: &str) -> Result<Option<InstanceRow>, RowError> {
        self.quarantine.check(instance)?;
        self.tables.instance(instance)
    }

    /// The row of any execution, unless its instance is quarantined.
    pub(crate) fn execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionRow>, RowError> {
        self.quarantine.check(instance)?;
        self.tables.execution(instance, execution_id)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use segno::store::OrchestratorMessage;

    use super::*;

    #[test]
    fn a_batch_quarantines_the_instances_that_it_changes_deletes_and_starts() {
        let message = |instance: &str, guard| {
            let message = OrchestratorMessage { guard, ..OrchestratorMessage::new(instance, "body") };
            queue_row::encode_message(&message, 7)
        };
        let queued = |id| keys::queued(Table::OrchestratorQueue, id);
        let mut batch = Batch::default();
        batch.put(&keys::instance("changed"), b"row");
        batch.delete(&keys::instance("deleted"));
        batch.put(&queued(1), &message("started", StartGuard::IfAbsent));
        batch.put(&queued(2), &message("signalled", StartGuard::IfPresent));
        batch.delete(&queued(3));
        batch.put(&keys::record("kind", "id"), &Bytes::from_static(b"record"));
        let mut quarantine = Quarantine::in_condition("its disk is full");
        quarantine.add_batch(&batch).expect("it was just encoded");
        let mut found: Vec<&str> = quarantine.instances().collect();
        found.sort_unstable();
        assert_eq!(found, ["changed", "deleted", "started"]);
        assert!(
            matches!(quarantine.check("changed"), Err(RowError::NotDurable(why)) if why.contains("disk is full"))
        );
        assert_eq!(quarantine.check("signalled"), Ok(()));
    }
}
