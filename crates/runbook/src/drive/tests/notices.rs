//! Notices for people: calls of the function that the runbook names, once for each event.

use std::sync::{Arc, Mutex};

use segno_actions::Listed;
use serde_json::{Value, json};

use super::world::{Reply, Workers, World};
use crate::definition::NoticeEvent;
use crate::drive::{NoticeRow, NoticeState, Upkeep};
use crate::message::Action;
use crate::rows::{BatchId, WorkStatus};

/// One phase that has to be approved, and has an error budget of one member.
fn runbook(notify: &str) -> String {
    format!(
        r#"
name: migrate
data_source: {{type: manual, primary_key: Key}}
notify: {notify}
phases:
  - name: cutover
    offset: T-0
    approval: {{message: look first}}
    error_budget: 1
    steps:
      - {{name: switch, worker_id: here, function: Switch, params: {{Key: "{{{{Key}}}}"}}}}
"#
    )
}

/// Steps fail; notices are received by the function `revert`, which answers as given.
fn workers(received: &Arc<Mutex<Vec<Value>>>, answer: fn() -> Reply) -> Workers {
    let received = received.clone();
    Arc::new(move |function, _, input| match function {
        "revert" => {
            received.lock().unwrap().push(input.clone());
            answer()
        }
        _ => Reply::Fail("no licence"),
    })
}

async fn notices(world: &World, batch: BatchId) -> Vec<NoticeRow> {
    Listed::split(world.runbooks.notices(&world.scope, batch, 100).await.unwrap()).0
}

async fn until_notices(world: &World, batch: BatchId, count: usize) -> Vec<NoticeRow> {
    let ended = async || {
        let rows = notices(world, batch).await;
        rows.len() == count && rows.iter().all(|row| row.ended_at.is_some())
    };
    world.until("the notices", ended).await;
    notices(world, batch).await
}

#[test]
fn approvals_failures_and_budgets_are_told_once_each() {
    segno_testkit::run(async {
        let received = Arc::default();
        let world = World::new(workers(&received, || Reply::Done(json!(null))));
        world.publish(&runbook("{function: revert}")).await;
        let batch = world.create(Some(world.now()), &["a", "b"]).await;
        let _process = world.process(world.store.clone(), "node").await;
        let wanted = until_notices(&world, batch, 1).await;
        assert_eq!((wanted[0].event, wanted[0].state), (NoticeEvent::ApprovalWanted, NoticeState::Delivered));
        let input = received.lock().unwrap()[0].clone();
        assert_eq!((&input["event"], &input["phase_name"]), (&json!("approval_wanted"), &json!("cutover")));
        assert_eq!((&input["namespace"], &input["tenant"]), (&json!("eu"), &json!("acme")));
        assert_eq!(input["details"]["message"], "look first");
        let phase_execution_id = world.phase(batch, "cutover").await.id;
        world.request(batch, "ok", Action::ApprovePhase { phase_execution_id }).await;
        let failed =
            async || world.steps(batch).await.iter().all(|step| step.work.status == WorkStatus::Failed);
        world.until("the failures", failed).await;
        world.until("the notice", async || received.lock().unwrap().len() >= 2).await;
        world.pass(600).await;
        let events: Vec<Value> =
            received.lock().unwrap().iter().map(|input| input["event"].clone()).collect();
        assert!(
            events.contains(&json!("budget_spent")) || events.contains(&json!("phase_failed")),
            "{events:?}"
        );
        assert_eq!(events.len(), notices(&world, batch).await.len(), "each is told once");
    });
}

#[test]
fn a_notice_that_cannot_be_delivered_is_shown_and_stops_nothing() {
    segno_testkit::run(async {
        let received = Arc::default();
        let world = World::new(workers(&received, || Reply::Fail("status 500")));
        for (function, error) in [("revert", "status 500"), ("nothing-there", "nothing-there")] {
            world.publish(&runbook(&format!("{{function: {function}, on: [approval_wanted]}}"))).await;
            let batch = world.create(Some(world.now()), &["a"]).await;
            let process = world.process(world.store.clone(), "node").await;
            let rows = until_notices(&world, batch, 1).await;
            assert_eq!(rows[0].state, NoticeState::Failed);
            let message = rows[0].error_message.clone().unwrap_or_default();
            assert!(message.contains(error), "{message}");
            let phase_execution_id = world.phase(batch, "cutover").await.id;
            world.request(batch, "no", Action::RejectPhase { phase_execution_id }).await;
            world.until_ended(batch).await;
            assert_eq!(notices(&world, batch).await.len(), 1, "it wants to know of approvals only");
            drop(process);
        }
    });
}

#[test]
fn calls_of_notices_are_deleted_after_a_while_and_the_notices_stay() {
    segno_testkit::run(async {
        let received = Arc::default();
        let world = World::new(workers(&received, || Reply::Done(json!(null))));
        world.publish(&runbook("{function: revert, on: [approval_wanted]}")).await;
        let batch = world.create(Some(world.now()), &["a"]).await;
        let _process = world.process(world.store.clone(), "node").await;
        until_notices(&world, batch, 1).await;
        assert_eq!(world.instances().await.len(), 1);
        let services = world.services(world.store.clone(), world.functions(world.store.clone()));
        let upkeep = tokio::spawn(Upkeep::new(services).run(std::future::pending()));
        world.pass(23 * 60 * 60).await;
        assert_eq!(world.instances().await.len(), 1, "it is kept for a day");
        world.pass(2 * 60 * 60).await;
        assert_eq!(world.instances().await, Vec::<String>::new());
        assert_eq!(notices(&world, batch).await.len(), 1);
        upkeep.abort();
    });
}

#[test]
fn a_notice_is_stored_in_a_form_that_does_not_change() {
    let stored = concat!(
        r#"{"job_id":"notify-9-0","batch_id":42,"event":"phase_failed","phase_execution_id":7,"#,
        r#""phase_name":"cutover","function_name":"tell","state":"failed","error_message":"status 500","#,
        r#""created_at":"2026-03-15T06:00:00Z","ended_at":"2026-03-15T06:00:01Z"}"#
    );
    let row: NoticeRow = serde_json::from_str(stored).unwrap();
    assert_eq!((row.event, row.state), (NoticeEvent::PhaseFailed, NoticeState::Failed));
    assert_eq!(serde_json::to_string(&row).unwrap(), stored);
}
