//! The default store of Segno: one directory, no server, one process; acknowledged means synced.
//!
//! A commit changes the state in memory and adds its row changes to the batch that is being filled. The writer appends
//! the batch to a log, syncs once, and answers everybody whose changes are in it. Behind the log, a checkpointer moves
//! rows into a redb file and frees the log. Opening reads the file and the rest of the log.
//!
//! | file | what |
//! |---|---|
//! | `store` | opening, closing, the two threads |
//! | `provider`, `admin`, `records`, `import` with `export` | the four facets |
//! | `shared`, `desk`, `committing`, `submitted`, `starting`, `waiting`, `leasing`, `unsynced`, `refusal`, `apart` | how an operation runs, what it waits for, and what is not durable |
//! | `writer`, `pace`, `checkpointer`, `giving_way`, `compaction`, `snapshot`, `view`, `tail`, `recovery` | the ways between memory, log and redb |
//! | `state`, `commit`, `restart`, `removal`, `listing`, `record_index`, `expiries` | what operations do |
//! | `tables`, `recent`, `rows`, `overlay`, `base`, `stored`, `packed`, `facts` | rows in layers: changes in memory over redb |
//! | `key`, `keys`, `instance_row`, `queue_row`, `batch`, `codec` | what rows and log records look like |
//! | `log` | segments and records |
//! | `files`, `directory` | the disk, behind a trait |
//! | `blocks`, `full_disk` | checksums below redb; waiting for room |
//! | `raw_rows`, `aside`, `around`, `damage`, `stranded` | reading past damage, and what is known of it |
//! | `closed`, `check`, `agreement`, `salvage`, `readable`, `untouched`, `unfinished` | reading a store that is not open, and saving a damaged one |
//! | `info`, `control` | what an operator asks, also from another process |
//! | `floor` | the log alone, as the measure of the rest |
//!
//! **Invariants.** Nothing is answered before the batch that it depends on is synced. No lock is held while the disk is
//! written. Memory grows with what is queued and what is due, never with what is finished. The bytes on disk are
//! those of `docs/embedded-format.md`.

mod admin;
mod agreement;
mod apart;
mod around;
mod aside;
#[cfg(test)]
mod at_rest;
mod base;
mod batch;
mod bell;
mod blocks;
mod check;
mod checkpointer;
mod closed;
mod codec;
mod commit;
mod committing;
mod compaction;
mod control;
mod damage;
mod desk;
mod directory;
mod error;
mod expiries;
mod export;
mod facts;
mod files;
mod floor;
mod full_disk;
mod giving_way;
mod import;
mod info;
mod instance_row;
mod key;
mod keys;
mod leasing;
mod listing;
mod log;
mod options;
mod overlay;
mod pace;
mod packed;
mod permissions;
mod provider;
mod queue_row;
mod raw_rows;
mod readable;
mod recent;
mod record_index;
mod records;
mod recovery;
mod refusal;
mod removal;
mod restart;
mod rows;
mod salvage;
mod shared;
mod snapshot;
mod starting;
mod state;
mod store;
mod stored;
mod stranded;
mod submitted;
mod tables;
mod tail;
mod unfinished;
mod unsynced;
mod untouched;
mod view;
mod waiting;
mod writer;

pub use base::BASE_FORMAT as FORMAT_VERSION;
pub use check::{CheckProgress, CheckReport, Finding, check, check_files};
pub use closed::ClosedStore;
pub use compaction::{CompactProgress, CompactReport, compact, compact_files};
pub use control::Control;
pub use directory::Directory;
pub use error::OpenError;
pub use files::{Files, StoreFile};
pub use floor::SyncedLog;
pub use info::{FileInfo, Info, InstanceCounts, Queues};
pub use options::OpenOptions;
pub use permissions::{ExposedFile, exposed_files};
pub use salvage::{SalvageReport, salvage, salvage_files};
pub use store::EmbeddedStore;
pub use unfinished::FilledBy;
