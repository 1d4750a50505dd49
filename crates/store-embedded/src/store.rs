//! The store itself: its directory's lock, its shared core and its two threads.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use segno::store::ProviderError;
use tokio::sync::oneshot;

use crate::checkpoint::checkpointer::{Checkpointer, CheckpointerOrder, CompactOrder};
use crate::checkpoint::compaction::{CompactProgress, CompactReport};
use crate::checkpoint::recovery::{Recovered, recover};
use crate::commit::refusal::Refusal;
use crate::commit::shared::Core;
use crate::commit::writer;
use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::OpenError;
use crate::operate::control::ControlServer;
use crate::operate::fill_marker::{self, Marker};
use crate::options::{ControlSocket, OpenOptions, UnfinishedImport};

/// Capacity of the queue of the checkpointer: one checkpoint and some requests to compact.
const MAX_ORDERS: usize = 4;

/// The embedded store: one directory, one process; acknowledged means synced.
///
/// It is closed by [`EmbeddedStore::close`] or with its last handle, which waits for the batch that is being written and
/// makes a last checkpoint. Nothing needs to be saved: a store that is killed opens as one that was closed, after
/// reading again what the log has beyond the last checkpoint.
pub struct EmbeddedStore {
    core: Arc<Core>,
    files: Arc<dyn Files>,
    running: Mutex<Option<Threads>>,
    /// Of a directory that is being filled.
    marker: Mutex<Marker>,
}

/// What ends when the store is closed.
struct Threads {
    threads: [JoinHandle<()>; 2],
    /// Answers other processes.
    control: Option<ControlServer>,
    /// The lock of the directory.
    lock: Box<dyn Any + Send + Sync>,
    /// To the checkpointer, which ends when all senders are dropped.
    orders: SyncSender<CheckpointerOrder>,
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
        let path = path.as_ref();
        Self::open_directory(path, options).map_err(|error| error.in_directory(path))
    }

    fn open_directory(path: &Path, options: OpenOptions) -> Result<Arc<EmbeddedStore>, OpenError> {
        let is_listening = options.files.is_none() && options.control_socket == ControlSocket::Listen;
        let files: Arc<dyn Files> = match options.files {
            Some(files) => files,
            None => Arc::new(Directory::new(path)?),
        };
        let (lock, marker) = lock(&files, options.unfinished_import)?;
        let full_disk = FullDisk::new(options.limits.retry_full_disk_after);
        let now_ms = options.clock.now_ms();
        let Recovered { state, tail, base, log, is_filling, damage } =
            recover(&files, &full_disk, now_ms, options.unfinished_import)?;
        full_disk.be_patient();
        let core = Arc::new(Core::new((state, tail, damage), options.clock, options.limits, full_disk));
        // What is marked is not kept if the import does not finish, so nothing else is taken.
        core.lock().is_filling = is_filling || marker.is_there();
        let segments = Arc::clone(log.segments());
        // One checkpoint at a time, because nothing is frozen while one is being made, and a few requests to compact.
        let (orders, to_do) = mpsc::sync_channel(MAX_ORDERS);
        let checkpointer = Checkpointer {
            core: Arc::clone(&core),
            files: Arc::clone(&files),
            segments,
            base,
            replaced: Vec::new(),
        };
        let checkpointer = thread::Builder::new()
            .name("segno-checkpointer".to_owned())
            .spawn(move || checkpointer.run(&to_do))?;
        let to_checkpointer = SyncSender::clone(&orders);
        let writing = Arc::clone(&core);
        let writer = thread::Builder::new()
            .name("segno-writer".to_owned())
            .spawn(move || writer::run(&writing, log, &to_checkpointer))?;
        let control = is_listening.then(|| listen(path, &core, &files)).flatten();
        let threads = [writer, checkpointer];
        let running = Mutex::new(Some(Threads { threads, control, lock, orders }));
        Ok(Arc::new(EmbeddedStore { core, files, running, marker: Mutex::new(marker) }))
    }

    /// Closes the store, also for other handles: the directory can be opened again, and every later call on this
    /// one fails with `Closed`. Blocks until what is being written is written.
    pub fn close(&self) {
        self.core.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Threads { threads, control, lock, orders }) = running {
            drop(orders);
            for thread in threads {
                // A thread that panicked has printed its message.
                let _ = thread.join();
            }
            // No thread is left for an order, or for the commit that a caller waits for.
            let mut shared = self.core.lock();
            shared.snapshots.clear();
            shared.state.watches.clear();
            drop(shared);
            drop(control);
            drop(lock);
        }
    }

    /// Releases unused disk space now, while the store is in use. It happens automatically when less than half of the
    /// state file is in use; this is for those who know better. `progress` is called again and again.
    ///
    /// # Errors
    /// When the store is closed, when another request replaces this one, or when the disk refuses; with too little room for
    /// the copy nothing changes.
    pub async fn compact(
        &self,
        progress: impl FnMut(CompactProgress) + Send + 'static,
    ) -> Result<CompactReport, ProviderError> {
        const OPERATION: &str = "compact";
        // What is still in memory may be what frees the space.
        self.core.checkpoint().await.map_err(|refusal| refusal.at(OPERATION))?;
        let (answer, report) = oneshot::channel();
        let order = CheckpointerOrder::Compact(CompactOrder { progress: Box::new(progress), answer });
        {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let running = running.as_ref().ok_or_else(|| Refusal::closed().at(OPERATION))?;
            let busy = |_| ProviderError::unavailable(OPERATION, "the checkpointer is busy; try again later");
            running.orders.try_send(order).map_err(busy)?;
        }
        let given_up = || Err("it was interrupted; try again".to_owned());
        let report = report.await.unwrap_or_else(|_| given_up());
        report.map_err(|error| ProviderError::unavailable(OPERATION, error))
    }

    /// An import is whole and durable: the directory is a store from now on.
    pub(crate) fn remove_marker(&self) -> std::io::Result<()> {
        self.marker.lock().unwrap_or_else(PoisonError::into_inner).remove()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }
}

/// The lock of a directory, and its marker if it is to be filled.
fn lock(
    files: &Arc<dyn Files>,
    unfinished: UnfinishedImport,
) -> Result<(Box<dyn Any + Send + Sync>, Marker), OpenError> {
    let lock = || files.lock().map_err(OpenError::of_lock);
    match unfinished {
        UnfinishedImport::Refuse => {
            // Before its lock, as below.
            fill_marker::refuse_foreign(&**files)?;
            let lock = lock()?;
            fill_marker::refuse_unfinished(&**files)?;
            Ok((lock, Marker::none()))
        }
        UnfinishedImport::Accept(by) => {
            // Before its lock, which is a file in a directory that may be of others.
            fill_marker::target(&**files, by)?;
            Ok((lock()?, fill_marker::begin(files, by)?))
        }
    }
}

/// A store that cannot listen works all the same.
fn listen(path: &Path, core: &Arc<Core>, files: &Arc<dyn Files>) -> Option<ControlServer> {
    match ControlServer::start(path, Arc::clone(core), Arc::clone(files)) {
        Ok(control) => Some(control),
        Err(error) => {
            tracing::warn!(%error, "no control socket: other processes cannot ask this store");
            None
        }
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.close();
    }
}
