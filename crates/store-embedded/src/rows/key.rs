//! A key of a row: bytes that are compared far more often than anything else is done with them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

/// Keys up to this length need no memory of their own: enough for every key with an id of the length of a UUID. One that
/// lies elsewhere is a cache miss.
const INLINE_BYTES: usize = 64;

/// Most keys differ within this many bytes, which are compared as numbers.
const FIRST_BYTES: usize = 16;

/// A key, or the beginning of one.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Key {
    /// The first bytes as two numbers, as if zeros followed.
    first: [u64; 2],
    bytes: SmallVec<[u8; INLINE_BYTES]>,
}

impl Key {
    /// The key with these bytes.
    pub(crate) fn from_slice(bytes: &[u8]) -> Self {
        let mut key = Key::default();
        key.extend_from_slice(bytes);
        key
    }

    /// Its bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes.
    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let len_before = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        if len_before < FIRST_BYTES {
            self.first = first_of(&self.bytes);
        }
    }

    /// Appends a byte.
    pub(crate) fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }
}

fn first_of(bytes: &[u8]) -> [u64; 2] {
    let mut first = [0; FIRST_BYTES];
    let len = bytes.len().min(FIRST_BYTES);
    first[..len].copy_from_slice(&bytes[..len]);
    let number = u128::from_be_bytes(first);
    [(number >> 64) as u64, number as u64]
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.first.cmp(&other.first) {
            Ordering::Equal => self.bytes.cmp(&other.bytes),
            order => order,
        }
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        let bytes = [0, 1, 127, 128, 255];
        let mut all: Vec<Vec<u8>> = vec![Vec::new()];
        for len in [1, 15, 16, 17, 40, 70] {
            for place in [0, len / 2, len - 1] {
                for byte in bytes {
                    let mut key = vec![7; len];
                    key[place] = byte;
                    all.push(key);
                }
            }
        }
        for one in &all {
            for other in &all {
                let order = Key::from_slice(one).cmp(&Key::from_slice(other));
                assert_eq!(order, one.cmp(other), "{one:?} {other:?}");
            }
        }
    }
}
