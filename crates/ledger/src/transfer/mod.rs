//! Whole ledgers: a consistent copy as a stream of parts, and an empty object store filled from one. Backups are made of it.
//!
//! | file | what it has |
//! |---|---|
//! | `send.rs` | a consistent copy of every scope while compactors work |
//! | `receive.rs` | parts written as objects, each read back and compared |
//! | `place.rs` | the record by which a store knows where its ledger is |

mod place;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;

pub use place::{PLACE, Place};
pub use receive::Receiver;
pub use send::send;

use crate::objects::StorageError;

/// Bytes of one part: at least what every object store takes as a part of an upload.
pub const PART_BYTES: u64 = 8 << 20;

/// A part of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Bytes of an object, in their order. An object without bytes has one part.
    Bytes {
        /// The path of the object.
        path: String,
        /// Where in the object the bytes begin.
        offset: u64,
        /// Whether the object ends with them.
        is_last: bool,
        /// The bytes.
        bytes: Bytes,
    },
    /// An object that came before does not belong to the copy: a compactor replaced it meanwhile.
    Dropped {
        /// The path of the object.
        path: String,
    },
}

/// Takes the parts of a copy.
#[async_trait]
pub trait Sink: Send {
    /// Takes the next part.
    async fn put(&mut self, part: Part) -> Result<(), StorageError>;
}
