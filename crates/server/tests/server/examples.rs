//! The example workers against a real server. They need `python3` and `node`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use segno_api::Client;
use segno_api::client::Expected;
use segno_api::instance::Status;
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::stand::{PATIENCE, Stand, json_of};

/// Starts a worker. It is killed, as by kill -9, when the child is dropped.
fn worker(program: &str, file: &str, stand: &Stand, key: &str) -> Child {
    worker_at(program, file, &stand.url(""), key)
}

/// The same for any address.
pub fn worker_at(program: &str, file: &str, address: &str, key: &str) -> Child {
    worker_of(program, file, &[address], key)
}

fn worker_of(program: &str, file: &str, arguments: &[&str], key: &str) -> Child {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers").join(file);
    let mut command = Command::new(program);
    command.arg(&script).args(arguments).env("SEGNO_KEY", key).env("NO_PROXY", "*").env("no_proxy", "*");
    let child = command.stdin(Stdio::null()).kill_on_drop(true).spawn();
    child.unwrap_or_else(|error| panic!("{program} is needed to run {file}; install it ({error})"))
}

async fn declare(client: &Client) {
    for name in ["word-count", "await-file"] {
        client
            .put_function(name, &json_of(&json!({ "executor": "remote" })), Expected::Absent)
            .await
            .unwrap();
    }
}

async fn check_worker(program: &str, file: &str) {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    declare(&client).await;
    let _worker = worker(program, file, &stand, &stand.key(Role::Worker, "default", "default").await);
    let counted =
        client.invoke(&Invoke::new("word-count", json_of(&json!("one two three"))), PATIENCE).await.unwrap();
    let ended = counted.instance.unwrap_or_else(|| panic!("{file} has not answered within {PATIENCE:?}"));
    assert_eq!(ended.result.unwrap().text(), "3");
    let wrong = client.invoke(&Invoke::new("word-count", json_of(&json!(7))), PATIENCE).await.unwrap();
    assert_eq!(wrong.instance.unwrap().status, Status::Failed);
}

#[tokio::test]
async fn the_python_worker_answers() {
    check_worker("python3", "worker.py").await;
}

#[tokio::test]
async fn the_node_worker_answers() {
    check_worker("node", "worker.mjs").await;
}

async fn check_pool_worker(program: &str, file: &str) {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    let key = stand.key(Role::Worker, "default", "default").await;
    let _worker = worker_of(program, file, &[&stand.url(""), "Cloud-01"], &key);
    while client.pools(None).await.unwrap().pools.is_empty() {
        crate::stand::look_again().await;
    }
    let call =
        Invoke { pool: Some("Cloud-01".to_owned()), ..Invoke::new("word-count", json_of(&json!("a b"))) };
    let counted = client.invoke(&call, PATIENCE).await.unwrap();
    assert_eq!(counted.instance.unwrap().result.unwrap().text(), "2");
}

#[tokio::test]
async fn the_python_worker_serves_a_pool() {
    check_pool_worker("python3", "worker.py").await;
}

#[tokio::test]
async fn the_node_worker_serves_a_pool() {
    check_pool_worker("node", "worker.mjs").await;
}

#[tokio::test]
async fn work_of_a_worker_that_is_killed_is_taken_over() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    declare(&client).await;
    let key = stand.key(Role::Worker, "default", "default").await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut first = worker("python3", "worker.py", &stand, &key);
    let id = client.invoke(&Invoke::new("await-file", json_of(&path)), Duration::ZERO).await.unwrap().id;
    // It has the call, and waits for a file that does not come.
    while client.workers(None).await.unwrap().workers.iter().all(|row| row.in_flight == 0) {
        crate::stand::look_again().await;
    }
    first.kill().await.unwrap();
    std::fs::write(&path, "taken over").unwrap();
    let _second = worker("node", "worker.mjs", &stand, &key);
    let ended = client.instance(&id, PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#""taken over""#);
}
