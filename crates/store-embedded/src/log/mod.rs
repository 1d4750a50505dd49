//! The log: where a commit becomes durable.
//!
//! * `record`: segment header and record, byte by byte; finding out where a log ends and whether it is damaged.
//! * `scan`: reading what can be read of a log that may be damaged.
//! * `segments`: the files: appending, starting the next one, freeing what a checkpoint covers, using it again.

mod record;
mod scan;
mod segments;

pub use record::RECORD_HEADER_BYTES;
pub use scan::{Scanned, scan};
pub use segments::{AppendError, Log, Segments, first_sequence_of};
