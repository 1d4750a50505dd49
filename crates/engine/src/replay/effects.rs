//! From an event to its effects on the store: what the commit of a turn writes beside the event.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::event::{Event, EventKind, Output, ParentLink};
use crate::failure::Failure;
use crate::ids::derived_uuid;
use crate::payload::Payload;
use crate::store::{ExecutionStatus, OrchestratorMessage, ScheduledActivityIdentifier, TimerIdentifier};
use crate::work_item::{ContinueAsNew, QueuedActivity, StartOrchestration, WorkItem};

use super::intake::Intake;
use super::operations::{Call, Operation, Operations};
use super::plan::TurnPlan;
use super::shared::{ExecutionId, Shared};

/// Adds the effects of events to a plan. Each event is added before it is applied, so `operations`
/// are those before it.
pub(super) struct Effects<'a> {
    shared: &'a Shared,
    operations: &'a Operations,
    plan: &'a mut TurnPlan,
}

impl<'a> Effects<'a> {
    pub(super) fn new(shared: &'a Shared, operations: &'a Operations, plan: &'a mut TurnPlan) -> Self {
        Effects { shared, operations, plan }
    }

    /// Adds the effects of one event.
    pub(super) fn add(&mut self, event: &Event) {
        match &event.kind {
            // An instance that is paused before its start stays paused.
            EventKind::OrchestrationStarted(_) if self.operations.is_paused() => {}
            EventKind::OrchestrationStarted(_) => self.plan.status = Some((ExecutionStatus::Running, None)),
            EventKind::ActivityScheduled { name, input, options } => {
                self.queue_attempt(event.event_id, Call { name, input, options }, 1, None);
                if let Some(at_ms) = options.deadline_at_ms {
                    self.create_timer(event.event_id, at_ms);
                }
            }
            EventKind::ActivityAttemptFailed { source, attempt, retry_at_ms: Some(at_ms), .. }
                if !self.operations.is_paused() =>
            {
                if let Some(activity) = self.operations.activity(*source) {
                    self.queue_attempt(*source, activity.call(), attempt + 1, Some(*at_ms));
                }
            }
            EventKind::ActivityCompleted { source, .. } => self.cancel_deadline(*source),
            EventKind::ActivityFailed { source, .. }
            | EventKind::ActivityCancelRequested { source }
            | EventKind::TimerCancelled { source }
            | EventKind::SubOrchestrationCancelRequested { source } => self.withdraw(*source),
            EventKind::TimerCreated { fire_at_ms } => self.create_timer(event.event_id, *fire_at_ms),
            EventKind::SubOrchestrationScheduled { name, version, instance, input } => {
                let parent = self.shared.id.parent_link(event.event_id);
                self.start(instance, (name, version), input, Some(parent));
            }
            EventKind::OrchestrationChained { name, version, instance, input } => {
                self.start(instance, (name, version), input, None);
            }
            EventKind::CustomStatusUpdated { status } => self.plan.custom_status = Some(status.clone()),
            EventKind::LabelUpdated { .. } => self.plan.labels_changed = true,
            EventKind::OrchestrationPaused { reason } => {
                self.plan.status = Some((ExecutionStatus::Paused, Some(Output::Paused(reason.clone()))));
            }
            EventKind::OrchestrationResumed => self.resume(),
            EventKind::OrchestrationCancelRequested { .. } => {
                if self.operations.is_paused() {
                    self.resume();
                }
                let open = self.shared.journal().unshielded_events();
                open.into_iter().for_each(|source| self.withdraw(source));
            }
            kind if kind.is_last() => self.end(kind),
            _ => {}
        }
    }

    fn queue_attempt(&mut self, id: u64, call: Call<'_>, attempt: u32, visible_at_ms: Option<u64>) {
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

    fn create_timer(&mut self, id: u64, fire_at_ms: u64) {
        let item = WorkItem::TimerFired { execution_id: self.shared.id.execution_id, id, fire_at_ms };
        let message = item.for_orchestrator(&*self.shared.id.instance);
        self.plan.orchestrator_items.push(message);
    }

    /// Starts another instance, as a child if there is a parent.
    fn start(
        &mut self,
        instance: &str,
        (name, version): (&str, &Option<String>),
        input: &Payload,
        parent: Option<ParentLink>,
    ) {
        let item = WorkItem::StartOrchestration(Box::new(StartOrchestration {
            orchestration: name.to_owned(),
            input: input.clone(),
            version: version.clone(),
            parent,
            labels: BTreeMap::new(),
            start_at_ms: None,
            traceparent: self.shared.started.traceparent.clone(),
            settle: None,
            execution_id: None,
            seed: None,
            follows_another: false,
        }));
        self.plan.orchestrator_items.push(item.for_orchestrator(instance));
    }

    fn withdraw(&mut self, source: u64) {
        if let Some(operation) = self.operations.get(source) {
            withdraw(self.plan, &self.shared.id, (source, operation), "no longer waits for it");
        }
    }

    fn cancel_deadline(&mut self, source: u64) {
        let activity = self.operations.activity(source);
        if activity.is_some_and(|activity| activity.options.deadline_at_ms.is_some()) {
            let execution_id = self.shared.id.execution_id;
            self.plan.cancelled_timers.push(TimerIdentifier { execution_id, timer_id: source });
        }
    }

    /// Held attempts are queued; exhausted activities get fresh ones.
    fn resume(&mut self) {
        self.plan.status = Some((ExecutionStatus::Running, None));
        for (id, activity, attempt, at_ms) in self.operations.attempts_on_resume() {
            self.queue_attempt(id, activity.call(), attempt, at_ms);
        }
    }

    /// Withdraws everything open and reports the end to the parent.
    fn end(&mut self, kind: &EventKind) {
        for (source, operation) in self.operations.iter() {
            withdraw(self.plan, &self.shared.id, (source, operation), "no longer waits for it");
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
}

/// Removes the activities, timers and children that a history leaves open; `what` happened to the
/// instance.
pub(crate) fn withdraw_open(id: &ExecutionId, history: &[Event], what: &str) -> TurnPlan {
    let mut plan = TurnPlan::default();
    for operation in Operations::of(history).iter() {
        withdraw(&mut plan, id, operation, what);
    }
    plan
}

/// Removes from the store what it holds of one open operation, and cancels a child.
fn withdraw(plan: &mut TurnPlan, id: &ExecutionId, (source, operation): (u64, &Operation), what: &str) {
    let timer = TimerIdentifier { execution_id: id.execution_id, timer_id: source };
    match operation {
        Operation::Activity(activity) => {
            plan.cancelled_activities.push(ScheduledActivityIdentifier {
                instance: id.instance.to_string(),
                execution_id: id.execution_id,
                activity_id: source,
            });
            if activity.options.deadline_at_ms.is_some() {
                plan.cancelled_timers.push(timer);
            }
        }
        Operation::Timer => plan.cancelled_timers.push(timer),
        Operation::Child { instance } => {
            let reason = format!("the parent {:?} {what}", id.instance);
            let item = WorkItem::CancelChild { reason, parent: id.parent_link(source) };
            plan.orchestrator_items.push(item.for_orchestrator(instance.clone()));
        }
    }
}

/// The message that begins the next execution, with all messages that were not read.
pub(super) fn continue_as_new(
    shared: &Shared,
    intake: &mut Intake,
    (input, version): (&Payload, &Option<String>),
) -> OrchestratorMessage {
    let (mut carried, custom_status, labels) = {
        let journal = shared.journal();
        (journal.unread(), journal.custom_status.clone(), journal.labels.clone())
    };
    carried.append(&mut intake.take_for_next());
    let started = &shared.started;
    let item = WorkItem::ContinueAsNew(Box::new(ContinueAsNew {
        execution_id: shared.id.execution_id + 1,
        orchestration: started.name.clone(),
        input: input.clone(),
        version: version.clone(),
        parent: started.parent.clone(),
        carried,
        seen_message_ids: intake.seen_ids(),
        custom_status,
        labels,
        traceparent: started.traceparent.clone(),
        settle: started.settle.clone(),
        first_execution_id: started.first_execution_id,
    }));
    item.for_orchestrator(&*shared.id.instance)
}

/// The status of an instance that ended with this failure.
pub(crate) fn status_of(failure: &Failure) -> ExecutionStatus {
    if failure.is_cancelled() { ExecutionStatus::Cancelled } else { ExecutionStatus::Failed }
}
