//! What an input needs is loaded at once, and nothing else: that decides what a step of a large batch costs.

use super::scenario::{at_sec, batch, phase, step};
use crate::message::{CallReport, CallResult, CallSeen, Message, Outcome, WorkReference};
use crate::model::{Model, Reply};
use crate::rows::{RowKey, StepId, WorkKey};
use crate::step::{Input, Verdict};

/// Two members with three steps, the first of which is with workers.
fn at_work(members: &str, keys: &str) -> Model {
    let steps = [step("Do", keys), step("Then", ""), step("Last", "")];
    let body = format!("members: {members}\nphases:\n{}", phase("cutover", "T-0", "", &steps));
    let mut model = batch(&body, 2, |_| Reply::Never);
    // Its calls are ended here, behind the back of the model.
    model.checks = false;
    model.settle();
    assert_eq!(model.jobs(), ["step-1", "step-2"]);
    model
}

fn result(job_id: &str, outcome: Outcome) -> Input {
    let work = WorkReference::of_job_id(job_id).unwrap();
    Input::Message(Message::Result(CallResult { job_id: job_id.to_owned(), work, outcome, pool: None }))
}

fn seen(job_id: &str, seen: CallSeen) -> Input {
    let work = WorkReference::of_job_id(job_id).unwrap();
    Input::Message(Message::Call(CallReport { job_id: job_id.to_owned(), work, seen }))
}

fn due() -> Input {
    Input::Due(RowKey::Work(WorkKey::Step(StepId(1))))
}

/// Rows that are loaded for an input of which nothing is in memory.
fn loaded(model: &mut Model, input: &Input) -> u32 {
    model.commit();
    (model.rows_loaded, model.unforeseen) = (0, 0);
    assert_eq!(model.apply(input).verdict, Verdict::Applied, "{input:?}");
    assert_eq!(model.unforeseen, 0, "{input:?} needed what was not foreseen");
    model.commit();
    model.rows_loaded
}

#[test]
fn an_input_loads_the_rows_that_it_changes_and_reads() {
    let completed = || Outcome::Completed { result: serde_json::json!({"Id": "x"}) };
    let throttled = || Outcome::Failed { message: "slow".to_owned(), throttled: true };
    let (poll, retry) = ("poll: {interval: 5m, timeout: 1h}", "retry: {max_retries: 1, interval: 1m}");
    for (members, keys, input, rows) in [
        // Behind a closed barrier, nothing else is looked at.
        ("barrier", "", result("step-1", completed()), 1),
        // The member and its next step.
        ("independent", "", result("step-1", completed()), 3),
        // The member keeps the output.
        ("barrier", "output_params: {Id: Id}", result("step-1", completed()), 2),
        ("barrier", poll, result("step-1", Outcome::InProgress), 1),
        ("barrier", retry, result("step-1", Outcome::failed("no")), 1),
        ("barrier", "", result("step-1", throttled()), 1),
        ("barrier", "", seen("step-1", CallSeen::Leased), 1),
        ("barrier", "", seen("step-1", CallSeen::Waiting), 1),
        ("barrier", poll, seen("step-1", CallSeen::Ended { outcome: Outcome::InProgress }), 1),
        // The member fails, and its three steps with it.
        ("barrier", "", result("step-1", Outcome::failed("no")), 4),
        ("barrier", "", result("step-1", Outcome::InProgress), 4),
    ] {
        let mut model = at_work(members, keys);
        assert_eq!(loaded(&mut model, &input), rows, "{members}, {keys}: {input:?}");
    }
}

#[test]
fn a_row_that_is_due_loads_what_it_leads_to() {
    let keys = "poll: {interval: 5m, timeout: 1h}, retry: {max_retries: 1, interval: 1m}";
    // A poll touches its own row.
    let mut model = at_work("barrier", keys);
    assert_eq!(loaded(&mut model, &result("step-1", Outcome::InProgress)), 1);
    model.now = at_sec(300);
    assert_eq!(loaded(&mut model, &due()), 1);
    assert_eq!(model.jobs().last(), Some(&"step-1-poll-1"));
    // Polling that takes too long ends the member.
    model.now = at_sec(301);
    assert_eq!(loaded(&mut model, &result("step-1-poll-1", Outcome::InProgress)), 1);
    model.now = at_sec(3_601);
    assert_eq!(loaded(&mut model, &due()), 4);
    // Another attempt resolves its parameters by the member.
    let mut model = at_work("barrier", keys);
    assert_eq!(loaded(&mut model, &result("step-1", Outcome::failed("no"))), 1);
    model.now = at_sec(60);
    assert_eq!(loaded(&mut model, &due()), 2);
    assert_eq!(model.jobs().last(), Some(&"step-1-retry-1"));
    // A call that no worker takes in time.
    let mut model = at_work("barrier", "");
    model.now = at_sec(1_800);
    assert_eq!(loaded(&mut model, &seen("step-1", CallSeen::Waiting)), 4);
}
