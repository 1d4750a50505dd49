//! `PhaseDueHandlerTests`: how a phase begins, and with which steps.

use super::random::{create, entry, start};
use super::scenario::{
    all_succeed, batch, before_sec, dispatches, done, functions, is_ignored, members, model, phase,
    phase_due, run, run_until_sec, step,
};
use crate::message::{Action, EventMessage, Outcome};
use crate::model::{Model, Reply};
use crate::rows::{MemberId, PhaseId, PhaseStatus, WorkStatus};
use crate::step::{Effect, Event, IgnoredReason};

/// A batch of two members, created a day before its start, with two steps each.
fn a_day_before() -> Model {
    let steps = [step("Do", r#"params: {To: "{{Key}}"}"#), step("Then", "")];
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &steps));
    let mut model = model(&body, |_| Reply::After(60, done()));
    model.now = before_sec(86_400);
    create(&mut model, Some(start()), &members(2));
    model.settle();
    model
}

/// Members of the `phase-due` messages that were sent.
fn announced(model: &Model) -> Vec<MemberId> {
    let of = |effect: &Effect| match effect {
        Effect::Announce(Event::Bus(EventMessage::PhaseDue { member_ids, .. })) => Some(member_ids.clone()),
        _ => None,
    };
    model.effects.iter().filter_map(of).flatten().collect()
}

#[test]
fn steps_are_created_resolved_before_the_phase_is_due_and_begin_to_the_second() {
    let mut model = a_day_before();
    assert_eq!(model.steps().count(), 0);
    model.run_until(before_sec(1));
    assert_eq!(model.steps().count(), 4);
    assert!(model.steps().all(|row| row.work.status == WorkStatus::Pending));
    assert_eq!(model.step("b", "Do").work.params_json, r#"{"To":"b"}"#);
    assert!(model.jobs().is_empty() && announced(&model).is_empty());
    run_until_sec(&mut model, 0);
    assert_eq!(functions(&model), ["Do", "Do"], "index 0 of all members, and no other");
    assert_eq!(announced(&model), [MemberId(1), MemberId(2)]);
    let row = model.phase("cutover");
    assert_eq!((row.status, row.dispatched_at), (PhaseStatus::Dispatched, Some(start())));
    run(&mut model);
    assert_eq!(functions(&model), ["Do", "Do", "Then", "Then"]);
    assert_eq!(model.phase("cutover").status, PhaseStatus::Completed);
}

#[test]
fn a_placeholder_without_a_value_creates_all_steps_with_raw_params() {
    let steps = [step("Do", ""), step("Use", r#"params: {Id: "{{Later}}"}"#), step("Last", "")];
    let mut model = batch(&format!("phases:\n{}", phase("cutover", "T-0", "", &steps)), 1, all_succeed);
    model.settle();
    assert_eq!(model.steps().count(), 3);
    assert_eq!(model.step("a", "Use").work.params_json, r#"{"Id":"{{Later}}"}"#);
    run(&mut model);
    let work = &model.step("a", "Use").work;
    assert_eq!(work.status, WorkStatus::Failed);
    assert!(work.error_message.as_deref().unwrap().contains("Later"), "{work:?}");
    assert_eq!(functions(&model), ["Do"], "what cannot be resolved is never sent");
    assert_eq!(model.step("a", "Last").work.status, WorkStatus::Cancelled);
}

#[test]
fn members_that_take_no_part_have_no_steps() {
    let phases =
        [phase("first", "T-1h", "", &[step("First", "")]), phase("cutover", "T-0", "", &[step("Do", "")])];
    let mut model =
        model(&format!("phases:\n{}", phases.concat()), |dispatch| match dispatch.job_id.as_str() {
            "step-1" => Reply::After(1, Outcome::failed("no")),
            _ => Reply::After(1, done()),
        });
    model.now = before_sec(3_600);
    create(&mut model, Some(start()), &members(4));
    model.run_until(before_sec(1_800));
    model.request(Action::RemoveMembers { keys: vec!["b".to_owned()] });
    let batch_member_id = model.member("c").id;
    model.request(Action::CancelMember { batch_member_id });
    model.request(Action::PutMembers { members: vec![entry("e")] });
    run(&mut model);
    let done: Vec<_> = dispatches(&model).filter(|job| job.function_name == "Do").collect();
    assert_eq!(done.len(), 2, "{done:#?}");
    for (member, has_step) in [("a", false), ("b", false), ("c", false), ("d", true), ("e", true)] {
        let id = model.member(member).id;
        let cutover = model.phase("cutover").id;
        let mut steps = model.steps().filter(|row| row.batch_member_id == id);
        assert_eq!(steps.any(|row| row.phase_execution_id == cutover), has_step, "{member}");
    }
}

#[test]
fn a_phase_without_members_is_completed() {
    let mut model =
        batch(&format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", "")])), 0, all_succeed);
    run(&mut model);
    assert_eq!(model.phase("cutover").status, PhaseStatus::Completed);
    assert!(model.jobs().is_empty());
}

#[test]
fn messages_of_other_schedulers_begin_nothing_early_and_nothing_twice() {
    let mut model = a_day_before();
    let id = model.phase("cutover").id;
    let message = phase_due(&model, id);
    is_ignored(&mut model, message.clone(), IgnoredReason::Early);
    let unknown = phase_due(&model, PhaseId(99));
    is_ignored(&mut model, unknown, IgnoredReason::Unknown);
    run_until_sec(&mut model, 0);
    is_ignored(&mut model, message.clone(), IgnoredReason::Duplicate);
    run(&mut model);
    is_ignored(&mut model, message, IgnoredReason::Ended);
    assert_eq!(model.jobs().len(), 4);
}
