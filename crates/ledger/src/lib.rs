//! The ledger: the truth of DAG runs is an append-only event log on an object store; tables in
//! Parquet are its fold.
//!
//! | module | what it has |
//! |---|---|
//! | [`ids`] | ids of events, and the deterministic names of dispatches, timers, attempts and runs |
//! | [`controllers`] | what is decided from the tables: dispatches, timers, retries, repairs, ticks, backfills |
//! | [`event`] | the events, their envelope and their idempotency keys |
//! | [`fold`](mod@fold) | the pure fold: events in, rows of all tables out |
//! | [`tables`] | the rows of every table, their columns and keys |

pub mod controllers;
pub mod event;
pub mod fold;
pub mod ids;
pub mod tables;
