//! `RetryCheckHandlerTests`: `retry-check` of another scheduler sends a step again if its retry is due, and nothing
//! else.

use super::scenario::{at_sec, batch, done, is_ignored, phase, run, run_until_sec, step, verdict};
use crate::message::{EventMessage, Message, Outcome};
use crate::model::{Model, Reply};
use crate::rows::WorkStatus;
use crate::step::{IgnoredReason, Verdict};

/// One member with one step, whose first attempt fails after a minute, and an init step of the same kind.
fn failing(keys: &str, first: Outcome) -> Model {
    let phases = phase("cutover", "T-0", "", &[step("Do", keys)]);
    batch(&format!("phases:\n{phases}"), 1, move |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(60, first.clone()),
        _ => Reply::After(60, done()),
    })
}

fn retry_check(id: u64, is_init_step: bool) -> Message {
    Message::Event(EventMessage::RetryCheck {
        step_execution_id: id,
        is_init_step,
        runbook_name: "random".to_owned(),
        runbook_version: 1,
        batch_id: crate::rows::BatchId(42),
    })
}

#[test]
fn a_retry_begins_when_its_interval_has_passed_and_once() {
    let mut model = failing("retry: {max_retries: 1, interval: 1m}", Outcome::failed("no"));
    run_until_sec(&mut model, 90);
    let work = &model.step("a", "Do").work;
    assert_eq!(
        (work.status, work.retry_count, work.retry_after),
        (WorkStatus::Pending, 1, Some(at_sec(120)))
    );
    assert_eq!((&work.job_id, work.dispatched_at, work.completed_at), (&None, None, None));
    is_ignored(&mut model, retry_check(1, false), IgnoredReason::Early);
    model.now = at_sec(120);
    assert_eq!(verdict(&mut model, retry_check(1, false)), Verdict::Applied);
    assert_eq!(model.jobs(), ["step-1", "step-1-retry-1"]);
    is_ignored(&mut model, retry_check(1, false), IgnoredReason::Duplicate);
    run(&mut model);
    is_ignored(&mut model, retry_check(1, false), IgnoredReason::Ended);
    assert_eq!(model.jobs(), ["step-1", "step-1-retry-1"]);
}

#[test]
fn a_check_for_a_row_in_another_state_or_for_none_changes_nothing() {
    let mut model = failing("poll: {interval: 5m, timeout: 1h}", Outcome::InProgress);
    run_until_sec(&mut model, 90);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Polling);
    is_ignored(&mut model, retry_check(1, false), IgnoredReason::Ended);
    is_ignored(&mut model, retry_check(99_999, false), IgnoredReason::Unknown);
    is_ignored(&mut model, retry_check(1, true), IgnoredReason::Unknown);
}

#[test]
fn an_init_step_is_found_by_its_mark() {
    let phases = phase("cutover", "T-0", "", &[step("Do", "")]);
    let init = step("Open", "retry: {max_retries: 1, interval: 1m}");
    let mut model =
        batch(&format!("init: [{init}]\nphases:\n{phases}"), 1, |dispatch| match dispatch.job_id.as_str() {
            "init-1" => Reply::After(1, Outcome::failed("no")),
            _ => Reply::After(1, done()),
        });
    run_until_sec(&mut model, 30);
    model.now = at_sec(61);
    assert_eq!(verdict(&mut model, retry_check(1, true)), Verdict::Applied);
    assert_eq!(model.jobs(), ["init-1", "init-1-retry-1"]);
}
