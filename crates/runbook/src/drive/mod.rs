//! Driving batches: fetch waiting messages and due rows, decide by the pure
//! [`step`](crate::step::step), commit rows and calls together.
//!
//! One node at a time holds a batch by a lease whose version is the fencing token. Messages of a
//! batch wait as records of their own, so writers never contend with the holder.
//!
//! | file | what |
//! |---|---|
//! | `runbooks.rs`, `batches.rs`, `reading.rs` | [`Runbooks`]: publishing, creating batches, requests, reading rows |
//! | `published.rs`, `definitions.rs` | stored versions of runbooks; parsed ones, kept in memory |
//! | `transition.rs`, `unpublish.rs` | what a new version does to open batches; deleting runbooks and versions |
//! | `place.rs` | kinds and ids of records |
//! | `inbox.rs`, `receipt.rs`, `post.rs` | messages that wait, what became of them, and how they wake a node |
//! | `outbox.rs`, `from_bus.rs` | jobs and messages that go to the bus; messages that came from it |
//! | `settler.rs` | the result of a call, written in the commit that ends it |
//! | `lease.rs`, `processes.rs` | which node holds a batch, the fencing token; which processes are alive |
//! | `attendance.rs` | whether the holder of a batch is late, for explanations |
//! | `load.rs`, `counter.rs` | reading rows, drawing ids |
//! | `part.rs`, `commit.rs` | one part: inputs are folded and committed |
//! | `holder.rs`, `wakeups.rs`, `node.rs` | one batch; when its rows are due; all batches of a node |
//! | `notices.rs` | notices for people, as calls of a function |
//! | `report.rs` | reading a batch as a report, in parts |
//! | `query/` | queries of data sources: when they run, and the members that they bring |
//! | `calls.rs`, `unsent.rs`, `announcer.rs` | where jobs go, and those that no pool takes yet; where events go |
//! | `upkeep.rs` | what one node at a time does besides: `deletion.rs`, `expiry.rs` delete batches, `retire.rs` has them archived before, `ended_calls.rs` calls of ended steps; `audit.rs` proves that nothing waits without a wake-up |
//! | `error.rs` | errors |
//!
//! **Invariants.** Only the holder of a batch writes its rows, each commit on condition of the
//! lease's version. A message that is no result has a receipt that is due until the message was
//! consumed. Results have no receipt: a batch with open calls is held, or its lease expires and is
//! due.

mod announcer;
mod attendance;
mod audit;
mod batches;
mod calls;
mod commit;
mod counter;
mod definitions;
mod deletion;
mod ended_calls;
mod error;
mod expiry;
mod from_bus;
mod holder;
mod inbox;
mod lease;
mod load;
mod node;
mod notices;
mod outbox;
mod part;
mod place;
mod post;
mod processes;
mod published;
mod query;
mod reading;
mod receipt;
mod report;
mod retire;
mod runbooks;
mod settler;
mod transition;
mod unpublish;
mod unsent;
mod upkeep;
mod wakeups;

pub use announcer::{Announcer, Committed, Silent};
pub use batches::{MAX_BATCH_MEMBERS, NewBatch, RequestedAction};
pub use definitions::Definitions;
pub use deletion::{BatchDeletion, DELETIONS};
pub use ended_calls::ENDED_CALLS;
pub use error::{DriveError, RunbookError};
pub use from_bus::{Arrival, BusInbox};
pub use holder::{DriverOptions, KEEP_INVOCATIONS, Services};
pub use inbox::{BYTES_PER_PART, MESSAGES_PER_PART};
pub use node::Driver;
pub use notices::{NOTICE_SETTLE_KIND, NOTICES, NoticeRow, NoticeSettler, NoticeState};
pub(crate) use outbox::batch_of_row;
pub use outbox::{
    Announcements, MESSAGE_TYPE, OUTBOX, Outbox, OutboxRow, SEGNO, SENDER, WORKER_ID, events_folder,
    jobs_folder,
};
pub use place::{
    BATCH_INDEX, BatchPlace, COUNTERS, CREATION_KEYS, HEADS, INBOX, LEASES, QUERIES, RECEIPTS, RUNBOOKS,
    SOURCE_BATCHES, SOURCE_MEMBERS,
};
pub use post::timestamp;
pub use processes::Processes;
pub use published::{BatchSummary, RunbookHead, RunbookRow};
pub use query::{
    DecidedRemoval, HeldMember, MAX_HELD_SAMPLES, MAX_PREVIEW_GROUPS, MAX_PREVIEW_SAMPLES, PendingRemoval,
    Preview, PreviewChanges, PreviewGroup, PreviewSample, Previewer, Querier, QueryCounts, QueryFailure,
    QueryRow, QueryServices, RemovalDecision,
};
pub use receipt::{Receipt, ReceiptState};
pub use report::Report;
pub use retire::{BatchArchive, BatchArchiveError, ExpiredBatch};
pub use runbooks::{PublishOptions, PublishPlan, Published, Runbooks};
pub use settler::{ResultSettler, SETTLE_KIND, register};
pub use transition::{MAX_MOVED_BATCHES, PhaseTransition, Transition};
pub use upkeep::{UPKEEP, Upkeep};

#[cfg(test)]
mod tests;
