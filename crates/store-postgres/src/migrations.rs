//! Migrations: numbered, forward only, what is missing in one transaction, by one node at a time.

use std::cmp::Ordering;
use std::time::Duration;

use segno::clock::{SystemClock, sleep};
use tokio_postgres::types::Type;

use crate::connection::Connection;
use crate::error::OpenError;
use crate::options::{Migration, PostgresOptions};

/// Every change of the schema, in order. One that was released is never changed, and never drops or alters what the
/// release before it uses: a function with other parameters gets another name.
const MIGRATIONS: &[(&str, &str)] = &[
    ("tables", include_str!("../migrations/0001_tables.sql")),
    ("commit", include_str!("../migrations/0002_commit.sql")),
    ("apply", include_str!("../migrations/0003_apply.sql")),
    ("exchange", include_str!("../migrations/0004_exchange.sql")),
    ("admin", include_str!("../migrations/0005_admin.sql")),
    ("restart", include_str!("../migrations/0006_restart.sql")),
    ("delayed_by_queue", include_str!("../migrations/0007_delayed_by_queue.sql")),
    ("prefixes", include_str!("../migrations/0008_prefixes.sql")),
    ("guards", include_str!("../migrations/0009_guards.sql")),
    ("due_folders", include_str!("../migrations/0010_due_folders.sql")),
    ("except_prefixes", include_str!("../migrations/0011_except_prefixes.sql")),
    ("archive", include_str!("../migrations/0012_archive.sql")),
    ("absent_records", include_str!("../migrations/0013_absent_records.sql")),
    ("joined_turns", include_str!("../migrations/0014_joined_turns.sql")),
];

/// Version of the schema: how many migrations it has.
pub const SCHEMA_VERSION: usize = MIGRATIONS.len();

/// Oldest server that has what the statements use.
const OLDEST_SERVER: i32 = 14;

/// The name of an advisory lock in migrations.
const CLAIMS_LOCK: &str = "'segno claims in @schema@'";

/// Between two tries to be the node that migrates.
const PAUSE: Duration = Duration::from_millis(50);

/// Brings a schema up to date, whoever else is about to do the same, as far as the options allow
/// it.
pub(crate) async fn migrate(connection: &Connection, options: &PostgresOptions) -> Result<(), OpenError> {
    check_server(connection).await?;
    let schema = &options.schema;
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    loop {
        let found = applied(connection, schema).await?;
        match (found.cmp(&known), options.migration) {
            (Ordering::Greater, _) => {
                return Err(OpenError::TooNew { schema: schema.clone(), found, known });
            }
            (Ordering::Equal, _) => return Ok(()),
            (Ordering::Less, Migration::Never) if found == 0 => {
                return Err(no_store(connection, options).await?);
            }
            (Ordering::Less, Migration::Create | Migration::Never) if found > 0 => {
                return Err(OpenError::TooOld { address: options.address(), found, needed: known });
            }
            (Ordering::Less, _) => {}
        }
        if !apply_next(connection, schema).await? {
            sleep(&SystemClock, PAUSE).await;
        }
    }
}

/// Why there is no store: no schema, or one without tables of a store.
async fn no_store(connection: &Connection, options: &PostgresOptions) -> Result<OpenError, OpenError> {
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)";
    let row = connection.client().query_typed_one(exists, &[(&options.schema, Type::TEXT)]).await?;
    let (schema, database) = (&options.schema, options.database());
    let why = match row.get(0) {
        true => format!("the schema {schema} of the database {database} has no tables of Segno"),
        false => format!("the database {database} has no schema {schema}"),
    };
    Ok(OpenError::NoStore { address: options.address(), why })
}

/// An identifier as statements name it. Names of schemas have no quotes in them.
pub(crate) fn quoted(identifier: &str) -> String {
    format!("\"{identifier}\"")
}

/// A migration for a schema. The name of a lock is no identifier: all nodes must hash the same
/// text.
fn in_schema(sql: &str, schema: &str) -> String {
    sql.replace(CLAIMS_LOCK, &CLAIMS_LOCK.replace("@schema@", schema)).replace("@schema@", &quoted(schema))
}

async fn check_server(connection: &Connection) -> Result<(), OpenError> {
    let row =
        connection.client().query_typed_one("SELECT current_setting('server_version_num')", &[]).await?;
    let number: String = row.get(0);
    let major = number.parse::<i32>().map_or(0, |number| number / 10_000);
    if major < OLDEST_SERVER {
        return Err(OpenError::OldServer { found: number, needed: OLDEST_SERVER });
    }
    Ok(())
}

/// How many migrations the schema has.
async fn applied(connection: &Connection, schema: &str) -> Result<i32, OpenError> {
    let table = format!("{}.migration", quoted(schema));
    let exists = "SELECT to_regclass($1) IS NOT NULL";
    let row = connection.client().query_typed_one(exists, &[(&table, Type::TEXT)]).await?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(number), 0) FROM {table}");
    Ok(connection.client().query_typed_one(&newest, &[]).await?.get(0))
}

/// Applies what is missing in one transaction, under a lock that ends with it, so that it works through any pooler.
/// Says whether this node was the one.
async fn apply_next(connection: &Connection, schema: &str) -> Result<bool, OpenError> {
    let client = connection.client();
    let lock = format!("SELECT pg_try_advisory_xact_lock(hashtext('segno migrations of {schema}'))");
    client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0").await?;
    let outcome = async {
        let mine: bool = client.query_typed_one(&lock, &[]).await?.get(0);
        if !mine {
            return Ok(false);
        }
        let identifier = quoted(schema);
        let prepare = format!(
            "CREATE SCHEMA IF NOT EXISTS {identifier};
             CREATE TABLE IF NOT EXISTS {identifier}.migration (
                 number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        );
        client.batch_execute(&prepare).await?;
        let found = usize::try_from(applied(connection, schema).await?).unwrap_or(0);
        for (number, (name, sql)) in (1..).zip(MIGRATIONS).skip(found) {
            client.batch_execute(&in_schema(sql, schema)).await?;
            let note =
                format!("INSERT INTO {identifier}.migration (number, name) VALUES ({number}, '{name}')");
            client.batch_execute(&note).await?;
        }
        Ok::<bool, OpenError>(true)
    };
    match outcome.await {
        Ok(mine) => {
            client.batch_execute("COMMIT").await?;
            Ok(mine)
        }
        Err(error) => {
            // The connection is as good as gone if even this fails, and the first error says why.
            let _ = client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}
