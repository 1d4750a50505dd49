//! A key of a row: bytes that are compared far more often than anything else is done with them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

/// Keys up to this length need no memory of their own: enough for every key with an id of the length of a UUID. One that
/// lies elsewhere is a cache miss.
const INLINE_BYTES: usize = 64;

/// Most keys differ within this many bytes, which are compared as one number.
const FIRST_BYTES: usize = 16;

/// A key, or the beginning of one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Key(SmallVec<[u8; INLINE_BYTES]>);

impl Key {
    /// The key with these bytes.
    pub fn from_slice(bytes: &[u8]) -> Self {
        Key(SmallVec::from_slice(bytes))
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a byte.
    pub fn push(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let halves = (self.split_first_chunk::<FIRST_BYTES>(), other.split_first_chunk::<FIRST_BYTES>());
        let (Some((first, rest)), Some((other_first, other_rest))) = halves else {
            return self.as_slice().cmp(other.as_slice());
        };
        let order = u128::from_be_bytes(*first).cmp(&u128::from_be_bytes(*other_first));
        order.then_with(|| rest.cmp(other_rest))
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
        &self.0
    }
}

impl DerefMut for Key {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
