//! Publishing runbooks: the door for servers, over a store and scoped by
//! namespace and tenant. Batches are in `batches.rs`,
//! reading is in `reading.rs`, the switch of the data source's query in `query/control.rs`.

use std::sync::Arc;

use jiff::Timestamp;
use segno::store::{ErrorKind, Expect, ListRecords, Record, Store};
use segno_actions::functions::Scope;
use segno_actions::schedule::Zones;
use segno_actions::{Listed, Unreadable};

use super::counter;
use super::definitions::Definitions;
use super::error::RunbookError;
use super::holder::publish_request;
use super::place::{BATCH_INDEX, BatchPlace, HEADS, RUNBOOKS, head_id, index_folder, version_id};
use super::post::{self, timestamp};
use super::published::{BatchSummary, RunbookHead, RunbookRow};
use super::reading::numbered;
use super::transition::Transition;
use super::unpublish::version_counter;
use crate::definition::Definition;
use crate::message::OverdueBehavior;
use crate::problem::Problems;
use crate::rows::RunbookId;
use crate::yaml::Parsed;

/// Entries of the index that are read at once.
pub(super) const PAGE: usize = 500;

/// Runbooks and batches of a store. Cheap to clone.
#[derive(Clone)]
pub struct Runbooks {
    pub(super) store: Arc<dyn Store>,
    pub(super) definitions: Definitions,
}

/// How a version is published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// What happens to overdue phases of batches that move to the version.
    pub overdue_behavior: OverdueBehavior,
    /// Whether init steps run again in batches that move to the version.
    pub rerun_init: bool,
    /// Who publishes it.
    pub by: Option<String>,
}

/// Something stored, with the version of its record.
pub(super) struct Stored<T> {
    pub(super) value: T,
    pub(super) version: u64,
}

/// What a new version replaces.
struct Before {
    head: Option<Stored<RunbookHead>>,
    active: Option<Stored<RunbookRow>>,
}

/// A version that was published.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The version.
    pub row: RunbookRow,
    /// Whether it is new; publishing the active version again changes nothing.
    pub is_new: bool,
    /// What the author probably did not intend.
    pub warnings: Problems,
    /// What that does to open batches.
    pub transition: Transition,
}

/// What publishing a version would do.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishPlan {
    /// Name of the runbook.
    pub name: String,
    /// The version that it would have.
    pub version: u32,
    /// Whether it would be new; publishing the active version again changes nothing.
    pub is_new: bool,
    /// What the author probably did not intend.
    pub warnings: Problems,
    /// What it would do to open batches.
    pub transition: Transition,
}

impl Runbooks {
    /// The runbooks of a store. Blackouts are read with these time zones.
    pub fn new(store: Arc<dyn Store>, zones: Arc<Zones>) -> Self {
        Runbooks { definitions: Definitions::new(Arc::clone(&store), zones), store }
    }

    /// Published runbooks, for a driver on the same node.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Publishes a version, which is active from then on. Batches with a start time move to it.
    ///
    /// # Errors
    /// `invalid-runbook` with all problems, `store`.
    pub async fn publish(
        &self,
        scope: &Scope,
        yaml: &[u8],
        options: PublishOptions,
    ) -> Result<Published, RunbookError> {
        let parsed = crate::yaml::parse(yaml, self.definitions.zones())?;
        self.publish_parsed(scope, yaml, parsed, options).await
    }

    /// The same, of a text that was parsed with the [time zones](Definitions::zones) of these
    /// runbooks: parsing a large one takes a while, and servers do it elsewhere.
    ///
    /// # Errors
    /// `store`.
    pub async fn publish_parsed(
        &self,
        scope: &Scope,
        yaml: &[u8],
        parsed: Parsed,
        options: PublishOptions,
    ) -> Result<Published, RunbookError> {
        let yaml_content = String::from_utf8_lossy(yaml).into_owned();
        let (definition, warnings) = (Arc::new(parsed.definition), parsed.warnings);
        let mut id = None;
        loop {
            let before = self.find_before(scope, &definition.name).await?;
            let active = before.active.as_ref().map(|active| &active.value);
            if let Some(row) = active.filter(|row| is_same(row, &yaml_content, &options)) {
                let (row, transition) = (row.clone(), Transition::default());
                return Ok(Published { row, is_new: false, warnings, transition });
            }
            let id = match id {
                Some(id) => id,
                None => {
                    *id.insert(RunbookId(counter::reserve(&*self.store, scope, RUNBOOKS, 1).await?.start))
                }
            };
            let now = timestamp(self.store.now_ms().await?);
            let version = self.next_version(scope, &definition.name, active).await?;
            let row = row_of(&definition, &yaml_content, &options, (id, version, now));
            let head = head_of(&definition, &row, &before);
            let transition = match &before.head {
                Some(_) => self.transition(scope, &definition, &head).await?,
                None => Transition::default(),
            };
            if self.activate(scope, &row, &head, before).await? {
                self.tell_batches(scope, &head).await?;
                return Ok(Published { row, is_new: true, warnings, transition });
            }
        }
    }

    /// What publishing a text would do. Nothing is changed.
    ///
    /// # Errors
    /// `stored-data-unreadable`, `store`.
    pub async fn plan_publishing(
        &self,
        scope: &Scope,
        yaml: &[u8],
        parsed: Parsed,
        options: &PublishOptions,
    ) -> Result<PublishPlan, RunbookError> {
        let yaml_content = String::from_utf8_lossy(yaml).into_owned();
        let (definition, warnings) = (Arc::new(parsed.definition), parsed.warnings);
        let before = self.find_before(scope, &definition.name).await?;
        let name = definition.name.clone();
        let active = before.active.as_ref().map(|active| &active.value);
        if let Some(row) = active.filter(|row| is_same(row, &yaml_content, options)) {
            let (version, transition) = (row.version, Transition::default());
            return Ok(PublishPlan { name, version, is_new: false, warnings, transition });
        }
        let version = self.next_version(scope, &name, active).await?;
        let now = self.now().await?;
        let row = row_of(&definition, &yaml_content, options, (RunbookId(0), version, now));
        let head = head_of(&definition, &row, &before);
        let transition = match &before.head {
            Some(_) => self.transition(scope, &definition, &head).await?,
            None => Transition::default(),
        };
        Ok(PublishPlan { name, version, is_new: true, warnings, transition })
    }

    /// The version after the active one. A runbook that was deleted goes on counting.
    async fn next_version(
        &self,
        scope: &Scope,
        name: &str,
        active: Option<&RunbookRow>,
    ) -> Result<u32, RunbookError> {
        if let Some(row) = active {
            return Ok(row.version.saturating_add(1));
        }
        let next = counter::next(&*self.store, scope, &version_counter(name)).await?;
        Ok(u32::try_from(next).unwrap_or(u32::MAX))
    }

    /// Commits a version and makes it the active one. Returns whether no other version was first.
    async fn activate(
        &self,
        scope: &Scope,
        row: &RunbookRow,
        head: &RunbookHead,
        before: Before,
    ) -> Result<bool, RunbookError> {
        let expect = before.head.as_ref().map_or(Expect::Absent, |head| Expect::Version(head.version));
        let mut writes = vec![row.write(scope, Expect::Absent), head.write(scope, expect)];
        if let Some(Stored { value: mut row, version }) = before.active {
            row.is_active = false;
            writes.push(row.write(scope, Expect::Version(version)));
        }
        self.commit(writes).await
    }

    /// Tells open batches of a runbook of its active version. One that is not reached finds out
    /// when it is looked after next.
    async fn tell_batches(&self, scope: &Scope, head: &RunbookHead) -> Result<(), RunbookError> {
        let folder = index_folder(scope, &head.name);
        let mut after: Option<String> = None;
        loop {
            let request = ListRecords {
                kind: BATCH_INDEX,
                id_prefix: &folder,
                after_id: after.as_deref(),
                limit: PAGE,
            };
            let page = self.store.list_records(request).await?;
            let open = page.iter().filter_map(|record| BatchSummary::read(record).ok());
            for batch in open.filter(|batch| !batch.status.is_terminal() && batch.batch_start_time.is_some())
            {
                let place = BatchPlace::new(scope.clone(), batch.batch_id);
                post::post(&*self.store, &place, &[publish_request(head)]).await?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
            after = page.last().map(|record| record.id.clone());
        }
    }

    /// Runbooks after a name, by name. The last name of a page is the cursor of the next.
    ///
    /// # Errors
    /// `store`.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<RunbookHead>>, RunbookError> {
        let (prefix, after) = (scope.id_prefix(), after.map(|name| head_id(scope, name)));
        let request = ListRecords { kind: HEADS, id_prefix: &prefix, after_id: after.as_deref(), limit };
        let page = self.store.list_records(request).await?;
        Ok(page.iter().map(|record| listed(RunbookHead::read(record), record, &prefix)).collect())
    }

    /// A runbook by name.
    ///
    /// # Errors
    /// `unknown-runbook`, `stored-data-unreadable`, `store`.
    pub async fn head(&self, scope: &Scope, name: &str) -> Result<RunbookHead, RunbookError> {
        let head = self.find_head(scope, name).await?;
        Ok(head.ok_or_else(|| unknown(name, None))?.value)
    }

    /// A version of a runbook; the active one if none is named.
    ///
    /// # Errors
    /// `unknown-runbook`, `stored-data-unreadable`, `store`.
    pub async fn version(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<RunbookRow, RunbookError> {
        let version = match version {
            Some(version) => version,
            None => self.head(scope, name).await?.active_version,
        };
        Ok(self.find_version(scope, name, version).await?.value)
    }

    /// Versions of a runbook after a version, oldest first.
    ///
    /// # Errors
    /// `unknown-runbook`, `store`.
    pub async fn versions(
        &self,
        scope: &Scope,
        name: &str,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Listed<RunbookRow>>, RunbookError> {
        let unread_head = match self.head(scope, name).await {
            Ok(_) => None,
            // A head on a damaged block hides no version.
            Err(error) if error.kind() == ErrorKind::Corrupt => Some(error),
            Err(error) => return Err(error),
        };
        let (prefix, after) = (index_folder(scope, name), after.map(|after| version_id(scope, name, after)));
        let request = ListRecords { kind: RUNBOOKS, id_prefix: &prefix, after_id: after.as_deref(), limit };
        let page = self.store.list_records(request).await?;
        if let Some(error) = unread_head.filter(|_| page.is_empty()) {
            return Err(error);
        }
        Ok(page.iter().map(|record| numbered(listed(RunbookRow::read(record), record, &prefix))).collect())
    }

    /// The active version of a runbook, if it was published before.
    async fn find_before(&self, scope: &Scope, name: &str) -> Result<Before, RunbookError> {
        let head = self.find_head(scope, name).await?;
        let active = match &head {
            Some(head) => Some(self.find_version(scope, name, head.value.active_version).await?),
            None => None,
        };
        Ok(Before { head, active })
    }

    pub(super) async fn find_head(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<Stored<RunbookHead>>, RunbookError> {
        let Some(record) = self.store.get_record(HEADS, &head_id(scope, name)).await? else {
            return Ok(None);
        };
        let head = RunbookHead::read(&record).map_err(|error| unreadable(HEADS, &record, &error))?;
        Ok(Some(Stored { value: head, version: record.version }))
    }

    pub(super) async fn find_version(
        &self,
        scope: &Scope,
        name: &str,
        version: u32,
    ) -> Result<Stored<RunbookRow>, RunbookError> {
        let record = self.store.get_record(RUNBOOKS, &version_id(scope, name, version)).await?;
        let record = record.ok_or_else(|| unknown(name, Some(version)))?;
        let row = RunbookRow::read(&record).map_err(|error| unreadable(RUNBOOKS, &record, &error))?;
        Ok(Stored { value: row, version: record.version })
    }

    /// Commits writes. Returns whether all expectations held.
    pub(super) async fn commit(&self, writes: Vec<segno::store::RecordWrite>) -> Result<bool, RunbookError> {
        let batch = segno::store::RecordBatch { writes, ..Default::default() };
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Now, by the store's clock.
    pub(super) async fn now(&self) -> Result<Timestamp, RunbookError> {
        Ok(timestamp(self.store.now_ms().await?))
    }
}

/// A version as it is published.
fn row_of(
    definition: &Definition,
    yaml_content: &str,
    options: &PublishOptions,
    (id, version, created_at): (RunbookId, u32, Timestamp),
) -> RunbookRow {
    RunbookRow {
        id,
        name: definition.name.clone(),
        version,
        yaml_content: yaml_content.to_owned(),
        data_table_name: RunbookRow::table_name(&definition.name, version),
        is_active: true,
        overdue_behavior: options.overdue_behavior,
        ignore_overdue_applied: false,
        rerun_init: options.rerun_init,
        created_at,
        created_by: options.by.clone(),
    }
}

/// The head of a runbook whose active version is this row.
fn head_of(definition: &Definition, row: &RunbookRow, before: &Before) -> RunbookHead {
    let head = before.head.as_ref().map(|head| &head.value);
    RunbookHead {
        name: row.name.clone(),
        description: definition.description.clone(),
        active_version: row.version,
        runbook_id: row.id,
        overdue_behavior: row.overdue_behavior,
        rerun_init: row.rerun_init,
        is_automation_enabled: head.is_some_and(|head| head.is_automation_enabled),
        created_at: head.map_or(row.created_at, |head| head.created_at),
        updated_at: row.created_at,
    }
}

fn is_same(row: &RunbookRow, yaml: &str, options: &PublishOptions) -> bool {
    row.yaml_content == yaml
        && row.overdue_behavior == options.overdue_behavior
        && row.rerun_init == options.rerun_init
}

pub(super) fn unknown(name: &str, version: Option<u32>) -> RunbookError {
    RunbookError::UnknownRunbook { name: name.to_owned(), version }
}

pub(super) fn unreadable(kind: &str, record: &Record, error: &serde_json::Error) -> RunbookError {
    RunbookError::Unreadable { what: format!("record {} of {kind}", record.id), reason: error.to_string() }
}

/// A row of a listing: what was read, or the id of a record that cannot be read.
pub(super) fn listed<T, E: std::fmt::Display>(
    read: Result<T, E>,
    record: &Record,
    prefix: &str,
) -> Listed<T> {
    match read {
        Ok(value) => Listed::Readable(value),
        Err(error) => {
            let id = record.id.strip_prefix(prefix).unwrap_or(&record.id).to_owned();
            Listed::Unreadable(Unreadable { id, reason: error.to_string() })
        }
    }
}
