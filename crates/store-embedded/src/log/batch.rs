//! The content of a log record: rows that were put and rows that were deleted, in order.

use bytes::Bytes;

use crate::log::RECORD_HEADER_BYTES;
use crate::rows::codec::Undecodable;
use crate::rows::keys::Key;

/// A longer buffer is not used again, so that one large batch does not hold its memory for ever.
const LONGEST_KEPT_BYTES: usize = 4 * 1024 * 1024;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// Row changes on their way to the log, encoded, with room for the record's header before them.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { bytes: vec![0; RECORD_HEADER_BYTES] }
    }
}

fn len_of(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).expect("no stored value has 4 GiB").to_le_bytes()
}

impl Batch {
    /// A row was put.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.push(PUT);
        self.bytes.extend_from_slice(&len_of(key));
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(&len_of(value));
        self.bytes.extend_from_slice(value);
    }

    /// A row was deleted.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.bytes.push(DELETE);
        self.bytes.extend_from_slice(&len_of(key));
        self.bytes.extend_from_slice(key);
    }

    /// Length of the record.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no change.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == RECORD_HEADER_BYTES
    }

    /// Forgets all changes.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(RECORD_HEADER_BYTES);
    }

    /// An empty batch, in the same memory unless that is much: fresh memory costs more than what is written into it.
    pub(crate) fn recycled(mut self) -> Self {
        if self.bytes.capacity() > LONGEST_KEPT_BYTES {
            return Batch::default();
        }
        self.clear();
        self
    }

    /// The changes, in order.
    pub(crate) fn changes(&self) -> Result<Vec<Logged>, Undecodable> {
        decode(&self.bytes[RECORD_HEADER_BYTES..])
    }

    /// The record with its header to be filled in.
    pub(crate) fn record_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// One change of a log record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Logged {
    Put(Key, Bytes),
    Delete(Key),
}

/// The changes of a log record.
pub(crate) fn decode(body: &[u8]) -> Result<Vec<Logged>, Undecodable> {
    let mut rest = body;
    let mut changes = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        let key = Key::from_slice(take(&mut rest)?);
        changes.push(match *kind {
            PUT => Logged::Put(key, Bytes::copy_from_slice(take(&mut rest)?)),
            DELETE => Logged::Delete(key),
            _ => return Err(Undecodable("a log record has an unknown change")),
        });
    }
    Ok(changes)
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Undecodable> {
    const SHORT: Undecodable = Undecodable("a log record ends too early");
    let (len, after) = rest.split_first_chunk().ok_or(SHORT)?;
    let (part, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(SHORT)?;
    *rest = after;
    Ok(part)
}
