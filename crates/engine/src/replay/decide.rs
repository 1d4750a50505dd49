//! What a new message means for an execution, and what a new event asks of the store.

use uuid::Uuid;

use crate::event::{CarriedMessage, Channel, Event, EventKind, Output, ParentLink};
use crate::failure::Failure;
use crate::ids::derived_uuid;
use crate::payload::Payload;
use crate::store::{ExecutionStatus, ScheduledActivityIdentifier, TimerIdentifier};
use crate::work_item::{ANY_ATTEMPT, ContinueAsNew, HAD_ENDED, QueuedActivity, StartOrchestration, WorkItem};

use super::execution::Execution;
use super::operations::{AttemptVerdict, Call, Hold, OpenActivity, Operation};
use super::plan::TurnPlan;
use super::unread::Unread;

impl Execution {
    /// The events that a message becomes. Stale and repeated messages become none.
    pub(super) fn decide(&mut self, item: WorkItem, now_ms: u64) -> Vec<EventKind> {
        if self.ended.is_some() {
            self.keep_for_next_execution(item);
            return Vec::new();
        }
        match item {
            WorkItem::ActivityCompleted { execution_id, id, result } => {
                let open = self.open_activity(execution_id, id).is_some();
                if open { vec![EventKind::ActivityCompleted { source: id, result }] } else { Vec::new() }
            }
            WorkItem::ActivityFailed { execution_id, id, attempt, details } => {
                self.decide_failed_attempt(execution_id, id, attempt, details, now_ms)
            }
            WorkItem::TimerFired { execution_id, id, fire_at_ms } => {
                self.decide_timer(execution_id, id, fire_at_ms)
            }
            WorkItem::ExternalRaised { name, data, id } => {
                self.decide_message(Channel::Signal, name, data, id)
            }
            WorkItem::QueueMessage { name, data, id } => {
                self.decide_message(Channel::Mailbox, name, data, id)
            }
            WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result } => {
                let open = self.open_child(parent_execution_id, parent_id);
                if open {
                    vec![EventKind::SubOrchestrationCompleted { source: parent_id, result }]
                } else {
                    Vec::new()
                }
            }
            WorkItem::SubOrchFailed { parent_execution_id, parent_id, details } => {
                let open = self.open_child(parent_execution_id, parent_id);
                let kind = EventKind::SubOrchestrationFailed { source: parent_id, failure: details };
                if open { vec![kind] } else { Vec::new() }
            }
            WorkItem::CancelInstance { reason } => self.decide_cancel(reason),
            WorkItem::CancelChild { reason, parent } => {
                let ours = self.shared.started.parent.as_ref() == Some(&parent);
                if ours { self.decide_cancel(reason) } else { Vec::new() }
            }
            WorkItem::PauseInstance { reason } if !self.paused => {
                vec![EventKind::OrchestrationPaused { reason }]
            }
            WorkItem::ResumeInstance if self.paused => vec![EventKind::OrchestrationResumed],
            WorkItem::PauseInstance { .. } | WorkItem::ResumeInstance => Vec::new(),
            // Starts are the dispatcher's business; the worker queue's items never come here.
            WorkItem::StartOrchestration(_) | WorkItem::ContinueAsNew(_) | WorkItem::ActivityExecute(_) => {
                Vec::new()
            }
            // It brings the turn that runs them; there is nothing to record.
            WorkItem::StepsLeft { .. } => Vec::new(),
        }
    }

    fn open_activity(&self, execution_id: u64, id: u64) -> Option<&OpenActivity> {
        match self.operations.get(&id) {
            Some(Operation::Activity(activity)) if execution_id == self.id().execution_id => Some(activity),
            _ => None,
        }
    }

    fn open_child(&self, execution_id: u64, id: u64) -> bool {
        execution_id == self.id().execution_id
            && matches!(self.operations.get(&id), Some(Operation::Child { .. }))
    }

    fn decide_cancel(&self, reason: String) -> Vec<EventKind> {
        let first = self.shared.journal().cancelled.is_none();
        if first { vec![EventKind::OrchestrationCancelRequested { reason }] } else { Vec::new() }
    }

    fn decide_failed_attempt(
        &self,
        execution_id: u64,
        source: u64,
        attempt: u32,
        failure: Failure,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let Some(activity) = self.open_activity(execution_id, source) else { return Vec::new() };
        if ![activity.attempt, ANY_ATTEMPT].contains(&attempt) || activity.hold == Hold::Exhausted {
            return Vec::new();
        }
        let attempt = activity.attempt;
        let seed = self.shared.started.seed ^ source;
        match activity.judge(&failure, now_ms, seed) {
            AttemptVerdict::RetryAt(at_ms) => {
                vec![EventKind::ActivityAttemptFailed { source, attempt, failure, retry_at_ms: Some(at_ms) }]
            }
            AttemptVerdict::GiveUp => vec![EventKind::ActivityFailed { source, attempt, failure }],
            AttemptVerdict::Hold => {
                let reason = format!(
                    "activity {:?} (event {source}) failed in attempt {attempt}: {failure}; resume to try again",
                    activity.name
                );
                let mut kinds =
                    vec![EventKind::ActivityAttemptFailed { source, attempt, failure, retry_at_ms: None }];
                if !self.paused {
                    kinds.push(EventKind::OrchestrationPaused { reason });
                }
                kinds
            }
        }
    }

    /// A timer's time has come, or an activity's deadline.
    fn decide_timer(&self, execution_id: u64, source: u64, fire_at_ms: u64) -> Vec<EventKind> {
        if execution_id != self.id().execution_id {
            return Vec::new();
        }
        match self.operations.get(&source) {
            Some(Operation::Timer) => vec![EventKind::TimerFired { source }],
            Some(Operation::Activity(activity)) if activity.options.deadline_at_ms == Some(fire_at_ms) => {
                let message = format!(
                    "activity {:?} did not end before its deadline (in attempt {})",
                    activity.name, activity.attempt
                );
                let failure = Failure::timeout("deadline", message).non_retryable();
                vec![EventKind::ActivityFailed { source, attempt: activity.attempt, failure }]
            }
            _ => Vec::new(),
        }
    }

    fn decide_message(
        &mut self,
        channel: Channel,
        name: String,
        data: Payload,
        id: Option<String>,
    ) -> Vec<EventKind> {
        if self.seen_message_ids.contains(id.as_deref()) {
            return Vec::new();
        }
        // A message that the code waits for does not stay unread, however many others do.
        let is_awaited = !self.paused && self.shared.journal().awaits(channel, &name);
        let refusal = if is_awaited { None } else { self.waiting_messages().refusal(&data) };
        if let Some(reason) = refusal {
            self.plan.refused.push((WorkItem::message(channel, name, data, id), reason));
            return Vec::new();
        }
        vec![EventKind::MessageReceived { channel, name, data, id }]
    }

    /// All messages that wait: unread, held by a pause, or for the next execution.
    fn waiting_messages(&self) -> Unread {
        self.shared.journal().unread.plus(self.held_unread).plus(self.late_unread)
    }

    /// Messages that come after the end by continue-as-new belong to the next execution.
    fn keep_for_next_execution(&mut self, item: WorkItem) {
        if !matches!(self.ended, Some(EventKind::OrchestrationContinuedAsNew { .. })) {
            if item.is_from_a_sender() {
                self.plan.refused.push((item, HAD_ENDED.to_owned()));
            }
            return;
        }
        match item {
            WorkItem::ExternalRaised { name, data, id } => self.keep_message(Channel::Signal, name, data, id),
            WorkItem::QueueMessage { name, data, id } => self.keep_message(Channel::Mailbox, name, data, id),
            WorkItem::CancelInstance { .. }
            | WorkItem::CancelChild { .. }
            | WorkItem::PauseInstance { .. }
            | WorkItem::ResumeInstance => {
                self.plan.orchestrator_items.push(item.for_orchestrator(&*self.id().instance));
            }
            _ => {}
        }
    }

    fn keep_message(&mut self, channel: Channel, name: String, data: Payload, id: Option<String>) {
        if self.seen_message_ids.contains(id.as_deref()) {
            return;
        }
        if let Some(reason) = self.waiting_messages().refusal(&data) {
            self.plan.refused.push((WorkItem::message(channel, name, data, id), reason));
        } else {
            self.seen_message_ids.remember(id.as_deref());
            self.late_unread.add(&data);
            self.late_messages.push(CarriedMessage { channel, name, data });
        }
    }

    /// What a new event asks of the store. Called before the event is applied.
    pub(super) fn plan_effects(&mut self, event: &Event) {
        match &event.kind {
            // A start that is held stays paused.
            EventKind::OrchestrationStarted(_) if self.paused => {}
            EventKind::OrchestrationStarted(_) => self.plan.status = Some((ExecutionStatus::Running, None)),
            EventKind::ActivityScheduled { name, input, options } => {
                self.plan_attempt(event.event_id, Call { name, input, options }, 1, None);
                if let Some(at_ms) = options.deadline_at_ms {
                    self.plan_timer(event.event_id, at_ms);
                }
            }
            EventKind::ActivityAttemptFailed { source, attempt, retry_at_ms: Some(at_ms), .. }
                if !self.paused =>
            {
                if let Some(Operation::Activity(activity)) = self.operations.get(source).cloned() {
                    self.plan_attempt(*source, activity.call(), attempt + 1, Some(*at_ms));
                }
            }
            EventKind::ActivityCompleted { source, .. } => self.plan_deadline_cancelled(*source),
            EventKind::ActivityFailed { source, .. } | EventKind::ActivityCancelRequested { source } => {
                self.plan_cancelled(*source);
            }
            EventKind::TimerCreated { fire_at_ms } => self.plan_timer(event.event_id, *fire_at_ms),
            EventKind::TimerCancelled { source } | EventKind::SubOrchestrationCancelRequested { source } => {
                self.plan_cancelled(*source);
            }
            EventKind::SubOrchestrationScheduled { name, version, instance, input } => {
                let parent = ParentLink {
                    instance: self.id().instance.to_string(),
                    execution_id: self.id().execution_id,
                    event_id: event.event_id,
                };
                self.plan_start(instance, name, version, input, Some(parent));
            }
            EventKind::OrchestrationChained { name, version, instance, input } => {
                self.plan_start(instance, name, version, input, None);
            }
            EventKind::CustomStatusUpdated { status } => self.plan.custom_status = Some(status.clone()),
            EventKind::LabelUpdated { .. } => self.plan.labels_changed = true,
            EventKind::OrchestrationPaused { reason } => {
                self.plan.status = Some((ExecutionStatus::Paused, Some(Output::Paused(reason.clone()))));
            }
            EventKind::OrchestrationResumed => self.plan_resume(),
            EventKind::OrchestrationCancelRequested { .. } => {
                if self.paused {
                    self.plan_resume();
                }
                self.plan_cancel_unshielded();
            }
            kind if kind.is_last() => self.plan_end(kind),
            _ => {}
        }
    }

    fn plan_attempt(&mut self, id: u64, call: Call<'_>, attempt: u32, visible_at_ms: Option<u64>) {
        let started = &self.shared.started;
        let mut key = Uuid::encode_buffer();
        let activity = QueuedActivity {
            instance: &self.shared.id.instance,
            execution_id: self.shared.id.execution_id,
            id,
            name: call.name,
            input: call.input,
            attempt,
            idempotency_key: derived_uuid(started.seed, id).hyphenated().encode_lower(&mut key),
            options: call.options,
            orchestration: &started.name,
            version: &started.version,
            traceparent: started.traceparent.as_deref(),
        };
        let message = activity.for_worker(visible_at_ms);
        if self.plan.worker_items.capacity() == 0 {
            // Most often there is one at a time.
            self.plan.worker_items.reserve_exact(1);
        }
        self.plan.worker_items.push(message);
    }

    fn plan_timer(&mut self, id: u64, fire_at_ms: u64) {
        let item = WorkItem::TimerFired { execution_id: self.id().execution_id, id, fire_at_ms };
        let message = item.for_orchestrator(&*self.id().instance);
        self.plan.orchestrator_items.push(message);
    }

    fn plan_start(
        &mut self,
        instance: &str,
        name: &str,
        version: &Option<String>,
        input: &Payload,
        parent: Option<ParentLink>,
    ) {
        let item = WorkItem::StartOrchestration(Box::new(StartOrchestration {
            orchestration: name.to_owned(),
            input: input.clone(),
            version: version.clone(),
            parent,
            labels: std::collections::BTreeMap::new(),
            start_at_ms: None,
            traceparent: self.shared.started.traceparent.clone(),
            settle: None,
            execution_id: None,
            seed: None,
            follows_another: false,
        }));
        self.plan.orchestrator_items.push(item.for_orchestrator(instance));
    }

    /// Takes back what the store holds of one open operation.
    fn plan_cancelled(&mut self, source: u64) {
        let timer = TimerIdentifier { execution_id: self.id().execution_id, timer_id: source };
        match self.operations.get(&source) {
            Some(Operation::Activity(_)) => {
                self.plan.cancelled_activities.push(ScheduledActivityIdentifier {
                    instance: self.id().instance.to_string(),
                    execution_id: self.id().execution_id,
                    activity_id: source,
                });
                self.plan_deadline_cancelled(source);
            }
            Some(Operation::Timer) => self.plan.cancelled_timers.push(timer),
            Some(Operation::Child { instance }) => {
                let parent = ParentLink {
                    instance: self.id().instance.to_string(),
                    execution_id: self.id().execution_id,
                    event_id: source,
                };
                let reason = format!("the parent {:?} no longer waits for it", self.id().instance);
                let item = WorkItem::CancelChild { reason, parent };
                self.plan.orchestrator_items.push(item.for_orchestrator(instance.clone()));
            }
            None => {}
        }
    }

    fn plan_deadline_cancelled(&mut self, source: u64) {
        if let Some(Operation::Activity(activity)) = self.operations.get(&source)
            && activity.options.deadline_at_ms.is_some()
        {
            let execution_id = self.id().execution_id;
            self.plan.cancelled_timers.push(TimerIdentifier { execution_id, timer_id: source });
        }
    }

    /// Attempts that waited for the resume are queued; exhausted activities get fresh ones.
    fn plan_resume(&mut self) {
        self.plan.status = Some((ExecutionStatus::Running, None));
        let held: Vec<(u64, OpenActivity)> = self
            .operations
            .iter()
            .filter_map(|(id, operation)| match operation {
                Operation::Activity(activity) if activity.hold != Hold::None => {
                    Some((*id, (**activity).clone()))
                }
                _ => None,
            })
            .collect();
        for (id, activity) in held {
            if let Some((attempt, at_ms)) = activity.attempt_on_resume() {
                self.plan_attempt(id, activity.call(), attempt, at_ms);
            }
        }
    }

    fn plan_cancel_unshielded(&mut self) {
        let open = self.shared.journal().unshielded_events();
        for source in open {
            self.plan_cancelled(source);
        }
    }

    /// The end: everything open is taken back, and the parent hears of it.
    fn plan_end(&mut self, kind: &EventKind) {
        let open: Vec<u64> = self.operations.keys().copied().collect();
        for source in open {
            self.plan_cancelled(source);
        }
        let parent = self.shared.started.parent.clone();
        let (status, output, report) = match kind {
            EventKind::OrchestrationCompleted { output } => {
                let report = parent.as_ref().map(|parent| WorkItem::SubOrchCompleted {
                    parent_execution_id: parent.execution_id,
                    parent_id: parent.event_id,
                    result: output.clone(),
                });
                (ExecutionStatus::Completed, Output::Completed(output.clone()), report)
            }
            EventKind::OrchestrationFailed { failure } => {
                let report = parent.as_ref().map(|parent| WorkItem::SubOrchFailed {
                    parent_execution_id: parent.execution_id,
                    parent_id: parent.event_id,
                    details: failure.clone(),
                });
                (status_of(failure), Output::Failed(failure.clone()), report)
            }
            EventKind::OrchestrationContinuedAsNew { input, .. } => {
                (ExecutionStatus::ContinuedAsNew, Output::ContinuedAsNew(input.clone()), None)
            }
            _ => return,
        };
        self.plan.status = Some((status, Some(output)));
        if let (Some(parent), Some(report)) = (parent, report) {
            self.plan.orchestrator_items.push(report.for_orchestrator(parent.instance));
        }
    }

    /// The message that begins the next execution goes out before anything else, with all that was not read.
    pub(super) fn add_next_execution(&mut self, plan: &mut TurnPlan) {
        let Some(EventKind::OrchestrationContinuedAsNew { input, version }) = &self.ended else { return };
        let (mut carried, custom_status, labels) = {
            let journal = self.shared.journal();
            (journal.unread(), journal.custom_status.clone(), journal.labels.clone())
        };
        carried.append(&mut self.late_messages);
        self.late_unread = Unread::default();
        let started = &self.shared.started;
        let item = WorkItem::ContinueAsNew(Box::new(ContinueAsNew {
            execution_id: self.id().execution_id + 1,
            orchestration: started.name.clone(),
            input: input.clone(),
            version: version.clone(),
            parent: started.parent.clone(),
            carried,
            seen_message_ids: self.seen_message_ids.to_vec(),
            custom_status,
            labels,
            traceparent: started.traceparent.clone(),
            settle: started.settle.clone(),
            first_execution_id: started.first_execution_id,
        }));
        plan.orchestrator_items.insert(0, item.for_orchestrator(&*self.id().instance));
    }
}

/// Cancellation is an end of its own.
pub(crate) fn status_of(failure: &Failure) -> ExecutionStatus {
    if failure.is_cancelled() { ExecutionStatus::Cancelled } else { ExecutionStatus::Failed }
}
