//! The state that running orchestration code and the engine share: open operations, issued
//! commands, unread messages.
//!
//! The code uses the journal through its `Context`; the engine delivers recorded events to it. No
//! clock, I/O or randomness here: time is that of the last event, random numbers follow from the
//! recorded seed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::clock::duration_ms;
use crate::event::{ActivityOptions, CarriedMessage, Channel, EventKind};
use crate::failure::Failure;
use crate::ids::SeededRandom;
use crate::limits::{MAX_COMMANDS_PER_TURN, MAX_INSTANCE_ID_BYTES, MAX_POLLS_PER_DELIVERY, MAX_TIMER};
use crate::payload::Payload;

use super::unread::Unread;

const MS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

/// Names an open operation between the code's future and the journal.
pub(crate) type Token = usize;

/// The work of an inline step.
pub(crate) type StepFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// An operation that the code requests and waits for.
pub(crate) enum Request {
    Activity { name: String, input: Payload, options: ActivityOptions, deadline_ms: Option<u64> },
    Timer { at: TimerAt },
    Message { channel: Channel, name: String },
    Child { name: String, version: Option<String>, instance: Option<String>, input: Payload },
    Step { name: String, run: StepFuture },
    Cancellation,
}

/// When a timer fires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimerAt {
    After(u64),
    Time(u64),
}

/// A command that waits to be recorded (live) or matched with a recorded event (replay).
pub(crate) struct Command {
    pub(crate) token: Option<Token>,
    pub(crate) kind: EventKind,
}

/// A requested step whose result is not recorded yet.
pub(crate) struct PendingStep {
    pub(crate) name: String,
    pub(crate) token: Token,
    pub(crate) run: Option<StepFuture>,
}

/// Whether the code runs over recorded history or ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Replaying,
    Live,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Activity,
    Timer,
    Message,
    Child,
    Step(u64),
    Cancellation,
}

enum SlotState {
    Waiting(Option<Waker>),
    Ready(Result<Payload, Failure>),
}

struct Slot {
    kind: SlotKind,
    state: SlotState,
    shielded: bool,
    /// The recorded event of the operation, once it is recorded.
    event_id: Option<u64>,
    /// Channel and name of a message subscription.
    inbox: Option<(Channel, String)>,
}

#[derive(Default)]
struct Inbox {
    unread: VecDeque<Payload>,
    waiting: VecDeque<Token>,
}

/// Counts of the code's requests since the last delivery.
#[derive(Debug, Default)]
struct RequestCounts {
    /// Commands and steps.
    issued: usize,
    /// Requests that were answered at once.
    refused: usize,
}

/// Why code that never returned control to the engine was unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Commands,
    Spinning,
}

/// The request of the code to continue as new.
pub(crate) struct NextExecution {
    pub(crate) input: Payload,
    pub(crate) version: Option<String>,
}

pub(crate) struct Journal {
    pub(crate) mode: Mode,
    /// Set before the code's future is dropped by the engine, so that drops are not taken for
    /// decisions.
    pub(crate) closed: bool,
    pub(crate) now_ms: u64,
    pub(crate) random: SeededRandom,
    pub(crate) cancelled: Option<String>,
    pub(crate) commands: VecDeque<Command>,
    pub(crate) steps: BTreeMap<u64, PendingStep>,
    pub(crate) custom_status: Option<Payload>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Patches found in the recorded history.
    pub(crate) recorded_patches: BTreeSet<String>,
    pub(crate) next_execution: Option<NextExecution>,
    /// Messages in the inboxes.
    pub(crate) unread: Unread,
    /// Requests since the last delivery.
    counts: RequestCounts,
    /// Steps that the code has dropped, perhaps while they run.
    pub(crate) dropped_steps: Vec<u64>,
    decided_patches: BTreeMap<String, bool>,
    slots: Vec<Option<Slot>>,
    free_slots: Vec<Token>,
    by_event: HashMap<u64, Token>,
    inboxes: BTreeMap<(Channel, String), Inbox>,
    waiting: usize,
    last_step: u64,
    children: u64,
    instance: Arc<str>,
    execution_id: u64,
}

impl Journal {
    pub(crate) fn new(instance: &Arc<str>, execution_id: u64, seed: u64) -> Self {
        Journal {
            mode: Mode::Replaying,
            closed: false,
            now_ms: 0,
            random: SeededRandom::new(seed),
            cancelled: None,
            commands: VecDeque::new(),
            steps: BTreeMap::new(),
            custom_status: None,
            labels: BTreeMap::new(),
            recorded_patches: BTreeSet::new(),
            next_execution: None,
            unread: Unread::default(),
            counts: RequestCounts::default(),
            dropped_steps: Vec::new(),
            decided_patches: BTreeMap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            by_event: HashMap::new(),
            inboxes: BTreeMap::new(),
            waiting: 0,
            last_step: 0,
            children: 0,
            instance: Arc::clone(instance),
            execution_id,
        }
    }

    /// Opens an operation: issues its command and returns the token to wait on.
    pub(crate) fn open(&mut self, request: Request, shielded: bool) -> Result<Token, Failure> {
        if !shielded && let Some(reason) = &self.cancelled {
            return Err(Failure::cancelled(reason.clone()));
        }
        let token = match request {
            Request::Activity { name, input, mut options, deadline_ms } => {
                options.deadline_at_ms = deadline_ms.map(|after| self.now_ms.saturating_add(after));
                let kind = EventKind::ActivityScheduled { name, input, options: Box::new(options) };
                self.open_recorded(SlotKind::Activity, shielded, kind)
            }
            Request::Timer { at } => {
                let fire_at_ms = match at {
                    TimerAt::After(ms) => self.now_ms.saturating_add(ms),
                    TimerAt::Time(at_ms) => at_ms,
                };
                let ahead_ms = fire_at_ms.saturating_sub(self.now_ms);
                if ahead_ms > duration_ms(MAX_TIMER) {
                    return Err(Failure::configuration(
                        "timer-too-long",
                        format!(
                            "a timer of {} days is too long, the limit is ten years",
                            ahead_ms / MS_PER_DAY
                        ),
                    ));
                }
                self.open_recorded(SlotKind::Timer, shielded, EventKind::TimerCreated { fire_at_ms })
            }
            Request::Child { name, version, instance, input } => {
                let instance = instance.unwrap_or_else(|| self.next_child_id());
                crate::names::check_instance_id(&instance)
                    .map_err(|error| crate::failure::from_engine_error(&error))?;
                let kind = EventKind::SubOrchestrationScheduled { name, version, instance, input };
                self.open_recorded(SlotKind::Child, shielded, kind)
            }
            Request::Message { channel, name } => self.open_subscription(channel, name, shielded),
            Request::Step { name, run } => {
                self.count_issued();
                self.last_step += 1;
                let step = self.last_step;
                let token = self.insert(SlotKind::Step(step), shielded);
                self.steps.insert(step, PendingStep { name, token, run: Some(run) });
                token
            }
            Request::Cancellation => self.insert(SlotKind::Cancellation, shielded),
        };
        Ok(token)
    }

    fn open_recorded(&mut self, slot: SlotKind, shielded: bool, kind: EventKind) -> Token {
        let token = self.insert(slot, shielded);
        self.issue(Some(token), kind);
        token
    }

    fn open_subscription(&mut self, channel: Channel, name: String, shielded: bool) -> Token {
        let kind = EventKind::MessageSubscribed { channel, name: name.clone() };
        let token = self.open_recorded(SlotKind::Message, shielded, kind);
        let key = (channel, name);
        let inbox = self.inboxes.entry(key.clone()).or_default();
        if let Some(data) = inbox.unread.pop_front() {
            self.unread.remove(&data);
            // Reading what has arrived is bounded by the limit on unread messages.
            self.counts.issued -= 1;
            self.resolve(token, Ok(data));
        } else {
            inbox.waiting.push_back(token);
        }
        self.slot_mut(token).inbox = Some(key);
        token
    }

    /// Takes an unread message, without waiting and without a command.
    pub(crate) fn try_take(&mut self, channel: Channel, name: &str) -> Option<Payload> {
        let data = self.inboxes.get_mut(&(channel, name.to_owned()))?.unread.pop_front()?;
        self.unread.remove(&data);
        Some(data)
    }

    /// The id of the next child whose code gives none. Only a name: nothing is ever parsed from it.
    pub(crate) fn next_child_id(&mut self) -> String {
        self.children += 1;
        let id = format!("{}::{}.{}", self.instance, self.execution_id, self.children);
        // An id near the limit leaves no room for a suffix.
        if id.len() <= MAX_INSTANCE_ID_BYTES { id } else { self.random.next_uuid().to_string() }
    }

    /// The id of the next detached start whose code gives none. That instance outlives this one,
    /// and an instance of this id may be created again later, so it is random.
    pub(crate) fn next_detached_id(&mut self) -> String {
        self.random.next_uuid().to_string()
    }

    /// Whether the code runs with a change: as recorded, or as decided now that the code runs ahead
    /// of its history.
    pub(crate) fn patched(&mut self, id: &str) -> bool {
        if let Some(decided) = self.decided_patches.get(id) {
            return *decided;
        }
        let patched = self.mode == Mode::Live || self.recorded_patches.contains(id);
        self.decided_patches.insert(id.to_owned(), patched);
        if patched {
            self.issue(None, EventKind::Patched { id: id.to_owned() });
        }
        patched
    }

    pub(crate) fn command(&mut self, kind: EventKind) {
        self.issue(None, kind);
    }

    /// Adds a command. Code that issues commands in an endless loop never returns control to the
    /// engine, so it is unwound here; the engine then fails the execution for exceeding the limit.
    fn issue(&mut self, token: Option<Token>, kind: EventKind) {
        self.count_issued();
        if self.commands.capacity() == 0 {
            // Most often there is one at a time.
            self.commands.reserve_exact(1);
        }
        self.commands.push_back(Command { token, kind });
    }

    /// Counts a request that was answered at once. Code that ignores the answer and repeats the
    /// request never returns control to the engine (endless retries after a cancellation do that),
    /// so it is unwound here.
    pub(crate) fn refuse<T>(&mut self, answer: T) -> T {
        self.counts.refused += 1;
        self.unwind_excess();
        answer
    }

    /// Counts the requests in answer to one delivery from here on.
    pub(crate) fn begin_delivery(&mut self) {
        self.counts = RequestCounts::default();
    }

    /// The limit that the code has exceeded in answer to one delivery.
    pub(crate) fn excess(&self) -> Option<Excess> {
        if self.counts.issued > MAX_COMMANDS_PER_TURN {
            return Some(Excess::Commands);
        }
        (self.counts.refused > MAX_POLLS_PER_DELIVERY).then_some(Excess::Spinning)
    }

    fn unwind_excess(&self) {
        if let Some(excess) = self.excess() {
            std::panic::resume_unwind(Box::new(excess));
        }
    }

    fn count_issued(&mut self) {
        self.counts.issued += 1;
        self.unwind_excess();
    }

    /// Polls an operation for the code.
    pub(crate) fn poll(&mut self, token: Token, cx: &TaskContext<'_>) -> Poll<Result<Payload, Failure>> {
        match &mut self.slot_mut(token).state {
            SlotState::Waiting(waker) => {
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            SlotState::Ready(_) => {
                let slot = self.remove(token);
                self.disown_command(token, &slot);
                let SlotState::Ready(result) = slot.state else { unreachable!("it was ready a line ago") };
                Poll::Ready(result)
            }
        }
    }

    /// The code dropped its operation without taking the result: a loser of a race, or the end of
    /// the code.
    pub(crate) fn release(&mut self, token: Token) {
        // Code that is unwound for exceeding a limit decides nothing more.
        if self.closed || self.excess().is_some() {
            return;
        }
        let slot = self.remove(token);
        if matches!(slot.state, SlotState::Ready(_)) {
            self.disown_command(token, &slot);
        }
        if let SlotState::Ready(result) = slot.state {
            // A message that the code has not taken returns to the head of its queue.
            if let (Some((channel, name)), Ok(data)) = (slot.inbox, result) {
                self.put_back(channel, name, data);
            }
            return;
        }
        if let Some(inbox) = slot.inbox.as_ref().and_then(|key| self.inboxes.get_mut(key)) {
            inbox.waiting.retain(|waiting| *waiting != token);
        }
        if let SlotKind::Step(step) = slot.kind {
            self.steps.remove(&step);
            self.dropped_steps.push(step);
        }
        match slot.event_id {
            // Not recorded yet: the command is removed as if it had never been issued.
            None => self.commands.retain(|command| command.token != Some(token)),
            Some(source) => {
                let kind = match slot.kind {
                    SlotKind::Activity => EventKind::ActivityCancelRequested { source },
                    SlotKind::Timer => EventKind::TimerCancelled { source },
                    SlotKind::Message => EventKind::MessageSubscriptionCancelled { source },
                    SlotKind::Child => EventKind::SubOrchestrationCancelRequested { source },
                    SlotKind::Step(_) | SlotKind::Cancellation => return,
                };
                // Not counted: this runs in destructors, which must not unwind.
                self.commands.push_back(Command { token: None, kind });
            }
        }
    }

    /// A subscription that found its message at once may end before its command is recorded. The
    /// command stays, but must not bind its event to the operation that gets the token next.
    fn disown_command(&mut self, token: Token, slot: &Slot) {
        if slot.kind == SlotKind::Message && slot.event_id.is_none() {
            let mut newest_first = self.commands.iter_mut().rev();
            if let Some(command) = newest_first.find(|command| command.token == Some(token)) {
                command.token = None;
            }
        }
    }

    fn put_back(&mut self, channel: Channel, name: String, data: Payload) {
        let inbox = self.inboxes.entry((channel, name)).or_default();
        if let Some(token) = inbox.waiting.pop_front() {
            self.resolve(token, Ok(data));
        } else {
            self.unread.add(&data);
            inbox.unread.push_front(data);
        }
    }

    /// Moves the time of the code forward, never back.
    pub(super) fn advance_time(&mut self, at_ms: u64) {
        self.now_ms = self.now_ms.max(at_ms);
    }

    /// Binds an operation to the event that records it.
    pub(crate) fn bind(&mut self, token: Token, event_id: u64) {
        self.slot_mut(token).event_id = Some(event_id);
        self.by_event.insert(event_id, token);
    }

    /// Resolves the operation that the event records; nothing happens if the code no longer waits.
    pub(crate) fn resolve_event(&mut self, source: u64, result: Result<Payload, Failure>) {
        if let Some(token) = self.by_event.get(&source).copied() {
            self.resolve(token, result);
        }
    }

    pub(crate) fn resolve(&mut self, token: Token, result: Result<Payload, Failure>) {
        let slot = self.slot_mut(token);
        if let SlotState::Waiting(waker) = &mut slot.state {
            let waker = waker.take();
            slot.state = SlotState::Ready(result);
            self.waiting -= 1;
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Delivers a message to the oldest subscription, or keeps it unread.
    pub(crate) fn receive(&mut self, channel: Channel, name: &str, data: Payload) {
        let inbox = self.inboxes.entry((channel, name.to_owned())).or_default();
        if let Some(token) = inbox.waiting.pop_front() {
            self.resolve(token, Ok(data));
        } else {
            self.unread.add(&data);
            inbox.unread.push_back(data);
        }
    }

    /// Whether a message would go to a subscription at once.
    pub(crate) fn awaits(&self, channel: Channel, name: &str) -> bool {
        let inbox = self.inboxes.get(&(channel, name.to_owned()));
        inbox.is_some_and(|inbox| !inbox.waiting.is_empty())
    }

    /// Operations that a cancellation ends, oldest first.
    fn unshielded(&self) -> Vec<(Option<u64>, Token)> {
        let slots = self.slots.iter().enumerate();
        let mut open: Vec<(Option<u64>, Token)> = slots
            .filter_map(|(token, slot)| slot.as_ref().map(|slot| (token, slot)))
            .filter(|(_, slot)| matches!(slot.state, SlotState::Waiting(_)))
            .filter(|(_, slot)| !slot.shielded || slot.kind == SlotKind::Cancellation)
            .map(|(token, slot)| (slot.event_id, token))
            .collect();
        open.sort_unstable();
        open
    }

    /// Recorded events of the operations that a cancellation ends.
    pub(crate) fn unshielded_events(&self) -> Vec<u64> {
        self.unshielded().into_iter().filter_map(|(event_id, _)| event_id).collect()
    }

    /// Ends every operation that is not shielded, oldest first. Returns the recorded events of
    /// those operations.
    pub(crate) fn cancel(&mut self, reason: &str) -> Vec<u64> {
        self.cancelled = Some(reason.to_owned());
        let open = self.unshielded();
        for (event_id, token) in &open {
            if event_id.is_none() {
                // Requested since the last recorded event: removed as if it had never been issued.
                self.commands.retain(|command| command.token != Some(*token));
            }
            let slot = self.slot_mut(*token);
            let (kind, key) = (slot.kind, slot.inbox.clone());
            if let Some(inbox) = key.and_then(|key| self.inboxes.get_mut(&key)) {
                inbox.waiting.retain(|waiting| waiting != token);
            }
            if let SlotKind::Step(step) = kind {
                self.steps.remove(&step);
                self.dropped_steps.push(step);
            }
            let result = match kind {
                SlotKind::Cancellation => Ok(Payload::null()),
                _ => Err(Failure::cancelled(reason)),
            };
            self.resolve(*token, result);
        }
        open.into_iter().filter_map(|(event_id, _)| event_id).collect()
    }

    /// Messages that were not read, for the next execution. First those that were delivered to
    /// subscriptions which the code has not polled since.
    pub(crate) fn unread(&self) -> Vec<CarriedMessage> {
        let mut carried = Vec::with_capacity(self.unread.messages());
        let waits = self.slots.iter().flatten();
        let mut unseen: Vec<(Option<u64>, CarriedMessage)> = waits
            .filter_map(|slot| match (&slot.inbox, &slot.state) {
                (Some((channel, name)), SlotState::Ready(Ok(data))) => {
                    let (channel, name, data) = (*channel, name.clone(), data.clone());
                    Some((slot.event_id, CarriedMessage { channel, name, data }))
                }
                _ => None,
            })
            .collect();
        unseen.sort_by_key(|(event_id, _)| event_id.unwrap_or(u64::MAX));
        carried.extend(unseen.into_iter().map(|(_, message)| message));
        for ((channel, name), inbox) in &self.inboxes {
            for data in &inbox.unread {
                carried.push(CarriedMessage { channel: *channel, name: name.clone(), data: data.clone() });
            }
        }
        carried
    }

    /// Whether the code waits for anything that can ever be recorded.
    pub(crate) fn waits_for_something_durable(&self) -> bool {
        self.waiting > 0
    }

    fn insert(&mut self, kind: SlotKind, shielded: bool) -> Token {
        self.waiting += 1;
        let slot =
            Some(Slot { kind, state: SlotState::Waiting(None), shielded, event_id: None, inbox: None });
        if let Some(token) = self.free_slots.pop() {
            self.slots[token] = slot;
            token
        } else {
            if self.slots.capacity() == 0 {
                // Most often there is one at a time.
                self.slots.reserve_exact(1);
            }
            self.slots.push(slot);
            self.slots.len() - 1
        }
    }

    fn remove(&mut self, token: Token) -> Slot {
        let slot = self.slots[token].take().expect("a token is used by one future, which gives it up once");
        self.free_slots.push(token);
        if let Some(event_id) = slot.event_id {
            self.by_event.remove(&event_id);
        }
        if matches!(slot.state, SlotState::Waiting(_)) {
            self.waiting -= 1;
        }
        slot
    }

    fn slot_mut(&mut self, token: Token) -> &mut Slot {
        self.slots[token].as_mut().expect("a token stays valid until its future gives it up")
    }
}
