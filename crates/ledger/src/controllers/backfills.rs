//! `backfills`: chunks are planned while there is room for them; a backfill whose chunks have ended
//! ends; the runs of a cancelled one are cancelled.

use std::sync::Arc;

use super::action::Action;
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, STRICT_LAG_MS};
use super::schedules::run_id;
use crate::event::{
    BackfillChunkPlanned, BackfillStateChanged, PartitionSelector, RunCancelRequested, RunRequested,
    RunSource,
};
use crate::fold::{State, backfills_pool};
use crate::tables::{BackfillRow, BackfillState};

/// Who changed a state.
const CHANGED_BY: &str = "backfills";

/// The partitions that selectors mean.
pub trait Partitions: Send + Sync {
    /// So many keys of the backfill's partitions from a place on, in a fixed order; fewer if there
    /// are no more. The problem if the selector cannot be resolved.
    fn slice(&self, backfill: &BackfillRow, from: u32, count: u32) -> Result<Vec<Arc<str>>, String>;
}

/// Plans and ends backfills.
#[derive(Clone)]
pub struct Backfills {
    partitions: Arc<dyn Partitions>,
    tenant_secret: Arc<[u8]>,
}

impl Backfills {
    /// With the meaning of selectors, and the secret from which run ids are derived.
    pub fn new(partitions: Arc<dyn Partitions>, tenant_secret: impl Into<Arc<[u8]>>) -> Self {
        Backfills { partitions, tenant_secret: tenant_secret.into() }
    }
}

impl OrchestrationController for Backfills {
    fn name(&self) -> &'static str {
        "backfills"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(STRICT_LAG_MS)
    }

    fn reconcile(&self, state: &State, _: i64, _: Freshness) -> Vec<Action> {
        let mut actions = Vec::new();
        for row in state.open_backfills().filter(|row| row.state == BackfillState::Running) {
            self.advance(state, row, &mut actions);
            if actions.len() >= MAX_ACTIONS {
                return actions;
            }
        }
        for row in state.backfills_with_open_chunks().filter(|row| row.state == BackfillState::Cancelled) {
            actions.extend(cancel_runs(state, row));
        }
        actions
    }
}

impl Backfills {
    fn advance(&self, state: &State, row: &BackfillRow, actions: &mut Vec<Action>) {
        let open = state.open_chunks(&row.backfill_id).count() as u32;
        let total_chunks = row.total_partitions.div_ceil(row.chunk_size.max(1));
        let mut is_exhausted = row.planned_chunks >= total_chunks;
        let room = match is_dag_paused(state, row) {
            true => 0,
            false => row.max_concurrent_runs.saturating_sub(open),
        };
        let next = row.planned_chunks..total_chunks.min(row.planned_chunks.saturating_add(room));
        for chunk_index in next {
            match self.keys(row, chunk_index) {
                Ok(keys) if keys.is_empty() => {
                    is_exhausted = true;
                    break;
                }
                Ok(keys) => actions.push(self.plan_chunk(state, row, chunk_index, keys)),
                Err(problem) => {
                    let changed_by = format!("{CHANGED_BY}: {problem}");
                    actions.push(change(row, BackfillState::Failed, &changed_by));
                    return;
                }
            }
        }
        if is_exhausted && open == 0 {
            let is_good = row.failed_chunks == 0;
            let to_state = if is_good { BackfillState::Succeeded } else { BackfillState::Failed };
            actions.push(change(row, to_state, CHANGED_BY));
        }
    }

    /// The partitions of a chunk. Keys that were listed need nobody to resolve them.
    fn keys(&self, row: &BackfillRow, chunk_index: u32) -> Result<Vec<Arc<str>>, String> {
        let from = chunk_index.saturating_mul(row.chunk_size);
        let count = row.chunk_size.min(row.total_partitions.saturating_sub(from));
        match serde_json::from_str(&row.partition_selector) {
            Ok(PartitionSelector::Explicit { keys }) => {
                Ok(keys.into_iter().skip(from as usize).take(count as usize).collect())
            }
            Ok(_) => self.partitions.slice(row, from, count),
            Err(error) => Err(format!("the selector cannot be read: {error}")),
        }
    }

    fn plan_chunk(&self, state: &State, row: &BackfillRow, chunk_index: u32, keys: Vec<Arc<str>>) -> Action {
        let chunk_id: Arc<str> = format!("{}:{chunk_index}", row.backfill_id).into();
        let run_key: Arc<str> = format!("backfill:{}:chunk:{chunk_index}", row.backfill_id).into();
        let mut request = RunRequested {
            run_id: run_id(&self.tenant_secret, state, &run_key),
            run_key: Arc::clone(&run_key),
            request_fingerprint: "".into(),
            asset_selection: serde_json::from_str(&row.asset_selection).unwrap_or_default(),
            partition_selection: Some(keys.clone()),
            trigger_source_ref: RunSource::Backfill {
                backfill_id: Arc::clone(&row.backfill_id),
                chunk_id: Arc::clone(&chunk_id),
            },
            labels: Default::default(),
            code_version: row.code_version.clone(),
            dag: row.dag.clone(),
            params: row.params.as_deref().and_then(|json| serde_json::from_str(json).ok()),
        };
        request.request_fingerprint = request.content_fingerprint().into();
        let planned = BackfillChunkPlanned {
            backfill_id: Arc::clone(&row.backfill_id),
            chunk_id,
            chunk_index,
            partition_keys: keys,
            run_key,
            request_fingerprint: Arc::clone(&request.request_fingerprint),
        };
        Action::Append(vec![planned.into(), request.into()])
    }
}

/// Whether the DAG of a backfill is paused.
fn is_dag_paused(state: &State, row: &BackfillRow) -> bool {
    let pool = row.dag.as_deref().and_then(|dag| state.pool(&backfills_pool(dag)));
    pool.is_some_and(|pool| pool.slots == 0)
}

fn change(row: &BackfillRow, to_state: BackfillState, changed_by: &str) -> Action {
    Action::append(BackfillStateChanged {
        backfill_id: Arc::clone(&row.backfill_id),
        from_state: row.state,
        to_state,
        state_version: row.state_version + 1,
        changed_by: Some(changed_by.into()),
    })
}

/// Cancels the runs of a backfill that have not ended.
fn cancel_runs(state: &State, row: &BackfillRow) -> Vec<Action> {
    let runs = state.open_chunks(&row.backfill_id).filter_map(|chunk| state.run(chunk.run_id.as_deref()?));
    let open = runs.filter(|run| !run.state.is_final() && !run.cancel_requested);
    open.take(MAX_ACTIONS)
        .map(|run| {
            Action::append(RunCancelRequested {
                run_id: Arc::clone(&run.run_id),
                reason: Some("its backfill was cancelled".into()),
                requested_by: CHANGED_BY.into(),
                generation: run.generation,
            })
        })
        .collect()
}
