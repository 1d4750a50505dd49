//! The shared store of Segno: many nodes, one PostgreSQL database.
//!
//! A process gathers everything that waits (turns to commit, messages to enqueue, fetches, watches) and sends it in one call
//! with array parameters. The database's function checks every item by its token, commits what holds, locks what the fetches
//! want, and answers. While calls are in flight the next one fills. Only the database's clock decides anything.
//!
//! | file | what |
//! |---|---|
//! | `store` | opening, closing, the tasks |
//! | `provider`, `admin`, `records`, `transfer` | the four facets |
//! | `restart` | the next execution of an instance that exists |
//! | `export`, `import`, `import_batch` | everything that the store holds, out and in |
//! | `core`, `waiting`, `fetches`, `ticket` | what is shared: what waits, what is in flight, and how long |
//! | `exchanger` | the tasks that write, one for each exchange in flight |
//! | `item`, `columns`, `answer` | what goes into an exchange and what comes out |
//! | `fetch` | a fetch that waits, and locks that find their way back |
//! | `reader`, `lookups`, `listing` | statements outside the exchange |
//! | `notifications` | waking other nodes |
//! | `sweeper` | housekeeping |
//! | `connection`, `options`, `migrations`, `error` | the database, how it is reached, and what it refuses |
//! | `query` | a query of another database, read-only and within limits |
//! | `views` | views over records, for people and reports |
//! | `number`, `version_key` | values that the database has no type for |
//!
//! The other half of the store is in `migrations/*.sql`.
//!
//! **Invariants.** Nothing is answered before the transaction that it depends on is committed. Every item is fenced by its
//! token inside the transaction. Behind a transaction-mode pooler nothing needs a session: statements are not named, and no setting outlives one. An exchange whose
//! answer was lost is asked for again under its number and never done twice.

mod admin;
mod answer;
mod columns;
mod connection;
mod core;
mod due_waits;
mod error;
mod exchanger;
mod export;
mod fetch;
mod fetches;
mod import;
mod import_batch;
mod item;
mod listing;
mod lookups;
mod migrations;
mod notifications;
mod number;
mod options;
mod provider;
mod query;
mod reader;
mod records;
mod restart;
mod store;
mod sweeper;
mod ticket;
mod transfer;
mod version_key;
mod views;
mod waiting;

pub use crate::core::Statistics;
pub use error::OpenError;
pub use migrations::SCHEMA_VERSION;
pub use options::{DEFAULT_SCHEMA, Migration, Pooler, PostgresOptions};
pub use query::{QueryError, QueryLimits, QueryRows, query};
pub use store::PostgresStore;
pub use views::{
    ColumnType, MAX_NAME_BYTES, MAX_VIEWS, View, ViewColumn, ViewCondition, ViewError, ViewValue,
    check_view_schema, create_views,
};
