//! `ManualBatchServiceTests`: batches without a start time, which people advance.

use super::random::{create, entry};
use super::scenario::{done, functions, members, model, phase, run, runbook, step};
use crate::message::{Action, Outcome, OverdueBehavior};
use crate::model::{Model, Reply};
use crate::rows::{BatchStatus, MemberStatus, PhaseStatus, RunbookId};

fn phases() -> String {
    let phases =
        [phase("late", "T-0", "", &[step("Late", "")]), phase("early", "T-5d", "", &[step("Early", "")])];
    format!("phases:\n{}", phases.concat())
}

/// A batch of two members, of which all jobs take a minute.
fn manual(body: &str) -> Model {
    let mut model = model(body, |_| Reply::After(60, done()));
    create(&mut model, None, &members(2));
    model.settle();
    model
}

/// Sends a request, and returns why it was refused.
fn refusal(model: &mut Model, action: Action) -> Option<String> {
    let before = model.refusals.len();
    model.request(action);
    model.settle();
    model.refusals.get(before).cloned()
}

fn advance(model: &mut Model) {
    assert_eq!(refusal(model, Action::Advance), None);
    run(model);
}

#[test]
fn nothing_begins_before_it_is_advanced_and_then_one_phase_at_a_time() {
    let mut model = manual(&phases());
    run(&mut model);
    assert_eq!((model.batch().status, model.batch().is_manual), (BatchStatus::Active, true));
    assert!(model.phases().all(|phase| phase.due_at.is_none() && phase.status == PhaseStatus::Pending));
    assert!(model.jobs().is_empty());
    advance(&mut model);
    assert_eq!(functions(&model), ["Early", "Early"]);
    advance(&mut model);
    assert_eq!(functions(&model), ["Early", "Early", "Late", "Late"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
    let reason = refusal(&mut model, Action::Advance).unwrap();
    assert_eq!(reason, "the batch has ended");
}

#[test]
fn init_comes_first_and_each_request_waits_for_the_end_of_the_one_before() {
    let body = format!("init: [{}]\n{}", step("Open", ""), phases());
    let mut model = manual(&body);
    assert_eq!(refusal(&mut model, Action::Advance), None);
    assert_eq!(functions(&model), ["Open"]);
    let reason = refusal(&mut model, Action::Advance).unwrap();
    assert_eq!(reason, "the init steps have not ended yet");
    run(&mut model);
    assert_eq!(functions(&model), ["Open"], "the end of init begins no phase");
    assert_eq!(refusal(&mut model, Action::Advance), None);
    assert_eq!(functions(&model), ["Open", "Early", "Early"]);
    let reason = refusal(&mut model, Action::Advance).unwrap();
    assert_eq!(reason, "phase \"early\" has not ended yet");
    run(&mut model);
    advance(&mut model);
    assert_eq!(functions(&model)[3..], ["Late", "Late"]);
}

#[test]
fn members_that_are_added_catch_up_and_those_that_are_removed_are_undone() {
    let mut model = manual(&format!("{}on_member_removed: [{}]\n", phases(), step("Undo", "")));
    advance(&mut model);
    model.request(Action::PutMembers { members: vec![entry("c")] });
    run(&mut model);
    assert_eq!(functions(&model), ["Early"; 3], "it has no part in what was not advanced");
    model.request(Action::RemoveMembers { keys: vec!["A".to_owned()] });
    run(&mut model);
    assert_eq!(functions(&model)[3..], ["Undo"]);
    assert_eq!(model.member("a").status, MemberStatus::Removed);
    advance(&mut model);
    assert_eq!(functions(&model)[4..], ["Late", "Late"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn a_cancelled_batch_advances_no_more() {
    let mut model = manual(&phases());
    advance(&mut model);
    assert_eq!(refusal(&mut model, Action::CancelBatch { reason: None }), None);
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Cancelled);
    assert_eq!(refusal(&mut model, Action::Advance).unwrap(), "the batch has ended");
}

#[test]
fn a_manual_batch_stays_with_its_version() {
    let mut model = manual(&phases());
    model.define(2, runbook(&format!("phases:\n{}", phase("other", "T-0", "", &[step("Other", "")]))));
    let publish = Action::PublishVersion {
        runbook_id: RunbookId(8),
        runbook_version: 2,
        overdue_behavior: OverdueBehavior::Rerun,
        rerun_init: false,
    };
    let reason = refusal(&mut model, publish).unwrap();
    assert_eq!(reason, "a manual batch stays with its version of the runbook");
    while !model.batch().status.is_terminal() {
        advance(&mut model);
    }
    assert_eq!(functions(&model), ["Early", "Early", "Late", "Late"]);
    assert_eq!(model.batch().runbook_version, 1);
}

#[test]
fn a_failed_phase_lets_the_next_one_be_advanced() {
    let mut model = model(&phases(), |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(1, Outcome::failed("no")),
        _ => Reply::After(1, done()),
    });
    create(&mut model, None, &members(2));
    model.settle();
    while !model.batch().status.is_terminal() {
        advance(&mut model);
    }
    assert_eq!(model.phase("early").status, PhaseStatus::Failed);
    assert_eq!(
        functions(&model),
        ["Early", "Early", "Late"],
        "a member that has failed takes no further part"
    );
    assert_eq!(model.batch().status, BatchStatus::Failed);
}

#[test]
fn a_batch_with_a_start_time_is_not_advanced() {
    let mut model = model(&phases(), |_| Reply::After(60, done()));
    model.now = super::scenario::before_sec(1_000_000);
    create(&mut model, Some(super::random::start()), &members(1));
    model.settle();
    let reason = refusal(&mut model, Action::Advance).unwrap();
    assert_eq!(reason, "only manual batches are advanced; this one follows its start time");
}
