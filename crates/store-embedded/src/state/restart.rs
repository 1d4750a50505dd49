//! The next execution of an instance that exists.

use std::sync::Arc;

use segno::store::{ExecutionStatus, NextExecution, ProviderError};

use crate::rows::instance_row::InstanceRow;
use crate::state::commit::{InstanceCommit, MessageTarget, PriorRows, Visibility};
use crate::state::machine::State;
use crate::state::pending::HELD_MS;

impl State {
    /// Begins the next execution of an instance.
    pub(crate) fn begin_next(&mut self, next: NextExecution, now_ms: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "begin_next_execution";
        let instance: Arc<str> = Arc::from(next.instance());
        let row = self.tables.busy_instance(&instance).map_err(|error| error.at(OPERATION))?;
        let has_start = self.orchestrations.has_guarded_start(&instance);
        match row.as_ref().filter(|row| row.name.is_some() || has_start).map(|row| &row.current) {
            Some(current) if current.incarnation == Some(next.incarnation) => return Ok(()),
            Some(current) => next.check(current.execution_id, current.status)?,
            None if has_start => next.check(1, ExecutionStatus::Pending)?,
            None => return Err(next.absent()),
        }
        self.show_held(&instance, now_ms);
        let timers = self.orchestrations.reset(&instance, now_ms);
        self.forget_messages(timers);
        let activities = self.work.remove_instance(&instance);
        self.forget_items(activities);
        let row = self.put_next_execution(&instance, row, &next, now_ms);
        // Shown at once, behind everything that waits: a fetch waits for the commit of the instance, which is this one.
        self.enqueue_for(next.start, MessageTarget::from(Some(&*row)), Visibility::AtOnce, now_ms)
    }

    /// Ends the current execution if it has not ended, creates the next one, and reports both as one change.
    fn put_next_execution(
        &mut self,
        instance: &Arc<str>,
        row: Option<Arc<InstanceRow>>,
        next: &NextExecution,
        now_ms: u64,
    ) -> Arc<InstanceRow> {
        let mut changed = row.as_deref().cloned();
        let ended = changed.as_ref().is_some_and(|row| row.current.has_ended());
        let ending = next.unended.metadata().filter(|_| !ended);
        let both = [(next.after_execution_id, ending), (next.after_execution_id + 1, Some(next.metadata()))];
        for (execution_id, metadata) in both {
            let Some(metadata) = metadata else { continue };
            let commit = InstanceCommit { execution_id, events: &[], metadata: &metadata, now_ms };
            changed = self.change_row(instance, PriorRows { instance: changed, earlier: None }, commit);
        }
        let mut changed = changed.unwrap_or_else(|| InstanceRow::new(next.after_execution_id + 1, now_ms));
        changed.version.clone_from(&next.orchestration_version);
        let row = self.tables.put_instance(instance, row.as_deref(), changed);
        self.committed(instance, &row);
        row
    }

    /// Shows the messages of an instance that are held back until their batch is durable. They may be: the fetch that takes them
    /// waits for the commit that the caller is about to make, which comes after them.
    fn show_held(&mut self, instance: &str, now_ms: u64) {
        for (message_id, visible_at_ms) in self.pending.held_messages() {
            if self.orchestrations.delays(instance, message_id) {
                self.orchestrations.reschedule(message_id, HELD_MS, visible_at_ms, now_ms);
            }
        }
    }
}
