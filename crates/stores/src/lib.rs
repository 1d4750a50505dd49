//! Whole stores: opened by URL, backed up, restored and copied.
//!
//! | file | what |
//! |---|---|
//! | `url` | the one place that knows which stores there are |
//! | `source` | a store to read from, open here or in another process |
//! | `backup` | the file that holds a store's content: format, writer, reader |
//! | `ledger` | the ledger that belongs to a store, as parts of objects |
//! | `moving` | from a store or a file into a file or a store, verified |
//! | `digest` | what a content has, counted and as a checksum |
//! | `formats` | the versions of all that stores write |
//! | `error` | what can go wrong |
//!
//! **Invariants.** A backup has its name only when it is whole and on the disk. A store counts as filled only when what
//! was read back from it has the checksum of the source. Memory does not grow with what is moved.

mod backup;
mod digest;
mod error;
mod formats;
mod ledger;
mod moving;
mod source;
mod url;

pub use backup::{BackupReader, BackupWriter, FORMAT_VERSION, IfThere, LedgerEnd};
pub use digest::{ContentDigest, ContentSummary};
pub use error::Error;
pub use formats::Formats;
pub use ledger::{
    FindLedger, LedgerContent, LedgerDigest, LedgerOrigin, LedgerPart, LedgerSink, LedgerSource, NoLedger,
    failed as ledger_failed,
};
pub use moving::{Filled, Phase, Progress, Written, back_up, fill, fill_unfinished, verify_backup};
pub use segno_embedded::{
    CheckProgress, CheckReport, CompactProgress, CompactReport, FileInfo, FilledBy, Finding, Info,
    InstanceCounts, OpenError, SalvageReport,
};
pub use source::{Counts, Known, Source, StoreInfo};
pub use url::StoreUrl;
