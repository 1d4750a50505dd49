//! What a store keeps in its queues and histories: routing data that it reads, and bodies that it never opens.

use bytes::Bytes;

/// Proof of holding a lock. A store issues strictly increasing numbers and never reuses one,
/// also not after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(pub u64);

/// One event of a history. The runtime assigns ids; a store keeps the bytes as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Position in the execution's history, ascending. The runtime counts from 1 without gaps; a store relies only on the order.
    pub event_id: u64,
    /// The encoded event; opaque.
    pub data: Bytes,
}

impl StoredEvent {
    /// The first of some events whose id is not above that of the one before it; `last_event_id` is before all of them.
    pub fn first_not_ascending(last_event_id: u64, events: &[StoredEvent]) -> Option<u64> {
        let mut last = last_event_id;
        events.iter().map(|event| event.event_id).find(|id| *id <= std::mem::replace(&mut last, *id))
    }
}

/// What must be true of an instance for a message to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartGuard {
    /// An ordinary message: always accepted.
    #[default]
    None,
    /// A start: the enqueue fails with `Conflict` when the instance has started (its row has a name) or
    /// another guarded start for it waits in the queue. This makes "start once" a promise of the store.
    IfAbsent,
    /// A message for an instance that must be there: the enqueue fails with `NotFound` when the instance has not
    /// started (its row has no name) and no guarded start for it waits in the queue.
    IfPresent,
}

/// A message for the orchestrator queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestratorMessage {
    /// The instance it is for.
    pub instance: String,
    /// Not delivered before this time of the store's clock, in Unix milliseconds; `None` is now.
    pub visible_at_ms: Option<u64>,
    /// Set for timers, so that a turn can take the message back.
    pub timer: Option<TimerIdentifier>,
    /// Whether the message may create its instance.
    pub guard: StartGuard,
    /// The encoded work item; opaque.
    pub body: Bytes,
}

impl OrchestratorMessage {
    /// A plain message that is visible at once.
    pub fn new(instance: impl Into<String>, body: impl Into<Bytes>) -> Self {
        OrchestratorMessage {
            instance: instance.into(),
            visible_at_ms: None,
            timer: None,
            guard: StartGuard::None,
            body: body.into(),
        }
    }
}

/// Names a timer of an instance: the event that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerIdentifier {
    /// Execution that created the timer.
    pub execution_id: u64,
    /// Event id of the creating event.
    pub timer_id: u64,
}

/// Names an activity of an instance: the event that scheduled it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduledActivityIdentifier {
    /// Instance that scheduled the activity.
    pub instance: String,
    /// Execution within the instance.
    pub execution_id: u64,
    /// Event id of the scheduling event.
    pub activity_id: u64,
}

/// A message for the worker queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerMessage {
    /// Which activity it is; cancellation and deletion find it by this.
    pub activity: ScheduledActivityIdentifier,
    /// Session that the work is bound to, if any.
    pub session_id: Option<String>,
    /// Routing tag, if any.
    pub tag: Option<String>,
    /// Not delivered before this time of the store's clock, in Unix milliseconds; `None` is now.
    pub visible_at_ms: Option<u64>,
    /// The encoded work item; opaque.
    pub body: Bytes,
}

/// A message as it comes out of the orchestrator queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Position in the queue; grows with every enqueue.
    pub message_id: u64,
    /// The body that was enqueued.
    pub body: Bytes,
}
