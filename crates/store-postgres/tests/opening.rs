//! What opening a store does to its schema: a server creates and upgrades it, a command that fills
//! a store creates it, and a command that reads changes nothing. Any name of a schema that is
//! accepted works, words of SQL included.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

mod support;

use segno::store::{ErrorKind, Expect, ProviderAdmin, RecordBatch, RecordWrite, Records, Transfer};
use segno_postgres::{Migration, OpenError, PostgresOptions, PostgresStore};
use support::{Schema, connect, url};
use tokio_postgres::Client;

fn options(schema: &str) -> PostgresOptions {
    PostgresOptions::from_url(&url()).unwrap().schema(schema).unwrap()
}

async fn has_schema(client: &Client, schema: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)";
    client.query_one(sql, &[&schema]).await.unwrap().get(0)
}

async fn newest_migration(client: &Client, schema: &str) -> i32 {
    let sql = format!("SELECT max(number) FROM \"{schema}\".migration");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn reading_a_store_that_does_not_exist_creates_nothing() {
    let client = connect(&url()).await;
    let name = format!("absent_{}", std::process::id());
    let error = PostgresStore::open_with(options(&name).migration(Migration::Never)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains(&format!("has no schema {name}")), "{error}");
    assert!(!has_schema(&client, &name).await, "nothing was created");
    // A schema of another program is no store either, and gets no tables.
    client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    let error = PostgresStore::open_with(options(&name).migration(Migration::Never)).await.unwrap_err();
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
    let tables: i64 = client.query_one(tables, &[&name]).await.unwrap().get(0);
    client.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).await.unwrap();
    assert!(error.to_string().contains("no tables of Segno"), "{error}");
    assert_eq!((error.kind(), tables), (ErrorKind::NotFound, 0));
}

#[tokio::test]
async fn only_a_server_upgrades_a_schema_of_an_older_build() {
    let schema = Schema::take().await;
    let newest = newest_migration(&schema.client, &schema.name).await;
    // As far as the build can tell, the last migration was not applied.
    let forget = format!("DELETE FROM {}.migration WHERE number = {newest}", schema.name);
    schema.client.batch_execute(&forget).await.unwrap();
    let mut refused = Vec::new();
    for migration in [Migration::Never, Migration::Create] {
        refused.push(PostgresStore::open_with(schema.options().migration(migration)).await.unwrap_err());
    }
    let kept = newest_migration(&schema.client, &schema.name).await;
    schema.client.batch_execute(&format!("DROP SCHEMA {} CASCADE", schema.name)).await.unwrap();
    for error in refused {
        assert!(
            matches!(error, OpenError::TooOld { found, needed, .. } if found == newest - 1 && needed == newest),
            "{error}"
        );
    }
    assert_eq!(kept, newest - 1, "nothing was changed");
}

#[tokio::test]
async fn a_store_that_exists_is_read_without_a_trace() {
    let schema = Schema::take().await;
    let writers = format!("SELECT count(*) FROM {}.writer", schema.name);
    let before: i64 = schema.client.query_one(&writers, &[]).await.unwrap().get(0);
    let store = PostgresStore::open_with(schema.options().migration(Migration::Never)).await.unwrap();
    store.get_system_metrics().await.unwrap();
    let mut export = store.export().await.unwrap();
    while !export.next_items().await.unwrap().is_empty() {}
    drop(export);
    store.close();
    let after: i64 = schema.client.query_one(&writers, &[]).await.unwrap().get(0);
    assert_eq!(before, after, "no writer was registered");
}

#[tokio::test]
async fn a_schema_may_be_named_like_a_word_of_sql() {
    let client = connect(&url()).await;
    for name in ["user", "none", "select", "table"] {
        client.batch_execute(&format!("DROP SCHEMA IF EXISTS \"{name}\" CASCADE")).await.unwrap();
        let store = PostgresStore::open_with(options(name).migration(Migration::Create)).await.unwrap();
        let write = RecordWrite::Put {
            kind: "kind".to_owned(),
            id: "id".to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: None,
            body: b"body".to_vec().into(),
        };
        store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.unwrap();
        assert_eq!(store.get_system_metrics().await.unwrap().total_instances, 0, "{name}");
        assert!(!store.export().await.unwrap().next_items().await.unwrap().is_empty(), "{name}");
        store.close();
        client.batch_execute(&format!("DROP SCHEMA \"{name}\" CASCADE")).await.unwrap();
    }
}
