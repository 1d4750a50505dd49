//! `DispatchTimeoutHandlerTests`: a job that no worker takes in time fails, here with retry and rollback.

use jiff::Timestamp;

use super::random::start;
use super::scenario::{at_sec, batch, done, functions, is_ignored, phase, run, run_until_sec, step, verdict};
use crate::message::{EventMessage, Message};
use crate::model::{Model, Reply};
use crate::rows::{BatchStatus, MemberStatus, WorkStatus};
use crate::step::limits::DISPATCH_TIMEOUT_SEC;
use crate::step::{Effect, IgnoredReason, Verdict};

fn timeout(id: u64, is_init_step: bool, dispatched_at: Timestamp) -> Message {
    Message::Event(EventMessage::DispatchTimeout {
        step_execution_id: id,
        is_init_step,
        runbook_name: "random".to_owned(),
        runbook_version: 1,
        batch_id: crate::rows::BatchId(42),
        step_name: "Do".to_owned(),
        dispatched_at,
    })
}

/// One member whose step no worker takes.
fn untaken(keys: &str) -> Model {
    let phases = phase("cutover", "T-0", "", &[step("Do", keys)]);
    let body = format!("phases:\n{phases}rollbacks: {{undo: [{}]}}\n", step("Undo", ""));
    batch(&body, 1, |dispatch| match dispatch.function_name.as_str() {
        "Do" => Reply::Never,
        _ => Reply::After(1, done()),
    })
}

#[test]
fn a_job_that_no_worker_takes_is_cancelled_and_fails_after_the_time_out() {
    for (keys, status, sent) in [
        ("", WorkStatus::Failed, &["Do"][..]),
        ("on_failure: undo", WorkStatus::RolledBack, &["Do", "Undo"][..]),
        (
            "retry: {max_retries: 1, interval: 1m}, on_failure: undo",
            WorkStatus::RolledBack,
            &["Do", "Do", "Undo"][..],
        ),
    ] {
        let mut model = untaken(keys);
        run_until_sec(&mut model, DISPATCH_TIMEOUT_SEC - 1);
        assert_eq!(model.step("a", "Do").work.status, WorkStatus::Dispatched, "{keys}");
        run(&mut model);
        assert_eq!(functions(&model), sent, "{keys}");
        let work = &model.step("a", "Do").work;
        assert_eq!(work.status, status, "{keys}");
        let error = work.error_message.as_deref().unwrap();
        assert!(error.contains("no worker of pool \"pool\"") && error.contains("1800 s"), "{error}");
        assert_eq!(model.member("a").status, MemberStatus::Failed);
        let cancelled = model.effects.iter().filter(|effect| matches!(effect, Effect::CancelJob(_))).count();
        assert_eq!(cancelled, sent.iter().filter(|name| **name == "Do").count(), "{keys}");
    }
}

#[test]
fn a_message_about_the_current_attempt_counts_at_once_and_others_change_nothing() {
    let mut model = untaken("retry: {max_retries: 1, interval: 1m}");
    run_until_sec(&mut model, 10);
    is_ignored(&mut model, timeout(1, false, at_sec(5)), IgnoredReason::Stale);
    is_ignored(&mut model, timeout(99_999, false, start()), IgnoredReason::Unknown);
    is_ignored(&mut model, timeout(1, true, start()), IgnoredReason::Unknown);
    assert_eq!(verdict(&mut model, timeout(1, false, start())), Verdict::Applied);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Pending);
    // The attempt that it was about is over.
    is_ignored(&mut model, timeout(1, false, start()), IgnoredReason::Stale);
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1", "step-1-retry-1"]);
    is_ignored(&mut model, timeout(1, false, at_sec(70)), IgnoredReason::Ended);
}

#[test]
fn an_init_step_that_no_worker_takes_fails_the_batch() {
    let phases = phase("cutover", "T-0", "", &[step("Then", "")]);
    let mut model = batch(&format!("init: [{}]\nphases:\n{phases}", step("Do", "")), 1, |_| Reply::Never);
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Failed);
    assert_eq!(functions(&model), ["Do"]);
    let error = model.batch().error_message.as_deref().unwrap();
    assert!(error.starts_with("init step \"Do\" failed: no worker of pool"), "{error}");
}

#[test]
fn a_job_that_a_worker_has_may_take_as_long_as_it_needs() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", "")]));
    let mut model = batch(&body, 1, |_| Reply::After(10 * DISPATCH_TIMEOUT_SEC, done()));
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1"]);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
}
