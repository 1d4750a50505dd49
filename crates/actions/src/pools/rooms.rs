//! The door by which other rooms have functions called.
//!
//! A room adds the starts of calls to the batch of records in which it stores why: rows, outbox and starts are one commit.
//! A call is known by its job, which the room makes up; starting a job twice is starting it once. The outcome comes
//! through the [settler](crate::functions::Settler) of the room, in the commit that ends the call. A room that has not heard of
//! one for a while asks for its state.

use std::collections::BTreeMap;
use std::fmt;

use segno::client::{OnConflict, StartCall};
use segno::store::{ErrorKind, ExecutionStatus, QueuePlace, RecordBatch};
use segno::{Category, Client, Code, Failure, Orchestration, Payload};

use super::call::PoolCall;
use super::catalogue::Pools;
use super::reserved::Room;
use crate::functions::{
    FunctionError, Functions, INVOKE, Invocation, InvokeRequest, Scope, Settle, Settlement,
};
use crate::target::OrchestrationName;

/// Label of the instances of calls through a pool.
pub const POOL_LABEL: &str = "pool";

/// A call that a room wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomCall {
    /// The room's name for it, such as `step-1042-poll-3`. Every attempt of the room has its own.
    pub job: String,
    /// What to call.
    pub call: PoolCall,
    /// What is told how it ended.
    pub settle: Settle,
    /// Labels to find it by.
    pub labels: BTreeMap<String, String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

impl RoomCall {
    /// A call without labels.
    pub fn new(job: impl Into<String>, call: PoolCall, settle: Settle) -> Self {
        RoomCall { job: job.into(), call, settle, labels: BTreeMap::new(), traceparent: None }
    }
}

/// How a call of a room is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// There is none: it was never started, or its instance was deleted.
    Missing,
    /// It waits to be handed out, now or for a retry.
    Waiting,
    /// A worker or node has it, until then unless it extends its lease, in Unix milliseconds; an orchestration has begun.
    Leased {
        /// The end of the lease.
        until_ms: u64,
    },
    /// It has ended.
    Ended(Result<Payload, Failure>),
}

/// Calls of one room. Cheap to clone.
#[derive(Clone)]
pub struct RoomCalls {
    room: Room,
    functions: Functions,
    pools: Pools,
    client: Client,
}

impl RoomCalls {
    /// The calls of a room. They are made by its [lanes](crate::scheduler::Lane): an input that would wait for long behind
    /// others of its tenant is refused as `unavailable`, and the lane postpones the record that it is for.
    pub fn new(room: Room, functions: &Functions, pools: Pools, client: Client) -> Self {
        RoomCalls { room, functions: functions.for_scheduler(), pools, client }
    }

    /// The pools that calls go through.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// The instance of a job.
    pub fn instance_id(&self, scope: &Scope, job: &str) -> String {
        self.room.instance_id(scope, job)
    }

    /// Adds the start of a call to a batch, and returns its instance. A job that was started before stays as it is.
    ///
    /// # Errors
    /// Those of [`Pools::prepare`]; `invalid-invocation` when the input is too large, or a label is none.
    pub async fn add_start(
        &self,
        batch: &mut RecordBatch,
        scope: &Scope,
        wanted: RoomCall,
    ) -> Result<String, FunctionError> {
        let pool = wanted.call.pool.to_string();
        let mut invocation = self.pools.prepare(&self.functions, scope, wanted.call).await?;
        invocation.settle = Some(wanted.settle);
        let id = self.instance_id(scope, &wanted.job);
        let mut start = self.start(scope, &id, invocation).label(POOL_LABEL, pool);
        for (key, value) in wanted.labels {
            start = start.label(key, value);
        }
        if let Some(traceparent) = wanted.traceparent {
            start = start.traceparent(traceparent);
        }
        batch.orchestrator_items.push(start.message().await.map_err(invalid)?);
        Ok(id)
    }

    /// Adds the start of a call of a function of the catalogue to a batch, and returns its instance. A job that was started before
    /// stays as it is.
    ///
    /// # Errors
    /// Those of [`Functions::prepare`].
    pub async fn add_call(
        &self,
        batch: &mut RecordBatch,
        scope: &Scope,
        (job, settle): (&str, Settle),
        request: InvokeRequest,
    ) -> Result<String, FunctionError> {
        let mut invocation = self.functions.prepare(scope, request).await?;
        invocation.settle = Some(settle);
        let id = self.instance_id(scope, job);
        batch.orchestrator_items.push(self.start(scope, &id, invocation).message().await.map_err(invalid)?);
        Ok(id)
    }

    /// Adds the start of an orchestration to a batch, and returns its instance. A job that was started before stays as it
    /// is.
    ///
    /// # Errors
    /// `invalid-invocation` when the input is too large.
    pub async fn add_orchestration(
        &self,
        batch: &mut RecordBatch,
        scope: &Scope,
        (job, settle): (&str, Settle),
        (name, input): (OrchestrationName, Payload),
    ) -> Result<String, FunctionError> {
        let id = self.instance_id(scope, job);
        let settlement = Settlement::new(scope, settle);
        let orchestration = Orchestration::<Payload, Payload>::named(name);
        let start = self.client.start(orchestration, input).id(id.as_str()).settle(&settlement);
        batch.orchestrator_items.push(self.labelled(start).message().await.map_err(invalid)?);
        Ok(id)
    }

    /// Calls a function of the catalogue and waits for its result. A job that was called before is not called again: its
    /// result is returned, or waited for.
    ///
    /// # Errors
    /// How the call failed, and why it could not be made.
    pub async fn call(&self, scope: &Scope, job: &str, request: InvokeRequest) -> Result<Payload, Failure> {
        let prepared = self.functions.prepare(scope, request).await;
        let invocation = prepared.map_err(|error| not_called(error.kind(), &error))?;
        let id = self.instance_id(scope, job);
        let called = self.start(scope, &id, invocation).on_conflict(OnConflict::UseExisting).result().await;
        called.map_err(|error| match error.failure() {
            Some(failure) => failure.clone(),
            None => not_called(error.kind(), &error),
        })
    }

    /// The start of a call, with what lists know of it.
    fn start(&self, scope: &Scope, id: &str, invocation: Invocation) -> StartCall<Payload> {
        let (label, function) = invocation.function.label(scope);
        self.labelled(self.client.start(INVOKE, invocation).id(id).reserved_label(label, function))
    }

    /// A start with the label of what its room makes.
    fn labelled(&self, start: StartCall<Payload>) -> StartCall<Payload> {
        match self.room.trigger().label() {
            Some((label, trigger)) => start.reserved_label(label, trigger),
            None => start,
        }
    }

    /// Adds to a batch that a call is cancelled. It ends as cancelled, and is settled; one that has ended stays so.
    ///
    /// # Errors
    /// `invalid-invocation` when the reason is too long.
    pub fn add_cancel(
        &self,
        batch: &mut RecordBatch,
        scope: &Scope,
        job: &str,
        reason: impl Into<String>,
    ) -> Result<(), FunctionError> {
        let id = self.instance_id(scope, job);
        batch.orchestrator_items.push(Client::cancel_message(&id, reason).map_err(invalid)?);
        Ok(())
    }

    /// Cancels a call whose result is no longer waited for. One that was never made, or has ended, stays so.
    ///
    /// # Errors
    /// `invalid-invocation` when the reason is too long, `store`.
    pub async fn cancel(&self, scope: &Scope, job: &str, reason: &str) -> Result<(), FunctionError> {
        match self.client.cancel(&self.instance_id(scope, job), reason).await {
            Err(error) if !matches!(error.code(), Code::NotFound | Code::InstanceEnded) => {
                Err(invalid(error))
            }
            _ => Ok(()),
        }
    }

    /// How a call is doing.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn state(&self, scope: &Scope, job: &str) -> Result<CallState, FunctionError> {
        let id = self.instance_id(scope, job);
        let instance = match self.client.instance(id.as_str()).await {
            Ok(instance) => instance,
            Err(error) if error.code() == Code::NotFound => return Ok(CallState::Missing),
            Err(error) => return Err(invalid(error)),
        };
        if instance.has_ended() {
            return Ok(CallState::Ended(match (instance.result(), instance.failure()) {
                (Some(result), _) => Ok(result.clone()),
                (_, Some(failure)) => Err(failure.clone()),
                _ => {
                    let problem = instance.unreadable.as_deref().unwrap_or("it has no outcome");
                    let message = format!("it ended as {}, but {problem}", instance.status);
                    Err(Failure::new(Category::Infrastructure, message))
                }
            }));
        }
        let is_call = instance.orchestration.as_deref().is_none_or(|name| name == INVOKE.name());
        if !is_call && instance.status == ExecutionStatus::Running {
            // No lease ends an orchestration that has begun.
            return Ok(CallState::Leased { until_ms: u64::MAX });
        }
        let queued = self.client.store().queued_activities(&id).await?;
        let leases = queued.iter().filter_map(|activity| match activity.work.place {
            QueuePlace::Locked { until_ms, .. } => Some(until_ms),
            QueuePlace::Ready | QueuePlace::Delayed { .. } => None,
        });
        Ok(leases.max().map_or(CallState::Waiting, |until_ms| CallState::Leased { until_ms }))
    }
}

/// A call that was not made, or whose end is not known.
fn not_called(kind: ErrorKind, error: &dyn fmt::Display) -> Failure {
    let failure = Failure::new(Category::Infrastructure, error.to_string());
    if kind == ErrorKind::Unavailable { failure } else { failure.non_retryable() }
}

/// An error of the engine: of the store, or about what was to be started.
fn invalid(error: segno::Error) -> FunctionError {
    match error.store_error() {
        Some(error) => FunctionError::Store(error.clone()),
        None => FunctionError::InvalidInvocation { field: "call", problem: error.to_string() },
    }
}
