//! One input being applied: the rows, what is known besides, and the effects so far.

use std::sync::Arc;

use jiff::Timestamp;

use super::effect::{Effect, Effects, Event, IgnoredReason, Notice, Verdict};
use super::{Context, Input};
use crate::blackout::blackout_until;
use crate::definition::{Definition, Members, Phase, StepDefinition};
use crate::message::{Action, Message, Request};
use crate::rows::{
    BatchRow, MemberId, MemberRow, Missing, Ordinal, PhaseId, PhaseRow, RowKey, Rows, StepRow, Want, WorkKey,
};

/// The result of something that may need rows which are not loaded.
pub(super) type Step<T> = Result<T, Missing>;

/// One input being applied.
pub(super) struct Turn<'a> {
    pub(super) rows: &'a mut Rows,
    pub(super) context: &'a Context<'a>,
    effects: Vec<Effect>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(rows: &'a mut Rows, context: &'a Context<'a>) -> Self {
        Turn { rows, context, effects: Vec::new() }
    }

    pub(super) fn into_effects(self, verdict: Verdict) -> Effects {
        Effects { verdict, list: self.effects }
    }

    /// Applies an input and draws the consequences.
    pub(super) fn apply(&mut self, input: &Input) -> Step<Verdict> {
        if self.rows.batch().is_none() {
            if let Input::Message(Message::Request(Request { action: Action::CreateBatch { .. }, .. })) =
                input
            {
            } else {
                return Ok(Verdict::Ignored(IgnoredReason::Unknown));
            }
        }
        let verdict = match input {
            Input::Message(Message::Event(event)) => self.take_event(event)?,
            Input::Message(Message::Result(result)) => self.take_result(result)?,
            Input::Message(Message::Call(report)) => self.take_report(report)?,
            Input::Message(Message::Pool(report)) => self.take_pool_report(report),
            Input::Message(Message::Request(request)) => self.take_request(request)?,
            Input::Due(RowKey::Work(key)) => self.take_due(*key)?,
            // Phases and batches that are due are found out about by settling.
            Input::Due(_) => Verdict::Applied,
            Input::Continue => self.take_part()?,
        };
        self.settle()?;
        Ok(verdict)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.now
    }

    pub(super) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn announce(&mut self, event: Event) {
        self.effects.push(Effect::Announce(event));
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        self.effects.push(Effect::Notify(notice));
    }

    pub(super) fn batch(&self) -> &BatchRow {
        self.rows.batch().expect("an input is applied to a batch that exists")
    }

    pub(super) fn batch_mut(&mut self) -> &mut BatchRow {
        self.rows.batch_mut().expect("an input is applied to a batch that exists")
    }

    pub(super) fn phase(&self, id: PhaseId) -> &PhaseRow {
        self.rows.phase(id).expect("ids of phases are taken from the rows")
    }

    pub(super) fn phase_mut(&mut self, id: PhaseId) -> &mut PhaseRow {
        self.rows.phase_mut(id).expect("ids of phases are taken from the rows")
    }

    /// Ids of the phases in the order in which they run: by version, then by position.
    pub(super) fn phase_ids(&self) -> Vec<PhaseId> {
        self.rows.phases().map(|phase| phase.id).collect()
    }

    pub(super) fn member(&self, id: MemberId) -> Step<Option<&MemberRow>> {
        self.rows.member(id)
    }

    /// A member's step; none where its place has no row.
    pub(super) fn step_of(&self, phase: PhaseId, ordinal: Ordinal, index: u32) -> Step<Option<&StepRow>> {
        match self.phase(phase).step_id(ordinal, index) {
            Some(id) if ordinal < self.phase(phase).created => self.rows.step(id),
            _ => Ok(None),
        }
    }

    /// The definition of a version.
    pub(super) fn definition(&self, version: u32) -> Step<Arc<Definition>> {
        let definition = self.context.definitions.get(&version).cloned();
        definition.ok_or_else(|| Missing(vec![Want::Definition(version)]))
    }

    /// The definition of a phase. A version that has no such phase cannot have created the row.
    pub(super) fn with_phase<T>(&self, id: PhaseId, read: impl FnOnce(&Definition, &Phase) -> T) -> Step<T> {
        let phase = self.phase(id);
        let definition = self.definition(phase.runbook_version)?;
        let found = definition
            .phases
            .get(phase.position as usize)
            .expect("the version that created a phase defines it");
        Ok(read(&definition, found))
    }

    /// Whether members of a phase wait for each other.
    pub(super) fn is_barrier(&self, id: PhaseId) -> Step<bool> {
        self.with_phase(id, |definition, _| definition.members == Members::Barrier)
    }

    /// The definition of a piece of work, with the member whose data it sees.
    pub(super) fn blueprint(&self, key: WorkKey) -> Step<Option<Blueprint>> {
        let (version, member, path) = match key {
            WorkKey::Step(id) => {
                let Some((phase, place)) = self.rows.locate(id) else { return Ok(None) };
                let member = self.batch().member_id(place.ordinal);
                (phase.runbook_version, member, StepPath::Phase(phase.position, place.index))
            }
            WorkKey::Init(id) => {
                let Some(row) = self.rows.init(id) else { return Ok(None) };
                (row.runbook_version, None, StepPath::Init(row.work.step_index))
            }
            WorkKey::Rollback(origin, index) => {
                let Some(row) = self.rows.rollback(origin, index)? else { return Ok(None) };
                let path = StepPath::Rollback(row.rollback_name.clone(), index);
                (row.runbook_version, row.batch_member_id, path)
            }
            WorkKey::Removal(member, index) => {
                let Some(row) = self.rows.removal(member, index)? else { return Ok(None) };
                (row.runbook_version, Some(member), StepPath::Removal(index))
            }
        };
        let definition = self.definition(version)?;
        let blueprint = Blueprint { version, member, definition, path };
        Ok(blueprint.find().is_some().then_some(blueprint))
    }

    /// When the blackout ends that holds steps back now.
    pub(super) fn blackout(&self) -> Step<Option<Timestamp>> {
        let definition = self.definition(self.batch().runbook_version)?;
        Ok(blackout_until(&definition.blackout, self.context.zones, self.now()))
    }
}

/// Where a step is defined.
#[derive(Debug, Clone)]
pub(super) enum StepPath {
    /// In a phase, by positions of both.
    Phase(u32, u32),
    Init(u32),
    Rollback(String, u32),
    Removal(u32),
}

/// The definition of a piece of work.
pub(super) struct Blueprint {
    pub(super) version: u32,
    /// The member whose data it sees.
    pub(super) member: Option<MemberId>,
    pub(super) definition: Arc<Definition>,
    pub(super) path: StepPath,
}

impl Blueprint {
    fn find(&self) -> Option<&StepDefinition> {
        match &self.path {
            StepPath::Phase(phase, index) => {
                self.definition.phases.get(*phase as usize)?.steps.get(*index as usize)
            }
            StepPath::Init(index) => self.definition.init.get(*index as usize),
            StepPath::Rollback(name, index) => self.definition.rollbacks.get(name)?.get(*index as usize),
            StepPath::Removal(index) => self.definition.on_member_removed.get(*index as usize),
        }
    }

    /// The step.
    pub(super) fn step(&self) -> &StepDefinition {
        self.find().expect("a blueprint is made of a step that exists")
    }
}
