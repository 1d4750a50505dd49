//! User queries: one statement, read-only, within limits.

mod support;

use std::time::Duration;

use segno::clock::{SystemClock, timeout};
use segno_postgres::{QueryError, QueryLimits, QueryRows, query};
use support::{Schema, url};

const LIMITS: QueryLimits =
    QueryLimits { timeout: Duration::from_secs(20), max_rows: 5_000, max_bytes: 1_000_000 };

async fn rows(text: &str) -> Result<QueryRows, QueryError> {
    query(&url(), text, LIMITS).await
}

fn texts(values: &[Option<&str>]) -> Vec<Option<String>> {
    values.iter().map(|value| value.map(str::to_owned)).collect()
}

#[tokio::test]
async fn every_type_comes_as_text() {
    let found = rows(
        "SELECT 12345678901234567890.120::numeric AS n, true AS b, NULL::text AS nothing, 'é'::text AS t, \
         timestamp '2026-03-15 06:00' AS at, ARRAY['a','b'] AS list -- the end",
    );
    let found = found.await.unwrap();
    assert_eq!(found.columns, ["n", "b", "nothing", "t", "at", "list"]);
    let expected = [
        Some("12345678901234567890.120"),
        Some("t"),
        None,
        Some("é"),
        Some("2026-03-15 06:00:00"),
        Some("{a,b}"),
    ];
    assert_eq!(found.rows, [texts(&expected)]);
    let none = rows("SELECT 1 AS a WHERE false;").await.unwrap();
    assert_eq!((none.columns, none.rows.len()), (vec!["a".to_owned()], 0));
    assert_eq!(rows("SELECT generate_series(1, 2500)").await.unwrap().rows.len(), 2_500);
}

#[tokio::test]
async fn nothing_can_be_changed_and_nothing_follows_the_query() {
    let schema = Schema::take().await;
    let table = format!("{}.victim", schema.name);
    schema
        .client
        .batch_execute(&format!("CREATE TABLE IF NOT EXISTS {table} (n int); TRUNCATE {table}"))
        .await
        .unwrap();
    schema.client.batch_execute(&format!("INSERT INTO {table} VALUES (1)")).await.unwrap();
    for attempt in [
        format!("SELECT 1; COMMIT; DELETE FROM {table}"),
        format!("DELETE FROM {table} RETURNING n"),
        format!("WITH gone AS (DELETE FROM {table} RETURNING n) SELECT * FROM gone"),
        format!("SELECT n FROM {table} FOR UPDATE"),
        "SELECT set_config('transaction_read_only', 'off', true)".to_owned(),
        "COMMIT".to_owned(),
        String::new(),
    ] {
        let error = rows(&attempt).await.unwrap_err();
        assert!(matches!(error, QueryError::Refused(_)), "{attempt}: {error}");
    }
    let left = rows(&format!("SELECT count(*) FROM {table}")).await.unwrap();
    assert_eq!(left.rows, [texts(&[Some("1")])]);
    schema.client.batch_execute(&format!("DROP TABLE {table}")).await.unwrap();
}

#[tokio::test]
async fn limits_end_a_query() {
    let too_many = rows("SELECT generate_series(1, 5001)").await.unwrap_err();
    assert_eq!(too_many.to_string(), "the query returned more rows than the limit of 5000");
    let too_large = rows("SELECT repeat('x', 1000) FROM generate_series(1, 1001)").await.unwrap_err();
    assert_eq!(too_large.to_string(), "the query returned more bytes than the limit of 1000000");
    let short = QueryLimits { timeout: Duration::from_millis(300), ..LIMITS };
    let slow = query(&url(), "SELECT pg_sleep(3600)", short).await.unwrap_err();
    assert!(
        slow.to_string().contains("longer than the limit") || slow.to_string().contains("timeout"),
        "{slow}"
    );
}

#[tokio::test]
async fn a_database_that_is_away_is_named_and_its_password_is_not() {
    let error = query("postgres://u:geheim@127.0.0.1:1/d", "SELECT 1", LIMITS).await.unwrap_err();
    assert_eq!(error.kind(), segno::store::ErrorKind::Unavailable);
    assert!(!error.to_string().contains("geheim"), "{error}");
}

#[tokio::test]
async fn a_query_that_is_dropped_is_cancelled_in_the_database() {
    let schema = Schema::take().await;
    // The query waits for a lock that this test holds, so that it can be told from all others.
    let lock = std::process::id();
    schema.client.batch_execute(&format!("SELECT pg_advisory_lock({lock})")).await.unwrap();
    let text = format!("SELECT pg_advisory_lock({lock})");
    let running = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {lock} AND NOT granted"
    );
    let until = async |wanted: i64| {
        let is_so = async {
            loop {
                let count: i64 = schema.client.query_one(&running, &[]).await.unwrap().get(0);
                if count == wanted {
                    return;
                }
                segno::clock::sleep(&SystemClock, Duration::from_millis(20)).await;
            }
        };
        timeout(&SystemClock, Duration::from_secs(10), is_so).await.expect("it is not so")
    };
    let address = url();
    let asked = tokio::spawn(async move { query(&address, &text, LIMITS).await });
    until(1).await;
    asked.abort();
    until(0).await;
}
