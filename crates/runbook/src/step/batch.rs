//! A batch from its creation to its end.

use super::effect::{Event, Verdict};
use super::turn::{Step, Turn};
use crate::definition::Definition;
use crate::message::{Action, EventMessage};
use crate::rows::{
    BatchRow, BatchStatus, Blocks, InitId, InitRow, MemberCounts, PhaseId, PhaseReason, PhaseRow,
    PhaseStatus, RunbookId, StepCounts, Table, Work, earlier,
};

/// Seconds of a minute.
const MINUTE_SEC: u64 = 60;

impl Turn<'_> {
    /// Creates the batch with its phases. Members follow, and then the seal.
    pub(super) fn create_batch(&mut self, action: &Action) -> Step<Verdict> {
        let Action::CreateBatch { batch_id, runbook_id, runbook_name, runbook_version, batch_start_time } =
            action
        else {
            return Ok(Verdict::Applied);
        };
        if self.rows.batch().is_some() {
            return Ok(Verdict::Refused(format!("batch {batch_id} exists")));
        }
        let definition = self.definition(*runbook_version)?;
        self.rows.put_batch(BatchRow {
            id: *batch_id,
            runbook_id: *runbook_id,
            batch_start_time: *batch_start_time,
            status: BatchStatus::Detected,
            detected_at: self.now(),
            init_dispatched_at: None,
            runbook_name: runbook_name.clone(),
            runbook_version: *runbook_version,
            is_manual: batch_start_time.is_none(),
            is_sealed: false,
            completed_at: None,
            error_message: None,
            paused_at: None,
            pause_reason: None,
            blackout_until: None,
            ending: None,
            members: 0,
            member_blocks: Blocks::default(),
            member_counts: MemberCounts::default(),
            worker_data: serde_json::Map::new(),
            rollback_of: None,
            rollback_runs: 0,
            retry_cursor: None,
            list_cursor: None,
            unsent_pools: std::collections::BTreeSet::new(),
            parts: 0,
        });
        self.create_phases(&definition, *runbook_version)?;
        self.create_inits(&definition, *runbook_version)?;
        self.announce(Event::Batch(BatchStatus::Detected));
        Ok(Verdict::Applied)
    }

    /// Creates the phases of a version. Returns the ids.
    pub(super) fn create_phases(&mut self, definition: &Definition, version: u32) -> Step<Vec<PhaseId>> {
        let above = self.rows.phases().map(|phase| phase.id.0).max().unwrap_or(0);
        let first = self.rows.take_ids(Table::PhaseExecutions, definition.phases.len() as u64, above)?;
        let batch_id = self.batch().id;
        let start = self.batch().batch_start_time;
        let mut ids = Vec::new();
        for (position, (phase, id)) in definition.phases.iter().zip(first..).enumerate() {
            let due_at = start.map(|start| earlier(start, phase.offset_minutes.saturating_mul(MINUTE_SEC)));
            ids.push(PhaseId(id));
            self.rows.put_phase(PhaseRow {
                id: PhaseId(id),
                batch_id,
                phase_name: phase.name.clone(),
                offset_minutes: phase.offset_minutes,
                due_at,
                runbook_version: version,
                status: PhaseStatus::Pending,
                dispatched_at: None,
                completed_at: None,
                position: u32::try_from(position).unwrap_or(u32::MAX),
                steps: u32::try_from(phase.steps.len()).unwrap_or(u32::MAX),
                reason: None,
                wake_at: None,
                ending: None,
                preparing_at: None,
                created: 0,
                created_before: 0,
                is_closed: false,
                step_blocks: Blocks::default(),
                groups: Vec::new(),
                wave: 0,
                wave_at: None,
                released: 0,
                release_cursor: None,
                cancel_cursor: None,
                step_counts: StepCounts::default(),
                members_succeeded: 0,
                members_failed: 0,
                places_taken: 0,
                approval_requested_at: None,
                approved_at: None,
                approved_by: None,
                stopped_at: None,
                budget_base: 0,
            });
        }
        Ok(ids)
    }

    /// Creates the init steps of a version.
    pub(super) fn create_inits(&mut self, definition: &Definition, version: u32) -> Step<()> {
        if definition.init.is_empty() {
            return Ok(());
        }
        let above = self.rows.inits().map(|init| init.id.0).max().unwrap_or(0);
        let first = self.rows.take_ids(Table::InitExecutions, definition.init.len() as u64, above)?;
        let batch_id = self.batch().id;
        let templates = self.context.templates;
        for (index, (step, id)) in definition.init.iter().zip(first..).enumerate() {
            let names = super::template::variables(self.batch(), None);
            let resolved = templates.resolve(step, &names).unwrap_or_else(|_| templates.raw(step));
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let work = Work::pending(step, index, resolved.function, resolved.params_json);
            let id = InitId(id);
            self.rows.put_init(InitRow {
                id,
                batch_id,
                runbook_version: version,
                work,
                rollback_state: None,
                rollback_run: None,
                rollback_error: None,
            });
        }
        Ok(())
    }

    /// A sealed batch begins: with its init steps, or with its phases. A manual one with init steps waits
    /// to be advanced.
    pub(super) fn settle_start(&mut self) -> Step<bool> {
        let batch = self.batch();
        if batch.status == BatchStatus::Active {
            return Ok(self.settle_init_of_version());
        }
        if batch.status != BatchStatus::Detected || !batch.is_sealed || batch.is_cancelling() {
            return Ok(false);
        }
        if self.rows.inits().next().is_none() {
            self.set_batch_status(BatchStatus::Active);
            return Ok(true);
        }
        if batch.is_manual || batch.paused_at.is_some() {
            return Ok(false);
        }
        self.begin_init();
        Ok(true)
    }

    /// Begins the init steps of a version that the batch has moved to, once no phase of the version before is
    /// at work.
    fn settle_init_of_version(&mut self) -> bool {
        let batch = self.batch();
        let is_held = batch.ending.is_some() || batch.paused_at.is_some();
        let is_busy = self.rows.phases().any(|phase| phase.status == PhaseStatus::Dispatched);
        if is_held || is_busy || self.next_init().is_none() {
            return false;
        }
        self.begin_init();
        true
    }

    /// `detected`, `active` → `init_dispatched`
    pub(super) fn begin_init(&mut self) {
        let now = self.now();
        self.batch_mut().init_dispatched_at = Some(now);
        self.set_batch_status(BatchStatus::InitDispatched);
        let batch = self.batch();
        let message = EventMessage::BatchInit {
            runbook_name: batch.runbook_name.clone(),
            runbook_version: batch.runbook_version,
            batch_id: batch.id,
            batch_start_time: batch.batch_start_time,
            member_count: batch.member_counts.active,
        };
        self.announce(Event::Bus(message));
    }

    pub(super) fn set_batch_status(&mut self, status: BatchStatus) {
        self.batch_mut().status = status;
        self.announce(Event::Batch(status));
    }

    /// Follows another version of the runbook.
    pub(super) fn follow(&mut self, runbook_id: RunbookId, version: u32) {
        let batch = self.batch_mut();
        batch.runbook_id = runbook_id;
        batch.runbook_version = version;
    }

    /// Ends the batch when nothing is left to do.
    pub(super) fn settle_end(&mut self) -> Step<bool> {
        let batch = self.batch();
        let is_at_end = batch.status == BatchStatus::Active || batch.ending.is_some();
        if batch.status.is_terminal() || !is_at_end || !self.is_quiet() {
            return Ok(false);
        }
        let has = |status| self.rows.phases().any(|phase| phase.status == status);
        let status = match batch.ending {
            Some(ending) => ending,
            None if has(PhaseStatus::Failed) || !has(PhaseStatus::Completed) => BatchStatus::Failed,
            None => BatchStatus::Completed,
        };
        let message =
            (status == BatchStatus::Failed && batch.error_message.is_none()).then(|| self.why_failed());
        let now = self.now();
        let batch = self.batch_mut();
        batch.completed_at = Some(now);
        batch.error_message = message.or(batch.error_message.take());
        batch.ending = None;
        batch.paused_at = None;
        batch.pause_reason = None;
        self.set_batch_status(status);
        Ok(true)
    }

    /// Whether all phases have ended, and no member comes, goes or is rolled back.
    fn is_quiet(&self) -> bool {
        let batch = self.batch();
        let is_phase_quiet = |phase: &PhaseRow| {
            let is_complete = !phase.takes_members() || phase.created >= batch.members;
            phase.status.is_terminal()
                && phase.rolling_back() == 0
                && (is_complete || batch.ending.is_some())
                && phase.cancel_cursor.is_none()
        };
        let is_init_quiet = self.rows.inits().all(|init| init.work.status.is_terminal());
        (batch.is_sealed || batch.is_cancelling())
            && batch.retry_cursor.is_none()
            && batch.member_counts.leaving == 0
            && batch.rollback_of.is_none()
            && is_init_quiet
            && self.rows.phases().all(is_phase_quiet)
    }

    fn why_failed(&self) -> String {
        let failed: Vec<&str> = self
            .rows
            .phases()
            .filter(|phase| phase.status == PhaseStatus::Failed)
            .map(|phase| phase.phase_name.as_str())
            .collect();
        match failed.as_slice() {
            [] => "no phase was completed: all were skipped or superseded".to_owned(),
            names => format!("failed phases: {}", names.join(", ")),
        }
    }

    /// What phases that have not begun end with while the batch ends.
    pub(super) fn early_reason(&self) -> PhaseReason {
        if self.batch().is_cancelling() { PhaseReason::Cancelled } else { PhaseReason::InitFailed }
    }
}
