//! `backfills`, `backfill_chunks`: a chunk follows its run, a backfill counts its chunks. States
//! change by legal edges with the next number only, so of two who change one state at once one
//! counts.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Expiring, Name, RUN_DAYS, Shared, days_after, json};
use crate::event::{BackfillChunkPlanned, BackfillCreated, BackfillStateChanged};
use crate::tables::{BackfillChunkRow, BackfillRow, BackfillState, ChunkState, RunState};

impl BackfillState {
    /// Whether nothing follows.
    pub const fn is_final(self) -> bool {
        matches!(self, BackfillState::Succeeded | BackfillState::Failed | BackfillState::Cancelled)
    }

    /// Whether this state may follow another.
    pub const fn may_follow(self, former: BackfillState) -> bool {
        use BackfillState::{Cancelled, Failed, Paused, Pending, Running, Succeeded};
        matches!(
            (former, self),
            (Pending, Running | Cancelled)
                | (Running, Paused | Succeeded | Failed | Cancelled)
                | (Paused, Running | Cancelled)
        )
    }
}

impl Shared {
    /// `BackfillCreated`.
    pub(super) fn create_backfill(&mut self, event: &BackfillCreated, at: Moment) -> bool {
        if self.backfills.get(&event.backfill_id).is_some() {
            return false;
        }
        let row = BackfillRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            backfill_id: Arc::clone(&event.backfill_id),
            asset_selection: json(&event.asset_selection),
            code_version: event.code_version.clone(),
            partition_selector: json(&event.partition_selector),
            chunk_size: event.chunk_size.max(1),
            max_concurrent_runs: event.max_concurrent_runs.max(1),
            state: BackfillState::Running,
            state_version: 1,
            total_partitions: event.total_partitions,
            planned_chunks: 0,
            completed_chunks: 0,
            failed_chunks: 0,
            parent_backfill_id: event.parent_backfill_id.clone(),
            created_at: at.at,
            dag: event.dag.clone(),
            params: event.params.as_ref().map(json),
            row_version: at.id,
        };
        self.open_backfills.insert(Arc::clone(&event.backfill_id));
        self.backfills.put(Arc::clone(&event.backfill_id), row);
        true
    }

    /// `BackfillChunkPlanned`.
    pub(super) fn plan_chunk(&mut self, event: &BackfillChunkPlanned, at: Moment) -> bool {
        let Some(backfill) = self.backfills.get(&event.backfill_id) else { return false };
        if backfill.state.is_final() || self.backfill_chunks.get(&event.chunk_id).is_some() {
            return false;
        }
        let mut planned = backfill.planned_chunks;
        let run_id = self.run_keys.get(&event.run_key).map(|row| Arc::clone(&row.run_id));
        let row = BackfillChunkRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            chunk_id: Arc::clone(&event.chunk_id),
            backfill_id: Arc::clone(&event.backfill_id),
            chunk_index: event.chunk_index,
            partition_keys: json(&event.partition_keys),
            run_key: Arc::clone(&event.run_key),
            run_id,
            state: ChunkState::Planned,
            request_fingerprint: Some(Arc::clone(&event.request_fingerprint)),
            row_version: at.id,
        };
        self.index_chunk(&row);
        self.backfill_chunks.put(Arc::clone(&event.chunk_id), row);
        // Planned chunks are counted without a gap: chunks may be folded out of order.
        while self.backfill_chunks.get(format!("{}:{planned}", event.backfill_id).as_str()).is_some() {
            planned += 1;
        }
        if let Some(backfill) = self.backfills.get_mut(&event.backfill_id) {
            backfill.planned_chunks = planned;
            backfill.row_version = at.id;
        }
        true
    }

    /// `BackfillStateChanged`.
    pub(super) fn change_backfill(&mut self, event: &BackfillStateChanged, at: Moment) -> bool {
        let Some(row) = self.backfills.get(&event.backfill_id) else { return false };
        let is_next = row.state == event.from_state && event.state_version == row.state_version + 1;
        if !is_next || !event.to_state.may_follow(event.from_state) {
            return false;
        }
        if let Some(row) = self.backfills.get_mut(&event.backfill_id) {
            row.state = event.to_state;
            row.state_version = event.state_version;
            row.row_version = at.id;
        }
        if event.to_state.is_final() {
            self.open_backfills.remove(&event.backfill_id);
            self.list_ended_backfill(&event.backfill_id);
        }
        true
    }

    /// Lists a backfill for removal, if it and all of its chunks have ended: so long after its last change.
    pub(super) fn list_ended_backfill(&mut self, backfill_id: &Name) {
        let row = self.backfills.get(backfill_id).filter(|row| row.state.is_final());
        let changed_at = row.map(|row| row.row_version.time_ms());
        if let Some(changed_at) = changed_at.filter(|_| !self.open_chunks.contains_key(backfill_id)) {
            self.expire_later(changed_at, Expiring::Backfill(Arc::clone(backfill_id)));
        }
    }

    /// Removes a backfill with its chunks, unless it has changed since it was listed: then it is listed again.
    pub(super) fn expire_backfill(&mut self, backfill_id: &Name, now: i64) {
        let Some(row) = self.backfills.get(backfill_id) else { return };
        let has_ended = row.state.is_final() && !self.open_chunks.contains_key(backfill_id);
        if !has_ended || days_after(row.row_version.time_ms(), RUN_DAYS) > now {
            return;
        }
        let planned = row.planned_chunks;
        self.backfills.remove(backfill_id);
        for index in 0..planned {
            if let Some(chunk) = self.backfill_chunks.remove(format!("{backfill_id}:{index}").as_str()) {
                self.chunk_of_run_key.remove(&chunk.run_key);
            }
        }
    }

    /// Keeps the indexes of chunks.
    pub(super) fn index_chunk(&mut self, row: &BackfillChunkRow) {
        self.chunk_of_run_key.insert(Arc::clone(&row.run_key), Arc::clone(&row.chunk_id));
        let open = self.open_chunks.entry(Arc::clone(&row.backfill_id)).or_default();
        if matches!(row.state, ChunkState::Planned | ChunkState::Running) {
            open.insert(Arc::clone(&row.chunk_id));
        } else {
            open.remove(&row.chunk_id);
        }
        if open.is_empty() {
            self.open_chunks.remove(&row.backfill_id);
        }
    }

    /// The run of a key changed its state: its chunk follows, and the backfill counts.
    pub(super) fn follow_run(&mut self, run_key: &Name, run_id: &Name, state: RunState, at: Moment) {
        let Some(chunk_id) = self.chunk_of_run_key.get(run_key).cloned() else { return };
        let state = match state {
            RunState::Triggered | RunState::Running => ChunkState::Running,
            RunState::Succeeded => ChunkState::Succeeded,
            RunState::Failed | RunState::Cancelled => ChunkState::Failed,
        };
        let Some(former) = self.backfill_chunks.get(&chunk_id) else { return };
        if former.state == state && former.run_id.as_ref() == Some(run_id) {
            return;
        }
        let former = former.state;
        let Some(chunk) = self.backfill_chunks.get_mut(&chunk_id) else { return };
        chunk.state = state;
        chunk.run_id = Some(Arc::clone(run_id));
        // The larger one: a run that is folded again brings events that are older than what the
        // rows have seen.
        chunk.row_version = chunk.row_version.max(at.id);
        let chunk = chunk.clone();
        self.index_chunk(&chunk);
        if former == state {
            return;
        }
        let Some(backfill) = self.backfills.get_mut(&chunk.backfill_id) else { return };
        backfill.row_version = backfill.row_version.max(at.id);
        match former {
            ChunkState::Succeeded => backfill.completed_chunks -= 1,
            ChunkState::Failed => backfill.failed_chunks -= 1,
            ChunkState::Planned | ChunkState::Running => {}
        }
        match state {
            ChunkState::Succeeded => backfill.completed_chunks += 1,
            ChunkState::Failed => backfill.failed_chunks += 1,
            ChunkState::Planned | ChunkState::Running => {}
        }
        self.list_ended_backfill(&chunk.backfill_id);
    }
}
