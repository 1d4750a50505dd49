//! The default store of Segno: one directory, no server, one process; acknowledged means synced.
//!
//! A commit changes the state in memory and adds its row changes to the batch that is being filled. The writer appends
//! the batch to a log, syncs once, and answers everybody whose changes are in it. Behind the log, a checkpointer moves
//! rows into a redb file and frees the log. Opening reads the file and the rest of the log.
//!
//! | file | what |
//! |---|---|
//! | `store` | opening, closing, the two threads |
//! | `provider`, `admin`, `records` | the three facets |
//! | `shared`, `waiting`, `unsynced` | how an operation runs and what it waits for |
//! | `writer`, `pace`, `checkpointer`, `recovery` | the ways between memory, log and redb |
//! | `state`, `commit`, `removal`, `listing`, `record_index` | what operations do |
//! | `tables`, `rows`, `overlay`, `base`, `facts` | rows in layers: changes in memory over redb |
//! | `keys`, `instance_row`, `queue_row`, `batch`, `codec` | what rows and log records look like |
//! | `log` | segments and records |
//! | `files`, `directory` | the disk, behind a trait |
//! | `floor` | the log alone, as the measure of the rest |
//!
//! **Invariants.** Nothing is answered before the batch that it depends on is synced. No lock is held while the disk is
//! written. Memory grows with what is queued and what is due, never with what is finished. The bytes on disk are
//! those of `docs/embedded-format.md`.

mod admin;
mod base;
mod batch;
mod checkpointer;
mod codec;
mod commit;
mod directory;
mod error;
mod facts;
mod files;
mod floor;
mod instance_row;
mod keys;
mod listing;
mod log;
mod options;
mod overlay;
mod pace;
mod provider;
mod queue_row;
mod record_index;
mod records;
mod recovery;
mod removal;
mod rows;
mod shared;
mod state;
mod store;
mod tables;
mod unsynced;
mod waiting;
mod writer;

pub use directory::Directory;
pub use error::OpenError;
pub use files::{Files, StoreFile};
pub use floor::SyncedLog;
pub use options::OpenOptions;
pub use store::EmbeddedStore;
