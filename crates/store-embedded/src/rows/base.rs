//! The state behind the log: one redb file with one table of rows, brought forward by checkpoints.
//!
//! redb checks its pages only when it repairs, so it lives on checked blocks. Every row carries a checksum of its key
//! and value besides, from the moment it is handed to redb to the moment it comes back.

use std::borrow::Cow;
use std::io;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use redb::{Database, ReadableDatabase, StorageBackend, Table};

use crate::disk::blocks::Blocks;
use crate::disk::directory::without_path;
use crate::disk::files::{Files, StoreFile};
use crate::disk::full_disk::FullDisk;
use crate::error::{OpenError, RowError, is_damage};
use crate::log::first_sequence_of;
use crate::repair::damage::{FailedReads, OnFailure};
use crate::rows::isolated::{CheckpointLocation, ROWS};
use crate::rows::keys::{self, Key};
use crate::rows::overlay::Overlay;
use crate::rows::packed::Packing;
use crate::rows::raw_rows::{RawRows, Readers};
use crate::rows::stored::{FORMAT_FACT, Snapshot, stored, stored_len};

/// Name of the file.
pub(crate) const BASE_NAME: &str = "state.redb";

/// The file while it is being made, at first or by a compaction.
pub(crate) const NEW_NAME: &str = "state.tmp";

/// Memory that redb may use for pages.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The same for a file that is being made.
const NEW_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Version of the row format that this build writes.
pub const BASE_FORMAT: u32 = 2;

/// The oldest that it reads. The first checkpoint makes it the newest; what is in it need not change for that.
const OLDEST_FORMAT: u32 = 1;

/// How many new rows are put in singly after one that no other follows into the same gap.
const SINGLE_ROWS: u32 = 16;

/// Number of the meta row with the number of rows and their length.
const SIZE_FACT: u8 = 4;

/// The redb file.
#[derive(Debug)]
pub(crate) struct Base {
    database: Database,
    blocks: Arc<Blocks>,
    size: Mutex<Size>,
    /// Whether the last transaction is in the file, and not in the memory of redb only.
    is_durable: AtomicBool,
    failed: Arc<FailedReads>,
    /// Whether damage was met before this was opened: snapshots leave it to those that write.
    is_damaged: bool,
    /// Shared with every snapshot.
    readers: Arc<Readers>,
}

/// How much there is of all rows except meta rows. An entry of an index counts as a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    /// Keys and values with their checksums.
    pub(crate) bytes: u64,
    /// How much less it takes to store entries of indexes many in one row.
    pub(crate) saved: u64,
}

impl Size {
    fn encode(self) -> Bytes {
        [self.rows, self.bytes, self.saved].map(u64::to_le_bytes).concat().into()
    }

    fn decode(row: &[u8]) -> Option<Self> {
        let (numbers, _) = row.as_chunks();
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        // The last one is not there in the first version of the format, which saves nothing.
        Some(Size { rows: numbers.next()?, bytes: numbers.next()?, saved: numbers.next().unwrap_or(0) })
    }

    /// Bytes that are stored.
    pub(crate) fn stored_bytes(self) -> u64 {
        self.bytes.saturating_sub(self.saved)
    }

    /// The one of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, RowError> {
        let row = snapshot.get(&keys::meta(SIZE_FACT))?;
        Ok(row.as_deref().and_then(Size::decode).unwrap_or_default())
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, key: &[u8], stored_len: usize) {
        self.rows += 1;
        self.bytes += (key.len() + stored_len) as u64;
    }

    fn subtract(&mut self, key: &[u8], stored_len: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub((key.len() + stored_len) as u64);
    }
}

/// When the rows of a transaction are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    Now,
    /// With the next one that is durable now.
    Later,
}

impl Base {
    /// Opens the file, or makes it. A file that was not finished is never seen: it has another name until it is.
    pub(crate) fn open(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        let names = files.list()?;
        if !names.iter().any(|name| name == BASE_NAME) {
            if names.iter().any(|name| first_sequence_of(name).is_some()) {
                // The first segment of a log is made when there is a state.
                return Err(missing());
            }
            drop(Self::create(files, when_full)?);
            Self::prepare(files)?;
            Self::publish(files)?;
        }
        Self::reopen(files, when_full)
    }

    /// Opens the file, which must be there.
    pub(crate) fn reopen(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        let file = files.open(BASE_NAME).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(),
            _ => OpenError::Io(error),
        })?;
        let mut base = Self::on(file, when_full, CACHE_BYTES)?;
        let snapshot = base.snapshot()?;
        let found = snapshot.format()?;
        if !(OLDEST_FORMAT..=BASE_FORMAT).contains(&found) {
            return Err(OpenError::UnknownFormat { found, known: BASE_FORMAT });
        }
        base.size = Mutex::new(Size::of(&snapshot)?);
        Ok(base)
    }

    /// Makes an empty one under the name of files that are being made.
    pub(crate) fn create(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        let base = Self::on(files.create(NEW_NAME)?, when_full, NEW_CACHE_BYTES)?;
        base.write(&Overlay::default(), &[])?;
        Ok(base)
    }

    /// Makes a file that was made and closed durable.
    pub(crate) fn prepare(files: &Arc<dyn Files>) -> io::Result<()> {
        files.open(NEW_NAME)?.sync()
    }

    /// How much room a file takes on disk that is closed.
    pub(crate) fn bytes_of(files: &Arc<dyn Files>, name: &str) -> io::Result<u64> {
        let blocks = Blocks::open(files.open(name)?, FullDisk::new(std::time::Duration::ZERO))?;
        Ok(blocks.written_bytes())
    }

    /// Gives a file that was prepared its name, in place of one that has it.
    ///
    /// # Errors
    /// It is not known then which file has the name after a power cut.
    pub(crate) fn publish(files: &Arc<dyn Files>) -> io::Result<()> {
        files.rename(NEW_NAME, BASE_NAME)?;
        files.sync_dir()
    }

    fn on(
        file: Arc<dyn StoreFile>,
        when_full: &Arc<FullDisk>,
        cache_bytes: usize,
    ) -> Result<Base, OpenError> {
        let blocks = Arc::new(Blocks::open(file, Arc::clone(when_full))?);
        let failed = Arc::new(FailedReads::default());
        let backend = Backend { blocks: Arc::clone(&blocks), failed: Arc::clone(&failed) };
        let opened = Database::builder().set_cache_size(cache_bytes).create_with_backend(backend);
        let database = opened.map_err(|error| match error {
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) => unopenable(error),
            redb::DatabaseError::DatabaseAlreadyOpen => {
                OpenError::InUse("the store is open already in this process".to_owned())
            }
            other => OpenError::Corrupt(format!("{BASE_NAME}: {other}")),
        })?;
        Ok(Base {
            database,
            blocks,
            size: Mutex::default(),
            is_durable: AtomicBool::new(true),
            failed,
            is_damaged: false,
            readers: Arc::default(),
        })
    }

    /// Opens the file anew, because a read of this one has failed: redb refuses everything since then. Snapshots of this one
    /// read no more.
    pub(crate) fn again(&self, files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        self.readers.end();
        let mut base = Self::reopen(files, when_full)?;
        base.is_damaged = true;
        Ok(base)
    }

    /// The rows of the last checkpoint.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, RowError> {
        let transaction = self.database.begin_read().map_err(unreadable)?;
        let table = transaction.open_table(ROWS).map_err(unreadable)?;
        let rows = RawRows::new(table, self.place()?, Arc::clone(&self.readers));
        Ok(Snapshot::new(if self.is_damaged { rows.abandon_table() } else { rows }))
    }

    /// Where the rows of the last checkpoint are; `None` when the file does not have all of them yet.
    fn place(&self) -> Result<Option<CheckpointLocation>, RowError> {
        if !self.is_durable.load(Ordering::Acquire) {
            return Ok(None);
        }
        let place = || -> io::Result<CheckpointLocation> {
            let (blocks, failed) = (Arc::clone(&self.blocks), Arc::clone(&self.failed));
            Ok(CheckpointLocation { header: blocks.header()?, len: blocks.len()?, blocks, failed })
        };
        Ok(Some(place().map_err(redb::StorageError::Io)?))
    }

    /// Whether a read of the file has failed.
    pub(crate) fn has_failed_reads(&self) -> bool {
        self.is_damaged || self.failed.is_met()
    }

    /// Whether redb refuses everything, because a snapshot has met damage.
    pub(crate) fn is_refused(&self) -> bool {
        !self.is_damaged && self.failed.is_met()
    }

    /// Whether a snapshot is still being read. None can be read when this is gone.
    pub(crate) fn is_read(&self) -> bool {
        Arc::strong_count(&self.readers) > 1
    }

    /// How much it holds.
    pub(crate) fn size(&self) -> Size {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Damages a row.
    #[cfg(test)]
    pub(crate) fn spoil(&self, key: &[u8]) {
        let transaction = self.database.begin_write().expect("a transaction");
        let mut table = transaction.open_table(ROWS).expect("the table");
        table.insert(key, vec![0; stored_len(&[])].as_slice()).expect("a row").expect("a row that is there");
        drop(table);
        transaction.commit().expect("a commit");
    }

    /// Calls this for every read that fails.
    pub(crate) fn on_damage(&self, tell: OnFailure) {
        self.failed.on_failure(tell);
    }

    /// How much room its file takes on disk. Its length may be much more, with a hole at its end.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.blocks.written_bytes()
    }

    /// Whether redb finds its own pages in order, those included that hold no rows. Reads all of them.
    pub(crate) fn verify(&mut self) -> Result<bool, String> {
        self.database.check_integrity().map_err(|error| error.to_string())
    }

    /// Writes all changes and meta rows in one durable transaction.
    pub(crate) fn write(&self, changes: &Overlay, meta_rows: &[(Key, Bytes)]) -> Result<(), RowError> {
        self.write_piecemeal(changes, meta_rows, || {})
    }

    /// The same; calls `between` for each row.
    pub(crate) fn write_piecemeal(
        &self,
        changes: &Overlay,
        meta_rows: &[(Key, Bytes)],
        mut between: impl FnMut(),
    ) -> Result<(), RowError> {
        let changes = changes.to_store().inspect(|_| between());
        let meta_rows =
            meta_rows.iter().map(|(key, value)| (Cow::Borrowed(key), Some(Cow::Borrowed(value.as_ref()))));
        self.write_rows(changes.chain(meta_rows), Durable::Now)
    }

    /// Writes rows in one transaction; a row without a value is removed. They come in key order, meta rows behind them.
    pub(crate) fn write_rows<'a>(
        &self,
        rows: impl Iterator<Item = Row<'a>>,
        durable: Durable,
    ) -> Result<(), RowError> {
        let mut transaction = self.database.begin_write().map_err(unreadable)?;
        match durable {
            // The allocator's state goes with it: opening after a crash need not walk all pages to find it out.
            Durable::Now => transaction.set_quick_repair(true),
            Durable::Later => transaction.set_durability(redb::Durability::None).map_err(unreadable)?,
        }
        let mut size = self.size();
        {
            let mut table = transaction.open_table(ROWS).map_err(unreadable)?;
            let mut packing = Packing::default();
            let mut rows = rows.peekable();
            let mut single_rows = 0;
            while let Some((key, value)) = rows.next() {
                if keys::is_packed(&key) {
                    match (packing.set(&mut table, &key, value.is_some())?, value.is_some()) {
                        (false, true) => size.add(&key, stored_len(&[])),
                        (true, false) => size.subtract(&key, stored_len(&[])),
                        _ => {}
                    }
                    continue;
                }
                let Some(value) = value else {
                    let before = table.remove(key.as_slice())?;
                    if let Some(before) = before.filter(|_| !keys::is_meta(&key)) {
                        size.subtract(&key, before.value().len());
                    }
                    continue;
                };
                let is_new = put(&mut table, &key, &value, &mut size)?;
                if is_new && single_rows > 0 {
                    single_rows -= 1;
                } else if is_new && put_behind(&mut table, &key, &mut rows, &mut size)? == 0 {
                    single_rows = SINGLE_ROWS;
                }
            }
            size.saved = size.saved.saturating_add_signed(packing.finish(&mut table)?);
            let mut set_fact = |number, value: &[u8]| {
                let key = keys::meta(number);
                table.insert(key.as_slice(), stored(&key, value).as_slice()).map(drop)
            };
            set_fact(SIZE_FACT, &size.encode())?;
            set_fact(FORMAT_FACT, &BASE_FORMAT.to_le_bytes())?;
        }
        if durable == Durable::Later {
            self.is_durable.store(false, Ordering::Release);
        }
        transaction.commit().map_err(unreadable)?;
        if durable == Durable::Now {
            self.is_durable.store(true, Ordering::Release);
        }
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        Ok(())
    }
}

/// A row to be written; without a value it is to be removed.
pub(crate) type Row<'a> = (Cow<'a, Key>, Option<Cow<'a, [u8]>>);

/// Puts a row in. Returns whether there was none.
fn put(
    table: &mut Table<'_, &[u8], &[u8]>,
    key: &Key,
    value: &[u8],
    size: &mut Size,
) -> Result<bool, RowError> {
    let row = stored(key, value);
    let before = table.insert(key.as_slice(), row.as_slice())?.map(|before| before.value().len());
    if !keys::is_meta(key) {
        before.into_iter().for_each(|len| size.subtract(key, len));
        size.add(key, row.len());
    }
    Ok(before.is_none())
}

/// Puts those of the next rows in that lie between a row and the one behind it in the table. That costs less than to find the
/// place of each. Returns how many.
fn put_behind<'a>(
    table: &mut Table<'_, &[u8], &[u8]>,
    key: &Key,
    rows: &mut Peekable<impl Iterator<Item = Row<'a>>>,
    size: &mut Size,
) -> Result<usize, RowError> {
    let mut cursor = table.upper_bound_mut(Bound::Included(key.as_slice()))?;
    let end = cursor.peek_next()?.map(|(key, _)| Key::from_slice(key.value()));
    let is_before_end = |key: &Key| end.as_ref().is_none_or(|end| key < end);
    let mut count = 0;
    while let Some((key, Some(value))) = rows.next_if(|(key, value)| {
        value.is_some() && !keys::is_packed(key) && !keys::is_meta(key) && is_before_end(key)
    }) {
        let row = stored(&key, &value);
        cursor.insert_before(key.as_slice(), row.as_slice()).map_err(unreadable)?;
        size.add(&key, row.len());
        count += 1;
    }
    cursor.close()?;
    Ok(count)
}

/// There is no state, but something else of a store.
fn missing() -> OpenError {
    OpenError::Corrupt(format!("{BASE_NAME} is missing"))
}

/// Why a file could not be opened: a block that fails its checksum is damage, anything else is the disk.
fn unopenable(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => {
            OpenError::Corrupt(format!("{BASE_NAME}: {error}"))
        }
        _ => OpenError::Io(error),
    }
}

/// The error of a row that redb could not give.
pub(crate) fn unreadable(error: impl Into<redb::Error>) -> RowError {
    match error.into() {
        redb::Error::Corrupted(what) => RowError::Corrupt(what),
        redb::Error::Io(error) if is_damage(&error) => RowError::Corrupt(without_path(&error)),
        other => RowError::Unreadable(other.to_string()),
    }
}

/// redb on checked blocks.
#[derive(Debug)]
struct Backend {
    blocks: Arc<Blocks>,
    failed: Arc<FailedReads>,
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.blocks.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.blocks.read(offset, out).inspect_err(|error| self.failed.note(&without_path(error)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.blocks.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.blocks.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.blocks.write(offset, data)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use segno_testkit::seeded::Random;

    use super::*;
    use crate::disk::directory::Directory;

    #[test]
    fn rows_are_put_between_those_that_are_there() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let directory = tempfile::tempdir().unwrap();
            let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).unwrap());
            let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).unwrap();
            let mut expected = BTreeMap::new();
            for round in 0..6_u8 {
                let mut changes = BTreeMap::new();
                for _ in 0..random.below(40) {
                    // Mostly some that follow each other, so that many lie in one gap.
                    let first = random.below(1_000);
                    for id in first..first + random.between(1, 60) {
                        let value = random.chance(9, 10).then(|| vec![round; 1 + id as usize % 90]);
                        changes.insert(keys::instance(&format!("{id:05}")), value);
                    }
                }
                let rows = changes
                    .iter()
                    .map(|(key, value)| (Cow::Borrowed(key), value.as_deref().map(Cow::Borrowed)));
                // CheckpointMeta count for nothing, whether they come or go.
                let value = random.chance(1, 2).then(|| Cow::Owned(vec![round]));
                let fact = (Cow::Owned(keys::meta(200)), value);
                base.write_rows(rows.chain([fact]), Durable::Now).unwrap();
                for (key, value) in changes {
                    match value {
                        None => drop(expected.remove(&key)),
                        Some(value) => drop(expected.insert(key, Bytes::from(value))),
                    }
                }
                let mut size = Size::default();
                expected.iter().for_each(|(key, value)| size.add(key, stored_len(value)));
                assert_eq!(base.size(), size, "seed {seed}");
                let rows = base.snapshot().unwrap().from(Bound::Unbounded).unwrap().map(Result::unwrap);
                let rows: BTreeMap<_, _> = rows.filter(|(key, _)| !keys::is_meta(key)).collect();
                assert_eq!(rows, expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_state_of_a_newer_format_is_refused_and_not_taken_for_damage() {
        const NEWER: u32 = BASE_FORMAT + 1;
        let parent = tempfile::tempdir().unwrap();
        let [path, to] = ["store", "saved"].map(|name| parent.path().join(name));
        drop(crate::EmbeddedStore::open(&path).unwrap());
        let files: Arc<dyn Files> = Arc::new(Directory::new(&path).unwrap());
        let base = Base::reopen(&files, &FullDisk::new(Duration::ZERO)).unwrap();
        let transaction = base.database.begin_write().unwrap();
        let key = keys::meta(FORMAT_FACT);
        let row = stored(&key, &NEWER.to_le_bytes());
        transaction.open_table(ROWS).unwrap().insert(key.as_slice(), row.as_slice()).unwrap();
        transaction.commit().unwrap();
        drop(base);
        let clock = segno::clock::SystemClock;
        for (verb, error) in [
            ("open", crate::EmbeddedStore::open(&path).map(drop).unwrap_err()),
            ("read", crate::ClosedStore::open(&path, &clock).map(drop).unwrap_err()),
            ("check", crate::check(&path, drop).map(drop).unwrap_err()),
            ("compact", crate::compact(&path, drop).map(drop).unwrap_err()),
            ("salvage", crate::salvage(&path, &to, drop).map(drop).unwrap_err()),
        ] {
            assert!(matches!(error, OpenError::UnknownFormat { found: NEWER, .. }), "{verb}: {error}");
        }
        assert!(!to.exists(), "nothing was made");
    }
}
