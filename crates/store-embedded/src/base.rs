//! The state behind the log: one redb file with one table of rows, brought forward by checkpoints.
//!
//! redb checks its pages only when it repairs, so every row carries a checksum of its key and value.

use std::io;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, StorageBackend, TableDefinition};

use crate::error::{OpenError, RowError};
use crate::files::{Files, StoreFile};
use crate::keys::{self, Key};
use crate::overlay::Overlay;

/// Name of the file.
const BASE_NAME: &str = "state.redb";

/// The file while it is being made.
const NEW_NAME: &str = "state.tmp";

/// The one table.
const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Memory that redb may use for pages.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Version of the row format that this build writes and reads.
const BASE_FORMAT: u32 = 1;

/// Number of the fact that tells the format.
const FORMAT_FACT: u8 = 1;

/// Length of the checksum before each value.
const CHECKSUM_BYTES: usize = 4;

/// The redb file.
#[derive(Debug)]
pub struct Base {
    database: Database,
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

impl Base {
    /// Opens the file, or makes it. A file that was not finished is never seen: it has another name until it is.
    pub fn open(files: &Arc<dyn Files>) -> Result<Base, OpenError> {
        if !files.list()?.iter().any(|name| name == BASE_NAME) {
            let file = files.create(NEW_NAME)?;
            let base = Base { database: open_database(file)? };
            let facts = [(keys::meta(FORMAT_FACT), Bytes::copy_from_slice(&BASE_FORMAT.to_le_bytes()))];
            base.write(&Overlay::default(), &facts)?;
            drop(base);
            let file = files.open(NEW_NAME)?;
            file.sync()?;
            drop(file);
            files.rename(NEW_NAME, BASE_NAME)?;
            files.sync_dir()?;
        }
        let base = Base { database: open_database(files.open(BASE_NAME)?)? };
        let format = base.snapshot()?.get(&keys::meta(FORMAT_FACT))?;
        let found = format.as_deref().and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        if found != BASE_FORMAT {
            return Err(OpenError::UnknownFormat { found, known: BASE_FORMAT });
        }
        Ok(base)
    }

    /// The rows of the last checkpoint.
    pub fn snapshot(&self) -> Result<Snapshot, RowError> {
        let transaction = self.database.begin_read().map_err(unreadable)?;
        Ok(Snapshot { table: transaction.open_table(ROWS).map_err(unreadable)? })
    }

    /// Writes all changes and facts in one durable transaction.
    pub fn write(&self, changes: &Overlay, facts: &[(Key, Bytes)]) -> Result<(), RowError> {
        let transaction = self.database.begin_write().map_err(unreadable)?;
        {
            let mut table = transaction.open_table(ROWS).map_err(unreadable)?;
            let mut buffer = Vec::new();
            let facts = facts.iter().map(|(key, value)| (key, Some(value)));
            for (key, value) in changes.iter().map(|(key, change)| (key, change.value())).chain(facts) {
                match value {
                    None => drop(table.remove(key.as_slice())?),
                    Some(value) => {
                        buffer.clear();
                        buffer.extend_from_slice(&checksum(key, value).to_le_bytes());
                        buffer.extend_from_slice(value);
                        table.insert(key.as_slice(), buffer.as_slice())?;
                    }
                }
            }
        }
        transaction.commit().map_err(unreadable)
    }
}

impl Snapshot {
    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, RowError> {
        self.table.get(key)?.map(|stored| checked(key, stored.value())).transpose()
    }

    /// Rows whose keys start with `prefix`, in key order.
    pub fn scan(&self, prefix: &[u8]) -> Result<Rows, RowError> {
        let rows = self.from(Bound::Included(prefix))?;
        let prefix = prefix.to_vec();
        // An error is passed on, wherever it is.
        let within = move |row: &Result<(Key, Bytes), RowError>| {
            row.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix))
        };
        Ok(Rows(Box::new(rows.take_while(within))))
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
            Ok((key.value().to_vec(), value))
        }))
    }
}

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

fn open_database(file: Arc<dyn StoreFile>) -> Result<Database, OpenError> {
    let opened = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(Backend(file));
    opened.map_err(|error| match error {
        redb::DatabaseError::Storage(redb::StorageError::Io(error)) => OpenError::Io(error),
        redb::DatabaseError::DatabaseAlreadyOpen => {
            OpenError::InUse("the store is open already in this process".to_owned())
        }
        other => OpenError::Corrupt(format!("{BASE_NAME}: {other}")),
    })
}

fn unreadable(error: impl Into<redb::Error>) -> RowError {
    match error.into() {
        redb::Error::Corrupted(what) => RowError::Corrupt(what),
        other => RowError::Unreadable(other.to_string()),
    }
}

/// redb on a file of the store's directory.
#[derive(Debug)]
struct Backend(Arc<dyn StoreFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }
}
