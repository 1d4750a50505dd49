//! DAG runs from the command line: published, started, watched, killed in the middle, repeated.

use std::fs;

use crate::process::Process;
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
