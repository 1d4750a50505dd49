//! Starts: of orchestrations by their name, and of calls of functions. Built-in orchestrations are started here with inputs
//! that were made here, and in no other way.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::client::{OnConflict, StartCall};
use segno::event::Started;
use segno::store::{ErrorKind, Guards, RecordBatch, RecordWrite};
use segno::{Orchestration, Payload};
use segno_actions::functions::{
    FunctionError, INVOKE, Invocation, InvokeRequest, Route, TRIGGER_LABEL, invocation_id, is_built_in,
};
use segno_actions::pools::{PoolCall, reserved_key_prefix, reserved_prefix};
use uuid::Uuid;

use super::Tenant;
use super::reserved::{Steering, check_steerable};
use crate::problem::Refusal;
use crate::trace::TraceContext;

/// An instance to be started.
#[derive(Clone)]
pub struct NewInstance {
    /// Its id, as the caller knows it.
    pub id: String,
    /// The orchestration.
    pub orchestration: String,
    /// Its version; the node decides without one.
    pub version: Option<String>,
    /// Its input.
    pub input: Payload,
    /// Its labels, as the caller chose them.
    pub labels: BTreeMap<String, String>,
    /// The labels that Segno itself puts on it.
    pub reserved_labels: BTreeMap<String, String>,
    /// Not before this time.
    pub start_at_ms: Option<u64>,
    /// What happens when there is one of this id.
    pub on_conflict: OnConflict,
    /// Names the request, so that a repetition of a replacement changes nothing.
    pub request_id: Option<Uuid>,
}

/// How an instance is started again.
pub struct Restarting {
    /// Also when it has not ended.
    pub force: bool,
    /// Names the request, so that a repetition changes nothing.
    pub request_id: Option<Uuid>,
    /// Another input than that of the last start.
    pub input: Option<Payload>,
}

/// The answer to a start.
pub struct StartAnswer {
    /// Id of the instance, as the caller knows it.
    pub instance: String,
    /// Whether this start created it.
    pub created: bool,
}

/// A start that may be made: its orchestration is not built in, or its input was made here.
#[derive(Clone)]
pub struct Start(NewInstance);

impl Start {
    /// The id of the instance, as the caller knows it.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Whether it is one commit of records: one that replaces an instance is a commit of that instance.
    pub fn is_one_commit(&self) -> bool {
        self.0.on_conflict != OnConflict::Replace
    }
}

impl Tenant {
    /// The start of an orchestration that a caller names.
    ///
    /// # Errors
    /// `built-in-orchestration`, `unknown-orchestration`, `reserved-id`.
    pub async fn start_of(&self, new: NewInstance) -> Result<Start, Refusal> {
        if is_built_in(&new.orchestration) {
            return Err(Refusal::built_in(&new.orchestration));
        }
        check_free("id", &new.id)?;
        self.check_start(&new.orchestration, &new.input).await?;
        Ok(Start(new))
    }

    /// Begins the next execution of an instance with what its last start began with.
    ///
    /// # Errors
    /// Those of the engine, of [`Tenant::start_of`] and of the catalogue.
    pub async fn restart(
        &self,
        id: &str,
        restarting: Restarting,
        trace: TraceContext,
    ) -> Result<(), Refusal> {
        let started = self.started_anew(id, restarting.input).await?;
        let mut call = self.resources().client.restart(self.stored(id)).begin_with(started);
        if restarting.force {
            call = call.force();
        }
        if let Some(request_id) = restarting.request_id {
            call = call.request_id(request_id);
        }
        trace.hand_to_restart(call).await.map_err(|error| self.refused(error))?;
        Ok(())
    }

    /// The start of a new instance with what the last start of another one began with.
    ///
    /// # Errors
    /// Those of the engine, of [`Tenant::start_of`] and of the catalogue.
    pub async fn start_again(
        &self,
        id: &str,
        new_id: String,
        input: Option<Payload>,
    ) -> Result<Start, Refusal> {
        check_free("new_id", &new_id)?;
        let started = self.started_anew(id, input).await?;
        // The caller makes the copy, whatever made the original.
        let labels = started.labels.clone().into_iter().filter(|(key, _)| key != TRIGGER_LABEL);
        let (reserved_labels, labels) = labels.partition(|(key, _)| segno::is_reserved_label(key));
        Ok(Start(NewInstance {
            id: new_id,
            orchestration: started.name.clone(),
            version: None,
            input: started.input.clone(),
            labels,
            reserved_labels,
            start_at_ms: None,
            on_conflict: OnConflict::Reject,
            request_id: None,
        }))
    }

    /// What the last start of an instance began with, as a new start may, or the same with another input. A call of a function is
    /// checked as a new one is, and made as the function is declared now: of its recorded input only the function and its input
    /// count.
    pub(super) async fn started_anew(
        &self,
        id: &str,
        input: Option<Payload>,
    ) -> Result<Arc<Started>, Refusal> {
        check_steerable(id, Steering::Restart)?;
        let started = self.resources().client.started_with(&self.stored(id)).await;
        let started = started.map_err(|error| self.refused(error))?;
        if started.name != INVOKE.name() {
            if is_built_in(&started.name) {
                return Err(Refusal::built_in(&started.name));
            }
            let started = match input {
                Some(input) => Arc::new(Started { input, ..(*started).clone() }),
                None => started,
            };
            self.check_start(&started.name, &started.input).await?;
            return Ok(started);
        }
        let prepared = match started.input.decode::<Invocation>() {
            Ok(Invocation { route: Route::Pool { pool }, function, input: recorded, .. }) => {
                self.prepare_pool_call(PoolCall::new(pool, function, input.unwrap_or(recorded))).await
            }
            _ => self.resources().functions.prepare_again(&self.owner(), &started.input, input).await,
        };
        let invocation = prepared.map_err(|error| self.refused(error))?;
        let input = Payload::encode(&invocation).map_err(|error| self.refused(error))?;
        let mut started = Started { input, ..(*started).clone() };
        // One that was made before calls had it gets it now.
        started.labels.extend([invocation.function.label(&self.owner())]);
        Ok(Arc::new(started))
    }

    /// A call of a function that is ready to be made.
    ///
    /// # Errors
    /// Those of the catalogue.
    pub async fn prepare(&self, request: InvokeRequest) -> Result<Invocation, FunctionError> {
        self.resources().functions.prepare(&self.owner(), request).await
    }

    /// The start of a call under a key. The one that was made under it before is taken for it.
    ///
    /// # Errors
    /// `payload-too-large`, `reserved-id`.
    pub fn start_of_call(
        &self,
        key: &str,
        invocation: &Invocation,
        labels: BTreeMap<String, String>,
    ) -> Result<Start, Refusal> {
        if let Some(prefix) = reserved_key_prefix(key) {
            return Err(Refusal::reserved("key", prefix));
        }
        let stored = invocation_id(&self.owner(), key);
        Ok(Start(NewInstance {
            id: self.shown_instance(Some(&stored)).unwrap_or(stored),
            orchestration: INVOKE.name().to_owned(),
            version: None,
            input: Payload::encode(invocation).map_err(|error| self.refused(error))?,
            labels,
            reserved_labels: BTreeMap::from([invocation.function.label(&self.owner())]),
            start_at_ms: None,
            on_conflict: OnConflict::UseExisting,
            request_id: None,
        }))
    }

    /// Starts an instance.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn start(&self, start: Start, trace: TraceContext) -> Result<StartAnswer, Refusal> {
        let id = start.0.id.clone();
        let started = self.call_of(start, trace)?.await.map_err(|error| self.refused(error))?;
        Ok(StartAnswer { instance: id, created: started.created() })
    }

    /// Starts an instance in one commit with other writes; the version of the first of them. `None` when the instance or a record is
    /// in the way: then nothing was done.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn start_with(
        &self,
        start: Start,
        trace: TraceContext,
        writes: Vec<RecordWrite>,
    ) -> Result<Option<u64>, Refusal> {
        let message = self.call_of(start, trace)?.message().await;
        let message = message.map_err(|error| self.refused(error))?;
        let (orchestrator_items, guards) = (vec![message], Guards::Refuse);
        let batch = RecordBatch { writes, orchestrator_items, guards, ..RecordBatch::default() };
        match self.resources().store.commit_records(batch).await {
            Ok(versions) => Ok(Some(versions.first().copied().unwrap_or_default())),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn call_of(&self, Start(new): Start, trace: TraceContext) -> Result<StartCall<Payload>, Refusal> {
        let mut orchestration = Orchestration::<Payload, Payload>::named(new.orchestration);
        if let Some(version) = new.version {
            orchestration = orchestration.at(version);
        }
        let id = self.scope.stored_new(&new.id)?;
        let call = self.resources().client.start(orchestration, new.input).id(id);
        let call = call.on_conflict(new.on_conflict);
        let call = new.labels.into_iter().fold(call, |call, (key, value)| call.label(key, value));
        let reserved = new.reserved_labels.into_iter();
        let call = reserved.fold(call, |call, (key, value)| call.reserved_label(key, value));
        let call = new.start_at_ms.into_iter().fold(call, |call, at_ms| call.at_ms(at_ms));
        let call = new.request_id.into_iter().fold(call, |call, request_id| call.request_id(request_id));
        Ok(trace.hand_to(call))
    }
}

/// Refuses an id that Segno makes of keys of its own.
fn check_free(field: &str, id: &str) -> Result<(), Refusal> {
    reserved_prefix(id).map_or(Ok(()), |prefix| Err(Refusal::reserved(field, &prefix)))
}
