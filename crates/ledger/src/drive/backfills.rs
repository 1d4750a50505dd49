//! Backfills: a DAG runs for a range of partitions, so many at a time.

use std::sync::Arc;

use segno_actions::functions::Scope;
use serde_json::{Map, Value};

use super::error::LedgerError;
use super::ledger::Ledger;
use super::limits::{
    BACKFILL_RUNS, CHUNK_SIZE, MAX_BACKFILL_PARTITIONS, MAX_BACKFILL_RUNS, MAX_PAGE, MAX_RUN_TASKS,
};
use super::outbox::WaitingEvent;
use super::place::outbox_id;
use super::planning;
use super::post::{Posting, post};
use super::request::{Accepted, Request, Shown};
use crate::event::{BackfillCreated, BackfillStateChanged, PartitionSelector};
use crate::ids::Ulid;
use crate::snapshot::{Days, Filter};
use crate::tables::{BackfillChunkRow, BackfillRow, BackfillState, ChunkState};

/// Backfills of a store. Cheap to clone.
#[derive(Clone)]
pub struct Backfills {
    pub(super) ledger: Ledger,
}

/// A backfill that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewBackfill {
    /// The DAG.
    pub dag: String,
    /// The partitions: `FIRST..LAST` with both ends, one key, or `*` for all.
    pub partitions: String,
    /// Partitions of one run.
    pub chunk_size: u32,
    /// Runs at a time.
    pub max_concurrent_runs: u32,
    /// Parameters of its runs.
    pub params: Map<String, Value>,
    /// Who creates it.
    pub by: Option<String>,
    /// What makes the request itself again when it is repeated.
    pub request_id: Option<String>,
}

impl NewBackfill {
    /// A backfill with the defaults of everything else.
    pub fn new(dag: impl Into<String>, partitions: impl Into<String>) -> Self {
        NewBackfill {
            dag: dag.into(),
            partitions: partitions.into(),
            chunk_size: CHUNK_SIZE,
            max_concurrent_runs: BACKFILL_RUNS,
            params: Map::new(),
            by: None,
            request_id: None,
        }
    }
}

/// A backfill that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedBackfill {
    /// Its id.
    pub backfill_id: String,
    /// Its partitions.
    pub total_partitions: u32,
    /// Whether the tables show it. They do so a moment later otherwise.
    pub visible: bool,
}

/// A backfill with its chunks.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillDetail {
    /// The backfill.
    pub backfill: BackfillRow,
    /// The chunks that were planned, in order.
    pub chunks: Vec<BackfillChunkRow>,
}

impl Backfills {
    /// Creates a backfill.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run` when partitions, parameters or numbers cannot be used, and those of the store.
    pub async fn create(&self, scope: &Scope, new: NewBackfill) -> Result<CreatedBackfill, LedgerError> {
        let (version, parsed) = self.ledger.definitions().parsed(scope, &new.dag, None).await?;
        let set = parsed.run_partitions().ok_or_else(|| {
            let problem = format!("the DAG {:?} has no partitions; start a run of it instead", new.dag);
            LedgerError::invalid("partitions", problem)
        })?;
        let keys = match new.partitions.trim() {
            "*" => set.keys_until(self.ledger.now().await?),
            range => set.range(range),
        };
        let keys = keys.map_err(|error| LedgerError::invalid("partitions", error.problem().to_owned()))?;
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        check_count("partitions", total, MAX_BACKFILL_PARTITIONS)?;
        check_count("chunk_size", new.chunk_size, MAX_BACKFILL_PARTITIONS)?;
        check_count("max_concurrent_runs", new.max_concurrent_runs, MAX_BACKFILL_RUNS)?;
        check_run_size(parsed.dag.tasks.len(), new.chunk_size.min(total))?;
        // What is wrong with the parameters is an error now, and not one of every run.
        let partition = keys.first().map(String::as_str);
        planning::plan(&parsed, &new.params, partition)?;
        let created = BackfillCreated {
            backfill_id: "".into(),
            client_request_id: "".into(),
            asset_selection: Vec::new(),
            code_version: Some(version.to_string().into()),
            partition_selector: PartitionSelector::Explicit {
                keys: keys.into_iter().map(Arc::from).collect(),
            },
            total_partitions: total,
            chunk_size: new.chunk_size,
            max_concurrent_runs: new.max_concurrent_runs,
            parent_backfill_id: None,
            dag: Some(new.dag.into()),
            params: Some(Value::Object(new.params)),
        };
        self.begin(scope, created, new.request_id).await
    }

    /// Creates a backfill for the partitions of the chunks that have failed, with the active version of its DAG.
    ///
    /// # Errors
    /// `unknown-backfill`, `unknown-dag`, `run-request-refused` when it has not ended or none of its chunks has failed, and
    /// those of the store.
    pub async fn retry(&self, scope: &Scope, id: &str, by: Request) -> Result<CreatedBackfill, LedgerError> {
        let BackfillDetail { backfill, chunks } = self.show(scope, id).await?;
        let refused = |reason: &str| LedgerError::refused(format!("backfill {id:?}"), "retried", reason);
        if !backfill.state.is_final() {
            return Err(refused("it has not ended; wait for its end, or cancel it"));
        }
        let failed = chunks.iter().filter(|chunk| chunk.state == ChunkState::Failed);
        let keys: Vec<Arc<str>> = failed
            .flat_map(|chunk| {
                serde_json::from_str::<Vec<Arc<str>>>(&chunk.partition_keys).unwrap_or_default()
            })
            .collect();
        if keys.is_empty() {
            return Err(refused("none of its chunks has failed"));
        }
        let dag = backfill.dag.ok_or_else(|| refused("it is no backfill of a published DAG"))?;
        let (version, parsed) = self.ledger.definitions().parsed(scope, &dag, None).await?;
        let params = backfill.params.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let params: Map<String, Value> = params.unwrap_or_default();
        planning::plan(&parsed, &params, keys.first().map(AsRef::as_ref))?;
        let created = BackfillCreated {
            backfill_id: "".into(),
            client_request_id: "".into(),
            asset_selection: Vec::new(),
            code_version: Some(version.to_string().into()),
            total_partitions: u32::try_from(keys.len()).unwrap_or(u32::MAX),
            partition_selector: PartitionSelector::Explicit { keys },
            chunk_size: backfill.chunk_size,
            max_concurrent_runs: backfill.max_concurrent_runs,
            parent_backfill_id: Some(backfill.backfill_id),
            dag: Some(dag),
            params: Some(Value::Object(params)),
        };
        self.begin(scope, created, by.request_id).await
    }

    /// Posts a backfill without its id and the id of its request, and waits until it is visible.
    async fn begin(
        &self,
        scope: &Scope,
        mut created: BackfillCreated,
        request_id: Option<String>,
    ) -> Result<CreatedBackfill, LedgerError> {
        let backfill_id = match &request_id {
            Some(request) => format!("bf_{}", &crate::ids::fingerprint(request)[..26]),
            None => {
                let seed = u128::from(self.ledger.options().ids.new_seed());
                let id = Ulid::at(self.ledger.store().now_ms().await?, (seed << 16) ^ seed);
                format!("bf_{}", id.to_string().to_lowercase())
            }
        };
        let total = created.total_partitions;
        created.backfill_id = backfill_id.as_str().into();
        created.client_request_id = request_id.unwrap_or_else(|| self.ledger.fresh()).into();
        let event: WaitingEvent = created.into();
        let record = format!("backfill:{backfill_id}");
        let published = self.ledger.wait_published(outbox_id(scope, &record));
        let posting = Posting { key: record, events: vec![event], writes: Vec::new() };
        post(self.ledger.store(), scope, posting).await?;
        let visible = self.ledger.until_visible(scope, published, Shown::Backfill(&backfill_id)).await?;
        Ok(CreatedBackfill { visible, backfill_id, total_partitions: total })
    }

    /// Backfills after a place, newest first. A place is the time of creation in Unix milliseconds, and the id.
    ///
    /// # Errors
    /// `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<(i64, &str)>,
        limit: usize,
    ) -> Result<Vec<BackfillRow>, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else { return Ok(Vec::new()) };
        let mut rows = snapshot.rows::<BackfillRow>(&Filter { days: Days::None, key: Vec::new() }).await?;
        let place = |row: &BackfillRow| (row.created_at, Arc::clone(&row.backfill_id));
        rows.retain(|row| after.is_none_or(|after| (row.created_at, &*row.backfill_id) < after));
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(limit.clamp(1, MAX_PAGE));
        Ok(rows)
    }

    /// A backfill with its chunks.
    ///
    /// # Errors
    /// `unknown-backfill`, `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn show(&self, scope: &Scope, backfill_id: &str) -> Result<BackfillDetail, LedgerError> {
        let backfill = self.row(scope, backfill_id).await?;
        let Some(snapshot) = self.ledger.snapshot(scope).await? else {
            return Err(LedgerError::UnknownBackfill(backfill_id.to_owned()));
        };
        let all = Filter { days: Days::None, key: Vec::new() };
        let chunks = snapshot.rows::<BackfillChunkRow>(&all).await?;
        let mut chunks: Vec<BackfillChunkRow> =
            chunks.into_iter().filter(|chunk| *chunk.backfill_id == *backfill_id).collect();
        chunks.sort_by_key(|chunk| chunk.chunk_index);
        Ok(BackfillDetail { backfill, chunks })
    }

    /// Keeps a backfill from starting further runs.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it does not run, and those of the store.
    pub async fn pause(&self, scope: &Scope, id: &str, by: Request) -> Result<Accepted, LedgerError> {
        self.change(scope, id, (BackfillState::Paused, "paused", &[BackfillState::Running]), by).await
    }

    /// Lets a backfill start runs again.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it is not paused, and those of the store.
    pub async fn resume(&self, scope: &Scope, id: &str, by: Request) -> Result<Accepted, LedgerError> {
        self.change(scope, id, (BackfillState::Running, "resumed", &[BackfillState::Paused]), by).await
    }

    /// Cancels a backfill with its runs.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it has ended, and those of the store.
    pub async fn cancel(&self, scope: &Scope, id: &str, by: Request) -> Result<Accepted, LedgerError> {
        let from = [BackfillState::Pending, BackfillState::Running, BackfillState::Paused];
        self.change(scope, id, (BackfillState::Cancelled, "cancelled", &from), by).await
    }

    async fn change(
        &self,
        scope: &Scope,
        id: &str,
        (to_state, verb, from): (BackfillState, &'static str, &[BackfillState]),
        by: Request,
    ) -> Result<Accepted, LedgerError> {
        let row = self.row(scope, id).await?;
        if row.state == to_state {
            return Ok(Accepted { visible: true });
        }
        if !from.contains(&row.state) {
            let reason = format!("it is {}", row.state.text().to_lowercase());
            return Err(LedgerError::refused(format!("backfill {id:?}"), verb, reason));
        }
        let event = BackfillStateChanged {
            backfill_id: row.backfill_id,
            from_state: row.state,
            to_state,
            state_version: row.state_version + 1,
            changed_by: Some(by.requester().into()),
        };
        self.ledger.request(scope, event).await
    }

    async fn row(&self, scope: &Scope, id: &str) -> Result<BackfillRow, LedgerError> {
        let unknown = || LedgerError::UnknownBackfill(id.to_owned());
        let snapshot = self.ledger.snapshot(scope).await?.ok_or_else(unknown)?;
        snapshot.row::<BackfillRow>(&[id.into()], Days::None).await?.ok_or_else(unknown)
    }
}

/// A chunk is one run, so its size is limited by that of a run.
fn check_run_size(tasks: usize, partitions: u32) -> Result<(), LedgerError> {
    let largest = MAX_RUN_TASKS / tasks.max(1);
    if partitions as usize <= largest {
        return Ok(());
    }
    let problem = format!(
        "a run of {partitions} partitions with {tasks} tasks each would have more than {MAX_RUN_TASKS} tasks; use 1 to {largest}"
    );
    Err(LedgerError::invalid("chunk_size", problem))
}

fn check_count(field: &'static str, count: u32, limit: u32) -> Result<(), LedgerError> {
    if (1..=limit).contains(&count) {
        return Ok(());
    }
    Err(LedgerError::invalid(field, format!("it is {count}; use 1 to {limit}")))
}
