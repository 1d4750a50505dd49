//! `dispatch_outbox`: one row for each dispatch that no worker has taken up. Acceptance may be
//! folded before the request; a dispatch of an attempt that is consumed has no row.

use std::sync::Arc;

use super::live_run::LiveRun;
use super::moment::Moment;
use super::shared::{Name, Shared};
use crate::event::{DispatchEnqueued, DispatchRequested};
use crate::ids::DispatchName;
use crate::tables::{OutboxRow, OutboxStatus, TaskState};

/// The queue of a row whose request is not known yet.
const UNKNOWN: &str = "";

impl LiveRun {
    /// `DispatchRequested`.
    pub(super) fn request_dispatch(
        &mut self,
        event: &DispatchRequested,
        has_slot: bool,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        let Some(number) = self.number(&event.task_key) else { return false };
        let task = self.task(number);
        if task.row.has_consumed(event.attempt) {
            return self.prune_dispatch(&event.dispatch_id, number, shared);
        }
        let is_next = task.row.next_attempt() == Some(event.attempt) && task.row.for_each.is_none();
        if self.row.is_none() || !is_next || !has_slot {
            return false;
        }
        let row = self.task_mut(number, at);
        row.state = TaskState::Dispatched;
        row.attempt = event.attempt;
        row.attempt_id = Some(Arc::clone(&event.attempt_id));
        row.dispatched_at = Some(at.at);
        row.started_at = None;
        row.last_heartbeat_at = None;
        row.retry_not_before = None;
        let early = shared.outbox.get(&event.dispatch_id).cloned();
        let mut row = early.unwrap_or_else(|| OutboxRow {
            tenant_id: Arc::clone(&shared.scope.tenant_id),
            workspace_id: Arc::clone(&shared.scope.workspace_id),
            run_id: Arc::clone(&self.run_id),
            task_key: Arc::clone(&event.task_key),
            attempt: event.attempt,
            dispatch_id: Arc::clone(&event.dispatch_id),
            cloud_task_id: None,
            status: OutboxStatus::Pending,
            attempt_id: UNKNOWN.into(),
            worker_queue: UNKNOWN.into(),
            created_at: at.at,
            enqueued_at: None,
            repairs: 0,
            row_version: at.id,
        });
        row.attempt_id = Arc::clone(&event.attempt_id);
        row.worker_queue = Arc::clone(&event.worker_queue);
        row.row_version = at.id;
        let dispatch_id = Arc::clone(&event.dispatch_id);
        self.hold_dispatch(number, dispatch_id, shared);
        shared.put_dispatch(row);
        true
    }

    /// `DispatchEnqueued`: the first acceptance, or a repair that is newer than the last.
    pub(super) fn accept_dispatch(
        &mut self,
        event: &DispatchEnqueued,
        name: &DispatchName,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        let Some(number) = self.number(&name.task_key) else { return false };
        let task = &self.task(number).row;
        if task.has_consumed(name.attempt) {
            return self.prune_dispatch(&event.dispatch_id, number, shared);
        }
        let existing = shared.outbox.get(&event.dispatch_id).cloned();
        let is_news = existing
            .as_ref()
            .is_none_or(|row| row.status == OutboxStatus::Pending || event.repair > row.repairs);
        let is_expected = existing.is_some() || task.next_attempt() == Some(name.attempt);
        if !is_news || !is_expected {
            return false;
        }
        let mut row = existing.unwrap_or_else(|| OutboxRow {
            tenant_id: Arc::clone(&shared.scope.tenant_id),
            workspace_id: Arc::clone(&shared.scope.workspace_id),
            run_id: Arc::clone(&self.run_id),
            task_key: Arc::clone(&task.task_key),
            attempt: name.attempt,
            dispatch_id: Arc::clone(&event.dispatch_id),
            cloud_task_id: None,
            status: OutboxStatus::Created,
            attempt_id: UNKNOWN.into(),
            worker_queue: UNKNOWN.into(),
            created_at: at.at,
            enqueued_at: None,
            repairs: 0,
            row_version: at.id,
        });
        row.status = OutboxStatus::Created;
        row.cloud_task_id = Some(Arc::clone(&event.cloud_task_id));
        row.enqueued_at = Some(at.at);
        row.repairs = event.repair;
        row.row_version = at.id;
        self.hold_dispatch(number, Arc::clone(&event.dispatch_id), shared);
        shared.put_dispatch(row);
        true
    }

    /// Notes the dispatch of a task; a dispatch of an earlier attempt is removed.
    fn hold_dispatch(&mut self, number: u32, dispatch_id: Name, shared: &mut Shared) {
        let former = self.task_memory(number).dispatch.replace(Arc::clone(&dispatch_id));
        if let Some(former) = former.filter(|former| *former != dispatch_id) {
            shared.remove_dispatch(&former);
        }
    }

    fn prune_dispatch(&mut self, dispatch_id: &Name, number: u32, shared: &mut Shared) -> bool {
        let task = self.task_memory(number);
        task.dispatch.take_if(|held| held == dispatch_id);
        shared.remove_dispatch(dispatch_id)
    }
}

impl Shared {
    /// Stores a row of the outbox and keeps its indexes.
    fn put_dispatch(&mut self, row: OutboxRow) {
        self.unlist_dispatch(&Arc::clone(&row.dispatch_id));
        self.list_dispatch(&row);
        self.outbox.put(Arc::clone(&row.dispatch_id), row);
    }

    /// Lists a dispatch in its index.
    pub(super) fn list_dispatch(&mut self, row: &OutboxRow) {
        let dispatch_id = Arc::clone(&row.dispatch_id);
        match row.status {
            OutboxStatus::Pending => self.outbox_pending.insert((row.created_at, dispatch_id)),
            OutboxStatus::Created => {
                let at = row.enqueued_at.unwrap_or(row.created_at);
                self.outbox_accepted.insert((at, dispatch_id))
            }
        };
    }

    fn unlist_dispatch(&mut self, dispatch_id: &Name) {
        if let Some(row) = self.outbox.get(dispatch_id) {
            let at = row.enqueued_at.unwrap_or(row.created_at);
            self.outbox_pending.remove(&(row.created_at, Arc::clone(dispatch_id)));
            self.outbox_accepted.remove(&(at, Arc::clone(dispatch_id)));
        }
    }

    /// Removes a row of the outbox.
    pub(super) fn remove_dispatch(&mut self, dispatch_id: &Name) -> bool {
        self.unlist_dispatch(dispatch_id);
        self.outbox.remove(dispatch_id).is_some()
    }
}
