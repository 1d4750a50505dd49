//! The columns that the four tables of work share: what is sent to a worker, and what became of it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::status::WorkStatus;
use crate::definition::StepDefinition;

/// What is known about the call of a row's current job. Addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// No worker was seen at it since `unleased_since`.
    Waiting,
    /// A worker held a lease on it when it was last looked after.
    Leased,
}

/// One function of a worker pool with its parameters, its attempts and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Name of the step in the runbook.
    pub step_name: String,
    /// Order within its list, from 0.
    pub step_index: u32,
    /// The worker pool.
    pub worker_id: String,
    /// Resolved name of the function.
    pub function_name: String,
    /// Resolved parameters as JSON text; unresolved ones until the step is dispatched.
    pub params_json: String,
    /// State of the step.
    pub status: WorkStatus,
    /// Job that was sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What the worker returned, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_json: Option<String>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When the current attempt was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Whether the worker may report that it is still in progress.
    pub is_poll_step: bool,
    /// Seconds between two polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_sec: Option<u64>,
    /// Seconds from the first report that it is still in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_timeout_sec: Option<u64>,
    /// When polling began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_started_at: Option<Timestamp>,
    /// When it was polled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_polled_at: Option<Timestamp>,
    /// Polls of the current attempt.
    pub poll_count: u32,
    /// Attempts after the first. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_count: u32,
    /// `retry_count` up to which a failure leads to another attempt. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_limit: u32,
    /// Seconds before another attempt. Addition.
    #[serde(default, skip_serializing_if = "is_zero_sec")]
    pub retry_interval_sec: u64,
    /// When the next attempt is due. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Timestamp>,
    /// Present while the result of `job_id` is awaited. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_state: Option<CallState>,
    /// Since when no worker was seen at the call. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unleased_since: Option<Timestamp>,
    /// When the call is looked after next. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Timestamp>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_zero_sec(count: &u64) -> bool {
    *count == 0
}

/// A time so many seconds later, at most the last that calendars have.
pub(crate) fn later(at: Timestamp, sec: u64) -> Timestamp {
    let sec = i64::try_from(sec).unwrap_or(i64::MAX);
    at.checked_add(SignedDuration::from_secs(sec)).unwrap_or(Timestamp::MAX)
}

/// A time so many seconds earlier, at least the first that calendars have.
pub(crate) fn earlier(at: Timestamp, sec: u64) -> Timestamp {
    let sec = i64::try_from(sec).unwrap_or(i64::MAX);
    at.checked_sub(SignedDuration::from_secs(sec)).unwrap_or(Timestamp::MIN)
}

impl Work {
    /// A step that has not been sent. `params_json` is what could be resolved when it was created.
    pub fn pending(step: &StepDefinition, index: u32, function_name: String, params_json: String) -> Self {
        Work {
            step_name: step.name.clone(),
            step_index: index,
            worker_id: step.worker_id.clone(),
            function_name,
            params_json,
            status: WorkStatus::Pending,
            job_id: None,
            result_json: None,
            error_message: None,
            dispatched_at: None,
            completed_at: None,
            is_poll_step: step.poll.is_some(),
            poll_interval_sec: step.poll.map(|poll| poll.interval_sec),
            poll_timeout_sec: step.poll.map(|poll| poll.timeout_sec),
            poll_started_at: None,
            last_polled_at: None,
            poll_count: 0,
            retry_count: 0,
            retry_limit: step.retry.max_retries,
            retry_interval_sec: step.retry.interval_sec,
            retry_after: None,
            call_state: None,
            unleased_since: None,
            check_at: None,
        }
    }

    /// Whether a job of it is with the workers.
    pub fn is_called(&self) -> bool {
        self.call_state.is_some()
    }

    /// Whether it takes one of the places that `max_parallel` limits: sent, polling, or between two
    /// attempts.
    pub fn takes_place(&self) -> bool {
        match self.status {
            WorkStatus::Dispatched | WorkStatus::Polling => true,
            WorkStatus::Pending => self.retry_after.is_some(),
            _ => false,
        }
    }

    /// When it is polled next.
    pub fn next_poll_at(&self) -> Option<Timestamp> {
        Some(later(self.last_polled_at?, self.poll_interval_sec?))
    }

    /// When polling takes too long.
    pub fn poll_deadline(&self) -> Option<Timestamp> {
        Some(later(self.poll_started_at?, self.poll_timeout_sec?))
    }

    /// The earliest time at which the row has to be looked at. `None` if it waits for other rows, for
    /// people or for nothing.
    pub fn due_at(&self) -> Option<Timestamp> {
        match (self.status, self.is_called()) {
            (WorkStatus::Pending, _) => self.retry_after,
            (WorkStatus::Dispatched, _) | (WorkStatus::Polling, true) => self.check_at,
            (WorkStatus::Polling, false) => self.next_poll_at().min(self.poll_deadline()),
            _ => None,
        }
    }
}
