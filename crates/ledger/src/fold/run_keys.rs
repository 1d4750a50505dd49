//! `run_key_index`, `run_key_conflicts`: the first request for a key decides; the same again is no
//! news, another is a conflict.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Expiring, Name, Shared, json};
use crate::event::{RunRequested, RunSource, RunTriggered};
use crate::tables::{RunKeyConflictRow, RunKeyRow};

impl Shared {
    /// `RunRequested`. What a stale evaluation of a sensor requests is dropped.
    pub(super) fn request_run(&mut self, event: &RunRequested, at: Moment) -> bool {
        if let RunSource::Sensor { eval_id, .. } = &event.trigger_source_ref
            && self.is_stale_eval(eval_id)
        {
            return false;
        }
        let Some(existing) = self.run_keys.get(&event.run_key) else {
            let row = RunKeyRow {
                tenant_id: Arc::clone(&self.scope.tenant_id),
                workspace_id: Arc::clone(&self.scope.workspace_id),
                run_key: Arc::clone(&event.run_key),
                run_id: Arc::clone(&event.run_id),
                request_fingerprint: Some(Arc::clone(&event.request_fingerprint)),
                code_version: event.code_version.clone(),
                created_at: at.at,
                request: Some(json(event)),
                row_version: at.id,
            };
            self.unbridged.insert((at.at, Arc::clone(&event.run_key)));
            self.put_run_key(row);
            self.link_run(event, at);
            return true;
        };
        let Some(fingerprint) = &existing.request_fingerprint else { return false };
        if *fingerprint == event.request_fingerprint {
            return false;
        }
        let name = (Arc::clone(&event.run_key), Arc::clone(&event.request_fingerprint));
        if self.run_key_conflicts.get(&name).is_some() {
            return false;
        }
        let row = RunKeyConflictRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            run_key: Arc::clone(&event.run_key),
            existing_fingerprint: Arc::clone(fingerprint),
            conflicting_fingerprint: Arc::clone(&event.request_fingerprint),
            conflicting_event_id: at.id,
            detected_at: at.at,
        };
        self.expire_later(at.at, Expiring::RunKeyConflict(name.0.clone(), name.1.clone()));
        self.run_key_conflicts.put(name, row);
        true
    }

    /// `RunTriggered` with a key: the request, if there is one, is done.
    pub(super) fn note_triggered(&mut self, event: &RunTriggered, at: Moment) {
        let Some(run_key) = &event.run_key else { return };
        match self.run_keys.get(run_key) {
            None => self.put_run_key(RunKeyRow {
                tenant_id: Arc::clone(&self.scope.tenant_id),
                workspace_id: Arc::clone(&self.scope.workspace_id),
                run_key: Arc::clone(run_key),
                run_id: Arc::clone(&event.run_id),
                request_fingerprint: None,
                code_version: event.code_version.clone(),
                created_at: at.at,
                request: None,
                row_version: at.id,
            }),
            Some(row) if row.request.is_some() && row.run_id == event.run_id => {
                self.unbridged.remove(&(row.created_at, Arc::clone(run_key)));
                if let Some(row) = self.run_keys.get_mut(run_key) {
                    row.request = None;
                    row.row_version = at.id;
                }
            }
            Some(_) => {}
        }
    }

    fn put_run_key(&mut self, row: RunKeyRow) {
        self.expire_later(row.created_at, Expiring::RunKey(Arc::clone(&row.run_key)));
        self.run_keys.put(Arc::clone(&row.run_key), row);
    }

    /// Writes the id of the run into what requested it.
    fn link_run(&mut self, event: &RunRequested, at: Moment) {
        let run_id: Name = Arc::clone(&event.run_id);
        match &event.trigger_source_ref {
            RunSource::Schedule { tick_id, .. } => {
                if let Some(row) = self.schedule_ticks.get_mut(tick_id) {
                    row.run_id = Some(run_id);
                    row.row_version = at.id;
                }
            }
            RunSource::Backfill { chunk_id, .. } => {
                if let Some(row) = self.backfill_chunks.get_mut(chunk_id) {
                    row.run_id = Some(run_id);
                    row.row_version = at.id;
                }
            }
            RunSource::Sensor { .. } | RunSource::Manual { .. } => {}
        }
    }
}
