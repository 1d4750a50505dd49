//! The workers' protocol: fetching calls of remote functions and answering them. The guide's page "workers" explains it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Json, Problem};

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchWork {
    /// Name of the worker, for people: letters, digits and `-_.:`.
    #[schema(min_length = 1, max_length = 128, example = "render-3")]
    pub worker: String,
    /// Functions that it runs: 1 to 32. With `pool`, those of the pool that it has, up to 1,000; they may be called from then on.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub functions: Vec<String>,
    /// Take calls of this pool, whatever their function, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, example = "cloud-01")]
    pub pool: Option<String>,
    /// Also take calls with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 5)]
    pub tags: Vec<String>,
    /// Whether to take calls without a tag.
    #[serde(default = "yes")]
    pub untagged: bool,
    /// At most this many calls.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_items: usize,
    /// For how long each call is leased unless a heartbeat extends it.
    #[serde(default = "half_a_minute_ms")]
    #[schema(minimum = 10, maximum = 86_400_000)]
    pub lease_ms: u64,
    /// How long to wait for work when there is none.
    #[serde(default)]
    #[schema(maximum = 60_000)]
    pub wait_ms: u64,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

fn half_a_minute_ms() -> u64 {
    30_000
}

impl FetchWork {
    /// Asks for one call of these functions, without waiting.
    pub fn new(worker: impl Into<String>, functions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        FetchWork {
            worker: worker.into(),
            functions: functions.into_iter().map(Into::into).collect(),
            pool: None,
            tags: Vec::new(),
            untagged: yes(),
            max_items: one(),
            lease_ms: half_a_minute_ms(),
            wait_ms: 0,
        }
    }
}

impl FetchWork {
    /// Asks for one call of a pool, without waiting, and says which functions of it the worker has.
    pub fn of_pool(
        worker: impl Into<String>,
        pool: impl Into<String>,
        functions: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        FetchWork { pool: Some(pool.into()), ..FetchWork::new(worker, functions) }
    }
}

/// Calls that the worker has leased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FetchedWork {
    /// The calls, oldest first; none when the time was up.
    pub items: Vec<WorkItem>,
}

/// A call with the right to answer for it; also the body of a call that is pushed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkItem {
    /// The right to answer, to be shown with every answer. Nothing is to be read from it.
    pub lease: String,
    /// When the lease ends unless a heartbeat extends it, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// The function to run.
    pub function: String,
    /// Its input.
    pub input: Json,
    /// Attempt by the retry policy, from 1.
    pub attempt: u32,
    /// How often this attempt has been handed out, this time included.
    pub delivery: u32,
    /// The same for every attempt and delivery of the call: hand it to whatever must not happen twice.
    pub idempotency_key: String,
    /// The instance that made the call.
    pub instance: String,
    /// When nobody waits for the call any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Longest time of this attempt, in milliseconds from the fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest silence between two heartbeats, in milliseconds. The lease is never longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// What an earlier attempt or delivery reported with its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// W3C trace context of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The lease.
    pub lease: String,
    /// Until so many milliseconds from now.
    #[serde(default = "half_a_minute_ms")]
    #[schema(minimum = 10, maximum = 86_400_000)]
    pub extend_ms: u64,
    /// Kept for whoever runs the call next, should this worker not finish it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
}

/// What a worker is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeartbeatAction {
    /// Go on, and show the new lease from now on.
    Continue,
    /// Stop: the answer is not wanted any more.
    Cancel,
}

/// The answer to a sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// What to do.
    pub action: HeartbeatAction,
    /// The extended lease, if the worker is to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// Why it is to stop: `cancelled` or `timed-out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteWork {
    /// The lease.
    pub lease: String,
    /// The result.
    #[serde(default = "Json::null")]
    pub result: Json,
}

/// Sort of a failure that a worker may report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    /// The function itself says that it failed.
    #[default]
    Application,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It cannot work as it is set up.
    Configuration,
    /// Something around it failed.
    Infrastructure,
}

/// A failure. The retry policy of the call decides what follows.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailWork {
    /// The lease.
    pub lease: String,
    /// What happened, for people.
    pub message: String,
    /// What sort of failure it is.
    #[serde(default)]
    pub category: FailureCategory,
    /// A stable word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long to wait before the next attempt, at least, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub retry_after_ms: Option<u64>,
    /// Whether another attempt may succeed; by the category without it: application, timeout and infrastructure may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Anything that the caller is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

/// Gives a call back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseWork {
    /// The lease.
    pub lease: String,
    /// Nobody gets it for so many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub delay_ms: Option<u64>,
}

/// Answers to calls that a worker holds, and what it asks for next, in one request.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeWork {
    /// Name of the worker: letters, digits and `-_.:`.
    #[schema(min_length = 1, max_length = 128, example = "render-3")]
    pub worker: String,
    /// Number of this exchange, up to 2^53 - 1: any that the worker has not used before. A request
    /// that is repeated has the number of the first one and gets its answer. Take the time in
    /// milliseconds for the first, so that a worker that was started again uses no number twice.
    pub number: u64,
    /// What to do with leases, in any order; each is the body of the single call of its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub answers: Vec<WorkAnswer>,
    /// At most this many calls; none with 0.
    #[serde(default)]
    #[schema(maximum = 100)]
    pub max_items: usize,
    /// As in `POST /v1/work/fetch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub functions: Vec<String>,
    /// As in `POST /v1/work/fetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, example = "cloud-01")]
    pub pool: Option<String>,
    /// As in `POST /v1/work/fetch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 5)]
    pub tags: Vec<String>,
    /// As in `POST /v1/work/fetch`.
    #[serde(default = "yes")]
    pub untagged: bool,
    /// As in `POST /v1/work/fetch`.
    #[serde(default = "half_a_minute_ms")]
    #[schema(minimum = 10, maximum = 86_400_000)]
    pub lease_ms: u64,
    /// How long to wait for work when there is none. A request with answers does not wait.
    #[serde(default)]
    #[schema(maximum = 60_000)]
    pub wait_ms: u64,
}

impl ExchangeWork {
    /// An exchange that fetches what a request asks for and has no answers yet.
    pub fn new(number: u64, fetch: FetchWork) -> Self {
        let FetchWork { worker, functions, pool, tags, untagged, max_items, lease_ms, wait_ms } = fetch;
        let answers = Vec::new();
        ExchangeWork {
            worker,
            number,
            answers,
            max_items,
            functions,
            pool,
            tags,
            untagged,
            lease_ms,
            wait_ms,
        }
    }

    /// The answers, and what is fetched; `None` when nothing is.
    pub fn split(self) -> (Vec<WorkAnswer>, Option<FetchWork>) {
        let ExchangeWork { worker, answers, max_items, functions, pool, tags, untagged, lease_ms, .. } = self;
        let wait_ms = if answers.is_empty() { self.wait_ms } else { 0 };
        let fetch = FetchWork { worker, functions, pool, tags, untagged, max_items, lease_ms, wait_ms };
        (answers, (max_items > 0).then_some(fetch))
    }
}

/// What to do with a lease.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkAnswer {
    /// Answer the call with its result.
    Complete(CompleteWork),
    /// Answer it with a failure.
    Fail(FailWork),
    /// Extend the lease.
    Heartbeat(Heartbeat),
    /// Give the call back.
    Release(ReleaseWork),
}

/// What became of the answers, and the next calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExchangedWork {
    /// One for each answer, in their order.
    pub outcomes: Vec<AnswerOutcome>,
    /// Calls that the worker has leased, oldest first.
    pub items: Vec<WorkItem>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnswerOutcome {
    /// What it is.
    pub status: OutcomeStatus,
    /// With `continue`: the extended lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// With `continue`: when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// With `cancel`: `cancelled` or `timed-out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `refused`: the problem that the single call would have been answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

/// The kinds of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// The answer is stored.
    Done,
    /// Of a heartbeat: go on, with the new lease.
    Continue,
    /// Of a heartbeat: stop, the answer is not wanted any more.
    Cancel,
    /// Nothing was changed, or it is unknown whether something was: the problem has which.
    Refused,
}

impl AnswerOutcome {
    /// The answer is stored.
    pub fn done() -> Self {
        AnswerOutcome {
            status: OutcomeStatus::Done,
            lease: None,
            lease_expires_at: None,
            reason: None,
            problem: None,
        }
    }

    /// It is refused.
    pub fn refused(problem: Problem) -> Self {
        AnswerOutcome {
            status: OutcomeStatus::Refused,
            problem: Some(Box::new(problem)),
            ..AnswerOutcome::done()
        }
    }
}

impl From<HeartbeatAnswer> for AnswerOutcome {
    fn from(answer: HeartbeatAnswer) -> Self {
        let HeartbeatAnswer { action, lease, lease_expires_at, reason } = answer;
        let status = match action {
            HeartbeatAction::Continue => OutcomeStatus::Continue,
            HeartbeatAction::Cancel => OutcomeStatus::Cancel,
        };
        AnswerOutcome { status, lease, lease_expires_at, reason, problem: None }
    }
}
