//! How jobs reach workers: as calls through worker pools, under ids that follow from the jobs.

use segno::Payload;
use segno::store::{ErrorKind, RecordBatch};
use segno_actions::functions::{CallName, FunctionError, PoolName, Scope};
use segno_actions::pools::{CallState, PoolCall, RoomCall, RoomCalls, Transport};

use super::settler;
use crate::message::CallSeen;
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
}

impl Calls {
    pub(super) fn new(room: RoomCalls) -> Self {
        Calls { room }
    }

    /// Adds the start of a job to a commit. A job whose id was started before is not started again.
    pub(super) async fn send(
        &self,
        scope: &Scope,
        job: &Dispatch,
        commit: &mut RecordBatch,
    ) -> Result<Sending, FunctionError> {
        let wanted = match wanted(job) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Sending::Refused(error.to_string())),
        };
        match self.room.add_start(commit, scope, wanted).await {
            Ok(_) => Ok(Sending::Added),
            Err(FunctionError::UnknownPool { .. } | FunctionError::PoolPaused { .. }) => Ok(Sending::Later),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error) => Ok(Sending::Refused(error.to_string())),
        }
    }

    /// Adds to a commit that a job is no longer wanted.
    pub(super) fn cancel(
        &self,
        scope: &Scope,
        job: &CancelJob,
        commit: &mut RecordBatch,
    ) -> Result<(), FunctionError> {
        self.room.add_cancel(commit, scope, &job.job_id, "the batch no longer waits for it")
    }

    /// What a job is doing.
    pub(super) async fn look_after(&self, scope: &Scope, job: &LookAfter) -> Result<CallSeen, FunctionError> {
        Ok(match self.room.state(scope, &job.job_id).await? {
            CallState::Leased { .. } => CallSeen::Leased,
            CallState::Waiting => CallSeen::Waiting,
            CallState::Ended(ended) => CallSeen::Ended { outcome: settler::outcome(&ended) },
            // A pool that is unknown or paused may still take the job, until the dispatch time-out.
            CallState::Missing if !self.takes_jobs(scope, &job.worker_id).await? => CallSeen::Unsent,
            CallState::Missing => CallSeen::Missing,
        })
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
}

fn wanted(job: &Dispatch) -> Result<RoomCall, FunctionError> {
    let input = Payload::from_json(&job.params_json)
        .map_err(|error| FunctionError::InvalidInvocation { field: "params", problem: error.to_string() })?;
    let pool = PoolName::new(job.worker_id.as_str())?;
    let call = PoolCall::new(pool, CallName::new(job.function_name.as_str())?, input);
    Ok(RoomCall::new(job.job_id.as_str(), call, settler::settle(job.batch_id, &job.job_id)?))
}
