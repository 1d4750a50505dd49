//! Counts, search and what wakes up by itself.

use std::time::Duration;

use jiff::Timestamp;
use segno::{Context, Failure, Orchestration, OrchestrationSchemas};
use segno_api::Client;
use segno_api::counts::{CountBy, CountInstances};
use segno_api::explain::WaitKind;
use segno_api::instance::{Restart, StartInstance, Status};
use segno_api::invocation::Invoke;
use segno_api::recurring::RunRecurring;
use segno_api::search::{SearchKind, SearchQuery};
use segno_server::samples;
use segno_server::settings::Authentication;
use serde_json::json;

use crate::stand::{PATIENCE, Stand, greet, json_of, settings};

const FAILING: Orchestration<(), ()> = Orchestration::new("failing");
const COUNTING: Orchestration<serde_json::Value, serde_json::Value> = Orchestration::new("counting");
const SLEEPING: Orchestration<(), ()> = Orchestration::new("sleeping");

async fn failing(_: Context, (): ()) -> Result<(), Failure> {
    Err(Failure::application("there is no paint").non_retryable().code("no-paint"))
}

async fn sleeping(ctx: Context, (): ()) -> Result<(), Failure> {
    ctx.set_status(&"sleeps")?;
    ctx.sleep(Duration::from_secs(7_200)).await?;
    Ok(())
}

async fn stand() -> Stand {
    let registry = samples::registry().orchestration(FAILING, failing).orchestration(SLEEPING, sleeping);
    Stand::with_registry(settings(Authentication::None), registry).await
}

fn start(orchestration: &str, id: &str) -> StartInstance {
    StartInstance { orchestration: orchestration.to_owned(), ..greet(id, "null") }
}

async fn run(client: &Client, start: &StartInstance) {
    client.start(start, None, PATIENCE).await.unwrap();
}

#[tokio::test]
async fn instances_are_counted_by_state_name_and_failure() {
    let stand = stand().await;
    let client = stand.client();
    for number in 0..3 {
        run(&client, &greet(&format!("greet-{number}"), r#"{"name":"Ada"}"#)).await;
        run(&client, &start("failing", &format!("failing-{number}"))).await;
    }
    let call = Invoke::new("echo", json_of(&json!(1)));
    client.invoke(&call, PATIENCE).await.unwrap();
    client.start(&start("sleeping", "asleep"), None, Duration::ZERO).await.unwrap();
    client.custom_status("asleep", 0, PATIENCE).await.unwrap();
    let counted = async |request: CountInstances| {
        let counts = client.counts(&request).await.unwrap();
        let named = counts.counts.into_iter().map(|named| format!("{} {}", named.name, named.count));
        (named.collect::<Vec<_>>().join(", "), counts.total, counts.truncated)
    };
    let by = |by: CountBy| CountInstances { by, ..CountInstances::default() };
    let whole = |text: &str, total| (text.to_owned(), total, false);
    assert_eq!(counted(by(CountBy::Status)).await, whole("completed 4, failed 3, running 1", 8));
    let orchestrations = whole("failing 3, greet 3, invoke 1, sleeping 1", 8);
    assert_eq!(counted(by(CountBy::Orchestration)).await, orchestrations);
    assert_eq!(counted(by(CountBy::Function)).await, whole("echo 1", 1));
    assert_eq!(counted(by(CountBy::Failure)).await, whole("no-paint 3", 3));
    let ended = CountInstances {
        ended_from: Some(Timestamp::UNIX_EPOCH),
        status: vec![Status::Completed, Status::Failed],
        prefix: Some("greet-".to_owned()),
        ..by(CountBy::Status)
    };
    assert_eq!(counted(ended).await, whole("completed 3", 3));
    let some = counted(CountInstances { limit: Some(2), ..by(CountBy::Status) }).await;
    assert!(some.1 == 2 && some.2, "{some:?}");
    for wrong in [0, 100_001] {
        let wrong = CountInstances { limit: Some(wrong), ..CountInstances::default() };
        assert_eq!(client.counts(&wrong).await.unwrap_err().status(), Some(400));
    }
    stand.shutdown().await;
}

#[tokio::test]
async fn a_search_finds_what_begins_with_a_text_in_every_kind() {
    let stand = stand().await;
    let client = stand.client();
    run(&client, &greet("greet-1", r#"{"name":"Ada"}"#)).await;
    run(&client, &greet("other", r#"{"name":"Ada"}"#)).await;
    let schedule = json!({ "name": "Greet daily", "cron_expr": "0 0 1 1 *", "function": "greet" });
    client.create_recurring(&serde_json::from_value(schedule).unwrap()).await.unwrap();
    let remote = json_of(&json!({ "executor": "remote" }));
    for name in ["greet-late", "gray"] {
        client.put_function(name, &remote, segno_api::client::Expected::Absent).await.unwrap();
    }
    let hook = json_of(&json!({ "verification": "none", "store_only": true }));
    client.put_hook("greetings", &hook, segno_api::client::Expected::Absent).await.unwrap();
    let yaml = "name: greet-all\ndata_source: {type: manual, primary_key: Key}\nphases:\n  \
                - {name: first, offset: T-0, steps: [{name: one, worker_id: pool, function: New-X}]}\n";
    let published = json!({ "yaml_content": yaml });
    client.publish_runbook(&serde_json::from_value(published).unwrap()).await.unwrap();
    let found = async |q: &str, limit: usize| {
        let found = client.search(&SearchQuery { q: q.to_owned(), limit: Some(limit) }).await.unwrap();
        let hits = found.hits.into_iter().map(|hit| match hit.kind {
            // Its id is made up.
            SearchKind::Schedule => (hit.kind, hit.name.unwrap()),
            kind => (kind, hit.id),
        });
        (hits.collect::<Vec<_>>(), found.truncated)
    };
    let all = [
        (SearchKind::Instance, "greet-1"),
        (SearchKind::Function, "greet"),
        (SearchKind::Function, "greet-late"),
        (SearchKind::Schedule, "Greet daily"),
        (SearchKind::Runbook, "greet-all"),
        (SearchKind::Hook, "greetings"),
    ];
    let all = all.map(|(kind, id)| (kind, id.to_owned())).to_vec();
    assert_eq!(found("greet", 20).await, (all, Vec::new()));
    let (hits, truncated) = found("gr", 1).await;
    assert_eq!((hits.len(), truncated), (5, vec![SearchKind::Function]));
    assert_eq!(found("nothing-begins-so", 5).await, (Vec::new(), Vec::new()));
    for (q, limit) in [("", 5), (&*"a".repeat(201), 5), ("a", 0), ("a", 21)] {
        let wrong = SearchQuery { q: q.to_owned(), limit: Some(limit) };
        assert_eq!(client.search(&wrong).await.unwrap_err().status(), Some(400), "{q} {limit}");
    }
    stand.shutdown().await;
}

#[tokio::test]
async fn timers_and_delayed_starts_are_listed_soonest_first() {
    let stand = stand().await;
    let client = stand.client();
    client.start(&start("sleeping", "asleep"), None, Duration::ZERO).await.unwrap();
    client.custom_status("asleep", 0, PATIENCE).await.unwrap();
    let later: Timestamp = "2999-01-01T00:00:00Z".parse().unwrap();
    let delayed = StartInstance { start_at: Some(later), ..greet("later", r#"{"name":"Ada"}"#) };
    client.start(&delayed, None, Duration::ZERO).await.unwrap();
    run(&client, &greet("over", r#"{"name":"Ada"}"#)).await;
    let found = client.timers().await.unwrap();
    let listed: Vec<_> = found.timers.iter().map(|timer| (timer.instance.as_str(), timer.kind)).collect();
    assert_eq!(listed, [("asleep", WaitKind::Timer), ("later", WaitKind::Start)]);
    assert_eq!((found.timers[1].at, found.examined, found.truncated), (later, 2, false));
    stand.shutdown().await;
}

#[tokio::test]
async fn a_list_of_schedules_has_their_last_outcomes() {
    let stand = stand().await;
    let client = stand.client();
    let schedule = json!({ "name": "daily", "cron_expr": "0 0 1 1 *", "function": "greet" });
    client.create_recurring(&serde_json::from_value(schedule).unwrap()).await.unwrap();
    for number in 0..3 {
        let run = RunRecurring { key: Some(format!("run-{number}")) };
        let run = client.run_recurring("daily", &run).await.unwrap();
        client.instance(&run.instance.unwrap(), PATIENCE).await.unwrap();
    }
    let list = async |query: &str| -> serde_json::Value {
        let answer =
            crate::stand::http().get(stand.url(&format!("/v1/recurring?{query}"))).send().await.unwrap();
        answer.json().await.unwrap()
    };
    let ended = async {
        loop {
            let recent = list("outcomes=2").await["recurring_actions"][0]["recent"].clone();
            let recent = recent.as_array().unwrap().clone();
            if recent.iter().all(|entry| entry["outcome"] == "completed") {
                return recent;
            }
            crate::stand::look_again().await;
        }
    };
    let clock = segno::clock::SystemClock;
    let recent = segno::clock::timeout(&clock, PATIENCE, ended).await.expect("the ends are folded");
    assert_eq!(recent.len(), 2);
    assert!(recent[0]["time"].as_str() > recent[1]["time"].as_str(), "newest first");
    assert!(list("").await["recurring_actions"][0].get("recent").is_none());
    assert_eq!(list("outcomes=21").await["status"], 400);
    stand.shutdown().await;
}

#[tokio::test]
async fn an_orchestration_shows_its_schemas_and_a_start_that_does_not_fit_is_refused() {
    let schemas = OrchestrationSchemas::new().input(&json!({ "type": "object", "required": ["n"] })).unwrap();
    let schemas = schemas.message("approved", &json!({ "type": "boolean" })).unwrap();
    let registry = samples::registry()
        .orchestration(FAILING, failing)
        .orchestration(COUNTING, async |_, input: serde_json::Value| Ok(input["n"].clone()))
        .schemas(COUNTING, schemas);
    let stand = Stand::with_registry(settings(Authentication::None), registry).await;
    let client = stand.client();
    let found = client.orchestration("counting").await.unwrap();
    assert_eq!(found.versions, ["1.0.0"]);
    let schema: serde_json::Value = serde_json::from_str(found.input_schema.unwrap().text()).unwrap();
    assert_eq!(schema, json!({ "type": "object", "required": ["n"] }));
    assert_eq!(found.messages["approved"].text(), r#"{"type":"boolean"}"#);
    assert_eq!(client.orchestration("failing").await.unwrap().input_schema, None);
    let listed = async {
        loop {
            let page = client.orchestrations(None).await.unwrap();
            let names: Vec<_> = page.orchestrations.into_iter().map(|found| found.name).collect();
            if !names.is_empty() {
                return names;
            }
            // The node publishes its names after its start.
            crate::stand::look_again().await;
        }
    };
    let names = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, listed).await.unwrap();
    assert_eq!(names, ["counting", "failing", "greet", "order"], "what is built in is left out");
    for missing in ["invoke", "nobody"] {
        assert!(client.orchestration(missing).await.is_err(), "{missing}");
    }
    let start =
        |id: &str, input: &str| StartInstance { orchestration: "counting".to_owned(), ..greet(id, input) };
    let refused = client.start(&start("one", "{}"), None, Duration::ZERO).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-input")));
    assert!(refused.to_string().contains("orchestration counting"), "{refused}");
    assert_eq!(client.instance("one", Duration::ZERO).await.unwrap_err().status(), Some(404));
    run(&client, &start("one", r#"{"n":7}"#)).await;
    assert_eq!(client.instance("one", PATIENCE).await.unwrap().result.unwrap().text(), "7");
    let wrong = Restart { input: Some(json_of(&json!({}))), ..Restart::default() };
    assert_eq!(client.restart("one", &wrong).await.unwrap_err().code(), Some("invalid-input"));
    stand.shutdown().await;
}
