//! Messages that came from the bus: each becomes an inbox record of its batch, keyed by the id of
//! the message, if the batch and the row that it names exist.
//!
//! An event has a receipt, as a request has, so it wakes its batch and is posted once within seven
//! days. A result has none: a batch with open calls is held, or its lease expires.

use std::sync::Arc;

use segno::store::{ErrorKind, ProviderError, RecordBatch, Store};
use segno_actions::functions::Scope;

use super::inbox;
use super::outbox::{self, OUTBOX, WORKER_ID};
use super::place::BatchPlace;
use super::post::{self, Posting};
use crate::bus::Message;
use crate::message::{CallResult, EventMessage, Outcome, WorkReference};
use crate::rows::{BatchId, BatchRow, InitId, Row, RowKey, StepId, Table, Work, WorkKey};

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// Its inbox record is durable, now or from an earlier delivery.
    Stored,
    /// It names a batch or a row that does not exist, or the runbook of another batch.
    Unknown(String),
}

/// How a job was sent.
enum Sent {
    /// Over the bus, and its result has not been taken.
    OverBus,
    /// Perhaps over the bus: its result is not awaited any more.
    Before,
    /// Not over the bus, as far as can be told, and why.
    Otherwise(String),
}

/// The way from the bus to the inboxes of a tenant's batches.
#[derive(Clone)]
pub struct BusInbox {
    store: Arc<dyn Store>,
    scope: Scope,
}

impl BusInbox {
    /// The inboxes of a tenant.
    pub fn new(store: Arc<dyn Store>, scope: Scope) -> Self {
        BusInbox { store, scope }
    }

    /// Stores an event.
    ///
    /// # Errors
    /// Those of the store; the message has to be delivered again.
    pub async fn event(&self, message: &Message, event: &EventMessage) -> Result<Arrival, ProviderError> {
        let place = self.place(event.batch_id());
        let Some(batch) = self.batch(&place).await? else { return Ok(unknown_batch(&place)) };
        let runbook = runbook_name(event);
        if !batch.runbook_name.eq_ignore_ascii_case(runbook) {
            let found = &batch.runbook_name;
            return Ok(Arrival::Unknown(format!(
                "batch {} is one of the runbook {found:?}, not of {runbook:?}",
                place.batch
            )));
        }
        let mut event = event.clone();
        if let Some((key, name)) = row_of_event(&event)
            && !self.exists(&place, &key).await?
        {
            let is_init = match of_init_step(&mut event) {
                Some(key) => self.exists(&place, &key).await?,
                None => false,
            };
            if !is_init {
                return Ok(Arrival::Unknown(format!("batch {} has no {name}", place.batch)));
            }
        }
        let key = inbox::bus_key(&message.message_id, &message.body);
        Ok(match post::post_event(&*self.store, &place, &key, &event).await? {
            Posting::Posted(_) | Posting::Before(_) => Arrival::Stored,
            Posting::NoBatch => unknown_batch(&place),
        })
    }

    /// Stores a result.
    ///
    /// # Errors
    /// Those of the store; the message has to be delivered again.
    pub async fn result(
        &self,
        message: &Message,
        batch: BatchId,
        result: CallResult,
    ) -> Result<Arrival, ProviderError> {
        let place = self.place(batch);
        let (key, name) = row_of_result(result.work);
        if !self.exists(&place, &key).await? {
            return Ok(Arrival::Unknown(format!("batch {batch} has no {name}, or there is no such batch")));
        }
        match self.sent(&place, message, &result).await? {
            Sent::OverBus => {
                let key = inbox::bus_key(&message.message_id, &message.body);
                let now_ms = self.store.now_ms().await?;
                self.commit(vec![inbox::put_bus_result(&place, &key, result, now_ms)]).await?;
                Ok(Arrival::Stored)
            }
            Sent::Before => Ok(Arrival::Stored),
            Sent::Otherwise(reason) => Ok(Arrival::Unknown(reason)),
        }
    }

    /// How the job of a result was sent. The row of the outbox is the proof: else any sender to the
    /// topic could end calls that workers hold leases on, and functions that nodes run.
    async fn sent(
        &self,
        place: &BatchPlace,
        message: &Message,
        result: &CallResult,
    ) -> Result<Sent, ProviderError> {
        let work = self.work(place, result.work).await?;
        let claimed =
            result.pool.as_deref().or_else(|| message.properties.get(WORKER_ID).map(String::as_str));
        let Some(pool) = work.as_ref().map(|work| work.worker_id.as_str()).or(claimed) else {
            return Ok(Sent::Otherwise(format!("the result of {} has no workerId", result.job_id)));
        };
        let id = outbox::job_row_id(place, pool, &result.job_id);
        if self.store.get_record(OUTBOX, &id).await?.is_some() {
            return Ok(Sent::OverBus);
        }
        let is_awaited = |work: Work| work.job_id.as_ref() == Some(&result.job_id) && work.is_called();
        Ok(match work.is_some_and(is_awaited) {
            true => Sent::Otherwise(format!("the job {} was not sent over the bus", result.job_id)),
            false => Sent::Before,
        })
    }

    /// The piece of work that a result names. That of a rollback is not known without its origin.
    async fn work(&self, place: &BatchPlace, work: WorkReference) -> Result<Option<Work>, ProviderError> {
        let key = match work {
            WorkReference::Step(id) => WorkKey::Step(id),
            WorkReference::Init(id) => WorkKey::Init(id),
            WorkReference::Removal(member, index) => WorkKey::Removal(member, index),
            WorkReference::Rollback(_) => return Ok(None),
        };
        let key = RowKey::from(key);
        let Some(record) = self.store.get_record(key.table().name(), &place.row_id(&key)).await? else {
            return Ok(None);
        };
        match Row::decode(key.table(), &record.body) {
            Ok(Row::Step(row)) => Ok(Some(row.work)),
            Ok(Row::Init(row)) => Ok(Some(row.work)),
            Ok(Row::Removal(row)) => Ok(Some(row.work)),
            Ok(_) => Ok(None),
            Err(error) => {
                let problem = format!("the row of {work:?} cannot be read: {error}");
                Err(ProviderError::new(ErrorKind::Corrupt, "bus", problem))
            }
        }
    }

    /// Fails a job of a pool that the bus can never take, and removes its row.
    pub(crate) async fn fail_job(
        &self,
        place: &BatchPlace,
        pool: &str,
        (job_id, problem): (&str, &str),
    ) -> Result<(), ProviderError> {
        let Some(work) = WorkReference::of_job_id(job_id) else {
            return self.commit(vec![outbox::delete_job(place, pool, job_id)]).await;
        };
        let outcome = Outcome::failed(problem);
        let result = CallResult { job_id: job_id.to_owned(), work, outcome, pool: Some(pool.to_owned()) };
        let now_ms = self.store.now_ms().await?;
        let result = inbox::put_bus_result(place, &inbox::bus_key(job_id, "unsent"), result, now_ms);
        self.commit(vec![result, outbox::delete_job(place, pool, job_id)]).await
    }

    fn place(&self, batch: BatchId) -> BatchPlace {
        BatchPlace::new(self.scope.clone(), batch)
    }

    async fn batch(&self, place: &BatchPlace) -> Result<Option<BatchRow>, ProviderError> {
        let Some(record) = self.store.get_record(Table::Batches.name(), &place.id()).await? else {
            return Ok(None);
        };
        match Row::decode(Table::Batches, &record.body) {
            Ok(Row::Batch(batch)) => Ok(Some(batch)),
            Ok(_) => Ok(None),
            Err(error) => {
                let problem = format!("batch {} cannot be read: {error}", place.batch);
                Err(ProviderError::new(ErrorKind::Corrupt, "bus", problem))
            }
        }
    }

    async fn exists(&self, place: &BatchPlace, key: &RowKey) -> Result<bool, ProviderError> {
        let found = self.store.get_record(key.table().name(), &place.row_id(key)).await?;
        Ok(found.is_some())
    }

    async fn commit(&self, writes: Vec<segno::store::RecordWrite>) -> Result<(), ProviderError> {
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.map(drop)
    }
}

fn unknown_batch(place: &BatchPlace) -> Arrival {
    Arrival::Unknown(format!("there is no batch {}", place.batch))
}

fn runbook_name(event: &EventMessage) -> &str {
    match event {
        EventMessage::BatchInit { runbook_name, .. }
        | EventMessage::PhaseDue { runbook_name, .. }
        | EventMessage::MemberAdded { runbook_name, .. }
        | EventMessage::MemberRemoved { runbook_name, .. }
        | EventMessage::PollCheck { runbook_name, .. }
        | EventMessage::RetryCheck { runbook_name, .. }
        | EventMessage::DispatchTimeout { runbook_name, .. } => runbook_name,
    }
}

/// The row that an event names, and how it is called.
fn row_of_event(event: &EventMessage) -> Option<(RowKey, String)> {
    match event {
        EventMessage::BatchInit { .. } => None,
        EventMessage::PhaseDue { phase_execution_id: id, .. } => {
            Some((RowKey::Phase(*id), format!("phase {id}")))
        }
        EventMessage::MemberAdded { batch_member_id: id, .. }
        | EventMessage::MemberRemoved { batch_member_id: id, .. } => {
            Some((RowKey::Member(*id), format!("member {id}")))
        }
        EventMessage::PollCheck { step_execution_id: id, is_init_step, .. }
        | EventMessage::RetryCheck { step_execution_id: id, is_init_step, .. }
        | EventMessage::DispatchTimeout { step_execution_id: id, is_init_step, .. } => {
            Some(if *is_init_step { init_row(InitId(*id)) } else { step_row(StepId(*id)) })
        }
    }
}

/// The seed's messages do not tell whether a step is an init step: takes it to be one.
fn of_init_step(event: &mut EventMessage) -> Option<RowKey> {
    match event {
        EventMessage::PollCheck { step_execution_id: id, is_init_step: is_init @ false, .. }
        | EventMessage::RetryCheck { step_execution_id: id, is_init_step: is_init @ false, .. }
        | EventMessage::DispatchTimeout { step_execution_id: id, is_init_step: is_init @ false, .. } => {
            *is_init = true;
            Some(init_row(InitId(*id)).0)
        }
        _ => None,
    }
}

/// The row that a result names. Rollback and removal steps are found by their member.
fn row_of_result(work: WorkReference) -> (RowKey, String) {
    match work {
        WorkReference::Step(id) => step_row(id),
        WorkReference::Init(id) => init_row(id),
        WorkReference::Rollback(None) => (RowKey::Batch, "init steps".to_owned()),
        WorkReference::Rollback(Some(id)) | WorkReference::Removal(id, _) => {
            (RowKey::Member(id), format!("member {id}"))
        }
    }
}

fn step_row(id: StepId) -> (RowKey, String) {
    (WorkKey::Step(id).into(), format!("step {id}"))
}

fn init_row(id: InitId) -> (RowKey, String) {
    (WorkKey::Init(id).into(), format!("init step {id}"))
}
