//! The ledger: the truth of DAG runs is an append-only event log on an object store; tables in
//! Parquet are its fold.
//!
//! | module | what it has |
//! |---|---|
//! | [`ids`] | ids of events, and the deterministic names of dispatches, timers, attempts and runs |
//! | [`controllers`] | what is decided from the tables: dispatches, timers, retries, repairs, ticks, backfills |
//! | [`event`] | the events, their envelope and their idempotency keys |
//! | [`archive`] | what retention removes from the store, as Parquet files |
//! | [`sql`] | read-only SQL over tables that rooms register |
//! | [`plan`] | DAGs as users write them, and the plans of their runs |
//! | [`fold`](mod@fold) | the pure fold: events in, rows of all tables out |
//! | [`tables`] | the rows of every table, their columns and keys |
//! | [`columnar`] | tables as Parquet files |
//! | [`objects`] | the object store: paths, and calls whose outcome is known |
//! | [`log`] | appending batches of events, and reading them |
//! | [`manifest`] | which files are the tables |
//! | [`compactor`] | events in, files and a manifest out |
//! | [`snapshot`] | reading the tables that a manifest names |
//! | [`transfer`] | whole ledgers: a consistent copy, and an empty object store filled from one |
//! | [`drive`] | appending, folding, deciding and dispatching on the node that holds a scope |

pub mod archive;
pub mod columnar;
pub mod compactor;
pub mod controllers;
pub mod drive;
pub mod event;
pub mod fold;
pub mod ids;
pub mod log;
pub mod manifest;
pub mod objects;
pub mod plan;
pub mod snapshot;
pub mod sql;
pub mod tables;
pub mod telemetry;
pub mod transfer;

pub use segno_actions::document::problem;
