//! One execution: its code, the folds of its history, and the plan of the turn.
//!
//! Recorded events and new messages take the same way:
//! 1. live, `decide.rs` turns a message into an event, and [`Execution::record`] adds the event and
//!    its effects on the store (`effects.rs`) to the plan; in replay, `matching.rs` compares a
//!    recorded event with the commands of the code;
//! 2. [`Execution::apply`] folds the event: `position.rs`, `operations.rs`, `intake.rs`;
//! 3. [`Execution::deliver`] shows it to the code, which is polled until it is pending (`code.rs`);
//! 4. the commands that the code has issued are the next events.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::epilogue::{MakeEpilogue, Settler};
use crate::event::{Channel, Event, EventKind, Started};
use crate::failure::Failure;
use crate::ids::derived_uuid;
use crate::payload::Payload;
use crate::work_item::{HAD_ENDED, WorkItem};

use super::code::Code;
use super::decide::{Decider, Decision};
use super::effects::{self, Effects};
use super::intake::Intake;
use super::journal::{Journal, Mode, StepFuture};
use super::matching;
use super::nondeterminism::Nondeterminism;
use super::operations::Operations;
use super::plan::TurnPlan;
use super::position::HistoryPosition;
use super::shared::{ExecutionId, OrchestrationHandler, Shared};

/// An inline step to run before the execution can continue.
pub(crate) struct RunnableStep {
    pub(crate) step: u64,
    pub(crate) name: String,
    pub(crate) run: StepFuture,
}

/// The result of an inline step, to be recorded.
pub(crate) struct RecordedStep {
    pub(crate) step: u64,
    pub(crate) name: String,
    pub(crate) result: Result<Payload, Failure>,
}

/// The live future of one orchestration, together with the state that its history describes.
pub(crate) struct Execution {
    code: Code,
    position: HistoryPosition,
    operations: Operations,
    intake: Intake,
    /// The last event, once the execution has ended.
    ended: Option<EventKind>,
    plan: TurnPlan,
}

/// How an execution comes into memory.
impl Execution {
    /// Begins an execution: records its start, after any messages that came before it, and runs the
    /// code.
    pub(crate) fn begin(
        id: ExecutionId,
        early: &[Event],
        started: Started,
        handler: &OrchestrationHandler,
        now_ms: u64,
    ) -> Self {
        let started = Arc::new(started);
        let mut execution = Self::new(id, Arc::clone(&started), handler);
        execution.shared().journal().mode = Mode::Live;
        execution.code.enter();
        execution.apply_early(early);
        execution.record(EventKind::OrchestrationStarted(started), now_ms);
        execution.record_commands(now_ms);
        execution.code.leave();
        execution
    }

    /// Rebuilds an execution from its history: the commands of the code must be the recorded ones,
    /// in order.
    pub(crate) fn replay(
        id: ExecutionId,
        history: Vec<Event>,
        handler: &OrchestrationHandler,
    ) -> Result<Self, Nondeterminism> {
        let (at, started) = find_started(&history).ok_or_else(|| Nondeterminism {
            event_id: 1,
            recorded: "a history without OrchestrationStarted".to_owned(),
            requested: "an orchestration".to_owned(),
        })?;
        let mut execution = Self::new(id, Arc::clone(started), handler);
        execution.shared().journal().recorded_patches = matching::recorded_patches(&history);
        execution.code.enter();
        execution.apply_early(&history[..at]);
        for event in history.into_iter().skip(at) {
            matching::match_event(&mut execution.shared().journal(), &event)?;
            execution.apply(event);
        }
        let next_event_id = execution.position.next_event_id();
        matching::expect_no_commands_left(&execution.shared().journal(), next_event_id)?;
        execution.code.leave();
        execution.shared().journal().mode = Mode::Live;
        execution.position.end_replay();
        Ok(execution)
    }

    fn new(id: ExecutionId, started: Arc<Started>, handler: &OrchestrationHandler) -> Self {
        let intake = Intake::new(&started.seen_message_ids);
        Execution {
            code: Code::new(Shared::new(id, started), handler),
            position: HistoryPosition::default(),
            operations: Operations::default(),
            intake,
            ended: None,
            plan: TurnPlan::default(),
        }
    }

    /// Messages that were recorded before the start wait in their inboxes; a pause defers the
    /// start.
    fn apply_early(&mut self, early: &[Event]) {
        for event in early {
            self.position.apply(event);
            self.operations.apply(event);
            self.intake.apply(event);
            if let EventKind::MessageReceived { channel, name, data, .. } = &event.kind {
                self.shared().journal().receive(*channel, name, data.clone());
            }
        }
    }
}

/// The way of a message.
impl Execution {
    /// Handles one new message: decides what it becomes, records that, runs the code, records its
    /// commands.
    pub(crate) fn handle(&mut self, item: WorkItem, now_ms: u64) {
        if self.has_ended() {
            return self.handle_after_end(item);
        }
        self.code.enter();
        let (shared, operations, intake) = (self.code.shared(), &self.operations, &self.intake);
        let decision = Decider { shared, operations, intake, now_ms }.decide(item);
        match decision {
            Decision::Ignore => {}
            Decision::Record(kind) => self.record_and_run(kind, now_ms),
            Decision::RecordAndPause(kind, reason) => {
                self.record_and_run(kind, now_ms);
                self.record_and_run(EventKind::OrchestrationPaused { reason }, now_ms);
            }
            Decision::Refuse(message, reason) => self.plan.refused.push((message, reason)),
        }
        self.code.leave();
    }

    /// Messages that come after the end by continue-as-new belong to the next execution.
    fn handle_after_end(&mut self, item: WorkItem) {
        if !matches!(self.ended, Some(EventKind::OrchestrationContinuedAsNew { .. })) {
            if item.is_from_a_sender() {
                self.plan.refused.push((item, HAD_ENDED.to_owned()));
            }
            return;
        }
        let (inbox, data, id) = match item {
            WorkItem::ExternalRaised { name, data, id } => ((Channel::Signal, name), data, id),
            WorkItem::QueueMessage { name, data, id } => ((Channel::Mailbox, name), data, id),
            WorkItem::CancelInstance { .. }
            | WorkItem::CancelChild { .. }
            | WorkItem::PauseInstance { .. }
            | WorkItem::ResumeInstance => {
                self.plan.orchestrator_items.push(item.for_orchestrator(&*self.id().instance));
                return;
            }
            _ => return,
        };
        let unread = self.shared().journal().unread;
        self.plan.refused.extend(self.intake.keep_for_next(unread, inbox, data, id));
    }

    /// Handles the result of an inline step.
    pub(crate) fn finish_step(&mut self, step: RecordedStep, now_ms: u64) {
        let RecordedStep { step, name, result } = step;
        if self.has_ended() || !self.shared().journal().steps.contains_key(&step) {
            return;
        }
        let kind = match result {
            Ok(result) => EventKind::StepCompleted { step, name, result },
            Err(failure) => EventKind::StepFailed { step, name, failure },
        };
        self.code.enter();
        self.record_and_run(kind, now_ms);
        self.code.leave();
    }

    /// Ends the execution with a failure that the code did not return.
    fn fail(&mut self, failure: Failure, now_ms: u64) {
        self.code.enter();
        self.record(EventKind::OrchestrationFailed { failure }, now_ms);
        self.code.leave();
    }

    fn record_and_run(&mut self, kind: EventKind, now_ms: u64) {
        self.record(kind, now_ms);
        self.record_commands(now_ms);
    }

    /// Records a new event: it joins the plan with its effects, and is applied.
    fn record(&mut self, kind: EventKind, now_ms: u64) {
        let event = self.position.next_event(kind, now_ms);
        Effects::new(self.code.shared(), &self.operations, &mut self.plan).add(&event);
        self.plan.events.push(event.to_stored());
        self.plan.starts |= matches!(event.kind, EventKind::OrchestrationStarted(_));
        self.apply(event);
    }

    /// Records the commands that the code has issued, until there are none. The end is a command as
    /// well.
    fn record_commands(&mut self, now_ms: u64) {
        while !self.has_ended() {
            let Some(command) = self.shared().journal().commands.pop_front() else { return };
            if let Some(token) = command.token {
                self.shared().journal().bind(token, self.position.next_event_id());
            }
            self.record(command.kind, now_ms);
        }
    }

    /// Applies an event to the state, and delivers it to the code unless the instance is paused.
    fn apply(&mut self, event: Event) {
        self.position.apply(&event);
        self.operations.apply(&event);
        self.intake.apply(&event);
        match event.kind {
            EventKind::OrchestrationPaused { .. } => {}
            EventKind::OrchestrationResumed => self.deliver_deferred(event.at_ms),
            EventKind::OrchestrationCancelRequested { ref reason } => {
                self.deliver_deferred(event.at_ms);
                let open = self.shared().journal().cancel(reason);
                self.operations.cancel(&open);
                self.code.run();
            }
            _ if event.kind.is_last() => self.end(event.kind),
            _ if self.operations.is_paused() => self.intake.defer(event),
            _ => self.deliver(event),
        }
    }

    fn deliver_deferred(&mut self, at_ms: u64) {
        self.shared().journal().advance_time(at_ms);
        for event in self.intake.take_deferred() {
            self.deliver(event);
        }
    }

    /// Shows an event to the code and polls it until it is pending. Commands show the code nothing
    /// new.
    fn deliver(&mut self, event: Event) {
        {
            let mut journal = self.shared().journal();
            journal.advance_time(event.at_ms);
            match event.kind {
                EventKind::ActivityCompleted { source, result }
                | EventKind::SubOrchestrationCompleted { source, result } => {
                    journal.resolve_event(source, Ok(result));
                }
                EventKind::ActivityFailed { source, failure, .. }
                | EventKind::SubOrchestrationFailed { source, failure } => {
                    journal.resolve_event(source, Err(failure));
                }
                EventKind::TimerFired { source } => journal.resolve_event(source, Ok(Payload::null())),
                EventKind::MessageReceived { channel, name, data, .. } => {
                    journal.receive(channel, &name, data);
                }
                EventKind::StepCompleted { step, result, .. } => deliver_step(&mut journal, step, Ok(result)),
                EventKind::StepFailed { step, failure, .. } => deliver_step(&mut journal, step, Err(failure)),
                EventKind::OrchestrationStarted(_) => {}
                _ => return,
            }
        }
        self.code.run();
    }

    fn end(&mut self, kind: EventKind) {
        self.code.close();
        self.shared().journal().commands.clear();
        self.ended = Some(kind);
    }
}

/// The end of a turn.
impl Execution {
    /// Verifies that the execution can continue, and fails it if not.
    pub(crate) fn settle(&mut self, now_ms: u64) {
        self.enforce_history_limits(now_ms);
        if !self.is_running() {
            return;
        }
        let is_stuck = {
            let journal = self.shared().journal();
            journal.steps.is_empty() && !journal.waits_for_something_durable()
        };
        if is_stuck {
            let message = "the orchestration awaits something that is not durable, so nothing would ever wake it; \
                 await only futures of its Context, and do everything else in an activity or in ctx.run";
            self.fail(Failure::configuration("non-durable-await", message), now_ms);
        } else if self.code.take_outside_wake() {
            tracing::warn!(
                instance = &*self.id().instance,
                "the orchestration was woken from outside the engine: it awaits something that is not durable and \
                 that will be lost on replay; do it in an activity or in ctx.run"
            );
        }
    }

    /// Fails the execution when its history is too long or too large.
    pub(crate) fn enforce_history_limits(&mut self, now_ms: u64) {
        if self.is_running()
            && let Some(failure) = self.position.limit_failure()
        {
            self.fail(failure, now_ms);
        }
    }

    /// Takes what was decided since the last call.
    pub(crate) fn take_plan(&mut self) -> TurnPlan {
        let mut plan = std::mem::take(&mut self.plan);
        if let Some(EventKind::OrchestrationContinuedAsNew { input, version }) = &self.ended {
            let next = effects::continue_as_new(self.code.shared(), &mut self.intake, (input, version));
            // Before anything else that is sent to the instance.
            plan.orchestrator_items.insert(0, next);
        }
        plan
    }

    /// Takes the steps that the code has requested and that do not run yet. Everything recorded so
    /// far must be committed before they run.
    pub(crate) fn take_steps(&mut self) -> Vec<RunnableStep> {
        if !self.is_running() {
            return Vec::new();
        }
        let mut journal = self.shared().journal();
        let pending = journal.steps.iter_mut();
        pending
            .filter_map(|(step, pending)| {
                let run = pending.run.take()?;
                Some(RunnableStep { step: *step, name: pending.name.clone(), run })
            })
            .collect()
    }

    /// Takes the steps that the code has dropped since the last call: their results are not needed.
    pub(crate) fn take_dropped_steps(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.shared().journal().dropped_steps)
    }
}

/// State that the runtime reads.
impl Execution {
    fn shared(&self) -> &Shared {
        self.code.shared()
    }

    fn is_running(&self) -> bool {
        !self.has_ended() && !self.operations.is_paused()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether there are steps that do not run yet.
    pub(crate) fn has_runnable_steps(&self) -> bool {
        self.is_running() && self.shared().journal().steps.values().any(|pending| pending.run.is_some())
    }

    /// Whether there is anything to commit.
    pub(crate) fn has_uncommitted_events(&self) -> bool {
        !self.plan.is_empty()
    }

    pub(crate) fn id(&self) -> &ExecutionId {
        &self.shared().id
    }

    pub(crate) fn started(&self) -> &Started {
        &self.shared().started
    }

    /// The start and its time.
    pub(crate) fn began(&self) -> (Arc<Started>, u64) {
        (Arc::clone(&self.shared().started), self.position.started_at_ms())
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.shared().journal().labels.clone()
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.position.payload_bytes()
    }

    pub(crate) fn last_event_id(&self) -> u64 {
        self.position.last_event_id()
    }

    /// Whether an activity of this very execution is the only open operation, and a turn may be
    /// lost without much harm.
    pub(crate) fn waits_only_for(&self, activity_id: u64, idempotency_key: &str) -> bool {
        let key = || derived_uuid(self.started().seed, activity_id);
        self.operations.is_only(activity_id)
            && Uuid::try_parse(idempotency_key) == Ok(key())
            && self.position.may_be_replayed_again()
            && !self.has_runnable_steps()
    }

    /// The outcome of an instance that has ended, and what makes the records that are written with
    /// it, if any are.
    pub(crate) fn epilogue(
        &self,
        settler: Option<&Settler>,
    ) -> Option<(MakeEpilogue, Result<Payload, Failure>)> {
        let make = self.shared().epilogue(settler)?;
        match self.ended.as_ref()? {
            EventKind::OrchestrationCompleted { output } => Some((make, Ok(output.clone()))),
            EventKind::OrchestrationFailed { failure } => Some((make, Err(failure.clone()))),
            // The instance has not ended: it continued as new.
            _ => None,
        }
    }
}

fn deliver_step(journal: &mut Journal, step: u64, result: Result<Payload, Failure>) {
    if let Some(pending) = journal.steps.remove(&step) {
        journal.resolve(pending.token, result);
    }
}

/// The start of an execution in its history, and its index.
pub(crate) fn find_started(history: &[Event]) -> Option<(usize, &Arc<Started>)> {
    history.iter().enumerate().find_map(|(at, event)| match &event.kind {
        EventKind::OrchestrationStarted(started) => Some((at, started)),
        _ => None,
    })
}
