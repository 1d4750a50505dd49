//! The position of an execution in its history: the last event, its time, and the sizes that are
//! limited.

use crate::event::{Event, EventKind};
use crate::failure::Failure;
use crate::limits::{MAX_EVENTS_PER_EXECUTION, MAX_HISTORY_BYTES};

/// The fold of a history into counts and times.
#[derive(Debug, Default)]
pub(super) struct HistoryPosition {
    last_event_id: u64,
    last_at_ms: u64,
    started_at_ms: u64,
    /// User data of the events so far: at most as much is in journal and code.
    payload_bytes: usize,
    /// Events that were replayed to rebuild the execution.
    replayed_events: u64,
}

impl HistoryPosition {
    /// Folds one event.
    pub(super) fn apply(&mut self, event: &Event) {
        self.last_event_id = event.event_id;
        self.last_at_ms = event.at_ms;
        self.payload_bytes += event.kind.payload_bytes();
        if matches!(event.kind, EventKind::OrchestrationStarted(_)) {
            self.started_at_ms = event.at_ms;
        }
    }

    /// The next event of the history. Times never decrease.
    pub(super) fn next_event(&self, kind: EventKind, now_ms: u64) -> Event {
        Event { event_id: self.next_event_id(), at_ms: now_ms.max(self.last_at_ms), kind }
    }

    pub(super) fn next_event_id(&self) -> u64 {
        self.last_event_id + 1
    }

    pub(super) fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    pub(super) fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    pub(super) fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Everything so far was replayed.
    pub(super) fn end_replay(&mut self) {
        self.replayed_events = self.last_event_id;
    }

    /// Whether the history has grown by at least an eighth since it was replayed. If turns that may
    /// be lost wait for that, replays take a bounded share of all work, however often turns are
    /// lost.
    pub(super) fn may_be_replayed_again(&self) -> bool {
        self.last_event_id >= self.replayed_events + self.replayed_events / 8
    }

    /// The failure of an execution whose history is too long or too large.
    pub(super) fn limit_failure(&self) -> Option<Failure> {
        let next = "use ctx.continue_as_new to go on with a fresh history";
        if self.last_event_id >= MAX_EVENTS_PER_EXECUTION {
            let events = self.last_event_id;
            let message =
                format!("the execution has {events} events, the limit is {MAX_EVENTS_PER_EXECUTION}; {next}");
            Some(Failure::configuration("too-many-events", message))
        } else if self.payload_bytes > MAX_HISTORY_BYTES {
            let (bytes, limit) = (self.payload_bytes, MAX_HISTORY_BYTES / (1024 * 1024));
            let message = format!(
                "the execution has {bytes} bytes of data in its history, the limit is {limit} MiB; {next}"
            );
            Some(Failure::configuration("history-too-large", message))
        } else {
            None
        }
    }
}
