//! `timers`: a timer that fired has no row, so none is handled twice. Acceptance and firing may be
//! folded before the request; the row is then built from the id.

use std::sync::Arc;

use super::live_run::LiveRun;
use super::moment::Moment;
use super::shared::{Name, Shared};
use crate::event::{TimerEnqueued, TimerFired, TimerRequested};
use crate::ids::{TimerName, TimerPurpose};
use crate::tables::{TaskState, TimerRow, TimerState, TimerType};

impl LiveRun {
    /// Whether a timer of an attempt still has something to wait for.
    fn wants_timer(&self, task_key: &str, attempt: u32, timer_type: TimerType) -> bool {
        let Some(number) = self.number(task_key) else { return false };
        let row = &self.task(number).row;
        match timer_type {
            TimerType::Retry => row.state == TaskState::RetryWait && row.attempt == attempt,
            _ => !row.state.is_final() && row.attempt <= attempt,
        }
    }

    /// `TimerRequested` of an attempt. A retry timer also moves the earliest time of the next
    /// attempt.
    pub(super) fn request_timer(
        &mut self,
        event: &TimerRequested,
        task_key: &str,
        attempt: u32,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        if !self.wants_timer(task_key, attempt, event.timer_type) || !shared.request_timer(event, at) {
            return false;
        }
        if let Some(number) = self.number(task_key) {
            self.task_memory(number).timers.push(Arc::clone(&event.timer_id));
            if event.timer_type == TimerType::Retry {
                self.task_mut(number, at).retry_not_before = Some(event.fire_at.as_millisecond());
            }
        }
        true
    }

    /// `TimerEnqueued` of an attempt.
    pub(super) fn accept_timer(
        &mut self,
        event: &TimerEnqueued,
        name: &TimerName,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        let TimerName::Attempt { purpose, task_key, attempt, .. } = name else { return false };
        if !self.wants_timer(task_key, *attempt, timer_type(*purpose)) {
            return false;
        }
        let is_new = shared.timers.get(&event.timer_id).is_none();
        let is_applied = shared.accept_timer(event, name, at);
        if is_new
            && is_applied
            && let Some(number) = self.number(task_key)
        {
            self.task_memory(number).timers.push(Arc::clone(&event.timer_id));
        }
        is_applied
    }

    /// `TimerFired` of an attempt.
    pub(super) fn fire_timer(&mut self, event: &TimerFired, task_key: &str, shared: &mut Shared) -> bool {
        if let Some(number) = self.number(task_key) {
            self.task_memory(number).timers.retain(|timer| *timer != event.timer_id);
        }
        // A timer that fires before its request is folded counts too: the request finds its key.
        shared.remove_timer(&event.timer_id);
        true
    }
}

impl Shared {
    /// Whether a timer fired already. What is folded after that must not bring it back.
    pub(super) fn has_fired(&self, timer_id: &str) -> bool {
        self.keys.get(format!("timer_fired:{timer_id}").as_str()).is_some()
    }

    /// `TimerRequested`.
    pub(super) fn request_timer(&mut self, event: &TimerRequested, at: Moment) -> bool {
        let existing = self.timers.get(&event.timer_id);
        if existing.is_some_and(|row| row.state == TimerState::Scheduled || row.payload.is_some()) {
            return false;
        }
        let (state, cloud_task_id) = match existing {
            Some(row) => (row.state, row.cloud_task_id.clone()),
            None => (TimerState::Scheduled, None),
        };
        let row = TimerRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            timer_id: Arc::clone(&event.timer_id),
            cloud_task_id,
            timer_type: event.timer_type,
            run_id: event.run_id.clone(),
            task_key: event.task_key.clone(),
            attempt: event.attempt,
            fire_at: event.fire_at.as_millisecond(),
            state,
            payload: event.payload.as_ref().map(super::shared::json),
            row_version: at.id,
        };
        if existing.is_some_and(|former| TimerRow { row_version: at.id, ..former.clone() } == row) {
            return false;
        }
        self.put_timer(row);
        true
    }

    /// `TimerEnqueued`.
    pub(super) fn accept_timer(&mut self, event: &TimerEnqueued, name: &TimerName, at: Moment) -> bool {
        let row = match self.timers.get(&event.timer_id) {
            Some(row) if row.state == TimerState::Enqueued => return false,
            Some(row) => row.clone(),
            None => self.row_of_name(&event.timer_id, name, at),
        };
        self.put_timer(TimerRow {
            state: TimerState::Enqueued,
            cloud_task_id: Some(Arc::clone(&event.cloud_task_id)),
            row_version: at.id,
            ..row
        });
        true
    }

    fn row_of_name(&self, timer_id: &Name, name: &TimerName, at: Moment) -> TimerRow {
        let (timer_type, run_id, task_key, attempt) = match name {
            TimerName::Attempt { purpose, run_id, task_key, attempt, .. } => (
                timer_type(*purpose),
                Some(run_id.as_str().into()),
                Some(task_key.as_str().into()),
                Some(*attempt),
            ),
            TimerName::Cron { .. } => (TimerType::Cron, None, None, None),
        };
        TimerRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            timer_id: Arc::clone(timer_id),
            cloud_task_id: None,
            timer_type,
            run_id,
            task_key,
            attempt,
            fire_at: name.epoch_s().saturating_mul(1_000),
            state: TimerState::Scheduled,
            payload: None,
            row_version: at.id,
        }
    }

    /// Stores a timer and keeps its indexes.
    pub(super) fn put_timer(&mut self, row: TimerRow) {
        let timer_id = Arc::clone(&row.timer_id);
        self.unlist_timer(&timer_id);
        self.list_timer(&row);
        self.timers.put(timer_id, row);
    }

    /// Lists a timer in its indexes.
    pub(super) fn list_timer(&mut self, row: &TimerRow) {
        let place = (row.fire_at, Arc::clone(&row.timer_id));
        if row.state == TimerState::Scheduled {
            self.timers_requested.insert(place.clone());
        }
        self.timers_by_time.insert(place);
    }

    fn unlist_timer(&mut self, timer_id: &Name) {
        if let Some(row) = self.timers.get(timer_id) {
            let place = (row.fire_at, Arc::clone(timer_id));
            self.timers_requested.remove(&place);
            self.timers_by_time.remove(&place);
        }
    }

    /// Removes a timer.
    pub(super) fn remove_timer(&mut self, timer_id: &Name) -> bool {
        self.unlist_timer(timer_id);
        self.timers.remove(timer_id).is_some()
    }
}

/// The type of timers with this purpose.
fn timer_type(purpose: TimerPurpose) -> TimerType {
    match purpose {
        TimerPurpose::Retry => TimerType::Retry,
        TimerPurpose::Heartbeat => TimerType::HeartbeatCheck,
        TimerPurpose::Sla => TimerType::SlaCheck,
    }
}
