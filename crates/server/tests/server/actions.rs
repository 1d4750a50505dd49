//! Actions over HTTP.

use jiff::{SignedDuration, Timestamp};
use segno::clock::Clock;
use segno_api::Json;
use segno_api::action::{Action, ActionStatus, CreateAction, OnRestart};
use serde_json::json;

use crate::stand::{PATIENCE, Stand};

fn call(function: &str, input: &str, at: Option<Timestamp>) -> CreateAction {
    CreateAction {
        namespace: None,
        tenant: None,
        label: None,
        tool_name: function.to_owned(),
        tool_input: Some(Json::from_text(input.to_owned()).unwrap()),
        next_tick_at: at,
        recurrence_secs: None,
        on_restart: OnRestart::Resume,
    }
}

fn in_an_hour() -> Timestamp {
    let now = i64::try_from(segno::clock::SystemClock.now_ms()).unwrap();
    Timestamp::from_millisecond(now).unwrap() + SignedDuration::from_hours(1)
}

async fn ended(client: &segno_api::Client, id: &str) -> Action {
    let look = async {
        loop {
            let action = client.action(id).await.unwrap();
            if !matches!(action.status, ActionStatus::Pending | ActionStatus::Running) {
                return action;
            }
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await.expect("it takes too long")
}

#[tokio::test]
async fn an_action_without_a_time_is_done_at_once() {
    let stand = Stand::open().await;
    let client = stand.client();
    let made = client.create_action(&call("greet", "\"Ada\"", None)).await.unwrap();
    let done = ended(&client, &made.id).await;
    assert_eq!(done.status, ActionStatus::Completed { result: json!("Hello, Ada!") });
    assert_eq!(done.label, "greet");
    assert!(client.instance(done.instance.as_ref().unwrap(), std::time::Duration::ZERO).await.is_ok());
    let again = client.run_action(&made.id).await.unwrap();
    assert_ne!(again.id, made.id);
    ended(&client, &again.id).await;
    let completed = client.actions(Some("completed"), None).await.unwrap();
    assert_eq!(completed.actions.len(), 2);
    assert!(client.actions(Some("pending"), None).await.unwrap().actions.is_empty());
}

#[tokio::test]
async fn one_that_waits_is_changed_run_now_or_cancelled() {
    let stand = Stand::open().await;
    let client = stand.client();
    let at = in_an_hour();
    let made = client.create_action(&call("echo", "{\"n\":1}", Some(at))).await.unwrap();
    let changes = Json::of(&json!({"label": "later", "recurrence_secs": 60})).unwrap();
    let changed = client.patch_action(&made.id, &changes).await.unwrap();
    assert_eq!((changed.label.as_str(), changed.recurrence), ("later", Some(60)));
    let cleared = client.patch_action(&made.id, &Json::of(&json!({"recurrence_secs": null})).unwrap()).await;
    assert_eq!(cleared.unwrap().recurrence, None);
    client.run_action(&made.id).await.unwrap();
    let done = ended(&client, &made.id).await;
    assert_eq!(done.status, ActionStatus::Completed { result: json!({"n": 1}) });
    let error = client.cancel_action(&made.id).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(409), Some("action-state")));

    let other = client.create_action(&call("echo", "{}", Some(at))).await.unwrap();
    let cancelled = client.cancel_action(&other.id).await.unwrap();
    assert_eq!(cancelled.status, ActionStatus::Failed { reason: "cancelled".to_owned() });
    for _ in 0..2 {
        client.delete_action(&other.id).await.unwrap();
    }
    assert_eq!(client.action(&other.id).await.unwrap_err().code(), Some("unknown-action"));
}

#[tokio::test]
async fn one_that_runs_is_told_to_stop() {
    let stand = Stand::open().await;
    let client = stand.client();
    let made = client.create_action(&call("slow", "{\"seconds\":3000}", None)).await.unwrap();
    let look = async {
        while client.action(&made.id).await.unwrap().status != ActionStatus::Running {
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await.expect("it takes too long");
    client.cancel_action(&made.id).await.unwrap();
    let ActionStatus::Failed { reason } = ended(&client, &made.id).await.status else {
        panic!("it is not failed")
    };
    assert!(reason.contains("cancelled"), "{reason}");
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let stand = Stand::open().await;
    for (request, field) in [
        (call("no-such-function", "{}", None), "tool_name"),
        (call("a/b", "{}", None), "tool_name"),
        (CreateAction { label: Some(" ".to_owned()), ..call("echo", "{}", None) }, "label"),
        (CreateAction { recurrence_secs: Some(0), ..call("echo", "{}", None) }, "recurrence"),
    ] {
        let error = stand.client().create_action(&request).await.unwrap_err();
        assert_eq!(error.status(), Some(400), "{error}");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
}
