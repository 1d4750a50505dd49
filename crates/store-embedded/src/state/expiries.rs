//! Ends of lives of records, in order. The earliest are in memory, all of them are in the table `ByExpiry`: an audit log
//! of months would otherwise take more memory than all the rest.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::error::RowError;
use crate::rows::keys::{self, Key, Table};
use crate::rows::layers::Rows;

/// Most ends in memory.
const MAX_SOON: usize = 8_192;

/// Ends that are read when there are none left in memory, and that stay when there are too many.
const ENOUGH: usize = MAX_SOON / 2;

/// Ends of lives. Memory has all up to the horizon.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    /// The earliest, as keys of the table.
    soon: BTreeSet<Key>,
    /// The last key that memory would have; `None` when it has all.
    horizon: Option<Key>,
}

impl Expiries {
    /// Those of a table.
    pub(crate) fn of(rows: &Rows) -> Result<Self, RowError> {
        let mut expiries = Expiries { soon: BTreeSet::new(), horizon: Some(keys::table(Table::ByExpiry)) };
        expiries.read_on(rows)?;
        Ok(expiries)
    }

    /// Adds an end that is in the table.
    pub(crate) fn add(&mut self, key: Key) {
        if self.horizon.as_ref().is_some_and(|horizon| key > *horizon) {
            return;
        }
        self.soon.insert(key);
        if self.soon.len() > MAX_SOON {
            self.soon = std::mem::take(&mut self.soon).into_iter().take(ENOUGH).collect();
            self.horizon = self.soon.last().cloned();
        }
    }

    /// Removes an end that is gone from the table.
    pub(crate) fn remove(&mut self, key: &Key) {
        self.soon.remove(key);
    }

    /// The earliest end that memory has. The table may have later ones.
    pub(crate) fn first(&self) -> Option<&Key> {
        self.soon.first()
    }

    /// Brings the next ends of the table into memory if it has none.
    pub(crate) fn read_on(&mut self, rows: &Rows) -> Result<(), RowError> {
        let Some(horizon) = self.horizon.as_ref().filter(|_| self.soon.is_empty()) else { return Ok(()) };
        let table = keys::table(Table::ByExpiry);
        // Ends on a damaged block are left where they are: their records are over for readers all
        // the same.
        let rows = rows.scan_past_damage(&table, Bound::Excluded(horizon));
        let next = rows.filter(|row| !matches!(row, Err(RowError::Corrupt(_)))).take(ENOUGH);
        let next: BTreeSet<Key> = next.map(|row| Ok(row?.0)).collect::<Result<_, RowError>>()?;
        self.horizon = next.last().filter(|_| next.len() == ENOUGH).cloned();
        self.soon = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::disk::directory::Directory;
    use crate::disk::files::Files;
    use crate::disk::full_disk::FullDisk;
    use crate::rows::base::Base;

    fn rows(directory: &tempfile::TempDir) -> Rows {
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).unwrap());
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).unwrap();
        Rows::new(base.snapshot().unwrap())
    }

    fn key(number: u64) -> Key {
        keys::expiry(1_000 + number, "kind", &format!("record {number}"))
    }

    /// Takes all out, as the passing of time does.
    fn drain(expiries: &mut Expiries, rows: &mut Rows) -> Vec<Key> {
        let mut drained = Vec::new();
        loop {
            expiries.read_on(rows).unwrap();
            assert!(expiries.soon.len() <= MAX_SOON);
            let Some(first) = expiries.first().cloned() else { return drained };
            rows.active_mut().delete(first.clone());
            expiries.remove(&first);
            drained.push(first);
        }
    }

    #[test]
    fn all_come_in_order_however_many_there_are_and_whenever_they_came() {
        /// Has no factor in common with the number of records.
        const STRIDE: u64 = 7_919;
        let directory = tempfile::tempdir().unwrap();
        let mut rows = rows(&directory);
        let count = 3 * MAX_SOON as u64;
        let expected: Vec<Key> = (0..count).map(key).collect();
        let mut expiries = Expiries::of(&rows).unwrap();
        for number in (0..count).map(|place| place * STRIDE % count) {
            rows.active_mut().insert_new(key(number), Bytes::new());
            expiries.add(key(number));
            assert!(expiries.soon.len() <= MAX_SOON);
        }
        assert_eq!(drain(&mut expiries, &mut rows), expected);

        for number in 0..count {
            rows.active_mut().insert_new(key(number), Bytes::new());
        }
        let mut expiries = Expiries::of(&rows).unwrap();
        let late = key(2 * count);
        rows.active_mut().insert_new(late.clone(), Bytes::new());
        expiries.add(late.clone());
        let mut drained = drain(&mut expiries, &mut rows);
        assert_eq!(drained.pop(), Some(late));
        assert_eq!(drained, expected);
    }
}
