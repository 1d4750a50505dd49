//! Instances that cannot be run: their code is not registered here, has diverged from the history,
//! or has exhausted its deliveries. They wait, fail or are paused without running code.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::begin::Begin;
use super::codeless::{Appender, CodelessCommit, CodelessTurn, parent_of};
use super::observer::ExecutionSpan;
use super::turn::TurnError;
use super::unregistered::Verdict;
use super::{after_end, early, postponed};
use crate::clock::duration_ms;
use crate::event::{Event, EventKind, Output};
use crate::failure::Failure;
use crate::replay::{ExecutionId, find_started, status_of, withdraw_open};
use crate::store::{
    AckOrchestrationItem, ExecutionStatus, FetchedHistory, OrchestrationItem, OrchestratorMessage,
    engine_version,
};
use crate::work_item::WorkItem;

/// Delay after which messages of an instance that is paused for nondeterminism are redelivered.
const PAUSED_REDELIVERY: Duration = Duration::from_secs(60);

/// Decides about an instance whose code is not registered here: the failure that ends it, or the
/// wait for another node.
pub(super) fn judge_unregistered(
    codeless: &CodelessTurn<'_>,
    what: &str,
    batch: &Batch,
) -> Result<Failure, TurnError> {
    let CodelessTurn { turn, item, .. } = *codeless;
    // The end needs no code.
    if let Some(reason) = batch.cancellation() {
        return Ok(Failure::cancelled(reason));
    }
    // The age is that of the execution: an event that another node has added makes it young again.
    let position = if early::is_delayed(item) { 0 } else { item.last_event_id };
    let key = format!("{} {position} {}", item.execution_id, item.instance);
    match turn.shared().unregistered.judge(&key, turn.now_ms()) {
        Verdict::Wait(delay) => Err(TurnError::Release {
            delay,
            reason: format!("orchestration {what} is not registered on this node"),
        }),
        Verdict::Fail => Ok(Failure::configuration(
            "unregistered",
            format!("orchestration {what} is not registered on any node that looked at the instance"),
        )),
    }
}

/// The code of a new execution is not registered here. A start waits as a message of its own and
/// the instance is pending meanwhile, so that it is listed and can be cancelled; the messages of
/// one that continued as new are left to another node.
pub(super) fn begin_unregistered(
    codeless: &CodelessTurn<'_>,
    begin: Begin,
    batch: Batch,
) -> Result<CodelessCommit, TurnError> {
    match judge_unregistered(codeless, &begin.describe(), &batch) {
        Ok(failure) => Ok(fail_unstarted(codeless, begin, failure, batch)),
        Err(TurnError::Release { delay, reason }) if !begin.continues => {
            let instance = codeless.turn.instance();
            tracing::warn!(instance, reason, ?delay, "the start is left to another node");
            let at_ms = codeless.turn.now_ms().saturating_add(duration_ms(delay));
            Ok(postponed::until(codeless, begin.into_start(), at_ms, batch))
        }
        Err(error) => Err(error),
    }
}

/// Records start and failure of an execution that could not begin.
pub(super) fn fail_unstarted(
    codeless: &CodelessTurn<'_>,
    begin: Begin,
    failure: Failure,
    batch: Batch,
) -> CodelessCommit {
    let execution_id = begin.execution_id;
    let started = begin.started_without_code();
    let mut ack = codeless.turn.empty_ack(execution_id);
    ack.metadata.orchestration_name = Some(started.name.as_str().into());
    ack.metadata.orchestration_version = Some(started.version.as_str().into());
    ack.metadata.parent_instance_id = started.parent.as_ref().map(|parent| parent.instance.clone());
    ack.metadata.labels = Some(started.labels.clone()).filter(|labels| !labels.is_empty());
    ack.metadata.pinned_version = Some(engine_version());
    let started = Arc::new(started);
    let mut events = codeless.appender(execution_id);
    events.append(EventKind::OrchestrationStarted(Arc::clone(&started)));
    let now_ms = codeless.turn.now_ms();
    let span = ExecutionSpan { started, started_at_ms: now_ms, ended_at_ms: now_ms };
    end(codeless, CodelessCommit { ack, span: Some(span) }, events, failure, batch)
}

/// Fails the current execution without running its code. Its open operations are withdrawn.
pub(super) async fn fail(
    codeless: &CodelessTurn<'_>,
    failure: Failure,
    mut batch: Batch,
) -> Result<CodelessCommit, TurnError> {
    let CodelessTurn { turn, item, history } = *codeless;
    let has_started = item.status == Some(ExecutionStatus::Running) || find_started(history).is_some();
    if let Some(start) = batch.take_start(|start| !has_started && early::begins(item, start)) {
        if start.follows_another {
            batch.owed = after_end::owed_by_previous_execution(turn, item).await?;
        }
        let begin = Begin::first(*start, item.execution_id, 0);
        return Ok(fail_unstarted(codeless, begin, failure, batch));
    }
    let id = ExecutionId { instance: item.instance.clone(), execution_id: item.execution_id };
    let withdrawn = withdraw_open(&id, history, "failed");
    let ack = AckOrchestrationItem {
        cancelled_activities: withdrawn.cancelled_activities,
        cancelled_timers: withdrawn.cancelled_timers,
        orchestrator_items: withdrawn.orchestrator_items,
        ..turn.empty_ack(item.execution_id)
    };
    let span = ExecutionSpan::of_history(history, turn.now_ms());
    let events = codeless.appender(item.execution_id);
    Ok(end(codeless, CodelessCommit { ack, span }, events, failure, batch))
}

/// Adds the failure of the execution, and reports it to the parent.
fn end(
    codeless: &CodelessTurn<'_>,
    CodelessCommit { mut ack, span }: CodelessCommit,
    mut events: Appender,
    failure: Failure,
    batch: Batch,
) -> CodelessCommit {
    let instance = codeless.turn.instance();
    let parent = span.as_ref().and_then(|span| span.started.parent.clone());
    tracing::error!(instance, %failure, "the instance fails");
    ack.orchestrator_items.extend(batch.answer_starts(instance, parent.as_ref()));
    if let Some(parent) = parent {
        let report = WorkItem::SubOrchFailed {
            parent_execution_id: parent.execution_id,
            parent_id: parent.event_id,
            details: failure.clone(),
        };
        ack.orchestrator_items.push(report.for_orchestrator(parent.instance));
    }
    events.append(EventKind::OrchestrationFailed { failure: failure.clone() });
    ack.history_delta = events.into_events();
    ack.metadata.status = Some(status_of(&failure));
    ack.metadata.output = Some(Output::Failed(failure).encode());
    ack.records = batch.records;
    CodelessCommit { ack, span }
}

/// Pauses an instance whose code has diverged from its history. Its messages are redelivered later.
/// A cancellation ends it, which needs no code.
pub(super) async fn pause(
    codeless: &CodelessTurn<'_>,
    reason: String,
    batch: Batch,
) -> Result<CodelessCommit, TurnError> {
    let CodelessTurn { turn, item, history } = *codeless;
    let own_parent = parent_of(history);
    let cancelled = batch.others.iter().find_map(|message| match message {
        WorkItem::CancelInstance { reason } => Some(reason.clone()),
        WorkItem::CancelChild { reason, parent } if Some(parent) == own_parent.as_ref() => {
            Some(reason.clone())
        }
        _ => None,
    });
    if let Some(reason) = cancelled {
        return fail(codeless, Failure::cancelled(reason), batch).await;
    }
    let is_paused = item.status == Some(ExecutionStatus::Paused);
    let is_resumed = batch.others.iter().any(|message| matches!(message, WorkItem::ResumeInstance));
    if is_paused && !is_resumed {
        return Err(TurnError::Release { delay: PAUSED_REDELIVERY, reason });
    }
    let mut ack = turn.empty_ack(item.execution_id);
    let mut events = codeless.appender(item.execution_id);
    if !is_paused {
        events.append(EventKind::OrchestrationPaused { reason: reason.clone() });
    }
    ack.history_delta = events.into_events();
    ack.metadata.status = Some(ExecutionStatus::Paused);
    ack.metadata.output = Some(Output::Paused(reason).encode());
    let visible_at_ms = Some(turn.now_ms() + duration_ms(PAUSED_REDELIVERY));
    let others = batch.others.iter().filter(|message| !matches!(message, WorkItem::ResumeInstance));
    ack.orchestrator_items = others
        .map(|message| message.for_orchestrator(&*item.instance))
        .map(|message| OrchestratorMessage { visible_at_ms, ..message })
        .chain(batch.answer_starts(&item.instance, own_parent.as_ref()))
        .collect();
    ack.records = batch.records;
    Ok(CodelessCommit { ack, span: None })
}

/// Why an instance fails after too many deliveries of a turn.
pub(super) fn poison_reason(item: &OrchestrationItem, deliveries: u32) -> String {
    let mut reason = format!("the turn was given up after {deliveries} deliveries without a commit");
    match &item.history {
        FetchedHistory::Events(stored) => {
            let unreadable = stored.iter().find_map(|event| Event::from_stored(event).err());
            reason.extend(unreadable.map(|error| format!("; {error}")));
        }
        FetchedHistory::Unreadable(error) => {
            reason.push_str(&format!("; the history cannot be read: {error}"));
        }
        FetchedHistory::Resident => {}
    }
    reason
}
