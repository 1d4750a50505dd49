//! The log of a scope: append-only batches of events, each one object that is put if absent.
//!
//! | file | what it has |
//! |---|---|
//! | `writer.rs` | appending a batch; repeating an append is harmless |
//! | `batch.rs` | reading a batch: one that breaks the rules is not folded |
//! | `reader.rs` | what waits to be folded, at a cost that does not depend on history; quarantine |
//! | `segment.rs` | folded batches joined into Parquet files by day, and read back for rebuilding |
//! | `limits.rs` | every limit |
//!
//! **Invariant:** an event is deleted from a batch only after a published manifest names a segment
//! that has it.

mod batch;
pub mod limits;
mod reader;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use batch::check as check_batch;
pub use batch::{Event, EventRecord};
pub(crate) use reader::Fetched;
pub use reader::{LogReader, Waiting};
pub use segment::{EVENTS, day_of, events_layout};
pub(crate) use segment::{decode_events, encode_days};
pub use writer::LogWriter;
