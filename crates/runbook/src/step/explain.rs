//! Why a row waits, what will wake it, and when. Invariant: every row that has yet to end has a wake-up of its own
//! or names what releases it; [`Releaser::Nothing`] is a defect, and tests and the audit sweep look for it.

use std::fmt;

use jiff::Timestamp;

use super::Context;
use super::turn::{Step, Turn};
use crate::rows::{
    BatchStatus, Missing, PhaseId, PhaseReason, PhaseRow, PhaseStatus, RowKey, Rows, SequenceState, StepId,
    WorkKey, WorkStatus,
};

/// What releases a row that has yet to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Releaser {
    /// Its own wake-up.
    Time(Timestamp),
    /// Another row, once it has ended or gone on.
    Row(RowKey),
    /// Cursor work in a row, which goes on by itself.
    Cursor(RowKey),
    /// Work of the row's own that is with workers, named for people.
    Results(&'static str),
    /// A request of a person or a source, by its name in the API.
    Request(&'static str),
    /// The creator of the batch, which sends its members.
    Creator,
    /// A node that drives batches.
    Node,
    /// Nothing. A defect.
    Nothing,
}

impl fmt::Display for Releaser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Releaser::Time(at) => write!(f, "at {at}"),
            Releaser::Row(key) => write!(f, "by {key}"),
            Releaser::Cursor(key) => write!(f, "by itself: work on {key} goes on"),
            Releaser::Results(of) => write!(f, "by the results of {of}"),
            Releaser::Request(action) => write!(f, "by the request `{action}`"),
            Releaser::Creator => f.write_str("by its creator, which sends the members"),
            Releaser::Node => f.write_str("by a node with the role `orchestrator`"),
            Releaser::Nothing => f.write_str("by nothing: this is a defect"),
        }
    }
}

/// Why a row waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// A sentence for people.
    pub why: String,
    /// What releases it; none for a row that has ended or waits for nothing.
    pub releaser: Option<Releaser>,
    /// When it wakes by itself.
    pub wakes_at: Option<Timestamp>,
}

/// Explains a row.
///
/// # Errors
/// When rows or definitions are not loaded.
pub fn explain(rows: &mut Rows, key: &RowKey, context: &Context<'_>) -> Result<Explanation, Missing> {
    let (releaser, why) = Turn::new(rows, context).find_releaser(key)?;
    let wakes_at = match releaser {
        Some(Releaser::Time(at)) => Some(at),
        _ => None,
    };
    Ok(Explanation { why, releaser, wakes_at })
}

/// What releases a row; none for a row that has ended or waits for nothing.
///
/// # Errors
/// When rows or definitions are not loaded.
pub fn releaser(rows: &mut Rows, key: &RowKey, context: &Context<'_>) -> Result<Option<Releaser>, Missing> {
    Ok(Turn::new(rows, context).find_releaser(key)?.0)
}

pub(super) type Found = (Option<Releaser>, String);

pub(super) fn waits(releaser: Releaser, why: impl Into<String>) -> Step<Found> {
    Ok((Some(releaser), why.into()))
}

pub(super) fn rests(why: impl Into<String>) -> Step<Found> {
    Ok((None, why.into()))
}

pub(super) const LOST: &str = "it has no wake-up";

impl Turn<'_> {
    fn find_releaser(&self, key: &RowKey) -> Step<Found> {
        match key {
            RowKey::Batch => self.batch_releaser(),
            RowKey::Phase(id) if self.rows.phase(*id).is_some() => self.phase_releaser(*id),
            RowKey::Member(id) => self.member_releaser(*id),
            RowKey::Work(key) => self.work_releaser(*key),
            RowKey::Phase(_) | RowKey::MemberKey(_) => rests("there is nothing to wait for"),
        }
    }

    fn batch_releaser(&self) -> Step<Found> {
        let (releaser, why) = self.open_batch_releaser()?;
        let why =
            if self.batch().is_cancelling() { format!("the batch is being cancelled; {why}") } else { why };
        Ok((releaser, why))
    }

    fn open_batch_releaser(&self) -> Step<Found> {
        let batch = self.batch();
        if batch.status.is_terminal() {
            return rests("the batch has ended");
        }
        if !batch.is_sealed && !batch.is_cancelling() {
            return waits(Releaser::Creator, "its members are still being stored");
        }
        if batch.paused_at.is_some() && batch.ending.is_none() {
            return waits(Releaser::Request("resume_batch"), self.why_paused());
        }
        if self.find_part()?.is_some() {
            return waits(Releaser::Cursor(RowKey::Batch), "work over many members goes on");
        }
        if let Some(at) = batch.due_at() {
            return waits(Releaser::Time(at), "a blackout holds steps back");
        }
        if batch.status == BatchStatus::Detected && batch.is_manual {
            return waits(Releaser::Request("advance"), "a manual batch is advanced by people");
        }
        if let Some(init) = self.rows.inits().find(|init| init.work.status.is_open()) {
            let key = RowKey::Work(WorkKey::Init(init.id));
            return waits(Releaser::Row(key), format!("init step {:?} has not ended", init.work.step_name));
        }
        if let Some(phase) = self.rows.phases().find(|phase| !phase.status.is_terminal()) {
            let why = format!("phase {:?} has not ended", phase.phase_name);
            return waits(Releaser::Row(RowKey::Phase(phase.id)), why);
        }
        if let Some(init) = batch.rollback_of {
            let key = RowKey::Work(WorkKey::Init(init));
            return waits(Releaser::Row(key), "the rollback of an init step has not ended");
        }
        if batch.member_counts.leaving > 0 {
            let leaving = counted(batch.member_counts.leaving, "member");
            let why = format!("removal steps of {leaving} have not ended");
            return waits(Releaser::Results("removal steps"), why);
        }
        waits(Releaser::Nothing, LOST)
    }

    /// Why a paused batch waits, and what still runs in it.
    fn why_paused(&self) -> String {
        let batch = self.batch();
        let reason = batch.pause_reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let steps: u32 = self.rows.phases().map(|phase| phase.step_counts.dispatched).sum();
        let inits = self.rows.inits().filter(|init| init.work.is_called()).count();
        match steps as usize + inits {
            0 => format!("the batch is paused{reason}"),
            1 => format!("the batch is paused{reason}; 1 step that was dispatched still runs"),
            many => format!("the batch is paused{reason}; {many} steps that were dispatched still run"),
        }
    }

    fn phase_releaser(&self, id: PhaseId) -> Step<Found> {
        let phase = self.phase(id);
        let batch = self.batch();
        if phase.status.is_terminal() {
            return rests(ended_phase(phase));
        }
        if phase.cancel_cursor.is_some() {
            return waits(Releaser::Cursor(RowKey::Phase(id)), "its open steps are being cancelled");
        }
        if let Some(at) = phase.wakes_at() {
            return waits(Releaser::Time(at), wake_reason(phase));
        }
        if phase.takes_members() && phase.created < batch.members {
            return waits(Releaser::Cursor(RowKey::Phase(id)), "its steps are being created");
        }
        if phase.status == PhaseStatus::Pending && phase.ending.is_none() {
            self.pending_phase_releaser(id)
        } else {
            self.running_phase_releaser(id)
        }
    }

    fn pending_phase_releaser(&self, id: PhaseId) -> Step<Found> {
        let phase = self.phase(id);
        let batch = self.batch();
        if batch.status != BatchStatus::Active {
            return waits(Releaser::Row(RowKey::Batch), "init has not ended");
        }
        if batch.paused_at.is_some() {
            return waits(Releaser::Request("resume_batch"), "the batch is paused");
        }
        if let Some(init) = self.next_init() {
            let why = format!("init of version {} has not ended", init.runbook_version);
            return waits(Releaser::Row(WorkKey::Init(init.id).into()), why);
        }
        if let Some(before) = self.rows.phases().find(|other| {
            other.id != id
                && (other.status == PhaseStatus::Dispatched
                    || (other.status == PhaseStatus::Pending && other.id < id))
        }) && !self.are_predecessors_done(id)?
        {
            let why = format!("phase {:?} has not ended", before.phase_name);
            return waits(Releaser::Row(RowKey::Phase(before.id)), why);
        }
        if phase.due_at.is_none() {
            return waits(Releaser::Request("advance"), "a manual batch is advanced by people");
        }
        if phase.approval_requested_at.is_some() && phase.approved_at.is_none() {
            return waits(Releaser::Request("approve_phase"), "it waits for an approval");
        }
        waits(Releaser::Nothing, LOST)
    }

    fn running_phase_releaser(&self, id: PhaseId) -> Step<Found> {
        let phase = self.phase(id);
        let counts = phase.step_counts;
        if phase.places_taken > 0 {
            return waits(Releaser::Results("its steps"), open_steps(phase));
        }
        if phase.rolling_back() > 0 {
            let verb = if phase.rolling_back() == 1 { "has" } else { "have" };
            let why = format!("{} {verb} not ended", counted(phase.rolling_back(), "rollback"));
            return waits(Releaser::Results("its rollbacks"), why);
        }
        if phase.stopped_at.is_some() {
            return waits(Releaser::Request("resume_phase"), "its error budget is spent");
        }
        if phase.wave_at.is_some() && self.batch().paused_at.is_some() {
            return waits(Releaser::Request("resume_batch"), "the batch is paused");
        }
        if phase.release_cursor.is_some() {
            return self.cursor_releaser(id);
        }
        // The end of a phase that is given up, rollbacks included, releases its members here.
        let is_busy = |other: &&PhaseRow| other.step_counts.open() > 0 || other.ending.is_some();
        let busy = self.rows.phases().filter(|other| other.id < id).find(is_busy);
        match busy {
            Some(other) if counts.pending > 0 => {
                let why = if other.ending.is_some() {
                    format!("phase {:?} is being given up", other.phase_name)
                } else {
                    format!("its members have open steps in phase {:?}", other.phase_name)
                };
                waits(Releaser::Row(RowKey::Phase(other.id)), why)
            }
            _ => waits(Releaser::Nothing, LOST),
        }
    }

    /// What a release cursor waits for.
    fn cursor_releaser(&self, id: PhaseId) -> Step<Found> {
        let batch = self.batch();
        let phase = self.phase(id);
        if phase.stopped_at.is_some() {
            return waits(Releaser::Request("resume_phase"), "the error budget of the phase is spent");
        }
        if batch.paused_at.is_some() {
            return waits(Releaser::Request("resume_batch"), "the batch is paused");
        }
        if batch.blackout_until.is_some() {
            return waits(Releaser::Row(RowKey::Batch), "a blackout holds steps back");
        }
        if !self.has_place(id)? {
            let why = format!("all {} places of the phase are taken", phase.places_taken);
            return waits(Releaser::Row(RowKey::Phase(id)), why);
        }
        waits(Releaser::Cursor(RowKey::Phase(id)), "its steps are being released")
    }

    fn work_releaser(&self, key: WorkKey) -> Step<Found> {
        let Some(work) = self.rows.work(key)? else { return rests("there is no such row") };
        if work.status.is_terminal() {
            return self.ended_work(key);
        }
        if let Some(at) = work.due_at() {
            let why = match (work.status, work.is_called()) {
                (WorkStatus::Pending, _) => "its next attempt is due then",
                (_, true) => "it is dispatched and has not ended; its call is looked after then",
                _ => "it is still in progress and polled then",
            };
            return waits(Releaser::Time(at), why);
        }
        if work.status != WorkStatus::Pending {
            return waits(Releaser::Nothing, LOST);
        }
        match key {
            WorkKey::Step(id) => self.step_releaser(id),
            WorkKey::Init(_) => self.init_releaser(key),
            WorkKey::Rollback(origin, index) => {
                self.before_releaser(index, |before| WorkKey::Rollback(origin, before))
            }
            WorkKey::Removal(member, index) => {
                self.before_releaser(index, |before| WorkKey::Removal(member, before))
            }
        }
    }

    /// What a piece of work has ended as, and how its rollback is getting on.
    fn ended_work(&self, key: WorkKey) -> Step<Found> {
        let Some(work) = self.rows.work(key)? else { return rests("there is no such row") };
        let mut why = format!("it has ended: {}", work.status);
        if let (true, Some(error)) = (work.status.is_failure(), &work.error_message) {
            why.push_str(&format!(": {error}"));
        }
        let (state, error) = match key {
            WorkKey::Step(id) => match self.rows.step(id)? {
                Some(row) => (row.rollback_state, row.rollback_error.as_deref()),
                None => (None, None),
            },
            WorkKey::Init(id) => match self.rows.init(id) {
                Some(row) => (row.rollback_state, row.rollback_error.as_deref()),
                None => (None, None),
            },
            WorkKey::Rollback(..) | WorkKey::Removal(..) => (None, None),
        };
        match state {
            Some(SequenceState::Waiting | SequenceState::Running) => {
                why.push_str("; its rollback has not ended");
                return waits(Releaser::Results("its rollback"), why);
            }
            Some(SequenceState::Failed) => {
                let error = error.map_or_else(String::new, |error| format!(": {error}"));
                let request = match key {
                    WorkKey::Init(_) => "retry_init_rollback",
                    _ => "retry_rollback",
                };
                why.push_str(&format!(
                    "; its rollback has failed{error}; the request `{request}` tries it again"
                ));
            }
            Some(SequenceState::Succeeded) | None => {}
        }
        rests(why)
    }

    /// A step of a sequence waits for the one before.
    fn before_releaser(&self, index: u32, key: impl Fn(u32) -> WorkKey) -> Step<Found> {
        for before in (0..index).rev() {
            let key = key(before);
            if self.rows.work(key)?.is_some_and(|work| work.status.is_open()) {
                return waits(Releaser::Row(key.into()), "the step before it has not ended");
            }
        }
        waits(Releaser::Nothing, LOST)
    }

    fn init_releaser(&self, key: WorkKey) -> Step<Found> {
        let batch = self.batch();
        if batch.status == BatchStatus::Detected {
            return waits(Releaser::Row(RowKey::Batch), "init has not begun");
        }
        let busy = self.rows.phases().find(|phase| phase.status == PhaseStatus::Dispatched);
        if let (BatchStatus::Active, Some(phase)) = (batch.status, busy) {
            let (name, version) = (&phase.phase_name, phase.runbook_version);
            let why = format!("phase {name:?} of version {version} has not ended");
            return waits(Releaser::Row(RowKey::Phase(phase.id)), why);
        }
        let open = self.rows.inits().find(|init| init.work.status.is_open());
        if let Some(open) = open.filter(|open| WorkKey::Init(open.id) != key) {
            return waits(Releaser::Row(WorkKey::Init(open.id).into()), "the step before it has not ended");
        }
        if batch.paused_at.is_some() {
            return waits(Releaser::Request("resume_batch"), "the batch is paused");
        }
        if batch.blackout_until.is_some() {
            return waits(Releaser::Row(RowKey::Batch), "a blackout holds steps back");
        }
        waits(Releaser::Nothing, LOST)
    }

    fn step_releaser(&self, id: StepId) -> Step<Found> {
        let Some((phase, place)) = self.rows.locate(id) else { return rests("it is of another batch") };
        let (phase_id, ordinal, index) = (phase.id, place.ordinal, place.index);
        let phase_key = RowKey::Phase(phase_id);
        if phase.cancel_cursor.is_some() {
            return waits(Releaser::Cursor(phase_key), "its phase is being given up");
        }
        if phase.status == PhaseStatus::Pending {
            return waits(Releaser::Row(phase_key), format!("phase {:?} has not begun", phase.phase_name));
        }
        for before in self.rows.phases().filter(|other| other.id <= phase_id && other.step_counts.open() > 0)
        {
            let end = if before.id == phase_id { index } else { before.steps };
            for earlier in 0..end {
                let step = self.step_of(before.id, ordinal, earlier)?;
                if let Some(step) = step.filter(|step| step.work.status.is_open()) {
                    let key = WorkKey::Step(step.id).into();
                    return waits(Releaser::Row(key), "an earlier step of the member has not ended");
                }
            }
        }
        if !phase.is_gate_open(ordinal, index) {
            let wave = phase.group_of(ordinal);
            let is_later_wave = wave > phase.wave as usize;
            let why = if let (true, Some(at)) = (is_later_wave, phase.wave_at) {
                format!(
                    "its wave is {} of {}; wave {} has ended, and the next one begins after {at}",
                    wave + 1,
                    phase.groups.len(),
                    phase.wave + 1
                )
            } else if is_later_wave {
                format!(
                    "its wave is {} of {}; wave {} has not ended",
                    wave + 1,
                    phase.groups.len(),
                    phase.wave + 1
                )
            } else {
                format!("members have not ended step index {} or its rollbacks", phase.released)
            };
            return waits(Releaser::Row(phase_key), why);
        }
        let is_covered = phase.release_cursor.is_some_and(|cursor| {
            let is_index = cursor.index.is_none_or(|released| released == index);
            cursor.next <= ordinal && cursor.end.is_none_or(|end| ordinal < end) && is_index
        });
        if is_covered {
            return self.cursor_releaser(phase_id);
        }
        // The end of a phase that is given up releases its members in the later ones.
        let given_up = self.rows.phases().find(|other| other.id < phase_id && other.ending.is_some());
        match given_up {
            Some(other) => {
                let why = format!("phase {:?} is being given up", other.phase_name);
                waits(Releaser::Row(RowKey::Phase(other.id)), why)
            }
            None => waits(Releaser::Nothing, LOST),
        }
    }
}

/// What a phase has ended as, and why.
fn ended_phase(phase: &PhaseRow) -> String {
    let why = match phase.reason {
        None => return format!("the phase has ended: {}", phase.status.name()),
        Some(PhaseReason::MembersFailed) => {
            format!("{} failed", counted(phase.members_failed, "member"))
        }
        Some(reason) => reason.sentence().to_owned(),
    };
    format!("the phase has ended: {}: {why}", phase.status.name())
}

/// The open steps of a phase by what they do.
fn open_steps(phase: &PhaseRow) -> String {
    let counts = phase.step_counts;
    // Of the pending steps, those that take a place wait for their next attempt.
    let retrying = phase.places_taken.saturating_sub(counts.dispatched + counts.polling);
    let waiting = counts.pending.saturating_sub(retrying);
    let parts = [
        (counts.dispatched, "dispatched"),
        (counts.polling, "polling"),
        (retrying, "waiting for the next attempt"),
        (waiting, "waiting for their turn"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let verb = if counts.open() == 1 { "has" } else { "have" };
    format!("{} {verb} not ended: {}", counted(counts.open(), "step"), parts.join(", "))
}

fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn wake_reason(phase: &PhaseRow) -> &'static str {
    if phase.wave_at.is_some() {
        "the next wave begins then"
    } else if phase.approval_requested_at.is_some() && phase.approved_at.is_none() {
        "it waits for an approval, until then"
    } else if phase.preparing_at.is_none() {
        "its steps are created then, before it is due"
    } else {
        "it is due then"
    }
}
