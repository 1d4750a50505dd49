//! A store that no process has open, for reading: the state of its last checkpoint and the log beyond it, in memory.
//! Nothing is written, so it can be read on a full disk and on a file system that is mounted read-only.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno::store::{Export, ProviderError, Record};

use crate::checkpoint::recovery::{self, Replayed};
use crate::checkpoint::snapshot::StoreSnapshot;
use crate::disk::copy_on_write::CopyOnWriteFiles;
use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::{OpenError, RowError};
use crate::operate::export::SnapshotExport;
use crate::operate::fill_marker;
use crate::operate::info::{self, Info};
use crate::rows::base::Base;
use crate::rows::checkpoint_meta::FILLING;
use crate::rows::keys;
use crate::rows::queue_row::RecordRow;
use crate::rows::view::View;
use crate::state::machine::Restored;

/// A store that no process has open. As long as this lives, none can open it.
pub struct ClosedStore {
    files: Arc<dyn Files>,
    view: Arc<View>,
    /// What the view reads from.
    _base: Base,
    /// Length of the log beyond the last checkpoint.
    log_bytes: u64,
    at_ms: u64,
    _lock: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for ClosedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClosedStore").finish_non_exhaustive()
    }
}

impl ClosedStore {
    /// Reads the store in a directory. Changes nothing.
    ///
    /// # Errors
    /// When there is no such directory, or the store in it is in use, damaged, of an unknown format, or not readable.
    pub fn open(path: impl AsRef<Path>, clock: &dyn Clock) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let open = || Self::of_files(Arc::new(Directory::existing(path)?), clock);
        open().map_err(|error| error.in_directory(path))
    }

    /// The same on any directory; for tests.
    ///
    /// # Errors
    /// As of [`ClosedStore::open`].
    #[doc(hidden)]
    pub fn of_files(files: Arc<dyn Files>, clock: &dyn Clock) -> Result<Self, OpenError> {
        let lock = files.lock().map_err(OpenError::of_lock)?;
        fill_marker::refuse_unfinished(&*files)?;
        let at_ms = clock.now_ms();
        // redb writes when it opens a file; all of that stays in memory.
        let untouched = CopyOnWriteFiles::of(&files);
        let base = Base::reopen(&untouched, &FullDisk::new(Duration::ZERO))?;
        let Replayed { tables, tail, .. } =
            recovery::replay(&files, Arc::new(base.snapshot()?), u64::MAX, at_ms)?;
        if tables.rows.get(&keys::meta(FILLING))?.is_some() {
            return Err(OpenError::Unfinished { by: None });
        }
        let log_bytes = tail.logged_bytes();
        Ok(ClosedStore { files, view: View::of(tables), _base: base, log_bytes, at_ms, _lock: lock })
    }

    /// What there is to know of the store.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn info(&self) -> Result<Info, ProviderError> {
        const OPERATION: &str = "info";
        let restored = recovery::restore(&self.view.rows, &self.view.meta, self.at_ms);
        // Figures without what is on a damaged block would not be true.
        let restored = restored.and_then(Restored::whole).map_err(|error| error.at(OPERATION))?;
        let depths = restored.queue_depths();
        let files = info::list_files(&self.files).map_err(|error| error.at(OPERATION))?;
        info::count(&self.view, files, self.log_bytes, depths.into()).map_err(|error| error.at(OPERATION))
    }

    /// All records of a kind, by id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn records(&self, kind: &str) -> Result<Vec<Record>, ProviderError> {
        let records = || -> Result<Vec<Record>, RowError> {
            let mut records = Vec::new();
            for row in self.view.walk(&keys::record(kind, "")) {
                let (key, value) = row?;
                let row = RecordRow::decode(&value)?;
                if let Some((kind, id)) = keys::record_name(&key).filter(|_| row.lives(self.at_ms)) {
                    records.push(row.into_record(kind, id));
                }
            }
            Ok(records)
        };
        records().map_err(|error| error.at("list_records"))
    }

    /// Everything that the store holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn export(&self) -> Result<impl Export + use<'_>, ProviderError> {
        let taken = StoreSnapshot { view: Arc::clone(&self.view), at_ms: self.at_ms };
        SnapshotExport::new(taken).map_err(|error| error.at("export"))
    }
}
