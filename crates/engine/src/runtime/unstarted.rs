//! Turns that do not run code: instances before their start, after their end, or whose code cannot be run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::begin::Begin;
use super::observer::Span;
use super::turn::{Stop, Turn, parent_of};
use super::unregistered::Verdict;
use super::{backoff, commit};
use crate::clock::duration_ms;
use crate::event::{Channel, Event, EventKind, Output, ParentLink, Started};
use crate::failure::Failure;
use crate::names::START_AT_LABEL;
use crate::replay::{ExecutionId, Unread, find_started, status_of, withdraw_open};
use crate::store::{
    AckOrchestrationItem, ExecutionStatus, FetchedHistory, OrchestrationItem, OrchestratorMessage,
    RecordWrite, StartGuard, engine_version,
};
use crate::work_item::{StartOrchestration, WorkItem};

/// How long messages of an instance that is paused for nondeterminism wait before they are looked at again.
const PAUSED_REDELIVERY: Duration = Duration::from_secs(60);

/// What a start gets that comes to an instance which exists: silence if it is the one that made it or comes from a
/// client, a failure if it comes from another parent, which would otherwise wait for ever.
pub(super) fn answer_repeated_start(
    instance: &str,
    own_parent: Option<&ParentLink>,
    start: &StartOrchestration,
) -> Option<OrchestratorMessage> {
    let parent = start.parent.as_ref().filter(|parent| Some(*parent) != own_parent)?;
    let details = Failure::application(format!("an instance with the id {instance:?} exists already"))
        .non_retryable()
        .code("instance-exists");
    let reply = WorkItem::SubOrchFailed {
        parent_execution_id: parent.execution_id,
        parent_id: parent.event_id,
        details,
    };
    Some(reply.for_orchestrator(parent.instance.clone()))
}

impl Turn<'_> {
    pub(super) fn letter(
        &self,
        instance: &str,
        message: &WorkItem,
        reason: impl Into<String>,
    ) -> Vec<RecordWrite> {
        let body = message.for_orchestrator(instance).body;
        let letters = self.shared.letters();
        let letter = letters.message(instance, commit::DELIVERED_ONCE, reason.into(), self.now_ms());
        letter.writes(Some(body))
    }

    /// The current execution continued as new: the next one begins, or its early messages are kept for it.
    pub(super) async fn next_execution(
        &self,
        item: &OrchestrationItem,
        mut batch: Batch,
    ) -> Result<(), Stop> {
        match batch.continuation.take() {
            Some(next) if next.execution_id > item.execution_id => {
                self.begin_next(item, &[], *next, batch).await
            }
            _ => {
                let next = OrchestrationItem {
                    execution_id: item.execution_id + 1,
                    last_event_id: 0,
                    ..item.clone()
                };
                self.keep_early(&next, &[], batch).await
            }
        }
    }

    /// Nothing has started yet: messages are recorded and wait for the start.
    pub(super) async fn keep_early(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        batch: Batch,
    ) -> Result<(), Stop> {
        let mut turn = AckOrchestrationItem::empty(self.token, item.execution_id);
        let mut log = EarlyLog::new(item, history, self.now_ms());
        let cancel = log.take_messages(&batch.others);
        turn.orchestrator_items = batch.answer_starts(&item.instance, None);
        if let Some(reason) = cancel.filter(|_| is_delayed(item)) {
            log.push(EventKind::OrchestrationCancelRequested { reason: reason.clone() });
            let failure = Failure::cancelled(reason);
            log.push(EventKind::OrchestrationFailed { failure: failure.clone() });
            turn.metadata.status = Some(ExecutionStatus::Cancelled);
            turn.metadata.output = Some(Output::Failed(failure).encode());
        } else if !log.events.is_empty() {
            log.write_status(&mut turn);
        }
        turn.history_delta = log.events.iter().map(Event::to_stored).collect();
        turn.records = batch.records;
        turn.records.extend(self.park_refused(log));
        Ok(commit::ack(self.shared, &item.instance, Arc::new(turn), None).await?)
    }

    /// Messages that the instance could not keep are parked where they can be seen.
    fn park_refused(&self, log: EarlyLog) -> Vec<RecordWrite> {
        let refused = log.refused.iter();
        refused.flat_map(|(message, reason)| self.letter(&log.instance, message, reason.as_str())).collect()
    }

    /// The start lies ahead: the instance becomes visible as pending, and the start comes back at its time.
    pub(super) async fn postpone(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        start: StartOrchestration,
        batch: Batch,
    ) -> Result<(), Stop> {
        let at_ms = start.start_at_ms.unwrap_or_else(|| self.now_ms());
        self.wait_for_start(item, history, start, at_ms, batch).await
    }

    /// Makes an instance pending until its start comes back at a time. Its messages are recorded.
    async fn wait_for_start(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        mut start: StartOrchestration,
        at_ms: u64,
        batch: Batch,
    ) -> Result<(), Stop> {
        start.follows_another = false;
        let mut log = EarlyLog::new(item, history, self.now_ms());
        let execution_id = start.execution_id.unwrap_or(item.execution_id);
        if execution_id != item.execution_id {
            log.last_event_id = 0;
        }
        let cancelled = log.take_messages(&batch.others);
        let mut turn = AckOrchestrationItem::empty(self.token, execution_id);
        turn.orchestrator_items = batch.answer_starts(&item.instance, start.parent.as_ref());
        turn.history_delta = log.events.iter().map(Event::to_stored).collect();
        turn.metadata.orchestration_name = Some(start.orchestration.as_str().into());
        turn.metadata.orchestration_version = start.version.as_deref().map(Arc::from);
        turn.metadata.parent_instance_id = start.parent.as_ref().map(|parent| parent.instance.clone());
        let mut labels = start.labels.clone();
        if start.start_at_ms == Some(at_ms) {
            labels.insert(START_AT_LABEL.to_owned(), at_ms.to_string());
        }
        turn.metadata.labels = Some(labels).filter(|labels| !labels.is_empty());
        log.write_status(&mut turn);
        turn.records = batch.records;
        turn.records.extend(self.park_refused(log));
        let again = WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(&*item.instance);
        let visible_at_ms = Some(at_ms);
        turn.orchestrator_items.push(OrchestratorMessage { visible_at_ms, guard: StartGuard::None, ..again });
        if let Some(reason) = cancelled {
            // The cancellation comes back in a turn of its own, when the instance is known.
            let cancel = WorkItem::CancelInstance { reason };
            turn.orchestrator_items.push(cancel.for_orchestrator(&*item.instance));
        }
        Ok(commit::ack(self.shared, &item.instance, Arc::new(turn), None).await?)
    }

    /// The code of a running execution is not registered here.
    pub(super) async fn unregistered(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        started: &Started,
        batch: Batch,
    ) -> Result<(), Stop> {
        let what = format!("{:?} {}", started.name, started.version);
        let failure = self.judge_unregistered(item, &what, &batch)?;
        self.fail_existing(item, history, failure, batch).await
    }

    /// The code of a new execution is not registered here. A start waits as a message of its own and the instance is pending meanwhile, so
    /// that it is listed and can be cancelled; the messages of one that continued as new are left to another node.
    pub(super) async fn unregistered_start(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        begin: Begin,
        batch: Batch,
    ) -> Result<(), Stop> {
        match self.judge_unregistered(item, &begin.describe(), &batch) {
            Ok(failure) => self.fail_unstarted(item, early, begin, failure, batch).await,
            Err(Stop::NotHere { delay, reason }) if !begin.continues => {
                tracing::warn!(
                    instance = &*item.instance,
                    reason,
                    ?delay,
                    "the start is left to another node"
                );
                let at_ms = self.now_ms().saturating_add(duration_ms(delay));
                self.wait_for_start(item, early, begin.into_start(), at_ms, batch).await
            }
            Err(stop) => Err(stop),
        }
    }

    fn judge_unregistered(
        &self,
        item: &OrchestrationItem,
        what: &str,
        batch: &Batch,
    ) -> Result<Failure, Stop> {
        // Ending needs no code.
        if let Some(reason) = batch.cancellation() {
            return Ok(Failure::cancelled(reason));
        }
        // The age is that of the execution: what other nodes did with it before makes it young again.
        let position = if is_delayed(item) { 0 } else { item.last_event_id };
        let key = format!("{} {position} {}", item.execution_id, item.instance);
        match self.shared.unregistered.judge(&key, self.now_ms()) {
            Verdict::Wait(delay) => Err(Stop::NotHere {
                delay,
                reason: format!("orchestration {what} is not registered on this node"),
            }),
            Verdict::Fail => Ok(Failure::configuration(
                "unregistered",
                format!("orchestration {what} is not registered on any node that looked at the instance"),
            )),
        }
    }

    /// Records start and failure of an execution that could not begin.
    pub(super) async fn fail_unstarted(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        begin: Begin,
        failure: Failure,
        batch: Batch,
    ) -> Result<(), Stop> {
        let execution_id = begin.execution_id;
        let started = begin.started_without_code();
        let mut log = EarlyLog::new(item, early, self.now_ms());
        if execution_id != item.execution_id {
            log.last_event_id = 0;
        }
        let mut turn = AckOrchestrationItem::empty(self.token, execution_id);
        turn.metadata.orchestration_name = Some(started.name.as_str().into());
        turn.metadata.orchestration_version = Some(started.version.as_str().into());
        turn.metadata.parent_instance_id = started.parent.as_ref().map(|parent| parent.instance.clone());
        turn.metadata.labels = Some(started.labels.clone()).filter(|labels| !labels.is_empty());
        turn.metadata.pinned_version = Some(engine_version());
        let started = Arc::new(started);
        log.push(EventKind::OrchestrationStarted(Arc::clone(&started)));
        let now_ms = self.now_ms();
        let span = Span { started, started_at_ms: now_ms, ended_at_ms: now_ms };
        self.end_with(turn, log, Some(span), failure, batch).await
    }

    /// Ends an execution whose code is not run. Whatever it has open is taken back.
    pub(super) async fn fail_existing(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        failure: Failure,
        mut batch: Batch,
    ) -> Result<(), Stop> {
        let started = item.status == Some(ExecutionStatus::Running) || find_started(history).is_some();
        if let Some(start) = batch.take_start(|start| !started && begins(item, start)) {
            if start.follows_another {
                batch.owed = self.owed_by_execution_before(item).await?;
            }
            let begin = Begin::first(*start, item.execution_id, 0);
            return self.fail_unstarted(item, history, begin, failure, batch).await;
        }
        let mut turn = AckOrchestrationItem::empty(self.token, item.execution_id);
        let id = ExecutionId { instance: item.instance.clone(), execution_id: item.execution_id };
        let withdrawn = withdraw_open(&id, history, "failed");
        turn.cancelled_activities = withdrawn.cancelled_activities;
        turn.cancelled_timers = withdrawn.cancelled_timers;
        turn.orchestrator_items = withdrawn.orchestrator_items;
        let log = EarlyLog::new(item, history, self.now_ms());
        let span = Span::of_history(history, self.now_ms());
        self.end_with(turn, log, span, failure, batch).await
    }

    async fn end_with(
        &self,
        mut turn: AckOrchestrationItem,
        mut log: EarlyLog,
        span: Option<Span>,
        failure: Failure,
        batch: Batch,
    ) -> Result<(), Stop> {
        let parent = span.as_ref().and_then(|span| span.started.parent.clone());
        tracing::error!(instance = log.instance, %failure, "the instance fails");
        turn.orchestrator_items.extend(batch.answer_starts(&log.instance, parent.as_ref()));
        if let Some(parent) = parent {
            let report = WorkItem::SubOrchFailed {
                parent_execution_id: parent.execution_id,
                parent_id: parent.event_id,
                details: failure.clone(),
            };
            turn.orchestrator_items.push(report.for_orchestrator(parent.instance));
        }
        log.push(EventKind::OrchestrationFailed { failure: failure.clone() });
        turn.history_delta = log.events.iter().map(Event::to_stored).collect();
        turn.metadata.status = Some(status_of(&failure));
        turn.metadata.output = Some(Output::Failed(failure).encode());
        turn.records = batch.records;
        Ok(commit::ack(self.shared, &log.instance, Arc::new(turn), span.as_ref()).await?)
    }

    /// Pauses an instance whose code does not fit its history. Its messages come back later, unread.
    pub(super) async fn pause_existing(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        reason: String,
        batch: Batch,
    ) -> Result<(), Stop> {
        // Ending needs no code, so an instance that cannot go on can still be cancelled.
        let own_parent = parent_of(history);
        let cancelled = batch.others.iter().find_map(|message| match message {
            WorkItem::CancelInstance { reason } => Some(reason.clone()),
            WorkItem::CancelChild { reason, parent } if Some(parent) == own_parent.as_ref() => {
                Some(reason.clone())
            }
            _ => None,
        });
        if let Some(reason) = cancelled {
            return self.fail_existing(item, history, Failure::cancelled(reason), batch).await;
        }
        let resumed = batch.others.iter().any(|message| matches!(message, WorkItem::ResumeInstance));
        if item.status == Some(ExecutionStatus::Paused) && !resumed {
            return Err(Stop::NotHere { delay: PAUSED_REDELIVERY, reason });
        }
        let mut turn = AckOrchestrationItem::empty(self.token, item.execution_id);
        let mut log = EarlyLog::new(item, history, self.now_ms());
        if item.status != Some(ExecutionStatus::Paused) {
            log.push(EventKind::OrchestrationPaused { reason: reason.clone() });
        }
        turn.history_delta = log.events.iter().map(Event::to_stored).collect();
        turn.metadata.status = Some(ExecutionStatus::Paused);
        turn.metadata.output = Some(Output::Paused(reason).encode());
        let visible_at_ms = Some(self.now_ms() + PAUSED_REDELIVERY.as_millis() as u64);
        let others = batch.others.iter().filter(|message| !matches!(message, WorkItem::ResumeInstance));
        turn.orchestrator_items = others
            .map(|message| message.for_orchestrator(&*item.instance))
            .map(|message| OrchestratorMessage { visible_at_ms, ..message })
            .chain(batch.answer_starts(&item.instance, own_parent.as_ref()))
            .collect();
        turn.records = batch.records;
        Ok(commit::ack(self.shared, &item.instance, Arc::new(turn), None).await?)
    }

    /// As much of the history as can be read.
    pub(super) async fn readable_history(&self, item: &OrchestrationItem) -> Vec<Event> {
        let loaded;
        let stored = match &item.history {
            FetchedHistory::Events(events) => events,
            FetchedHistory::Resident => {
                let read = self.shared.store.read_with_execution(&item.instance, item.execution_id);
                loaded = read.await.unwrap_or_default();
                &loaded
            }
            FetchedHistory::Unreadable(_) => return Vec::new(),
        };
        stored.iter().filter_map(|event| Event::from_stored(event).ok()).collect()
    }

    pub(super) fn unreadable(&self, item: &OrchestrationItem, reason: &str) -> Stop {
        Stop::Abandon {
            delay: backoff::redelivery(item.attempt_count),
            reason: format!("the history cannot be read: {reason}"),
        }
    }
}

/// Whether a start begins the current execution, which has not begun. Another start may come to an instance whose own one lies
/// ahead.
pub(super) fn begins(item: &OrchestrationItem, start: &StartOrchestration) -> bool {
    match start.execution_id {
        Some(execution_id) => execution_id == item.execution_id,
        None => item.execution_id == 1 && (start.start_at_ms.is_some() || !is_delayed(item)),
    }
}

/// Whether the start of the instance is known and lies ahead, as opposed to one that only got early messages.
fn is_delayed(item: &OrchestrationItem) -> bool {
    item.orchestration_name.is_some()
        && matches!(item.status, Some(ExecutionStatus::Pending | ExecutionStatus::Paused))
}

/// Appends events without running code.
struct EarlyLog {
    instance: String,
    events: Vec<Event>,
    last_event_id: u64,
    at_ms: u64,
    seen: BTreeSet<String>,
    unread: Unread,
    /// Messages beyond the limits, and why.
    refused: Vec<(WorkItem, String)>,
    /// Why the instance is paused, if it is.
    paused: Option<String>,
}

impl EarlyLog {
    fn new(item: &OrchestrationItem, history: &[Event], now_ms: u64) -> Self {
        let (mut unread, mut seen) = (Unread::default(), BTreeSet::new());
        for event in history {
            if let EventKind::MessageReceived { data, id, .. } = &event.kind {
                unread.add(data);
                seen.extend(id.clone());
            }
        }
        EarlyLog {
            instance: item.instance.to_string(),
            events: Vec::new(),
            last_event_id: item.last_event_id,
            at_ms: history.last().map_or(now_ms, |event| now_ms.max(event.at_ms)),
            unread,
            refused: Vec::new(),
            paused: paused_before(history),
            seen,
        }
    }

    fn push(&mut self, kind: EventKind) {
        self.last_event_id += 1;
        self.events.push(Event { event_id: self.last_event_id, at_ms: self.at_ms, kind });
    }

    /// What an instance is before its start: pending, or paused so that the start will be held.
    fn write_status(&self, turn: &mut AckOrchestrationItem) {
        turn.metadata.status = Some(match &self.paused {
            Some(reason) => {
                turn.metadata.output = Some(Output::Paused(reason.clone()).encode());
                ExecutionStatus::Paused
            }
            None => ExecutionStatus::Pending,
        });
    }

    /// Records signals, mailbox messages (each id once), pausing and resuming; gives the reason of a cancellation if there is one.
    fn take_messages(&mut self, messages: &[WorkItem]) -> Option<String> {
        let mut cancel = None;
        for message in messages {
            let (channel, name, data, id) = match message {
                WorkItem::ExternalRaised { name, data, id } => (Channel::Signal, name, data, id),
                WorkItem::QueueMessage { name, data, id } => (Channel::Mailbox, name, data, id),
                WorkItem::CancelInstance { reason } => {
                    cancel = Some(reason.clone());
                    continue;
                }
                WorkItem::PauseInstance { reason } if self.paused.is_none() => {
                    self.paused = Some(reason.clone());
                    self.push(EventKind::OrchestrationPaused { reason: reason.clone() });
                    continue;
                }
                WorkItem::ResumeInstance if self.paused.is_some() => {
                    self.paused = None;
                    self.push(EventKind::OrchestrationResumed);
                    continue;
                }
                _ => continue,
            };
            let repeated = id.as_ref().is_some_and(|id| !self.seen.insert(id.clone()));
            if repeated {
                continue;
            }
            if let Some(reason) = self.unread.refusal(data) {
                self.refused.push((message.clone(), reason));
                continue;
            }
            self.unread.add(data);
            self.push(EventKind::MessageReceived {
                channel,
                name: name.clone(),
                data: data.clone(),
                id: id.clone(),
            });
        }
        cancel
    }
}

fn paused_before(history: &[Event]) -> Option<String> {
    history.iter().fold(None, |paused, event| match &event.kind {
        EventKind::OrchestrationPaused { reason } => Some(reason.clone()),
        EventKind::OrchestrationResumed => None,
        _ => paused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_PAYLOAD_BYTES, MAX_UNREAD_BYTES};
    use crate::payload::Payload;

    #[test]
    fn the_bytes_of_messages_before_the_start_are_bounded() {
        let large = Payload::from_json(format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2))).unwrap();
        let message = WorkItem::message(Channel::Mailbox, "jobs".to_owned(), large, None);
        let mut log = EarlyLog {
            instance: "a".to_owned(),
            events: Vec::new(),
            last_event_id: 0,
            at_ms: 1,
            seen: BTreeSet::new(),
            unread: Unread::default(),
            refused: Vec::new(),
            paused: None,
        };
        let fit = MAX_UNREAD_BYTES / MAX_PAYLOAD_BYTES;
        log.take_messages(&vec![message; fit + 2]);
        assert_eq!((log.events.len(), log.refused.len()), (fit, 2));
        assert!(log.refused[0].1.contains("64 MiB"), "{}", log.refused[0].1);
    }
}
