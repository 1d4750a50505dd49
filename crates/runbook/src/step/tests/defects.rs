//! One test for each defect of the shipped system that is still there, and for those that were found here.
//!
//! Those of data sources are in `drive/tests/query.rs`: an immediate batch that excludes its own members, and a batch
//! whose rows have all vanished.

use serde_json::json;

use super::random::{create, entry, start};
use super::scenario::{
    all_succeed, at_sec, batch, before_sec, dispatches, done, functions, members, model, phase, run,
    run_until_sec, runbook, step,
};
use crate::message::{Action, EventMessage, Message, Outcome, OverdueBehavior, ResultMessage};
use crate::model::Reply;
use crate::rows::{
    BatchStatus, MemberStatus, PhaseId, PhaseReason, PhaseStatus, RetryFrom, RunbookId, WorkStatus,
};
use crate::step::{Effect, Event, IgnoredReason, Input, Verdict};

fn one_step(more: &str) -> String {
    format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", more)]))
}

#[test]
fn complete_false_is_in_progress_in_either_spelling_of_success() {
    for status in ["success", "Success"] {
        let text = json!({"jobId": "step-1", "status": status, "result": {"complete": false}});
        let outcome = ResultMessage::read(text.to_string().as_bytes()).unwrap().outcome();
        let body = one_step("poll: {interval: 5m, timeout: 1h}");
        let mut model = batch(&body, 1, move |_| Reply::After(1, outcome.clone()));
        run_until_sec(&mut model, 2);
        assert_eq!(model.step("a", "Do").work.status, WorkStatus::Polling, "{status}");
    }
}

#[test]
fn phases_begin_only_when_init_has_ended() {
    let body = format!("init: [{}]\n{}", step("Open", ""), one_step(""));
    let mut model = batch(&body, 1, |dispatch| match dispatch.function_name.as_str() {
        "Open" => Reply::After(300, done()),
        _ => Reply::After(1, done()),
    });
    run_until_sec(&mut model, 299);
    assert_eq!(model.jobs(), ["init-1"]);
    assert_eq!(model.batch().status, BatchStatus::InitDispatched);
    run(&mut model);
    assert_eq!(model.jobs(), ["init-1", "step-1"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn the_first_members_of_a_batch_are_not_added_again() {
    let mut model = batch(&one_step(""), 2, |_| Reply::After(60, done()));
    model.settle();
    let is_added =
        |effect: &Effect| matches!(effect, Effect::Announce(Event::Bus(EventMessage::MemberAdded { .. })));
    assert!(!model.effects.iter().any(is_added));
    let batch = model.batch();
    let message = EventMessage::MemberAdded {
        runbook_name: batch.runbook_name.clone(),
        runbook_version: 1,
        batch_id: batch.id,
        batch_member_id: model.member("a").id,
        member_key: "a".to_owned(),
    };
    let effects = model.apply(&Input::Message(Message::Event(message)));
    assert_eq!(effects.verdict, Verdict::Ignored(IgnoredReason::Duplicate));
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1", "step-2"]);
}

#[test]
fn a_member_that_returns_takes_part_again_with_its_row() {
    let body = format!("{}on_member_removed: [{}]\n", one_step(""), step("Undo", ""));
    let mut model = batch(&body, 2, |_| Reply::After(60, done()));
    model.settle();
    model.request(Action::RemoveMembers { keys: vec!["A".to_owned()] });
    model.settle();
    assert_eq!(model.member("a").status, MemberStatus::Removed);
    // Twice, and in another letter case: it waits for the end of its removal steps.
    model.request(Action::PutMembers { members: vec![entry("a"), entry("A")] });
    run(&mut model);
    assert_eq!(model.members().count(), 2);
    assert_eq!(model.member("A").status, MemberStatus::Active);
    assert_eq!(model.step("A", "Do").work.status, WorkStatus::Succeeded);
    assert_eq!(functions(&model), ["Do", "Do", "Undo", "Do"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn a_failed_member_that_its_source_still_has_stays_failed() {
    let body = format!("phases:\n{}", phase("cutover", "T-0", "", &[step("Do", ""), step("Then", "")]));
    let mut model = batch(&body, 2, |dispatch| match dispatch.job_id.as_str() {
        "step-1" => Reply::After(1, Outcome::failed("no")),
        _ => Reply::After(60, done()),
    });
    run_until_sec(&mut model, 10);
    model.request(Action::PutMembers { members: members(2) });
    run(&mut model);
    assert_eq!(model.members().count(), 2);
    assert_eq!(model.member("a").status, MemberStatus::Failed);
    assert_eq!(functions(&model), ["Do", "Do", "Then"]);
}

#[test]
fn overdue_phases_run_in_due_order_and_equal_ones_as_written() {
    for members in ["barrier", "independent"] {
        let phases = [
            phase("last", "T-0", "", &[step("Last", "")]),
            phase("first", "T-5d", "", &[step("First", "")]),
            phase("second", "T-1d", "", &[step("Second", "")]),
            phase("third", "T-1d", "", &[step("Third", "")]),
        ];
        let body = format!("members: {members}\nphases:\n{}", phases.concat());
        let mut model = batch(&body, 1, all_succeed);
        run(&mut model);
        assert_eq!(functions(&model), ["First", "Second", "Third", "Last"], "{members}");
    }
}

#[test]
fn advancing_a_manual_batch_begins_with_the_phase_that_is_furthest_ahead() {
    let phases =
        [phase("late", "T-0", "", &[step("Late", "")]), phase("early", "T-5d", "", &[step("Early", "")])];
    let mut model = model(&format!("phases:\n{}", phases.concat()), all_succeed);
    create(&mut model, None, &members(1));
    run(&mut model);
    assert!(functions(&model).is_empty());
    for expected in [vec!["Early"], vec!["Early", "Late"]] {
        model.request(Action::Advance);
        run(&mut model);
        assert_eq!(functions(&model), expected);
    }
}

#[test]
fn a_result_that_is_there_at_once_counts() {
    let mut model = batch(&one_step(""), 1, |_| Reply::After(0, done()));
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Completed);
    assert!(model.ignored.is_empty(), "{:?}", model.ignored);
}

#[test]
fn a_result_that_was_lost_is_found_when_its_call_is_looked_after() {
    let mut model = batch(&one_step(""), 1, |_| Reply::Lost(5, done()));
    run(&mut model);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
    assert_eq!(model.jobs(), ["step-1"]);
}

#[test]
fn a_call_that_no_worker_takes_fails_with_retry_and_rollback() {
    let body = format!(
        "{}rollbacks: {{undo: [{}]}}\n",
        one_step("retry: {max_retries: 1, interval: 1m}, on_failure: undo"),
        step("Undo", "")
    );
    let mut model = batch(&body, 1, |dispatch| match dispatch.function_name.as_str() {
        "Do" => Reply::Never,
        _ => Reply::After(1, done()),
    });
    run(&mut model);
    assert_eq!(model.jobs()[..2], ["step-1", "step-1-retry-1"]);
    assert_eq!(functions(&model), ["Do", "Do", "Undo"]);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::RolledBack);
    assert_eq!(model.batch().status, BatchStatus::Failed);
}

#[test]
fn polling_goes_on_after_a_new_version_was_published() {
    let body = one_step("poll: {interval: 5m, timeout: 1h}");
    let mut model = batch(&body, 1, |dispatch| match dispatch.job_id.as_str() {
        "step-1-poll-2" => Reply::After(1, done()),
        _ => Reply::After(1, Outcome::InProgress),
    });
    model.define(2, runbook(&one_step("")));
    run_until_sec(&mut model, 60);
    model.request(Action::PublishVersion {
        runbook_id: RunbookId(8),
        runbook_version: 2,
        overdue_behavior: OverdueBehavior::Ignore,
        rerun_init: false,
    });
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1", "step-1-poll-1", "step-1-poll-2"]);
    assert_eq!(model.step("a", "Do").work.status, WorkStatus::Succeeded);
}

#[test]
fn a_poll_is_counted_once_also_if_it_is_asked_for_twice() {
    let body = one_step("poll: {interval: 5m, timeout: 1h}");
    let mut model = batch(&body, 1, |_| Reply::After(10, Outcome::InProgress));
    // The first poll is due 310 s after the start; its call is at work.
    run_until_sec(&mut model, 312);
    assert_eq!(model.step("a", "Do").work.poll_count, 1);
    let message = EventMessage::PollCheck {
        runbook_name: "random".to_owned(),
        runbook_version: 1,
        batch_id: model.batch().id,
        step_execution_id: 1,
        step_name: "Do".to_owned(),
        poll_count: 1,
        is_init_step: false,
    };
    model.send(Message::Event(message));
    model.settle();
    let work = &model.step("a", "Do").work;
    assert_eq!((work.poll_count, work.poll_started_at), (1, Some(at_sec(10))));
    assert_eq!(model.jobs(), ["step-1", "step-1-poll-1"]);
}

#[test]
fn complete_false_of_a_step_without_poll_is_a_failure_that_names_the_key() {
    let mut model = batch(&one_step(""), 1, |_| Reply::After(1, Outcome::InProgress));
    run(&mut model);
    let work = &model.step("a", "Do").work;
    assert_eq!(work.status, WorkStatus::Failed);
    assert!(work.error_message.as_deref().unwrap().contains("add `poll`"), "{work:?}");
}

#[test]
fn a_retry_of_a_poll_step_counts_its_time_out_from_its_own_first_poll() {
    let body = one_step("poll: {interval: 5m, timeout: 10m}, retry: {max_retries: 1, interval: 1h}");
    let mut model = batch(&body, 1, |dispatch| match dispatch.job_id.as_str() {
        "step-1-poll-1" => Reply::After(1, Outcome::failed("no")),
        "step-1-retry-1-poll-1" => Reply::After(1, done()),
        _ => Reply::After(1, Outcome::InProgress),
    });
    run(&mut model);
    assert_eq!(model.jobs(), ["step-1", "step-1-poll-1", "step-1-retry-1", "step-1-retry-1-poll-1"]);
    let work = &model.step("a", "Do").work;
    assert_eq!(work.status, WorkStatus::Succeeded);
    assert!(work.poll_started_at.unwrap() > at_sec(3_600), "{work:?}");
}

#[test]
fn a_rollback_sees_outputs_and_templates_of_functions_and_its_results_count() {
    let steps = [step("Make", "output_params: {TargetId: Id}"), step("Fill", "on_failure: undo")];
    let undo =
        r#"{name: undo, worker_id: pool, function: "Remove-{{Key}}", params: {UserId: "{{TargetId}}"}}"#;
    let phases = phase("cutover", "T-0", "", &steps);
    let body = format!("phases:\n{phases}rollbacks: {{undo: [{undo}]}}\n");
    let mut model = batch(&body, 1, |dispatch| match dispatch.function_name.as_str() {
        "Fill" => Reply::After(1, Outcome::failed("no")),
        _ => Reply::After(1, done()),
    });
    run(&mut model);
    let undo = dispatches(&model).last().unwrap();
    assert_eq!((undo.function_name.as_str(), undo.params_json.as_str()), ("Remove-a", r#"{"UserId":"x"}"#));
    assert_eq!(undo.job_id, "rollback-42-1-undo-0");
    assert_eq!(model.step("a", "Fill").work.status, WorkStatus::RolledBack);
    assert!(model.ignored.is_empty(), "{:?}", model.ignored);
}

#[test]
fn a_batch_whose_members_have_all_left_undoes_each_and_ends() {
    let body = format!("{}on_member_removed: [{}]\n", one_step(""), step("Undo", ""));
    let mut model = model(&body, all_succeed);
    model.now = before_sec(86_400);
    create(&mut model, Some(start()), &members(2));
    model.settle();
    model.request(Action::RemoveMembers { keys: vec!["a".to_owned(), "b".to_owned()] });
    run(&mut model);
    assert_eq!(functions(&model), ["Undo", "Undo"]);
    assert!(model.removals().all(|row| row.work.status == WorkStatus::Succeeded));
    assert!(model.batch().status.is_terminal());
}

#[test]
fn a_member_whose_first_step_was_skipped_before_its_wave_begins_with_the_next() {
    let steps = [step("Do", ""), step("Then", "")];
    let waves = "waves: [{percent: 50}, {percent: 100}]";
    let body = format!("members: independent\nphases:\n{}", phase("cutover", "T-0", waves, &steps));
    let mut model = batch(&body, 2, |_| Reply::After(60, done()));
    model.settle();
    let step_execution_id = model.step("b", "Do").id;
    model.request(Action::SkipStep { step_execution_id });
    run(&mut model);
    assert_eq!(functions(&model), ["Do", "Then", "Then"]);
    assert_eq!(model.batch().status, BatchStatus::Completed);
}

#[test]
fn phases_of_an_earlier_version_stay_skipped_when_failed_members_are_retried() {
    let third = phase("third", "T-0", "", &[step("Third", "")]);
    let phases = [
        phase("first", "T-2d", "", &[step("First", "")]),
        phase("second", "T-1d", "", &[step("Second", "")]),
        third.clone(),
    ];
    let head = "members: independent\non_phase_failure: stop\nphases:\n";
    let mut model = model(&format!("{head}{}", phases.concat()), |dispatch| {
        match (dispatch.job_id.as_str(), dispatch.function_name.as_str()) {
            ("step-1", _) => Reply::After(1, Outcome::failed("no")),
            (_, "Second") => Reply::After(1_000, done()),
            _ => Reply::After(1, done()),
        }
    });
    model.define(2, runbook(&format!("{head}{third}")));
    model.now = before_sec(43_200);
    create(&mut model, Some(start()), &members(2));
    model.run_until(before_sec(43_000));
    let of_version_1 = PhaseId(3);
    assert_eq!(model.phase("third").reason, Some(PhaseReason::Stopped));
    model.request(Action::PublishVersion {
        runbook_id: RunbookId(8),
        runbook_version: 2,
        overdue_behavior: OverdueBehavior::Rerun,
        rerun_init: false,
    });
    run(&mut model);
    assert_eq!(model.batch().status, BatchStatus::Failed);
    model.request(Action::RetryMembers { batch_member_ids: None, from: RetryFrom::Step });
    run(&mut model);
    assert!(model.batch().status.is_terminal(), "{:#?}", model.batch());
    let old = model.phases().find(|phase| phase.id == of_version_1).unwrap();
    assert_eq!(old.status, PhaseStatus::Skipped);
    assert_eq!(functions(&model).iter().filter(|function| **function == "Third").count(), 2);
}
