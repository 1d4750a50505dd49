//! Open operations: the fold of a history into the activities, timers and children that have not
//! ended.
//!
//! | event | effect |
//! |---|---|
//! | `ActivityScheduled`, `TimerCreated`, `SubOrchestrationScheduled` | opens an operation |
//! | `ActivityAttemptFailed` | counts the attempt, or holds the activity until the resume |
//! | completed, failed, fired, cancelled | ends the operation of its `source` |
//! | `OrchestrationPaused` | holds retries from here on |
//! | `OrchestrationResumed`, `OrchestrationCancelRequested` | releases held activities |

use std::collections::BTreeMap;

use crate::event::{ActivityOptions, Event, EventKind, OnExhausted};
use crate::failure::Failure;
use crate::ids::derive;
use crate::payload::Payload;

/// The parts of an activity that a queued attempt contains.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a Payload,
    pub(super) options: &'a ActivityOptions,
}

/// An activity that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenActivity {
    pub(super) name: String,
    input: Payload,
    pub(super) options: ActivityOptions,
    /// Number of the attempt that is queued or running, from 1.
    pub(super) attempt: u32,
    /// The attempt from which the policy counts; later than 1 after a resume.
    first_attempt: u32,
    hold: Hold,
}

/// Why an activity is not retried before its instance is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Hold {
    #[default]
    None,
    /// An attempt failed while the instance was paused; the next one is due at this time.
    Retry(u64),
    /// All attempts are used up, which paused the instance.
    Exhausted,
}

impl OpenActivity {
    fn scheduled(name: &str, input: &Payload, options: &ActivityOptions) -> Self {
        OpenActivity {
            name: name.to_owned(),
            input: input.clone(),
            options: options.clone(),
            attempt: 1,
            first_attempt: 1,
            hold: Hold::None,
        }
    }

    pub(super) fn call(&self) -> Call<'_> {
        Call { name: &self.name, input: &self.input, options: &self.options }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.hold == Hold::Exhausted
    }

    /// Number and time of the attempt that a resume starts, if it starts one.
    fn attempt_on_resume(&self) -> Option<(u32, Option<u64>)> {
        match self.hold {
            Hold::None => None,
            Hold::Retry(at_ms) => Some((self.attempt, Some(at_ms))),
            Hold::Exhausted => Some((self.attempt + 1, None)),
        }
    }

    /// Releases the activity: an exhausted one counts its attempts afresh.
    fn resume(&mut self) {
        if self.hold == Hold::Exhausted {
            self.attempt += 1;
            self.first_attempt = self.attempt;
        }
        self.hold = Hold::None;
    }

    /// Applies the retry policy to a failed attempt. The deadline is hard: a retry that could only
    /// start after it is not made.
    pub(super) fn judge(&self, failure: &Failure, now_ms: u64, seed: u64) -> AttemptVerdict {
        let relative = self.attempt - self.first_attempt + 1;
        let delay =
            self.options.retry.next_delay_ms(relative, failure, derive(seed, u64::from(self.attempt)));
        let retry_at = delay
            .map(|delay| now_ms.saturating_add(delay))
            .filter(|at| self.options.deadline_at_ms.is_none_or(|deadline| *at < deadline));
        match retry_at {
            Some(at_ms) => AttemptVerdict::RetryAt(at_ms),
            None if self.options.on_exhausted == OnExhausted::Pause && !failure.is_cancelled() => {
                AttemptVerdict::Pause
            }
            None => AttemptVerdict::Fail,
        }
    }
}

/// The decision of the retry policy about a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AttemptVerdict {
    RetryAt(u64),
    /// Pause the instance; the resume retries.
    Pause,
    /// The activity fails.
    Fail,
}

/// Something that was scheduled and has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operation {
    Activity(Box<OpenActivity>),
    Timer,
    Child { instance: String },
}

/// Open operations by the event that scheduled them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Operations {
    open: BTreeMap<u64, Operation>,
    paused: bool,
}

impl Operations {
    /// Folds a whole history.
    pub(super) fn of(history: &[Event]) -> Self {
        let mut operations = Operations::default();
        history.iter().for_each(|event| operations.apply(event));
        operations
    }

    /// Folds one event.
    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ActivityScheduled { name, input, options } => {
                let activity = OpenActivity::scheduled(name, input, options);
                self.open.insert(event.event_id, Operation::Activity(Box::new(activity)));
            }
            EventKind::TimerCreated { .. } => {
                self.open.insert(event.event_id, Operation::Timer);
            }
            EventKind::SubOrchestrationScheduled { instance, .. } => {
                self.open.insert(event.event_id, Operation::Child { instance: instance.clone() });
            }
            EventKind::ActivityAttemptFailed { source, retry_at_ms, .. } => {
                self.apply_failed_attempt(*source, *retry_at_ms);
            }
            EventKind::ActivityCompleted { source, .. }
            | EventKind::ActivityFailed { source, .. }
            | EventKind::ActivityCancelRequested { source }
            | EventKind::TimerFired { source }
            | EventKind::TimerCancelled { source }
            | EventKind::SubOrchestrationCompleted { source, .. }
            | EventKind::SubOrchestrationFailed { source, .. }
            | EventKind::SubOrchestrationCancelRequested { source } => {
                self.open.remove(source);
            }
            EventKind::OrchestrationPaused { .. } => self.paused = true,
            EventKind::OrchestrationResumed | EventKind::OrchestrationCancelRequested { .. } => self.resume(),
            _ => {}
        }
    }

    fn apply_failed_attempt(&mut self, source: u64, retry_at_ms: Option<u64>) {
        let Some(Operation::Activity(activity)) = self.open.get_mut(&source) else { return };
        match retry_at_ms {
            Some(at_ms) => {
                activity.attempt += 1;
                activity.hold = if self.paused { Hold::Retry(at_ms) } else { Hold::None };
            }
            None => activity.hold = Hold::Exhausted,
        }
    }

    fn resume(&mut self) {
        self.paused = false;
        for operation in self.open.values_mut() {
            if let Operation::Activity(activity) = operation {
                activity.resume();
            }
        }
    }

    /// Ends operations because of a cancellation. Which ones depends on the code, not on the event.
    pub(super) fn cancel(&mut self, event_ids: &[u64]) {
        for event_id in event_ids {
            self.open.remove(event_id);
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn get(&self, id: u64) -> Option<&Operation> {
        self.open.get(&id)
    }

    pub(super) fn activity(&self, id: u64) -> Option<&OpenActivity> {
        match self.open.get(&id) {
            Some(Operation::Activity(activity)) => Some(activity),
            _ => None,
        }
    }

    pub(super) fn has_child(&self, id: u64) -> bool {
        matches!(self.open.get(&id), Some(Operation::Child { .. }))
    }

    /// Whether this operation is the only open one.
    pub(super) fn is_only(&self, id: u64) -> bool {
        self.open.len() == 1 && self.open.contains_key(&id)
    }

    /// In the order in which they were scheduled.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Operation)> {
        self.open.iter().map(|(id, operation)| (*id, operation))
    }

    /// Attempts that a resume queues: the activity, the number of the attempt, and its time unless
    /// that is at once.
    pub(super) fn attempts_on_resume(&self) -> impl Iterator<Item = (u64, &OpenActivity, u32, Option<u64>)> {
        self.iter().filter_map(|(id, operation)| match operation {
            Operation::Activity(activity) => {
                let (attempt, at_ms) = activity.attempt_on_resume()?;
                Some((id, &**activity, attempt, at_ms))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(kinds: Vec<EventKind>) -> Vec<Event> {
        let events = kinds.into_iter().zip(1..);
        events.map(|(kind, event_id)| Event { event_id, at_ms: event_id, kind }).collect()
    }

    fn activity() -> EventKind {
        let options = Box::new(ActivityOptions::default());
        EventKind::ActivityScheduled { name: "charge".to_owned(), input: Payload::null(), options }
    }

    fn attempt_failed(retry_at_ms: Option<u64>) -> EventKind {
        let failure = Failure::application("no");
        EventKind::ActivityAttemptFailed { source: 1, attempt: 1, failure, retry_at_ms }
    }

    #[test]
    fn scheduled_operations_stay_open_until_an_event_ends_them() {
        let child = EventKind::SubOrchestrationScheduled {
            name: "ship".to_owned(),
            version: None,
            instance: "c".to_owned(),
            input: Payload::null(),
        };
        let timer = EventKind::TimerCreated { fire_at_ms: 9 };
        let all = [activity(), timer, child];
        let completed = EventKind::ActivityCompleted { source: 1, result: Payload::null() };
        let child_completed = EventKind::SubOrchestrationCompleted { source: 3, result: Payload::null() };
        for (end, open) in [
            (None, vec![1, 2, 3]),
            (Some(completed), vec![2, 3]),
            (Some(EventKind::ActivityCancelRequested { source: 1 }), vec![2, 3]),
            (Some(attempt_failed(Some(5))), vec![1, 2, 3]),
            (Some(EventKind::TimerFired { source: 2 }), vec![1, 3]),
            (Some(EventKind::TimerCancelled { source: 2 }), vec![1, 3]),
            (Some(child_completed), vec![1, 2]),
            (Some(EventKind::SubOrchestrationCancelRequested { source: 3 }), vec![1, 2]),
            (Some(EventKind::MessageSubscriptionCancelled { source: 3 }), vec![1, 2, 3]),
        ] {
            let events = history(all.iter().cloned().chain(end.clone()).collect());
            let ids: Vec<u64> = Operations::of(&events).iter().map(|(id, _)| id).collect();
            assert_eq!(ids, open, "{end:?}");
        }
    }

    #[test]
    fn a_resume_queues_what_the_pause_has_held() {
        let paused = || EventKind::OrchestrationPaused { reason: "x".to_owned() };
        for (events, queued) in [
            (vec![activity(), attempt_failed(Some(5))], None),
            (vec![activity(), paused(), attempt_failed(Some(5))], Some((2, Some(5)))),
            (vec![activity(), attempt_failed(None), paused()], Some((2, None))),
            (vec![activity(), paused(), attempt_failed(Some(5)), EventKind::OrchestrationResumed], None),
        ] {
            let operations = Operations::of(&history(events.clone()));
            let attempts = operations.attempts_on_resume();
            let attempts: Vec<_> = attempts.map(|(_, _, attempt, at_ms)| (attempt, at_ms)).collect();
            assert_eq!(attempts, Vec::from_iter(queued), "{events:?}");
        }
    }
}
