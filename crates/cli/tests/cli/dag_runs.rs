//! DAG runs from the command line: published, started, watched, killed in the middle, repeated.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::process::Process;
use serde_json::{Value, json};
use tempfile::TempDir;

const SLOW: &str = "name: slow-one
tasks:
  - {key: a, function: slow, input: {seconds: 1}}
  - {key: b, function: slow, input: {seconds: 1}, depends_on: [a]}
  - {key: c, function: echo, input: 1, depends_on: [b]}
";

const BROKEN: &str = "name: broken
tasks:
  - {key: a, function: missing, retry: {attempts: 1}}
  - {key: b, function: echo, input: 2, depends_on: [a]}
";

/// Publishes a document from a file.
fn publish(server: &Process, directory: &TempDir, document: &str) {
    let file = directory.path().join("dag.yaml");
    fs::write(&file, document).unwrap();
    server.said(&["dag", "publish", file.to_str().unwrap()]);
}

#[test]
fn a_run_goes_on_after_the_server_was_killed_in_the_middle_of_it() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(&directory.path().join("data"));
    publish(&server, &directory, SLOW);
    let started = server.json(&["run", "start", "slow-one"]);
    let id = started["id"].as_str().unwrap();
    assert_eq!(started["created"], true);
    server.kill();
    let server = Process::dev(&directory.path().join("data"));
    let watched = server.run(&["run", "watch", id]);
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    let lines = String::from_utf8(watched.stdout).unwrap();
    assert!(lines.lines().last().unwrap().ends_with("c  succeeded"), "{lines}");
    let shown = server.said(&["run", "show", id]);
    assert!(shown.contains("3 of 3: 3 succeeded") && shown.contains("●  b     succeeded"), "{shown}");
}

#[test]
fn a_run_that_fails_ends_the_watch_with_its_exit_code_and_its_tasks_are_marked() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(&directory.path().join("data"));
    publish(&server, &directory, BROKEN);
    let watched = server.run(&["run", "start", "broken", "--run-key", "monday", "--watch"]);
    assert_eq!(watched.status.code(), Some(8), "{}", String::from_utf8_lossy(&watched.stderr));
    let runs = server.items(&["run", "list", "--status", "failed"]);
    let id = runs[0]["id"].as_str().unwrap();
    server.said(&["task", "mark", id, "a", "succeeded", "--output-json", "{\"rows\":3}"]);
    assert!(server.said(&["task", "output", id, "a"]).contains("{\"rows\":3}"));
    let refused = server.run(&["task", "show", id, "nothing"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && told.contains("unknown-task"), "{told}");
}

const OUTSIDE: &str = "name: outside
tasks:
  - {key: load, function: hand-over, completion: callback, input: {day: monday}}
  - {key: report, function: echo, depends_on: [load], input: '{{ tasks.load.output.rows }}'}
";

/// Posts JSON as a client without a key does, with a bearer token if there is one; status and body.
fn post(address: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
    let host = address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let body = body.to_string();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{token}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    (status, body)
}

#[test]
fn a_worker_that_calls_back_completes_its_attempt_after_the_server_was_killed() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(&directory.path().join("data"));
    server.said(&["functions", "put", "hand-over", r#"{"executor":"remote"}"#]);
    publish(&server, &directory, OUTSIDE);
    let id = server.json(&["run", "start", "outside"])["id"].as_str().unwrap().to_owned();
    let fetch = json!({ "worker": "gateway", "functions": ["hand-over"], "wait_ms": 30_000 });
    let (_, fetched) = post(&server.address, "/v1/work/fetch", None, &fetch);
    let item = &fetched["items"][0];
    let (envelope, lease) = (&item["input"], &item["lease"]);
    let handed_over = json!({ "lease": lease, "result": null });
    assert_eq!(post(&server.address, "/v1/work/complete", None, &handed_over).0 / 100, 2);
    let path = |verb: &str| format!("/api/v1/tasks/{}/{verb}", envelope["taskId"].as_str().unwrap());
    let token = envelope["taskToken"].as_str();
    let report = json!({ "attempt": 1, "attemptId": envelope["attemptId"], "workerId": "loader-1" });
    assert_eq!(post(&server.address, &path("started"), token, &report).0, 200);
    server.kill();
    let server = Process::dev(&directory.path().join("data"));
    let mut done = report.clone();
    done["outcome"] = json!("SUCCEEDED");
    done["output"] = json!({ "value": { "rows": 7 } });
    assert_eq!(post(&server.address, &path("completed"), token, &done).0 / 100, 2);
    let watched = server.run(&["run", "watch", &id]);
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    assert_eq!(server.said(&["task", "output", &id, "report"]).trim(), "7");
    let (status, alive) = post(&server.address, &path("heartbeat"), token, &report);
    assert_eq!((status, alive["code"].as_str()), (409, Some("task-already-terminal")));
}

const SALES: &str = "name: sales
partitions: {day: {window: daily, first: 2026-01-01}}
partitioned_by: day
tasks:
  - {key: load, function: echo, asset: raw/sales}
  - {key: clean, function: echo, depends_on: [load], asset: clean/sales}
";

#[test]
fn assets_are_listed_shown_and_traced() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(&directory.path().join("data"));
    publish(&server, &directory, SALES);
    server.said(&["run", "start", "sales", "--partition", "2026-01-05", "--watch"]);
    let listed = server.said(&["asset", "list"]);
    assert!(listed.contains("clean/sales") && listed.contains("sales.clean"), "{listed}");
    let shown = server.said(&["asset", "show", "raw/sales"]);
    assert!(shown.contains("1 made, 0 failed") && shown.contains("2026-01-05"), "{shown}");
    let traced = server.said(&["asset", "lineage", "clean/sales", "--partition", "2026-01-05"]);
    assert!(traced.contains("partition 2026-01-05 was made by run_"), "{traced}");
    assert!(
        traced.lines().any(|line| line.starts_with("upstream") && line.contains("raw/sales")),
        "{traced}"
    );
    let refused = server.run(&["asset", "show", "nothing"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("unknown-asset"));
}
