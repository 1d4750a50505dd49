//! The store itself: its directory's lock, its shared core and its two threads.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use crate::directory::Directory;
use crate::error::OpenError;
use crate::files::Files;
use crate::options::OpenOptions;
use crate::recovery::{Recovered, recover};
use crate::shared::Core;
use crate::{checkpointer, writer};

/// The embedded store: one directory, one process; acknowledged means synced.
///
/// It is closed by [`EmbeddedStore::close`] or with its last handle, which waits for the batch and the checkpoint that
/// are being written. Nothing else needs to be saved: a store that is killed opens as one that was closed.
pub struct EmbeddedStore {
    core: Arc<Core>,
    running: Mutex<Option<Running>>,
}

/// What ends when the store is closed.
struct Running {
    threads: [JoinHandle<()>; 2],
    /// The lock of the directory.
    lock: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").finish_non_exhaustive()
    }
}

impl EmbeddedStore {
    /// Opens the store in a directory, or makes it.
    ///
    /// # Errors
    /// When the directory is in use, damaged, of an unknown format, or not accessible.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<EmbeddedStore>, OpenError> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the store in a directory, or makes it, with settings.
    ///
    /// # Errors
    /// When the directory is in use, damaged, of an unknown format, or not accessible.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Arc<EmbeddedStore>, OpenError> {
        let files: Arc<dyn Files> = match options.files {
            Some(files) => files,
            None => Arc::new(Directory::new(path)?),
        };
        let lock = files.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse(error.to_string()),
            _ => OpenError::Io(error),
        })?;
        let Recovered { state, base, log, is_filling } =
            recover(&files, options.clock.now_ms(), options.unfinished_import)?;
        let core = Arc::new(Core::new(state, options.clock, options.limits));
        core.lock().is_filling = is_filling;
        let segments = Arc::clone(log.segments());
        // One at a time: nothing is frozen while a checkpoint is being made.
        let (to_checkpointer, checkpoints) = mpsc::sync_channel(1);
        let checkpointing = Arc::clone(&core);
        let checkpointer = thread::Builder::new()
            .name("segno-checkpointer".to_owned())
            .spawn(move || checkpointer::run(&checkpointing, &base, &segments, &checkpoints))?;
        let writing = Arc::clone(&core);
        let writer = thread::Builder::new()
            .name("segno-writer".to_owned())
            .spawn(move || writer::run(&writing, log, &to_checkpointer))?;
        let running = Mutex::new(Some(Running { threads: [writer, checkpointer], lock }));
        Ok(Arc::new(EmbeddedStore { core, running }))
    }

    /// Closes the store, whoever else has a handle: the directory can be opened again, and every later call on this
    /// one fails with `Closed`. Blocks until what is being written is written.
    pub fn close(&self) {
        self.core.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { threads, lock }) = running {
            for thread in threads {
                // A thread that panicked has said so already.
                let _ = thread.join();
            }
            // Nobody is left to take one.
            self.core.lock().snapshots.clear();
            drop(lock);
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.close();
    }
}
