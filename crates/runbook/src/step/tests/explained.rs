//! What is told of members, steps and phases: failed removals and rollbacks, waves, approvals,
//! counts.

use super::scenario::{batch, done, phase, run, run_until_sec, step};
use crate::message::{Action, Outcome};
use crate::model::{Model, Reply};
use crate::rows::{PhaseReason, PhaseStatus, RowKey, SequenceState, WorkKey, WorkStatus};
use crate::step::Releaser;

/// One step whose rollback, and whose removal step, fail as long as the job is not a repeated one.
fn failing_sequences() -> Model {
    let phases = phase("cutover", "T-0", "", &[step("Do", "on_failure: undo")]);
    let body = format!(
        "phases:\n{phases}on_member_removed: [{}]\nrollbacks: {{undo: [{}, {}]}}\n",
        step("Leave", ""),
        step("Undo", ""),
        step("After", ""),
    );
    batch(&body, 2, |dispatch| match (dispatch.function_name.as_str(), dispatch.job_id.contains("run-2")) {
        ("Do", _) if dispatch.job_id == "step-1" => Reply::After(1, Outcome::failed("no licence")),
        ("Undo" | "Leave", false) => Reply::After(1, Outcome::failed("no access")),
        _ => Reply::After(1, done()),
    })
}

fn member_why(model: &mut Model, key: &str) -> String {
    let id = model.member(key).id;
    model.explain(&RowKey::Member(id)).why
}

#[test]
fn a_failed_rollback_is_told_with_its_error_until_it_is_retried() {
    let mut model = failing_sequences();
    run(&mut model);
    let failed = model.step("a", "Do").clone();
    assert_eq!(failed.rollback_state, Some(SequenceState::Failed));
    assert_eq!(failed.rollback_error.as_deref(), Some("step \"Undo\" failed: no access"));
    let why = member_why(&mut model, "a");
    assert_eq!(
        why,
        "it has failed in step \"Do\" (step-1) of phase \"cutover\": no licence; its rollback has failed: step \"Undo\" \
         failed: no access; the request `retry_rollback` tries it again; the request `retry_members` tries the member again"
    );
    let explanation = model.explain(&RowKey::Work(WorkKey::Step(failed.id)));
    assert_eq!(explanation.releaser, None);
    assert!(
        explanation.why.contains("its rollback has failed: step \"Undo\" failed: no access"),
        "{explanation:?}"
    );
    model.request(Action::RetryRollback { step_execution_id: failed.id });
    run(&mut model);
    let rolled_back = model.step("a", "Do");
    assert_eq!((rolled_back.work.status, &rolled_back.rollback_error), (WorkStatus::RolledBack, &None));
    assert!(member_why(&mut model, "a").contains("the step is rolled back"));
}

#[test]
fn a_failed_removal_is_told_with_its_error_until_it_is_retried() {
    let mut model = failing_sequences();
    model.settle();
    model.request(Action::RemoveMembers { keys: vec!["b".to_owned()] });
    model.settle();
    let id = model.member("b").id;
    let explanation = model.explain(&RowKey::Member(id));
    assert_eq!(explanation.why, "its removal steps have not ended");
    assert_eq!(explanation.releaser, Some(Releaser::Row(WorkKey::Removal(id, 0).into())));
    run(&mut model);
    let member = model.member("b");
    assert_eq!(member.removal_error.as_deref(), Some("step \"Leave\" failed: no access"));
    assert_eq!(
        member_why(&mut model, "b"),
        "it has left, and its removal steps have failed: step \"Leave\" failed: no access; the request \
         `retry_removal` tries them again"
    );
    model.request(Action::RetryRemoval { batch_member_id: id });
    run(&mut model);
    assert_eq!(model.member("b").removal_error, None);
    assert_eq!(member_why(&mut model, "b"), "it has left, and its removal steps have succeeded");
}

#[test]
fn a_member_tells_its_open_step_or_the_phase_that_comes_next() {
    let phases = [
        phase(
            "cutover",
            "T-0",
            "waves: [{percent: 50, pause: 10m}, 100]",
            &[step("Do", ""), step("Then", "")],
        ),
        phase("later", "T-0", "", &[step("Last", "")]),
    ];
    let mut model = batch(&format!("phases:\n{}", phases.concat()), 2, |_| Reply::After(60, done()));
    run_until_sec(&mut model, 10);
    assert_eq!(member_why(&mut model, "a"), "step \"Do\" of phase \"cutover\" is dispatched");
    let of_b = RowKey::Work(WorkKey::Step(model.step("b", "Do").id));
    assert_eq!(model.explain(&of_b).why, "its wave is 2 of 2; wave 1 has not ended");
    run_until_sec(&mut model, 200);
    assert_eq!(model.step("a", "Then").work.status, WorkStatus::Succeeded);
    assert_eq!(member_why(&mut model, "a"), "it has no open step; phase \"later\" comes next");
    let explanation = model.explain(&of_b);
    assert!(
        explanation.why.starts_with("its wave is 2 of 2; wave 1 has ended, and the next one begins after")
    );
    let cutover = model.phase("cutover").id;
    assert_eq!(model.explain(&RowKey::Phase(cutover)).why, "the next wave begins then");
    run(&mut model);
    assert_eq!(member_why(&mut model, "a"), "the batch has ended");
    assert_eq!(model.explain(&RowKey::Phase(cutover)).why, "the phase has ended: completed");
}

#[test]
fn a_phase_counts_all_its_open_steps_and_is_not_released_by_itself() {
    let phases =
        phase("cutover", "T-0", "max_parallel: 2", &[step("Do", "retry: {max_retries: 1, interval: 1h}")]);
    let mut model = batch(&format!("phases:\n{phases}"), 5, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(1, Outcome::failed("no")),
        _ => Reply::After(600, done()),
    });
    run_until_sec(&mut model, 10);
    let id = model.phase("cutover").id;
    let explanation = model.explain(&RowKey::Phase(id));
    let why =
        "5 steps have not ended: 1 dispatched, 1 waiting for the next attempt, 3 waiting for their turn";
    assert_eq!(explanation.why, why);
    assert_eq!(explanation.releaser, Some(Releaser::Results("its steps")));
}

#[test]
fn a_phase_that_was_not_approved_in_time_tells_so() {
    let phases = phase("second", "T-0", "approval: {timeout: 1h}", &[step("Then", "")]);
    let mut model = batch(&format!("phases:\n{phases}"), 1, |_| Reply::After(60, done()));
    run(&mut model);
    let second = model.phase("second");
    assert_eq!((second.status, second.reason), (PhaseStatus::Failed, Some(PhaseReason::ApprovalTimeout)));
    let id = second.id;
    let why = model.explain(&RowKey::Phase(id)).why;
    assert_eq!(why, "the phase has ended: failed: it was not approved in time");
}
