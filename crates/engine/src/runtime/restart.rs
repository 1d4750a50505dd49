//! Executions that begin after another one of the same instance without being asked for by it: restarts, replacements, and children
//! of a parent that began again.

use std::sync::Arc;

use super::batch::Batch;
use super::begin::Begin;
use super::commit;
use super::turn::{Stop, Turn, parent_of};
use crate::event::{Event, ParentLink};
use crate::failure::Failure;
use crate::replay::{ExecutionId, find_started, withdraw_open};
use crate::store::{AckOrchestrationItem, ErrorKind, OrchestrationItem, OrchestratorMessage};
use crate::work_item::{StartOrchestration, WorkItem};

/// Why an execution that was cut off has no end of its own.
pub(crate) const REPLACED: &str = "the instance was started again by force";

impl Turn<'_> {
    /// What the execution before still owes to others if a restart cut it off: its parent waits for an answer, and its children run
    /// for nothing. Its activities and timers went in the commit that cut it off.
    pub(super) async fn owed_by_execution_before(
        &self,
        item: &OrchestrationItem,
    ) -> Result<Vec<OrchestratorMessage>, Stop> {
        let mut execution_id = item.execution_id;
        // An execution that was replaced before it began has no events, and what it replaced may owe something.
        let history = loop {
            execution_id -= 1;
            if execution_id == 0 {
                return Ok(Vec::new());
            }
            let stored = match self.shared.store.read_with_execution(&item.instance, execution_id).await {
                Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(Vec::new()),
                stored => stored?,
            };
            if !stored.is_empty() {
                break stored.iter().filter_map(|event| Event::from_stored(event).ok()).collect::<Vec<_>>();
            }
        };
        if history.iter().any(|event| event.kind.is_last()) {
            return Ok(Vec::new());
        }
        let Some((_, started)) = find_started(&history) else { return Ok(Vec::new()) };
        let id = ExecutionId { instance: item.instance.clone(), execution_id };
        let withdrawn = withdraw_open(&id, &history, "was started again");
        let report = started.parent.as_ref().map(|parent| {
            let details = Failure::cancelled(REPLACED);
            let (parent_execution_id, parent_id) = (parent.execution_id, parent.event_id);
            let report = WorkItem::SubOrchFailed { parent_execution_id, parent_id, details };
            report.for_orchestrator(parent.instance.clone())
        });
        Ok(withdrawn.orchestrator_items.into_iter().chain(report).collect())
    }

    /// The instance has ended. Its messages have no effect, except a start by a later execution of the same parent: that begins the
    /// child again. What was sent just before the end is parked where it can be seen.
    pub(super) async fn after_end(&self, item: &OrchestrationItem, mut batch: Batch) -> Result<(), Stop> {
        let mut own_parent = None;
        if !batch.answer_starts(&item.instance, None).is_empty() {
            own_parent = parent_of(&self.readable_history(item).await);
        }
        let late = std::mem::take(&mut batch.others);
        self.park_late(item, &late, &mut batch.records);
        if let Some(own_parent) = &own_parent
            && let Some(start) = batch.take_start(|start| begins_child_again(own_parent, start))
        {
            let begin = Begin::first(*start, item.execution_id + 1, self.shared.ids.new_seed());
            return self.begin_after_end(item, begin, batch).await;
        }
        let mut turn = AckOrchestrationItem::empty(self.token, item.execution_id);
        turn.orchestrator_items = batch.answer_starts(&item.instance, own_parent.as_ref());
        turn.records = batch.records;
        Ok(commit::ack(self.shared, &item.instance, Arc::new(turn), None).await?)
    }
}

/// Whether a start comes from a later execution of the parent that an ended child had.
fn begins_child_again(own_parent: &ParentLink, start: &StartOrchestration) -> bool {
    start.parent.as_ref().is_some_and(|parent| {
        parent.instance == own_parent.instance && parent.execution_id > own_parent.execution_id
    })
}
