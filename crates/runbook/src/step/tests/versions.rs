//! A newer version while the older one is at work: no member has steps of both at once, and
//! approvals are kept.

use super::scenario::{batch, dispatches, done, phase, run, run_until_sec, runbook, step};
use crate::message::{Action, OverdueBehavior};
use crate::model::{Model, Reply};
use crate::rows::{BatchStatus, PhaseId, PhaseStatus, RowKey, RunbookId, WorkKey, WorkStatus};
use crate::step::Releaser;

fn publish(model: &mut Model, body: &str, rerun_init: bool) {
    model.define(2, runbook(body));
    let (runbook_id, overdue_behavior) = (RunbookId(8), OverdueBehavior::Rerun);
    model.request(Action::PublishVersion { runbook_id, runbook_version: 2, overdue_behavior, rerun_init });
    model.settle();
}

/// Versions of the jobs that were sent, in order.
fn versions(model: &Model) -> Vec<u32> {
    dispatches(model).map(|dispatch| dispatch.correlation_data.runbook_version).collect()
}

#[test]
fn steps_of_a_new_version_wait_for_the_end_of_those_of_the_old_one() {
    for members in ["barrier", "independent"] {
        let body = format!(
            "members: {members}\nphases:\n{}",
            phase("cutover", "T-0", "", &[step("Do", ""), step("Then", "")])
        );
        let mut model = batch(&body, 2, |_| Reply::After(600, done()));
        run_until_sec(&mut model, 10);
        publish(&mut model, &body, false);
        run_until_sec(&mut model, 1_100);
        assert_eq!(versions(&model), [1; 4], "{members}: the old steps have not ended");
        let new = model.phase("cutover").id;
        let explanation = model.explain(&RowKey::Phase(new));
        assert_eq!(explanation.releaser, Some(Releaser::Row(RowKey::Phase(PhaseId(1)))), "{explanation:?}");
        run(&mut model);
        assert_eq!(versions(&model), [1, 1, 1, 1, 2, 2, 2, 2], "{members}");
        assert_eq!(model.batch().status, BatchStatus::Completed);
    }
}

#[test]
fn init_of_a_new_version_waits_for_the_end_of_the_steps_of_the_old_one() {
    let phases = phase("cutover", "T-0", "", &[step("Do", "")]);
    let body = format!("init: [{}]\nphases:\n{phases}", step("Open", ""));
    let mut model = batch(&body, 1, |dispatch| match dispatch.function_name.as_str() {
        "Do" => Reply::After(600, done()),
        _ => Reply::After(1, done()),
    });
    run_until_sec(&mut model, 10);
    publish(&mut model, &body, true);
    run_until_sec(&mut model, 500);
    assert_eq!(model.jobs(), ["init-1", "step-1"], "the old step has not ended");
    let init = model.inits().last().unwrap().id;
    let explanation = model.explain(&RowKey::Work(WorkKey::Init(init)));
    assert_eq!(explanation.releaser, Some(Releaser::Row(RowKey::Phase(PhaseId(1)))), "{explanation:?}");
    let new = model.phase("cutover").id;
    let explanation = model.explain(&RowKey::Phase(new));
    assert_eq!(explanation.why, "init of version 2 has not ended");
    run(&mut model);
    assert_eq!(versions(&model), [1, 1, 2, 2]);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn an_approval_that_was_given_early_is_kept_if_the_new_version_asks_for_the_same() {
    for (approval, is_kept) in [("approval: true", true), ("approval: {message: sure?}", false)] {
        let phases = |approval: &str| {
            let first = phase("first", "T-0", "", &[step("Do", "")]);
            format!("phases:\n{first}{}", phase("second", "T-0", approval, &[step("Then", "")]))
        };
        let mut model = batch(&phases("approval: true"), 1, |_| Reply::After(60, done()));
        run_until_sec(&mut model, 10);
        let second = model.phase("second").id;
        model.request(Action::ApprovePhase { phase_execution_id: second });
        model.settle();
        publish(&mut model, &phases(approval), false);
        let renewed = model.phase("second");
        assert!(renewed.id > second);
        assert_eq!(renewed.approved_at.is_some(), is_kept, "{approval}");
        run(&mut model);
        let status = if is_kept { PhaseStatus::Completed } else { PhaseStatus::Pending };
        assert_eq!(model.phase("second").status, status, "{approval}");
    }
}

#[test]
fn an_approval_that_was_used_is_wanted_again_for_a_phase_that_runs_again() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "approval: true", &[step("Do", "")]));
    let mut model = batch(&body, 1, |_| Reply::After(60, done()));
    model.settle();
    let id = model.phase("cutover").id;
    model.request(Action::ApprovePhase { phase_execution_id: id });
    run_until_sec(&mut model, 10);
    publish(&mut model, &body, false);
    run(&mut model);
    assert_eq!(model.phase("cutover").status, PhaseStatus::Pending);
    assert_eq!(versions(&model), [1]);
}
