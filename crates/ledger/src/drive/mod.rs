//! Driving DAG runs: events that wait in the outbox are appended to the log and folded, controllers decide on the folded
//! state, and what they want dispatched is started.
//!
//! One node at a time holds a scope (tenant and workspace) by a lease. Writers never contend with it: every event waits as a
//! record of its own, written in the commit of what it is about.
//!
//! | file | what |
//! |---|---|
//! | `place.rs` | kinds and ids of records |
//! | `outbox.rs`, `post.rs` | events that wait to be appended, and how they wake a node |
//! | `settler.rs` | the end of an attempt, written in the commit that ends its call |
//! | `sensor.rs`, `sensing.rs` | sensors: their records and what they return; polling |
//! | `notices.rs`, `freshness.rs` | calls of the function that a DAG has told about failures; assets that are stale |
//! | `callbacks/` | reports of workers that have a token for an attempt |
//! | `health.rs` | what is wrong with the ledger now |
//! | `lineage/` | assets, their tasks, and what is made of what |
//! | `lease.rs`, `processes.rs` | which node holds a scope, the fencing tokens; which processes are alive |
//! | `sweep.rs` | the anti-entropy sweep: scopes whose events wait although no node looks after them |
//! | `announce.rs` | what folds changed, for those who follow runs |
//! | `limits.rs` | every limit |
//! | `error.rs` | errors |
//!
//! **Invariants.** Only the holder of a scope appends what waits in its outbox. A record is deleted after its events are in
//! the log, so none is lost; appended twice, they are harmless by their idempotency keys.

mod announce;
mod append;
mod backfills;
mod begun;
mod callbacks;
mod checks;
mod corrections;
mod dags;
mod decide;
mod definitions;
mod dispatch;
mod error;
mod freshness;
mod health;
mod holder;
mod inputs;
mod lease;
mod ledger;
pub mod limits;
mod lineage;
mod lists;
mod node;
mod notices;
mod outbox;
mod place;
mod planning;
mod post;
mod processes;
mod reading;
mod request;
mod runs;
mod sensing;
mod sensor;
mod settler;
mod sweep;
mod wakeups;

pub use announce::{RunAnnouncer, Silent};
pub use backfills::{BackfillDetail, Backfills, CreatedBackfill, NewBackfill};
pub use callbacks::{
    Acknowledged, Alive, AttemptName, CallbackError, Callbacks, CompletedReport, HeartbeatReport,
    InvalidToken, ReportedError, ReportedOutput, StartedReport, TaskToken, TaskTokens, TokenIssuer, issue,
};
pub use corrections::{ClearTasks, MarkTask, Rerun};
pub use dags::{Dags, ListedSensor, PublishedDag};
pub use definitions::{DagHead, DagVersion};
pub use error::{DriveError, LedgerError};
pub use health::LedgerTrouble;
pub use holder::{DriverOptions, Services};
pub use ledger::{Ledger, LedgerOptions};
pub use lineage::{
    AssetDetail, AssetGraph, AssetNode, AssetState, AssetTask, Assets, Direction, Edge, EdgeSource,
    JudgedPartition, LineagePage, Stale, StaleReason, Trace, TraceQuery, TracedAsset,
};
pub use lists::items;
pub use node::Driver;
pub use outbox::WaitingEvent;
pub use place::{BEGUN, FRESHNESS, HEADS, LEASES, OUTBOX, RECEIPTS, RUN_KEYS, SECRETS, SENSORS, VERSIONS};
pub use post::{Posting, post};
pub use processes::Processes;
pub use reading::{RunDetail, RunPage, RunQuery, TaskQuery, TaskWait, WaitReason};
pub use request::{Accepted, Request};
pub use runs::{Runs, StartRun, StartedRun};
pub use sensor::SensorRow;
pub use settler::{AttemptSettler, SETTLE_KIND, SKIPPED_CODE, register};

#[cfg(test)]
mod tests;
