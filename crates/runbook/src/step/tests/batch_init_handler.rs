//! `BatchInitHandlerTests`: init steps, once for a batch, in order, before its phases.

use super::random::start;
use super::scenario::{
    at_sec, batch, dispatches, done, functions, is_ignored, phase, run, run_until_sec, step,
};
use crate::message::{Action, EventMessage, Message, Outcome};
use crate::model::{Model, Reply};
use crate::rows::{BatchStatus, PhaseStatus, WorkStatus};
use crate::step::IgnoredReason;

fn with_init(init: &[String], answers: Vec<(&'static str, Outcome)>) -> Model {
    let phases = phase("cutover", "T-0", "", &[step("Do", "")]);
    let body = format!(
        "init: [{}]\nphases:\n{phases}rollbacks: {{undo: [{}]}}\n",
        init.join(", "),
        step("Undo", "")
    );
    batch(&body, 2, move |dispatch| {
        let answer = answers.iter().find(|(job, _)| *job == dispatch.job_id);
        Reply::After(60, answer.map_or_else(done, |(_, outcome)| outcome.clone()))
    })
}

fn batch_init(model: &Model) -> Message {
    let batch = model.batch();
    Message::Event(EventMessage::BatchInit {
        runbook_name: batch.runbook_name.clone(),
        runbook_version: batch.runbook_version,
        batch_id: batch.id,
        batch_start_time: batch.batch_start_time,
        member_count: 2,
    })
}

fn statuses(model: &Model) -> Vec<WorkStatus> {
    model.inits().map(|init| init.work.status).collect()
}

#[test]
fn init_steps_run_one_after_the_other_and_then_the_batch_is_active() {
    let mut model = with_init(&[step("Open", ""), step("Fill", "")], Vec::new());
    model.settle();
    assert_eq!(model.batch().status, BatchStatus::InitDispatched);
    assert_eq!(model.batch().init_dispatched_at, Some(start()));
    assert_eq!(model.jobs(), ["init-1"]);
    assert_eq!(statuses(&model), [WorkStatus::Dispatched, WorkStatus::Pending]);
    let message = batch_init(&model);
    is_ignored(&mut model, message, IgnoredReason::Duplicate);
    run_until_sec(&mut model, 60);
    assert_eq!(model.jobs(), ["init-1", "init-2"]);
    run_until_sec(&mut model, 120);
    assert_eq!(statuses(&model), [WorkStatus::Succeeded; 2]);
    assert_eq!(model.batch().status, BatchStatus::Active);
    let ends: Vec<_> = model.inits().map(|init| init.work.completed_at).collect();
    assert_eq!(ends, [Some(at_sec(60)), Some(at_sec(120))]);
    run(&mut model);
    assert_eq!(functions(&model), ["Open", "Fill", "Do", "Do"]);
}

#[test]
fn a_batch_without_init_steps_is_active_at_once() {
    let mut model = batch(&format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", "")])), 1, |_| {
        Reply::After(60, done())
    });
    model.settle();
    assert_eq!((model.batch().status, model.batch().init_dispatched_at), (BatchStatus::Active, None));
    let message = batch_init(&model);
    is_ignored(&mut model, message, IgnoredReason::Duplicate);
}

#[test]
fn what_becomes_of_an_init_step_decides_about_the_batch() {
    let waits = || Outcome::InProgress;
    let no = || Outcome::failed("no");
    let poll = "poll: {interval: 5m, timeout: 1h}";
    let retry = "retry: {max_retries: 1, interval: 1m}";
    for (keys, answers, status, jobs) in [
        (poll, vec![("init-1", waits())], WorkStatus::Succeeded, &["init-1", "init-1-poll-1"][..]),
        (
            "poll: {interval: 5m, timeout: 7m}",
            vec![("init-1", waits()), ("init-1-poll-1", waits())],
            WorkStatus::PollTimeout,
            &["init-1", "init-1-poll-1"][..],
        ),
        ("", vec![("init-1", no())], WorkStatus::Failed, &["init-1"][..]),
        (retry, vec![("init-1", no())], WorkStatus::Succeeded, &["init-1", "init-1-retry-1"][..]),
        (
            retry,
            vec![("init-1", no()), ("init-1-retry-1", no())],
            WorkStatus::Failed,
            &["init-1", "init-1-retry-1"][..],
        ),
        (
            "on_failure: undo",
            vec![("init-1", no())],
            WorkStatus::RolledBack,
            &["init-1", "rollback-42-batch-undo-0"][..],
        ),
    ] {
        let shown = format!("{keys}: {answers:?}");
        let mut model = with_init(&[step("Open", keys), step("Fill", "")], answers);
        run(&mut model);
        assert_eq!(statuses(&model)[0], status, "{shown}");
        assert_eq!(&model.jobs()[..jobs.len()], jobs, "{shown}");
        let is_done = status == WorkStatus::Succeeded;
        let (batch_status, phase_status, second) = if is_done {
            (BatchStatus::Completed, PhaseStatus::Completed, WorkStatus::Succeeded)
        } else {
            (BatchStatus::Failed, PhaseStatus::Skipped, WorkStatus::Cancelled)
        };
        assert_eq!(model.batch().status, batch_status, "{shown}");
        assert_eq!(model.phase("cutover").status, phase_status, "{shown}");
        assert_eq!(statuses(&model)[1], second, "{shown}");
        assert_eq!(functions(&model).contains(&"Do"), is_done, "{shown}");
        let error = model.batch().error_message.clone().unwrap_or_default();
        assert_eq!(error.starts_with("init step \"Open\" failed"), !is_done, "{shown}: {error:?}");
    }
}

#[test]
fn outputs_of_init_are_variables_of_all_members() {
    let phases = phase("cutover", "T-0", "", &[step("Do", r#"params: {Ref: "{{Ref}}"}"#)]);
    let body = format!("init: [{}]\nphases:\n{phases}", step("Open", "output_params: {Ref: Id}"));
    let mut model = batch(&body, 2, |_| Reply::After(1, done()));
    run(&mut model);
    let params: Vec<_> = dispatches(&model).skip(1).map(|job| job.params_json.as_str()).collect();
    assert_eq!(params, [r#"{"Ref":"x"}"#; 2]);
}

#[test]
fn a_failed_init_step_is_tried_again_by_request_and_those_after_it_follow() {
    let mut model = with_init(&[step("Open", ""), step("Fill", "")], vec![("init-1", Outcome::failed("no"))]);
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Failed);
    model.request(Action::RetryInit);
    run(&mut model);
    assert_eq!(model.jobs()[..3], ["init-1", "init-1-retry-1", "init-2"]);
    assert_eq!(statuses(&model), [WorkStatus::Succeeded; 2]);
    let message = batch_init(&model);
    is_ignored(&mut model, message, IgnoredReason::Duplicate);
}
