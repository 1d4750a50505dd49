//! Reads a base file and a log that may be damaged: everything readable, and what is not.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::disk::copy_on_write::CopyOnWriteFiles;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::OpenError;
use crate::rows::base::Base;
use crate::rows::keys::Key;
use crate::rows::stored::{MaybeRow, Snapshot};

/// A damaged range is bisected this many times in a row without finding a row in it, then it counts as
/// unreadable.
const MAX_FUTILE: u32 = 7;

/// Something that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// One row; the rows around it are fine.
    Row(Key, String),
    /// All rows between two keys.
    Rows { after: Option<Key>, before: Option<Key>, why: String },
}

/// A state file that is only read.
pub(crate) struct SalvageReader {
    files: Arc<dyn Files>,
    full_disk: Arc<FullDisk>,
}

impl SalvageReader {
    pub(crate) fn new(files: &Arc<dyn Files>) -> Self {
        SalvageReader { files: CopyOnWriteFiles::of(files), full_disk: FullDisk::new(Duration::ZERO) }
    }

    /// Opens the file. redb refuses all reads after it has met one damaged page, so it is reopened after
    /// each.
    pub(crate) fn open(&self) -> Result<Base, OpenError> {
        Base::reopen(&self.files, &self.full_disk)
    }

    /// Passes every readable row to `each`, not always in order. Returns what is unreadable.
    ///
    /// # Errors
    /// If the file cannot be opened at all.
    pub(crate) fn rows(&self, each: &mut dyn FnMut(Key, Bytes)) -> Result<Vec<Unreadable>, OpenError> {
        let mut found = Vec::new();
        let whole = KeyRange { after: None, before: None, futile: 0 };
        let mut ranges = vec![whole];
        while let Some(range) = ranges.pop() {
            self.range(range, &mut ranges, each, &mut found)?;
        }
        Ok(found)
    }

    fn range(
        &self,
        range: KeyRange,
        rest: &mut Vec<KeyRange>,
        each: &mut dyn FnMut(Key, Bytes),
        found: &mut Vec<Unreadable>,
    ) -> Result<(), OpenError> {
        let KeyRange { mut after, mut before, futile } = range;
        let (base, mut progress) = (self.open()?, false);
        let mut take = |row: Row| {
            progress = true;
            let (key, value) = row;
            match value {
                Ok(value) => each(key.clone(), value),
                Err(why) => found.push(Unreadable::Row(key.clone(), why)),
            }
            key
        };
        let forward =
            walk(&base.snapshot()?, after.clone(), before.clone(), Direction::Forward, &mut |row| {
                after = Some(take(row));
            });
        let Err(why) = forward else { return Ok(()) };
        let base = self.open()?;
        let backward =
            walk(&base.snapshot()?, after.clone(), before.clone(), Direction::Backward, &mut |row| {
                before = Some(take(row));
            });
        if backward.is_ok() {
            return Ok(());
        }
        let futile = if progress { 0 } else { futile + 1 };
        match middle(after.as_deref(), before.as_deref()).filter(|_| futile <= MAX_FUTILE) {
            Some(middle) => {
                // The middle itself is behind the first half and before the second: it is no key of ours.
                rest.push(KeyRange { after, before: Some(middle.clone()), futile });
                rest.push(KeyRange { after: Some(middle), before, futile });
            }
            None => found.push(Unreadable::Rows { after, before, why }),
        }
        Ok(())
    }
}

struct KeyRange {
    after: Option<Key>,
    before: Option<Key>,
    futile: u32,
}

type Row = (Key, Result<Bytes, String>);

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

/// Walks until the end of a range or the first page that cannot be read.
fn walk(
    snapshot: &Snapshot,
    after: Option<Key>,
    before: Option<Key>,
    direction: Direction,
    each: &mut dyn FnMut(Row),
) -> Result<(), String> {
    fn bound(key: Option<&Key>) -> Bound<&[u8]> {
        key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()))
    }
    if let (Some(after), Some(before)) = (&after, &before)
        && after >= before
    {
        return Ok(());
    }
    let (start, end) = (bound(after.as_ref()), bound(before.as_ref()));
    let rows: Box<dyn Iterator<Item = MaybeRow>> = match direction {
        Direction::Forward => Box::new(snapshot.within(start, end).map_err(|error| error.to_string())?),
        Direction::Backward => {
            Box::new(snapshot.within_from_end(start, end).map_err(|error| error.to_string())?)
        }
    };
    for row in rows {
        let (key, value) = row.map_err(|error| error.to_string())?;
        // An unreadable row of an index is reported where it starts.
        if after.as_ref().is_none_or(|after| key > *after) {
            each((key, value.map_err(|error| error.to_string())));
        }
    }
    Ok(())
}

/// The key in the middle of two, as fractions; it is longer than both, so it is hardly a stored key.
pub(crate) fn middle(after: Option<&[u8]>, before: Option<&[u8]>) -> Option<Key> {
    let after = after.unwrap_or(&[]);
    let len = after.len().max(before.map_or(0, <[u8]>::len)) + 1;
    let digit = |key: &[u8], place: usize| u32::from(key.get(place).copied().unwrap_or(0));
    // The sum, most significant digit first; a missing upper end is 1, which is a carry before the first digit.
    let mut sum: Vec<u32> =
        (0..len).map(|place| digit(after, place) + before.map_or(0, |key| digit(key, place))).collect();
    let mut carry = 0;
    for digit in sum.iter_mut().rev() {
        *digit += carry;
        carry = *digit >> 8;
        *digit &= 0xff;
    }
    let mut remainder = carry + u32::from(before.is_none());
    let mut middle = Key::default();
    for digit in sum {
        let value = (remainder << 8) | digit;
        middle.push(u8::try_from(value >> 1).unwrap_or(u8::MAX));
        remainder = value & 1;
    }
    middle.push(u8::try_from(remainder << 7).unwrap_or(0) | 1);
    let fits = middle.as_slice() > after && before.is_none_or(|before| middle.as_slice() < before);
    fits.then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_lies_between() {
        type End = Option<&'static [u8]>;
        let cases: [(End, End); 6] = [
            (None, None),
            (Some(&[1]), Some(&[2])),
            (Some(&[255, 255]), None),
            (Some(&[1, 255, 255]), Some(&[2])),
            (Some(&[5]), Some(&[5, 1])),
            (None, Some(&[1])),
        ];
        for (after, before) in cases {
            let middle = middle(after, before).unwrap_or_else(|| unreachable!("{after:?} {before:?}"));
            assert!(after.is_none_or(|after| after < &middle[..]), "{after:?} {middle:?}");
            assert!(before.is_none_or(|before| &middle[..] < before), "{before:?} {middle:?}");
        }
    }
}
