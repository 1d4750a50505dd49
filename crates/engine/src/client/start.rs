//! Starting instances.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use crate::clock::duration_ms;
use crate::error::{Code, Error};
use crate::handles::Orchestration;
use crate::names;
use crate::payload::Payload;
use crate::store::{ErrorKind, OrchestratorMessage};
use crate::work_item::{StartOrchestration, WorkItem};

/// What a start does when an instance of its id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The start is refused with `instance-exists`.
    #[default]
    Reject,
    /// The existing instance is taken, whatever its state.
    UseExisting,
    /// The existing instance is deleted with its children, running or not, and the new one started.
    Replace,
}

/// The answer to a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedInstance {
    /// The instance.
    pub instance: String,
    /// Whether this call made it.
    pub created: bool,
}

/// A start: set options, then await.
#[must_use = "an instance is started when this is awaited"]
pub struct StartCall<O> {
    client: Client,
    id: Option<String>,
    input: Result<Payload, Error>,
    start: StartOrchestration,
    delay: Option<Duration>,
    on_conflict: OnConflict,
    output: PhantomData<fn() -> O>,
}

impl Client {
    /// Starts an orchestration. Once this has answered, the start is stored and will happen.
    pub fn start<I: Serialize, O>(&self, orchestration: Orchestration<I, O>, input: I) -> StartCall<O> {
        StartCall {
            client: self.clone(),
            id: None,
            input: Payload::encode(&input),
            start: StartOrchestration {
                orchestration: orchestration.name().to_owned(),
                input: Payload::null(),
                version: orchestration.version().map(str::to_owned),
                parent: None,
                labels: BTreeMap::new(),
                start_at_ms: None,
                traceparent: None,
            },
            delay: None,
            on_conflict: OnConflict::default(),
            output: PhantomData,
        }
    }
}

impl<O> StartCall<O> {
    /// Gives the instance this id; a new unique one by default. The id is what makes a start safe to repeat.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Puts a label on the instance.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.start.labels.insert(key.into(), value.into());
        self
    }

    /// Starts the code this much later; until then the instance is pending.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Starts the code at this time, in Unix milliseconds; until then the instance is pending.
    pub fn at_ms(mut self, at_ms: u64) -> Self {
        self.start.start_at_ms = Some(at_ms);
        self
    }

    /// Says what happens when an instance of the id exists.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    /// Hands on a W3C traceparent to the instance and its activities.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.start.traceparent = Some(traceparent.into());
        self
    }

    /// The message that this start is, for a commit of records that starts an instance along with what it stores
    /// ([`RecordBatch::orchestrator_items`](crate::store::RecordBatch)). An instance that exists already stays as it is;
    /// [`StartCall::on_conflict`] has no meaning here.
    ///
    /// # Errors
    /// Those of a start: `invalid-instance-id`, `invalid-label`, `payload-too-large` and the like.
    pub async fn message(self) -> Result<OrchestratorMessage, Error> {
        let StartCall { client, id, input, mut start, delay, .. } = self;
        let instance = id.unwrap_or_else(|| client.ids.new_uuid().to_string());
        names::check_instance_id(&instance)?;
        names::check_name("orchestration name", &start.orchestration)?;
        if let Some(version) = &start.version {
            names::check_version(version)?;
        }
        names::check_labels(&start.labels)?;
        if let Some(traceparent) = &start.traceparent {
            names::check_name("traceparent", traceparent)?;
        }
        start.input = input?;
        if let Some(delay) = delay {
            start.start_at_ms = Some(client.store.now_ms().await?.saturating_add(duration_ms(delay)));
        }
        Ok(WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(instance))
    }

    async fn send(self) -> Result<StartedInstance, Error> {
        let (client, on_conflict) = (self.client.clone(), self.on_conflict);
        client.enqueue_start(self.message().await?, on_conflict).await
    }
}

impl Client {
    async fn enqueue_start(
        &self,
        message: OrchestratorMessage,
        on_conflict: OnConflict,
    ) -> Result<StartedInstance, Error> {
        let instance = message.instance.clone();
        let kept = (on_conflict == OnConflict::Replace).then(|| message.clone());
        let first = self.store.enqueue_for_orchestrator(message, None).await;
        let conflict = match first {
            Ok(()) => return Ok(StartedInstance { instance, created: true }),
            Err(error) if error.kind() == ErrorKind::Conflict => error,
            Err(error) => return Err(error.into()),
        };
        match (on_conflict, kept) {
            (OnConflict::UseExisting, _) => Ok(StartedInstance { instance, created: false }),
            (OnConflict::Replace, Some(message)) => {
                let tree = self.store.get_instance_tree(&instance).await?;
                self.store.delete_instances_atomic(&tree.all_ids, true).await?;
                match self.store.enqueue_for_orchestrator(message, None).await {
                    Ok(()) => Ok(StartedInstance { instance, created: true }),
                    Err(error) if error.kind() == ErrorKind::Conflict => {
                        let message =
                            format!("another start made {instance:?} first; try again to replace that one");
                        Err(Error::new(Code::InstanceExists, message))
                    }
                    Err(error) => Err(error.into()),
                }
            }
            (OnConflict::Reject | OnConflict::Replace, _) => {
                tracing::debug!(instance, %conflict, "start refused");
                let message = format!(
                    "an instance with the id {instance:?} exists already; choose another id, or say on_conflict"
                );
                Err(Error::new(Code::InstanceExists, message))
            }
        }
    }
}

impl<O: DeserializeOwned + 'static> StartCall<O> {
    /// Starts the instance and waits for its result.
    ///
    /// # Errors
    /// Those of the start, and those of [`Client::result`].
    pub async fn result(self) -> Result<O, Error> {
        let client = self.client.clone();
        let orchestration = Orchestration::<(), O>::named(self.start.orchestration.clone());
        let started = self.send().await?;
        client.result(orchestration, started.instance).await
    }
}

impl<O: 'static> IntoFuture for StartCall<O> {
    type Output = Result<StartedInstance, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
