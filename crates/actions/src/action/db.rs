//! [`ActionDb`]: actions in a store, by id and by time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::Client;
use segno::clock::{Clock, SystemClock};
use segno::store::{DueRecords, ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use uuid::Uuid;

use super::error::ActionError;
use super::model::{Action, ActionStatus, OnRestart};
use super::record::{
    ACTION_KIND, ACTION_RETIRE_KIND, ACTION_RUN_KIND, LISTING, RUNNING, StoredAction, decode, place_of,
    record_id, running_place_of,
};
use crate::functions::{RECOVERED, Scope};
use crate::keep::Keep;
use crate::listed::Listed;
use crate::listing::Place;
use crate::moment::{due_ms, timestamp};

/// How long actions that have ended are kept unless said otherwise.
pub const KEEP_FINISHED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Records that are read at once.
const PAGE: usize = 1_000;

/// Most actions that [`ActionDb::range_due`] returns.
pub const MAX_RANGE_DUE: usize = 1_000;

/// How often a change is tried again when others change the same action. Each try that fails is a change that went ahead.
const MAX_TRIES: usize = 100;

/// The actions of a namespace and tenant in a store. Cheap to clone.
#[derive(Clone)]
pub struct ActionDb {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    scope: Scope,
    keep_finished: Keep,
}

impl ActionDb {
    /// The actions of the default namespace and tenant.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (clock, scope) = (SystemClock::shared(), Scope::default());
        ActionDb { store, clock, scope, keep_finished: Keep::Expire(KEEP_FINISHED) }
    }

    /// Those of another namespace and tenant.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long actions that have ended are kept.
    #[must_use]
    pub fn keep_finished(mut self, keep: impl Into<Keep>) -> Self {
        self.keep_finished = keep.into();
        self
    }

    /// Stores a new action.
    ///
    /// # Errors
    /// `invalid-action` when a field is wrong, `action-exists` when there is one of its id.
    pub async fn insert(&self, action: &Action) -> Result<(), ActionError> {
        action.check()?;
        action.check_input()?;
        action.check_size(&self.scope)?;
        let writes = action.writes(&self.scope, Expect::Absent, self.keep_finished)?;
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                Err(ActionError::Exists { what: "an action", id: action.id.to_string() })
            }
            committed => Ok(committed.map(|_| ())?),
        }
    }

    /// One action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn get(&self, id: Uuid) -> Result<Action, ActionError> {
        Ok(self.read(id).await?.action)
    }

    /// Changes the status of an action. It is found by its id; nothing is scanned.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn set_status(&self, id: Uuid, status: ActionStatus) -> Result<(), ActionError> {
        let change = |action: &mut Action| {
            action.status = status.clone();
            Ok(())
        };
        self.update(id, change).await.map(|_| ())
    }

    /// Sets or clears the recurrence of an action.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` when it is not whole seconds.
    pub async fn update_recurrence(&self, id: Uuid, recurrence: Option<Duration>) -> Result<(), ActionError> {
        let change = |action: &mut Action| {
            action.recurrence = recurrence;
            Ok(())
        };
        self.update(id, change).await.map(|_| ())
    }

    /// Changes an action, whoever else changes it at the same time: the change is made to what is there then.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` when a field is wrong afterwards, and what the change says.
    pub async fn update(
        &self,
        id: Uuid,
        change: impl Fn(&mut Action) -> Result<(), ActionError>,
    ) -> Result<Action, ActionError> {
        for _ in 0..MAX_TRIES {
            let mut stored = self.read(id).await?;
            change(&mut stored.action)?;
            stored.action.updated_at = timestamp(self.clock.now_ms());
            stored.action.check()?;
            if self.replace(&stored, RecordBatch::default()).await? {
                return Ok(stored.action);
            }
        }
        Err(busy(id))
    }

    /// Writes an action over the version that was read, with whatever else belongs into the commit. False when somebody
    /// else was first.
    pub(crate) async fn replace(
        &self,
        stored: &StoredAction,
        mut batch: RecordBatch,
    ) -> Result<bool, ActionError> {
        batch.writes.extend(self.replacement(stored)?);
        self.commit(batch).await
    }

    /// The writes that put an action in the place of the version that was read.
    fn replacement(&self, stored: &StoredAction) -> Result<Vec<RecordWrite>, ActionError> {
        let expect = Expect::Version(stored.version);
        stored.action.writes(&stored.scope, expect, self.keep_finished)
    }

    async fn commit(&self, batch: RecordBatch) -> Result<bool, ActionError> {
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an action, and tells whether there was one. Removing what is not there is fine.
    ///
    /// # Errors
    /// `store` when the store cannot do it.
    pub async fn delete(&self, id: Uuid) -> Result<bool, ActionError> {
        let id = record_id(&self.scope, id);
        let record = self.store.get_record(ACTION_KIND, &id).await?;
        let place = record.as_ref().and_then(place_of);
        let mut writes: Vec<RecordWrite> = [ACTION_KIND, ACTION_RUN_KIND, ACTION_RETIRE_KIND]
            .map(|kind| RecordWrite::Delete {
                kind: kind.to_owned(),
                id: id.clone(),
                expect: Expect::Anything,
            })
            .into();
        if let Some(place) = place {
            writes.extend([LISTING, RUNNING].map(|index| index.delete(&self.scope, place)));
        }
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        Ok(record.is_some())
    }

    /// Pending actions that are due at a time, in the order of their times: the first [`MAX_RANGE_DUE`] of them. Reads these and
    /// nothing else. Records that cannot be read are left out, and logged.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn range_due(&self, now: Timestamp) -> Result<Vec<Action>, ActionError> {
        let request = DueRecords {
            kind: ACTION_KIND,
            id_prefix: &self.scope.id_prefix(),
            now_ms: Some(due_floor_ms(now)),
            limit: MAX_RANGE_DUE,
            poll_timeout: Duration::ZERO,
        };
        Ok(self.readable(&self.store.due_records(request).await?))
    }

    /// When pending actions were due that were due by a time, in Unix milliseconds, the oldest first, at most so many. Reads these
    /// and nothing else.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn due(&self, by_ms: u64, limit: usize) -> Result<Vec<u64>, ActionError> {
        let request = DueRecords {
            kind: ACTION_KIND,
            id_prefix: &self.scope.id_prefix(),
            now_ms: Some(by_ms),
            limit,
            poll_timeout: Duration::ZERO,
        };
        let records = self.store.due_records(request).await?;
        Ok(records.iter().filter_map(|record| record.due_at_ms).collect())
    }

    /// Marks actions as failed that have been running for longer than this and are not to be resumed, and says how many.
    /// For the start of a program that runs actions itself: nobody looks after them any more. Those that recur are set up
    /// for their next time. What an instance runs is left alone: it may be on another node, and if it is lost, the engine
    /// knows and gives it up.
    ///
    /// # Errors
    /// `store` when the store cannot do it.
    pub async fn startup_recovery(&self, max_age: Duration) -> Result<u32, ActionError> {
        let now = timestamp(self.clock.now_ms());
        let oldest = timestamp(due_ms(now).saturating_sub(segno::clock::duration_ms(max_age)));
        let mut recovered = 0;
        for record in self.list(ACTION_RUN_KIND, &self.scope.id_prefix()).await? {
            let Some(found) = self.store.get_record(ACTION_KIND, &record.id).await? else { continue };
            // Nobody knows what runs of it; it can be listed and deleted.
            let Ok(stored) = decode(&found) else { continue };
            let action = &stored.action;
            let is_left_behind = action.status == ActionStatus::Running
                && action.instance.is_none()
                && action.on_restart == OnRestart::Fail
                && action.updated_at < oldest;
            let failed = ActionStatus::Failed { reason: RECOVERED.to_owned() };
            if is_left_behind && self.finish(stored, failed, now, RecordBatch::default()).await? {
                recovered += 1;
            }
        }
        Ok(recovered)
    }

    /// Cancels an action. One that waits has failed for this reason; one that runs is told to stop, and fails when it has.
    /// A recurrence ends with it.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when it has ended.
    pub async fn cancel(&self, id: Uuid, reason: &str) -> Result<Action, ActionError> {
        for _ in 0..MAX_TRIES {
            let mut stored = self.read(id).await?;
            let (action, mut batch) = (&mut stored.action, RecordBatch::default());
            match (&action.status, &action.instance) {
                (ActionStatus::Pending, _) | (ActionStatus::Running, None) => {
                    action.status = ActionStatus::Failed { reason: reason.to_owned() };
                }
                (ActionStatus::Running, Some(instance)) => {
                    batch.orchestrator_items.push(Client::cancel_message(instance, reason)?);
                }
                (status, _) => {
                    let problem = format!("action {id} is {} and cannot be cancelled", status.name());
                    return Err(ActionError::State { problem });
                }
            }
            action.recurrence = None;
            action.updated_at = timestamp(self.clock.now_ms());
            if self.replace(&stored, batch).await? {
                return Ok(stored.action);
            }
        }
        Err(busy(id))
    }

    /// Ends an action of the version that was read, in one commit with whatever else belongs to it. False when somebody else
    /// was first.
    pub(crate) async fn finish(
        &self,
        stored: StoredAction,
        status: ActionStatus,
        now: Timestamp,
        mut batch: RecordBatch,
    ) -> Result<bool, ActionError> {
        batch.writes.extend(self.final_writes(stored, status, now).await?);
        self.commit(batch).await
    }

    /// The writes that end an action of the version that was read and store its next run if it recurs.
    pub(crate) async fn final_writes(
        &self,
        mut stored: StoredAction,
        status: ActionStatus,
        now: Timestamp,
    ) -> Result<Vec<RecordWrite>, ActionError> {
        stored.action.status = status;
        stored.action.updated_at = now;
        let mut writes = self.replacement(&stored)?;
        if let Some(next) = stored.action.next_run(now) {
            let id = record_id(&stored.scope, next.id);
            // It is there already if somebody has set this action back to an earlier state.
            if self.store.get_record(ACTION_KIND, &id).await?.is_none() {
                writes.extend(next.next_insertion(&stored.scope)?);
            }
        }
        Ok(writes)
    }

    /// All actions, newest first. Records that cannot be read are left out, and logged; [`ActionDb::page`] shows them.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn list_all(&self) -> Result<Vec<Action>, ActionError> {
        let mut actions = self.readable(&self.list(ACTION_KIND, &self.scope.id_prefix()).await?);
        actions.sort_by_key(|action| std::cmp::Reverse((action.created_at, action.id)));
        Ok(actions)
    }

    /// A page of actions after a place, newest first. Reads those of the page and no others.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn page(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, Listed<Action>)>, ActionError> {
        let rows = LISTING.page(&*self.store, &self.scope, (after, limit), place_of).await?;
        Ok(rows
            .into_iter()
            .map(|(place, row)| (place, row.and_then(|record| self.listed(&record))))
            .collect())
    }

    /// A page of actions that run after a place, newest first. Reads those that run and no others.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn page_running(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, Listed<Action>)>, ActionError> {
        let rows = RUNNING.page(&*self.store, &self.scope, (after, limit), running_place_of).await?;
        Ok(rows
            .into_iter()
            .map(|(place, row)| (place, row.and_then(|record| self.listed(&record))))
            .collect())
    }

    /// The action with its version.
    pub(crate) async fn read(&self, id: Uuid) -> Result<StoredAction, ActionError> {
        match self.store.get_record(ACTION_KIND, &record_id(&self.scope, id)).await? {
            Some(record) => decode(&record),
            None => Err(ActionError::Unknown { what: "action", id: id.to_string() }),
        }
    }

    async fn list(&self, kind: &str, id_prefix: &str) -> Result<Vec<Record>, ActionError> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let after_id = records.last().map(|record| record.id.as_str());
            let page =
                self.store.list_records(ListRecords { kind, id_prefix, after_id, limit: PAGE }).await?;
            let is_last = page.len() < PAGE;
            records.extend(page);
            if is_last {
                return Ok(records);
            }
        }
    }

    /// A record of this scope as a row of a listing.
    fn listed(&self, record: &Record) -> Listed<Action> {
        let id = record.id.strip_prefix(&self.scope.id_prefix()).unwrap_or(&record.id);
        Listed::of(decode(record).map(|stored| stored.action), id)
    }

    /// The actions of records of this scope, without those that cannot be read.
    fn readable(&self, records: &[Record]) -> Vec<Action> {
        let read = records.iter().filter_map(|record| match self.listed(record) {
            Listed::Readable(action) => Some(action),
            Listed::Unreadable(row) => {
                tracing::error!(action = row.id, reason = row.reason, "a stored action cannot be read");
                None
            }
        });
        read.collect()
    }
}

/// A time as due records are asked for: what is due a fraction of a millisecond later is not due.
fn due_floor_ms(now: Timestamp) -> u64 {
    let ceiling_ms = due_ms(now);
    if timestamp(ceiling_ms) > now { ceiling_ms.saturating_sub(1) } else { ceiling_ms }
}

fn busy(id: Uuid) -> ActionError {
    ActionError::State { problem: format!("action {id} is changed by others all the time; try again") }
}
