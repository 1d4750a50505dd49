//! How far a call is: what is asked for, the attempts that failed, and where the next one stands in the queue.
//!
//! Nothing is stored for this. The history of an `invoke` has its input and its failed attempts, the worker queue has the
//! rest. A few events from its beginning and from its end are read, so the cost does not grow with the attempts.

use std::sync::Arc;

use segno::client::Instance;
use segno::event::{Event, EventKind, Started};
use segno::limits::MAX_PAGE_ROWS;
use segno::store::{HistoryQuery, QueuedWork};
use segno::work::LastProgress;
use segno::{Client, Failure};

use super::invocation::Invocation;
use super::invoke::INVOKE;

/// Most failed attempts that are shown: the last ones.
pub const MAX_SHOWN_ATTEMPTS: usize = 20;

/// Events that are read from the beginning of a history at once. Those of a call fit.
const FIRST_EVENTS: usize = 8;

/// Most events of a beginning: messages that came before the start are recorded before it.
const MAX_FIRST_EVENTS: usize = 11_000;

/// Events that are read from the end: the shown attempts, and what may be among them.
const LAST_EVENTS: u64 = 2 * MAX_SHOWN_ATTEMPTS as u64;

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When its failure was recorded, in Unix milliseconds.
    pub failed_at_ms: u64,
    /// Why.
    pub failure: Failure,
    /// When the next one may start; `None` after the last.
    pub retry_at_ms: Option<u64>,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct CallStatus {
    /// What is asked for.
    pub invocation: Invocation,
    /// When nobody waits for it any more, in Unix milliseconds.
    pub deadline_at_ms: Option<u64>,
    /// Attempts that failed, the last [`MAX_SHOWN_ATTEMPTS`] of them, in order.
    pub attempts: Vec<FailedAttempt>,
    /// Whether the call has an answer.
    pub is_answered: bool,
    /// Where the current attempt stands in the queue; `None` when it is not there.
    pub queued: Option<QueuedWork>,
    /// What an attempt last reported.
    pub progress: Option<LastProgress>,
}

impl CallStatus {
    /// Number of the attempt that runs or comes next; that of the last one when there is no more.
    pub fn attempt(&self) -> u32 {
        match self.attempts.last() {
            Some(last) if last.retry_at_ms.is_some() => last.attempt.saturating_add(1),
            Some(last) => last.attempt,
            None => 1,
        }
    }
}

/// What a history says of a call.
#[derive(Default)]
struct Recorded {
    started: Option<Arc<Started>>,
    scheduled: Option<u64>,
    deadline_at_ms: Option<u64>,
    attempts: Vec<FailedAttempt>,
    is_answered: bool,
}

impl Recorded {
    fn take(&mut self, event: Event) {
        match event.kind {
            EventKind::OrchestrationStarted(started) => self.started = Some(started),
            EventKind::ActivityScheduled { options, .. } => {
                self.scheduled = Some(event.event_id);
                self.deadline_at_ms = options.deadline_at_ms;
            }
            EventKind::ActivityAttemptFailed { attempt, failure, retry_at_ms, .. } => {
                let failed_at_ms = event.at_ms;
                self.attempts.push(FailedAttempt { attempt, failed_at_ms, failure, retry_at_ms });
            }
            EventKind::ActivityFailed { attempt, failure, .. } => {
                let (failed_at_ms, retry_at_ms) = (event.at_ms, None);
                self.attempts.push(FailedAttempt { attempt, failed_at_ms, failure, retry_at_ms });
                self.is_answered = true;
            }
            EventKind::ActivityCompleted { .. } => self.is_answered = true,
            kind if kind.is_last() => self.is_answered = true,
            _ => {}
        }
    }
}

/// How far a call is; `None` for an instance that is none, or has not begun.
///
/// # Errors
/// Those of the engine: `stored-data-unreadable` when a history cannot be read.
pub async fn call_status(client: &Client, instance: &Instance) -> Result<Option<CallStatus>, segno::Error> {
    if instance.orchestration.as_deref() != Some(INVOKE.name()) {
        return Ok(None);
    }
    let recorded = read(client, instance).await?;
    let Some(started) = recorded.started else { return Ok(None) };
    let Ok(invocation) = started.input.decode::<Invocation>() else { return Ok(None) };
    let (mut queued, mut progress) = (None, None);
    if let Some(event_id) = recorded.scheduled.filter(|_| !recorded.is_answered) {
        let named = (instance.execution_id, event_id);
        let mut activities = client.queued_activities(&instance.id).await?;
        activities.retain(|activity| (activity.execution_id, activity.activity_id) == named);
        queued = activities.pop().map(|activity| activity.work);
        progress = client.activity_progress(&started.idempotency_key(event_id)).await?;
    }
    Ok(Some(CallStatus {
        invocation,
        deadline_at_ms: recorded.deadline_at_ms,
        attempts: recorded.attempts,
        is_answered: recorded.is_answered,
        queued,
        progress,
    }))
}

/// The history of a call, read in parts.
struct History<'a> {
    client: &'a Client,
    instance: &'a Instance,
}

impl History<'_> {
    /// Adds the events after one, at most so many; the last of them if there are more.
    async fn page(&self, after: u64, limit: usize, to: &mut Recorded) -> Result<Option<u64>, segno::Error> {
        let query = HistoryQuery {
            instance_id: self.instance.id.clone(),
            execution_id: self.instance.execution_id,
            after_event_id: after,
            limit,
        };
        let page = self.client.history_page(query).await?;
        page.events.into_iter().for_each(|event| to.take(event));
        Ok(page.next)
    }

    /// Adds the events after one up to another.
    async fn between(&self, after: u64, until: u64, to: &mut Recorded) -> Result<(), segno::Error> {
        let mut next = Some(after);
        while let Some(after) = next.filter(|next| *next < until) {
            let left = usize::try_from(until - after).unwrap_or(MAX_PAGE_ROWS);
            next = self.page(after, left.min(MAX_PAGE_ROWS), to).await?;
        }
        Ok(())
    }
}

async fn read(client: &Client, instance: &Instance) -> Result<Recorded, segno::Error> {
    let history = History { client, instance };
    let mut recorded = Recorded::default();
    let (mut after, mut limit) = (0, FIRST_EVENTS);
    loop {
        let Some(next) = history.page(after, limit, &mut recorded).await? else { return Ok(cut(recorded)) };
        after = next;
        if recorded.scheduled.is_some() || after as usize >= MAX_FIRST_EVENTS {
            break;
        }
        limit = MAX_PAGE_ROWS;
    }
    let count = client.execution(&instance.id, instance.execution_id).await?.event_count;
    let mut tail = after.max(count.saturating_sub(LAST_EVENTS));
    let mut last = Recorded::default();
    history.between(tail, u64::MAX, &mut last).await?;
    // The end may be full of messages, which a program on the same store can send to any instance.
    while last.attempts.is_empty() && tail > after {
        let until = tail;
        tail = after.max(until.saturating_sub(MAX_PAGE_ROWS as u64));
        history.between(tail, until, &mut last).await?;
    }
    let is_gap = tail > after && !last.attempts.is_empty();
    let first = if is_gap { Vec::new() } else { std::mem::take(&mut recorded.attempts) };
    Ok(cut(Recorded {
        started: recorded.started,
        scheduled: recorded.scheduled.or(last.scheduled),
        deadline_at_ms: recorded.deadline_at_ms.or(last.deadline_at_ms),
        attempts: first.into_iter().chain(last.attempts).collect(),
        is_answered: recorded.is_answered || last.is_answered,
    }))
}

fn cut(mut recorded: Recorded) -> Recorded {
    let beyond = recorded.attempts.len().saturating_sub(MAX_SHOWN_ATTEMPTS);
    recorded.attempts.drain(..beyond);
    recorded
}
