//! Postponed starts: the instance is pending, and its start is redelivered at a later time.

use std::sync::Arc;

use super::batch::Batch;
use super::codeless::{CodelessCommit, CodelessTurn};
use super::early::EarlyLog;
use crate::names::START_AT_LABEL;
use crate::store::{OrchestratorMessage, StartGuard};
use crate::work_item::{StartOrchestration, WorkItem};

/// Makes the instance pending until its start is redelivered at `at_ms`. Its messages are recorded.
pub(super) fn until(
    codeless: &CodelessTurn<'_>,
    mut start: StartOrchestration,
    at_ms: u64,
    batch: Batch,
) -> CodelessCommit {
    let CodelessTurn { turn, item, history } = *codeless;
    start.follows_another = false;
    let execution_id = start.execution_id.unwrap_or(item.execution_id);
    let mut log = EarlyLog::new(codeless.appender(execution_id), history);
    let cancelled = log.receive(&batch.others);
    let mut ack = turn.empty_ack(execution_id);
    ack.orchestrator_items = batch.answer_starts(&item.instance, start.parent.as_ref());
    ack.metadata.orchestration_name = Some(start.orchestration.as_str().into());
    ack.metadata.orchestration_version = start.version.as_deref().map(Arc::from);
    ack.metadata.parent_instance_id = start.parent.as_ref().map(|parent| parent.instance.clone());
    let mut labels = start.labels.clone();
    if start.start_at_ms == Some(at_ms) {
        labels.insert(START_AT_LABEL.to_owned(), at_ms.to_string());
    }
    ack.metadata.labels = Some(labels).filter(|labels| !labels.is_empty());
    log.write_status(&mut ack);
    ack.records = batch.records;
    log.write(turn, &mut ack);
    let redelivered = WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(&*item.instance);
    let visible_at_ms = Some(at_ms);
    ack.orchestrator_items.push(OrchestratorMessage {
        visible_at_ms,
        guard: StartGuard::None,
        ..redelivered
    });
    if let Some(reason) = cancelled {
        // The cancellation gets a turn of its own, when the instance is known.
        let cancel = WorkItem::CancelInstance { reason };
        ack.orchestrator_items.push(cancel.for_orchestrator(&*item.instance));
    }
    CodelessCommit { ack, span: None }
}
