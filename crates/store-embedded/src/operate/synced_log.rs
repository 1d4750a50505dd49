//! The physical limit of this store: the same log with the same group commit and nothing else, for
//! comparison in benchmarks.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::error::OpenError;
use crate::log::batch::Batch;
use crate::log::{self, Log, Wanted};

/// Key of everything that is appended; it is never read.
const KEY: &[u8] = &[0];

/// A synced log without a store on it. What it holds is not read again.
pub struct SyncedLog {
    shared: Arc<SharedLog>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SharedLog {
    filling: Mutex<Filling>,
    writer_signal: Condvar,
}

#[derive(Default)]
struct Filling {
    batch: Batch,
    waiting: Vec<oneshot::Sender<()>>,
    is_closing: bool,
}

impl SharedLog {
    fn lock(&self) -> MutexGuard<'_, Filling> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<(Batch, Vec<oneshot::Sender<()>>)> {
        let mut filling = self.lock();
        while filling.waiting.is_empty() {
            if filling.is_closing {
                return None;
            }
            filling = self.writer_signal.wait(filling).unwrap_or_else(PoisonError::into_inner);
        }
        Some((std::mem::take(&mut filling.batch), std::mem::take(&mut filling.waiting)))
    }
}

impl SyncedLog {
    /// Starts a log in a directory of its own.
    ///
    /// # Errors
    /// When the directory is not accessible.
    pub fn open(path: impl AsRef<Path>) -> Result<SyncedLog, OpenError> {
        let files: Arc<dyn Files> = Arc::new(Directory::new(path)?);
        let everything = Wanted { covered: 0, up_to: u64::MAX, anchor: None };
        let read = log::read(&files, everything, |_| Ok(()))?;
        let mut sequence = read.last;
        let mut log = Log::start(&files, read)?;
        let shared = Arc::new(SharedLog::default());
        let writing = Arc::clone(&shared);
        let writer = thread::Builder::new().name("segno-floor".to_owned()).spawn(move || {
            while let Some((mut batch, waiting)) = writing.next() {
                sequence += 1;
                if log.append(sequence, batch.record_mut()).is_err() {
                    // The callers detect it, because their senders are dropped.
                    return;
                }
                for caller in waiting {
                    let _ = caller.send(());
                }
            }
        })?;
        Ok(SyncedLog { shared, writer: Some(writer) })
    }

    /// Appends bytes and waits until they are durable; `false` when the disk refused.
    pub async fn append(&self, bytes: &[u8]) -> bool {
        let (answer, synced) = oneshot::channel();
        {
            let mut filling = self.shared.lock();
            filling.batch.put(KEY, bytes);
            filling.waiting.push(answer);
        }
        self.shared.writer_signal.notify_one();
        synced.await.is_ok()
    }
}

impl Drop for SyncedLog {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.writer_signal.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
