//! Messages to an instance that has ended, and executions that begin after another one of the same
//! instance without being requested by it: restarts, replacements, and children of a parent that
//! began again.

use super::batch::Batch;
use super::begin::Begin;
use super::codeless::parent_of;
use super::turn::{Turn, TurnError};
use crate::event::{Event, ParentLink};
use crate::failure::Failure;
use crate::replay::{ExecutionId, find_started, withdraw_open};
use crate::store::{ErrorKind, OrchestrationItem, OrchestratorMessage};
use crate::work_item::{StartOrchestration, WorkItem};

/// Why an execution that was cut off has no end of its own.
pub(crate) const REPLACED: &str = "the instance was started again by force";

/// What the messages to an ended instance amount to.
pub(super) struct ReceivedAfterEnd {
    /// The parent that the instance had, if that matters.
    pub(super) own_parent: Option<ParentLink>,
    /// The execution that begins the child again.
    pub(super) restart: Option<Begin>,
}

/// Receives messages after the end. They have no effect, except a start by a later execution of the
/// same parent: that begins the child again. Messages that were sent just before the end are parked
/// as dead letters.
pub(super) async fn receive(
    turn: &Turn<'_>,
    item: &OrchestrationItem,
    batch: &mut Batch,
) -> ReceivedAfterEnd {
    let mut own_parent = None;
    if !batch.answer_starts(&item.instance, None).is_empty() {
        own_parent = parent_of(&turn.readable_history(item).await);
    }
    let late = std::mem::take(&mut batch.others);
    batch.park_late(turn, &late);
    let start = own_parent
        .as_ref()
        .and_then(|own_parent| batch.take_start(|start| begins_child_again(own_parent, start)));
    let restart =
        start.map(|start| Begin::first(*start, item.execution_id + 1, turn.shared().ids.new_seed()));
    ReceivedAfterEnd { own_parent, restart }
}

/// Whether a start comes from a later execution of the parent that an ended child had.
fn begins_child_again(own_parent: &ParentLink, start: &StartOrchestration) -> bool {
    start.parent.as_ref().is_some_and(|parent| {
        parent.instance == own_parent.instance && parent.execution_id > own_parent.execution_id
    })
}

/// What the previous execution still owes to others if a restart cut it off: its parent waits for
/// an answer, and its children run for nothing. Its activities and timers were removed by the
/// commit that cut it off.
pub(super) async fn owed_by_previous_execution(
    turn: &Turn<'_>,
    item: &OrchestrationItem,
) -> Result<Vec<OrchestratorMessage>, TurnError> {
    let mut execution_id = item.execution_id;
    // An execution that was replaced before it began has no events, and the one that it replaced
    // may owe something.
    let history = loop {
        execution_id -= 1;
        if execution_id == 0 {
            return Ok(Vec::new());
        }
        let stored = match turn.shared().store.read_with_execution(&item.instance, execution_id).await {
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
