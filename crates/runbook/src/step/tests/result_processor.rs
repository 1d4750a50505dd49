//! `ResultProcessorTests`: what a result does to its row, its member and what follows.

use serde_json::{Value, json};

use super::random::start;
use super::scenario::{batch, done, is_ignored, phase, run, run_until_sec, step};
use crate::message::{CallResult, Message, Outcome, ResultMessage, WorkReference};
use crate::model::{Model, Reply};
use crate::rows::{MemberStatus, WorkStatus};
use crate::step::{Effect, IgnoredReason};

/// A result as workers write it.
fn outcome(status: &str, result: Value, error: Value) -> Outcome {
    let text = json!({"jobId": "step-1", "status": status, "result": result, "error": error}).to_string();
    ResultMessage::read(text.as_bytes()).unwrap().outcome()
}

fn success(result: Value) -> Outcome {
    outcome("success", result, Value::Null)
}

fn failure() -> Outcome {
    outcome("failure", Value::Null, json!({"message": "no licence", "type": "LicenceError"}))
}

fn throttled() -> Outcome {
    outcome("failure", Value::Null, json!({"message": "too many requests", "isThrottled": true}))
}

/// A batch of one member with one step. Jobs that are not named succeed.
fn one_step(keys: &str, answers: Vec<(&'static str, Outcome)>) -> Model {
    let phases = phase("cutover", "T-0", "", &[step("Do", keys)]);
    let body = format!("phases:\n{phases}rollbacks: {{undo: [{}]}}\n", step("Undo", ""));
    batch(&body, 1, move |dispatch| {
        let answer = answers.iter().find(|(job, _)| *job == dispatch.job_id);
        Reply::After(1, answer.map_or_else(done, |(_, outcome)| outcome.clone()))
    })
}

/// The end of a step.
struct End {
    status: WorkStatus,
    member: MemberStatus,
    jobs: &'static [&'static str],
    result: Option<&'static str>,
    error: Option<&'static str>,
}

fn succeeded(jobs: &'static [&'static str], result: &'static str) -> End {
    let (status, member) = (WorkStatus::Succeeded, MemberStatus::Active);
    End { status, member, jobs, result: Some(result), error: None }
}

fn failed(status: WorkStatus, jobs: &'static [&'static str], error: &'static str) -> End {
    End { status, member: MemberStatus::Failed, jobs, result: None, error: Some(error) }
}

fn check(keys: &str, answers: Vec<(&'static str, Outcome)>, end: &End) {
    let shown = format!("{keys}: {answers:?}");
    let mut model = one_step(keys, answers);
    run(&mut model);
    assert_eq!(model.jobs(), end.jobs, "{shown}");
    let work = &model.step("a", "Do").work;
    assert_eq!(work.status, end.status, "{shown}");
    assert_eq!(model.member("a").status, end.member, "{shown}");
    assert_eq!(work.result_json.as_deref(), end.result, "{shown}");
    let error = work.error_message.as_deref();
    assert_eq!(error.is_some(), end.error.is_some(), "{shown}: {error:?}");
    assert!(error.unwrap_or_default().contains(end.error.unwrap_or_default()), "{shown}: {error:?}");
    assert!(work.completed_at.is_some() && work.dispatched_at.is_some(), "{shown}: {work:?}");
}

#[test]
fn successful_results_end_a_step_with_their_data() {
    let once: &[&str] = &["step-1"];
    for (result, kept) in [
        (json!({"Id": "7"}), r#"{"Id":"7"}"#),
        (json!({"complete": true, "data": {"Id": "7"}}), r#"{"Id":"7"}"#),
        (json!({"Complete": true, "Data": {"Id": "7"}}), r#"{"Id":"7"}"#),
        (json!(true), r#"{"Value":true}"#),
        (json!([1, 2]), "[1,2]"),
        (Value::Null, "null"),
    ] {
        check("", vec![("step-1", success(result))], &succeeded(once, kept));
    }
    check(
        "",
        vec![("step-1", outcome("Success", json!({"Id": 1}), Value::Null))],
        &succeeded(once, r#"{"Id":1}"#),
    );
}

#[test]
fn results_in_progress_are_polled_and_failures_tried_again() {
    let (poll, retry) = ("poll: {interval: 5m, timeout: 1h}", "retry: {max_retries: 1, interval: 1m}");
    let waits = || success(json!({"complete": false}));
    let x = r#"{"Id":"x"}"#;
    check(poll, vec![("step-1", waits())], &succeeded(&["step-1", "step-1-poll-1"], x));
    check(
        poll,
        vec![("step-1", waits()), ("step-1-poll-1", waits())],
        &succeeded(&["step-1", "step-1-poll-1", "step-1-poll-2"], x),
    );
    check(retry, vec![("step-1", failure())], &succeeded(&["step-1", "step-1-retry-1"], x));
    check(
        &format!("{poll}, {retry}"),
        vec![("step-1", waits()), ("step-1-poll-1", failure())],
        &succeeded(&["step-1", "step-1-poll-1", "step-1-retry-1"], x),
    );
}

#[test]
fn failures_end_a_step_and_its_member() {
    let waits = || success(json!({"complete": false}));
    let error = "LicenceError: no licence";
    check("", vec![("step-1", failure())], &failed(WorkStatus::Failed, &["step-1"], error));
    check(
        "retry: {max_retries: 1, interval: 1m}",
        vec![("step-1", failure()), ("step-1-retry-1", failure())],
        &failed(WorkStatus::Failed, &["step-1", "step-1-retry-1"], error),
    );
    check(
        "on_failure: undo",
        vec![("step-1", failure())],
        &failed(WorkStatus::RolledBack, &["step-1", "rollback-42-1-undo-0"], error),
    );
    check(
        "on_failure: undo",
        vec![("step-1", failure()), ("rollback-42-1-undo-0", failure())],
        &failed(WorkStatus::Failed, &["step-1", "rollback-42-1-undo-0"], error),
    );
    check("", vec![("step-1", waits())], &failed(WorkStatus::Failed, &["step-1"], "add `poll`"));
    check(
        "poll: {interval: 5m, timeout: 1h}",
        vec![("step-1", waits()), ("step-1-poll-1", failure())],
        &failed(WorkStatus::Failed, &["step-1", "step-1-poll-1"], error),
    );
    check(
        "poll: {interval: 5m, timeout: 7m}, on_failure: undo",
        vec![("step-1", waits()), ("step-1-poll-1", waits())],
        &failed(WorkStatus::RolledBack, &["step-1", "step-1-poll-1", "rollback-42-1-undo-0"], "420 s"),
    );
}

#[test]
fn a_throttled_worker_slows_its_pool_down_and_costs_no_retry() {
    let mut model = one_step("", vec![("step-1", throttled()), ("step-1-retry-1", throttled())]);
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1", "step-1-retry-1", "step-1-retry-2"]);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
    let slowed = model.effects.iter().filter(|effect| matches!(effect, Effect::SlowDown { .. })).count();
    assert_eq!(slowed, 2);
}

fn result(job_id: &str) -> Message {
    let work = WorkReference::of_job_id(job_id).unwrap();
    Message::Result(CallResult { job_id: job_id.to_owned(), work, outcome: failure(), pool: None })
}

#[test]
fn late_repeated_and_unknown_results_change_nothing() {
    // A step whose second attempt is at work.
    let retry = "retry: {max_retries: 1, interval: 1m}";
    let phases = phase("cutover", "T-0", "", &[step("Do", retry)]);
    let mut model = batch(&format!("phases:\n{phases}"), 1, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(1, failure()),
        _ => Reply::After(600, done()),
    });
    run_until_sec(&mut model, 30);
    is_ignored(&mut model, result("step-1"), IgnoredReason::Stale);
    run_until_sec(&mut model, 100);
    assert_eq!(model.jobs(), ["step-1", "step-1-retry-1"]);
    is_ignored(&mut model, result("step-1"), IgnoredReason::Stale);
    is_ignored(&mut model, result("step-99999"), IgnoredReason::Unknown);
    is_ignored(&mut model, result("init-7"), IgnoredReason::Unknown);
    is_ignored(&mut model, result("removed-1-0"), IgnoredReason::Unknown);
    is_ignored(&mut model, result("rollback-42-1-undo-0"), IgnoredReason::Stale);
    is_ignored(&mut model, result("rollback-42-batch-undo-0"), IgnoredReason::Stale);
    run(&mut model);
    is_ignored(&mut model, result("step-1-retry-1"), IgnoredReason::Ended);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
    assert!(model.batch().completed_at.unwrap() > start());
    // The result of a poll that was taken already.
    let mut model = one_step(
        "poll: {interval: 5m, timeout: 1h}",
        vec![("step-1", Outcome::InProgress), ("step-1-poll-1", Outcome::InProgress)],
    );
    run_until_sec(&mut model, 10);
    is_ignored(&mut model, result("step-1"), IgnoredReason::Duplicate);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Polling);
}
