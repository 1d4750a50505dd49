//! A phase at work: which step index is released, which wave, and when nothing is left.
//!
//! Step index i+1 is released when all steps of index i are terminal and their rollbacks have ended. The
//! next wave begins when the members of the one before are through, after its pause.

use super::effect::Notice;
use super::turn::{Step, Turn};
use crate::definition::MemberLimit;
use crate::rows::{PhaseId, PhaseRow, ReleaseCursor, later};

impl Turn<'_> {
    /// Draws the consequences for a phase at work. Returns whether something changed.
    pub(super) fn settle_dispatched(&mut self, id: PhaseId) -> Step<bool> {
        let phase = self.phase(id);
        // While late members are being taken in, it is not known what is left to do.
        if phase.takes_members() && phase.created < self.batch().members {
            self.set_wake(id, None);
            return Ok(false);
        }
        if phase.groups.iter().all(|group| group.is_quiet()) && phase.wave as usize + 1 >= phase.groups.len()
        {
            self.complete_phase(id)?;
            return Ok(true);
        }
        if self.spend_budget(id)? {
            return Ok(true);
        }
        if self.phase(id).stopped_at.is_some() {
            self.set_wake(id, None);
            return Ok(false);
        }
        if self.phase(id).wave_at.is_some() {
            return self.settle_wave_pause(id);
        }
        if self.release_next_index(id) {
            return Ok(true);
        }
        self.settle_wave(id)
    }

    /// Stops the phase when too many members have failed. Returns whether it did.
    fn spend_budget(&mut self, id: PhaseId) -> Step<bool> {
        let budget = self.with_phase(id, |_, phase| phase.error_budget)?;
        let phase = self.phase(id);
        let is_spent = budget.is_some_and(|budget| is_spent(phase, budget));
        if !is_spent || phase.stopped_at.is_some() {
            return Ok(false);
        }
        let notice = Notice::BudgetSpent {
            phase: id,
            phase_name: phase.phase_name.clone(),
            members_failed: phase.members_failed,
        };
        let now = self.now();
        self.phase_mut(id).stopped_at = Some(now);
        self.notify(notice);
        Ok(true)
    }

    /// Releases the next step index of the wave, if those before are through.
    fn release_next_index(&mut self, id: PhaseId) -> bool {
        let phase = self.phase(id);
        let (wave, last) = (phase.wave as usize, phase.steps.saturating_sub(1));
        let Some(group) = phase.current_group() else { return false };
        if phase.released >= last || group.rolling_back > 0 || group.open_until(phase.released) > 0 {
            return false;
        }
        // Indexes that no member has reached need no release.
        let open = &group.open;
        let next = (phase.released + 1..last).find(|index| open[*index as usize] > 0).unwrap_or(last);
        let cursor = ReleaseCursor { next: phase.group_start(wave), end: group.end, index: Some(next) };
        let phase = self.phase_mut(id);
        phase.released = next;
        phase.release_cursor = Some(with_held(phase.release_cursor, cursor));
        true
    }

    /// Ends a wave, and begins the next one or the pause before it. Returns whether something changed.
    fn settle_wave(&mut self, id: PhaseId) -> Step<bool> {
        let phase = self.phase(id);
        let wave = phase.wave;
        let Some(group) = phase.current_group() else { return Ok(false) };
        if !group.is_quiet() || wave as usize + 1 >= phase.groups.len() {
            return Ok(false);
        }
        let has_members = group.members > 0;
        let pause_sec =
            self.with_phase(id, |_, phase| phase.waves.get(wave as usize).map_or(0, |wave| wave.pause_sec))?;
        if has_members && pause_sec > 0 {
            let at = later(self.now(), pause_sec);
            self.phase_mut(id).wave_at = Some(at);
            self.set_wake(id, Some(at));
        } else {
            self.begin_wave(id, wave + 1)?;
        }
        Ok(true)
    }

    fn settle_wave_pause(&mut self, id: PhaseId) -> Step<bool> {
        let phase = self.phase(id);
        let (wave, at) = (phase.wave, phase.wave_at);
        if self.batch().paused_at.is_some() {
            self.set_wake(id, None);
            return Ok(false);
        }
        if at.is_some_and(|at| at > self.now()) {
            self.set_wake(id, at);
            return Ok(false);
        }
        self.set_wake(id, None);
        self.begin_wave(id, wave + 1)?;
        Ok(true)
    }

    /// Releases the first steps of a wave.
    pub(super) fn begin_wave(&mut self, id: PhaseId, wave: u32) -> Step<()> {
        let is_barrier = self.is_barrier(id)?;
        let phase = self.phase_mut(id);
        phase.wave = wave;
        phase.wave_at = None;
        phase.released = if is_barrier { 0 } else { phase.steps.saturating_sub(1) };
        let next = phase.group_start(wave as usize);
        let group = phase.groups.get(wave as usize);
        let end = group.and_then(|group| group.end);
        // A member whose first steps were skipped before its wave begins with a later one. With a
        // barrier, the release of that index finds it.
        let has_skipped = !is_barrier && group.is_some_and(|group| group.open.first() != group.open.last());
        let cursor = ReleaseCursor { next, end, index: (!has_skipped).then_some(0) };
        phase.release_cursor = Some(with_held(phase.release_cursor, cursor));
        Ok(())
    }
}

/// A new release, and the members that the one before was held back from. A cursor of one index has
/// nothing left to release when the next index or wave begins.
fn with_held(before: Option<ReleaseCursor>, new: ReleaseCursor) -> ReleaseCursor {
    match before {
        Some(held) if held.index.is_none() => ReleaseCursor {
            next: held.next.min(new.next),
            end: held.end.zip(new.end).map(|(held, new)| held.max(new)),
            index: None,
        },
        _ => new,
    }
}

/// Whether as many members have failed as the budget allows; a budget of none is spent by the first.
fn is_spent(phase: &PhaseRow, budget: MemberLimit) -> bool {
    phase.members_failed.saturating_sub(phase.budget_base) >= budget.of(phase.members())
}
