//! One change for many instances, named or matching, and the same for one: restarts with another input, and attempts at once.

use std::time::Duration;

use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Retry};
use segno_api::Client;
use segno_api::audit::ListAudit;
use segno_api::bulk::{Bulk, BulkAction, BulkFilter, BulkLeft};
use segno_api::explain::WaitState;
use segno_api::instance::{Restart, StartInstance, Status};
use segno_api::invocation::Invoke;
use segno_server::samples;
use segno_server::settings::Authentication;
use serde_json::json;

use crate::stand::{PATIENCE, Stand, greet, json_of, settings};

const INSISTING: Orchestration<(), String> = Orchestration::new("insisting");
const BANK: Activity<(), String> = Activity::new("bank");

/// Waits an hour before the second attempt, which succeeds.
async fn insisting(ctx: Context, (): ()) -> Result<String, Failure> {
    ctx.activity(BANK, ()).retry(Retry::fixed(2, Duration::from_secs(3_600))).await
}

async fn bank(ctx: ActivityContext, (): ()) -> Result<String, Failure> {
    match ctx.attempt() {
        1 => Err(Failure::application("the bank is closed")),
        _ => Ok("paid".to_owned()),
    }
}

async fn stand() -> Stand {
    let registry = samples::registry().orchestration(INSISTING, insisting).activity(BANK, bank);
    Stand::with_registry(settings(Authentication::None), registry).await
}

fn named(action: BulkAction, ids: &[&str]) -> Bulk {
    Bulk {
        action,
        filter: BulkFilter::default(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        reason: None,
        dry_run: false,
        force: false,
        limit: None,
        cursor: None,
    }
}

async fn start_insisting(client: &Client, id: &str) {
    let start = StartInstance { orchestration: "insisting".to_owned(), ..greet(id, "null") };
    client.start(&start, None, Duration::ZERO).await.unwrap();
    let delayed = async {
        loop {
            let waits = client.explain_instance(id).await.unwrap().waits;
            if waits.iter().any(|wait| wait.state == Some(WaitState::Delayed)) {
                return;
            }
            crate::stand::look_again().await;
        }
    };
    let clock = segno::clock::SystemClock;
    segno::clock::timeout(&clock, PATIENCE, delayed).await.expect("its first attempt has failed");
}

#[tokio::test]
async fn an_attempt_is_made_at_once_and_the_reason_is_in_the_audit_log() {
    let stand = stand().await;
    let client = stand.client();
    start_insisting(&client, "one").await;
    let retried = client.retry("one", Some("the bank is open".to_owned())).await.unwrap();
    assert_eq!((retried.id.as_str(), retried.activities), ("one", 1));
    assert_eq!(client.instance("one", PATIENCE).await.unwrap().status, Status::Completed);
    let ended = client.retry("one", None).await.unwrap_err();
    assert_eq!((ended.status(), ended.code()), (Some(409), Some("instance-ended")));
    assert_eq!(client.retry("nobody", None).await.unwrap_err().status(), Some(404));
    let waiting = greet("waiting", r#"{"name":"Ada","wait":true}"#);
    client.start(&waiting, None, Duration::ZERO).await.unwrap();
    client.custom_status("waiting", 0, PATIENCE).await.unwrap();
    let nothing = client.retry("waiting", None).await.unwrap_err();
    assert_eq!((nothing.status(), nothing.code()), (Some(409), Some("nothing-to-retry")));
    let audit = client.audit(&ListAudit { action: Some("retry".to_owned()), ..ListAudit::default() }).await;
    let entries = audit.unwrap().entries;
    let done = entries.iter().find(|entry| entry.status == 200).expect("it is in the log");
    assert_eq!(done.reason.as_deref(), Some("the bank is open"));
    stand.shutdown().await;
}

#[tokio::test]
async fn a_reason_comes_with_any_change_in_a_header() {
    let stand = stand().await;
    let http = crate::stand::http();
    let send = async |id: &str, reason: &str| {
        let call = http.post(stand.url("/v1/instances")).header("segno-reason", reason);
        let body = json!({ "orchestration": "greet", "id": id, "input": { "name": "Ada" } });
        call.json(&body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("one", "for%20Zo%C3%AB").await, 201);
    for wrong in ["%ff", "%1b", &"a".repeat(1_001)] {
        assert_eq!(send("two", wrong).await, 400, "{wrong}");
    }
    let entries = stand.client().audit(&ListAudit::default()).await.unwrap().entries;
    let reasons: Vec<_> = entries.iter().filter_map(|entry| entry.reason.as_deref()).collect();
    assert_eq!(reasons, ["for Zoë"]);
    assert_eq!(stand.client().instance("two", Duration::ZERO).await.unwrap_err().status(), Some(404));
    stand.shutdown().await;
}

#[tokio::test]
async fn named_instances_are_retried_and_restarted_and_the_others_have_a_reason() {
    let stand = stand().await;
    let client = stand.client();
    start_insisting(&client, "one").await;
    start_insisting(&client, "two").await;
    let both = ["one", "nobody", "two", "one"];
    let preview = Bulk { dry_run: true, ..named(BulkAction::Retry, &both) };
    let counted = client.bulk(&preview).await.unwrap();
    assert_eq!((counted.matched, counted.would_change, counted.changed), (3, Some(2), 0));
    assert_eq!(counted.sample, ["one", "two"]);
    assert_eq!(counted.left, BulkLeft { gone: 1, ..BulkLeft::default() });
    assert_eq!(counted.left_sample[0].id, "nobody");
    let running = client.bulk(&named(BulkAction::Restart, &both)).await.unwrap();
    assert_eq!((running.changed, running.left.running), (0, 2), "what runs is not restarted without force");
    assert_eq!(client.bulk(&named(BulkAction::Retry, &both)).await.unwrap().changed, 2);
    for id in ["one", "two"] {
        assert_eq!(client.instance(id, PATIENCE).await.unwrap().status, Status::Completed);
    }
    let ended = client.bulk(&named(BulkAction::Retry, &both)).await.unwrap();
    assert_eq!((ended.changed, ended.left.ended), (0, 2));
    let first = Bulk { limit: Some(1), ..named(BulkAction::Restart, &both) };
    let first = client.bulk(&first).await.unwrap();
    assert_eq!((first.matched, first.changed), (1, 1));
    let rest = Bulk { cursor: first.next_cursor, ..named(BulkAction::Restart, &both) };
    let rest = client.bulk(&rest).await.unwrap();
    assert_eq!((rest.matched, rest.changed, rest.next_cursor), (2, 1, None));
    for id in ["one", "two"] {
        assert_eq!(client.instance(id, Duration::ZERO).await.unwrap().execution, 2, "{id}");
    }
    let filter = BulkFilter { prefix: Some("o".to_owned()), ..BulkFilter::default() };
    for wrong in [
        named(BulkAction::Retry, &[]),
        Bulk { filter, ..named(BulkAction::Retry, &["one"]) },
        Bulk { ids: vec!["x".to_owned(); 10_001], ..named(BulkAction::Retry, &[]) },
        Bulk { cursor: Some("???".to_owned()), ..named(BulkAction::Retry, &["one"]) },
    ] {
        assert_eq!(client.bulk(&wrong).await.unwrap_err().status(), Some(400));
    }
    stand.shutdown().await;
}

#[tokio::test]
async fn restarts_under_a_key_happen_once_also_when_the_answer_was_lost_with_the_process() {
    let stand = stand().await;
    let client = stand.client();
    let ids: Vec<String> = (0..9).map(|n| format!("many-{n}")).collect();
    for id in &ids {
        client.start(&greet(id, r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    }
    let filter = BulkFilter { prefix: Some("many-".to_owned()), ..BulkFilter::default() };
    let request = Bulk { filter, ..named(BulkAction::Restart, &[]) };
    let first = client.bulk_under(&request, Some("fix-1")).await.unwrap();
    assert_eq!(first.changed, 9);
    for id in &ids {
        client.instance(id, PATIENCE).await.unwrap();
    }
    assert_eq!(client.bulk_under(&request, Some("fix-1")).await.unwrap(), first, "the answer is kept");
    // What a process leaves that was killed between its restarts and its answer.
    forget_answers(&stand).await;
    let again = client.bulk_under(&request, Some("fix-1")).await.unwrap();
    assert_eq!(again.changed, 9);
    for id in &ids {
        assert_eq!(client.instance(id, PATIENCE).await.unwrap().execution, 2, "{id}: once");
    }
    client.bulk_under(&request, Some("fix-2")).await.unwrap();
    assert_eq!(client.instance("many-3", Duration::ZERO).await.unwrap().execution, 3, "another key");
    stand.shutdown().await;
}

/// Removes the answers that are kept under idempotency keys.
async fn forget_answers(stand: &Stand) {
    let (store, kind) = (stand.server.client().store().clone(), "segno.idempotency");
    let list = ListRecords { kind, id_prefix: "", after_id: None, limit: 1_000 };
    let kept = store.list_records(list).await.unwrap();
    assert!(!kept.is_empty());
    let delete = |id: String| RecordWrite::Delete { kind: kind.to_owned(), id, expect: Expect::Anything };
    let writes = kept.into_iter().map(|record| delete(record.id)).collect();
    store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
}

#[tokio::test]
async fn a_restart_takes_another_input_that_is_checked_as_that_of_a_start() {
    let stand = stand().await;
    let client = stand.client();
    client.start(&greet("ada", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let reason = Some("wrong name".to_owned());
    let bob = Restart { input: Some(json_of(&json!({ "name": "Bob" }))), reason, ..Restart::default() };
    client.restart("ada", &bob).await.unwrap();
    let ended = client.instance("ada", PATIENCE).await.unwrap();
    assert_eq!((ended.execution, ended.result.unwrap().text()), (2, "\"Hello, Bob!\""));
    let copy = Restart { new_id: Some("copy".to_owned()), ..bob };
    client.restart("ada", &copy).await.unwrap();
    let copied = client.instance("copy", PATIENCE).await.unwrap();
    assert_eq!(copied.result.unwrap().text(), "\"Hello, Bob!\"");
    let restarts = ListAudit { action: Some("restart".to_owned()), ..ListAudit::default() };
    let entries = client.audit(&restarts).await.unwrap().entries;
    assert!(entries.iter().all(|entry| entry.reason.as_deref() == Some("wrong name")), "{entries:?}");
    assert_eq!(entries.len(), 2);
    let taken = client.restart("ada", &copy).await.unwrap_err();
    assert_eq!((taken.status(), taken.code()), (Some(409), Some("instance-exists")));
    let told = "new_id: an instance with the id \"copy\" exists already; choose another new_id";
    assert!(taken.to_string().starts_with(told), "{taken}");

    let schema = json!({ "type": "object", "required": ["n"] });
    let declaration = json_of(&json!({ "executor": "remote", "input_schema": schema }));
    let absent = segno_api::client::Expected::Absent;
    client.put_function("count", &declaration, absent).await.unwrap();
    let call = Invoke { key: Some("c".to_owned()), ..Invoke::new("count", json_of(&json!({ "n": 1 }))) };
    let id = client.invoke(&call, Duration::ZERO).await.unwrap().id;
    let is_begun = async {
        while client.instance(&id, Duration::ZERO).await.unwrap().orchestration.is_none() {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, is_begun).await.expect("it does not begin");
    let wrong = Restart { input: Some(json_of(&json!(null))), force: true, ..Restart::default() };
    let refused = client.restart(&id, &wrong).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-input")));
    let right = Restart { input: Some(json_of(&json!({ "n": 2 }))), force: true, ..Restart::default() };
    client.restart(&id, &right).await.unwrap();
    let call = client.instance(&id, Duration::ZERO).await.unwrap();
    assert_eq!(call.execution, 2);
    stand.shutdown().await;
}
