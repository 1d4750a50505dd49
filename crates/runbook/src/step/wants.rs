//! Which rows an input needs, so that a driver loads them for many inputs at once. What is not
//! foreseen here is asked for by [`super::step`] itself.

use super::turn::Turn;
use super::{Context, Input, Part};
use crate::message::{Action, CallSeen, EventMessage, Message, Outcome, WorkReference};
use crate::rows::{
    MemberId, Ordinal, Origin, PhaseStatus, RowKey, Rows, StepId, Want, Work, WorkKey, WorkStatus, normal_key,
};

/// What an input needs that is not loaded. Loading it may show that more is needed: call again until nothing is.
pub fn wants(rows: &mut Rows, input: &Input, context: &Context<'_>) -> Vec<Want> {
    if rows.batch().is_none() {
        return Vec::new();
    }
    let mut list = List { turn: Turn::new(rows, context), wants: Vec::new() };
    list.input(input);
    let List { turn, mut wants } = list;
    wants.retain(|want| !turn.rows.has(want));
    wants
}

struct List<'a> {
    turn: Turn<'a>,
    wants: Vec<Want>,
}

impl List<'_> {
    fn row(&mut self, key: impl Into<RowKey>) {
        self.wants.push(Want::Row(key.into()));
    }

    fn input(&mut self, input: &Input) {
        match input {
            Input::Message(Message::Result(result)) => self.reference(result.work, Some(&result.outcome)),
            Input::Message(Message::Call(report)) => match &report.seen {
                CallSeen::Ended { outcome } => self.reference(report.work, Some(outcome)),
                _ => self.reference(report.work, None),
            },
            Input::Message(Message::Pool(_)) => {}
            Input::Message(Message::Event(event)) => self.event(event),
            Input::Message(Message::Request(request)) => self.action(&request.action),
            Input::Due(RowKey::Work(WorkKey::Step(id))) => self.due_step(*id),
            Input::Due(RowKey::Work(key)) => self.row(*key),
            Input::Due(_) => {}
            Input::Continue => self.part(),
        }
    }

    /// The outcome of a call; none if the call was looked after and has not ended.
    fn reference(&mut self, reference: WorkReference, outcome: Option<&Outcome>) {
        match reference {
            WorkReference::Step(id) => self.step_outcome(id, outcome),
            WorkReference::Init(_) => {}
            WorkReference::Rollback(member) => self.rollback(member),
            WorkReference::Removal(member, _) => self.removal(member),
        }
    }

    /// A step whose call was heard of. What else is needed depends on its row: often nothing, because a poll and
    /// another attempt touch no other row.
    fn step_outcome(&mut self, id: StepId, outcome: Option<&Outcome>) {
        self.row(WorkKey::Step(id));
        let (now, timeout_sec) = (self.turn.now(), self.turn.context.dispatch_timeout_sec);
        let Some(work) = self.work(id) else { return };
        let is_final = match outcome {
            Some(Outcome::Completed { .. }) => return self.completed_step(id),
            Some(Outcome::InProgress) => !work.is_poll_step,
            Some(Outcome::Failed { throttled, .. }) => !throttled && work.retry_count >= work.retry_limit,
            None => work.is_unleased_for(now, timeout_sec),
        };
        if is_final {
            self.failed_step(id);
        }
    }

    /// The row of a step, once it is loaded.
    fn work(&self, id: StepId) -> Option<&Work> {
        self.turn.rows.work(WorkKey::Step(id)).ok().flatten()
    }

    /// The member keeps outputs, and begins the next step.
    fn completed_step(&mut self, id: StepId) {
        let next = self.next_steps(id);
        let blueprint = self.turn.blueprint(WorkKey::Step(id)).ok().flatten();
        let has_outputs = blueprint.is_some_and(|blueprint| !blueprint.step().output_params.is_empty());
        if has_outputs || !next.is_empty() {
            self.step(id);
        }
        for id in next {
            self.row(WorkKey::Step(id));
        }
    }

    /// The member of a step that has failed for good takes no further part.
    fn failed_step(&mut self, id: StepId) {
        self.step(id);
        self.all_steps_with(id);
    }

    fn due_step(&mut self, id: StepId) {
        self.row(WorkKey::Step(id));
        let now = self.turn.now();
        let Some(work) = self.work(id) else { return };
        let is_late = work.poll_deadline().is_some_and(|deadline| deadline < now);
        match work.status {
            WorkStatus::Pending => self.step(id),
            WorkStatus::Polling if is_late && !work.is_called() => self.failed_step(id),
            _ => {}
        }
    }

    /// A step and its member.
    fn step(&mut self, id: StepId) {
        let Some((_, place)) = self.turn.rows.locate(id) else { return };
        self.row(WorkKey::Step(id));
        if let Some(member) = self.turn.batch().member_id(place.ordinal) {
            self.row(RowKey::Member(member));
        }
    }

    /// The steps that may begin when one was passed.
    fn next_steps(&self, id: StepId) -> Vec<StepId> {
        let Some((phase, place)) = self.turn.rows.locate(id) else { return Vec::new() };
        let next = place.index + 1;
        let mut found = Vec::new();
        if next < phase.steps {
            found.extend(
                phase.step_id(place.ordinal, next).filter(|_| phase.is_gate_open(place.ordinal, next)),
            );
        } else {
            for later in self.turn.rows.phases() {
                let is_begun = later.status == PhaseStatus::Dispatched && place.ordinal < later.created;
                if later.id > phase.id && is_begun {
                    found.extend(later.step_id(place.ordinal, 0));
                }
            }
        }
        found
    }

    /// All steps of the member of a step.
    fn all_steps_with(&mut self, id: StepId) {
        let place = self.turn.rows.locate(id).map(|(_, place)| place);
        if let Some(place) = place {
            self.all_steps(place.ordinal);
        }
    }

    fn all_steps(&mut self, ordinal: Ordinal) {
        let mut ids = Vec::new();
        for phase in self.turn.rows.phases().filter(|phase| ordinal < phase.created) {
            ids.extend((0..phase.steps).filter_map(|index| phase.step_id(ordinal, index)));
        }
        for id in ids {
            self.row(WorkKey::Step(id));
        }
    }

    fn whole_member(&mut self, id: MemberId) {
        if let Some(ordinal) = self.turn.batch().ordinal(id) {
            self.row(RowKey::Member(id));
            self.all_steps(ordinal);
        }
    }

    fn rollback(&mut self, member: Option<MemberId>) {
        let origin = match member {
            None => self.turn.batch().rollback_of.map(Origin::Init),
            Some(id) if self.turn.batch().ordinal(id).is_none() => None,
            Some(id) => {
                self.row(RowKey::Member(id));
                let member = self.turn.member(id).ok().flatten();
                member.and_then(|member| member.rollback_of).map(Origin::Step)
            }
        };
        let Some(origin) = origin else { return };
        if let Origin::Step(id) = origin {
            self.row(WorkKey::Step(id));
        }
        self.row(WorkKey::Rollback(origin, 0));
        for index in 1..self.turn.rollback_length(origin).unwrap_or(0) {
            self.row(WorkKey::Rollback(origin, index));
        }
    }

    fn removal(&mut self, id: MemberId) {
        if self.turn.batch().ordinal(id).is_none() {
            return;
        }
        self.row(RowKey::Member(id));
        let steps = self.turn.member(id).ok().flatten().map_or(0, |member| member.removal_steps);
        for index in 0..steps {
            self.row(WorkKey::Removal(id, index));
        }
    }

    fn event(&mut self, event: &EventMessage) {
        match event {
            EventMessage::BatchInit { .. } | EventMessage::PhaseDue { .. } => {}
            EventMessage::MemberAdded { batch_member_id, .. }
            | EventMessage::MemberRemoved { batch_member_id, .. } => self.whole_member(*batch_member_id),
            EventMessage::PollCheck { step_execution_id, is_init_step: false, .. }
            | EventMessage::RetryCheck { step_execution_id, is_init_step: false, .. }
            | EventMessage::DispatchTimeout { step_execution_id, is_init_step: false, .. } => {
                self.step(StepId(*step_execution_id));
            }
            _ => {}
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::PutMembers { members } => {
                for entry in members {
                    self.key(&entry.key, Self::member);
                }
            }
            Action::RemoveMembers { keys } => {
                for key in keys {
                    self.key(key, Self::whole_member);
                }
            }
            Action::ResumeMember { batch_member_id } | Action::CancelMember { batch_member_id } => {
                self.whole_member(*batch_member_id);
            }
            Action::RetryMembers { batch_member_ids: Some(ids), .. } => {
                for id in ids {
                    self.whole_member(*id);
                }
            }
            Action::CancelStep { step_execution_id } | Action::SkipStep { step_execution_id } => {
                self.step(*step_execution_id);
                self.all_steps_with(*step_execution_id);
            }
            Action::RetryRollback { step_execution_id } => self.step(*step_execution_id),
            Action::RetryRemoval { batch_member_id } => self.removal(*batch_member_id),
            _ => {}
        }
    }

    fn member(&mut self, id: MemberId) {
        self.row(RowKey::Member(id));
    }

    /// A member by its key, once the key is loaded.
    fn key(&mut self, key: &str, then: fn(&mut Self, MemberId)) {
        let key = normal_key(key);
        let found = self.turn.rows.member_key(&key).map(|found| found.map(|found| found.batch_member_id));
        match found {
            Err(_) => self.row(RowKey::MemberKey(key)),
            Ok(Some(id)) => then(self, id),
            Ok(None) => {}
        }
    }

    fn part(&mut self) {
        let Ok(Some(part)) = self.turn.find_part() else { return };
        match part {
            Part::Create(phase, range) => {
                self.wants.extend(self.turn.want_members(range.clone()));
                if range.start < self.turn.phase(phase).created_before {
                    let steps = self.turn.phase(phase).steps;
                    for ordinal in range {
                        let ids: Vec<StepId> = (0..steps)
                            .filter_map(|index| self.turn.phase(phase).step_id(ordinal, index))
                            .collect();
                        ids.into_iter().for_each(|id| self.row(WorkKey::Step(id)));
                    }
                }
            }
            Part::Release(phase, range) => {
                self.wants.extend(self.turn.want_members(range.clone()));
                let row = self.turn.phase(phase);
                let indexes = match row.release_cursor.and_then(|cursor| cursor.index) {
                    Some(index) => index..index + 1,
                    None => 0..row.steps,
                };
                for index in indexes {
                    self.wants.extend(self.turn.want_steps(phase, index, range.clone()));
                }
                for earlier in self.turn.rows.phases() {
                    if earlier.id < phase && earlier.step_counts.open() > 0 {
                        let last = earlier.steps.saturating_sub(1);
                        self.wants.extend(self.turn.want_steps(earlier.id, last, range.clone()));
                    }
                }
            }
            Part::Cancel(phase, range) => {
                for index in 0..self.turn.phase(phase).steps {
                    self.wants.extend(self.turn.want_steps(phase, index, range.clone()));
                }
            }
            Part::Retry(range) => self.wants.extend(self.turn.want_members(range)),
        }
    }
}
