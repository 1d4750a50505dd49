//! `PhaseProgressionServiceTests`: how members, phases and batches go on.

use super::random::entry;
use super::scenario::{all_succeed, batch, dispatches, done, functions, phase, run, run_until_sec, step};
use crate::message::{Action, Outcome};
use crate::model::Reply;
use crate::rows::{BatchStatus, MemberStatus, PhaseStatus, RowKey, WorkKey, WorkStatus};
use crate::step::Releaser;

/// Two steps, of which the first takes a minute for member `a` and five for `b`.
fn two_steps(members: &str) -> crate::model::Model {
    let steps = [step("Do", ""), step("Then", "")];
    let body = format!("members: {members}\nphases:\n{}", phase("cutover", "T-0", "", &steps));
    batch(&body, 2, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(60, done()),
        _ => Reply::After(300, done()),
    })
}

#[test]
fn independent_members_do_not_wait_for_others() {
    let mut model = two_steps("independent");
    run_until_sec(&mut model, 61);
    assert_eq!(functions(&model), ["Do", "Do", "Then"]);
}

#[test]
fn members_wait_for_each_other_at_every_step_index() {
    let mut model = two_steps("barrier");
    run_until_sec(&mut model, 299);
    assert_eq!(functions(&model), ["Do", "Do"]);
    run_until_sec(&mut model, 301);
    assert_eq!(functions(&model), ["Do", "Do", "Then", "Then"]);
}

#[test]
fn steps_are_stored_as_written_until_an_output_resolves_them() {
    let steps =
        [step("Make", "output_params: {TargetId: Id}"), step("Use", r#"params: {UserId: "{{TargetId}}"}"#)];
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &steps));
    let mut model = batch(&body, 1, all_succeed);
    model.settle();
    assert_eq!(model.step("a", "Use").work.params_json, r#"{"UserId":"{{TargetId}}"}"#);
    run(&mut model);
    assert_eq!(dispatches(&model).last().unwrap().params_json, r#"{"UserId":"x"}"#);
    assert_eq!(model.step("a", "Use").work.params_json, r#"{"UserId":"x"}"#);
}

#[test]
fn a_failed_member_has_its_open_steps_cancelled_in_all_phases() {
    let phases = [
        phase("first", "T-1d", "", &[step("Do", ""), step("Then", "")]),
        phase("second", "T-0", "", &[step("Last", "")]),
    ];
    let body = format!("members: independent\nphases:\n{}", phases.concat());
    let mut model = batch(&body, 2, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(60, Outcome::failed("no")),
        _ => Reply::After(60, done()),
    });
    run(&mut model);
    assert_eq!(model.member("a").status, MemberStatus::Failed);
    for (name, status) in
        [("Do", WorkStatus::Failed), ("Then", WorkStatus::Cancelled), ("Last", WorkStatus::Cancelled)]
    {
        assert_eq!(model.step("a", name).work.status, status, "{name}");
        assert_eq!(model.step("b", name).work.status, WorkStatus::Succeeded, "{name}");
    }
}

#[test]
fn a_phase_ends_by_the_share_of_members_that_succeeded() {
    for (threshold, phase_status, batch_status) in [
        (100, PhaseStatus::Failed, BatchStatus::Failed),
        (51, PhaseStatus::Failed, BatchStatus::Failed),
        (50, PhaseStatus::Completed, BatchStatus::Completed),
        (1, PhaseStatus::Completed, BatchStatus::Completed),
    ] {
        let more = format!("success_threshold: {threshold}");
        let body = format!("phases:\n{}", phase("cutover", "T-0", &more, &[step("Do", "")]));
        let mut model = batch(&body, 2, |dispatch| match dispatch.job_id.as_str() {
            "step-1" => Reply::After(1, Outcome::failed("no")),
            _ => Reply::After(1, done()),
        });
        run(&mut model);
        assert_eq!(model.phase("cutover").status, phase_status, "{threshold}");
        assert_eq!(model.batch().status, batch_status, "{threshold}");
    }
}

#[test]
fn a_batch_whose_phases_were_all_skipped_has_failed() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", "")]));
    let mut model = batch(&body, 1, all_succeed);
    model.request(Action::SkipPhase { phase_execution_id: crate::rows::PhaseId(1) });
    run(&mut model);
    assert_eq!(model.phase("cutover").status, PhaseStatus::Skipped);
    assert_eq!(model.batch().status, BatchStatus::Failed);
    assert_eq!(
        model.batch().error_message.as_deref(),
        Some("no phase was completed: all were skipped or superseded")
    );
}

#[test]
fn a_late_member_catches_up_in_due_order() {
    let phases =
        [phase("first", "T-1d", "", &[step("First", "")]), phase("second", "T-0", "", &[step("Second", "")])];
    let mut model = batch(&format!("phases:\n{}", phases.concat()), 1, |_| Reply::After(60, done()));
    run_until_sec(&mut model, 90);
    assert_eq!(functions(&model), ["First", "Second"]);
    model.request(Action::PutMembers { members: vec![entry("z")] });
    run(&mut model);
    assert_eq!(functions(&model), ["First", "Second", "First", "Second"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn a_failed_init_step_fails_the_batch_and_no_phase_begins() {
    let phases = phase("cutover", "T-0", "", &[step("Do", "")]);
    let body = format!("init: [{}, {}]\nphases:\n{phases}", step("Open", ""), step("Fill", ""));
    let mut model = batch(&body, 1, |_| Reply::After(1, Outcome::failed("no")));
    run(&mut model);
    assert_eq!(model.jobs(), ["init-1"]);
    let statuses: Vec<_> = model.inits().map(|init| init.work.status).collect();
    assert_eq!(statuses, [WorkStatus::Failed, WorkStatus::Cancelled]);
    assert_eq!(model.batch().status, BatchStatus::Failed);
}

#[test]
fn a_step_that_is_held_back_names_the_request_that_releases_it() {
    let mut model = two_steps("barrier");
    model.settle();
    let then = RowKey::Work(WorkKey::Step(model.step("a", "Then").id));
    let explanation = model.explain(&then);
    assert_eq!(explanation.why, "an earlier step of the member has not ended");
    model.request(Action::PauseBatch { reason: None });
    run(&mut model);
    let explanation = model.explain(&then);
    assert_eq!(explanation.releaser, Some(Releaser::Request("resume_batch")), "{explanation:?}");
}

/// The most steps that were at work at once.
fn most_at_once(max_parallel: &str, members: &str, count: u8) -> usize {
    let steps = [step("Do", ""), step("Then", "")];
    let more = format!("max_parallel: {max_parallel}");
    let body = format!("members: {members}\nphases:\n{}", phase("cutover", "T-0", &more, &steps));
    let mut model = batch(&body, count, |_| Reply::After(60, done()));
    let mut most = 0;
    loop {
        model.settle();
        most = most.max(model.calls().filter(|(_, call)| call.is_open()).count());
        if !model.tick() {
            break;
        }
    }
    assert_eq!(model.batch().status, BatchStatus::Completed);
    assert_eq!(functions(&model).len(), 2 * usize::from(count));
    most
}

#[test]
fn a_phase_has_as_many_members_at_work_as_it_says_or_a_share_of_them() {
    for members in ["barrier", "independent"] {
        for (max_parallel, count, most) in
            [("3", 10, 3), ("20", 10, 10), ("30%", 10, 3), ("25%", 10, 3), ("1%", 10, 1), ("100%", 10, 10)]
        {
            assert_eq!(
                most_at_once(max_parallel, members, count),
                most,
                "{max_parallel} of {count}, {members}"
            );
        }
    }
}
