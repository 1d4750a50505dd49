//! Requests that apply to nothing are refused, and change nothing.

use super::scenario::{batch, done, phase, run, run_until_sec, step};
use crate::message::{Action, Outcome};
use crate::model::{Model, Reply};
use crate::rows::{
    BatchStatus, InitId, MemberId, PhaseId, PhaseStatus, RetryFrom, Row, RowKey, StepId, WorkStatus,
};
use crate::step::{Input, Releaser, Verdict};

fn retry(ids: &[u64]) -> Action {
    let ids = ids.iter().copied().map(MemberId).collect();
    Action::RetryMembers { batch_member_ids: Some(ids), from: RetryFrom::Step }
}

fn rows(model: &Model) -> Vec<(RowKey, Row)> {
    model.rows().map(|(key, row)| (key.clone(), row.clone())).collect()
}

/// The verdict about a request, which leaves all rows as they are.
fn verdict(model: &mut Model, action: Action) -> Verdict {
    model.settle();
    let before = rows(model);
    let shown = format!("{action:?}");
    model.request(action);
    let input = model.next_input().unwrap();
    let Input::Message(_) = &input else { panic!("{input:?} comes before {shown}") };
    let verdict = model.apply(&input).verdict;
    model.settle();
    assert_eq!(rows(model), before, "{shown} changed rows");
    verdict
}

fn is_refused(model: &mut Model, action: Action, words: &str) {
    let shown = format!("{action:?}");
    match verdict(model, action) {
        Verdict::Refused(reason) => assert!(reason.contains(words), "{shown}: {reason}"),
        other => panic!("{shown}: {other:?}"),
    }
}

fn is_not_found(model: &mut Model, action: Action, words: &str) {
    let shown = format!("{action:?}");
    match verdict(model, action) {
        Verdict::NotFound(reason) => assert!(reason.contains(words), "{shown}: {reason}"),
        other => panic!("{shown}: {other:?}"),
    }
}

/// A batch that has ended: member `a` has failed, member `b` is done.
fn ended() -> Model {
    let steps = [step("Do", ""), step("Then", "")];
    let body = format!("members: independent\nphases:\n{}", phase("cutover", "T-0", "", &steps));
    let mut model = batch(&body, 2, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(60, Outcome::failed("no")),
        _ => Reply::After(60, done()),
    });
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Failed);
    model
}

#[test]
fn what_does_not_exist_is_not_found() {
    let mut model = ended();
    let (member, step, phase) = (MemberId(99_999), StepId(99_999), PhaseId(99_999));
    for action in [
        retry(&[99_999]),
        retry(&[model.member("a").id.0, 99_999]),
        Action::ResumeMember { batch_member_id: member },
        Action::CancelMember { batch_member_id: member },
        Action::RetryRemoval { batch_member_id: member },
    ] {
        is_not_found(&mut model, action, "has no member 99999");
    }
    for action in [
        Action::SkipStep { step_execution_id: step },
        Action::CancelStep { step_execution_id: step },
        Action::RetryRollback { step_execution_id: step },
    ] {
        is_not_found(&mut model, action, "has no step 99999");
    }
    for action in [
        Action::ApprovePhase { phase_execution_id: phase },
        Action::RejectPhase { phase_execution_id: phase },
        Action::SkipPhase { phase_execution_id: phase },
        Action::CancelPhase { phase_execution_id: phase },
        Action::ResumePhase { phase_execution_id: phase },
    ] {
        is_not_found(&mut model, action, "has no phase 99999");
    }
    let init = Action::RetryInitRollback { init_execution_id: InitId(9) };
    is_not_found(&mut model, init, "has no init step 9");
}

#[test]
fn what_is_not_in_the_right_state_is_refused() {
    let mut model = ended();
    let (a, b) = (model.member("a").id, model.member("b").id);
    let (failed, done) = (model.step("a", "Do").id, model.step("b", "Do").id);
    let cutover = model.phase("cutover").id;
    for (action, words) in [
        (retry(&[b.0]), "has not failed: it is active"),
        (retry(&[a.0, b.0]), "has not failed: it is active"),
        (retry(&[]), "no member is named"),
        (Action::ResumeMember { batch_member_id: b }, "takes part already"),
        (Action::CancelMember { batch_member_id: b }, "has ended"),
        (Action::RetryRemoval { batch_member_id: a }, "have not failed"),
        (Action::CancelStep { step_execution_id: failed }, "has ended: failed"),
        (Action::CancelStep { step_execution_id: done }, "has ended: succeeded"),
        (Action::SkipStep { step_execution_id: done }, "has ended: succeeded"),
        (Action::RetryRollback { step_execution_id: failed }, "has no failed rollback"),
        (Action::ApprovePhase { phase_execution_id: cutover }, "does not wait"),
        (Action::RejectPhase { phase_execution_id: cutover }, "needs no decision"),
        (Action::SkipPhase { phase_execution_id: cutover }, "has ended"),
        (Action::CancelPhase { phase_execution_id: cutover }, "has ended"),
        (Action::ResumePhase { phase_execution_id: cutover }, "has ended"),
        (Action::RetryInit, "no init step has failed"),
        (Action::Advance, "only manual batches"),
        (Action::PauseBatch { reason: None }, "has ended"),
        (Action::ResumeBatch, "not paused"),
        (Action::CancelBatch { reason: None }, "has ended"),
        (Action::Reschedule { batch_start_time: model.now }, "has ended"),
        (Action::RemoveMembers { keys: vec!["a".to_owned()] }, "has ended"),
    ] {
        is_refused(&mut model, action, words);
    }
}

#[test]
fn a_phase_without_an_approval_needs_no_decision() {
    let phases = [
        phase("first", "T-0", "", &[step("Do", "")]),
        phase("second", "T-0", "approval: true", &[step("Then", "")]),
    ];
    let mut model = batch(&format!("phases:\n{}", phases.concat()), 1, |_| Reply::After(60, done()));
    model.settle();
    let (first, second) = (model.phase("first").id, model.phase("second").id);
    is_refused(&mut model, Action::ApprovePhase { phase_execution_id: first }, "does not wait");
    let start = model.batch().batch_start_time.unwrap();
    is_refused(&mut model, Action::Reschedule { batch_start_time: start }, "already");
    model.request(Action::ApprovePhase { phase_execution_id: second });
    model.settle();
    assert!(model.phase("second").approved_at.is_some(), "it is approved before it is due");
    is_refused(&mut model, Action::ApprovePhase { phase_execution_id: second }, "approved already");
    run(&mut model);
    assert_eq!(model.phase("second").status, PhaseStatus::Completed);
}

#[test]
fn a_phase_that_has_begun_is_no_longer_rejected() {
    for members in ["barrier", "independent"] {
        let phases = phase("cutover", "T-0", "approval: true", &[step("Do", "")]);
        let body = format!("members: {members}\nphases:\n{phases}");
        let mut model = batch(&body, 1, |_| Reply::After(60, done()));
        model.settle();
        let id = model.phase("cutover").id;
        model.request(Action::ApprovePhase { phase_execution_id: id });
        model.settle();
        assert_eq!(model.phase("cutover").status, PhaseStatus::Dispatched);
        is_refused(&mut model, Action::RejectPhase { phase_execution_id: id }, "has begun");
        is_refused(&mut model, Action::ApprovePhase { phase_execution_id: id }, "does not wait");
        run(&mut model);
        assert_eq!(model.phase("cutover").status, PhaseStatus::Completed);
        is_refused(&mut model, Action::RejectPhase { phase_execution_id: id }, "has begun");
    }
}

#[test]
fn members_that_are_unknown_or_have_left_are_not_removed() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", "")]));
    let mut model = batch(&body, 2, |_| Reply::After(600, done()));
    let remove =
        |keys: &[&str]| Action::RemoveMembers { keys: keys.iter().map(|key| (*key).to_owned()).collect() };
    is_not_found(&mut model, remove(&["a", "zoe"]), "no member with the key \"zoe\"");
    model.request(remove(&["A"]));
    model.settle();
    is_refused(&mut model, remove(&["a"]), "have left");
    assert!(model.refusals.is_empty() || model.step("a", "Do").work.status == WorkStatus::Cancelled);
}

#[test]
fn a_paused_batch_tells_so_and_a_cancelled_one_is_not_paused() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", ""), step("Then", "")]));
    let mut model = batch(&body, 2, |_| Reply::After(600, done()));
    model.settle();
    model.request(Action::PauseBatch { reason: Some("lunch".to_owned()) });
    model.settle();
    let explanation = model.explain(&RowKey::Batch);
    assert_eq!(explanation.releaser, Some(Releaser::Request("resume_batch")));
    let why = "the batch is paused: lunch; 2 steps that were dispatched still run";
    assert_eq!(explanation.why, why);
    run_until_sec(&mut model, 700);
    assert_eq!(model.explain(&RowKey::Batch).why, "the batch is paused: lunch");
    model.request(Action::CancelBatch { reason: Some("no".to_owned()) });
    let input = model.next_input().unwrap();
    model.apply(&input);
    model.settle();
    let batch = model.batch();
    assert_eq!((batch.paused_at, &batch.pause_reason), (None, &None), "{batch:#?}");
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Cancelled);
}
