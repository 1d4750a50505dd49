//! Checks of a Parquet file before the Parquet crate sees it.
//!
//! Footers and page headers are Thrift structures (compact protocol) whose sizes the crate trusts:
//! a page that claims two gigabytes is allocated before it is read. So every structure is walked
//! here first, without any allocation.

use super::Damaged;
use super::limits::{MAX_DEPTH, MAX_PAGE_BYTES, MAX_PAGE_HEADER_BYTES};

fn damaged(problem: impl Into<String>) -> Damaged {
    Damaged(problem.into())
}

/// What the header of a page says, as far as it decides about allocations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// 0 data, 2 dictionary, 3 data of version 2.
    pub(super) kind: i64,
    pub(super) uncompressed_bytes: i64,
    pub(super) compressed_bytes: i64,
    pub(super) values: i64,
    /// Bytes of the header itself.
    pub(super) header_bytes: usize,
}

/// Data of version 1.
pub(super) const DATA_PAGE: i64 = 0;
/// The dictionary of a column chunk.
pub(super) const DICTIONARY_PAGE: i64 = 2;

/// Walks a structure that is all of the bytes, such as the metadata in a footer.
pub(super) fn check_structure(bytes: &[u8]) -> Result<(), Damaged> {
    let mut walk = Walk { bytes, at: 0 };
    walk.structure(&mut Path::default(), &mut |_, _| ())?;
    Ok(())
}

/// Reads the header of the page at the start of the bytes.
pub(super) fn page_header(bytes: &[u8]) -> Result<PageHeader, Damaged> {
    let bytes = &bytes[..bytes.len().min(MAX_PAGE_HEADER_BYTES)];
    let mut header = PageHeader { kind: -1, ..PageHeader::default() };
    let mut walk = Walk { bytes, at: 0 };
    walk.structure(&mut Path::default(), &mut |path, value| match path {
        [1] => header.kind = value,
        [2] => header.uncompressed_bytes = value,
        [3] => header.compressed_bytes = value,
        [5, 1] | [7, 1] | [8, 1] => header.values = value,
        _ => (),
    })?;
    header.header_bytes = walk.at;
    let fits = |bytes: i64| (0..=MAX_PAGE_BYTES).contains(&bytes);
    if !fits(header.uncompressed_bytes) || !fits(header.compressed_bytes) || header.values < 0 {
        return Err(damaged(format!(
            "a page claims {} bytes, {} uncompressed, and {} values; at most {MAX_PAGE_BYTES} bytes are read",
            header.compressed_bytes, header.uncompressed_bytes, header.values
        )));
    }
    Ok(header)
}

/// The ids of the fields that lead to a value.
#[derive(Default)]
struct Path {
    ids: [i16; MAX_DEPTH],
    depth: usize,
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Damaged> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| damaged("a structure is cut off"))?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Damaged> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= left => {
                self.at += bytes;
                Ok(())
            }
            _ => Err(damaged(format!("a structure claims {bytes} bytes, and {left} are left"))),
        }
    }

    fn unsigned(&mut self) -> Result<u64, Damaged> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("a number is longer than 64 bits"))
    }

    fn signed(&mut self) -> Result<i64, Damaged> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    fn structure(&mut self, path: &mut Path, see: &mut dyn FnMut(&[i16], i64)) -> Result<(), Damaged> {
        if path.depth == MAX_DEPTH {
            return Err(damaged(format!("a structure is nested deeper than {MAX_DEPTH}")));
        }
        let level = path.depth;
        path.depth += 1;
        let mut id: i16 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                path.depth = level;
                return Ok(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.signed()?).map_err(|_| damaged("a field id is out of range"))?,
                delta => {
                    id.checked_add(i16::from(delta)).ok_or_else(|| damaged("a field id is out of range"))?
                }
            };
            path.ids[level] = id;
            self.value(head & 0x0f, path, see)?;
        }
    }

    fn value(&mut self, kind: u8, path: &mut Path, see: &mut dyn FnMut(&[i16], i64)) -> Result<(), Damaged> {
        match kind {
            // A truth value of a field is in its head.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => {
                let value = self.signed()?;
                see(&path.ids[..path.depth], value);
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.unsigned()?;
                self.skip(length)
            }
            9 | 10 => self.list(path, see),
            11 => self.map(path, see),
            12 => self.structure(path, see),
            13 => self.skip(16),
            other => Err(damaged(format!("a field is of the unknown type {other}"))),
        }
    }

    fn list(&mut self, path: &mut Path, see: &mut dyn FnMut(&[i16], i64)) -> Result<(), Damaged> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.unsigned()?,
            length => u64::from(length),
        };
        self.elements(length, &[head & 0x0f], path, see)
    }

    fn map(&mut self, path: &mut Path, see: &mut dyn FnMut(&[i16], i64)) -> Result<(), Damaged> {
        let length = self.unsigned()?;
        if length == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.elements(length, &[kinds >> 4, kinds & 0x0f], path, see)
    }

    fn elements(
        &mut self,
        length: u64,
        kinds: &[u8],
        path: &mut Path,
        see: &mut dyn FnMut(&[i16], i64),
    ) -> Result<(), Damaged> {
        let left = (self.bytes.len() - self.at) as u64;
        if length > left {
            return Err(damaged(format!("a list claims {length} elements, and {left} bytes are left")));
        }
        for _ in 0..length {
            for kind in kinds {
                match kind {
                    // A truth value of a list has a byte of its own.
                    1 | 2 => self.skip(1)?,
                    kind => self.value(*kind, path, see)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_header_is_read() {
        // i32 1: 0, i32 2: 100, i32 3: 60, struct 5 { i32 1: 7 }
        let bytes = [0x15, 0, 0x15, 200, 1, 0x15, 120, 0x2c, 0x15, 14, 0, 0, 0xff];
        let header = page_header(&bytes).unwrap();
        let expected = PageHeader {
            kind: DATA_PAGE,
            uncompressed_bytes: 100,
            compressed_bytes: 60,
            values: 7,
            header_bytes: bytes.len() - 1,
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn structures_that_claim_more_than_there_is_are_refused() {
        let deep = [0x1c; 40];
        for (bytes, says) in [
            (&[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], "and 0 are left"),
            (&[0x18, 5, 1, 2][..], "claims 5 bytes"),
            (&[0x19, 0xf5, 0xff, 0xff, 3, 0][..], "elements"),
            (&[0x1b, 0xff, 0x7f, 0x55][..], "elements"),
            (&deep[..], "nested deeper"),
            (&[0x15][..], "cut off"),
            (&[][..], "cut off"),
            (&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], "longer than 64 bits"),
            (&[0x1e][..], "unknown type"),
        ] {
            let error = check_structure(bytes).unwrap_err().to_string();
            assert!(error.contains(says), "{bytes:?}: {error}");
        }
    }
}
