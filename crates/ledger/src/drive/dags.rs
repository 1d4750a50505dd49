//! Publishing DAGs: the door for servers.

use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordWrite};
use segno_actions::functions::Scope;
use segno_actions::{Listed, Unreadable};

use super::definitions::{DagHead, DagVersion};
use super::error::LedgerError;
use super::ledger::Ledger;
use super::outbox::WaitingEvent;
use super::place::{HEADS, VERSIONS, version_folder, version_id};
use super::post::{Posting, post};
use super::runnable;
use crate::event::{PoolDefined, ScheduleDefinitionUpserted};
use crate::plan::{Parsed, parse};

/// Versions that are deleted in one commit.
const DELETED_AT_ONCE: usize = 500;

/// Missed ticks that a schedule makes up for.
const CATCH_UP_TICKS: u32 = 1;

/// DAGs of a store. Cheap to clone.
#[derive(Clone)]
pub struct Dags {
    pub(super) ledger: Ledger,
}

/// A DAG that was published.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedDag {
    /// Its head.
    pub head: DagHead,
    /// The version.
    pub version: DagVersion,
    /// Whether it is new; publishing the active version again changes nothing.
    pub is_new: bool,
    /// What the DAG says, with what its author probably did not intend.
    pub parsed: Parsed,
}

/// Whether a DAG starts runs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Automation {
    Paused,
    Active,
}

impl Dags {
    /// Publishes a version, which is active from then on. Runs that exist keep their plan.
    ///
    /// # Errors
    /// `invalid-dag` with all problems, `stored-data-unreadable`, `store`.
    pub async fn publish(
        &self,
        scope: &Scope,
        source: &[u8],
        by: Option<&str>,
    ) -> Result<PublishedDag, LedgerError> {
        let parsed = parse(source, self.ledger.definitions().zones())?;
        runnable::check(&parsed.dag)?;
        let source = String::from_utf8_lossy(source).into_owned();
        loop {
            let before = self.ledger.definitions().any_head(scope, &parsed.dag.name).await?;
            if let Some((head, _)) = before.as_ref().filter(|(head, _)| !head.deleted) {
                let version = self.version(scope, &head.name, Some(head.active_version)).await?;
                if version.source == source {
                    return Ok(PublishedDag { head: head.clone(), version, is_new: false, parsed });
                }
            }
            let now = self.ledger.now().await?;
            let former = before.as_ref().map(|(head, _)| head);
            let head = DagHead {
                name: parsed.dag.name.clone(),
                description: parsed.dag.description.clone(),
                active_version: former.map_or(1, |head| head.active_version.saturating_add(1)),
                paused: former.is_some_and(|head| head.paused && !head.deleted),
                deleted: false,
                created_at: former.filter(|head| !head.deleted).map_or(now, |head| head.created_at),
                updated_at: now,
                updated_by: by.map(str::to_owned),
            };
            let version = DagVersion {
                name: head.name.clone(),
                version: head.active_version,
                source: source.clone(),
                created_at: now,
                created_by: by.map(str::to_owned),
            };
            let expect = before.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
            let writes = vec![version.write(scope), head.write(scope, expect)];
            if self.commit(scope, writes, self.events(&parsed, &head)).await? {
                return Ok(PublishedDag { head, version, is_new: true, parsed });
            }
        }
    }

    /// What the ledger has to know of a DAG: its schedule and its pools.
    fn events(&self, parsed: &Parsed, head: &DagHead) -> Vec<WaitingEvent> {
        let request = format!("{}:{}:{}", head.name, head.active_version, head.updated_at);
        let pools = parsed.dag.pools.iter().map(|(pool, slots)| {
            let (pool, slots) = (pool.as_str().into(), *slots);
            let requested_by = head.updated_by.as_deref().unwrap_or("segno").into();
            PoolDefined { pool, slots, request_id: request.as_str().into(), requested_by }.into()
        });
        let schedule = schedule_of(parsed, head).map(|definition| WaitingEvent {
            // The content alone would make a return to an earlier definition a repetition.
            key: Some(format!("sched_def:{request}:{}", head.paused).into()),
            data: definition.into(),
        });
        pools.chain(schedule).collect()
    }

    /// DAGs after a name, by name. The last name of a page is the cursor of the next.
    ///
    /// # Errors
    /// `store`.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<DagHead>>, LedgerError> {
        let prefix = scope.id_prefix();
        let mut after = after.map(|name| format!("{prefix}{name}"));
        let mut found = Vec::new();
        loop {
            let wanted = limit - found.len();
            let request =
                ListRecords { kind: HEADS, id_prefix: &prefix, after_id: after.as_deref(), limit: wanted };
            let page = self.ledger.store().list_records(request).await?;
            let is_last = page.len() < wanted;
            after = page.last().map(|record| record.id.clone());
            let heads = page.iter().map(|record| listed(DagHead::read(record), record, &prefix));
            found.extend(heads.filter(|head| !matches!(head, Listed::Readable(head) if head.deleted)));
            if is_last || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    /// A DAG by name.
    ///
    /// # Errors
    /// `unknown-dag`, `stored-data-unreadable`, `store`.
    pub async fn head(&self, scope: &Scope, name: &str) -> Result<DagHead, LedgerError> {
        let head = self.ledger.definitions().head(scope, name).await?;
        Ok(head.ok_or_else(|| LedgerError::UnknownDag { name: name.to_owned(), version: None })?.0)
    }

    /// A version of a DAG; the active one if none is named.
    ///
    /// # Errors
    /// `unknown-dag`, `stored-data-unreadable`, `store`.
    pub async fn version(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<DagVersion, LedgerError> {
        self.ledger.definitions().version(scope, name, version).await
    }

    /// What a version says.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-dag` when this version of Segno cannot read it, `stored-data-unreadable`, `store`.
    pub async fn parsed(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<std::sync::Arc<Parsed>, LedgerError> {
        Ok(self.ledger.definitions().parsed(scope, name, version).await?.1)
    }

    /// Versions of a DAG after a version, oldest first.
    ///
    /// # Errors
    /// `unknown-dag`, `store`.
    pub async fn versions(
        &self,
        scope: &Scope,
        name: &str,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Listed<DagVersion>>, LedgerError> {
        self.head(scope, name).await?;
        let (prefix, after) =
            (version_folder(scope, name), after.map(|after| version_id(scope, name, after)));
        let request = ListRecords { kind: VERSIONS, id_prefix: &prefix, after_id: after.as_deref(), limit };
        let page = self.ledger.store().list_records(request).await?;
        Ok(page.iter().map(|record| listed(DagVersion::read(record), record, &prefix)).collect())
    }

    /// Deletes a DAG with its versions. Runs keep their plans; its schedule ends.
    ///
    /// # Errors
    /// `unknown-dag`, `store`.
    pub async fn delete(&self, scope: &Scope, name: &str, by: Option<&str>) -> Result<(), LedgerError> {
        self.change(scope, name, by, |head| {
            head.deleted = true;
            head.paused = true;
        })
        .await?;
        let prefix = version_folder(scope, name);
        loop {
            let request =
                ListRecords { kind: VERSIONS, id_prefix: &prefix, after_id: None, limit: DELETED_AT_ONCE };
            let page = self.ledger.store().list_records(request).await?;
            if page.is_empty() {
                return Ok(());
            }
            let delete = |record: Record| RecordWrite::Delete {
                kind: VERSIONS.to_owned(),
                id: record.id,
                expect: Expect::Anything,
            };
            self.commit(scope, page.into_iter().map(delete).collect(), Vec::new()).await?;
        }
    }

    /// Its schedule, its sensors and its backfills start no runs. Runs can be started by hand.
    ///
    /// # Errors
    /// `unknown-dag`, `stored-data-unreadable`, `store`.
    pub async fn pause(&self, scope: &Scope, name: &str, by: Option<&str>) -> Result<DagHead, LedgerError> {
        self.set(scope, name, by, Automation::Paused).await
    }

    /// Its schedule, its sensors and its backfills start runs again.
    ///
    /// # Errors
    /// `unknown-dag`, `stored-data-unreadable`, `store`.
    pub async fn resume(&self, scope: &Scope, name: &str, by: Option<&str>) -> Result<DagHead, LedgerError> {
        self.set(scope, name, by, Automation::Active).await
    }

    async fn set(
        &self,
        scope: &Scope,
        name: &str,
        by: Option<&str>,
        automation: Automation,
    ) -> Result<DagHead, LedgerError> {
        self.change(scope, name, by, |head| head.paused = automation == Automation::Paused).await
    }

    /// Changes a head, and tells the ledger what follows for its schedule.
    async fn change(
        &self,
        scope: &Scope,
        name: &str,
        by: Option<&str>,
        change: impl Fn(&mut DagHead),
    ) -> Result<DagHead, LedgerError> {
        let unknown = || LedgerError::UnknownDag { name: name.to_owned(), version: None };
        loop {
            let (mut head, version) =
                self.ledger.definitions().head(scope, name).await?.ok_or_else(unknown)?;
            let before = head.clone();
            change(&mut head);
            if head == before {
                return Ok(head);
            }
            head.updated_at = self.ledger.now().await?;
            head.updated_by = by.map(str::to_owned);
            // A version that cannot be read any more has no schedule to be changed.
            let parsed = self.ledger.definitions().parsed(scope, name, Some(head.active_version)).await.ok();
            let events = parsed.map(|(_, parsed)| self.events(&parsed, &head)).unwrap_or_default();
            let writes = vec![head.write(scope, Expect::Version(version))];
            if self.commit(scope, writes, events).await? {
                return Ok(head);
            }
        }
    }

    /// Commits writes with events. Returns whether all expectations held.
    async fn commit(
        &self,
        scope: &Scope,
        writes: Vec<RecordWrite>,
        events: Vec<WaitingEvent>,
    ) -> Result<bool, LedgerError> {
        let posting = Posting { key: format!("dag:{}", self.ledger.fresh()), events, writes };
        match post(self.ledger.store(), scope, posting).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The schedule of a DAG as the ledger knows it, under the name of the DAG.
fn schedule_of(parsed: &Parsed, head: &DagHead) -> Option<ScheduleDefinitionUpserted> {
    let spec = &parsed.dag.schedule.as_ref()?.spec;
    let cron = spec.cron_expr.clone()?;
    Some(ScheduleDefinitionUpserted {
        schedule_id: head.name.as_str().into(),
        cron_expression: cron.into(),
        timezone: spec.timezone.as_str().into(),
        catchup_window_minutes: 0,
        asset_selection: Vec::new(),
        code_version: Some(head.active_version.to_string().into()),
        max_catchup_ticks: CATCH_UP_TICKS,
        enabled: !head.paused,
    })
}

/// A row of a listing: what was read, or the id of a record that cannot be read.
fn listed<T, E: std::fmt::Display>(read: Result<T, E>, record: &Record, prefix: &str) -> Listed<T> {
    match read {
        Ok(value) => Listed::Readable(value),
        Err(error) => {
            let id = record.id.strip_prefix(prefix).unwrap_or(&record.id).to_owned();
            Listed::Unreadable(Unreadable { id, reason: error.to_string() })
        }
    }
}
