//! Entries of indexes of instances, many of them in one row. An entry is a key and nothing else, there are several for
//! every instance, and those that a checkpoint brings mostly lie next to each other. What a checkpoint costs is its
//! number of rows.
//!
//! The key of a row is its first entry. Its value has the others, each as what it shares with the one before and what
//! follows. So a row with an empty value is a single entry. See `docs/embedded-format.md`.

use std::iter::Peekable;
use std::ops::Bound;
use std::vec;

use redb::{ReadableTable, Table};

use crate::error::RowError;
use crate::rows::codec::Undecodable;
use crate::rows::keys::{self, Key};
use crate::rows::stored::{stored, stored_len, verified};

/// A row that would become longer is divided.
const LONGEST_BYTES: usize = 2_048;

/// What index rows are stored in.
type Rows<'transaction> = Table<'transaction, &'static [u8], &'static [u8]>;

/// The entries of a row, ascending.
pub(crate) fn unpack(first: &[u8], value: &[u8]) -> Result<Vec<Key>, Undecodable> {
    const SHORT: Undecodable = Undecodable("a row of an index ends too early");
    let mut last = Key::from_slice(first);
    let mut entries = Vec::with_capacity(1 + value.len() / first.len().max(1));
    let mut rest = value;
    while !rest.is_empty() {
        let (shared, len) = (take_len(&mut rest).ok_or(SHORT)?, take_len(&mut rest).ok_or(SHORT)?);
        let (own, after) = rest.split_at_checked(len).ok_or(SHORT)?;
        rest = after;
        let mut entry = Key::from_slice(last.get(..shared).ok_or(SHORT)?);
        entry.extend_from_slice(own);
        if entry <= last {
            return Err(Undecodable("the entries of an index are out of order"));
        }
        entries.push(std::mem::replace(&mut last, entry));
    }
    entries.push(last);
    Ok(entries)
}

/// Appends an entry to the value of a row.
fn pack(value: &mut Vec<u8>, entry: &[u8], shared: usize) {
    push_len(value, shared);
    push_len(value, entry.len() - shared);
    value.extend_from_slice(&entry[shared..]);
}

/// How long that is.
fn packed_len(entry: &[u8], shared: usize) -> usize {
    let own = entry.len() - shared;
    len_bytes(shared) + len_bytes(own) + own
}

fn shared_len(one: &[u8], other: &[u8]) -> usize {
    let same = |(one, other): &([u8; 8], [u8; 8])| one == other;
    let words = one.as_chunks().0.iter().copied().zip(other.as_chunks().0.iter().copied());
    let start = 8 * words.take_while(same).count();
    start + one[start..].iter().zip(&other[start..]).take_while(|(one, other)| one == other).count()
}

/// A varint: seven bits in a byte, the lowest first; the highest bit is set if more follow.
fn push_len(value: &mut Vec<u8>, mut len: usize) {
    while len >= 0x80 {
        value.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    value.push(len as u8);
}

fn len_bytes(len: usize) -> usize {
    (usize::BITS - (len | 1).leading_zeros()).div_ceil(7) as usize
}

fn take_len(rest: &mut &[u8]) -> Option<usize> {
    let (mut len, mut shift) = (0_usize, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        len |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(len);
        }
        shift += 7;
    }
}

/// Changes entries, which must come in key order.
#[derive(Default)]
pub(crate) struct Packing {
    open: Option<Open>,
    /// By how much less is stored than if every entry was a row of its own.
    saved: i64,
}

fn signed(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// Length of a row with its key.
fn row_len(key: &[u8], value: &[u8]) -> i64 {
    signed(key.len() + stored_len(value))
}

/// The row that is being changed.
struct Open {
    /// Its key, as long as it is in the table.
    row: Option<Key>,
    /// The row behind it: entries from there on belong there.
    next_row: Option<Key>,
    /// Its entries that are still to come.
    old: Peekable<vec::IntoIter<Key>>,
    /// What it will have before those, each with how much it shares with the one before, and the length of all.
    new: Vec<(Key, usize)>,
    new_bytes: usize,
    is_changed: bool,
}

impl Packing {
    /// Puts an entry in, or takes it out. Returns whether it was there.
    pub(crate) fn set(&mut self, rows: &mut Rows<'_>, entry: &Key, is_there: bool) -> Result<bool, RowError> {
        if !self.open.as_ref().is_some_and(|open| open.is_place_of(entry)) {
            self.close(rows)?;
            self.open = Some(Open::find(rows, entry)?);
        }
        let open = self.open.as_mut().expect("it is there or was just found");
        let was_there = open.set(entry, is_there);
        self.saved += row_len(entry, &[]) * (i64::from(is_there) - i64::from(was_there));
        while open.new_bytes > 2 * LONGEST_BYTES {
            self.saved -= open.put_first(rows, LONGEST_BYTES)?;
        }
        Ok(was_there)
    }

    /// Stores what was changed. Returns by how much more is saved now by storing many entries in one row.
    pub(crate) fn finish(mut self, rows: &mut Rows<'_>) -> Result<i64, RowError> {
        self.close(rows)?;
        Ok(self.saved)
    }

    fn close(&mut self, rows: &mut Rows<'_>) -> Result<(), RowError> {
        if let Some(open) = self.open.take().filter(|open| open.is_changed) {
            self.saved -= open.finish(rows)?;
        }
        Ok(())
    }
}

impl Open {
    /// The row that an entry belongs to: the last that does not lie behind it, or the first of all.
    fn find(rows: &Rows<'_>, entry: &Key) -> Result<Self, RowError> {
        let start_of_table = &entry[..1];
        let end_of_table = keys::behind(start_of_table);
        let end_of_table = end_of_table.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let before = (Bound::Included(start_of_table), Bound::Included(entry.as_slice()));
        let behind = (Bound::Excluded(entry.as_slice()), end_of_table);
        let found = match rows.range::<&[u8]>(before)?.next_back() {
            Some(found) => Some(found),
            None => rows.range::<&[u8]>(behind)?.next(),
        };
        let (row, old) = match found.transpose()? {
            None => (None, Vec::new()),
            Some((key, value)) => {
                let entries = unpack(key.value(), verified(key.value(), value.value())?)?;
                (Some(Key::from_slice(key.value())), entries)
            }
        };
        let behind_row = (Bound::Excluded(row.as_deref().unwrap_or(entry)), end_of_table);
        let next_row = rows.range::<&[u8]>(behind_row)?.next().transpose()?;
        let next_row = next_row.map(|(key, _)| Key::from_slice(key.value()));
        let old = old.into_iter().peekable();
        Ok(Open { row, next_row, old, new: vec![], new_bytes: 0, is_changed: false })
    }

    fn is_place_of(&self, entry: &Key) -> bool {
        let any = self.new.last().map(|(last, _)| last).or(self.row.as_ref());
        any.is_some_and(|any| any[0] == entry[0]) && self.next_row.as_ref().is_none_or(|next| entry < next)
    }

    fn set(&mut self, entry: &Key, is_there: bool) -> bool {
        while let Some(before) = self.old.next_if(|old| old < entry) {
            self.push(before);
        }
        let was_there = self.old.next_if(|old| old == entry).is_some();
        self.is_changed |= was_there != is_there;
        if is_there {
            self.push(entry.clone());
        }
        was_there
    }

    fn push(&mut self, entry: Key) {
        let shared = self.new.last().map_or(0, |(last, _)| shared_len(last, &entry));
        self.new_bytes += packed_len(&entry, shared);
        self.new.push((entry, shared));
    }

    /// Stores a row with about so many bytes of the first entries. Returns by how much more is stored then.
    fn put_first(&mut self, rows: &mut Rows<'_>, bytes: usize) -> Result<i64, RowError> {
        let mut taken = 0;
        let more = self.new.iter().skip(1).take_while(|(entry, shared)| {
            taken += packed_len(entry, *shared);
            taken < bytes
        });
        let count = (1 + more.count()).min(self.new.len());
        let mut entries = self.new.drain(..count);
        let Some((first, _)) = entries.next() else { return Ok(0) };
        let mut value = Vec::with_capacity(bytes);
        entries.for_each(|(entry, shared)| pack(&mut value, &entry, shared));
        self.new_bytes -= packed_len(&first, 0) + value.len();
        if let Some((next, shared)) = self.new.first_mut() {
            // It shares nothing any more.
            self.new_bytes += packed_len(next, 0) - packed_len(next, *shared);
            *shared = 0;
        }
        self.is_changed = true;
        let replaced = match self.row.take_if(|row| *row == first) {
            Some(_) => 0,
            None => self.remove_row(rows)?,
        };
        let before = rows.insert(first.as_slice(), stored(&first, &value).as_slice())?;
        let replaced = replaced + before.map_or(0, |stored| signed(first.len() + stored.value().len()));
        Ok(row_len(&first, &value) - replaced)
    }

    /// Removes the row if it is still in the table. Returns how long it was.
    fn remove_row(&mut self, rows: &mut Rows<'_>) -> Result<i64, RowError> {
        let Some(row) = self.row.take() else { return Ok(0) };
        let removed = rows.remove(row.as_slice())?;
        Ok(removed.map_or(0, |stored| signed(row.len() + stored.value().len())))
    }

    /// Stores all that is left. Returns by how much more is stored then.
    fn finish(mut self, rows: &mut Rows<'_>) -> Result<i64, RowError> {
        while let Some(rest) = self.old.next() {
            self.push(rest);
        }
        // In equal parts, so that there is room for more in each.
        let parts = self.new_bytes.div_ceil(LONGEST_BYTES).max(1);
        let part_bytes = self.new_bytes.div_ceil(parts);
        let mut stored = 0;
        while !self.new.is_empty() {
            stored += self.put_first(rows, part_bytes)?;
        }
        Ok(stored - self.remove_row(rows)?)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::RangeBounds;
    use std::sync::Arc;
    use std::time::Duration;

    use segno_testkit::seeded::Random;

    use super::*;
    use crate::disk::directory::Directory;
    use crate::disk::files::Files;
    use crate::disk::full_disk::FullDisk;
    use crate::rows::base::{Base, Durable, Size};
    use crate::rows::stored::Snapshot;

    /// Rows that are there in any case.
    const CHECKPOINT_META: usize = 2;

    fn base(directory: &tempfile::TempDir) -> Base {
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).unwrap());
        Base::open(&files, &FullDisk::new(Duration::ZERO)).unwrap()
    }

    fn write(base: &Base, changes: impl IntoIterator<Item = (Key, bool)>) {
        let value = |is_there: bool| is_there.then_some(Cow::Borrowed([].as_slice()));
        let rows = changes.into_iter().map(|(key, is_there)| (Cow::Owned(key), value(is_there)));
        base.write_rows(rows, Durable::Now).unwrap();
    }

    fn found(snapshot: &Snapshot, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Vec<Key> {
        let forward: Vec<Key> = snapshot.within(start, end).unwrap().map(|row| row.unwrap().0).collect();
        let mut backward: Vec<Key> =
            snapshot.within_from_end(start, end).unwrap().map(|row| row.unwrap().0).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    }

    /// Entries of two indexes, and of the tables on either side of the indexes.
    fn any_key(random: &mut Random) -> Key {
        let rest = if random.chance(1, 20) { "x".repeat(300) } else { String::new() };
        let id = format!("{:05}{rest}", random.below(2_000));
        match random.below(4) {
            0 => keys::record("kind", &id),
            1 => keys::AgeIndex::All.key(7, &id),
            2 => keys::ended(keys::Generation::Root, 7, &id),
            _ => keys::expiry(7, "kind", &id),
        }
    }

    fn any_bound(random: &mut Random) -> Bound<Key> {
        match random.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(any_key(random)),
            _ => Bound::Excluded(any_key(random)),
        }
    }

    #[test]
    fn packed_rows_are_a_set_of_keys() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let directory = tempfile::tempdir().unwrap();
            let base = base(&directory);
            let mut expected = BTreeSet::new();
            for _ in 0..random.between(1, 5) {
                let count = random.below(600);
                let changes: BTreeMap<Key, bool> =
                    (0..count).map(|_| (any_key(&mut random), random.chance(7, 10))).collect();
                let (put, removed): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, is_there)| **is_there);
                expected.extend(put.into_iter().map(|(key, _)| key.clone()));
                removed.into_iter().for_each(|(key, _)| drop(expected.take(key)));
                write(&base, changes.clone());
                let snapshot = base.snapshot().unwrap();
                let mut size = Size::default();
                expected.iter().for_each(|key| size.add(key, stored_len(&[])));
                let stored = base.size().stored_bytes();
                assert_eq!(Size { saved: 0, ..base.size() }, size);
                assert_eq!(stored, snapshot.stored_bytes());
                for key in changes.keys() {
                    assert_eq!(
                        snapshot.get(key).unwrap().is_some(),
                        expected.contains(key),
                        "{seed}: {key:?}"
                    );
                }
                for (start, end) in (0..20).map(|_| (any_bound(&mut random), any_bound(&mut random))) {
                    let range = (start.as_ref().map(Key::as_slice), end.as_ref().map(Key::as_slice));
                    if let (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) =
                        range
                        && a >= b
                    {
                        continue;
                    }
                    let mut met = found(&snapshot, range.0, range.1);
                    met.retain(|key| !keys::is_meta(key));
                    let bounds = (start.clone(), end.clone());
                    let wanted = expected.iter().filter(|key| bounds.contains(*key));
                    assert!(met.iter().eq(wanted), "{seed}: {start:?} to {end:?}");
                }
            }
        }
    }

    #[test]
    fn rows_are_few_and_not_long() {
        let directory = tempfile::tempdir().unwrap();
        let base = base(&directory);
        let key = |number: u64| keys::AgeIndex::All.key(number / 10, &format!("{number:036}"));
        // Newest first, as instances are made, in checkpoints large and small.
        for numbers in [0..5_000, 5_000..5_001, 5_001..5_040, 5_040..10_000] {
            write(&base, numbers.rev().map(|number| (key(number), true)).collect::<BTreeMap<_, _>>());
        }
        let lengths = base.snapshot().unwrap().stored_lengths();
        assert!(lengths.iter().all(|len| *len <= 2 * LONGEST_BYTES), "{lengths:?}");
        assert!(lengths.len() <= 10_000 / 20, "{} rows for 10,000 entries", lengths.len());
        write(&base, (0..10_000).rev().map(|number| (key(number), false)).collect::<BTreeMap<_, _>>());
        assert!(base.snapshot().unwrap().stored_lengths().len() <= CHECKPOINT_META, "nothing is left");
        assert_eq!(base.size(), Size::default());
    }

    #[test]
    fn entries_of_a_damaged_row_are_never_merely_missing() {
        let directory = tempfile::tempdir().unwrap();
        let base = base(&directory);
        let key = |number: u64| keys::ended(keys::Generation::Root, number, "instance");
        write(&base, (0..10).map(|number| (key(number), true)));
        base.spoil(&key(0));
        let snapshot = base.snapshot().unwrap();
        assert!(snapshot.get(&key(5)).is_err());
        assert!(snapshot.scan(&key(5)).unwrap().any(|row| row.is_err()));
        assert!(snapshot.from(Bound::Excluded(&key(5))).unwrap().any(|row| row.is_err()));
        assert!(snapshot.last_key(&keys::ended_ones(keys::Generation::Root), Bound::Unbounded).is_err());
        assert!(snapshot.last_key(&key(3), Bound::Included(&key(5))).is_err());
        let change = [(Cow::Owned(key(5)), None)];
        assert!(base.write_rows(change.into_iter(), Durable::Now).is_err(), "what it held would be lost");
    }

    #[test]
    fn what_is_no_row_of_an_index_is_told() {
        let entries = [keys::AgeIndex::All.key(1, "a"), keys::AgeIndex::All.key(1, &"b".repeat(200))];
        let mut value = Vec::new();
        pack(&mut value, &entries[1], shared_len(&entries[0], &entries[1]));
        assert_eq!(unpack(&entries[0], &value).unwrap(), entries);
        for len in 1..value.len() {
            assert!(unpack(&entries[0], &value[..len]).is_err(), "{len}");
        }
        let mut unordered = Vec::new();
        pack(&mut unordered, &entries[0], 1);
        assert!(unpack(&entries[1], &unordered).is_err());
        assert!(unpack(&entries[0], &[255; 20]).is_err());
        assert!(unpack(&entries[0], &[200, 1, 1, b'x']).is_err(), "it cannot share more than there is");
    }
}
