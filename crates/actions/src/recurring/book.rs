//! [`RecurringActions`]: creating, finding and changing recurring actions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::Client;
use segno::clock::{Clock, SystemClock};
use segno::ids::{IdSource, SystemIds};
use segno::store::{DueRecords, ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};

use super::dispatch::Dispatcher;
use super::ending::ALL_EXCLUDED;
use super::history::HistoryEntry;
use super::model::{Progress, RecurringAction, RecurringActionTemplate};
use super::named;
use super::pausing::Pause;
use super::policy::RecurringPolicy;
use super::record::{
    COUNT_KIND, LISTING, RECURRING_HISTORY_KIND, RECURRING_KIND, StoredRecurring, count_write, decode,
    decode_count, decode_history, history_id, history_prefix, history_time, place_of, record_id,
};
use crate::action::ActionError;
use crate::functions::{FunctionError, Functions, Scope};
use crate::listed::Listed;
use crate::listing::Place;
use crate::moment::timestamp;
use crate::options::ActionOptions;
use crate::schedule::{Schedule, ScheduleSpec, Zones};
use crate::telemetry::CurrentTrace;

/// How often a change is tried again when others change the same action. Each try that fails is a change that went ahead.
pub(super) const MAX_TRIES: usize = 1_000;

/// A recurring action that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecurringAction {
    /// Its id; a new one without it. An id makes it safe to try again.
    pub id: Option<uuid::Uuid>,
    /// What people call it.
    pub name: Option<String>,
    /// When.
    pub schedule: ScheduleSpec,
    /// What is called.
    pub action_template: RecurringActionTemplate,
    /// What happens when things do not go by the clock.
    pub policy: RecurringPolicy,
    /// What it is for.
    pub description: Option<String>,
    /// For finding and sorting.
    pub labels: BTreeMap<String, String>,
    /// Whether it fires from now on.
    pub enabled: bool,
}

impl NewRecurringAction {
    /// One with everything else as it is by default.
    pub fn new(schedule: ScheduleSpec, action_template: RecurringActionTemplate) -> Self {
        NewRecurringAction {
            id: None,
            name: None,
            schedule,
            action_template,
            policy: RecurringPolicy::default(),
            description: None,
            labels: BTreeMap::new(),
            enabled: true,
        }
    }
}

/// The recurring actions of a store. Cheap to clone.
#[derive(Clone)]
pub struct RecurringActions {
    pub(super) store: Arc<dyn Store>,
    pub(super) client: Client,
    pub(super) functions: Functions,
    pub(super) clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    pub(super) zones: Arc<Zones>,
    pub(super) options: ActionOptions,
    current_trace: Option<CurrentTrace>,
}

impl RecurringActions {
    /// Those of a store; they call these functions.
    pub fn new(store: Arc<dyn Store>, functions: Functions, zones: Arc<Zones>) -> Self {
        let client = Client::new(store.clone());
        let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
        let options = ActionOptions::default();
        RecurringActions { store, client, functions, clock, ids, zones, options, current_trace: None }
    }

    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another source of ids.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.client = Client::builder(self.store.clone()).ids(ids.clone()).build();
        self.ids = ids;
        self
    }

    /// Settings.
    #[must_use]
    pub fn options(mut self, options: ActionOptions) -> Self {
        self.options = options;
        self
    }

    /// What tells the W3C traceparent of the current span. Each call that is made begins a trace of its own then.
    #[must_use]
    pub fn current_trace(mut self, current: Option<CurrentTrace>) -> Self {
        self.current_trace = current;
        self
    }

    /// The zone database.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    pub(super) fn now(&self) -> Timestamp {
        timestamp(self.clock.now_ms())
    }

    pub(super) fn dispatcher(&self) -> Dispatcher<'_> {
        Dispatcher {
            store: &*self.store,
            client: &self.client,
            functions: &self.functions,
            options: &self.options,
            current_trace: self.current_trace,
        }
    }

    /// The schedule of an action.
    ///
    /// # Errors
    /// `invalid-action` with the field.
    pub fn schedule_of(&self, action: &RecurringAction) -> Result<Schedule, ActionError> {
        Ok(action.schedule.compile(&self.zones)?)
    }

    /// Stores a new recurring action.
    ///
    /// # Errors
    /// `invalid-action` with the field, errors of the function and its input, `too-many-recurring` at the limit.
    pub async fn create(
        &self,
        scope: &Scope,
        new: NewRecurringAction,
    ) -> Result<RecurringAction, ActionError> {
        let (now, is_enabled) = (self.now(), new.enabled);
        let mut action = self.drafted(scope, new, now);
        check_end(&action, now)?;
        let schedule = self.schedule_of(&action)?;
        action.check_free_texts(None)?;
        self.check(&action, &schedule, now).await?;
        action.arm(&schedule, now);
        if !action.enabled {
            return Err(never_fires(&action));
        }
        if !is_enabled {
            action.pause(Pause::default(), now);
        }
        self.insert(scope, &action).await?;
        tracing::info!(recurring_id = action.id, namespace = %scope.namespace, tenant = %scope.tenant, "recurring.create");
        Ok(action)
    }

    /// What a new recurring action is before it has a next time.
    fn drafted(&self, scope: &Scope, new: NewRecurringAction, now: Timestamp) -> RecurringAction {
        let id = new.id.unwrap_or_else(|| self.ids.new_uuid()).to_string();
        RecurringAction {
            id,
            namespace: scope.namespace.clone(),
            tenant: scope.tenant.clone(),
            name: new.name,
            schedule: new.schedule,
            enabled: true,
            action_template: new.action_template,
            policy: new.policy,
            created_at: now,
            updated_at: now,
            last_executed_at: None,
            next_execution_at: None,
            execution_count: 0,
            failure_count: 0,
            consecutive_failures: 0,
            last_error: None,
            last_execution_id: None,
            paused_at: None,
            pause_note: None,
            resumes_at: None,
            disabled_reason: None,
            description: new.description,
            labels: new.labels,
            progress: Progress { zones: self.zones.version().to_owned(), ..Progress::default() },
        }
    }

    /// The schedule of what could be made, refused for whatever its creation would refuse of it.
    ///
    /// # Errors
    /// `invalid-action` with the field, errors of the function and its input.
    pub async fn check_new(&self, scope: &Scope, new: NewRecurringAction) -> Result<Schedule, ActionError> {
        let now = self.now();
        let action = self.drafted(scope, new, now);
        let schedule = self.schedule_of(&action)?;
        action.check_free_texts(None)?;
        self.check(&action, &schedule, now).await?;
        Ok(schedule)
    }

    /// The same for one of which it is not said yet what it calls.
    ///
    /// # Errors
    /// `invalid-action` with the field.
    pub fn check_schedule(&self, scope: &Scope, new: NewRecurringAction) -> Result<Schedule, ActionError> {
        let action = self.drafted(scope, new, self.now());
        let schedule = self.schedule_of(&action)?;
        action.check_without_call(&schedule, &self.options)?;
        Ok(schedule)
    }

    async fn insert(&self, scope: &Scope, action: &RecurringAction) -> Result<(), ActionError> {
        let limit = self.options.max_recurring_per_tenant;
        for _ in 0..MAX_TRIES {
            let (count, expect) = self.count(scope).await?;
            if count >= limit {
                return Err(ActionError::TooMany { limit });
            }
            let mut writes = vec![action.write(Expect::Absent)?, count_write(scope, count + 1, expect)?];
            writes.extend(action.place().map(|place| LISTING.put(scope, place, None)));
            writes.extend(named::put(action));
            match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
            if self.store.get_record(RECURRING_KIND, &record_id(scope, &action.id)).await?.is_some() {
                return Err(ActionError::Exists { what: "a recurring action", id: action.id.clone() });
            }
        }
        Err(busy(&action.id))
    }

    /// How many there are, and what must be true for the number to be changed.
    async fn count(&self, scope: &Scope) -> Result<(u64, Expect), ActionError> {
        match self.store.get_record(COUNT_KIND, &scope.id_prefix()).await? {
            Some(record) => Ok((decode_count(&record)?, Expect::Version(record.version))),
            None => Ok((0, Expect::Absent)),
        }
    }

    /// One recurring action, by its id or its name. So it is for everything that takes an id here.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `ambiguous-name` when several have the name.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<RecurringAction, ActionError> {
        Ok(self.read(scope, id).await?.action)
    }

    pub(super) async fn read(&self, scope: &Scope, id: &str) -> Result<StoredRecurring, ActionError> {
        decode(&self.record(scope, id).await?)
    }

    /// The record of an action, by its id or else by its name.
    async fn record(&self, scope: &Scope, id_or_name: &str) -> Result<Record, ActionError> {
        // Ids are UUIDs: with anything else one could ask for other records.
        if let Ok(id) = id_or_name.parse::<uuid::Uuid>() {
            let found = self.store.get_record(RECURRING_KIND, &record_id(scope, &id.to_string())).await?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
        self.named(scope, id_or_name).await
    }

    /// A page of recurring actions after a place, newest first.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn page(
        &self,
        scope: &Scope,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, Listed<RecurringAction>)>, ActionError> {
        let (rows, prefix) =
            (LISTING.page(&*self.store, scope, (after, limit), place_of).await?, scope.id_prefix());
        let read = |record: Record| {
            let id = record.id.strip_prefix(&prefix).unwrap_or(&record.id);
            Listed::of(decode(&record).map(|stored| stored.action), id)
        };
        let listed = rows.into_iter().map(|(place, row)| (place, row.and_then(read)));
        Ok(listed.collect())
    }

    /// Recurring actions that were due by a time, in Unix milliseconds, each with when it was due, the oldest first, at most so
    /// many. Reads these and nothing else.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn due(
        &self,
        scope: &Scope,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<(Option<u64>, Listed<RecurringAction>)>, ActionError> {
        let prefix = scope.id_prefix();
        let request = DueRecords {
            kind: RECURRING_KIND,
            id_prefix: &prefix,
            now_ms: Some(by_ms),
            limit,
            poll_timeout: Duration::ZERO,
        };
        let read = |record: Record| {
            let id = record.id.strip_prefix(&prefix).unwrap_or(&record.id);
            let action = Listed::of(decode(&record).map(|stored| stored.action), id);
            (record.due_at_ms, action)
        };
        Ok(self.store.due_records(request).await?.into_iter().map(read).collect())
    }

    /// Removes a recurring action. What runs goes on; its history is kept as long as it would have been.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn delete(&self, scope: &Scope, id: &str) -> Result<(), ActionError> {
        for _ in 0..MAX_TRIES {
            // One that cannot be read can be deleted all the same.
            let record = self.record(scope, id).await?;
            let (count, expect) = self.count(scope).await?;
            let (place, listed) = (place_of(&record), decode(&record).ok());
            let delete = RecordWrite::Delete {
                kind: RECURRING_KIND.to_owned(),
                id: record.id,
                expect: Expect::Version(record.version),
            };
            let mut writes = vec![delete, count_write(scope, count.saturating_sub(1), expect)?];
            writes.extend(place.map(|place| LISTING.delete(scope, place)));
            writes.extend(listed.and_then(|stored| named::delete(&stored.action)));
            match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                Ok(_) => {
                    tracing::info!(recurring_id = id, "recurring.delete");
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy(id))
    }

    /// What became of its occurrences, newest first, before a time if one is given. An entry that
    /// cannot be read is named by its time.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn history(
        &self,
        scope: &Scope,
        id: &str,
        earlier_than: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<Listed<HistoryEntry>>, ActionError> {
        let id = self.read(scope, id).await?.action.id;
        let (prefix, after) =
            (history_prefix(scope, &id), earlier_than.map(|time| history_id(scope, &id, time)));
        let request = ListRecords {
            kind: RECURRING_HISTORY_KIND,
            id_prefix: &prefix,
            after_id: after.as_deref(),
            limit,
        };
        let records = self.store.list_records(request).await?;
        let time =
            |record: &Record| history_time(record).map_or_else(|| record.id.clone(), |time| time.to_string());
        Ok(records.iter().map(|record| Listed::of(decode_history(record), &time(record))).collect())
    }

    /// Checks an action and the call that it would make.
    pub(super) async fn check(
        &self,
        action: &RecurringAction,
        schedule: &Schedule,
        now: Timestamp,
    ) -> Result<(), ActionError> {
        action.check(schedule, &self.options)?;
        let dedup_key = action.dedup_key(now)?;
        match self.dispatcher().start_of(action, now, dedup_key.as_deref()).await {
            Err(ActionError::Function(error @ FunctionError::Unknown { .. })) => {
                Err(ActionError::invalid("provider", error.to_string()))
            }
            checked => {
                checked?.message().await?;
                Ok(())
            }
        }
    }
}

pub(super) fn check_end(action: &RecurringAction, now: Timestamp) -> Result<(), ActionError> {
    match action.schedule.ends_at {
        Some(end) if end <= now => {
            Err(ActionError::invalid("ends_at", "is in the past; choose a later time, or leave it out"))
        }
        _ => Ok(()),
    }
}

pub(super) fn never_fires(action: &RecurringAction) -> ActionError {
    let reason = action.disabled_reason.as_deref().unwrap_or_default();
    let field = match (&action.schedule.cron_expr, action.schedule.at) {
        _ if reason == ALL_EXCLUDED => "exclude",
        (_, Some(_)) => "at",
        (Some(_), _) => "cron_expr",
        _ => "every",
    };
    ActionError::invalid(field, format!("it would never fire again: {reason}; change the schedule"))
}

pub(super) fn busy(id: &str) -> ActionError {
    ActionError::State {
        problem: format!("recurring action {id} is changed by others all the time; try again"),
    }
}
