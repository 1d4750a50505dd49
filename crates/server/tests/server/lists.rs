//! A walk over every listing of the served document: a page has a cursor only if another row follows, and every listing
//! refuses a broken cursor in the same way.
//!
//! A listing that has no rows here fails the walk: give it some in `furnish`. Pages of large rows end at their bytes.

use std::time::Duration;

use segno::clock::SystemClock;
use segno::{Context, Failure, Orchestration};
use segno_api::client::Expected;
use segno_api::instance::{Restart, StartInstance};
use segno_api::recurring::RunRecurring;
use segno_api::work::FetchWork;
use segno_server::samples;
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::dags::DagRuns;
use crate::runbooks::{MOVE, yaml};
use crate::stand::{PATIENCE, Stand, greet, json_of, settings};

const PARENT: Orchestration<(), ()> = Orchestration::new("parent");
const CHILD: Orchestration<(), ()> = Orchestration::new("child");

async fn parent(ctx: Context, (): ()) -> Result<(), Failure> {
    for _ in 0..3 {
        ctx.child(CHILD, ()).await?;
    }
    Ok(())
}

async fn child(_ctx: Context, (): ()) -> Result<(), Failure> {
    Ok(())
}

/// At least two rows of everything. Returns what runs of DAGs are called in paths.
async fn furnish(stand: &Stand) -> DagRuns {
    let (client, http) = (stand.client(), crate::stand::http());
    let family = StartInstance { orchestration: "parent".to_owned(), ..greet("family", "null") };
    client.start(&family, None, PATIENCE).await.unwrap();
    client.start(&greet("again", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    client.restart("again", &Restart::default()).await.unwrap();
    client.instance("again", PATIENCE).await.unwrap();
    for name in ["one", "two", "three"] {
        client.start(&greet(name, r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
        stand.send_junk(&format!("default/default/{name}"), "junk").await;
        client
            .put_function(name, &json_of(&json!({ "executor": "remote" })), Expected::Absent)
            .await
            .unwrap();
        for worker in [name, "another"] {
            client.fetch_work(&FetchWork::of_pool(worker, name, ["echo"])).await.unwrap();
        }
        let action = json!({ "tool_name": "echo", "next_tick_at": "2999-01-01T00:00:00Z" });
        client.create_action(&serde_json::from_value(action).unwrap()).await.unwrap();
        let recurring = json!({ "name": name, "cron_expr": "0 0 1 1 *", "function": "echo" });
        client.create_recurring(&serde_json::from_value(recurring).unwrap()).await.unwrap();
        let run = client.run_recurring("one", &RunRecurring { key: Some(name.to_owned()) }).await.unwrap();
        client.instance(&run.instance.unwrap(), PATIENCE).await.unwrap();
        let saved = json!({ "kind": "view", "page": "instances", "text": name });
        client.save(name, &serde_json::from_value(saved).unwrap(), None).await.unwrap();
        let hook = json!({ "verification": "none", "store_only": true });
        client.put_hook(name, &json_of(&hook), Expected::Absent).await.unwrap();
        let posted = http.post(stand.url("/v1/hooks/default/one")).body(name);
        assert!(posted.send().await.unwrap().status().is_success());
        stand.key(segno_api::key::Role::Viewer, "default", "default").await;
        stand.sign_in(&stand.admin_key).await;
        for text in ["", "description: new\n"] {
            let text = format!("{}{text}", MOVE.replace("description: Move mailboxes\n", ""));
            client
                .publish_runbook(&yaml(&text.replace("name: move", &format!("name: {name}"))))
                .await
                .unwrap();
        }
        let members = json!([{ "Key": "a" }, { "Key": "b" }]);
        let batch = json!({ "runbook": name, "members": members });
        let batch = client.create_batch(&serde_json::from_value(batch).unwrap()).await.unwrap();
        let is_stored = async {
            while client.batch_members(batch.id, None).await.unwrap().members.len() < 2 {
                crate::stand::look_again().await;
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, is_stored).await.expect("members are not stored");
    }
    for attempt in 1..=3 {
        stand.keep_log("one", attempt).await;
    }
    crate::outcomes::bus_of(stand).await;
    stand.until_dead_letters(&client, 3).await;
    crate::dags::furnish(stand).await
}

/// The listings of the document, as paths of what [`furnish`] has made.
async fn listings(stand: &Stand, runs: &DagRuns) -> Vec<String> {
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        if parameters.iter().any(|parameter| parameter["name"] == "cursor") {
            let id = match path.as_str() {
                "/v1/instances/{id}/tree" => "family",
                "/v1/instances/{id}/executions" => "again",
                "/v1/batches/{id}/members" => "1",
                path if path.starts_with("/v1/runs/{id}") => runs.run.as_str(),
                path if path.starts_with("/v1/backfills/{id}") => runs.backfill.as_str(),
                _ => "one",
            };
            let path = path.replace("{namespace}", "default").replace("{route}", "one");
            let path = path.replace("{asset}", "sales").replace("{task}", "b");
            let path = path.replace("{topic}", "jobs").replace("{subscription}", "w");
            found.push(path.replace("{id}", id).replace("{name}", "one"));
        }
    }
    assert!(found.len() >= 28, "{found:?}");
    found
}

async fn read(stand: &Stand, path: &str, query: &[(&str, &str)]) -> (u16, Value) {
    let call = crate::stand::http().get(stand.url(path)).query(query).bearer_auth(&stand.admin_key);
    let answer = call.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// The rows of a page, those that cannot be read as well.
fn rows(page: &Value) -> usize {
    page.as_object().unwrap().values().filter_map(Value::as_array).map(Vec::len).sum()
}

async fn stand() -> (Stand, DagRuns) {
    let registry = samples::registry().orchestration(PARENT, parent).orchestration(CHILD, child);
    let stand = Stand::with_registry(settings(Authentication::Keys), registry).await;
    let runs = furnish(&stand).await;
    (stand, runs)
}

#[tokio::test]
async fn a_page_of_any_listing_has_a_cursor_only_if_another_row_follows() {
    let (stand, runs) = stand().await;
    for path in listings(&stand, &runs).await {
        let (status, all) = read(&stand, &path, &[("limit", "1000")]).await;
        let count = rows(&all);
        assert!(status == 200 && count >= 2, "{path}: {status} {all}");
        let (exact, fewer) = (count.to_string(), (count - 1).to_string());
        let (_, page) = read(&stand, &path, &[("limit", &exact)]).await;
        assert_eq!((rows(&page), &page["next_cursor"]), (count, &Value::Null), "{path}: {page}");
        let (_, page) = read(&stand, &path, &[("limit", &fewer)]).await;
        let cursor = page["next_cursor"].as_str().unwrap_or_else(|| panic!("{path}: {page}")).to_owned();
        assert_eq!(rows(&page), count - 1, "{path}: {page}");
        let (status, rest) = read(&stand, &path, &[("limit", &fewer), ("cursor", &cursor)]).await;
        assert_eq!((status, rows(&rest), &rest["next_cursor"]), (200, 1, &Value::Null), "{path}: {rest}");
    }
}

#[tokio::test]
async fn every_listing_refuses_a_broken_cursor_in_the_same_way() {
    let (stand, runs) = stand().await;
    let mut told = Vec::new();
    for path in listings(&stand, &runs).await {
        // Also what looks like a name, a number or a value of a program.
        let words = ["NaN", "abc", "one", "default", "Infinity", "undefined", "null", "-1", "1e9", "0x7"];
        // `AAAA` is a text with U+0000 in base64, which PostgreSQL refuses.
        for cursor in ["", "???", "no cursor!", "\u{0}", "/../one", "AAAA"].into_iter().chain(words) {
            let (status, problem) = read(&stand, &path, &[("cursor", cursor)]).await;
            let (code, errors) =
                (problem["code"].as_str().unwrap_or_default(), problem["errors"].to_string());
            let answer = (status, code.to_owned(), errors);
            if told.is_empty() {
                told.push(answer.clone());
            }
            assert_eq!(answer, told[0], "{path}?cursor={cursor:?}: {problem}");
        }
    }
    let (status, code, errors) = &told[0];
    assert_eq!((*status, code.as_str()), (400, "invalid-request"));
    assert!(errors.contains("is not one that this server gave"), "{errors}");
}

/// What a page may have at most: its rows, and what is around them.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024 + 64 * 1024;

/// JSON of 900 KB.
fn large() -> Value {
    json!({ "text": "x".repeat(900_000) })
}

/// Ten large rows of what has user data in it, and of functions as many as are larger than a page.
async fn furnish_large(stand: &Stand) {
    let client = stand.client();
    client.start(&greet("talk", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    for number in 0..10 {
        let action =
            json!({ "tool_name": "echo", "tool_input": large(), "next_tick_at": "2999-01-01T00:00:00Z" });
        client.create_action(&serde_json::from_value(action).unwrap()).await.unwrap();
        let call = json!({ "function": "echo", "input": large() });
        let post = |path: &str, body: &Value| {
            crate::stand::http().post(stand.url(path)).bearer_auth(&stand.admin_key).json(body).send()
        };
        assert!(post("/v1/invocations?wait_ms=20000", &call).await.unwrap().status().is_success());
        let signal = json!({ "name": format!("s{number}"), "data": large() });
        assert!(post("/v1/instances/talk/raise", &signal).await.unwrap().status().is_success());
    }
    let schema = json!({ "type": "object", "description": "x".repeat(60_000) });
    for number in 0..80 {
        let function = json!({ "executor": "remote", "input_schema": schema });
        client.put_function(&format!("f{number}"), &json_of(&function), Expected::Absent).await.unwrap();
    }
}

#[tokio::test]
async fn a_page_of_large_rows_ends_at_its_bytes_and_all_rows_are_on_some_page() {
    let mut settings = settings(Authentication::Keys);
    settings.server.max_body_bytes = 2 * 1024 * 1024;
    let stand = Stand::with(settings).await;
    furnish_large(&stand).await;
    let client = crate::stand::http();
    for (path, least_rows, next, parameter) in [
        ("/v1/actions", 10, "next_cursor", "cursor"),
        ("/v1/instances", 11, "next_cursor", "cursor"),
        ("/v1/functions", 80, "next_cursor", "cursor"),
        ("/v1/instances/talk/history", 10, "next_after", "after"),
    ] {
        let (mut pages, mut found, mut cursor) = (0, 0, None::<String>);
        loop {
            let query = cursor.iter().map(|cursor| (parameter, cursor.as_str()));
            let query: Vec<_> = query.chain([("limit", "1000")]).collect();
            let call = client.get(stand.url(path)).query(&query).bearer_auth(&stand.admin_key);
            let bytes = call.send().await.unwrap().bytes().await.unwrap();
            assert!(bytes.len() <= MAX_ANSWER_BYTES, "{path}: {} bytes", bytes.len());
            let page: Value = serde_json::from_slice(&bytes).unwrap();
            (pages, found) = (pages + 1, found + rows(&page));
            cursor = match &page[next] {
                Value::Null => break,
                Value::String(text) => Some(text.clone()),
                number => Some(number.to_string()),
            };
        }
        assert!(pages >= 2 && found >= least_rows, "{path}: {found} rows in {pages} pages");
    }
}
