//! What an execution waits for, as its history has it: operations that were begun and have not
//! ended.
//!
//! Nothing is stored for this. A history is read a page at a time and folded, so memory holds one
//! page and what is open.

use std::collections::{BTreeMap, HashMap};

use super::Client;
use crate::error::Error;
use crate::event::{Channel, Event, EventKind};
use crate::limits::MAX_PAGE_ROWS;
use crate::store::HistoryQuery;

/// An operation that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOperation {
    /// The event that began it.
    pub event_id: u64,
    /// When that was, in Unix milliseconds.
    pub since_ms: u64,
    /// What it is.
    pub kind: OpenKind,
}

/// What has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenKind {
    /// An activity.
    Activity {
        /// Its name.
        name: String,
        /// The attempt that runs or comes next, from 1.
        attempt: u32,
        /// When that may start, in Unix milliseconds, if the one before failed.
        retry_at_ms: Option<u64>,
        /// Whether its attempts are used up, so that it waits for the instance to be resumed.
        is_exhausted: bool,
        /// Its routing tag.
        tag: Option<String>,
    },
    /// A timer.
    Timer {
        /// When it fires, in Unix milliseconds.
        fire_at_ms: u64,
    },
    /// A signal or a message of a mailbox.
    Message {
        /// Signal or mailbox.
        channel: Channel,
        /// Its name.
        name: String,
    },
    /// A child.
    Child {
        /// Its orchestration.
        name: String,
        /// Its instance.
        instance: String,
    },
}

/// What an execution waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOperations {
    /// The operations, oldest first.
    pub operations: Vec<OpenOperation>,
    /// Whether the history was read to its end.
    pub is_complete: bool,
}

/// How much of a history may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryBudget {
    /// Events.
    pub events: usize,
    /// Bytes of user data in them.
    pub bytes: usize,
}

/// The fold of a history.
#[derive(Default)]
struct Open {
    operations: BTreeMap<u64, OpenOperation>,
    /// Messages that no subscription has taken yet.
    unread: HashMap<(Channel, String), u64>,
}

impl Open {
    fn apply(&mut self, event: Event) {
        let Event { event_id, at_ms, kind } = event;
        let opened = match kind {
            EventKind::OrchestrationStarted(started) => {
                for message in &started.carried {
                    *self.unread.entry((message.channel, message.name.clone())).or_default() += 1;
                }
                return;
            }
            EventKind::ActivityScheduled { name, options, .. } => OpenKind::Activity {
                name,
                attempt: 1,
                retry_at_ms: None,
                is_exhausted: false,
                tag: options.tag,
            },
            EventKind::TimerCreated { fire_at_ms } => OpenKind::Timer { fire_at_ms },
            EventKind::SubOrchestrationScheduled { name, instance, .. } => OpenKind::Child { name, instance },
            EventKind::MessageSubscribed { channel, name } => {
                if let Some(unread) =
                    self.unread.get_mut(&(channel, name.clone())).filter(|unread| **unread > 0)
                {
                    *unread -= 1;
                    return;
                }
                OpenKind::Message { channel, name }
            }
            EventKind::MessageReceived { channel, name, .. } => return self.receive(channel, name),
            EventKind::ActivityAttemptFailed { source, attempt: failed, retry_at_ms: retry, .. } => {
                if let Some(OpenOperation { kind, .. }) = self.operations.get_mut(&source)
                    && let OpenKind::Activity { attempt, retry_at_ms, is_exhausted, .. } = kind
                {
                    (*attempt, *retry_at_ms, *is_exhausted) = (failed + 1, retry, retry.is_none());
                }
                return;
            }
            EventKind::OrchestrationResumed => return self.resume(),
            EventKind::ActivityCompleted { source, .. }
            | EventKind::ActivityFailed { source, .. }
            | EventKind::ActivityCancelRequested { source }
            | EventKind::TimerFired { source }
            | EventKind::TimerCancelled { source }
            | EventKind::MessageSubscriptionCancelled { source }
            | EventKind::SubOrchestrationCompleted { source, .. }
            | EventKind::SubOrchestrationFailed { source, .. }
            | EventKind::SubOrchestrationCancelRequested { source } => {
                self.operations.remove(&source);
                return;
            }
            kind if kind.is_last() => return self.operations.clear(),
            _ => return,
        };
        self.operations.insert(event_id, OpenOperation { event_id, since_ms: at_ms, kind: opened });
    }

    /// A message goes to the oldest subscription, or waits for one.
    fn receive(&mut self, channel: Channel, name: String) {
        let takes = |operation: &OpenOperation| matches!(&operation.kind, OpenKind::Message { channel: of, name: own } if (*of, own) == (channel, &name));
        let taker = self.operations.values().find(|operation| takes(operation)).map(|found| found.event_id);
        match taker {
            Some(event_id) => drop(self.operations.remove(&event_id)),
            None => *self.unread.entry((channel, name)).or_default() += 1,
        }
    }

    /// Activities whose attempts were used up get fresh ones.
    fn resume(&mut self) {
        for operation in self.operations.values_mut() {
            if let OpenKind::Activity { attempt, is_exhausted, .. } = &mut operation.kind
                && std::mem::take(is_exhausted)
            {
                *attempt = 1;
            }
        }
    }
}

impl Client {
    /// What an execution waits for: activities, timers, messages and children. Reads its history
    /// within a budget; what is open after a part of it may have ended since.
    ///
    /// # Errors
    /// `not-found` when there is no such execution, `stored-data-unreadable` when an event cannot
    /// be read.
    pub async fn open_operations(
        &self,
        instance: &str,
        execution_id: u64,
        budget: HistoryBudget,
    ) -> Result<OpenOperations, Error> {
        let (mut open, mut after, mut left) = (Open::default(), 0, budget);
        loop {
            let query = HistoryQuery {
                instance_id: instance.to_owned(),
                execution_id,
                after_event_id: after,
                limit: MAX_PAGE_ROWS.min(left.events.max(1)),
            };
            let page = self.history_page(query).await?;
            left.events = left.events.saturating_sub(page.events.len());
            for event in page.events {
                left.bytes = left.bytes.saturating_sub(event.kind.payload_bytes());
                open.apply(event);
            }
            let is_complete = page.next.is_none();
            match page.next.filter(|_| left.events > 0 && left.bytes > 0) {
                Some(next) => after = next,
                None => {
                    let operations = open.operations.into_values().collect();
                    return Ok(OpenOperations { operations, is_complete });
                }
            }
            // A store in this process answers without a pause.
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ActivityOptions;
    use crate::failure::Failure;
    use crate::payload::Payload;

    fn open_after(kinds: Vec<EventKind>) -> Vec<(u64, OpenKind)> {
        let mut open = Open::default();
        for (place, kind) in kinds.into_iter().enumerate() {
            open.apply(Event { event_id: place as u64 + 1, at_ms: 7, kind });
        }
        open.operations.into_values().map(|operation| (operation.event_id, operation.kind)).collect()
    }

    fn activity() -> EventKind {
        let options = Box::new(ActivityOptions { tag: Some("gpu".to_owned()), ..ActivityOptions::default() });
        EventKind::ActivityScheduled { name: "paint".to_owned(), input: Payload::null(), options }
    }

    fn attempt_failed(attempt: u32, retry_at_ms: Option<u64>) -> EventKind {
        let failure = Failure::application("no paint");
        EventKind::ActivityAttemptFailed { source: 1, attempt, failure, retry_at_ms }
    }

    fn open_activity(attempt: u32, retry_at_ms: Option<u64>, is_exhausted: bool) -> OpenKind {
        let (name, tag) = ("paint".to_owned(), Some("gpu".to_owned()));
        OpenKind::Activity { name, attempt, retry_at_ms, is_exhausted, tag }
    }

    fn subscribed(name: &str) -> EventKind {
        EventKind::MessageSubscribed { channel: Channel::Signal, name: name.to_owned() }
    }

    fn received(name: &str) -> EventKind {
        let name = name.to_owned();
        EventKind::MessageReceived { channel: Channel::Signal, name, data: Payload::null(), id: None }
    }

    fn signal(name: &str) -> OpenKind {
        OpenKind::Message { channel: Channel::Signal, name: name.to_owned() }
    }

    #[test]
    fn activities_are_open_until_they_end_with_the_attempt_that_comes_next() {
        for (events, expected) in [
            (vec![activity()], vec![(1, open_activity(1, None, false))]),
            (vec![activity(), attempt_failed(1, Some(90))], vec![(1, open_activity(2, Some(90), false))]),
            (vec![activity(), attempt_failed(3, None)], vec![(1, open_activity(4, None, true))]),
            (
                vec![activity(), attempt_failed(3, None), EventKind::OrchestrationResumed],
                vec![(1, open_activity(1, None, false))],
            ),
            (vec![activity(), EventKind::ActivityCompleted { source: 1, result: Payload::null() }], vec![]),
            (vec![activity(), EventKind::ActivityCancelRequested { source: 1 }], vec![]),
            (vec![activity(), EventKind::OrchestrationCompleted { output: Payload::null() }], vec![]),
        ] {
            assert_eq!(open_after(events.clone()), expected, "{events:?}");
        }
    }

    #[test]
    fn a_message_goes_to_the_oldest_subscription_of_its_name_or_waits_for_one() {
        for (events, expected) in [
            (vec![subscribed("a")], vec![(1, signal("a"))]),
            (vec![subscribed("a"), subscribed("a"), received("a")], vec![(2, signal("a"))]),
            (vec![subscribed("a"), received("b")], vec![(1, signal("a"))]),
            (vec![received("a"), subscribed("a"), subscribed("a")], vec![(3, signal("a"))]),
            (
                vec![
                    subscribed("a"),
                    EventKind::TimerCreated { fire_at_ms: 90 },
                    EventKind::MessageSubscriptionCancelled { source: 1 },
                ],
                vec![(2, OpenKind::Timer { fire_at_ms: 90 })],
            ),
        ] {
            assert_eq!(open_after(events.clone()), expected, "{events:?}");
        }
    }
}
