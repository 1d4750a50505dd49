//! A database for tests: schemas that are used one test at a time, and a clock that stands still.

#![allow(dead_code, reason = "every test binary uses a part of it")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use segno::clock::{Clock, duration_ms};
use segno_postgres::{PostgresOptions, PostgresStore};
use segno_testkit::clock::{VIRTUAL_EPOCH_MS, VirtualClock};
use segno_testkit::conformance::SteppedClock;
use tokio_postgres::{Client, NoTls};

/// Says where the database for tests is; set by `scripts/with-postgres.sh`.
const URL_VARIABLE: &str = "SEGNO_TEST_POSTGRES";

/// More schemas than tests that run at once.
const SCHEMAS: i32 = 64;

/// The URL of the database for tests.
pub fn url() -> String {
    std::env::var(URL_VARIABLE).unwrap_or_else(|_| {
        panic!("{URL_VARIABLE} is not set: run this test with scripts/with-postgres.sh cargo nextest run -p segno-postgres")
    })
}

/// A connection past the store.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// An empty schema that belongs to this test while it lives.
pub struct Schema {
    pub name: String,
    /// Holds the schema for this test.
    pub client: Client,
}

impl Schema {
    /// Takes a schema that no other test uses, makes it if it is new, and empties it. Its clock is the database's.
    pub async fn take() -> Schema {
        let client = connect(&url()).await;
        for number in 0..SCHEMAS {
            let sql = format!("SELECT pg_try_advisory_lock(7070, {number})");
            if client.query_one(&sql, &[]).await.unwrap().get(0) {
                let schema = Schema { name: format!("test_{number}"), client };
                schema.prepare().await;
                return schema;
            }
        }
        panic!("all {SCHEMAS} schemas for tests are taken");
    }

    async fn prepare(&self) {
        let name = &self.name;
        // Opening makes the tables.
        self.open(self.options()).await.close();
        let mut sql = String::new();
        for table in ["instance", "label", "past_execution", "event_batch", "session"] {
            sql += &format!("DELETE FROM {name}.{table};");
        }
        for sequence in ["message_id", "activity_id", "record_version"] {
            sql += &format!("ALTER SEQUENCE {name}.{sequence} RESTART;");
        }
        // Not the ballast, whose numbers are negative or nothing.
        for (table, number) in
            [("turn", "head + 1"), ("message", "id"), ("activity", "id"), ("record", "version")]
        {
            sql += &format!("DELETE FROM {name}.{table} WHERE {number} > 0;");
        }
        sql += &format!(
            "DELETE FROM {name}.writer WHERE writer_id <> 0;
             UPDATE {name}.writer SET executions = 0, events = 0, instances = DEFAULT;
             CREATE OR REPLACE FUNCTION {name}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
             AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'"
        );
        self.client.batch_execute(&sql).await.unwrap();
    }

    /// Stops the clock of the schema at the virtual epoch, and returns how it is moved.
    pub async fn stop_clock(&self) -> Arc<SchemaClock> {
        let name = &self.name;
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {name}.test_clock (now_ms bigint); DELETE FROM {name}.test_clock;
             INSERT INTO {name}.test_clock VALUES ({VIRTUAL_EPOCH_MS});
             CREATE OR REPLACE FUNCTION {name}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
             AS 'SELECT now_ms FROM {name}.test_clock'"
        );
        self.client.batch_execute(&sql).await.unwrap();
        let client = connect(&url()).await;
        Arc::new(SchemaClock { schema: name.clone(), client, local: VirtualClock::new() })
    }

    /// Settings for a store in this schema.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions::from_url(&url()).unwrap().schema(&self.name).unwrap()
    }

    /// A store in this schema.
    pub async fn open(&self, options: PostgresOptions) -> Arc<PostgresStore> {
        PostgresStore::open_with(options).await.unwrap()
    }
}

/// The clock of a schema together with the local clock of its store: both stand still until they are moved.
pub struct SchemaClock {
    schema: String,
    client: Client,
    local: Arc<VirtualClock>,
}

impl fmt::Debug for SchemaClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaClock").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl SteppedClock for SchemaClock {
    fn local(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.local) as Arc<dyn Clock>
    }

    async fn advance(&self, duration: Duration) {
        let sql =
            format!("UPDATE {}.test_clock SET now_ms = now_ms + {}", self.schema, duration_ms(duration));
        self.client.batch_execute(&sql).await.unwrap();
        self.local.advance(duration);
    }
}
