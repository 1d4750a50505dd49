//! One execution: the live future of its code and everything its history says.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use uuid::Uuid;

use crate::epilogue::{self, InstanceEnd, MakeEpilogue, Settler};
use crate::event::{CarriedMessage, Event, EventKind, Started};
use crate::failure::Failure;
use crate::ids::derived_uuid;
use crate::limits::{MAX_EVENTS_PER_EXECUTION, MAX_HISTORY_BYTES};
use crate::payload::Payload;
use crate::work_item::WorkItem;

use super::drive::RootWake;
use super::journal::{Journal, Mode, StepFuture};
use super::operations::{Hold, OpenActivity, Operation, Operations};
use super::plan::TurnPlan;
use super::seen_messages::SeenMessageIds;
use super::unread::Unread;

/// The running code of an orchestration.
pub(crate) type OrchestrationFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Makes the future of an orchestration from what it shares with the engine and its input.
pub(crate) type OrchestrationHandler = Arc<dyn Fn(Arc<Shared>, Payload) -> OrchestrationFuture + Send + Sync>;

/// Which execution this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionId {
    pub(crate) instance: Arc<str>,
    pub(crate) execution_id: u64,
}

/// What the code's `Context` and the engine share.
pub(crate) struct Shared {
    pub(crate) id: ExecutionId,
    pub(crate) started: Arc<Started>,
    journal: Mutex<Journal>,
    /// What the code wants written together with its end.
    epilogue: Mutex<Option<MakeEpilogue>>,
}

impl Shared {
    /// The journal. A panic of user code while it holds the lock leaves plain data behind, so poisoning is ignored.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_epilogue(&self, make: MakeEpilogue) {
        *self.epilogue.lock().unwrap_or_else(PoisonError::into_inner) = Some(make);
    }
}

/// A step to be run before the execution can go on.
pub(crate) struct RunnableStep {
    pub(crate) step: u64,
    pub(crate) name: String,
    pub(crate) run: StepFuture,
}

pub(crate) struct Execution {
    pub(super) shared: Arc<Shared>,
    pub(super) future: Option<OrchestrationFuture>,
    pub(super) root: Arc<RootWake>,
    pub(super) waker: Waker,
    pub(super) operations: Operations,
    pub(super) paused: bool,
    held: VecDeque<Event>,
    /// Messages among the held events.
    pub(super) held_unread: Unread,
    pub(super) seen_message_ids: SeenMessageIds,
    pub(super) last_event_id: u64,
    last_at_ms: u64,
    /// When it began.
    pub(super) started_at_ms: u64,
    /// User data of the events so far, in bytes: as much as journal and code may hold of it.
    payload_bytes: usize,
    /// How many events were replayed to get here.
    pub(super) replayed_events: u64,
    /// The last event, once the execution has ended.
    pub(super) ended: Option<EventKind>,
    /// Messages that came after the end by continue-as-new; the next execution gets them.
    pub(super) late_messages: Vec<CarriedMessage>,
    /// The late messages, counted.
    pub(super) late_unread: Unread,
    pub(super) plan: TurnPlan,
}

impl Execution {
    /// Begins an execution: records its start, after any messages that came before it, and runs the code.
    pub(crate) fn begin(
        id: ExecutionId,
        early: &[Event],
        started: Started,
        handler: &OrchestrationHandler,
        now_ms: u64,
    ) -> Self {
        let started = Arc::new(started);
        let mut execution = Self::new(id, Arc::clone(&started), handler);
        execution.shared.journal().mode = Mode::Live;
        execution.enter();
        execution.take_early(early);
        execution.record(EventKind::OrchestrationStarted(started), now_ms);
        execution.started_at_ms = execution.last_at_ms;
        execution.flush(now_ms);
        execution.leave();
        execution
    }

    pub(super) fn new(id: ExecutionId, started: Arc<Started>, handler: &OrchestrationHandler) -> Self {
        let mut journal = Journal::new(&id.instance, id.execution_id, started.seed);
        journal.custom_status = started.custom_status.clone();
        journal.labels = started.labels.clone();
        for CarriedMessage { channel, name, data } in &started.carried {
            journal.receive(*channel, name, data.clone());
        }
        let input = started.input.clone();
        let seen_message_ids = SeenMessageIds::from(started.seen_message_ids.clone());
        let shared =
            Arc::new(Shared { id, started, journal: Mutex::new(journal), epilogue: Mutex::default() });
        let root = Arc::new(RootWake::new());
        Execution {
            future: Some(handler(shared.clone(), input)),
            waker: Waker::from(root.clone()),
            root,
            shared,
            operations: BTreeMap::new(),
            paused: false,
            held: VecDeque::new(),
            held_unread: Unread::default(),
            seen_message_ids,
            last_event_id: 0,
            payload_bytes: 0,
            last_at_ms: 0,
            started_at_ms: 0,
            replayed_events: 0,
            ended: None,
            late_messages: Vec::new(),
            late_unread: Unread::default(),
            plan: TurnPlan::default(),
        }
    }

    /// Messages that were recorded before the start wait in their inboxes; a pause holds the start.
    pub(super) fn take_early(&mut self, early: &[Event]) {
        for event in early {
            self.last_event_id = event.event_id;
            self.last_at_ms = event.at_ms;
            self.payload_bytes += event.kind.payload_bytes();
            match &event.kind {
                EventKind::MessageReceived { channel, name, data, id } => {
                    self.seen_message_ids.remember(id.as_deref());
                    self.shared.journal().receive(*channel, name, data.clone());
                }
                EventKind::OrchestrationPaused { .. } => self.paused = true,
                EventKind::OrchestrationResumed => self.paused = false,
                _ => {}
            }
        }
    }

    /// Takes one new message: decides what it means, records that, runs the code, records its commands.
    pub(crate) fn handle(&mut self, item: WorkItem, now_ms: u64) {
        self.enter();
        for kind in self.decide(item, now_ms) {
            self.record(kind, now_ms);
            self.flush(now_ms);
        }
        self.leave();
    }

    /// Takes the result of an inline step.
    pub(crate) fn finish_step(&mut self, step: RecordedStep, now_ms: u64) {
        self.enter();
        let RecordedStep { step, name, result } = step;
        if self.shared.journal().steps.contains_key(&step) && self.ended.is_none() {
            let kind = match result {
                Ok(result) => EventKind::StepCompleted { step, name, result },
                Err(failure) => EventKind::StepFailed { step, name, failure },
            };
            self.record(kind, now_ms);
            self.flush(now_ms);
        }
        self.leave();
    }

    /// Steps that the code asked for and that nobody runs yet. Everything recorded so far must be committed first.
    pub(crate) fn take_steps(&mut self) -> Vec<RunnableStep> {
        if self.paused || self.ended.is_some() {
            return Vec::new();
        }
        let mut journal = self.shared.journal();
        let pending = journal.steps.iter_mut();
        pending
            .filter_map(|(step, pending)| {
                let run = pending.run.take()?;
                Some(RunnableStep { step: *step, name: pending.name.clone(), run })
            })
            .collect()
    }

    /// Steps that the code has dropped since the last call; those that run are not wanted any more.
    pub(crate) fn take_dropped_steps(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.shared.journal().dropped_steps)
    }

    /// Looks at the end of a turn whether the execution can go on at all, and fails it if not.
    pub(crate) fn settle(&mut self, now_ms: u64) {
        if self.ended.is_some() || self.paused {
            return;
        }
        self.enforce_history_limits(now_ms);
        if self.ended.is_some() {
            return;
        }
        let stuck = {
            let journal = self.shared.journal();
            journal.steps.is_empty() && !journal.waits_for_something_durable()
        };
        if stuck {
            let message = "the orchestration awaits something that is not durable, so nothing would ever wake it; \
                 await only futures of its Context, and do everything else in an activity or in ctx.run";
            self.fail(Failure::configuration("non-durable-await", message), now_ms);
        } else if self.root.woken_from_outside.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                instance = &*self.shared.id.instance,
                "the orchestration was woken from outside the engine: it awaits something that is not durable and \
                 that will be lost on replay; do it in an activity or in ctx.run"
            );
        }
    }

    /// Fails the execution when its history has become too long.
    pub(crate) fn enforce_history_limits(&mut self, now_ms: u64) {
        if self.ended.is_some() || self.paused {
            return;
        }
        let next = "use ctx.continue_as_new to go on with a fresh history";
        let failure = if self.last_event_id >= MAX_EVENTS_PER_EXECUTION {
            let events = self.last_event_id;
            let message =
                format!("the execution has {events} events, the limit is {MAX_EVENTS_PER_EXECUTION}; {next}");
            Failure::configuration("too-many-events", message)
        } else if self.payload_bytes > MAX_HISTORY_BYTES {
            let (bytes, limit) = (self.payload_bytes, MAX_HISTORY_BYTES / (1024 * 1024));
            let message = format!(
                "the execution has {bytes} bytes of data in its history, the limit is {limit} MiB; {next}"
            );
            Failure::configuration("history-too-large", message)
        } else {
            return;
        };
        self.fail(failure, now_ms);
    }

    /// Whether there are steps that nobody has run yet.
    pub(crate) fn has_runnable_steps(&self) -> bool {
        !self.paused
            && self.ended.is_none()
            && self.shared.journal().steps.values().any(|pending| pending.run.is_some())
    }

    /// Ends the execution with a failure that the code did not return.
    pub(crate) fn fail(&mut self, failure: Failure, now_ms: u64) {
        self.enter();
        self.record(EventKind::OrchestrationFailed { failure }, now_ms);
        self.leave();
    }

    /// What has been decided since the last call.
    pub(crate) fn take_plan(&mut self) -> TurnPlan {
        let mut plan = std::mem::take(&mut self.plan);
        self.add_next_execution(&mut plan);
        plan
    }

    /// Whether anything waits to be committed.
    pub(crate) fn has_uncommitted_events(&self) -> bool {
        !self.plan.is_empty()
    }

    pub(crate) fn id(&self) -> &ExecutionId {
        &self.shared.id
    }

    pub(crate) fn started(&self) -> &Started {
        &self.shared.started
    }

    /// Its start, and when that was.
    pub(crate) fn began(&self) -> (Arc<Started>, u64) {
        (Arc::clone(&self.shared.started), self.started_at_ms)
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.shared.journal().labels.clone()
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    pub(crate) fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// Whether an activity of this very execution is all that is open, and a turn may be lost without much harm: a long history that
    /// had to be replayed must have grown by an eighth since, so that replays take a bounded share of all work however often
    /// turns are lost.
    pub(crate) fn waits_only_for(&self, activity_id: u64, idempotency_key: &str) -> bool {
        let key = || derived_uuid(self.started().seed, activity_id);
        self.operations.len() == 1
            && self.operations.contains_key(&activity_id)
            && Uuid::try_parse(idempotency_key) == Ok(key())
            && self.last_event_id >= self.replayed_events + self.replayed_events / 8
            && !self.has_runnable_steps()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// How the code ended and what is to be written together with that: by the code's wish, by the data of the start, or both.
    pub(crate) fn epilogue(
        &self,
        settler: Option<&Settler>,
    ) -> Option<(MakeEpilogue, Result<Payload, Failure>)> {
        let own = self.shared.epilogue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let settling =
            settler.zip(self.shared.started.settle.clone()).map(|(settler, settle)| -> MakeEpilogue {
                let (settler, instance) = (settler.clone(), self.shared.id.instance.clone());
                Arc::new(move |outcome| {
                    settler(InstanceEnd { instance: instance.clone(), settle: settle.clone(), outcome })
                })
            });
        let make = match (own, settling) {
            (Some(own), Some(settling)) => epilogue::both(own, settling),
            (own, settling) => own.or(settling)?,
        };
        match self.ended.as_ref()? {
            EventKind::OrchestrationCompleted { output } => Some((make, Ok(output.clone()))),
            EventKind::OrchestrationFailed { failure } => Some((make, Err(failure.clone()))),
            // It has not ended: the next execution goes on.
            _ => None,
        }
    }

    fn enter(&self) {
        self.root.engine_at_work.store(true, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.root.engine_at_work.store(false, Ordering::Relaxed);
    }

    /// Records a new event: it joins the plan, its effects join the plan, and the code sees it.
    fn record(&mut self, kind: EventKind, now_ms: u64) {
        let event = Event { event_id: self.last_event_id + 1, at_ms: now_ms.max(self.last_at_ms), kind };
        self.plan_effects(&event);
        self.plan.events.push(event.to_stored());
        self.plan.starts |= matches!(event.kind, EventKind::OrchestrationStarted(_));
        self.apply(event);
    }

    /// Records the commands that the code has given, until it rests. Ending is a command as well.
    fn flush(&mut self, now_ms: u64) {
        loop {
            if self.ended.is_some() {
                return;
            }
            let Some(command) = self.shared.journal().commands.pop_front() else { return };
            let token = command.token;
            let event_id = self.last_event_id + 1;
            if let Some(token) = token {
                self.shared.journal().bind(token, event_id);
            }
            self.record(command.kind, now_ms);
        }
    }

    /// Brings an event into the state: what is open, and what the code sees.
    pub(super) fn apply(&mut self, event: Event) {
        self.last_event_id = event.event_id;
        self.last_at_ms = event.at_ms;
        self.payload_bytes += event.kind.payload_bytes();
        self.note_operation(&event);
        match event.kind {
            EventKind::OrchestrationPaused { .. } => self.paused = true,
            EventKind::OrchestrationResumed => self.resume(event.at_ms),
            EventKind::OrchestrationCancelRequested { ref reason } => {
                self.resume(event.at_ms);
                self.advance_time(event.at_ms);
                let open = self.shared.journal().cancel(reason);
                self.forget_operations(&open);
                self.drive();
            }
            _ if event.kind.is_last() => self.end(event.kind),
            _ if self.paused => {
                if let EventKind::MessageReceived { data, .. } = &event.kind {
                    self.held_unread.add(data);
                }
                self.held.push_back(event);
            }
            _ => self.deliver(event),
        }
    }

    fn resume(&mut self, at_ms: u64) {
        self.paused = false;
        for operation in self.operations.values_mut() {
            if let Operation::Activity(activity) = operation {
                activity.resume();
            }
        }
        self.advance_time(at_ms);
        self.held_unread = Unread::default();
        while let Some(event) = self.held.pop_front() {
            self.deliver(event);
        }
    }

    /// Keeps the list of what is open.
    fn note_operation(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ActivityScheduled { name, input, options } => {
                let activity = OpenActivity::new(name, input, options);
                self.operations.insert(event.event_id, Operation::Activity(Box::new(activity)));
            }
            EventKind::TimerCreated { .. } => {
                self.operations.insert(event.event_id, Operation::Timer);
            }
            EventKind::SubOrchestrationScheduled { instance, .. } => {
                self.operations.insert(event.event_id, Operation::Child { instance: instance.clone() });
            }
            EventKind::ActivityAttemptFailed { source, retry_at_ms, .. } => {
                if let Some(Operation::Activity(activity)) = self.operations.get_mut(source) {
                    match retry_at_ms {
                        Some(at_ms) => {
                            activity.attempt += 1;
                            activity.hold = if self.paused { Hold::Retry(*at_ms) } else { Hold::None };
                        }
                        None => activity.hold = Hold::Exhausted,
                    }
                }
            }
            EventKind::ActivityCompleted { source, .. }
            | EventKind::ActivityFailed { source, .. }
            | EventKind::ActivityCancelRequested { source }
            | EventKind::TimerFired { source }
            | EventKind::TimerCancelled { source }
            | EventKind::SubOrchestrationCompleted { source, .. }
            | EventKind::SubOrchestrationFailed { source, .. }
            | EventKind::SubOrchestrationCancelRequested { source } => {
                self.operations.remove(source);
            }
            EventKind::MessageReceived { id, .. } => self.seen_message_ids.remember(id.as_deref()),
            _ => {}
        }
    }

    pub(super) fn forget_operations(&mut self, event_ids: &[u64]) {
        for event_id in event_ids {
            self.operations.remove(event_id);
        }
    }

    /// Shows an event to the code and lets it run until it rests. Commands show the code nothing new.
    fn deliver(&mut self, event: Event) {
        self.advance_time(event.at_ms);
        {
            let mut journal = self.shared.journal();
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
                EventKind::StepCompleted { step, result, .. } => finish_step(&mut journal, step, Ok(result)),
                EventKind::StepFailed { step, failure, .. } => finish_step(&mut journal, step, Err(failure)),
                EventKind::OrchestrationStarted(_) => {}
                _ => return,
            }
        }
        self.drive();
    }

    fn advance_time(&self, at_ms: u64) {
        let mut journal = self.shared.journal();
        journal.now_ms = journal.now_ms.max(at_ms);
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.drop_future();
        // It may hold a context, and so what holds it.
        self.shared.epilogue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The result of an inline step, to be recorded.
pub(crate) struct RecordedStep {
    pub(crate) step: u64,
    pub(crate) name: String,
    pub(crate) result: Result<Payload, Failure>,
}

fn finish_step(journal: &mut Journal, step: u64, result: Result<Payload, Failure>) {
    if let Some(pending) = journal.steps.remove(&step) {
        journal.resolve(pending.token, result);
    }
}

/// The start of an execution in its history, and where it is.
pub(crate) fn find_started(history: &[Event]) -> Option<(usize, &Arc<Started>)> {
    history.iter().enumerate().find_map(|(at, event)| match &event.kind {
        EventKind::OrchestrationStarted(started) => Some((at, started)),
        _ => None,
    })
}
