//! Starting instances.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::wait::result_of;
use super::{Client, Instance, InstanceHandle, restart};
use crate::clock::duration_ms;
use crate::error::{Code, Error};
use crate::handles::Orchestration;
use crate::names;
use crate::payload::Payload;
use crate::store::{ErrorKind, OrchestratorMessage, ProviderError};
use crate::work_item::{StartOrchestration, WorkItem};

/// What a start does when an instance of its id exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The start is refused with `instance-exists`.
    #[default]
    Reject,
    /// The existing instance is taken, whatever its state.
    UseExisting,
    /// The existing instance continues with a new execution that this start begins; its earlier executions stay. One that has not
    /// ended is cancelled in the same commit, without cleaning up, and so are its children.
    Replace,
}

/// A start: set options, then await. It returns the [`InstanceHandle`] of the instance.
#[must_use = "an instance is started when this is awaited"]
pub struct StartCall<O> {
    client: Client,
    id: Option<String>,
    /// Boxed, because it is moved several times.
    start: Box<StartOrchestration>,
    /// What is wrong with the input or a label.
    refusal: Option<Box<Error>>,
    delay: Option<Duration>,
    on_conflict: OnConflict,
    output: PhantomData<fn() -> O>,
}

impl Client {
    /// Starts an orchestration. Once this has answered, the start is stored and will happen.
    pub fn start<I: Serialize, O>(&self, orchestration: Orchestration<I, O>, input: I) -> StartCall<O> {
        let (input, refusal) = match Payload::encode(&input) {
            Ok(input) => (input, None),
            Err(error) => (Payload::null(), Some(Box::new(error))),
        };
        let start = StartOrchestration {
            orchestration: orchestration.name().to_owned(),
            input,
            version: orchestration.version().map(str::to_owned),
            parent: None,
            labels: BTreeMap::new(),
            start_at_ms: None,
            traceparent: None,
            settle: None,
            execution_id: None,
            seed: None,
            follows_another: false,
        };
        StartCall {
            client: self.clone(),
            id: None,
            start: Box::new(start),
            refusal,
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

    /// Puts a label on the instance. One that begins with [`RESERVED_LABEL_PREFIX`](crate::RESERVED_LABEL_PREFIX) is refused
    /// with `invalid-label`.
    pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        let checked = names::check_unreserved_label(&key);
        self.with_label(checked, key, value.into())
    }

    /// Puts a label of Segno itself on the instance: for crates that start instances for others and must not be taken for
    /// them. It does not count among the labels of the instance, and code cannot change it.
    pub fn reserved_label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        let checked = names::check_reserved_label(&key);
        self.with_label(checked, key, value.into())
    }

    fn with_label(mut self, checked: Result<(), Error>, key: String, value: String) -> Self {
        match checked {
            Ok(()) => {
                self.start.labels.insert(key, value);
            }
            Err(error) => self.refusal = self.refusal.or(Some(Box::new(error))),
        }
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

    /// Names the request: with [`OnConflict::Replace`], a second start with the same id does not replace what the first one began.
    pub fn request_id(mut self, id: Uuid) -> Self {
        self.start.seed = Some(restart::seed_of(id));
        self
    }

    /// Hands on a W3C traceparent to the instance and its activities.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.start.traceparent = Some(traceparent.into());
        self
    }

    /// Gives data to the settler of the registry ([`RegistryBuilder::settler`](crate::RegistryBuilder::settler)), which makes changes
    /// of records part of the commit that ends the instance, also after continue-as-new.
    pub fn settle(mut self, data: &impl Serialize) -> Self {
        match Payload::encode(data) {
            Ok(data) => self.start.settle = Some(data),
            Err(error) => self.refusal = self.refusal.or(Some(Box::new(error))),
        }
        self
    }

    /// The message that this start is, for a commit of records that starts an instance along with what it stores
    /// ([`RecordBatch::orchestrator_items`](crate::store::RecordBatch)). An instance that exists already stays as it is;
    /// [`StartCall::on_conflict`] has no meaning here.
    ///
    /// # Errors
    /// Those of a start: `invalid-instance-id`, `invalid-label`, `payload-too-large` and the like.
    pub async fn message(self) -> Result<OrchestratorMessage, Error> {
        let (_, instance, start) = self.prepare().await?;
        Ok(WorkItem::StartOrchestration(start).for_orchestrator(instance))
    }

    /// The client, the id of the instance, and the start, checked.
    async fn prepare(self) -> Result<(Client, String, Box<StartOrchestration>), Error> {
        let StartCall { client, id, mut start, refusal, delay, .. } = self;
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
        if let Some(refusal) = refusal {
            return Err(*refusal);
        }
        if let Some(delay) = delay {
            start.start_at_ms = Some(client.store.now_ms().await?.saturating_add(duration_ms(delay)));
        }
        Ok((client, instance, start))
    }

    async fn send(self) -> Result<InstanceHandle<O>, Error> {
        let on_conflict = self.on_conflict;
        let (client, instance, start) = self.prepare().await?;
        let kept = (on_conflict == OnConflict::Replace).then(|| start.clone());
        let message = WorkItem::StartOrchestration(start).for_orchestrator(instance.clone());
        let created = match client.store.enqueue_for_orchestrator(message, None).await {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::Conflict => match (on_conflict, kept) {
                (OnConflict::UseExisting, _) => false,
                (OnConflict::Replace, Some(start)) => {
                    Box::pin(client.replace(&instance, *start)).await?;
                    true
                }
                (OnConflict::Reject | OnConflict::Replace, _) => return Err(refused(&instance, &error)),
            },
            Err(error) => return Err(error.into()),
        };
        Ok(InstanceHandle::started(client, instance, created))
    }
}

impl Client {
    /// Begins the next execution of the instance that is in the way of a start.
    async fn replace(&self, instance: &str, mut start: StartOrchestration) -> Result<(), Error> {
        start.seed.get_or_insert_with(|| self.ids.new_seed());
        for _ in 0..restart::MAX_TRIES {
            let after = match self.store.get_instance_info(instance).await {
                Ok(info) => info.current_execution_id,
                // Only its start is queued.
                Err(error) if error.kind() == ErrorKind::NotFound => 1,
                Err(error) => return Err(error.into()),
            };
            let next = Client::next_execution(instance, after, start.clone(), restart::cut_off());
            match self.store.begin_next_execution(next).await {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                // It was deleted meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let message =
                        WorkItem::StartOrchestration(Box::new(start.clone())).for_orchestrator(instance);
                    match self.store.enqueue_for_orchestrator(message, None).await {
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        other => return Ok(other?),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(restart::keeps_changing(instance))
    }
}

fn refused(instance: &str, conflict: &ProviderError) -> Error {
    tracing::debug!(instance, %conflict, "start refused");
    let message = format!(
        "an instance with the id {instance:?} exists already; choose another id, or set on_conflict to use_existing or replace"
    );
    Error::new(Code::InstanceExists, message)
}

impl<O: DeserializeOwned + 'static> StartCall<O> {
    /// Starts the instance and waits for its result.
    ///
    /// # Errors
    /// Those of the start, and those of [`Client::result`].
    pub async fn result(self) -> Result<O, Error> {
        if self.on_conflict != OnConflict::Reject {
            return Box::pin(self.send_and_wait()).await;
        }
        let (client, instance, start) = self.prepare().await?;
        let message = WorkItem::StartOrchestration(start).for_orchestrator(instance.clone());
        match client.store.start_and_watch(message).await {
            Ok(info) => result_of(Instance::from_info(info)),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(refused(&instance, &error)),
            Err(error) => Err(error.into()),
        }
    }

    async fn send_and_wait(self) -> Result<O, Error> {
        self.send().await?.result().wait().await
    }
}

impl<O: 'static> IntoFuture for StartCall<O> {
    type Output = Result<InstanceHandle<O>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
