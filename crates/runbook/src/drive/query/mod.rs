//! Queries of data sources: every interval the rows of a runbook's query become members of batches.
//!
//! The record of a runbook's query is due at the next run. A node that takes it has a lease, whose
//! record's version is the fencing token, runs the query, and sends what has changed to the batches
//! in parts. Each part is one commit: the message in the batch's inbox, the members that it is
//! about ([`SOURCE_MEMBERS`](super::SOURCE_MEMBERS)), and the lease. So a run that is cut off at
//! any point is run again, and finds what is left to do by the difference between rows and members.
//!
//! | file | what |
//! |---|---|
//! | `row.rs` | what is stored about the query of a runbook |
//! | `claim.rs` | which node runs it; commits under the lease |
//! | `known.rs` | members and batches that queries have brought |
//! | `run.rs` | one run: rows, their difference, its outcome |
//! | `apply.rs` | the difference, sent to batches in parts |
//! | `control.rs` | the switch, decisions about removals, what is shown |
//! | `preview.rs` | what a query returns and would change |
//! | `due.rs` | queries that are due, of all tenants |
//! | `turns.rs` | whose query runs next; pure |
//! | `node.rs` | the queries of a node |
//!
//! **Invariant.** What is known of a member changes in the commit of the message about it. So the
//! difference is computed with what was sent, whether its batch has applied it yet or not.

mod apply;
mod claim;
mod control;
mod due;
mod known;
mod node;
mod preview;
mod row;
mod run;
mod turns;

pub use control::RemovalDecision;
pub use node::{Querier, QueryServices};
pub use preview::{
    MAX_PREVIEW_GROUPS, MAX_PREVIEW_SAMPLES, Preview, PreviewChanges, PreviewGroup, PreviewSample, Previewer,
};
pub use row::{
    DecidedRemoval, HeldMember, MAX_HELD_SAMPLES, PendingRemoval, QueryCounts, QueryFailure, QueryRow,
};
