//! Actions over HTTP.

use jiff::{SignedDuration, Timestamp};
use segno::clock::Clock;
use segno_api::Json;
use segno_api::action::{Action, ActionStatus, CreateAction, OnRestart};
use segno_api::client::Expected;
use segno_api::work::{FetchWork, ReleaseWork};
use serde_json::json;

use crate::stand::{PATIENCE, Stand, json_of};

fn call(function: &str, input: &str, at: Option<Timestamp>) -> CreateAction {
    CreateAction {
        namespace: None,
        tenant: None,
        label: None,
        tool_name: Some(function.to_owned()),
        orchestration: None,
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
            crate::stand::look_again().await;
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
    assert_eq!(done.status, ActionStatus::Completed { result: json_of("Hello, Ada!") });
    assert_eq!(done.label, "greet");
    assert!(client.instance(done.instance.as_ref().unwrap(), std::time::Duration::ZERO).await.is_ok());
    let again = client.run_action(&made.id).await.unwrap();
    assert_ne!(again.id, made.id);
    ended(&client, &again.id).await;
    let completed = client.actions(Some("completed"), None).await.unwrap();
    assert_eq!(completed.actions.len(), 2);
    assert!(client.actions(Some("pending"), None).await.unwrap().actions.is_empty());
    let several = client.actions(Some("pending,completed"), None).await.unwrap();
    assert_eq!(several.actions, completed.actions);
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
    assert_eq!(done.status, ActionStatus::Completed { result: json_of(&json!({"n": 1})) });
    let error = client.cancel_action(&made.id).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(409), Some("action-state")));

    let other = client.create_action(&call("echo", "{}", Some(at))).await.unwrap();
    let cancelled = client.cancel_action(&other.id).await.unwrap();
    assert_eq!(cancelled.status, ActionStatus::Failed { reason: "cancelled".to_owned() });
    client.delete_action(&other.id).await.unwrap();
    let error = client.delete_action(&other.id).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(404), Some("unknown-action")));
    assert_eq!(client.action(&other.id).await.unwrap_err().code(), Some("unknown-action"));
}

#[tokio::test]
async fn a_recurrence_has_an_upper_limit_at_every_door() {
    let stand = Stand::open().await;
    let client = stand.client();
    let longest_secs = segno::limits::MAX_TIMER.as_secs();
    let made = client.create_action(&call("echo", "{}", Some(in_an_hour()))).await.unwrap();
    for secs in [0, longest_secs + 1, u64::MAX] {
        let mut request = call("echo", "{}", Some(in_an_hour()));
        request.recurrence_secs = Some(secs);
        let changes = Json::of(&json!({ "recurrence_secs": secs })).unwrap();
        for refused in [
            client.create_action(&request).await.unwrap_err(),
            client.patch_action(&made.id, &changes).await.unwrap_err(),
        ] {
            assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-action")), "{secs}");
            assert!(refused.to_string().contains("recurrence_secs: must be"), "{refused}");
        }
    }
    let mut longest = call("echo", "{}", Some(in_an_hour()));
    longest.recurrence_secs = Some(longest_secs);
    assert_eq!(client.create_action(&longest).await.unwrap().recurrence, Some(longest_secs));
}

#[tokio::test]
async fn running_one_that_runs_already_shows_it_and_starts_nothing() {
    let stand = Stand::open().await;
    let client = stand.client();
    let made = client.create_action(&call("slow", "{\"seconds\":3000}", None)).await.unwrap();
    // It is due at once: each of these meets it before, while or after it is started.
    for _ in 0..20 {
        assert_eq!(client.run_action(&made.id).await.unwrap().id, made.id);
    }
    let look = async {
        while client.action(&made.id).await.unwrap().status != ActionStatus::Running {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await.expect("it takes too long");
    let again = client.run_action(&made.id).await.unwrap();
    assert_eq!((again.id.as_str(), again.status), (made.id.as_str(), ActionStatus::Running));
    let listed = client.actions(None, None).await.unwrap().actions;
    assert_eq!(listed.len(), 1, "{listed:?}");
    client.cancel_action(&made.id).await.unwrap();
}

#[tokio::test]
async fn one_that_runs_is_told_to_stop() {
    let stand = Stand::open().await;
    let client = stand.client();
    let made = client.create_action(&call("slow", "{\"seconds\":3000}", None)).await.unwrap();
    let look = async {
        while client.action(&made.id).await.unwrap().status != ActionStatus::Running {
            crate::stand::look_again().await;
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
        (call("no-such-function", "{}", None), "function: "),
        (call("a/b", "{}", None), "function: "),
        (CreateAction { label: Some(" ".to_owned()), ..call("echo", "{}", None) }, "label"),
        (CreateAction { recurrence_secs: Some(0), ..call("echo", "{}", None) }, "recurrence_secs"),
    ] {
        let error = stand.client().create_action(&request).await.unwrap_err();
        assert_eq!(error.status(), Some(400), "{error}");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
}

#[tokio::test]
async fn actions_schedules_and_webhooks_start_orchestrations() {
    let stand = Stand::open().await;
    let client = stand.client();
    let started = CreateAction {
        tool_name: None,
        orchestration: Some("greet".to_owned()),
        ..call("", r#"{"name":"Ada"}"#, None)
    };
    let made = client.create_action(&started).await.unwrap();
    assert_eq!((made.label.as_str(), made.tool_name.as_str()), ("greet", ""));
    let done = ended(&client, &made.id).await;
    assert!(matches!(done.status, ActionStatus::Completed { .. }), "{done:?}");
    let instance = client.instance(done.instance.as_ref().unwrap(), std::time::Duration::ZERO).await.unwrap();
    assert_eq!(instance.orchestration.as_deref(), Some("greet"));
    let again = client.run_action(&made.id).await.unwrap();
    assert_eq!(again.orchestration.as_deref(), Some("greet"));
    let fields = segno_api::recurring::RecurringFields {
        every: Some("1h".to_owned()),
        orchestration: Some("greet".to_owned()),
        input: Some(Json::from_text(r#"{"name":"Ada"}"#.to_owned()).unwrap()),
        ..Default::default()
    };
    let recurring = client.create_recurring(&fields).await.unwrap();
    let shown = client.recurring(&recurring.recurring_id).await.unwrap();
    assert_eq!(shown.action_template.orchestration.as_deref(), Some("greet"));
    let changes = Json::from_text(r#"{"function":"echo"}"#.to_owned()).unwrap();
    let shown = client.update_recurring(&recurring.recurring_id, &changes).await.unwrap();
    assert_eq!(
        (shown.action_template.orchestration, shown.action_template.provider.as_str()),
        (None, "echo")
    );
    for (function, orchestration, field) in [
        (None, None, "function: "),
        (Some("echo"), Some("greet"), "orchestration"),
        (None, Some("invoke"), "orchestration"),
        (None, Some(""), "orchestration"),
        (None, Some("nosuch"), "unknown-orchestration"),
    ] {
        let request = CreateAction {
            tool_name: function.map(str::to_owned),
            orchestration: orchestration.map(str::to_owned),
            ..started.clone()
        };
        let refused = client.create_action(&request).await.unwrap_err().to_string();
        assert!(refused.contains(field), "{refused}");
    }
    let built_in =
        segno_api::recurring::RecurringFields { orchestration: Some("invoke".to_owned()), ..fields };
    assert!(client.create_recurring(&built_in).await.unwrap_err().to_string().contains("built in"));
}

#[tokio::test]
async fn listings_are_newest_first_whatever_the_ids_are() {
    let stand = Stand::open().await;
    let http = crate::stand::http();
    let mut made = Vec::new();
    for number in 0..7 {
        // The id of a request with a key follows from the key.
        let request = http.post(stand.url("/v1/actions")).header("idempotency-key", format!("key-{number}"));
        let answer = request.json(&call("echo", "1", Some(in_an_hour()))).send().await.unwrap();
        made.push(answer.json::<Action>().await.unwrap().id);
    }
    made.reverse();
    assert!(!made.is_sorted_by(|one, next| one > next), "the ids are in no order");
    let page = async |cursor: &str| {
        let answer = http.get(stand.url(&format!("/v1/actions?limit=3{cursor}"))).send().await.unwrap();
        answer.json::<segno_api::action::ActionList>().await.unwrap()
    };
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = page(&cursor).await;
        found.extend(page.actions.into_iter().map(|action| action.id));
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, made);
    // A cursor of an earlier version is the id of an action.
    let rest = page(&format!("&cursor={}", made[4])).await;
    assert_eq!(rest.actions.into_iter().map(|action| action.id).collect::<Vec<_>>(), made[5..]);
}

#[tokio::test]
async fn what_is_begun_once_is_not_handed_to_a_second_worker_when_the_lease_of_the_first_has_ended() {
    let stand = Stand::open().await;
    let client = stand.client();
    client
        .put_function("render", &json_of(&json!({ "executor": "remote" })), Expected::Absent)
        .await
        .unwrap();
    let once = CreateAction { on_restart: OnRestart::Fail, ..call("render", "1", None) };
    let made = client.create_action(&once).await.unwrap();
    let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
    let ask = |lease_ms| FetchWork { lease_ms, wait_ms, ..FetchWork::new("w", ["render"]) };
    let first = client.fetch_work(&ask(60_000)).await.unwrap().items.remove(0);
    client.release_work(&ReleaseWork { lease: first.lease, delay_ms: None }).await.unwrap();
    let second = client.fetch_work(&ask(10)).await.unwrap().items;
    assert_eq!(second.len(), 1, "what a worker has given back was not begun");
    // This worker says nothing, and its lease ends at once.
    let third = client.fetch_work(&ask(60_000)).await.unwrap().items;
    assert!(third.is_empty(), "{third:?}");
    let failed = ended(&client, &made.id).await;
    assert_eq!(failed.status, ActionStatus::Failed { reason: "recovered from restart".to_owned() });
}
