//! The two stores of a ledger. Writers of events need the first only; only the compactor writes to
//! the second.

use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use segno::store::ErrorKind;

use super::StorageError;

/// Mode of the directory: inputs and outputs of tasks are in its files.
const DIRECTORY_MODE: u32 = 0o700;

/// Where the log is, and where manifests and tables are. They may be one store, or two with
/// credentials of their own.
#[derive(Debug, Clone)]
pub struct Stores {
    /// The log.
    pub ledger: Arc<dyn ObjectStore>,
    /// Manifests and tables.
    pub state: Arc<dyn ObjectStore>,
}

impl Stores {
    /// One store for both.
    pub fn shared(store: Arc<dyn ObjectStore>) -> Self {
        Stores { ledger: Arc::clone(&store), state: store }
    }

    /// In memory, for tests.
    pub fn in_memory() -> Self {
        Stores::shared(Arc::new(InMemory::new()))
    }

    /// In a directory, which is created for its owner alone. Every file is synced before its write is reported as done.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be created or opened.
    pub fn directory(root: &std::path::Path) -> Result<Self, StorageError> {
        let unavailable = |problem: &dyn std::fmt::Display| {
            StorageError::new(ErrorKind::Unavailable, root.display(), problem)
        };
        let mut directory = std::fs::DirBuilder::new();
        directory.recursive(true).mode(DIRECTORY_MODE);
        directory.create(root).map_err(|error| unavailable(&error))?;
        let store = LocalFileSystem::new_with_prefix(root).map_err(|error| unavailable(&error))?;
        Ok(Stores::shared(Arc::new(store.with_fsync(true))))
    }
}
