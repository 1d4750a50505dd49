//! How jobs reach workers: as calls through worker pools, under ids that follow from the jobs, or
//! over the bus, where the row of the outbox is the call.

use std::sync::Arc;

use segno::Payload;
use segno::store::{ErrorKind, Expect, RecordBatch, Store};
use segno_actions::functions::{CallName, FunctionError, PoolName, Scope};
use segno_actions::pools::{CallState, FoundPool, PoolCall, RoomCall, RoomCalls, Transport};

use super::outbox::{self, OUTBOX, Outbox, OutboxRow};
use super::place::BatchPlace;
use super::post::timestamp;
use super::settler;
use crate::message::{CallSeen, Outcome};
use crate::step::{CancelJob, Dispatch, LookAfter};

/// What became of a job that was to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sending {
    /// Its start is part of the commit.
    Added,
    /// It cannot be sent now: its pool is unknown or paused. It is sent when its call is looked
    /// after.
    Later,
    /// It can never be sent, and the step fails with this message.
    Refused(String),
}

/// Calls of batches.
#[derive(Clone)]
pub(super) struct Calls {
    room: RoomCalls,
    store: Arc<dyn Store>,
    bus: Option<Outbox>,
}

impl Calls {
    pub(super) fn new(room: RoomCalls, store: Arc<dyn Store>, bus: Option<Outbox>) -> Self {
        Calls { room, store, bus }
    }

    /// Adds the start of a job to a commit. A job whose id was started before is not started again.
    pub(super) async fn send(
        &self,
        place: &BatchPlace,
        job: &Dispatch,
        (commit, now_ms): (&mut RecordBatch, u64),
    ) -> Result<Sending, FunctionError> {
        if let Some(pool) = self.bus_pool(&place.scope, &job.worker_id).await? {
            return Ok(self.send_over_bus(place, &pool, job, (commit, now_ms)));
        }
        let wanted = match wanted(job) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Sending::Refused(error.to_string())),
        };
        match self.room.add_start(commit, &place.scope, wanted).await {
            Ok(_) => Ok(Sending::Added),
            Err(FunctionError::UnknownPool { .. } | FunctionError::PoolPaused { .. }) => Ok(Sending::Later),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error) => Ok(Sending::Refused(error.to_string())),
        }
    }

    /// Adds the row of a job. A row that exists is replaced: it is sent again under the same id.
    fn send_over_bus(
        &self,
        place: &BatchPlace,
        pool: &FoundPool,
        job: &Dispatch,
        (commit, now_ms): (&mut RecordBatch, u64),
    ) -> Sending {
        if self.bus.as_ref().is_none_or(|bus| bus.scope != place.scope) {
            let error = FunctionError::NoBus { pool: pool.name.to_string() };
            return Sending::Refused(error.to_string());
        }
        let function = CallName::new(job.function_name.as_str());
        if let Err(error) = function.and_then(|function| pool.check_function(&function)) {
            return Sending::Refused(error.to_string());
        }
        let message = outbox::job_message(job).map_err(|error| error.to_string());
        let message = message.and_then(|message| match message.check() {
            Ok(()) => Ok(message),
            Err(error) => Err(error.to_string()),
        });
        match message {
            Ok(message) => {
                let id = outbox::job_row_id(place, &job.worker_id, &job.job_id);
                let row = OutboxRow::unsent(message, timestamp(now_ms));
                commit.writes.push(row.write(id, Expect::Anything, Some(now_ms)));
                Sending::Added
            }
            Err(problem) => Sending::Refused(problem),
        }
    }

    /// Adds to a commit that a job is no longer wanted. A message that a bus has cannot be
    /// recalled: its result changes nothing.
    pub(super) async fn cancel(
        &self,
        place: &BatchPlace,
        job: &CancelJob,
        commit: &mut RecordBatch,
    ) -> Result<(), FunctionError> {
        if self.bus_pool(&place.scope, &job.worker_id).await?.is_some() {
            commit.writes.push(outbox::delete_job(place, &job.worker_id, &job.job_id));
            return Ok(());
        }
        self.room.add_cancel(commit, &place.scope, &job.job_id, "the batch no longer waits for it")
    }

    /// What a job is doing.
    pub(super) async fn look_after(
        &self,
        place: &BatchPlace,
        job: &LookAfter,
        now_ms: u64,
    ) -> Result<CallSeen, FunctionError> {
        let scope = &place.scope;
        if let Some(pool) = self.bus_pool(scope, &job.worker_id).await? {
            return self.look_at_row(place, &pool, job, now_ms).await;
        }
        Ok(match self.room.state(scope, &job.job_id).await? {
            CallState::Leased { .. } => CallSeen::Leased,
            CallState::Waiting => CallSeen::Waiting,
            CallState::Ended(ended) => CallSeen::Ended { outcome: settler::outcome(&ended) },
            // A pool that is unknown or paused may still take the job, until the dispatch time-out.
            CallState::Missing if !self.takes_jobs(scope, &job.worker_id).await? => CallSeen::Unsent,
            CallState::Missing => CallSeen::Missing,
        })
    }

    /// A bus does not tell whether a worker has a job. The pool's `timeout` is the time that workers
    /// have; without one, the dispatch time-out is.
    async fn look_at_row(
        &self,
        place: &BatchPlace,
        pool: &FoundPool,
        job: &LookAfter,
        now_ms: u64,
    ) -> Result<CallSeen, FunctionError> {
        let id = outbox::job_row_id(place, &job.worker_id, &job.job_id);
        let Some(record) = self.store.get_record(OUTBOX, &id).await? else { return Ok(CallSeen::Missing) };
        // A row that cannot be read is written anew.
        let Ok(row) = OutboxRow::read(&record) else { return Ok(CallSeen::Missing) };
        let (Some(sent_at), Some(timeout)) = (row.sent_at, pool.pool.timeout) else {
            return Ok(CallSeen::Waiting);
        };
        let sent_ms = u64::try_from(sent_at.as_millisecond()).unwrap_or(0);
        if now_ms < sent_ms.saturating_add(timeout.as_ms()) {
            return Ok(CallSeen::Leased);
        }
        let message =
            format!("no result of {} has arrived within {timeout}, the timeout of its pool", job.job_id);
        Ok(CallSeen::Ended { outcome: Outcome::failed(message) })
    }

    /// Slows down a pool whose worker was throttled.
    pub(super) async fn slow_down(&self, scope: &Scope, worker_id: &str) -> Result<(), FunctionError> {
        let Ok(pool) = PoolName::new(worker_id) else { return Ok(()) };
        self.room.pools().throttled(scope, &pool, None).await.map(drop)
    }

    /// Whether a pool takes jobs: it is known and, if nodes run its calls, not paused. Calls of other
    /// pools wait in their queue.
    pub(super) async fn takes_jobs(&self, scope: &Scope, worker_id: &str) -> Result<bool, FunctionError> {
        let Ok(pool) = PoolName::new(worker_id) else { return Ok(true) };
        let pools = self.room.pools();
        match pools.find(scope, &pool).await {
            Err(FunctionError::UnknownPool { .. }) => Ok(false),
            Ok(found) if found.pool.transport == Transport::Local => {
                Ok(pools.recent_state(scope, &pool).await?.paused.is_none())
            }
            found => found.map(|_| true),
        }
    }

    /// The pool, if it is reached over the bus.
    async fn bus_pool(
        &self,
        scope: &Scope,
        worker_id: &str,
    ) -> Result<Option<Arc<FoundPool>>, FunctionError> {
        let found = self.find(scope, worker_id).await?;
        Ok(found.filter(|found| found.pool.transport == Transport::Bus))
    }

    async fn find(&self, scope: &Scope, worker_id: &str) -> Result<Option<Arc<FoundPool>>, FunctionError> {
        let Ok(pool) = PoolName::new(worker_id) else { return Ok(None) };
        match self.room.pools().find(scope, &pool).await {
            Err(FunctionError::UnknownPool { .. }) => Ok(None),
            found => found.map(Some),
        }
    }
}

fn wanted(job: &Dispatch) -> Result<RoomCall, FunctionError> {
    let input = Payload::from_json(&job.params_json)
        .map_err(|error| FunctionError::InvalidInvocation { field: "params", problem: error.to_string() })?;
    let pool = PoolName::new(job.worker_id.as_str())?;
    let call = PoolCall::new(pool, CallName::new(job.function_name.as_str())?, input);
    Ok(RoomCall::new(job.job_id.as_str(), call, settler::settle(job.batch_id, &job.job_id)?))
}
