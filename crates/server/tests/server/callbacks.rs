//! Workers that call back with task tokens, over real sockets.

use std::time::Duration;

use reqwest::Method;
use segno_api::Client;
use segno_api::client::Expected;
use segno_api::key::Role;
use segno_api::run::{CancelRun, RunStatus, TaskStatus};
use segno_api::work::{CompleteWork, FetchWork};
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::dags::{ended, of, publish};
use crate::stand::{Ground, PATIENCE, Stand, json_of, settings};

const OUTSIDE: &str = "name: outside
tasks:
  - {key: load, function: hand-over, completion: callback, input: {day: monday}}
  - {key: report, function: echo, depends_on: [load], input: '{{ tasks.load.output.rows }}'}
";

/// Publishes the DAG, whose first function is one of workers elsewhere, and starts a run.
async fn begin(client: &Client) -> String {
    client
        .put_function("hand-over", &json_of(&json!({ "executor": "remote" })), Expected::Absent)
        .await
        .unwrap();
    publish(client, OUTSIDE).await;
    client.start_run(&of("outside"), None).await.unwrap().id
}

/// Takes the call as the system that hands it over does: the envelope.
async fn envelope(client: &Client) -> Value {
    let fetch = FetchWork { wait_ms: 30_000, ..FetchWork::new("gateway", ["hand-over"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    let envelope = serde_json::from_str(item.input.text()).unwrap();
    let done = CompleteWork { lease: item.lease, result: json_of(&Value::Null) };
    client.complete_work(&done).await.unwrap();
    envelope
}

/// A worker that has an envelope and no key.
struct Worker {
    url: String,
    token: String,
    attempt: Value,
}

impl Worker {
    fn of(envelope: &Value) -> Worker {
        let text = |field: &str| envelope[field].as_str().unwrap().to_owned();
        let url = format!("{}/api/v1/tasks/{}", text("callbackBaseUrl"), text("taskId"));
        let attempt =
            json!({ "attempt": envelope["attempt"], "attemptId": envelope["attemptId"], "workerId": "w1" });
        Worker { url, token: text("taskToken"), attempt }
    }

    /// Posts a report, and returns status and body.
    async fn post(&self, verb: &str, fields: Value) -> (u16, Value) {
        let mut body = self.attempt.clone();
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let call = crate::stand::http().post(format!("{}/{verb}", self.url)).bearer_auth(&self.token);
        let answer = call.json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn refused(&self, verb: &str, fields: Value) -> (u16, String) {
        let (status, problem) = self.post(verb, fields).await;
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn succeeded() -> Value {
    json!({ "outcome": "SUCCEEDED", "output": { "value": { "rows": 7 }, "rowCount": 7 }, "metrics": { "cpuTimeMs": 12 } })
}

#[tokio::test]
async fn a_worker_with_a_token_starts_beats_and_completes_its_attempt() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    let run = begin(&client).await;
    let gateway = stand.client_with(Role::Worker, "default", "default").await;
    let worker = Worker::of(&envelope(&gateway).await);
    assert_eq!(worker.post("started", json!({})).await.0, 200);
    let (status, alive) = worker.post("heartbeat", json!({ "progressPct": 40, "message": "half" })).await;
    assert_eq!((status, &alive["acknowledged"], &alive["shouldCancel"]), (200, &json!(true), &json!(false)));
    let renewed =
        Worker { token: alive["taskToken"].as_str().unwrap().to_owned(), ..Worker::of_parts(&worker) };
    let (status, done) = renewed.post("completed", succeeded()).await;
    assert!(matches!(status, 200 | 202), "{done}");
    let details = ended(&client, &run).await;
    assert_eq!(details.run.status, RunStatus::Succeeded);
    assert_eq!(client.run_task(&run, "report").await.unwrap().output.unwrap().text(), "7");
    let load = client.run_task(&run, "load").await.unwrap();
    assert_eq!(load.output.unwrap().text(), r#"{"rows":7}"#);
    // The same report again is acknowledged again, another one is not.
    assert_eq!(worker.post("completed", succeeded()).await.0, 200);
    let failed = json!({ "outcome": "FAILED", "error": { "message": "no" } });
    assert_eq!(worker.refused("completed", failed).await, (409, "task-already-terminal".to_owned()));
    assert_eq!(worker.refused("heartbeat", json!({})).await, (409, "task-already-terminal".to_owned()));
    // Nobody who may only read finds a token in what is stored.
    let instance = client.instance(load.task.instance.as_deref().unwrap(), Duration::ZERO).await.unwrap();
    let stored = serde_json::to_string(&instance).unwrap();
    assert!(stored.contains("attemptId") && !stored.contains("taskToken"), "{stored}");
    let history = client.history(load.task.instance.as_deref().unwrap(), None, 0).await.unwrap();
    assert!(!serde_json::to_string(&history).unwrap().contains("taskToken"));
}

impl Worker {
    fn of_parts(other: &Worker) -> Worker {
        Worker { url: other.url.clone(), token: other.token.clone(), attempt: other.attempt.clone() }
    }
}

#[tokio::test]
async fn reports_without_the_token_of_their_attempt_are_refused() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    let run = begin(&client).await;
    let gateway = stand.client_with(Role::Worker, "default", "default").await;
    let worker = Worker::of(&envelope(&gateway).await);
    let with_token = |token: &str| Worker { token: token.to_owned(), ..Worker::of_parts(&worker) };
    let invalid = || (401, "invalid-task-token".to_owned());
    for token in ["", "x", stand.admin_key.as_str(), &format!("{}x", worker.token)] {
        assert_eq!(with_token(token).refused("completed", succeeded()).await, invalid(), "{token}");
    }
    let bare = crate::stand::http().post(format!("{}/started", worker.url)).json(&worker.attempt);
    assert_eq!(bare.send().await.unwrap().status(), 401);
    // The token of a task of another tenant is none for this one, whatever the path names.
    let lab = stand.client_with(Role::Admin, "lab", "us").await.scope("lab", "us");
    begin(&lab).await;
    let gateway = stand.client_with(Role::Worker, "lab", "us").await.scope("lab", "us");
    let theirs = Worker::of(&envelope(&gateway).await);
    assert_eq!(with_token(&theirs.token).refused("completed", succeeded()).await, invalid());
    let swapped = Worker { token: worker.token.clone(), ..Worker::of_parts(&theirs) };
    assert_eq!(swapped.refused("started", json!({})).await, invalid());
    // A token is no key.
    let as_key = stand.client().key(worker.token.clone());
    assert_eq!(as_key.runs(&Default::default()).await.unwrap_err().status(), Some(401));
    for (fields, code) in [
        (json!({ "attempt": 2 }), "attempt-mismatch"),
        (json!({ "attemptId": "att_other" }), "attempt-id-mismatch"),
    ] {
        assert_eq!(worker.refused("started", fields).await, (409, code.to_owned()));
    }
    let nothing = Worker { url: stand.url("/api/v1/tasks/nothing"), ..Worker::of_parts(&worker) };
    assert_eq!(nothing.refused("started", json!({})).await, (404, "unknown-task".to_owned()));
    assert_eq!(client.run_task(&run, "load").await.unwrap().task.status, TaskStatus::Dispatched);
}

#[tokio::test]
async fn bodies_have_budgets_and_a_form() {
    let deep = (0..110).fold(json!(1), |inner, _| json!([inner]));
    let stand = Stand::open().await;
    let client = stand.client();
    begin(&client).await;
    let worker = Worker::of(&envelope(&client).await);
    for (fields, status, code) in [
        (json!({ "outcome": "DONE" }), 400, "invalid-request"),
        (json!({ "outcome": "SUCCEEDED", "result": 1 }), 400, "invalid-request"),
        // The next task could not be called with it.
        (json!({ "outcome": "SUCCEEDED", "output": { "value": deep } }), 400, "payload-too-deep"),
        (json!({ "outcome": "FAILED" }), 400, "invalid-request"),
        (
            json!({ "outcome": "SUCCEEDED", "output": { "value": "x".repeat(70_000) } }),
            400,
            "invalid-request",
        ),
        (
            json!({ "outcome": "SUCCEEDED", "output": { "value": "x".repeat(300_000) } }),
            413,
            "body-too-large",
        ),
    ] {
        assert_eq!(worker.refused("completed", fields).await, (status, code.to_owned()));
    }
    assert_eq!(worker.refused("heartbeat", json!({ "progressPct": 101 })).await.0, 400);
    let call = crate::stand::http().request(Method::POST, format!("{}/started?zz=1", worker.url));
    let answer = call.bearer_auth(&worker.token).json(&worker.attempt).send().await.unwrap();
    assert_eq!(answer.status(), 400, "an unknown parameter");
    assert_eq!(worker.post("completed", succeeded()).await.0 / 100, 2, "nothing of it has ended the attempt");
}

#[tokio::test]
async fn a_worker_learns_from_its_heartbeat_that_the_run_was_cancelled() {
    let stand = Stand::open().await;
    let client = stand.client();
    let run = begin(&client).await;
    let worker = Worker::of(&envelope(&client).await);
    assert_eq!(worker.post("started", json!({})).await.0, 200);
    let is_running = async {
        while client.run_task(&run, "load").await.unwrap().task.status != TaskStatus::Running {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, is_running).await.expect("it does not run");
    client.cancel_run(&run, &CancelRun { reason: Some("wrong day".to_owned()) }).await.unwrap();
    let told = async {
        loop {
            let (_, alive) = worker.post("heartbeat", json!({})).await;
            if alive["shouldCancel"] == json!(true) {
                return alive["cancelReason"].clone();
            }
        }
    };
    let reason =
        segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, told).await.expect("it is not told");
    assert!(reason.as_str().unwrap().ends_with(": wrong day"), "{reason}");
    let cancelled =
        json!({ "outcome": "CANCELLED", "cancelledDuringPhase": "load", "partialProgress": { "rows": 3 } });
    assert_eq!(worker.post("completed", cancelled).await.0 / 100, 2);
    assert_eq!(ended(&client, &run).await.run.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_token_outlives_the_server_that_has_handed_it_out() {
    let ground = Ground::embedded().await;
    let first = Stand::on(settings(Authentication::None), &ground).await;
    let client = first.client();
    let run = begin(&client).await;
    let mut worker = Worker::of(&envelope(&client).await);
    assert_eq!(worker.post("started", json!({})).await.0, 200);
    // What a killed process would leave.
    let left = ground.after_a_crash().await;
    first.server.shutdown().await;
    let second = Stand::on(settings(Authentication::None), &left).await;
    let path = worker.url.split("/api/").nth(1).unwrap().to_owned();
    worker.url = second.url(&format!("/api/{path}"));
    assert_eq!(worker.post("completed", succeeded()).await.0 / 100, 2);
    assert_eq!(ended(&second.client(), &run).await.run.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_task_is_called_through_a_pool_of_workers() {
    let mut settings = settings(Authentication::None);
    let pools = json!({ "Cloud-01": { "functions": ["New-EntraUser"] } });
    settings.pools = serde_json::from_value(pools).unwrap();
    let stand = Stand::with(settings).await;
    let client = stand.client();
    let pooled = "name: pooled
tasks:
  - {key: user, function: New-EntraUser, worker_pool: Cloud-01, input: {name: Ada}, retry: {attempts: 1}}
  - {key: other, function: Remove-EntraUser, worker_pool: Cloud-01, retry: {attempts: 1}}
";
    publish(&client, pooled).await;
    let run = client.start_run(&of("pooled"), None).await.unwrap().id;
    let none: [&str; 0] = [];
    let fetch = FetchWork { wait_ms: 30_000, ..FetchWork::of_pool("w-1", "Cloud-01", none) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    assert_eq!((item.function.as_str(), item.input.text()), ("New-EntraUser", r#"{"name":"Ada"}"#));
    let done = CompleteWork { lease: item.lease, result: json_of(&json!({ "id": 7 })) };
    client.complete_work(&done).await.unwrap();
    assert_eq!(ended(&client, &run).await.run.status, RunStatus::Failed);
    assert_eq!(client.run_task(&run, "user").await.unwrap().output.unwrap().text(), r#"{"id":7}"#);
    let other = client.run_task(&run, "other").await.unwrap().task;
    assert_eq!(other.status, TaskStatus::Failed);
    assert!(other.error_message.as_deref().unwrap_or_default().contains("function-not-in-pool"), "{other:?}");
}
