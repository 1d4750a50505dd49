//! One execution: the live future of its code and everything its history says.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::event::{CarriedMessage, Event, EventKind, Started};
use crate::failure::{self, Category, Failure};
use crate::limits::{
    MAX_COMMANDS_PER_TURN, MAX_EVENTS_PER_EXECUTION, MAX_POLLS_PER_DELIVERY, MAX_REMEMBERED_MESSAGE_IDS,
};
use crate::payload::Payload;
use crate::work_item::WorkItem;

use super::journal::{Command, Journal, Mode, StepFuture};
use super::nondeterminism::Nondeterminism;
use super::operations::{OpenActivity, Operation, Operations};
use super::plan::TurnPlan;

/// The running code of an orchestration.
pub(crate) type OrchestrationFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Makes the future of an orchestration from what it shares with the engine and its input.
pub(crate) type OrchestrationHandler = Arc<dyn Fn(Arc<Shared>, Payload) -> OrchestrationFuture + Send + Sync>;

/// Which execution this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionId {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
}

/// What the code's `Context` and the engine share.
pub(crate) struct Shared {
    pub(crate) id: ExecutionId,
    pub(crate) started: Started,
    journal: Mutex<Journal>,
}

impl Shared {
    /// The journal. A panic of user code while it holds the lock leaves plain data behind, so poisoning is ignored.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes that something which the code awaits has become ready, and who said so.
struct RootWake {
    woken: AtomicBool,
    /// Set while the engine is at work on this execution; a wake-up at any other time comes from outside.
    engine_at_work: AtomicBool,
    woken_from_outside: AtomicBool,
}

impl Wake for RootWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        if !self.engine_at_work.load(Ordering::Relaxed) {
            self.woken_from_outside.store(true, Ordering::Relaxed);
        }
    }
}

/// How the last drive of the code went.
enum Drive {
    Resting,
    Ended(EventKind),
}

/// A step to be run before the execution can go on.
pub(crate) struct RunnableStep {
    pub(crate) step: u64,
    pub(crate) name: String,
    pub(crate) run: StepFuture,
}

pub(crate) struct Execution {
    pub(super) shared: Arc<Shared>,
    future: Option<OrchestrationFuture>,
    root: Arc<RootWake>,
    waker: Waker,
    pub(super) operations: Operations,
    pub(super) paused: bool,
    held: VecDeque<Event>,
    pub(super) seen_message_ids: SeenMessageIds,
    last_event_id: u64,
    last_at_ms: u64,
    commands_this_turn: usize,
    /// The last event, once the execution has ended.
    pub(super) ended: Option<EventKind>,
    /// Messages that came after the end by continue-as-new; the next execution gets them.
    pub(super) late_messages: Vec<CarriedMessage>,
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
        let mut execution = Self::new(id, started.clone(), handler);
        execution.shared.journal().mode = Mode::Live;
        execution.enter();
        execution.take_early(early);
        execution.record(EventKind::OrchestrationStarted(Box::new(started)), now_ms);
        execution.flush(now_ms);
        execution.leave();
        execution
    }

    /// Rebuilds an execution from its history.
    pub(crate) fn replay(
        id: ExecutionId,
        history: &[Event],
        handler: &OrchestrationHandler,
    ) -> Result<Self, Nondeterminism> {
        let (at, started) = find_started(history).ok_or_else(|| Nondeterminism {
            event_id: 1,
            recorded: "a history without OrchestrationStarted".to_owned(),
            requested: "an orchestration".to_owned(),
        })?;
        let mut execution = Self::new(id, started.clone(), handler);
        execution.shared.journal().recorded_patches = recorded_patches(history);
        execution.take_early(&history[..at]);
        execution.root.engine_at_work.store(true, Ordering::Relaxed);
        for event in &history[at..] {
            execution.replay_event(event)?;
        }
        execution.expect_no_commands_left()?;
        execution.root.engine_at_work.store(false, Ordering::Relaxed);
        execution.shared.journal().mode = Mode::Live;
        Ok(execution)
    }

    fn new(id: ExecutionId, started: Started, handler: &OrchestrationHandler) -> Self {
        let mut journal = Journal::new(&id.instance, id.execution_id, started.seed);
        journal.custom_status = started.custom_status.clone();
        journal.labels = started.labels.clone();
        for CarriedMessage { channel, name, data } in &started.carried {
            journal.receive(*channel, name, data.clone());
        }
        let input = started.input.clone();
        let seen_message_ids = SeenMessageIds::from(started.seen_message_ids.clone());
        let shared = Arc::new(Shared { id, started, journal: Mutex::new(journal) });
        let root = Arc::new(RootWake {
            woken: AtomicBool::new(true),
            engine_at_work: AtomicBool::new(false),
            woken_from_outside: AtomicBool::new(false),
        });
        Execution {
            future: Some(handler(shared.clone(), input)),
            waker: Waker::from(root.clone()),
            root,
            shared,
            operations: BTreeMap::new(),
            paused: false,
            held: VecDeque::new(),
            seen_message_ids,
            last_event_id: 0,
            last_at_ms: 0,
            commands_this_turn: 0,
            ended: None,
            late_messages: Vec::new(),
            plan: TurnPlan::default(),
        }
    }

    /// Messages that were recorded before the start wait in their inboxes.
    fn take_early(&mut self, early: &[Event]) {
        for event in early {
            self.last_event_id = event.event_id;
            self.last_at_ms = event.at_ms;
            if let EventKind::MessageReceived { channel, name, data, id } = &event.kind {
                self.seen_message_ids.remember(id.as_deref());
                self.shared.journal().receive(*channel, name, data.clone());
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

    /// Looks at the end of a turn whether the execution can go on at all, and fails it if not.
    pub(crate) fn settle(&mut self, now_ms: u64) {
        self.commands_this_turn = 0;
        if self.ended.is_some() || self.paused {
            return;
        }
        if self.last_event_id >= MAX_EVENTS_PER_EXECUTION {
            let message = format!(
                "the execution has {} events, the limit is {MAX_EVENTS_PER_EXECUTION}; \
                 use ctx.continue_as_new to go on with a fresh history",
                self.last_event_id
            );
            self.fail(Failure::configuration("too-many-events", message), now_ms);
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
                instance = self.shared.id.instance,
                "the orchestration was woken from outside the engine: it awaits something that is not durable and \
                 that will be lost on replay; do it in an activity or in ctx.run"
            );
        }
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

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.shared.journal().labels.clone()
    }

    pub(crate) fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
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
        self.plan.events.push(event.clone());
        self.apply(event);
    }

    /// Records the commands that the code has given, until it rests. Ending is a command as well.
    fn flush(&mut self, now_ms: u64) {
        loop {
            if self.ended.is_some() {
                return;
            }
            let Some(command) = self.shared.journal().commands.pop_front() else { return };
            self.commands_this_turn += 1;
            if self.commands_this_turn > MAX_COMMANDS_PER_TURN {
                let message = format!(
                    "one turn asked for more than {MAX_COMMANDS_PER_TURN} commands; \
                     start fewer things at once, or let children share the work"
                );
                self.record(
                    EventKind::OrchestrationFailed {
                        failure: Failure::configuration("too-many-commands", message),
                    },
                    now_ms,
                );
                return;
            }
            let token = command.token;
            let event_id = self.last_event_id + 1;
            if let Some(token) = token {
                self.shared.journal().bind(token, event_id);
            }
            self.record(command.kind, now_ms);
        }
    }

    /// Brings an event into the state: what is open, and what the code sees.
    fn apply(&mut self, event: Event) {
        self.last_event_id = event.event_id;
        self.last_at_ms = event.at_ms;
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
            _ if self.paused => self.held.push_back(event),
            _ => self.deliver(event),
        }
    }

    fn resume(&mut self, at_ms: u64) {
        self.paused = false;
        for operation in self.operations.values_mut() {
            if let Operation::Activity(activity) = operation
                && activity.exhausted
            {
                activity.exhausted = false;
                activity.attempt += 1;
                activity.first_attempt = activity.attempt;
            }
        }
        self.advance_time(at_ms);
        while let Some(event) = self.held.pop_front() {
            self.deliver(event);
        }
    }

    /// Keeps the list of what is open.
    fn note_operation(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ActivityScheduled { name, input, options } => {
                let activity = OpenActivity {
                    name: name.clone(),
                    input: input.clone(),
                    options: (**options).clone(),
                    attempt: 1,
                    first_attempt: 1,
                    exhausted: false,
                };
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
                        Some(_) => activity.attempt += 1,
                        None => activity.exhausted = true,
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

    /// Polls the code until nothing that it awaits is ready. Its end becomes the last command.
    fn drive(&mut self) {
        if let Drive::Ended(kind) = self.poll_until_rest() {
            let mut journal = self.shared.journal();
            journal.commands.push_back(Command { token: None, kind });
            drop(journal);
            self.drop_future();
        }
    }

    fn poll_until_rest(&mut self) -> Drive {
        let Some(future) = &mut self.future else { return Drive::Resting };
        let mut cx = TaskContext::from_waker(&self.waker);
        for _ in 0..MAX_POLLS_PER_DELIVERY {
            if !self.root.woken.swap(false, Ordering::Relaxed) {
                return Drive::Resting;
            }
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
            if let Some(next) = self.shared.journal().next_execution.take() {
                return Drive::Ended(EventKind::OrchestrationContinuedAsNew {
                    input: next.input,
                    version: next.version,
                });
            }
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(output))) => {
                    return Drive::Ended(EventKind::OrchestrationCompleted { output });
                }
                Ok(Poll::Ready(Err(failure))) => {
                    return Drive::Ended(EventKind::OrchestrationFailed { failure });
                }
                Err(panic) => {
                    let failure = failure::from_panic("the orchestration", &*panic).non_retryable();
                    return Drive::Ended(EventKind::OrchestrationFailed { failure });
                }
            }
        }
        let message = "the orchestration keeps waking itself without waiting for anything; it spins";
        Drive::Ended(EventKind::OrchestrationFailed { failure: Failure::configuration("busy-loop", message) })
    }

    fn end(&mut self, kind: EventKind) {
        self.drop_future();
        self.shared.journal().commands.clear();
        self.ended = Some(kind);
    }

    /// Drops the code without taking the drops of its operations for decisions.
    fn drop_future(&mut self) {
        self.shared.journal().closed = true;
        // A panic in a destructor of user code must not reach the engine.
        let future = self.future.take();
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::warn!(instance = self.shared.id.instance, "a destructor of the orchestration panicked");
        }
    }

    fn replay_event(&mut self, event: &Event) -> Result<(), Nondeterminism> {
        if is_command(&event.kind) {
            self.match_command(event)?;
        } else {
            self.expect_no_command_before(event)?;
            self.check_step(event)?;
        }
        self.apply(event.clone());
        Ok(())
    }

    /// The next command of the code must be the recorded one.
    fn match_command(&mut self, event: &Event) -> Result<(), Nondeterminism> {
        let mut journal = self.shared.journal();
        let fits = journal.commands.front().is_some_and(|command| same_command(&command.kind, &event.kind));
        if fits {
            let command = journal.commands.pop_front().expect("it was there a line ago");
            if let Some(token) = command.token {
                journal.bind(token, event.event_id);
            }
            return Ok(());
        }
        if matches!(event.kind, EventKind::Patched { .. }) {
            // The code no longer asks for this patch: it was retired, which is fine.
            return Ok(());
        }
        let requested = journal.commands.front();
        let requested = requested.map_or_else(|| "nothing".to_owned(), |command| command.kind.describe());
        Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
    }

    fn expect_no_command_before(&self, event: &Event) -> Result<(), Nondeterminism> {
        let journal = self.shared.journal();
        match (journal.commands.front(), &event.kind) {
            (None, _) => Ok(()),
            // The code failed, as recorded.
            (Some(command), EventKind::OrchestrationFailed { .. })
                if matches!(command.kind, EventKind::OrchestrationFailed { .. }) =>
            {
                Ok(())
            }
            // The engine ended the execution; what the code would have done next was never recorded.
            (Some(_), EventKind::OrchestrationFailed { failure })
                if matches!(failure.category, Category::Configuration | Category::Poison) =>
            {
                Ok(())
            }
            (Some(command), _) => Err(Nondeterminism {
                event_id: event.event_id,
                recorded: event.kind.describe(),
                requested: command.kind.describe(),
            }),
        }
    }

    fn expect_no_commands_left(&self) -> Result<(), Nondeterminism> {
        match self.shared.journal().commands.front() {
            None => Ok(()),
            Some(command) => Err(Nondeterminism {
                event_id: self.last_event_id + 1,
                recorded: "the end of the history".to_owned(),
                requested: command.kind.describe(),
            }),
        }
    }

    /// A recorded step must be one that the code asked for, by number and name.
    fn check_step(&self, event: &Event) -> Result<(), Nondeterminism> {
        let (EventKind::StepCompleted { step, name, .. } | EventKind::StepFailed { step, name, .. }) =
            &event.kind
        else {
            return Ok(());
        };
        let journal = self.shared.journal();
        let requested = match journal.steps.get(step) {
            Some(pending) if pending.name == *name => return Ok(()),
            Some(pending) => format!("step {step} {:?}", pending.name),
            None => format!("no step {step}"),
        };
        Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.drop_future();
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
pub(crate) fn find_started(history: &[Event]) -> Option<(usize, &Started)> {
    history.iter().enumerate().find_map(|(at, event)| match &event.kind {
        EventKind::OrchestrationStarted(started) => Some((at, &**started)),
        _ => None,
    })
}

fn recorded_patches(history: &[Event]) -> BTreeSet<String> {
    let ids = history.iter().filter_map(|event| match &event.kind {
        EventKind::Patched { id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Kinds that are recorded because the code asked for them.
fn is_command(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityScheduled { .. }
            | EventKind::ActivityCancelRequested { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::TimerCancelled { .. }
            | EventKind::MessageSubscribed { .. }
            | EventKind::MessageSubscriptionCancelled { .. }
            | EventKind::SubOrchestrationScheduled { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::OrchestrationChained { .. }
            | EventKind::CustomStatusUpdated { .. }
            | EventKind::LabelUpdated { .. }
            | EventKind::Patched { .. }
            | EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationContinuedAsNew { .. }
    )
}

/// Whether a command is the recorded one: same kind, same names. Inputs may differ: what was recorded holds.
fn same_command(requested: &EventKind, recorded: &EventKind) -> bool {
    use EventKind as K;
    match (requested, recorded) {
        (K::ActivityScheduled { name: a, .. }, K::ActivityScheduled { name: b, .. }) => a == b,
        (K::ActivityCancelRequested { source: a }, K::ActivityCancelRequested { source: b })
        | (K::TimerCancelled { source: a }, K::TimerCancelled { source: b })
        | (K::MessageSubscriptionCancelled { source: a }, K::MessageSubscriptionCancelled { source: b })
        | (
            K::SubOrchestrationCancelRequested { source: a },
            K::SubOrchestrationCancelRequested { source: b },
        ) => a == b,
        (K::TimerCreated { .. }, K::TimerCreated { .. })
        | (K::CustomStatusUpdated { .. }, K::CustomStatusUpdated { .. })
        | (K::OrchestrationCompleted { .. }, K::OrchestrationCompleted { .. })
        | (K::OrchestrationContinuedAsNew { .. }, K::OrchestrationContinuedAsNew { .. }) => true,
        (
            K::MessageSubscribed { channel: a, name: a_name },
            K::MessageSubscribed { channel: b, name: b_name },
        ) => a == b && a_name == b_name,
        (
            K::SubOrchestrationScheduled { name: a, instance: a_id, .. },
            K::SubOrchestrationScheduled { name: b, instance: b_id, .. },
        )
        | (
            K::OrchestrationChained { name: a, instance: a_id, .. },
            K::OrchestrationChained { name: b, instance: b_id, .. },
        ) => a == b && a_id == b_id,
        (K::LabelUpdated { key: a, .. }, K::LabelUpdated { key: b, .. }) => a == b,
        (K::Patched { id: a }, K::Patched { id: b }) => a == b,
        _ => false,
    }
}

/// Ids of messages already taken, oldest forgotten first.
#[derive(Debug, Default)]
pub(super) struct SeenMessageIds {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl SeenMessageIds {
    fn from(ids: Vec<String>) -> Self {
        let mut seen = SeenMessageIds::default();
        for id in &ids {
            seen.remember(Some(id));
        }
        seen
    }

    pub(super) fn remember(&mut self, id: Option<&str>) {
        let Some(id) = id else { return };
        if self.ids.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
            if self.order.len() > MAX_REMEMBERED_MESSAGE_IDS
                && let Some(oldest) = self.order.pop_front()
            {
                self.ids.remove(&oldest);
            }
        }
    }

    pub(super) fn contains(&self, id: Option<&str>) -> bool {
        id.is_some_and(|id| self.ids.contains(id))
    }

    pub(super) fn to_vec(&self) -> Vec<String> {
        self.order.iter().cloned().collect()
    }
}
