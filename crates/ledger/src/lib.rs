//! The ledger: the truth of DAG runs is an append-only event log on an object store; tables in Parquet are its fold.
//!
//! | module | what it has |
//! |---|---|
//! | [`sql`] | read-only SQL over tables that rooms register |
//! | [`tables`] | the rows of every table, their columns and keys |

pub mod sql;
pub mod tables;
