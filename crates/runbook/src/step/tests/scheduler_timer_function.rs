//! `SchedulerTimerFunctionTests`: what is due, when it is taken up, and by which version.

use jiff::Timestamp;

use super::random::{create, start};
use super::scenario::{
    batch, before_sec, dispatches, done, members, model, phase, run, run_until_sec, runbook, step,
};
use crate::message::{Action, EventMessage, Outcome, OverdueBehavior};
use crate::model::{Model, Reply};
use crate::rows::{PhaseStatus, RunbookId, WorkStatus};
use crate::step::{Effect, Event};

/// Seconds after the start at which the jobs of a model were sent.
fn sent_at(model: &mut Model, until_sec: u64) -> Vec<i64> {
    let (mut sent, mut seen) = (Vec::new(), 0);
    let seconds = |at: Timestamp| at.as_second() - start().as_second();
    loop {
        model.settle();
        sent.extend((seen..model.jobs().len()).map(|_| seconds(model.now)));
        seen = model.jobs().len();
        if seconds(model.now) > i64::try_from(until_sec).unwrap() || !model.tick() {
            return sent;
        }
    }
}

#[test]
fn phases_begin_to_the_second_at_their_offsets() {
    let phases = [
        phase("a", "T-2h", "", &[step("A", "")]),
        phase("b", "T-90m", "", &[step("B", "")]),
        phase("c", "T-0", "", &[step("C", "")]),
    ];
    let body = format!("phases:\n{}", phases.concat());
    for (now, expected) in [
        (before_sec(86_400), [-7_200, -5_400, 0]),
        // Created late: what is overdue runs at once, in due order.
        (before_sec(6_000), [-6_000, -5_400, 0]),
        (super::scenario::at_sec(60), [60, 61, 62]),
    ] {
        let mut model = model(&body, |_| Reply::After(1, done()));
        model.now = now;
        create(&mut model, Some(start()), &members(1));
        assert_eq!(sent_at(&mut model, 1_000), expected, "{now}");
    }
}

#[test]
fn polls_are_due_an_interval_after_the_last_until_their_time_out() {
    for (interval, timeout, calls_take, expected) in [
        ("5m", "1h", 10, &[0, 310, 620, 930][..]),
        ("5m", "10m", 10, &[0, 310, 620][..]),
        ("15m", "10m", 10, &[0][..]),
        ("1h", "1d", 60, &[0, 3_660, 7_260, 10_860][..]),
    ] {
        let poll = format!("poll: {{interval: {interval}, timeout: {timeout}}}");
        let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", &poll)]));
        let mut model = batch(&body, 1, move |dispatch| {
            let outcome = if dispatch.job_id.ends_with("-poll-3") { done() } else { Outcome::InProgress };
            Reply::After(calls_take, outcome)
        });
        let sent = sent_at(&mut model, 100_000);
        assert_eq!(sent[0], 0, "{poll}");
        let gaps = |list: &[i64]| list.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        assert_eq!(sent.len(), expected.len(), "{poll}: {sent:?}");
        for (gap, wanted) in gaps(&sent).into_iter().zip(gaps(expected)) {
            assert!(gap.abs_diff(wanted) <= calls_take, "{poll}: {sent:?}");
        }
        let checks = model
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Announce(Event::Bus(EventMessage::PollCheck { .. }))))
            .count();
        assert_eq!(checks, expected.len() - 1, "{poll}");
        let is_done = expected.len() == 4;
        let status = if is_done { WorkStatus::Succeeded } else { WorkStatus::PollTimeout };
        assert_eq!(model.step("a", "Do").work.status, status, "{poll}");
    }
}

/// Publishes version 2 in the middle of a batch whose first phase is done.
fn published(overdue_behavior: OverdueBehavior, rerun_init: bool) -> Model {
    let body = |version: u32| {
        let phases = [
            phase("first", "T-2h", "", &[step(&format!("First{version}"), "")]),
            phase("second", "T-0", "", &[step(&format!("Second{version}"), "")]),
        ];
        format!("init: [{}]\nphases:\n{}", step(&format!("Open{version}"), ""), phases.concat())
    };
    let mut model = model(&body(1), |_| Reply::After(1, done()));
    model.define(2, runbook(&body(2)));
    model.now = before_sec(7_300);
    create(&mut model, Some(start()), &members(1));
    model.run_until(before_sec(3_600));
    let (runbook_id, runbook_version) = (RunbookId(8), 2);
    model.request(Action::PublishVersion { runbook_id, runbook_version, overdue_behavior, rerun_init });
    run(&mut model);
    model
}

#[test]
fn a_new_version_replaces_what_has_not_begun_and_runs_again_what_it_is_told_to() {
    for (overdue_behavior, rerun_init, expected, first) in [
        (
            OverdueBehavior::Rerun,
            false,
            &["Open1", "First1", "First2", "Second2"][..],
            PhaseStatus::Completed,
        ),
        (OverdueBehavior::Ignore, false, &["Open1", "First1", "Second2"][..], PhaseStatus::Skipped),
        (
            OverdueBehavior::Rerun,
            true,
            &["Open1", "First1", "Open2", "First2", "Second2"][..],
            PhaseStatus::Completed,
        ),
    ] {
        let model = published(overdue_behavior, rerun_init);
        let sent: Vec<_> = dispatches(&model).map(|job| job.function_name.as_str()).collect();
        assert_eq!(sent, expected, "{overdue_behavior:?}");
        let statuses: Vec<_> = model.phases().map(|phase| (phase.runbook_version, phase.status)).collect();
        let second = PhaseStatus::Completed;
        assert_eq!(
            statuses,
            [(1, PhaseStatus::Completed), (1, PhaseStatus::Superseded), (2, first), (2, second)],
            "{overdue_behavior:?}"
        );
        // Each job has the version that created its row.
        let of_job = |job: &str| job.ends_with('2');
        assert!(
            dispatches(&model)
                .all(|job| (job.correlation_data.runbook_version == 2) == of_job(&job.function_name))
        );
    }
}

#[test]
fn a_paused_batch_takes_up_what_came_due_when_it_is_resumed() {
    let phases = [phase("a", "T-1h", "", &[step("A", "")]), phase("b", "T-0", "", &[step("B", "")])];
    let mut model = model(&format!("phases:\n{}", phases.concat()), |_| Reply::After(1, done()));
    model.now = before_sec(7_200);
    create(&mut model, Some(start()), &members(1));
    model.settle();
    model.request(Action::PauseBatch { reason: None });
    run_until_sec(&mut model, 600);
    assert!(model.jobs().is_empty());
    model.request(Action::ResumeBatch);
    assert_eq!(sent_at(&mut model, 1_000), [600, 601]);
}
