//! The archive: what is removed from the store because its time is over, as Parquet files below `archive/{kind}/day=…/`.
//!
//! Files never change. Rows of one key may be in several of them, because a node that ended between the write of a file and the
//! deletion of its rows from the store writes them again: readers take the one with the largest revision, and what the store still
//! has wins over all of them.
//!
//! | file | what |
//! |---|---|
//! | `kind` | the kinds: columns, keys, the order of rows |
//! | `row` | what every row has, and the macro that derives it from its columns |
//! | `instances`, `events` | the rows of a kind, from what the engine hands out and back |
//! | `audit`, `batches` | rows that the server makes |
//! | `actions`, `occurrences` | the rows of a kind, from records and back, and how they are removed from the store |
//! | `file` | names of files: the day, the creation times that are in it, the digest of its bytes |
//! | `store` | the objects, the health of the last writes |
//! | `write` | rows, as files |
//! | `retire` | records whose time is over: archived, then removed from the store |
//! | `read` | instances and histories by id, and files by parts for queries |
//! | `doubt` | which instances may be in the store as well, for queries |
//! | `erase` | rows of an id, or of a tenant, that readers must skip from then on |
//! | `index` | which files may have an id |
//! | `upkeep` | small files are merged, old ones are removed, all are indexed |
//! | `limits` | every limit |
//!
//! **Invariants.** A file is put before what it replaces is deleted. The name of a file follows from its bytes.

mod actions;
mod audit;
mod batches;
mod doubt;
mod erase;
mod events;
mod file;
mod index;
mod instances;
mod kind;
pub mod limits;
mod occurrences;
mod read;
mod retire;
#[cfg(test)]
mod retire_tests;
mod row;
mod store;
#[cfg(test)]
mod tests;
mod upkeep;
mod write;

pub use actions::{ActionRow, RetiredActions};
pub use audit::AuditRow;
pub use batches::{BatchRow, MemberRow, PhaseRow, StepRow};
pub use doubt::Doubts;
pub use erase::Erased;
pub use events::EventRow;
pub use file::{ArchivedFile, FileName, day_of};
pub use instances::InstanceRow;
pub use kind::{
    ACTIONS, AUDIT, BATCHES, EVENTS, Group, INSTANCES, KINDS, Kind, MEMBERS, PHASES, RECURRING_HISTORY, STEPS,
};
pub use occurrences::{OccurrenceRow, RetiredOccurrences};
pub use read::{ArchivedExecution, EventsQuery};
pub use retire::{Moving, RetireFault, Retired, Retirement, Retiring};
pub use row::ArchivedRow;
pub use store::{ArchiveFault, ArchiveStore};
pub use upkeep::{Upkeep, UpkeepOptions};
