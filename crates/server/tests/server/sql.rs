//! Queries over HTTP: what they show, to whom, and what they refuse.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};
use segno_api::ClientError;
use segno_api::client::Client;
use segno_api::key::Role;
use segno_api::sql::{SqlAnswer, SqlCatalogue, SqlColumn, SqlQuery};
use segno_ledger::sql::{
    ColumnInfo, ColumnKind, Engine, Pushdown, Query, Rows, Scan, Table, TableInfo, Tables, Value as Cell,
};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet};

/// The guide's page about queries.
const PAGE: &str = include_str!("../../../../docs/guide/sql.md");

fn query(text: &str) -> SqlQuery {
    SqlQuery { query: Some(text.to_owned()), ..SqlQuery::default() }
}

async fn run(client: &Client, text: &str) -> SqlAnswer {
    client.sql(&query(text)).await.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The rows of an answer as text.
async fn rows(client: &Client, text: &str) -> String {
    let row = |row: &Vec<segno_api::Json>| {
        row.iter().map(|cell| cell.text().to_owned()).collect::<Vec<_>>().join(" ")
    };
    run(client, text).await.rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

/// The code and the status of a query that is refused.
async fn refused(client: &Client, request: &SqlQuery) -> (String, u16) {
    match client.sql(request).await {
        Err(ClientError::Problem(problem)) => (problem.code.clone(), problem.status),
        other => panic!("{request:?}: {other:?}"),
    }
}

/// Waits until instances of these ids have ended.
async fn ended(client: &Client, ids: &[&str]) {
    for id in ids {
        while client.instance(id, PATIENCE).await.unwrap().completed_at.is_none() {}
    }
}

#[tokio::test]
async fn live_instances_and_their_events_can_be_queried() {
    let stand = Stand::open().await;
    let client = stand.client();
    for id in ["order-1", "order-2", "other"] {
        client.start(&greet(id, r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    }
    ended(&client, &["order-1", "order-2", "other"]).await;
    for (text, expected) in [
        ("SELECT count(*) FROM instances", "3"),
        (
            "SELECT id, orchestration, status, execution FROM instances WHERE id = 'order-2'",
            "\"order-2\" \"greet\" \"completed\" 1",
        ),
        (
            "SELECT count(*), count(function), count(failure_code) FROM instances WHERE id LIKE 'order-%'",
            "2 0 0",
        ),
        (
            "SELECT labels ->> 'team', count(*) FROM instances WHERE status = 'completed' GROUP BY 1",
            "\"eu\" 3",
        ),
        ("SELECT count(*) FROM instances WHERE status = 'no-such-state'", "0"),
        ("SELECT count(*) FROM instances WHERE id = ''", "0"),
        (
            "SELECT count(*) FROM instances WHERE created_at > ago('1h') AND created_at <= now() AND duration_ms >= 0",
            "3",
        ),
        ("SELECT count(*) FROM instances WHERE created_at < '1960-01-01'", "0"),
        (
            "SELECT kind, count(*) FROM events WHERE kind LIKE 'Orch%' AND instance = 'other' GROUP BY 1 ORDER BY 1",
            "\"OrchestrationCompleted\" 1; \"OrchestrationStarted\" 1",
        ),
        ("SELECT count(*) FROM events WHERE instance = 'nothing' OR execution = -1", "0"),
        (
            "SELECT i.id, json_extract(e.data, '$.input') FROM instances i JOIN events e ON e.instance = i.id \
             WHERE e.kind = 'OrchestrationStarted' ORDER BY 1 LIMIT 1",
            "\"order-1\" \"{\\\"name\\\":\\\"Ada\\\"}\"",
        ),
        ("SELECT namespace, tenant, count(*) FROM all_instances GROUP BY 1, 2", "\"default\" \"default\" 3"),
    ] {
        assert_eq!(rows(&client, text).await, expected, "{text}");
    }
    let answer = run(
        &client,
        "SELECT e.kind FROM instances i JOIN events e ON e.instance = i.id WHERE i.id = 'other'",
    )
    .await;
    let pushed: Vec<(&str, &[String])> =
        answer.fetched.iter().map(|fetched| (fetched.table.as_str(), &fetched.pushed[..])).collect();
    let expected = [
        ("instances", &["id = 'other'".to_owned()][..]),
        ("events", &["instance is one of 1 values of instances".to_owned()][..]),
    ];
    assert_eq!(pushed, expected);
}

#[tokio::test]
async fn every_table_and_every_shipped_query_can_be_read() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    let catalogue = client.sql_catalogue().await.unwrap();
    assert!(catalogue.tables.len() >= 16 && catalogue.shipped.len() >= 4, "{catalogue:?}");
    for table in &catalogue.tables {
        let columns: Vec<String> =
            table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let text = format!("SELECT {} FROM {}", columns.join(", "), table.name);
        let answer = run(&client, &text).await;
        assert_eq!(answer.fetched[0].columns.len(), table.columns.len(), "{text}");
        for column in &table.columns {
            // A value of every type, whether or not it is pushed down.
            for value in ["'x'", "'2026-01-01'", "1", "-1", "NULL"] {
                run(
                    &client,
                    &format!("SELECT count(*) FROM {} WHERE \"{}\" = {value}", table.name, column.name),
                )
                .await;
            }
        }
    }
    for shipped in &catalogue.shipped {
        let request = SqlQuery { shipped: Some(shipped.name.clone()), ..SqlQuery::default() };
        let answer = client.sql(&request).await.unwrap();
        assert!(!answer.columns.is_empty(), "{}", shipped.name);
    }
    assert_eq!(
        refused(&client, &SqlQuery { shipped: Some("nothing".to_owned()), ..SqlQuery::default() }).await.1,
        400
    );
}

#[tokio::test]
async fn rows_of_every_room_are_shown() {
    let stand = Stand::open().await;
    let client = stand.client();
    let http = crate::stand::http();
    let send = async |method: reqwest::Method, path: &str, body: Value| {
        let answer = http.request(method, stand.url(path)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json::<Value>().await.unwrap_or_default()
    };
    let post = reqwest::Method::POST;
    let action = send(
        post.clone(),
        "/v1/actions",
        json!({ "function": "echo", "input": { "a": 1 }, "at": "2999-01-01T00:00:00Z" }),
    );
    let action = action.await["id"].as_str().unwrap().to_owned();
    let recurring = json!({ "name": "nightly", "cron_expr": "0 3 1 1 *", "function": "echo", "input": 1 });
    let recurring =
        send(post.clone(), "/v1/recurring", recurring).await["recurring_id"].as_str().unwrap().to_owned();
    send(post.clone(), &format!("/v1/recurring/{recurring}/run"), json!({ "key": "a" })).await;
    send(post, "/v1/invocations", json!({ "function": "echo", "input": [1], "key": "one" })).await;
    ended(&client, &["invoke:one"]).await;
    for (text, expected) in [
        (
            "SELECT function, input, trigger, due_at, status FROM actions",
            r#""echo" "{\"a\":1}" "scheduled" "2999-01-01T00:00:00.000Z" "pending""#.to_owned(),
        ),
        (
            &format!("SELECT count(*) FROM actions WHERE id = '{action}' AND status = 'pending'"),
            "1".to_owned(),
        ),
        (
            &format!("SELECT count(*) FROM actions WHERE id = '{action}' AND status = 'failed'"),
            "0".to_owned(),
        ),
        (
            "SELECT name, function, enabled, cron_expr FROM recurring",
            r#""nightly" "echo" 1 "0 3 1 1 *""#.to_owned(),
        ),
        (
            &format!("SELECT name, function FROM recurring WHERE id = '{recurring}'"),
            r#""nightly" "echo""#.to_owned(),
        ),
        ("SELECT count(*) FROM recurring WHERE id = 'nightly'", "0".to_owned()),
        ("SELECT recurring, decision, manual FROM recurring_history", format!("\"{recurring}\" \"fired\" 1")),
        (
            &format!("SELECT decision FROM recurring_history WHERE recurring = '{recurring}'"),
            "\"fired\"".to_owned(),
        ),
        ("SELECT count(*) FROM recurring_history WHERE recurring = 'nightly'", "0".to_owned()),
        (
            "SELECT id, function, kind, orchestration, result FROM instances WHERE function = 'echo' AND kind = 'call'",
            r#""invoke:one" "echo" "call" "invoke" "[1]""#.to_owned(),
        ),
        ("SELECT count(*) FROM instances WHERE function = 'not a name'", "0".to_owned()),
    ] {
        assert_eq!(rows(&client, text).await, expected, "{text}");
    }
    assert!(
        rows(&client, "SELECT operation FROM audit WHERE path = '/v1/actions'")
            .await
            .contains("POST /v1/actions")
    );
}

#[tokio::test]
async fn batches_have_members_phases_and_steps() {
    let stand = Stand::open().await;
    let client = stand.client();
    let http = crate::stand::http();
    let yaml = "name: move\ndata_source: {type: manual, primary_key: Key}\nphases:\n  - name: copy\n    offset: T-0\n    \
                steps:\n      - name: one\n        worker_id: pool\n        function: Copy-Mailbox\n        params: { key: '{{Key}}' }\n";
    let publish =
        http.post(stand.url("/v1/runbooks")).json(&json!({ "yaml_content": yaml })).send().await.unwrap();
    let status = publish.status();
    assert!(status.is_success(), "{status}: {}", publish.text().await.unwrap());
    let body = json!({ "runbook": "move", "members": [{ "Key": "a", "City": "Bonn" }, { "Key": "b", "City": "Köln" }] });
    let created = http.post(stand.url("/v1/batches")).json(&body).send().await.unwrap();
    let batch = created.json::<Value>().await.unwrap()["id"].as_u64().unwrap();
    let sealed = async {
        while rows(&client, "SELECT count(*) FROM batches WHERE is_sealed = 1 AND members_active = 2").await
            != "1"
        {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, sealed).await.expect("the batch is not sealed");
    for (text, expected) in [
        ("SELECT id, runbook, runbook_version FROM batches", format!("{batch} \"move\" 1")),
        ("SELECT count(*) FROM batches WHERE runbook = 'other'", "0".to_owned()),
        (&format!("SELECT count(*) FROM batches WHERE id = {batch} AND runbook = 'move'"), "1".to_owned()),
        ("SELECT count(*) FROM batches WHERE id = 999999", "0".to_owned()),
        ("SELECT key, data ->> 'City' FROM members ORDER BY 1", "\"a\" \"Bonn\"; \"b\" \"Köln\"".to_owned()),
        (&format!("SELECT count(*) FROM members WHERE batch = {batch}"), "2".to_owned()),
        ("SELECT count(*) FROM members WHERE batch = 999999", "0".to_owned()),
        (
            "SELECT p.name, b.runbook FROM batches b JOIN phases p ON p.batch = b.id",
            "\"copy\" \"move\"".to_owned(),
        ),
        (
            "SELECT count(*) FROM steps s WHERE s.batch IN (SELECT id FROM batches WHERE runbook = 'none')",
            "0".to_owned(),
        ),
    ] {
        assert_eq!(rows(&client, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn answers_are_bounded_and_say_so() {
    let stand = Stand::open().await;
    let client = stand.client();
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i, i / 2.0, NULL, 'a,b' FROM n";
    let answer = client.sql(&SqlQuery { max_rows: Some(2), ..query(numbers) }).await.unwrap();
    assert!(answer.truncated && answer.rows.len() == 2, "{answer:?}");
    let body = json!({ "query": numbers, "max_rows": 2, "format": "csv" });
    let csv = crate::stand::http().post(stand.url("/v1/sql")).json(&body).send().await.unwrap();
    assert_eq!(csv.headers()["segno-truncated"], "true");
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
    let text = csv.text().await.unwrap();
    assert_eq!(
        text,
        "i,i / 2.0,NULL,'a,b'\r\n1,0.5,,\"a,b\"\r\n2,1,,\"a,b\"\r\n".replace("'a,b'", "\"'a,b'\"")
    );
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let request = SqlQuery { timeout_seconds: Some(1), ..query(endless) };
    assert_eq!(refused(&client, &request).await, ("sql-timeout".to_owned(), 408));
    for (request, code) in [
        (query("DELETE FROM instances"), "sql-refused"),
        (query("SELECT * FROM sqlite_master"), "sql-refused"),
        (query("ATTACH 'x' AS x"), "sql-refused"),
        (query("SELECT nope FROM instances"), "sql-failed"),
        (query("SELECT printf('%1000000000d', 1)"), "sql-too-large"),
        (SqlQuery { max_rows: Some(0), ..query("SELECT 1") }, "invalid-request"),
        (SqlQuery { max_rows: Some(100_001), ..query("SELECT 1") }, "invalid-request"),
        (SqlQuery { timeout_seconds: Some(31), ..query("SELECT 1") }, "invalid-request"),
        (SqlQuery { shipped: Some("time-spent".to_owned()), ..query("SELECT 1") }, "invalid-request"),
        (SqlQuery::default(), "invalid-request"),
    ] {
        assert_eq!(refused(&client, &request).await, (code.to_owned(), 400), "{request:?}");
    }
}

#[tokio::test]
async fn keys_see_what_their_role_and_grants_allow() {
    let stand = Stand::with_keys().await;
    let client = |role, namespace, tenant| stand.client_with(role, namespace, tenant);
    let eu = client(Role::Admin, "shop", "eu").await.scope("shop", "eu");
    let us = client(Role::Admin, "shop", "us").await.scope("shop", "us");
    let lab = stand.client().scope("lab", "eu");
    for (owner, id) in [(&eu, "eu-1"), (&us, "us-1"), (&lab, "lab-1")] {
        owner.start(&greet(id, r#"{"name":"secret"}"#), None, PATIENCE).await.unwrap();
        ended(owner, &[id]).await;
    }
    let all = "SELECT namespace || '/' || tenant || '/' || id FROM all_instances ORDER BY 1";
    let viewer = client(Role::Viewer, "shop", "eu").await.scope("shop", "eu");
    assert_eq!(rows(&viewer, "SELECT id FROM instances").await, "\"eu-1\"");
    assert_eq!(rows(&viewer, all).await, "\"shop/eu/eu-1\"");
    let of_shop = client(Role::Viewer, "shop", "*").await.scope("shop", "us");
    assert_eq!(rows(&of_shop, "SELECT id FROM instances").await, "\"us-1\"");
    assert_eq!(rows(&of_shop, all).await, "\"shop/eu/eu-1\"; \"shop/us/us-1\"");
    let of_eu = client(Role::Viewer, "*", "eu").await.scope("lab", "eu");
    assert_eq!(rows(&of_eu, all).await, "\"lab/eu/lab-1\"; \"shop/eu/eu-1\"");
    let busiest = SqlQuery { shipped: Some("busiest-tenants".to_owned()), ..SqlQuery::default() };
    assert_eq!(of_shop.sql(&busiest).await.unwrap().rows.len(), 2);
    let anyone = client(Role::Viewer, "*", "*").await;
    assert_eq!(run(&anyone, all).await.rows.len(), 3);
    // Entering a tenant without a grant, or with a role that reads nothing.
    assert_eq!(
        refused(&viewer.clone().scope("shop", "us"), &query("SELECT 1")).await,
        ("forbidden".to_owned(), 403)
    );
    let worker = client(Role::Worker, "shop", "eu").await.scope("shop", "eu");
    assert_eq!(refused(&worker, &query("SELECT 1")).await, ("forbidden".to_owned(), 403));
    // The audit log is for administrators of all tenants, as its route is.
    for key in [&viewer, &eu, &anyone] {
        assert_eq!(refused(key, &query("SELECT * FROM audit")).await, ("forbidden".to_owned(), 403));
    }
    assert!(rows(&lab, "SELECT count(*) > 0 FROM audit").await == "1");
}

#[tokio::test]
async fn one_tenant_does_not_take_the_places_of_another() {
    let stand = Stand::with_keys().await;
    let greedy = stand.client_with(Role::Viewer, "shop", "eu").await.scope("shop", "eu");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let many = (0..12).map(|_| {
        let greedy = greedy.clone();
        let request = SqlQuery { timeout_seconds: Some(3), ..query(endless) };
        async move { refused(&greedy, &request).await.0 }
    });
    let other = async {
        // The first of the others runs at once, beside the one of the greedy tenant.
        for _ in 0..5 {
            assert_eq!(rows(&stand.client(), "SELECT 1").await, "1");
        }
    };
    let (codes, ()) = tokio::join!(futures_util::future::join_all(many), other);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    codes.into_iter().for_each(|code| *counts.entry(code).or_default() += 1);
    assert_eq!(counts["unavailable"], 4, "eight of a tenant run or wait: {counts:?}");
    assert_eq!(counts["sql-timeout"], 8, "{counts:?}");
}

#[tokio::test]
async fn queries_are_neither_audited_nor_kept() {
    let stand = Stand::with_keys().await;
    let client = stand.client();
    run(&client, "SELECT count(*) FROM instances").await;
    assert_eq!(rows(&client, "SELECT count(*) FROM audit WHERE path LIKE '/v1/sql%'").await, "0");
    for text in ["SELECT 1", "SELECT 2"] {
        let post = crate::stand::http().post(stand.url("/v1/sql")).bearer_auth(&stand.admin_key);
        let answer =
            post.header("idempotency-key", "one").json(&json!({ "query": text })).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{text}");
        assert!(!answer.headers().contains_key("idempotent-replayed"), "{text}");
    }
}

/// A table with known rows, under the columns that the server describes.
struct Known {
    info: &'static TableInfo,
    rows: Vec<BTreeMap<&'static str, Cell>>,
}

impl Table for Known {
    fn info(&self) -> &'static TableInfo {
        self.info
    }

    fn scan(&self, scan: Scan) -> Rows {
        let cells = |row: &BTreeMap<&str, Cell>| {
            scan.columns.iter().map(|name| row.get(name).cloned().unwrap_or(Cell::Null)).collect()
        };
        let rows = self.rows.iter().map(cells).collect();
        Box::pin(futures_util::stream::iter([Ok(rows)]))
    }
}

/// A table as the server describes it.
fn described(catalogue: &SqlCatalogue, name: &str) -> &'static TableInfo {
    let table = catalogue.tables.iter().find(|table| table.name == name).unwrap();
    let leak = |text: &str| -> &'static str { text.to_owned().leak() };
    let column = |column: &SqlColumn| {
        let kind = match column.kind.as_str() {
            "text" => ColumnKind::Text,
            "integer" => ColumnKind::Integer,
            "real" => ColumnKind::Real,
            "flag" => ColumnKind::Flag,
            "time" => ColumnKind::Time,
            _ => ColumnKind::Json,
        };
        ColumnInfo { name: leak(&column.name), kind, pushdown: Pushdown::No, doc: "" }
    };
    let columns: Vec<ColumnInfo> = table.columns.iter().map(column).collect();
    let key: &'static [&'static str] = match name {
        "events" => &["instance", "execution", "id"],
        "all_instances" => &["namespace", "tenant", "id"],
        _ => &["id"],
    };
    Box::leak(Box::new(TableInfo {
        name: leak(name),
        doc: "",
        columns: columns.leak(),
        key,
        newest_first: None,
    }))
}

/// Instances, each as function, duration, failure code, and the tenant for the table of all tenants.
fn known_instances(
    now_ms: i64,
    of: &[(&'static str, i64, Option<&str>, &str)],
) -> Vec<BTreeMap<&'static str, Cell>> {
    let text = |text: &str| Cell::Text(text.to_owned());
    let rows = of.iter().enumerate().map(|(number, (function, duration, code, tenant))| {
        BTreeMap::from([
            ("id", Cell::Text(format!("i{number}"))),
            ("namespace", text("shop")),
            ("tenant", text(tenant)),
            ("orchestration", text("invoke")),
            ("function", text(function)),
            ("execution", Cell::Integer(1)),
            ("status", text(if code.is_some() { "failed" } else { "completed" })),
            ("failure_code", Cell::text(*code)),
            ("failure_category", code.map_or(Cell::Null, |_| text("application"))),
            ("created_at", Cell::Integer(now_ms - 60_000)),
            ("completed_at", Cell::Integer(now_ms - 60_000 + duration)),
            ("duration_ms", Cell::Integer(*duration)),
        ])
    });
    rows.collect()
}

/// The history of an instance whose activity ran from 100 to 400 ms with a retry after 50 ms of pause, and whose
/// timer took 500 ms.
fn known_events(now_ms: i64, instance: usize) -> Vec<BTreeMap<&'static str, Cell>> {
    let begin = now_ms - 60_000;
    let retry = format!("{{\"source\":2,\"retry_at_ms\":{}}}", begin + 250);
    let event = |(id, kind, at, source, data): (i64, &str, i64, Option<u64>, &str)| {
        BTreeMap::from([
            ("instance", Cell::Text(format!("i{instance}"))),
            ("execution", Cell::Integer(1)),
            ("id", Cell::Integer(id)),
            ("kind", Cell::Text(kind.to_owned())),
            ("at", Cell::Integer(begin + at)),
            ("source", Cell::integer(source)),
            ("data", Cell::Text(data.to_owned())),
        ])
    };
    let events = [
        (1, "OrchestrationStarted", 40, None, "{}"),
        (2, "ActivityScheduled", 100, None, "{}"),
        (3, "ActivityAttemptFailed", 200, Some(2), retry.as_str()),
        (4, "ActivityCompleted", 400, Some(2), "{}"),
        (5, "TimerCreated", 400, None, "{}"),
        (6, "TimerFired", 900, Some(5), "{}"),
        (7, "OrchestrationCompleted", 1_000, None, "{}"),
    ];
    events.into_iter().map(event).collect()
}

#[tokio::test]
async fn the_time_of_a_shipped_query_grows_with_the_number_of_instances_and_not_with_its_square() {
    let catalogue = Stand::open().await.client().sql_catalogue().await.unwrap();
    let now_ms = i64::try_from(SystemClock.now_ms()).unwrap();
    let instances = vec![("mailed", 1_000, None, "eu"); 3_000];
    let events = (0..instances.len()).flat_map(|instance| known_events(now_ms, instance)).collect();
    let known = |table: &str, rows| -> Arc<dyn Table> {
        Arc::new(Known { info: described(&catalogue, table), rows })
    };
    let tables =
        Tables::new([known("instances", known_instances(now_ms, &instances)), known("events", events)]);
    let text = &catalogue.shipped.iter().find(|shipped| shipped.name == "time-spent").unwrap().query;
    let query = Query { timeout: Duration::from_secs(10), ..Query::new(text) };
    let answer = Engine::new(SystemClock::shared()).run("t", query, &tables).await.unwrap();
    let Cell::Integer(counted) = answer.rows[0][1] else { panic!("{:?}", answer.rows) };
    assert_eq!((answer.rows.len(), counted), (1, 3_000));
}

#[tokio::test]
async fn shipped_queries_show_what_is_known() {
    let catalogue = Stand::open().await.client().sql_catalogue().await.unwrap();
    let now_ms = i64::try_from(SystemClock.now_ms()).unwrap();
    let slow = (1..=20).map(|n| ("slow", n * 100, None, "eu"));
    let others = [
        ("quick", 10, None, "us"),
        ("quick", 20, Some("denied"), "us"),
        ("quick", 30, Some("denied"), "us"),
        ("quick", 40, Some("late"), "us"),
    ];
    let instances: Vec<_> = slow.chain(others).collect();
    let one = [("mailed", 1_000, None, "eu")];
    for (name, instances, expected) in [
        ("slowest-functions", &instances[..], "slow 20 1050 1900 2000; quick 4 25 40 40"),
        ("failure-rate", &instances[..], "quick denied 2 4 50.0; quick late 1 4 25.0"),
        ("busiest-tenants", &instances[..], "shop eu 20 0 0; shop us 4 0 3"),
        ("time-spent", &one[..], "mailed 1 1000 40 250 550"),
    ] {
        let known = |table: &str, rows| -> Arc<dyn Table> {
            Arc::new(Known { info: described(&catalogue, table), rows })
        };
        let tables = Tables::new([
            known("instances", known_instances(now_ms, instances)),
            known("all_instances", known_instances(now_ms, instances)),
            known("events", known_events(now_ms, 0)),
        ]);
        let text = &catalogue.shipped.iter().find(|shipped| shipped.name == name).unwrap().query;
        let engine = Engine::new(SystemClock::shared());
        let answer = engine
            .run("t", Query::new(text), &tables)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let shown = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Integer(number) => number.to_string(),
            Cell::Real(number) => format!("{number:?}"),
            other => format!("{other:?}"),
        };
        let row = |row: &Vec<Cell>| row.iter().map(shown).collect::<Vec<_>>().join(" ");
        let found: Vec<String> = answer.rows.iter().map(row).collect();
        assert_eq!(found.join("; "), expected, "{name}");
    }
}

/// The tables of the page: name, then column, type and what is pushed down.
fn documented() -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in PAGE.lines() {
        if let Some(name) = line.strip_prefix("### `") {
            current = name.strip_suffix('`').map(str::to_owned);
            current.iter().for_each(|name| drop(tables.insert(name.clone(), Vec::new())));
        } else if line.starts_with("## ") {
            current = None;
        } else if let (Some(name), Some(row)) = (&current, line.strip_prefix("| `")) {
            tables.get_mut(name).unwrap().push(format!("| `{row}"));
        }
    }
    tables
}

#[tokio::test]
async fn the_page_describes_all_tables_functions_and_shipped_queries() {
    let catalogue = Stand::open().await.client().sql_catalogue().await.unwrap();
    let mut expected = BTreeMap::new();
    for table in &catalogue.tables {
        let row = |column: &SqlColumn| {
            let pushed = column.pushed.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ");
            format!("| `{}` | {} | {pushed} | {} |", column.name, column.kind, column.description)
        };
        expected.insert(table.name.clone(), table.columns.iter().map(row).collect::<Vec<_>>());
        assert!(PAGE.contains(&table.description), "{}: {}", table.name, table.description);
    }
    let documented = documented();
    let page = |tables: &BTreeMap<String, Vec<String>>| {
        let table = |(name, rows): (&String, &Vec<String>)| format!("### `{name}`\n{}\n", rows.join("\n"));
        tables.iter().map(table).collect::<String>()
    };
    assert!(documented == expected, "the tables of docs/guide/sql.md have to be:\n{}", page(&expected));
    let functions: Vec<String> = catalogue.functions.iter().map(|name| format!("`{name}`")).collect();
    let missing: Vec<&String> = functions.iter().filter(|name| !PAGE.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/guide/sql.md does not name {missing:?}");
    for shipped in &catalogue.shipped {
        assert!(
            PAGE.contains(&format!("| `{}` | {} |", shipped.name, shipped.description)),
            "{}",
            shipped.name
        );
    }
}

#[tokio::test]
async fn an_answer_can_be_a_parquet_file() {
    let stand = Stand::open().await;
    let client = stand.client();
    client.start(&greet("one", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let values = query("SELECT column1 AS n, 'x' AS t FROM (VALUES (1), (2), (3)) WHERE column1 > 1");
    let (file, is_truncated) = client.sql_parquet(&values).await.unwrap();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1") && !is_truncated);
    let short = SqlQuery { max_rows: Some(1), ..values };
    assert!(client.sql_parquet(&short).await.unwrap().1, "there are more rows");
    let http = crate::stand::http();
    for (accept, expected) in [
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
        ("text/csv;q=0.9, application/json;q=0.1", "text/csv; charset=utf-8"),
        ("*/*", "application/json"),
    ] {
        let request = http.post(stand.url("/v1/sql")).header("accept", accept);
        let answer = request.json(&json!({ "query": "SELECT 1" })).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], expected, "{accept}");
    }
}
