//! The state behind the log: one redb file with one table of rows, brought forward by checkpoints.
//!
//! redb checks its pages only when it repairs, so it lives on checked blocks. Every row carries a checksum of its key
//! and value besides, from the moment it is handed to redb to the moment it comes back.

use std::borrow::Cow;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, StorageBackend, TableDefinition};

use crate::blocks::Blocks;
use crate::error::{OpenError, RowError};
use crate::files::{Files, StoreFile};
use crate::full_disk::FullDisk;
use crate::keys::{self, Key};
use crate::overlay::Overlay;

/// Name of the file.
pub const BASE_NAME: &str = "state.redb";

/// The file while it is being made, at first or by a compaction.
pub const NEW_NAME: &str = "state.tmp";

/// The one table.
const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Memory that redb may use for pages.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The same for a file that is being made.
const NEW_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Version of the row format that this build writes and reads.
pub const BASE_FORMAT: u32 = 1;

/// Number of the fact that tells the format.
const FORMAT_FACT: u8 = 1;

/// Number of the fact that tells how many rows there are and how long.
const SIZE_FACT: u8 = 4;

/// Length of the checksum before each value.
const CHECKSUM_BYTES: usize = 4;

/// The redb file.
#[derive(Debug)]
pub struct Base {
    database: Database,
    blocks: Arc<Blocks>,
    size: Mutex<Size>,
}

/// Rows in key order.
pub struct Rows(Box<dyn Iterator<Item = Result<(Key, Bytes), RowError>> + Send>);

impl Rows {
    /// No rows.
    pub fn none() -> Self {
        Rows(Box::new(std::iter::empty()))
    }
}

impl Iterator for Rows {
    type Item = Result<(Key, Bytes), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The rows of one checkpoint, for reading.
#[derive(Debug)]
pub struct Snapshot {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

/// How much there is of all rows but the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub rows: u64,
    /// Keys and values with their checksums.
    pub bytes: u64,
}

impl Size {
    fn encode(self) -> Bytes {
        [self.rows.to_le_bytes(), self.bytes.to_le_bytes()].concat().into()
    }

    fn decode(row: &[u8]) -> Option<Self> {
        let (rows, bytes) = row.split_first_chunk()?;
        Some(Size { rows: u64::from_le_bytes(*rows), bytes: u64::from_le_bytes(bytes.try_into().ok()?) })
    }

    /// The one that a snapshot tells of.
    pub fn of(snapshot: &Snapshot) -> Result<Self, RowError> {
        let row = snapshot.get(&keys::meta(SIZE_FACT))?;
        Ok(row.as_deref().and_then(Size::decode).unwrap_or_default())
    }

    /// Adds a row.
    pub fn add(&mut self, key: &[u8], stored_len: usize) {
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
pub enum Durable {
    Now,
    /// With the next one that is durable now.
    Later,
}

impl Base {
    /// Opens the file, or makes it. A file that was not finished is never seen: it has another name until it is.
    pub fn open(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        if !files.list()?.iter().any(|name| name == BASE_NAME) {
            drop(Self::create(files, when_full)?);
            Self::prepare(files)?;
            Self::publish(files)?;
        }
        Self::reopen(files, when_full)
    }

    /// Opens the file, which must be there.
    pub fn reopen(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        let mut base = Self::on(files.open(BASE_NAME)?, when_full, CACHE_BYTES)?;
        let snapshot = base.snapshot()?;
        let format = snapshot.get(&keys::meta(FORMAT_FACT))?;
        let found = format.as_deref().and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        if found != BASE_FORMAT {
            return Err(OpenError::UnknownFormat { found, known: BASE_FORMAT });
        }
        base.size = Mutex::new(Size::of(&snapshot)?);
        Ok(base)
    }

    /// Makes an empty one under the name of files that are being made.
    pub fn create(files: &Arc<dyn Files>, when_full: &Arc<FullDisk>) -> Result<Base, OpenError> {
        let base = Self::on(files.create(NEW_NAME)?, when_full, NEW_CACHE_BYTES)?;
        let format = (keys::meta(FORMAT_FACT), Bytes::copy_from_slice(&BASE_FORMAT.to_le_bytes()));
        base.write(&Overlay::default(), &[format])?;
        Ok(base)
    }

    /// Makes a file that was made and closed durable.
    pub fn prepare(files: &Arc<dyn Files>) -> io::Result<()> {
        files.open(NEW_NAME)?.sync()
    }

    /// Gives a file that was prepared its name, in place of one that has it.
    ///
    /// # Errors
    /// It is not known then which file has the name after a power cut.
    pub fn publish(files: &Arc<dyn Files>) -> io::Result<()> {
        files.rename(NEW_NAME, BASE_NAME)?;
        files.sync_dir()
    }

    fn on(
        file: Arc<dyn StoreFile>,
        when_full: &Arc<FullDisk>,
        cache_bytes: usize,
    ) -> Result<Base, OpenError> {
        let blocks = Arc::new(Blocks::open(file, Arc::clone(when_full))?);
        let opened =
            Database::builder().set_cache_size(cache_bytes).create_with_backend(Backend(Arc::clone(&blocks)));
        let database = opened.map_err(|error| match error {
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) => unopenable(error),
            redb::DatabaseError::DatabaseAlreadyOpen => {
                OpenError::InUse("the store is open already in this process".to_owned())
            }
            other => OpenError::Corrupt(format!("{BASE_NAME}: {other}")),
        })?;
        Ok(Base { database, blocks, size: Mutex::default() })
    }

    /// The rows of the last checkpoint.
    pub fn snapshot(&self) -> Result<Snapshot, RowError> {
        let transaction = self.database.begin_read().map_err(unreadable)?;
        Ok(Snapshot { table: transaction.open_table(ROWS).map_err(unreadable)? })
    }

    /// Length of a row with its checksum.
    pub fn stored_len(row: &[u8]) -> usize {
        CHECKSUM_BYTES + row.len()
    }

    /// How much it holds.
    pub fn size(&self) -> Size {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls this when damage is met for the first time.
    pub fn on_damage(&self, tell: Box<dyn Fn() + Send + Sync>) {
        self.blocks.on_damage(tell);
    }

    /// How much room its file takes on disk. Its length may be much more, with a hole at its end.
    pub fn file_bytes(&self) -> u64 {
        self.blocks.written_bytes()
    }

    /// Whether redb finds its own pages in order, those included that hold no rows. Reads all of them.
    pub fn verify(&mut self) -> Result<bool, String> {
        self.database.check_integrity().map_err(|error| error.to_string())
    }

    /// Writes all changes and facts in one durable transaction.
    pub fn write(&self, changes: &Overlay, facts: &[(Key, Bytes)]) -> Result<(), RowError> {
        self.write_piecemeal(changes, facts, || {})
    }

    /// The same; calls `between` for each row.
    pub fn write_piecemeal(
        &self,
        changes: &Overlay,
        facts: &[(Key, Bytes)],
        mut between: impl FnMut(),
    ) -> Result<(), RowError> {
        let changes = changes.to_store().inspect(|_| between());
        let facts =
            facts.iter().map(|(key, value)| (Cow::Borrowed(key), Some(Cow::Borrowed(value.as_ref()))));
        self.write_rows(changes.chain(facts), Durable::Now)
    }

    /// Writes rows in one transaction; a row without a value is removed.
    pub fn write_rows<'a>(
        &self,
        rows: impl Iterator<Item = (Cow<'a, Key>, Option<Cow<'a, [u8]>>)>,
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
            let mut buffer = Vec::new();
            for (key, value) in rows {
                let before = match value.as_deref() {
                    None => table.remove(key.as_slice())?,
                    Some(value) => {
                        buffer.clear();
                        buffer.extend_from_slice(&checksum(&key, value).to_le_bytes());
                        buffer.extend_from_slice(value);
                        table.insert(key.as_slice(), buffer.as_slice())?
                    }
                };
                if !keys::is_meta(&key) {
                    if let Some(before) = before {
                        size.subtract(&key, before.value().len());
                    }
                    if value.is_some() {
                        size.add(&key, buffer.len());
                    }
                }
            }
            let (key, value) = (keys::meta(SIZE_FACT), size.encode());
            let sum = checksum(&key, &value).to_le_bytes();
            table.insert(key.as_slice(), [&sum, value.as_ref()].concat().as_slice())?;
        }
        transaction.commit().map_err(unreadable)?;
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        Ok(())
    }
}

impl Snapshot {
    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, RowError> {
        self.table.get(key)?.map(|stored| checked(key, stored.value())).transpose()
    }

    /// Rows whose keys start with `prefix`, in key order.
    pub fn scan(&self, prefix: &[u8]) -> Result<Rows, RowError> {
        Ok(Rows(Box::new(self.between(Bound::Included(prefix), prefix)?)))
    }

    /// The last row whose key starts with `prefix`.
    pub fn last(&self, prefix: &[u8]) -> Result<Option<(Key, Bytes)>, RowError> {
        let behind = keys::behind(prefix);
        let end = behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let row = self.within(Bound::Included(prefix), end)?.next_back().transpose()?;
        row.map(|(key, value)| Ok((key, value?))).transpose()
    }

    /// The last key that starts with `prefix` and does not lie behind `end`.
    pub fn last_key(&self, prefix: &[u8], end: Bound<&[u8]>) -> Result<Option<Key>, RowError> {
        let Some(row) = self.table.range::<&[u8]>((Bound::Included(prefix), end))?.next_back() else {
            return Ok(None);
        };
        Ok(Some(Key::from_slice(row?.0.value())))
    }

    /// Rows between two keys, from either end. A row that fails its checksum is one thing, a page that cannot be read is
    /// another: nothing can be read behind it.
    pub fn within(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<impl DoubleEndedIterator<Item = MaybeRow> + use<>, RowError> {
        Ok(self.table.range::<&[u8]>((start, end))?.map(|row| {
            let (key, value) = row?;
            Ok((Key::from_slice(key.value()), checked(key.value(), value.value())))
        }))
    }

    /// Rows whose keys start with `prefix` and lie at or behind `start`, in key order. Nothing behind them is read.
    pub fn between(
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
    pub fn from(
        &self,
        start: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<(Key, Bytes), RowError>> + use<>, RowError> {
        let rows = self.table.range::<&[u8]>((start, Bound::Unbounded))?;
        Ok(rows.map(|row| {
            let (key, value) = row?;
            let value = checked(key.value(), value.value())?;
            Ok((Key::from_slice(key.value()), value))
        }))
    }
}

/// A row as it was found.
pub type MaybeRow = Result<(Key, Result<Bytes, RowError>), RowError>;

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

fn checked(key: &[u8], stored: &[u8]) -> Result<Bytes, RowError> {
    let (sum, value) = stored
        .split_first_chunk::<CHECKSUM_BYTES>()
        .ok_or_else(|| RowError::Corrupt("a row is too short for its checksum".to_owned()))?;
    if u32::from_le_bytes(*sum) != checksum(key, value) {
        let table = key.first().copied().unwrap_or(0);
        return Err(RowError::Corrupt(format!("a row of table {table} fails its checksum")));
    }
    Ok(Bytes::copy_from_slice(value))
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

fn unreadable(error: impl Into<redb::Error>) -> RowError {
    match error.into() {
        redb::Error::Corrupted(what) => RowError::Corrupt(what),
        redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            RowError::Corrupt(error.to_string())
        }
        other => RowError::Unreadable(other.to_string()),
    }
}

/// redb on checked blocks.
#[derive(Debug)]
struct Backend(Arc<Blocks>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
