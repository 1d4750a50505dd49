//! Members from queries, over HTTP: files, web servers, functions and databases that the node
//! really reads.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use segno::clock::{self, SystemClock};
use segno_api::Client;
use segno_api::automation::{Automation, DecideRemoval, PreviewRunbook, SetAutomation};
use segno_api::batch::{BatchStatus, MemberStatus};
use segno_api::key::Role;
use segno_server::settings::{Authentication, Settings};
use segno_server::{Server, samples};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runbooks::yaml;
use crate::stand::{Ground, PATIENCE, Stand, settings};

/// A runbook whose batches wait for their start, which is far.
fn runbook(source: &str) -> String {
    format!(
        "name: queried\ndata_source: {{{source}, primary_key: Key, batch_time_column: Start}}\nphases:\n  \
         - {{name: a, offset: T-0, steps: [{{name: b, worker_id: here, function: echo, params: {{Key: \"{{{{Key}}}}\"}}}}]}}\n"
    )
}

/// Settings with a directory for files and secrets of tenants.
fn with_directory(mode: Authentication, directory: &Path) -> Settings {
    let mut settings = settings(mode);
    let pools = json!({ "here": { "transport": "local", "functions": ["echo"] } });
    settings.pools = serde_json::from_value(pools).unwrap();
    settings.runbooks.csv_directory = Some(directory.to_owned());
    settings.stored_functions.secret_directory = Some(directory.to_owned());
    settings.stored_functions.private_addresses = true;
    settings
}

async fn stand() -> (Stand, TempDir) {
    let (ground, directory) = (Ground::new().await, tempfile::tempdir().unwrap());
    std::fs::create_dir_all(directory.path().join("default/default")).unwrap();
    let builder =
        Server::builder(ground.store.clone(), with_directory(Authentication::None, directory.path()));
    let builder = builder.registry(samples::registry()).functions(samples::functions);
    (Stand::begun(builder, &ground).await, directory)
}

fn write_csv(directory: &TempDir, keys: &[&str]) -> String {
    let path = directory.path().join("default/default/members.csv");
    let rows = keys.iter().map(|key| format!("{key},2999-01-01\n"));
    std::fs::write(&path, format!("Key,Start\n{}", rows.collect::<String>())).unwrap();
    path.display().to_string()
}

/// Has the query run once more, and waits for its end.
async fn run(client: &Client) -> Automation {
    client.set_automation("queried", SetAutomation { enabled: false }).await.unwrap();
    let before = client.automation("queried").await.unwrap();
    assert!(!before.enabled && before.next_run_at.is_none(), "{before:?}");
    client.set_automation("queried", SetAutomation { enabled: true }).await.unwrap();
    let ended = async {
        loop {
            let now = client.automation("queried").await.unwrap();
            if now.last_run_at > before.last_run_at && !now.running {
                return now;
            }
            clock::sleep(&SystemClock, Duration::from_millis(5)).await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, ended).await.expect("the query does not run")
}

/// Waits until a batch has these active members.
async fn until_members(client: &Client, batch: u64, keys: &[&str]) {
    let mut last = Vec::new();
    let are_there = async {
        loop {
            let members =
                client.batch_members(batch, None).await.map(|page| page.members).unwrap_or_default();
            let active = members.iter().filter(|member| member.status == MemberStatus::Active);
            last = active.map(|member| member.member_key.clone()).collect();
            last.sort();
            if last == keys {
                return;
            }
            clock::sleep(&SystemClock, Duration::from_millis(5)).await;
        }
    };
    let there = clock::timeout(&SystemClock, PATIENCE, are_there).await;
    assert!(there.is_some(), "{last:?} instead of {keys:?}");
}

#[tokio::test]
async fn members_come_from_a_file_and_leave_with_approval() {
    let (stand, directory) = stand().await;
    let client = stand.client();
    let path = write_csv(&directory, &["ada", "bob", "cid", "dan"]);
    client.publish_runbook(&yaml(&runbook(&format!("type: csv, location: {path}")))).await.unwrap();
    assert!(!client.runbook("queried").await.unwrap().automation.enabled, "off by default");
    let first = run(&client).await;
    let result = first.last_result.unwrap();
    assert_eq!((result.rows, result.batches, result.created, result.added), (4, 1, 1, 4));
    assert!(first.next_run_at.is_some() && first.last_error.is_none());
    until_members(&client, 1, &["ada", "bob", "cid", "dan"]).await;
    assert_eq!(client.batch(1).await.unwrap().batch.status, BatchStatus::Active);
    write_csv(&directory, &["ada"]);
    let pending = run(&client).await.pending_removal.unwrap();
    assert_eq!((pending.count, pending.of, pending.batches, pending.approved), (3, 4, 1, false));
    let sample: Vec<_> =
        pending.sample.iter().map(|held| (held.batch_id, held.member_key.as_str())).collect();
    assert_eq!(sample, [(1, "bob"), (1, "cid"), (1, "dan")]);
    let other = DecideRemoval { set: pending.set + 1 };
    for refused in
        [client.approve_removal("queried", other).await, client.reject_removal("queried", other).await]
    {
        let refused = refused.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("removal-not-pending")), "{refused}");
    }
    write_csv(&directory, &["ada", "bob"]);
    client.approve_removal("queried", DecideRemoval { set: pending.set }).await.unwrap();
    until_members(&client, 1, &["ada", "bob"]).await;
    let listed = client.runbooks(None).await.unwrap().runbooks.remove(0);
    assert!(listed.automation.enabled);
}

#[tokio::test]
async fn a_query_that_fails_is_shown_until_it_succeeds() {
    let (stand, directory) = stand().await;
    let client = stand.client();
    let path = write_csv(&directory, &["ada"]);
    client.publish_runbook(&yaml(&runbook(&format!("type: csv, location: {path}")))).await.unwrap();
    run(&client).await;
    std::fs::remove_file(&path).unwrap();
    let failed = run(&client).await;
    let error = failed.last_error.unwrap();
    assert_eq!(error.code, "source-failed");
    assert!(error.message.contains(&path), "{}", error.message);
    let refused = client.preview_runbook("queried", &PreviewRunbook::default()).await.unwrap_err();
    assert!(refused.to_string().contains(&path), "the path is whole: {refused}");
    assert_eq!(failed.last_result.unwrap().rows, 1, "what the last success found stays");
    write_csv(&directory, &["ada", "bob"]);
    assert_eq!(run(&client).await.last_error, None);
    until_members(&client, 1, &["ada", "bob"]).await;
}

#[tokio::test]
async fn rows_come_from_a_web_server() {
    let (stand, _directory) = stand().await;
    let rows = Arc::new(Mutex::new(json!([{ "Key": "ada", "Start": "2999-01-01" }])));
    let served = rows.clone();
    let router = Router::new().route("/rows", get(async move || axum::Json(served.lock().unwrap().clone())));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rows", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = stand.client();
    client.publish_runbook(&yaml(&runbook(&format!("type: http, url: \"{url}\"")))).await.unwrap();
    run(&client).await;
    until_members(&client, 1, &["ada"]).await;
    *rows.lock().unwrap() =
        json!([{ "Key": "ADA", "Start": "2999-01-01" }, { "Key": "bob", "Start": "2999-02-01" }]);
    assert_eq!(run(&client).await.last_result.unwrap().created, 1);
    until_members(&client, 1, &["ADA"]).await;
    until_members(&client, 2, &["bob"]).await;
}

#[tokio::test]
async fn rows_come_from_a_function_and_from_an_unpublished_text() {
    let (stand, _directory) = stand().await;
    let client = stand.client();
    let input = json!([{ "Key": "ada", "Start": "2999-01-01" }, { "Key": "bob", "Start": "never" }]);
    let text = runbook(&format!("type: function, function: echo, input: {input}"));
    let unpublished = PreviewRunbook { yaml_content: Some(text.clone()) };
    let preview = client.preview_runbook("queried", &unpublished).await.unwrap();
    assert_eq!((preview.rows, preview.batches, preview.skipped, preview.added), (2, 1, 1, 1));
    assert_eq!((preview.groups[0].rows, preview.samples.len(), preview.problems.len()), (1, 2, 1));
    assert_eq!(preview.samples[0].data["Key"], Value::from("ada"));
    assert!(client.runbooks(None).await.unwrap().runbooks.is_empty(), "nothing is published");
    let other = client.preview_runbook("other", &unpublished).await.unwrap_err();
    assert_eq!(other.status(), Some(400), "{other}");
    client.publish_runbook(&yaml(&text)).await.unwrap();
    assert_eq!(client.preview_runbook("queried", &PreviewRunbook::default()).await.unwrap(), preview);
    let result = run(&client).await.last_result.unwrap();
    assert_eq!((result.added, result.skipped), (1, 1));
    until_members(&client, 1, &["ada"]).await;
}

#[tokio::test]
async fn what_cannot_be_queried_is_refused_with_the_reason() {
    let (stand, directory) = stand().await;
    let client = stand.client();
    let enabled = SetAutomation { enabled: true };
    let manual = runbook("type: manual").replace(", batch_time_column: Start", "");
    let foreign = directory.path().join("other/tenant/members.csv");
    for (source, status, code, words) in [
        (manual, 409, "source-not-queried", "is manual"),
        (
            runbook(&format!("type: csv, location: {}", foreign.display())),
            502,
            "source-failed",
            &format!("files of this tenant are below {}", directory.path().join("default/default").display()),
        ),
        (
            runbook("type: sql, connection: {file: /etc/passwd}, query: SELECT"),
            502,
            "source-failed",
            "may not read the file",
        ),
    ] {
        client.publish_runbook(&yaml(&source)).await.unwrap();
        for refused in [
            client.set_automation("queried", enabled).await.unwrap_err(),
            client.preview_runbook("queried", &PreviewRunbook::default()).await.unwrap_err(),
        ] {
            assert_eq!((refused.status(), refused.code()), (Some(status), Some(code)), "{refused}");
            assert!(refused.to_string().contains(words), "{refused}");
        }
    }
    assert!(!client.automation("queried").await.unwrap().enabled);
    let unknown = client.set_automation("none", enabled).await.unwrap_err();
    assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-runbook")));
}

#[tokio::test]
async fn viewers_see_queries_and_change_nothing() {
    let (ground, directory) = (Ground::new().await, tempfile::tempdir().unwrap());
    let settings = with_directory(Authentication::Keys, directory.path());
    let builder = Server::builder(ground.store.clone(), settings);
    let stand =
        Stand::begun(builder.registry(samples::registry()).functions(samples::functions), &ground).await;
    let text = runbook("type: function, function: echo, input: []");
    stand.client().publish_runbook(&yaml(&text)).await.unwrap();
    let key = stand.key(Role::Viewer, "default", "default").await;
    let http = crate::stand::http();
    let get = http.get(stand.url("/v1/runbooks/queried/automation")).bearer_auth(&key).send().await.unwrap();
    assert_eq!(get.status(), 200);
    for (method, path, body) in [
        ("PUT", "automation", json!({ "enabled": true })),
        ("POST", "removal/approve", json!({ "set": 1 })),
        ("POST", "removal/reject", json!({ "set": 1 })),
        ("POST", "preview", json!({})),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let url = stand.url(&format!("/v1/runbooks/queried/{path}"));
        let answer = http.request(method, url).bearer_auth(&key).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{path}");
    }
}

#[tokio::test]
async fn rows_come_from_postgresql() {
    // The gate runs all tests with a server of its own, as `scripts/with-postgres.sh` does.
    let Ok(database) = std::env::var("SEGNO_TEST_POSTGRES") else { return };
    let (stand, directory) = stand().await;
    let secret = directory.path().join("default/default/db");
    std::fs::write(&secret, format!("{database}\n")).unwrap();
    let client = stand.client();
    let text = |values: &str| {
        let query = format!("SELECT * FROM (VALUES {values}) AS wave(\\\"Key\\\", \\\"Start\\\")");
        runbook(&format!("type: sql, connection: {{file: {}}}, query: \"{query}\"", secret.display()))
    };
    client.publish_runbook(&yaml(&text("('ada', '2999-01-01'), ('bob', '2999-01-01')"))).await.unwrap();
    assert_eq!(client.preview_runbook("queried", &PreviewRunbook::default()).await.unwrap().rows, 2);
    assert_eq!(run(&client).await.last_error, None);
    until_members(&client, 1, &["ada", "bob"]).await;
    client.publish_runbook(&yaml(&text("('ada', '2999-01-01'), ('cid', '2999-01-01')"))).await.unwrap();
    run(&client).await;
    until_members(&client, 1, &["ada", "cid"]).await;
    client.publish_runbook(&yaml(&text("('ada')"))).await.unwrap();
    let error = run(&client).await.last_error.unwrap();
    assert!(error.message.contains("the database refused the query"), "{}", error.message);
}
