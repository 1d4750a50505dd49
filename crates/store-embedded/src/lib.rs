//! The default store of Segno: one directory, no server, one process; acknowledged means synced.
//!
//! A commit changes the state in memory and adds its row changes to the batch that is being filled.
//! The writer appends the batch to a write-ahead log, syncs once (group commit), and answers all
//! callers whose changes are in it. Behind the log, a checkpointer moves rows into a redb file and
//! frees the log. Opening reads the file and the rest of the log.
//!
//! | path | content |
//! |---|---|
//! | `store`, `options`, `error` | opening, closing, the two threads |
//! | `provider`, `admin`, `records` | the facets; the fourth is `operate/import` and `export` |
//! | `commit/` | how an operation runs and becomes durable |
//! | `state/` | what operations do |
//! | `rows/` | the bytes of rows, and their layers: changes in memory over redb |
//! | `log/` | the write-ahead log |
//! | `checkpoint/` | from the log into redb, and back when a store is opened |
//! | `disk/` | files, behind a trait; checksums; a full disk |
//! | `repair/` | checks, damage, salvage |
//! | `operate/` | what operators do: information, exports, imports |
//!
//! **Invariants.** No caller is answered before the batch that its answer depends on is synced. No lock is held while
//! the disk is written. Memory grows with what is queued and what is due, never with what is
//! finished. The bytes on disk are those of `docs/embedded-format.md`.

#![warn(unreachable_pub)]

mod admin;
mod checkpoint;
mod commit;
mod disk;
mod error;
#[cfg(test)]
mod idle_store;
mod log;
mod operate;
mod options;
mod provider;
mod records;
mod repair;
mod rows;
mod state;
mod store;

pub use checkpoint::compaction::{CompactProgress, CompactReport, compact, compact_files};
pub use disk::directory::Directory;
pub use disk::files::{Files, StoreFile};
pub use disk::permissions::{ExposedFile, exposed_files};
pub use error::OpenError;
pub use operate::closed::ClosedStore;
pub use operate::control::Control;
pub use operate::fill_marker::FilledBy;
pub use operate::info::{FileInfo, Info, InstanceCounts, Queues};
pub use operate::synced_log::SyncedLog;
pub use options::OpenOptions;
pub use repair::check::{CheckProgress, CheckReport, Finding, check, check_files};
pub use repair::salvage::{SalvageReport, salvage, salvage_files};
pub use rows::base::BASE_FORMAT as FORMAT_VERSION;
pub use store::EmbeddedStore;
