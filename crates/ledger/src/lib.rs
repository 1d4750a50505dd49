//! The ledger: the truth of DAG runs is an append-only event log on an object store; tables in Parquet are its fold.
//!
//! | module | what it has |
//! |---|---|
//! | [`ids`] | ids of events, and the deterministic names of dispatches, timers, attempts and runs |
//! | [`event`] | the events, their envelope and their idempotency keys |
//! | [`tables`] | the rows of every table, their columns and keys |
//! | [`drive`] | appending, folding, deciding and dispatching on the node that holds a scope |

pub mod drive;
pub mod event;
pub mod ids;
pub mod tables;
