//! Rows as redb stores them, and reading those of one checkpoint. Every row carries a checksum of its key and value; entries
//! of indexes are many in one row.

use std::ops::{Bound, RangeBounds};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::error::RowError;
use crate::rows::damage_scan::DamagedRanges;
use crate::rows::keys::{self, Key};
use crate::rows::packed;
use crate::rows::raw_rows::RawRows;

/// Number of the meta row with the format.
pub(crate) const FORMAT_FACT: u8 = 1;

/// Length of the checksum before each value.
const CHECKSUM_BYTES: usize = 4;

/// The rows of one checkpoint, for reading.
#[derive(Debug)]
pub(crate) struct Snapshot {
    rows: RawRows,
    damaged: DamagedRanges,
}

impl Snapshot {
    /// The rows of a checkpoint.
    pub(crate) fn new(rows: RawRows) -> Self {
        Snapshot { rows, damaged: DamagedRanges::default() }
    }

    /// The rows as redb has them.
    pub(crate) fn rows(&self) -> &RawRows {
        &self.rows
    }

    /// Damaged ranges that scans have met.
    pub(crate) fn damaged_ranges(&self) -> &DamagedRanges {
        &self.damaged
    }

    /// The version of the format that the rows have.
    pub(crate) fn format(&self) -> Result<u32, RowError> {
        let format = self.get(&keys::meta(FORMAT_FACT))?;
        Ok(format.as_deref().and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes))
    }

    /// One row.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, RowError> {
        if keys::is_packed(key) {
            let found = self.within(Bound::Included(key), Bound::Included(key))?.next().transpose()?;
            return found.map(|(_, value)| value).transpose();
        }
        self.rows.get(key)?.map(|stored| checked(key, stored.value())).transpose()
    }

    /// Rows whose keys start with `prefix`, in key order.
    #[cfg(test)]
    pub(crate) fn scan(
        &self,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<(Key, Bytes), RowError>> + use<>, RowError> {
        self.between(Bound::Included(prefix), prefix)
    }

    /// The last key that starts with `prefix` and does not lie behind `end`.
    pub(crate) fn last_key(&self, prefix: &[u8], end: Bound<&[u8]>) -> Result<Option<Key>, RowError> {
        let row = self.within_from_end(Bound::Included(prefix), end)?.next().transpose()?;
        row.map(|(key, value)| value.map(|_| key)).transpose()
    }

    /// Rows between two keys, in key order. A row that fails its checksum is one thing, a page that cannot be read is
    /// another: nothing can be read behind it.
    pub(crate) fn within(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = MaybeRow> + use<>, RowError> {
        let first_row = self.first_row(start)?;
        let rows = self.rows.range(first_row.as_ref().map(Key::as_slice), end)?;
        let is_within = is_within(start, end);
        Ok(rows
            .flat_map(|row| match row {
                Ok((key, value)) => entries(key.value(), value.value()),
                Err(error) => Entries::from([Err(error)]),
            })
            .filter(is_within))
    }

    /// The same from the end, without looking at the start before it is there: its page may be one that cannot be read.
    pub(crate) fn within_from_end(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = MaybeRow> + use<>, RowError> {
        let first_row = match start {
            Bound::Included(key) | Bound::Excluded(key) if keys::is_packed(key) => Bound::Included(&key[..1]),
            start => start,
        };
        let mut rows = self.rows.range(first_row, end)?;
        let (is_within, start) = (is_within(start, end), start.map(Key::from_slice));
        let mut is_at_start = false;
        let rows = std::iter::from_fn(move || {
            if is_at_start {
                return None;
            }
            let row = match rows.next_back()? {
                Ok((key, value)) => {
                    is_at_start = match &start {
                        Bound::Included(start) | Bound::Excluded(start) => key.value() <= start.as_slice(),
                        Bound::Unbounded => false,
                    };
                    entries(key.value(), value.value())
                }
                Err(error) => Entries::from([Err(error)]),
            };
            Some(row.into_iter().rev())
        });
        Ok(rows.flatten().filter(is_within))
    }

    /// Where to start so as to meet all keys from `start` on: entries of an index lie behind the key of their row.
    fn first_row(&self, start: Bound<&[u8]>) -> Result<Bound<Key>, RowError> {
        if let Bound::Included(key) | Bound::Excluded(key) = start
            && keys::is_packed(key)
            && let Some(row) = self.rows.range(Bound::Included(&key[..1]), Bound::Included(key))?.next_back()
        {
            return Ok(Bound::Included(Key::from_slice(row?.0.value())));
        }
        Ok(start.map(Key::from_slice))
    }

    /// What all rows except meta rows take.
    #[cfg(test)]
    pub(crate) fn stored_bytes(&self) -> u64 {
        let rows =
            self.rows.range(Bound::Unbounded, Bound::Unbounded).expect("rows").map(|row| row.expect("a row"));
        let rows = rows.filter(|(key, _)| !keys::is_meta(key.value()));
        rows.map(|(key, value)| (key.value().len() + value.value().len()) as u64).sum()
    }

    /// Lengths of all rows as they are stored.
    #[cfg(test)]
    pub(crate) fn stored_lengths(&self) -> Vec<usize> {
        let rows = self.rows.range(Bound::Unbounded, Bound::Unbounded).expect("rows");
        rows.map(|row| row.expect("a row").1.value().len()).collect()
    }

    /// Rows whose keys start with `prefix` and lie at or behind `start`, in key order. Nothing behind them is read.
    pub(crate) fn between(
        &self,
        start: Bound<&[u8]>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<(Key, Bytes), RowError>> + use<>, RowError> {
        let behind = keys::behind(prefix);
        let end = behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Ok(self.within(start, end)?.map(|row| {
            let (key, value) = row?;
            Ok((key, value?))
        }))
    }

    /// Rows in key order, from a key on.
    pub(crate) fn from(
        &self,
        start: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<(Key, Bytes), RowError>> + use<>, RowError> {
        Ok(self.within(start, Bound::Unbounded)?.map(|row| {
            let (key, value) = row?;
            Ok((key, value?))
        }))
    }
}

/// A row as it was found.
pub(crate) type MaybeRow = Result<(Key, Result<Bytes, RowError>), RowError>;

/// Whether a row that was met lies between two keys. One whose entries are not known may have some that do.
fn is_within(start: Bound<&[u8]>, end: Bound<&[u8]>) -> impl Fn(&MaybeRow) -> bool + use<> {
    let range = (start.map(Key::from_slice), end.map(Key::from_slice));
    move |row| match row {
        Ok((key, Ok(_))) if keys::is_packed(key) => range.contains(key),
        _ => true,
    }
}

/// What a stored row holds: mostly one row, many if they are entries of an index.
type Entries = SmallVec<[MaybeRow; 1]>;

fn entries(key: &[u8], stored: &[u8]) -> Entries {
    let one = |row| Entries::from([Ok((Key::from_slice(key), row))]);
    if !keys::is_packed(key) {
        return one(checked(key, stored));
    }
    let unpacked = verified(key, stored).and_then(|value| Ok(packed::unpack(key, value)?));
    match unpacked {
        Ok(entries) => entries.into_iter().map(|entry| Ok((entry, Ok(Bytes::new())))).collect(),
        Err(error) => one(Err(error)),
    }
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

/// Length of a row with its checksum.
pub(crate) fn stored_len(row: &[u8]) -> usize {
    CHECKSUM_BYTES + row.len()
}

/// A row as it is stored.
pub(crate) fn stored(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&checksum(key, value).to_le_bytes(), value].concat()
}

/// The value of a stored row.
pub(crate) fn verified<'a>(key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], RowError> {
    let (sum, value) = stored
        .split_first_chunk::<CHECKSUM_BYTES>()
        .ok_or_else(|| RowError::Corrupt("a row is too short for its checksum".to_owned()))?;
    if u32::from_le_bytes(*sum) != checksum(key, value) {
        let table = key.first().copied().unwrap_or(0);
        return Err(RowError::Corrupt(format!("a row of table {table} fails its checksum")));
    }
    Ok(value)
}

fn checked(key: &[u8], stored: &[u8]) -> Result<Bytes, RowError> {
    verified(key, stored).map(Bytes::copy_from_slice)
}
