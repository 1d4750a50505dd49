//! The write-ahead log: where a commit becomes durable.
//!
//! * `record`: segment header, record and link, byte by byte; finding out where a log ends and whether it is damaged.
//! * `segments`: the files: their names, making one, freeing what a checkpoint covers, using it again.
//! * `read`: reading a log that must be whole, without changing it.
//! * `append`: the log that is being written: appending, starting the next segment.
//! * `scan`: reading what can be read of a log that may be damaged.
//! * `batch`: the content of a record: changes of rows.
//! * `tail`: the length of the log beyond the last checkpoint, which is bounded.
//!
//! **A segment that may hold an acknowledged commit is promised**: by a link at the end of the segment before it, or by
//! the anchor in the state. Both are written when the segment has its durable name and before its first commit is
//! acknowledged. So a promised segment that is absent was taken away; no crash leaves a log like that.

mod append;
pub(crate) mod batch;
mod read;
mod record;
mod scan;
mod segments;
pub(crate) mod tail;

pub(crate) use append::{AppendError, Log};
pub(crate) use read::{ReadLog, Wanted, read, refuse_unknown_format};
pub(crate) use record::{RECORD_HEADER_BYTES, SegmentId};
pub(crate) use scan::{Scanned, scan};
pub(crate) use segments::{SPARE_NAME, Segments, first_sequence_of};
