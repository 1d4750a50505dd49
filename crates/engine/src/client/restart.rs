//! Starting an instance again: the next execution of it, in one commit. Earlier executions stay as they are.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Client;
use crate::error::{Code, Error};
use crate::event::{Event, EventKind, Output, Started};
use crate::failure::Failure;
use crate::names;
use crate::runtime::REPLACED;
use crate::store::{
    ErrorKind, ExecutionStatus, InstanceInfo, NextExecution, OrchestratorMessage, UnendedExecution,
};
use crate::work_item::{StartOrchestration, WorkItem};

/// How often a call reads the instance again because another commit came between.
pub(super) const MAX_TRIES: usize = 32;

/// A restart: set options, then await.
#[must_use = "the instance is started again when this is awaited"]
pub struct RestartCall {
    client: Client,
    instance: String,
    unended: UnendedExecution,
    after_execution_id: Option<u64>,
    started: Option<Arc<Started>>,
    request_id: Option<Uuid>,
    traceparent: Option<String>,
}

/// The answer to a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartedInstance {
    /// The instance.
    pub instance: String,
    /// The execution that begins.
    pub execution_id: u64,
}

impl Client {
    /// Starts an instance that has ended again, with the input and the labels with which it was last started. Its next execution
    /// begins; the earlier ones stay, and so do its id and its time of creation. Once this has answered, that is stored and will happen.
    pub fn restart(&self, instance: impl Into<String>) -> RestartCall {
        RestartCall {
            client: self.clone(),
            instance: instance.into(),
            unended: UnendedExecution::Refuse,
            after_execution_id: None,
            started: None,
            request_id: None,
            traceparent: None,
        }
    }

    /// What the last start of an instance began with, also if executions that continued as new came after it.
    ///
    /// # Errors
    /// `not-found`; `instance-running` or `instance-ended` when it has not begun.
    pub async fn started_with(&self, instance: &str) -> Result<Arc<Started>, Error> {
        match self.store.get_instance_info(instance).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            info => return self.started_in(&info?).await,
        }
        // A start that is stored and waits for its first turn has no row.
        if self.instance(instance).await?.revision == 0 {
            return Err(Error::new(
                Code::InstanceRunning,
                format!("instance {instance:?} has not begun yet"),
            ));
        }
        self.started_in(&self.store.get_instance_info(instance).await?).await
    }

    async fn started_in(&self, info: &InstanceInfo) -> Result<Arc<Started>, Error> {
        let (instance, current) = (&info.instance_id, info.current_execution_id);
        let Some(started) = started_of(self.history_of_execution(instance, current).await?) else {
            return Err(has_not_begun(info));
        };
        let first = started.first_execution_id.unwrap_or(1);
        if first == current {
            return Ok(started);
        }
        // Pruning may have removed it; then the oldest that is left is the nearest to it.
        let kept = self.store.list_executions(instance).await?.into_iter().find(|id| *id >= first);
        let kept = started_of(self.history_of_execution(instance, kept.unwrap_or(current)).await?);
        Ok(kept.unwrap_or(started))
    }

    /// The message that begins an execution of an instance that exists, and all that its commit changes.
    pub(super) fn next_execution(
        instance: &str,
        after_execution_id: u64,
        mut start: StartOrchestration,
        unended: UnendedExecution,
    ) -> NextExecution {
        let incarnation = start.seed.unwrap_or_default();
        start.execution_id = Some(after_execution_id + 1);
        start.follows_another = true;
        NextExecution {
            after_execution_id,
            incarnation,
            unended,
            orchestration_name: start.orchestration.as_str().into(),
            orchestration_version: start.version.as_deref().map(Arc::from),
            labels: start.labels.clone(),
            start: WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(instance),
        }
    }
}

/// How an execution ends that is cut off.
pub(super) fn cut_off() -> UnendedExecution {
    let output = Output::Failed(Failure::cancelled(REPLACED)).encode();
    UnendedExecution::End { status: ExecutionStatus::Cancelled, output }
}

fn started_of(history: Vec<Event>) -> Option<Arc<Started>> {
    history.into_iter().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted(started) => Some(started),
        _ => None,
    })
}

fn has_not_begun(info: &InstanceInfo) -> Error {
    let instance = &info.instance_id;
    if info.status.is_terminal() {
        let message = format!("instance {instance:?} ended before it began; start a new one instead");
        return Error::new(Code::InstanceEnded, message);
    }
    Error::new(Code::InstanceRunning, format!("instance {instance:?} has not begun yet"))
}

impl RestartCall {
    /// Also an instance that has not ended: its current execution is cancelled in the same commit, without cleaning up, and its
    /// children are cancelled.
    pub fn force(mut self) -> Self {
        self.unended = cut_off();
        self
    }

    /// Only if this is the current execution: the restart is refused with `instance-running` when another one has begun since.
    pub fn after_execution(mut self, execution_id: u64) -> Self {
        self.after_execution_id = Some(execution_id);
        self
    }

    /// Begins with the name, input and labels of this start instead of those of the last one; [`Client::started_with`] reads
    /// that.
    pub fn begin_with(mut self, started: Arc<Started>) -> Self {
        self.started = Some(started);
        self
    }

    /// Names the request: as long as the execution that it begins is the current one, a second restart with the same id changes
    /// nothing.
    pub fn request_id(mut self, id: Uuid) -> Self {
        self.request_id = Some(id);
        self
    }

    /// Hands on a W3C traceparent to the instance and its activities.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    async fn send(self) -> Result<RestartedInstance, Error> {
        let RestartCall {
            client,
            instance,
            unended,
            after_execution_id,
            started: given,
            request_id,
            traceparent,
        } = self;
        names::check_instance_id(&instance)?;
        if let Some(traceparent) = &traceparent {
            names::check_name("traceparent", traceparent)?;
        }
        let seed = request_id.map_or_else(|| client.ids.new_seed(), seed_of);
        for _ in 0..MAX_TRIES {
            let info = match client.store.get_instance_info(&instance).await {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(client.absent(&instance).await?);
                }
                info => info?,
            };
            let is_repetition = request_id.is_some() && client.begun_by(&info, seed).await?;
            if is_repetition {
                return Ok(RestartedInstance { instance, execution_id: info.current_execution_id });
            }
            if after_execution_id.is_some_and(|after| after != info.current_execution_id) {
                return Err(has_gone_on(&info));
            }
            if !info.status.is_terminal() && unended == UnendedExecution::Refuse {
                return Err(still_runs(&info));
            }
            let started = match &given {
                Some(given) => Arc::clone(given),
                None => client.started_in(&info).await?,
            };
            let start = StartOrchestration {
                orchestration: started.name.clone(),
                input: started.input.clone(),
                version: None,
                parent: None,
                labels: started.labels.clone(),
                start_at_ms: None,
                traceparent: traceparent.clone(),
                settle: started.settle.clone(),
                execution_id: None,
                seed: Some(seed),
                follows_another: false,
            };
            let after = info.current_execution_id;
            let next = Client::next_execution(&instance, after, start, unended.clone());
            match client.store.begin_next_execution(next).await {
                Ok(()) => return Ok(RestartedInstance { instance, execution_id: after + 1 }),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(keeps_changing(&instance))
    }
}

impl Client {
    /// Whether the current execution of an instance began by a request, also if it is still pending. The store knows: for it a
    /// repetition succeeds whatever the rest contains, and no execution has the number that this one follows.
    async fn begun_by(&self, info: &InstanceInfo, seed: u64) -> Result<bool, Error> {
        if info.current_execution_id == 1 {
            return Ok(false);
        }
        let probe = NextExecution {
            after_execution_id: u64::MAX - 1,
            incarnation: seed,
            unended: UnendedExecution::Refuse,
            orchestration_name: "".into(),
            orchestration_version: None,
            labels: BTreeMap::new(),
            start: OrchestratorMessage::new(info.instance_id.as_str(), Bytes::new()),
        };
        match self.store.begin_next_execution(probe).await {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the current execution of an instance began by this request.
    pub(super) async fn is_begun_by(&self, info: &InstanceInfo, request_id: Uuid) -> Result<bool, Error> {
        self.begun_by(info, seed_of(request_id)).await
    }

    /// Why an instance without a row cannot be started again.
    async fn absent(&self, instance: &str) -> Result<Error, Error> {
        if self.store.queued_start_ms(instance).await?.is_some() {
            return Ok(Error::new(Code::InstanceRunning, format!("instance {instance:?} has not begun yet")));
        }
        Ok(Error::new(Code::NotFound, format!("there is no instance with the id {instance:?}")))
    }
}

/// The seed that a request stands for.
pub(super) fn seed_of(request_id: Uuid) -> u64 {
    request_id.as_u64_pair().1
}

fn still_runs(info: &InstanceInfo) -> Error {
    let InstanceInfo { instance_id, status, .. } = info;
    let message = format!("instance {instance_id:?} has not ended ({status}); cancel it first, or use force");
    Error::new(Code::InstanceRunning, message)
}

fn has_gone_on(info: &InstanceInfo) -> Error {
    let InstanceInfo { instance_id, current_execution_id, .. } = info;
    let message = format!("instance {instance_id:?} has begun execution {current_execution_id} meanwhile");
    Error::new(Code::InstanceRunning, message)
}

pub(super) fn keeps_changing(instance: &str) -> Error {
    let message =
        format!("instance {instance:?} began other executions {MAX_TRIES} times meanwhile; try again");
    Error::new(Code::InstanceRunning, message)
}

impl IntoFuture for RestartCall {
    type Output = Result<RestartedInstance, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
