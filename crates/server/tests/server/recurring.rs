//! Recurring actions over HTTP.

use segno_api::Json;
use segno_api::key::Role;
use segno_api::recurring::{PauseRecurring, RecurringFields, RecurringHistory, RunRecurring};
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, settings};

/// The request of the seed, with a function that there is.
fn seed_request() -> Value {
    json!({
        "namespace": "notifications",
        "tenant": "tenant-1",
        "cron_expr": "0 9 * * MON-FRI",
        "timezone": "US/Eastern",
        "provider": "echo",
        "action_type": "send_digest",
        "payload": {"to": "team@example.com", "subject": "Daily Digest"},
        "metadata": {},
        "dedup_key": null,
        "description": "Weekday morning digest",
        "labels": {"team": "engineering"},
        "ends_at": null,
        "enabled": true
    })
}

async fn post(stand: &Stand, path: &str, body: &Value) -> (u16, Value) {
    let mut call = crate::stand::http().post(stand.url(path)).json(body);
    if !stand.admin_key.is_empty() {
        call = call.bearer_auth(&stand.admin_key);
    }
    let answer = call.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

fn every(text: &str) -> RecurringFields {
    RecurringFields {
        every: Some(text.to_owned()),
        function: Some("greet".to_owned()),
        input: Some(Json::from_text("\"Ada\"".to_owned()).unwrap()),
        ..RecurringFields::default()
    }
}

/// Waits until something of an action's history is as it should be.
async fn history_with(
    client: &segno_api::Client,
    id: &str,
    is_there: impl Fn(&RecurringHistory) -> bool,
) -> RecurringHistory {
    let look = async {
        loop {
            let history = client.recurring_history(id, 50, None).await.unwrap();
            if is_there(&history) {
                return history;
            }
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await.expect("it takes too long")
}

#[tokio::test]
async fn the_request_of_the_seed_is_answered_as_it_says() {
    let stand = Stand::open().await;
    let (status, created) = post(&stand, "/v1/recurring", &seed_request()).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["cron_expr"], "0 9 * * MON-FRI");
    assert_eq!((&created["timezone"], &created["enabled"]), (&json!("US/Eastern"), &json!(true)));
    let id = created["recurring_id"].as_str().unwrap();
    assert!(created["next_execution"].is_string());
    let client = stand.client().scope("notifications", "tenant-1");
    let whole = client.recurring(id).await.unwrap();
    assert_eq!(whole.action_template.payload.text(), r#"{"subject":"Daily Digest","to":"team@example.com"}"#);
    assert_eq!((whole.execution_count, whole.last_executed_at), (0, None));
    let list = client.recurring_list(Some(true), None).await.unwrap();
    assert_eq!((list.recurring_actions.len(), list.next_cursor), (1, None));
    assert!(client.recurring_list(Some(false), None).await.unwrap().recurring_actions.is_empty());
    let elsewhere = stand.client().recurring(id).await.unwrap_err();
    assert_eq!((elsewhere.status(), elsewhere.code()), (Some(404), Some("unknown-action")));
    let problem = crate::stand::http().get(stand.url(&format!("/v1/recurring/{id}"))).send().await.unwrap();
    let problem: Value = problem.json().await.unwrap();
    assert_eq!(problem["error"], "recurring action not found", "as the seed has it");
    client.delete_recurring(id).await.unwrap();
    assert_eq!(client.delete_recurring(id).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let stand = Stand::open().await;
    for (field, value) in [
        ("cron_expr", json!("every day")),
        ("cron_expr", json!("0 0 30 2 *")),
        ("timezone", json!("Mars/Base")),
        ("provider", json!("")),
        ("provider", json!("no-such-function")),
        ("action_type", json!("")),
        ("payload", json!([1, 2])),
        ("ends_at", json!("2001-01-01T00:00:00Z")),
        ("overlap_policy", json!("sometimes")),
        ("jitter", json!("soon")),
        ("max_executions", json!(0)),
        ("dedup_key", json!("{{unknown}}")),
        ("tenant", json!("a/b")),
        ("typo", json!(1)),
    ] {
        let mut request = seed_request();
        request[field] = value.clone();
        let (status, problem) = post(&stand, "/v1/recurring", &request).await;
        assert_eq!(status, 400, "{field}: {problem}");
        let named = problem["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
        assert!(named == field || field == "typo", "{field} = {value}: {problem}");
    }
    let list = stand.client().scope("notifications", "tenant-1").recurring_list(None, None).await.unwrap();
    assert!(list.recurring_actions.is_empty());
}

#[tokio::test]
async fn aliases_of_the_shipped_api_are_taken() {
    let stand = Stand::open().await;
    let request = json!({
        "cron_expression": "*/5 * * * *", "end_date": "2199-01-01T00:00:00Z", "provider": "echo",
        "action_type": "x", "payload": {}, "overlap_policy": "allow_all", "name": "five"
    });
    let (status, created) = post(&stand, "/v1/recurring", &request).await;
    assert_eq!(status, 201, "{created}");
    let whole = stand.client().recurring(created["recurring_id"].as_str().unwrap()).await.unwrap();
    assert_eq!((whole.name.as_deref(), whole.cron_expr.as_deref()), (Some("five"), Some("*/5 * * * *")));
    assert!(whole.ends_at.is_some());
}

#[tokio::test]
async fn it_fires_and_tells() {
    let stand = Stand::open().await;
    let client = stand.client();
    let created = client.create_recurring(&every("1s")).await.unwrap();
    let id = created.recurring_id;
    let fired = history_with(&client, &id, |history| {
        history.entries.iter().any(|entry| entry.outcome.as_deref() == Some("completed"))
    })
    .await;
    let done = fired.entries.iter().find(|entry| entry.outcome.is_some()).unwrap();
    let instance = client.instance(done.instance.as_ref().unwrap(), PATIENCE).await.unwrap();
    assert_eq!(instance.result.unwrap().text(), "\"Hello, Ada!\"");
    let explained = client.explain_recurring(&id, done.time).await.unwrap();
    assert!(explained.runs && explained.text.contains("fired"), "{explained:?}");
    assert!(client.recurring(&id).await.unwrap().execution_count >= 1);
}

#[tokio::test]
async fn it_is_changed_paused_and_resumed() {
    let stand = Stand::open().await;
    let client = stand.client();
    let id = client.create_recurring(&every("1h")).await.unwrap().recurring_id;
    let changes =
        json!({"cron_expr": "0 9 * * *", "description": "nine", "labels": {"a": "b"}, "jitter": "5m"});
    let changed = client.update_recurring(&id, &Json::of(&changes).unwrap()).await.unwrap();
    assert_eq!((changed.every, changed.cron_expr.as_deref()), (None, Some("0 9 * * *")));
    assert_eq!((changed.description.as_deref(), changed.jitter.as_deref()), (Some("nine"), Some("5m")));
    let cleared = json!({"description": null, "jitter": null, "labels": null});
    let cleared = client.update_recurring(&id, &Json::of(&cleared).unwrap()).await.unwrap();
    assert_eq!((cleared.description, cleared.jitter, cleared.labels.len()), (None, None, 0));
    assert_eq!(cleared.action_template.provider, "greet");
    let wrong = Json::of(&json!({"provider": null})).unwrap();
    assert_eq!(client.update_recurring(&id, &wrong).await.unwrap_err().status(), Some(400));
    for _ in 0..2 {
        let state = client.pause_recurring(&id, &PauseRecurring::default()).await.unwrap();
        assert_eq!((state.enabled, state.next_execution_at), (false, None));
    }
    for _ in 0..2 {
        let state = client.resume_recurring(&id).await.unwrap();
        assert!(state.enabled && state.next_execution_at.is_some());
    }
    let preview = client.preview_recurring(&id, 3).await.unwrap();
    assert_eq!(preview.times.len(), 3);
    assert!(preview.schedule.contains("09:00"), "{}", preview.schedule);
}

#[tokio::test]
async fn a_preview_of_rare_times_ends_and_says_where_to_go_on() {
    let stand = Stand::open().await;
    let request = json!({ "cron_expr": "0 0 29 2 *", "timezone": "Europe/Berlin" });
    let mut from = "2026-03-01T00:00:00Z".to_owned();
    let mut years = Vec::new();
    for _ in 0..3 {
        let path = format!("/v1/recurring/preview?count=1000&from={from}");
        let (status, preview) = post(&stand, &path, &request).await;
        assert_eq!(status, 200, "{preview}");
        let times = preview["times"].as_array().unwrap();
        assert!((1..1_000).contains(&times.len()), "{preview}");
        years.extend(times.iter().map(|line| line["local"].as_str().unwrap()[..4].parse::<u32>().unwrap()));
        from = preview["next_after"].as_str().unwrap_or_else(|| panic!("{preview}")).to_owned();
        assert_eq!(times.last().unwrap()["time"], from.as_str());
    }
    let leap = |year: &u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let all: Vec<u32> = (2027..=*years.last().unwrap()).filter(leap).collect();
    assert_eq!(years, all, "none is left out between two searches");
}

#[tokio::test]
async fn an_unsaved_schedule_is_previewed() {
    let stand = Stand::open().await;
    let request = json!({"cron_expr": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"});
    let (status, preview) =
        post(&stand, "/v1/recurring/preview?from=2026-03-27T00:00:00Z&count=2", &request).await;
    assert_eq!(status, 200, "{preview}");
    assert_eq!(preview["times"][0]["time"], "2026-03-27T08:00:00Z");
    assert_eq!(preview["times"][1]["time"], "2026-03-30T07:00:00Z");
}

#[tokio::test]
async fn a_preview_refuses_what_a_creation_refuses() {
    let stand = Stand::open().await;
    let whole = json!({"every": "1h", "function": "greet", "input": "Ada"});
    let schedule = json!({"every": "1h"});
    for (field, value) in [
        ("pause_after_failures", json!(0)),
        ("pause_after_failures", json!(4_294_967_296_u64)),
        ("catch_up_limit", json!(1_001)),
        ("catch_up_window", json!("32d")),
        ("max_executions", json!(0)),
        ("dedup_window", json!("soon")),
        ("jitter", json!("2h")),
        ("every", json!("10ms")),
        ("name", json!(" ")),
        ("labels", json!({"a": "x".repeat(300)})),
        ("exclude", json!(["Christmas"])),
        ("function", json!("no-such-function")),
    ] {
        let mut answers = Vec::new();
        for (path, request) in [
            ("/v1/recurring", &whole),
            ("/v1/recurring/preview", &whole),
            ("/v1/recurring/preview", &schedule),
        ] {
            let mut request = request.clone();
            request[field] = value.clone();
            let (status, mut problem) = post(&stand, path, &request).await;
            problem["request_id"] = Value::Null;
            // The texts are of different lengths, so what does not fit its type is at another place.
            let text = problem.to_string();
            answers.push((status, text.split(" at line ").next().unwrap_or_default().to_owned()));
        }
        assert_eq!(answers[0].0, 400, "{field} = {value}: {}", answers[0].1);
        assert_eq!(answers[0], answers[1], "{field} = {value}");
        assert_eq!(answers[0], answers[2], "{field} = {value}, with a schedule alone");
    }
}

#[tokio::test]
async fn a_preview_refuses_an_orchestration_that_no_node_has_as_a_creation_does() {
    let stand = Stand::open().await;
    for (name, status) in [("gret", 404), ("invoke", 400)] {
        let request = json!({ "every": "1h", "orchestration": name });
        let mut answers = Vec::new();
        for path in ["/v1/recurring", "/v1/recurring/preview"] {
            let (answered, mut problem) = post(&stand, path, &request).await;
            problem["request_id"] = Value::Null;
            assert_eq!(answered, status, "{path}, {name}: {problem}");
            answers.push(problem);
        }
        assert_eq!(answers[0], answers[1]);
    }
    let known = json!({ "every": "1h", "orchestration": "greet" });
    assert_eq!(post(&stand, "/v1/recurring/preview", &known).await.0, 200);
}

#[tokio::test]
async fn days_that_are_left_out_are_shown_and_cleared() {
    let stand = Stand::open().await;
    let client = stand.client();
    let fields =
        RecurringFields { exclude: Some(vec!["SAT..SUN".to_owned(), "--12-25".to_owned()]), ..every("1h") };
    let id = client.create_recurring(&fields).await.unwrap().recurring_id;
    let whole = client.recurring(&id).await.unwrap();
    assert_eq!(whole.exclude, ["SAT..SUN", "--12-25"]);
    assert!(whole.schedule.ends_with(", not on SAT..SUN, 12-25"), "{}", whole.schedule);
    let christmas = "2098-12-25T09:00:00Z".parse().unwrap();
    let explained = client.explain_recurring(&id, christmas).await.unwrap();
    assert_eq!(
        (explained.runs, explained.text.as_str()),
        (false, "the calendar leaves out its day: 12-25 (exclude)")
    );
    let nothing = Json::of(&json!({"exclude": ["MON..SUN"]})).unwrap();
    let error = client.update_recurring(&id, &nothing).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.to_string().contains("exclude: it would never fire again"), "{error}");
    let cleared = client.update_recurring(&id, &Json::of(&json!({"exclude": null})).unwrap()).await.unwrap();
    assert!(cleared.exclude.is_empty() && !cleared.schedule.contains("not on"), "{cleared:?}");
    let explained = client.explain_recurring(&id, christmas).await.unwrap();
    assert!(explained.runs, "{explained:?}");
}

#[tokio::test]
async fn grants_hold_whether_the_tenant_is_in_the_query_or_in_the_body() {
    let stand = Stand::with_keys().await;
    let key = stand.key(Role::Operator, "notifications", "tenant-1").await;
    let send = async |path: &str, request: &Value| {
        let call = crate::stand::http().post(stand.url(path)).bearer_auth(&key).json(request);
        call.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("/v1/recurring", &seed_request()).await, 201);
    let mut other = seed_request();
    other["tenant"] = json!("tenant-2");
    assert_eq!(send("/v1/recurring", &other).await, 403);
    assert_eq!(send("/v1/recurring?namespace=notifications&tenant=tenant-1", &other).await, 400);
    assert_eq!(send("/v1/recurring", &json!({"every": "1h", "function": "echo"})).await, 403);
    let viewer = stand.client_with(Role::Viewer, "notifications", "tenant-1").await;
    let viewer = viewer.scope("notifications", "tenant-1");
    assert_eq!(viewer.recurring_list(None, None).await.unwrap().recurring_actions.len(), 1);
    assert_eq!(viewer.create_recurring(&every("1h")).await.unwrap_err().status(), Some(403));
}

#[tokio::test]
async fn the_limit_of_a_tenant_is_told_with_429() {
    let mut settings = settings(Authentication::None);
    settings.actions.max_recurring_per_tenant = 1;
    let stand = Stand::with(settings).await;
    stand.client().create_recurring(&every("1h")).await.unwrap();
    let error = stand.client().create_recurring(&every("1h")).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(429), Some("too-many-recurring")));
    stand.client().scope("default", "other").create_recurring(&every("1h")).await.unwrap();
}

#[tokio::test]
async fn a_run_out_of_schedule_happens_once_per_key_and_is_in_the_history() {
    let stand = Stand::open().await;
    let client = stand.client();
    let made = client
        .create_recurring(&RecurringFields { name: Some("nightly".to_owned()), ..every("24h") })
        .await
        .unwrap();
    client.pause_recurring("nightly", &PauseRecurring::default()).await.unwrap();
    let run = RunRecurring { key: Some("again".to_owned()) };
    let first = client.run_recurring("nightly", &run).await.unwrap();
    assert_eq!(
        (first.created, first.decision.as_str(), first.id.as_str()),
        (true, "fired", made.recurring_id.as_str())
    );
    let again = client.run_recurring(&made.recurring_id, &run).await.unwrap();
    assert_eq!((again.created, &again.instance, again.time), (false, &first.instance, first.time));
    let ended = client.instance(first.instance.as_deref().unwrap(), PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#""Hello, Ada!""#);
    let history = history_with(&client, "nightly", |history| {
        history.entries.iter().any(|entry| entry.outcome.as_deref() == Some("completed"))
    })
    .await;
    assert_eq!(
        (history.entries.len(), history.entries[0].manual, history.entries[0].time),
        (1, true, first.time)
    );
    let shown = client.recurring("nightly").await.unwrap();
    assert_eq!((shown.execution_count, shown.enabled), (1, false), "it counts, and stays paused");
    let other = client.run_recurring("nightly", &RunRecurring::default()).await.unwrap();
    assert_ne!(other.instance, first.instance);
    assert_eq!(client.run_recurring("nosuch", &run).await.unwrap_err().code(), Some("unknown-action"));
}

#[tokio::test]
async fn a_run_that_would_overlap_is_refused_with_the_way_out() {
    let stand = Stand::open().await;
    let client = stand.client();
    let slow = json!({
        "every": "24h", "function": "slow", "input": { "seconds": 600 }, "overlap_policy": "skip", "name": "slow",
    });
    client.create_recurring(&serde_json::from_value(slow).unwrap()).await.unwrap();
    let first = client.run_recurring("slow", &RunRecurring::default()).await.unwrap();
    let refused = client.run_recurring("slow", &RunRecurring::default()).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("action-state")), "{refused}");
    assert!(refused.to_string().contains("overlap_policy is skip"), "{refused}");
    client.cancel(first.instance.as_deref().unwrap(), None).await.unwrap();
    client.instance(first.instance.as_deref().unwrap(), PATIENCE).await.unwrap();
    assert!(client.run_recurring("slow", &RunRecurring::default()).await.unwrap().created);
}

#[tokio::test]
async fn names_lead_to_recurring_actions_at_every_door_and_several_are_told_apart() {
    let stand = Stand::open().await;
    let client = stand.client();
    let named = |name: &str| RecurringFields { name: Some(name.to_owned()), ..every("24h") };
    let one = client.create_recurring(&named("daily / report")).await.unwrap().recurring_id;
    assert_eq!(client.recurring("daily / report").await.unwrap().id, one);
    assert_eq!(client.recurring_history("daily / report", 10, None).await.unwrap().entries, []);
    assert_eq!(client.preview_recurring("daily / report", 2).await.unwrap().times.len(), 2);
    client.resume_recurring("daily / report").await.unwrap();
    let two = client.create_recurring(&named("daily / report")).await.unwrap().recurring_id;
    let refused = client.delete_recurring("daily / report").await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("ambiguous-name")), "{refused}");
    assert!(refused.to_string().contains(&one) && refused.to_string().contains(&two), "{refused}");
    client.update_recurring(&two, &Json::of(&json!({ "name": "other" })).unwrap()).await.unwrap();
    assert_eq!(client.recurring("daily / report").await.unwrap().id, one);
    assert_eq!(client.recurring("other").await.unwrap().id, two);
    client.delete_recurring("daily / report").await.unwrap();
    assert_eq!(client.recurring("daily / report").await.unwrap_err().code(), Some("unknown-action"));
    let refused = client.create_recurring(&named("preview")).await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid-action"), "{refused}");
}

#[tokio::test]
async fn a_preview_of_rare_times_holds_up_no_other_request() {
    let stand = Stand::open().await;
    let http = crate::stand::http();
    // Leap days: most of the search passes over days that are excluded.
    let rare = json!({ "cron_expr": "0 0 * * *", "exclude": ["01-01..02-28", "03-01..12-31"] });
    let request = http.post(stand.url("/v1/recurring/preview?count=1000")).json(&rare);
    let preview = tokio::spawn(async move { request.send().await.unwrap().status() });
    let mut answered = 0;
    while !preview.is_finished() {
        let health = http.get(stand.url("/healthz")).send().await.unwrap();
        assert_eq!(health.status(), 200);
        answered += 1;
    }
    assert_eq!(preview.await.unwrap(), 200);
    assert!(answered >= 5, "only {answered} other requests were answered before the preview was");
}
