//! The ledger that belongs to a store, as a backup has it: objects of an object store, or only the fact that they are
//! elsewhere. What is in the objects is no business of this crate.

use async_trait::async_trait;
use segno::store::{ContentItem, ErrorKind};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// A part of a copy of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerPart {
    /// Bytes of an object, in their order.
    Bytes {
        /// The path of the object.
        path: String,
        /// Where in the object the bytes begin.
        offset: u64,
        /// Whether the object ends with them.
        is_last: bool,
        /// The bytes.
        bytes: bytes::Bytes,
    },
    /// An object that came before does not belong to the copy.
    Dropped {
        /// The path of the object.
        path: String,
    },
}

/// What a copy has of the ledger of its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LedgerContent {
    /// The store has no ledger.
    None,
    /// All of it.
    Included {
        /// Objects.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// SHA-256 over all parts in their order, as hexadecimal digits.
        sha256: String,
    },
    /// Nothing: the copy is not complete.
    Elsewhere {
        /// Where the ledger is.
        place: String,
    },
    /// The backup is of a format that does not tell.
    Unknown,
}

impl LedgerContent {
    /// Whether a copy with this has everything that belongs to the store.
    pub fn is_complete(&self) -> bool {
        matches!(self, LedgerContent::None | LedgerContent::Included { .. })
    }
}

/// Takes the parts of a ledger.
#[async_trait]
pub trait LedgerSink: Send {
    /// Takes the next part.
    async fn put(&mut self, part: LedgerPart) -> Result<(), Error>;
}

/// A ledger to copy.
#[async_trait]
pub trait LedgerSource: Send {
    /// Sends a consistent copy.
    async fn send(&mut self, sink: &mut dyn LedgerSink) -> Result<(), Error>;
}

/// Where the ledger of a store is found.
pub enum LedgerOrigin {
    /// The store has none.
    None,
    /// It can be read.
    Source(Box<dyn LedgerSource>),
    /// It is at this place, which is not read.
    Elsewhere(String),
}

/// Finds the ledger of a store while the store is read. The ledger is copied after the store, so that it has every event
/// that the copied store takes for written.
#[async_trait]
pub trait FindLedger: Send {
    /// Sees what the store has.
    fn see(&mut self, item: &ContentItem);

    /// The ledger, once everything was seen.
    async fn found(&mut self) -> Result<LedgerOrigin, Error>;
}

/// For stores without a ledger.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

#[async_trait]
impl FindLedger for NoLedger {
    fn see(&mut self, _: &ContentItem) {}

    async fn found(&mut self) -> Result<LedgerOrigin, Error> {
        Ok(LedgerOrigin::None)
    }
}

/// Counts and checksums parts as they pass.
#[derive(Debug, Default)]
pub struct LedgerDigest {
    hash: Sha256,
    objects: u64,
    bytes: u64,
}

impl LedgerDigest {
    /// Adds a part.
    pub fn add(&mut self, part: &LedgerPart) {
        match part {
            LedgerPart::Bytes { bytes, is_last, .. } => {
                self.objects += u64::from(*is_last);
                self.bytes += bytes.len() as u64;
            }
            LedgerPart::Dropped { .. } => self.objects = self.objects.saturating_sub(1),
        }
        let mut encoded = Vec::new();
        encode(part, &mut encoded);
        self.hash.update((encoded.len() as u64).to_le_bytes());
        self.hash.update(&encoded);
    }

    /// What there was in all.
    pub fn finish(self) -> LedgerContent {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        LedgerContent::Included { objects: self.objects, bytes: self.bytes, sha256 }
    }
}

/// Kinds of parts in a file. Numbers are never reused.
const BYTES: u8 = 1;
const LAST_BYTES: u8 = 2;
const DROPPED: u8 = 3;

/// A part as bytes: its kind, the length of the path (2 bytes) and the path, the offset (8 bytes) and the bytes.
pub fn encode(part: &LedgerPart, into: &mut Vec<u8>) {
    let (kind, path) = match part {
        LedgerPart::Bytes { path, is_last, .. } => (if *is_last { LAST_BYTES } else { BYTES }, path),
        LedgerPart::Dropped { path } => (DROPPED, path),
    };
    into.push(kind);
    let length = u16::try_from(path.len()).expect("paths of a ledger are short");
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(path.as_bytes());
    if let LedgerPart::Bytes { offset, bytes, .. } = part {
        into.extend_from_slice(&offset.to_le_bytes());
        into.extend_from_slice(bytes);
    }
}

/// A part from its bytes.
pub fn decode(bytes: &[u8]) -> Option<LedgerPart> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (path, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let path = String::from_utf8(path.to_vec()).ok()?;
    match *kind {
        BYTES | LAST_BYTES => {
            let (offset, bytes) = rest.split_first_chunk()?;
            let (offset, bytes) = (u64::from_le_bytes(*offset), bytes::Bytes::copy_from_slice(bytes));
            Some(LedgerPart::Bytes { path, offset, is_last: *kind == LAST_BYTES, bytes })
        }
        DROPPED if rest.is_empty() => Some(LedgerPart::Dropped { path }),
        _ => None,
    }
}

/// An error of a ledger.
pub fn failed(kind: ErrorKind, problem: impl ToString) -> Error {
    Error::Ledger { kind, problem: problem.to_string() }
}
