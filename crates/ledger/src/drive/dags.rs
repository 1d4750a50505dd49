//! Publishing DAGs: the door for servers.

use std::collections::HashSet;

use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordWrite};
use segno_actions::functions::Scope;
use segno_actions::schedule::ScheduleSpec;
use segno_actions::{Listed, Unreadable};

use super::definitions::{DagHead, DagVersion};
use super::error::LedgerError;
use super::freshness::WatchedAsset;
use super::ledger::{Ledger, timestamp};
use super::outbox::WaitingEvent;
use super::place::{FRESHNESS, HEADS, SENSORS, VERSIONS, sensor_folder, version_folder, version_id};
use super::post::{Posting, post};
use super::sensor::SensorRow;
use crate::event::{PoolDefined, ScheduleDefinitionUpserted};
use crate::fold::{NO_LIMIT, backfills_pool, runs_pool};
use crate::plan::Parsed;
use crate::plan::definition::Sensor;
use crate::plan::limits::MAX_SENSORS;
use crate::snapshot::Days;
use crate::tables::SensorStateRow;

/// Versions that are deleted in one commit.
const DELETED_AT_ONCE: usize = 500;

/// Most records of sensors or assets of a DAG that are read at once.
const MAX_WATCHED: usize = 1_000;

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

/// A sensor of a DAG, and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSensor {
    /// The sensor.
    pub sensor: SensorRow,
    /// What its evaluations have come to; nothing before the first.
    pub state: Option<SensorStateRow>,
    /// When it is polled next; never while its DAG is paused.
    pub next_poll_at: Option<jiff::Timestamp>,
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
    /// `invalid-dag` with all problems, `unavailable`, `stored-data-unreadable`, `store`.
    pub async fn publish(
        &self,
        scope: &Scope,
        source: &[u8],
        by: Option<&str>,
    ) -> Result<PublishedDag, LedgerError> {
        let parsed = self.ledger.definitions().parse(scope, source).await?;
        self.publish_parsed(scope, source, parsed, by).await
    }

    /// The same, of a document that was parsed with the time zones of this ledger.
    ///
    /// # Errors
    /// `stored-data-unreadable`, `store`.
    pub async fn publish_parsed(
        &self,
        scope: &Scope,
        source: &[u8],
        parsed: Parsed,
        by: Option<&str>,
    ) -> Result<PublishedDag, LedgerError> {
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
            let expect = before.as_ref().map_or(Expect::Absent, |(_, version)| Expect::Version(*version));
            let mut writes = vec![version.write(scope), head.write(scope, expect)];
            writes.extend(self.sensors(scope, &head, Some(&parsed)).await?);
            let mut events = self.events(&parsed, &head);
            events.extend(limits(&parsed, &head, former));
            if self.commit(scope, writes, events).await? {
                return Ok(PublishedDag { head, version, is_new: true, parsed });
            }
        }
    }

    /// What the ledger has to know of a DAG: its schedule and its pools.
    fn events(&self, parsed: &Parsed, head: &DagHead) -> Vec<WaitingEvent> {
        let request = request_of(head);
        let pools = parsed.dag.pools.iter().map(|(name, slots)| pool(head, name.clone(), *slots));
        // A first version without a schedule has none to end.
        let has_schedule = parsed.dag.schedule.is_some() || head.active_version > 1;
        let schedule = has_schedule.then(|| WaitingEvent {
            // The content alone would make a return to an earlier definition a repetition.
            key: Some(format!("sched_def:{request}:{}", head.paused).into()),
            data: schedule_of(parsed, head).into(),
        });
        pools.chain(schedule).collect()
    }

    /// The records of the sensors of a DAG after a change of it: those of its version are armed unless it is paused, and the
    /// others are removed. The head is part of the commit, so that of two changes one is made again.
    async fn sensors(
        &self,
        scope: &Scope,
        head: &DagHead,
        parsed: Option<&Parsed>,
    ) -> Result<Vec<RecordWrite>, LedgerError> {
        let wanted: &[Sensor] = match parsed {
            _ if head.deleted => &[],
            Some(parsed) => &parsed.dag.sensors,
            // A version that cannot be read leaves them as they are.
            None => return Ok(Vec::new()),
        };
        let now_ms = self.ledger.store().now_ms().await?;
        let folder = sensor_folder(scope, &head.name);
        let request = ListRecords { kind: SENSORS, id_prefix: &folder, after_id: None, limit: MAX_WATCHED };
        let stored = self.ledger.store().list_records(request).await?;
        let mut writes: Vec<RecordWrite> = wanted
            .iter()
            .map(|sensor| {
                let due_at_ms = (!head.paused).then_some(now_ms);
                SensorRow::new(&head.name, sensor).write(scope, Expect::Anything, due_at_ms)
            })
            .collect();
        let is_kept = |record: &Record| {
            let name = record.id.strip_prefix(&folder);
            wanted.iter().any(|sensor| Some(sensor.name.as_str()) == name)
        };
        writes.extend(stored.into_iter().filter(|record| !is_kept(record)).map(|record| {
            RecordWrite::Delete { kind: SENSORS.to_owned(), id: record.id, expect: Expect::Anything }
        }));
        writes.extend(self.watched(scope, head, parsed, now_ms).await?);
        Ok(writes)
    }

    /// The same for the assets whose freshness is watched. One that was told as stale is not told again.
    async fn watched(
        &self,
        scope: &Scope,
        head: &DagHead,
        parsed: Option<&Parsed>,
        now_ms: u64,
    ) -> Result<Vec<RecordWrite>, LedgerError> {
        let assets = parsed.filter(|_| !head.deleted).map(|parsed| WatchedAsset::of(parsed, now_ms));
        let assets = assets.unwrap_or_default();
        let folder = version_folder(scope, &head.name);
        let request = ListRecords { kind: FRESHNESS, id_prefix: &folder, after_id: None, limit: MAX_WATCHED };
        let stored = self.ledger.store().list_records(request).await?;
        let kept: HashSet<String> = assets.iter().map(|asset| asset.id(scope)).collect();
        let gone = stored.into_iter().filter(|record| !kept.contains(&record.id));
        let mut writes: Vec<RecordWrite> = gone
            .map(|record| RecordWrite::Delete {
                kind: FRESHNESS.to_owned(),
                id: record.id,
                expect: Expect::Anything,
            })
            .collect();
        writes.extend(assets.iter().map(|asset| {
            let due_at_ms = (!head.paused).then(|| asset.stale_ms(None));
            asset.write(scope, Expect::Anything, due_at_ms)
        }));
        Ok(writes)
    }

    /// The sensors of a DAG by name, with the time at which each is polled next; none for one that is paused.
    ///
    /// # Errors
    /// `unknown-dag`, `ledger-unavailable`, `stored-data-unreadable`, `store`.
    pub async fn list_sensors(&self, scope: &Scope, name: &str) -> Result<Vec<ListedSensor>, LedgerError> {
        self.head(scope, name).await?;
        let folder = sensor_folder(scope, name);
        let request = ListRecords { kind: SENSORS, id_prefix: &folder, after_id: None, limit: MAX_SENSORS };
        let records = self.ledger.store().list_records(request).await?;
        let snapshot = self.ledger.snapshot(scope).await?;
        let mut found = Vec::new();
        for record in records {
            let sensor = SensorRow::read(&record)
                .map_err(|error| LedgerError::unreadable(SENSORS, &record.id, &error))?;
            let state = match &snapshot {
                Some(snapshot) => snapshot.row(&[sensor.sensor_id()], Days::None).await?,
                None => None,
            };
            found.push(ListedSensor { sensor, state, next_poll_at: record.due_at_ms.map(timestamp) });
        }
        Ok(found)
    }

    /// Sensors of all DAGs by DAG and name, and whether these are all. Those that cannot be read are left out.
    ///
    /// # Errors
    /// `store`.
    pub async fn sensors_of_all(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> Result<(Vec<SensorRow>, bool), LedgerError> {
        let prefix = scope.id_prefix();
        let request = ListRecords { kind: SENSORS, id_prefix: &prefix, after_id: None, limit };
        let records = self.ledger.store().list_records(request).await?;
        let is_complete = records.len() < limit;
        Ok((records.iter().filter_map(|record| SensorRow::read(record).ok()).collect(), is_complete))
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
            let mut writes = vec![head.write(scope, Expect::Version(version))];
            let version = parsed.as_ref().map(|(_, parsed)| &**parsed);
            writes.extend(self.sensors(scope, &head, version).await?);
            let mut events = parsed.map(|(_, parsed)| self.events(&parsed, &head)).unwrap_or_default();
            events.extend(backfills_of(&head, Some(&before)));
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

/// What makes a change of a DAG one of its own.
fn request_of(head: &DagHead) -> String {
    format!("{}:{}:{}", head.name, head.active_version, head.updated_at)
}

/// A pool has so many slots from a change of a DAG on.
fn pool(head: &DagHead, pool: String, slots: u32) -> WaitingEvent {
    let requested_by = head.updated_by.as_deref().unwrap_or("segno").into();
    let request_id = format!("{}:{slots}", request_of(head)).into();
    PoolDefined { pool: pool.into(), slots, request_id, requested_by }.into()
}

/// How many runs of a DAG may be under way at a time, and whether its backfills may start some. A first version without a
/// limit needs no event.
fn limits(parsed: &Parsed, head: &DagHead, former: Option<&DagHead>) -> Vec<WaitingEvent> {
    let slots = parsed.dag.max_concurrent_runs;
    let runs = (slots.is_some() || former.is_some())
        .then(|| pool(head, runs_pool(&head.name), slots.unwrap_or(NO_LIMIT)));
    runs.into_iter().chain(backfills_of(head, former)).collect()
}

/// Whether backfills of a DAG may start runs, if that has changed.
fn backfills_of(head: &DagHead, former: Option<&DagHead>) -> Option<WaitingEvent> {
    let slots = if head.paused { 0 } else { NO_LIMIT };
    former
        .is_some_and(|former| former.paused != head.paused)
        .then(|| pool(head, backfills_pool(&head.name), slots))
}

/// The schedule of a DAG as the ledger knows it, under the name of the DAG.
/// A DAG without a schedule has one without times.
fn schedule_of(parsed: &Parsed, head: &DagHead) -> ScheduleDefinitionUpserted {
    let schedule = parsed.dag.schedule.as_ref().filter(|_| !head.deleted);
    let spec = schedule.map(|schedule| schedule.spec.clone()).unwrap_or_default();
    let cron = spec.cron_expr.clone().unwrap_or_default();
    let is_plain = !cron.is_empty() && spec == ScheduleSpec::cron(&*cron).timezone(&*spec.timezone);
    ScheduleDefinitionUpserted {
        schedule_id: head.name.as_str().into(),
        cron_expression: cron.into(),
        timezone: spec.timezone.as_str().into(),
        catchup_window_minutes: 0,
        asset_selection: Vec::new(),
        code_version: Some(head.active_version.to_string().into()),
        max_catchup_ticks: CATCH_UP_TICKS,
        enabled: !head.paused,
        spec: (!is_plain).then_some(spec),
    }
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
