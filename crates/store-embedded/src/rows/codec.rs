//! How numbers, texts and bytes are written into rows and log records: fixed-width little-endian numbers, and a
//! length before everything that varies. Nothing is ever found by looking for a separator.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes do not decode: {0}")]
pub(crate) struct Undecodable(pub(crate) &'static str);

/// Most rows are shorter: they are put together on the stack before it is known how much memory they need.
const SHORT_BYTES: usize = 512;

/// How much memory short rows share that come with every commit, stay until the next checkpoint and go with it, from another
/// thread: memory of their own for each would cost more than to encode them.
const CHUNK_BYTES: usize = 16 * 1024;

thread_local! {
    /// Room for the next short rows.
    static CHUNK: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Appends values to a buffer.
#[derive(Debug)]
pub(crate) struct Encoder {
    short: [u8; SHORT_BYTES],
    short_len: usize,
    /// Everything, once it is not short any more.
    long: Vec<u8>,
}

impl Encoder {
    /// An encoder whose first byte is the version of the row.
    pub(crate) fn new(version: u8) -> Self {
        let mut encoder = Encoder { short: [0; SHORT_BYTES], short_len: 0, long: Vec::new() };
        encoder.u8(version);
        encoder
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let end = self.short_len + bytes.len();
        if self.long.is_empty()
            && let Some(room) = self.short.get_mut(self.short_len..end)
        {
            room.copy_from_slice(bytes);
            self.short_len = end;
        } else {
            self.append_long(bytes);
        }
    }

    #[cold]
    fn append_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.short_len]);
        }
        self.long.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.append(&[value]);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.append(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.append(&value.to_le_bytes());
    }

    /// A length and the bytes. Lengths are far below the limit of their type; see `segno::limits`.
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.u32(u32::try_from(value.len()).expect("no stored value has 4 GiB"));
        self.append(value);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// 0, or 1 and what `some` appends.
    pub(crate) fn option<T>(&mut self, value: Option<T>, some: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.u8(0),
            Some(value) => {
                self.u8(1);
                some(self, value);
            }
        }
    }

    /// What was appended.
    pub(crate) fn finish(self) -> Bytes {
        if self.long.is_empty() {
            Bytes::copy_from_slice(&self.short[..self.short_len])
        } else {
            Bytes::from(self.long)
        }
    }

    /// The same for a row that goes with the next checkpoint at the latest: a short one shares its memory with others, which stays
    /// until the last of them is gone. See [`Decoder::kept_bytes`].
    pub(crate) fn finish_beside_others(self) -> Bytes {
        if !self.long.is_empty() {
            return self.finish();
        }
        let row = &self.short[..self.short_len];
        CHUNK.with_borrow_mut(|chunk| {
            if chunk.capacity() < row.len() {
                *chunk = BytesMut::with_capacity(CHUNK_BYTES);
            }
            chunk.extend_from_slice(row);
            chunk.split().freeze()
        })
    }
}

/// Takes values from the front of a buffer.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    source: &'a Bytes,
    at: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder of a row that must have this version.
    pub(crate) fn new(source: &'a Bytes, version: u8) -> Result<Self, Undecodable> {
        let mut decoder = Decoder { source, at: 0 };
        if decoder.u8()? == version { Ok(decoder) } else { Err(Undecodable("unknown row version")) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Undecodable> {
        let end = self.at.checked_add(len).ok_or(Undecodable("a length is too large"))?;
        let taken = self.source.get(self.at..end).ok_or(Undecodable("it ends too early"))?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        self.take(N)?.try_into().map_err(|_| Undecodable("it ends too early"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Undecodable> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Undecodable> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Undecodable> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes for keeping: those of a short row share the memory of many others, so they are copied.
    pub(crate) fn kept_bytes(&mut self) -> Result<Bytes, Undecodable> {
        let bytes = self.bytes()?;
        Ok(if self.source.len() <= SHORT_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes })
    }

    /// Bytes that share the source's buffer.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, Undecodable> {
        let len = self.u32()? as usize;
        let start = self.at;
        self.take(len)?;
        Ok(self.source.slice(start..start + len))
    }

    pub(crate) fn text(&mut self) -> Result<String, Undecodable> {
        self.str().map(str::to_owned)
    }

    /// A text that borrows from the source.
    pub(crate) fn str(&mut self) -> Result<&'a str, Undecodable> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.take(len)?).map_err(|_| Undecodable("a text is not UTF-8"))
    }

    pub(crate) fn option<T>(
        &mut self,
        some: impl FnOnce(&mut Self) -> Result<T, Undecodable>,
    ) -> Result<Option<T>, Undecodable> {
        match self.u8()? {
            0 => Ok(None),
            1 => some(self).map(Some),
            _ => Err(Undecodable("an option is neither there nor not")),
        }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.source.len()
    }
}
