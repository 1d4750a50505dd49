//! Work over many members, part by part: creating the steps of a phase, releasing them, cancelling
//! them, and trying failed members again. Each part is bounded, and its cursor moves in the same commit.

use std::ops::Range;

use super::Context;
use super::effect::{Event, Verdict};
use super::progress::waits_for_turn;
use super::turn::{Blueprint, Step, StepPath, Turn};
use crate::message::EventMessage;
use crate::rows::{
    MemberId, MemberStatus, Missing, Ordinal, PhaseId, PhaseStatus, RetryFrom, Rows, StepId, StepRow, Table,
    Want, block_end, block_ids,
};

/// A part of cursor work: members by ordinal, all in one block of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Create steps of a phase.
    Create(PhaseId, Range<Ordinal>),
    /// Begin steps of a phase.
    Release(PhaseId, Range<Ordinal>),
    /// Cancel open steps of a phase.
    Cancel(PhaseId, Range<Ordinal>),
    /// Try failed members again.
    Retry(Range<Ordinal>),
}

/// The next part of cursor work, if there is any that can be done now.
///
/// # Errors
/// When a definition is not loaded.
pub fn next_part(rows: &mut Rows, context: &Context<'_>) -> Result<Option<Part>, Missing> {
    if rows.batch().is_none() {
        return Ok(None);
    }
    Turn::new(rows, context).find_part()
}

impl Turn<'_> {
    /// Cancelling comes first. Then late members are taken in, so that they need not wait for the others.
    /// Releasing steps and preparing later phases take turns.
    pub(super) fn find_part(&self) -> Step<Option<Part>> {
        let batch = self.batch();
        for phase in self.rows.phases() {
            if let Some(next) = phase.cancel_cursor {
                return Ok(Some(Part::Cancel(phase.id, self.part(next, phase.created, phase.steps))));
            }
        }
        if batch.status.is_terminal() {
            return Ok(None);
        }
        if let Some(cursor) = batch.retry_cursor {
            let range = self.part(cursor.next, cursor.end.min(batch.members), self.rows_of_member());
            return Ok(Some(Part::Retry(range)));
        }
        let mut prepare = None;
        for phase in self.rows.phases().filter(|phase| phase.takes_members()) {
            if batch.is_sealed && phase.created < batch.members {
                let range = self.part(phase.created, batch.members, phase.steps + 1);
                let part = Part::Create(phase.id, range);
                if phase.status != PhaseStatus::Pending {
                    return Ok(Some(part));
                }
                prepare = prepare.or(Some(part));
            }
        }
        let release = self.find_release()?;
        let is_preparing_next = batch.parts.is_multiple_of(2);
        Ok(if is_preparing_next { prepare.or(release) } else { release.or(prepare) })
    }

    fn find_release(&self) -> Step<Option<Part>> {
        let mut is_held = None;
        for phase in self.rows.phases() {
            let Some(cursor) = phase.release_cursor else { continue };
            if phase.status != PhaseStatus::Dispatched || phase.ending.is_some() || phase.stopped_at.is_some()
            {
                continue;
            }
            if *is_held.get_or_insert(self.is_batch_held()?) {
                return Ok(None);
            }
            let end = cursor.end.unwrap_or(Ordinal::MAX).min(phase.created);
            let rows = if cursor.index.is_some() { 2 } else { phase.steps + 1 };
            // A cursor at its end takes no place to be moved on.
            if cursor.next >= end || self.has_place(phase.id)? {
                return Ok(Some(Part::Release(phase.id, self.part(cursor.next, end, rows))));
            }
        }
        Ok(None)
    }

    /// A range of members that is read at once: within one block, with a bounded number of rows.
    fn part(&self, next: Ordinal, end: Ordinal, rows_of_member: u32) -> Range<Ordinal> {
        let members = (self.context.rows_per_part / rows_of_member.max(1)).max(1);
        let end = next.saturating_add(members).min(block_end(next)).min(end);
        next..end.max(next)
    }

    /// Rows of a member with all its steps.
    pub(super) fn rows_of_member(&self) -> u32 {
        1 + self.rows.phases().map(|phase| phase.steps).sum::<u32>()
    }

    /// Does the next part.
    pub(super) fn take_part(&mut self) -> Step<Verdict> {
        let Some(part) = self.find_part()? else { return Ok(Verdict::Applied) };
        self.batch_mut().parts += 1;
        let done = match &part {
            Part::Create(phase, range) => self.create_steps(*phase, range.clone()),
            Part::Release(phase, range) => self.release_steps(*phase, range.clone()),
            Part::Cancel(phase, range) => self.cancel_steps(*phase, range.clone()),
            Part::Retry(range) => self.retry_range(range.clone()),
        };
        done.map_err(|missing| self.widened(&part, missing))?;
        Ok(Verdict::Applied)
    }

    /// A step that cannot be sent ends its member, which needs all rows of the member. Should that
    /// happen to one, it may happen to all: load them at once.
    fn widened(&self, part: &Part, missing: Missing) -> Missing {
        let (Part::Create(_, range) | Part::Release(_, range) | Part::Cancel(_, range) | Part::Retry(range)) =
            part;
        let is_row = |want: &Want| matches!(want, Want::Row(_) | Want::Range { .. });
        if !missing.0.iter().all(is_row) {
            return missing;
        }
        let mut wants = self.want_members(range.clone());
        for phase in self.rows.phases() {
            wants
                .extend((0..phase.steps).filter_map(|index| self.want_steps(phase.id, index, range.clone())));
        }
        wants.retain(|want| !self.rows.has(want));
        if wants.is_empty() { missing } else { Missing(wants) }
    }

    /// The rows of members in a range of one block.
    pub(super) fn want_members(&self, range: Range<Ordinal>) -> Vec<Want> {
        let Some(MemberId(from)) = self.batch().member_id(range.start) else { return Vec::new() };
        let to = from + u64::from(range.end - range.start);
        vec![Want::Range { table: Table::BatchMembers, from, to }]
    }

    /// The steps of one index for members in a range of one block; none where none were created.
    pub(super) fn want_steps(&self, phase: PhaseId, index: u32, range: Range<Ordinal>) -> Option<Want> {
        let row = self.phase(phase);
        let end = range.end.min(row.created);
        if range.start >= end {
            return None;
        }
        let StepId(from) = row.step_id(range.start, index)?;
        let to = from + u64::from(end - range.start);
        Some(Want::Range { table: Table::StepExecutions, from, to })
    }

    fn create_steps(&mut self, phase: PhaseId, range: Range<Ordinal>) -> Step<()> {
        let steps = self.phase(phase).steps;
        if range.start >= self.phase(phase).step_blocks.capacity() {
            let last = self.phase(phase).step_blocks.last();
            let first = self.rows.take_ids(Table::StepExecutions, block_ids(steps), last)?;
            self.phase_mut(phase).step_blocks.push(first);
        }
        let mut late = Vec::new();
        for ordinal in range.clone() {
            let Some(id) = self.batch().member_id(ordinal) else { continue };
            let is_active = self.member(id)?.is_some_and(|member| member.status == MemberStatus::Active);
            if is_active {
                self.create_steps_of_member(phase, ordinal, id)?;
                late.push(ordinal);
            }
        }
        self.phase_mut(phase).created = range.end;
        if !late.is_empty() {
            self.reopen_phase(phase);
        }
        if self.phase(phase).status == PhaseStatus::Dispatched {
            for ordinal in late {
                self.start_if_allowed(phase, ordinal, 0)?;
            }
        }
        Ok(())
    }

    fn create_steps_of_member(&mut self, phase: PhaseId, ordinal: Ordinal, member: MemberId) -> Step<()> {
        for index in 0..self.phase(phase).steps {
            let row = self.phase(phase);
            let before = match row.step_id(ordinal, index) {
                Some(id) if ordinal < row.created_before => self.rows.step(id)?.cloned(),
                _ => None,
            };
            match before {
                Some(step) if step.work.status.is_terminal() => self.reset_step(step)?,
                Some(_) => {}
                None => self.create_step(phase, ordinal, member, index)?,
            }
        }
        Ok(())
    }

    /// Creates a step of a member that takes part in a phase.
    pub(super) fn create_step(
        &mut self,
        phase: PhaseId,
        ordinal: Ordinal,
        member: MemberId,
        index: u32,
    ) -> Step<()> {
        let row = self.phase(phase);
        let Some(id) = row.step_id(ordinal, index) else { return Ok(()) };
        let version = row.runbook_version;
        let path = StepPath::Phase(row.position, index);
        let definition = self.definition(version)?;
        let blueprint = Blueprint { version, member: Some(member), definition, path };
        let work = self.pending_work(&blueprint, index)?;
        let step = StepRow {
            id,
            phase_execution_id: phase,
            batch_member_id: member,
            work,
            rollback_state: None,
            rollback_run: None,
            rollback_error: None,
        };
        self.rows.put_step(step);
        Ok(())
    }

    fn release_steps(&mut self, phase: PhaseId, range: Range<Ordinal>) -> Step<()> {
        let Some(cursor) = self.phase(phase).release_cursor else { return Ok(()) };
        let mut begun = Vec::new();
        let mut next = range.end;
        for ordinal in range {
            let index = match cursor.index {
                Some(index) => Some(index),
                None => self.first_open(phase, ordinal)?,
            };
            let Some(index) = index else { continue };
            let is_waiting = self.step_of(phase, ordinal, index)?.is_some_and(waits_for_turn);
            if !is_waiting || !self.may_begin(phase, ordinal, index)? {
                continue;
            }
            if !self.has_place(phase)? {
                next = ordinal;
                break;
            }
            self.start(phase, ordinal, index)?;
            if index == 0 {
                begun.extend(self.batch().member_id(ordinal));
            }
        }
        let row = self.phase_mut(phase);
        let end = cursor.end.unwrap_or(Ordinal::MAX).min(row.created);
        row.release_cursor = (next < end).then_some(crate::rows::ReleaseCursor { next, ..cursor });
        self.announce_phase_due(phase, begun);
        Ok(())
    }

    /// `phase-due` for the members that begin a phase.
    fn announce_phase_due(&mut self, phase: PhaseId, member_ids: Vec<MemberId>) {
        if member_ids.is_empty() {
            return;
        }
        let row = self.phase(phase);
        let message = EventMessage::PhaseDue {
            runbook_name: self.batch().runbook_name.clone(),
            runbook_version: row.runbook_version,
            batch_id: row.batch_id,
            phase_execution_id: phase,
            phase_name: row.phase_name.clone(),
            offset_minutes: row.offset_minutes,
            due_at: row.due_at,
            member_ids,
        };
        self.announce(Event::Bus(message));
    }

    fn cancel_steps(&mut self, phase: PhaseId, range: Range<Ordinal>) -> Step<()> {
        for ordinal in range.clone() {
            self.cancel_steps_of_phase(phase, ordinal)?;
        }
        let row = self.phase_mut(phase);
        row.cancel_cursor = (range.end < row.created).then_some(range.end);
        Ok(())
    }

    fn retry_range(&mut self, range: Range<Ordinal>) -> Step<()> {
        let Some(cursor) = self.batch().retry_cursor else { return Ok(()) };
        for ordinal in range.clone() {
            if let Some(id) = self.batch().member_id(ordinal) {
                self.retry_member(id, cursor.from)?;
            }
        }
        let end = cursor.end.min(self.batch().members);
        self.batch_mut().retry_cursor =
            (range.end < end).then_some(crate::rows::RetryCursor { next: range.end, ..cursor });
        Ok(())
    }

    /// Tries a member again if it has failed and its rollback has ended. Returns whether it did.
    pub(super) fn retry_member(&mut self, id: MemberId, from: RetryFrom) -> Step<bool> {
        let Some(member) = self.member(id)? else { return Ok(false) };
        if member.status != MemberStatus::Failed || member.rollback_of.is_some() {
            return Ok(false);
        }
        self.revive(id, from.into())?;
        Ok(true)
    }
}
