//! Dispatch: attempts are started as calls under ids that follow from their dispatches, many in one commit. Starting one
//! twice is starting it once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::Payload;
use segno::store::{ErrorKind, RecordBatch};
use segno_actions::OrchestrationName;
use segno_actions::functions::{
    CallName, FunctionError, FunctionName, HumanDuration, InvokeRequest, PoolName, RetryPolicy, Scope, Tag,
};
use segno_actions::pools::{PoolCall, RoomCall};

use super::callbacks::envelope;
use super::error::DriveError;
use super::holder::{Held, Services, as_time};
use super::inputs;
use super::limits::{ACKNOWLEDGE_WITHIN, CALLS_AT_ONCE, STARTS_PER_COMMIT};
use super::settler;
use crate::controllers::Enqueue;
use crate::event::{Attempt, DispatchEnqueued, EventData, Outcome, TaskError, TaskFinished};
use crate::fold::State;
use crate::tables::{Completion, TaskRow};
use crate::telemetry;

use super::outbox::WaitingEvent;

/// Pause before an attempt that could not be started for now is tried again.
const AGAIN_MS: u64 = 1_000;

/// Dispatches on their way.
#[derive(Default)]
pub(super) struct Dispatches {
    /// About to be started.
    wanted: Vec<Enqueue>,
    /// Started; the acknowledgement is appended with the next events.
    accepted: HashMap<Arc<str>, DispatchEnqueued>,
    /// Since when an acknowledgement waits.
    accepted_at_ms: Option<u64>,
    /// When those that could not be started are tried again.
    again_at_ms: Option<u64>,
}

impl Dispatches {
    /// Notes a dispatch that is wanted, unless it was started already.
    pub(super) fn want(&mut self, enqueue: Enqueue) {
        if enqueue.repair > 0 || !self.accepted.contains_key(&enqueue.dispatch.dispatch_id) {
            self.wanted.push(enqueue);
        }
    }

    /// Whether acknowledgements wait.
    pub(super) fn has_open(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// When those that could not be started are tried again.
    pub(super) fn again_at_ms(&self) -> Option<u64> {
        self.again_at_ms
    }

    /// Whether acknowledgements have waited for long enough.
    pub(super) fn is_overdue(&self, now_ms: u64) -> bool {
        let within_ms = segno::clock::duration_ms(ACKNOWLEDGE_WITHIN);
        self.accepted_at_ms.is_some_and(|at_ms| now_ms >= at_ms.saturating_add(within_ms))
    }

    /// The acknowledgements that wait.
    pub(super) fn take_accepted(&mut self) -> Vec<DispatchEnqueued> {
        self.accepted_at_ms = None;
        let mut accepted: Vec<DispatchEnqueued> = self.accepted.drain().map(|(_, event)| event).collect();
        accepted.sort_by(|a, b| a.dispatch_id.cmp(&b.dispatch_id));
        accepted
    }
}

/// What became of an attempt that was to be started.
enum Prepared {
    /// Its start is part of the commit.
    Start(Box<RecordBatch>),
    /// It is for workers that know it by its key.
    External,
    /// It cannot be started now.
    Later,
    /// It can never be started.
    Refused(String),
    /// It is no longer wanted.
    Gone,
}

impl Held {
    /// Starts what is wanted, and commits it with all else that waits for a commit. Returns how many were started.
    pub(super) async fn dispatch(&mut self, now_ms: u64) -> Result<usize, DriveError> {
        self.dispatches.again_at_ms = None;
        let wanted = std::mem::take(&mut self.dispatches.wanted);
        let mut started = 0;
        let mut wanted = wanted.as_slice();
        loop {
            let (now, later) = wanted.split_at(wanted.len().min(STARTS_PER_COMMIT));
            let part = self.prepare(now).await?;
            let accepted = self.add_starts(now, part, now_ms);
            let commit = std::mem::take(&mut self.commit);
            if !commit.writes.is_empty() || !commit.orchestrator_items.is_empty() {
                let at_ms = self.now_ms();
                self.lease.commit(self.services.ledger.store(), commit, at_ms).await?;
            }
            started += self.note_started(accepted);
            wanted = later;
            if wanted.is_empty() {
                return Ok(started);
            }
        }
    }

    async fn prepare(&self, wanted: &[Enqueue]) -> Result<Vec<Prepared>, DriveError> {
        let (services, scope, state) = (&*self.services, &self.scope, self.compactor.state());
        // Collected first: a stream of borrowing closures is not known to be `Send`.
        let prepared: Vec<_> =
            wanted.iter().map(|enqueue| prepare(services, scope, state, enqueue)).collect();
        stream::iter(prepared).buffered(CALLS_AT_ONCE).try_collect().await
    }

    /// Adds starts to the next commit. Returns what was accepted by it.
    fn add_starts(
        &mut self,
        wanted: &[Enqueue],
        prepared: Vec<Prepared>,
        now_ms: u64,
    ) -> Vec<(Enqueue, bool)> {
        let mut accepted = Vec::new();
        for (enqueue, prepared) in wanted.iter().zip(prepared) {
            match prepared {
                Prepared::Start(start) => {
                    self.commit.writes.extend(start.writes);
                    self.commit.orchestrator_items.extend(start.orchestrator_items);
                    self.commit.worker_items.extend(start.worker_items);
                    accepted.push((enqueue.clone(), true));
                }
                Prepared::External => accepted.push((enqueue.clone(), false)),
                Prepared::Later => {
                    self.dispatches.again_at_ms = Some(now_ms.saturating_add(AGAIN_MS));
                }
                Prepared::Refused(problem) => self.own.push(refused(enqueue, &problem).into()),
                Prepared::Gone => {}
            }
        }
        accepted
    }

    /// Notes dispatches whose starts are committed.
    fn note_started(&mut self, accepted: Vec<(Enqueue, bool)>) -> usize {
        let now_ms = self.now_ms();
        let count = accepted.len();
        for (enqueue, is_called) in accepted {
            let dispatch = &enqueue.dispatch;
            if is_called {
                self.checks.watch(dispatch, now_ms);
            }
            if enqueue.repair == 0 {
                let late_ms = as_time(now_ms).saturating_sub(dispatch.created_at);
                let late = Duration::from_millis(u64::try_from(late_ms).unwrap_or(0));
                metrics::histogram!(telemetry::DISPATCH_SECONDS).record(late);
            }
            let event = enqueue.accepted(enqueue.queue_name());
            self.dispatches.accepted.insert(Arc::clone(&dispatch.dispatch_id), event);
            self.dispatches.accepted_at_ms.get_or_insert(now_ms);
        }
        metrics::counter!(telemetry::DISPATCHES).increment(count as u64);
        count
    }
}

/// The start of an attempt.
async fn prepare(
    services: &Services,
    scope: &Scope,
    state: &State,
    enqueue: &Enqueue,
) -> Result<Prepared, DriveError> {
    let dispatch = &enqueue.dispatch;
    let task = state.task(&dispatch.run_id, &dispatch.task_key);
    let is_wanted = |task: &&TaskRow| task.attempt == dispatch.attempt && !task.state.is_final();
    let Some(task) = task.filter(is_wanted) else { return Ok(Prepared::Gone) };
    if task.function.is_none() && task.orchestration.is_none() {
        return Ok(Prepared::External);
    }
    let input = match inputs::resolve(services, scope, state, task).await? {
        Ok(input) => input,
        Err(problem) => return Ok(Prepared::Refused(problem)),
    };
    let input = match task.has_callbacks() {
        true => envelope(scope, task, dispatch, input),
        false => input,
    };
    let input = match Payload::encode(&input) {
        Ok(input) => input,
        Err(error) => return Ok(Prepared::Refused(error.to_string())),
    };
    let mut batch = RecordBatch::default();
    match add_start(services, scope, &mut batch, (task, enqueue, input)).await {
        Ok(()) => Ok(Prepared::Start(Box::new(batch))),
        Err(FunctionError::Busy | FunctionError::PoolPaused { .. }) => Ok(Prepared::Later),
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(Prepared::Later),
        Err(error) => Ok(Prepared::Refused(error.to_string())),
    }
}

async fn add_start(
    services: &Services,
    scope: &Scope,
    batch: &mut RecordBatch,
    (task, enqueue, input): (&TaskRow, &Enqueue, Payload),
) -> Result<(), FunctionError> {
    let dispatch = &enqueue.dispatch;
    let completion = task.completion.unwrap_or_default();
    let settle = settler::settle(&dispatch.dispatch_id, &dispatch.attempt_id, completion)?;
    let job = (&*dispatch.dispatch_id, settle);
    if let Some(name) = &task.orchestration {
        let name = OrchestrationName::new(&**name)
            .map_err(|problem| FunctionError::InvalidInvocation { field: "orchestration", problem })?;
        return services.calls.add_orchestration(batch, scope, job, (name, input)).await.map(drop);
    }
    // With callbacks, the timeout of the task bounds the attempt, and the function only hands it over.
    let timeout = task.timeout_seconds.filter(|_| completion == Completion::Return);
    let timeout = timeout.map(|seconds| HumanDuration::from_secs(seconds.into()));
    let function = task.function.as_deref().unwrap_or_default();
    if let Some(pool) = &task.worker_pool {
        let call = PoolCall::new(PoolName::new(&**pool)?, CallName::new(function)?, input);
        let call = PoolCall { timeout, retry: Some(once()), ..call };
        return services.calls.add_start(batch, scope, RoomCall::new(job.0, call, job.1)).await.map(drop);
    }
    let mut request = InvokeRequest::new(FunctionName::new(function)?, input);
    request.tag = task.tag.as_deref().map(Tag::new).transpose()?;
    request.timeout = timeout;
    // Retries are the ledger's: each attempt is a call of its own.
    request.retry = Some(once());
    services.calls.add_call(batch, scope, job, request).await.map(drop)
}

/// One attempt.
pub(super) fn once() -> RetryPolicy {
    RetryPolicy {
        attempts: 1,
        initial_delay: HumanDuration::from_secs(1),
        factor: 1.0,
        max_delay: HumanDuration::from_secs(1),
    }
}

/// The end of an attempt that can never be started.
fn refused(enqueue: &Enqueue, problem: &str) -> TaskFinished {
    let dispatch = &enqueue.dispatch;
    let attempt = Attempt {
        run_id: Arc::clone(&dispatch.run_id),
        task_key: Arc::clone(&dispatch.task_key),
        attempt: dispatch.attempt,
        attempt_id: Arc::clone(&dispatch.attempt_id),
    };
    TaskFinished {
        outcome: Outcome::Failed,
        error_message: Some(problem.into()),
        error: Some(TaskError {
            category: Some("CONFIGURATION".into()),
            message: problem.into(),
            stack_trace: None,
            retryable: Some(false),
        }),
        ..settler::ended(attempt)
    }
}

impl WaitingEvent {
    /// Whether it may wait for other events to be appended with.
    pub(super) fn is_acknowledgement(&self) -> bool {
        matches!(self.data, EventData::DispatchEnqueued(_) | EventData::TimerEnqueued(_))
    }
}
