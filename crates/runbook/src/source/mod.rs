//! Data sources: queries that return rows of members, and what a query changes in batches.
//!
//! | file | what |
//! |---|---|
//! | `query.rs` | runs the query of a runbook within limits |
//! | `sql.rs` | the interface to databases |
//! | `json.rs` | rows from JSON objects |
//! | `grouping.rs` | which rows belong to which batch; pure |
//! | `difference.rs` | what a query changes in batches; pure |
//! | `error.rs` | why a query has no rows |

mod difference;
mod error;
mod grouping;
mod json;
mod query;
mod sql;

pub use difference::{
    BatchState, ComparedRow, Decisions, Difference, Entry, KnownMember, Merge, MissingMember, Removals,
    RowDigest, digest, member_entry,
};
pub use error::{SOURCE_FAILED, SourceError};
pub use grouping::{PlacedRow, PlacedRows, RowStart, place_rows, start_of};
pub use json::read_objects;
pub use query::{Query, Sources};
pub use sql::{SqlLimits, SqlReader, SqlRows};
