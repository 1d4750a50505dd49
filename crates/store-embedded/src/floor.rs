//! The physical limit of this store: the same log with the same group commit and nothing else. A bench compares the
//! store with it.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::directory::Directory;
use crate::error::OpenError;
use crate::files::Files;
use crate::log::{self, Log, Wanted};

/// Key of everything that is appended; nobody reads it.
const KEY: &[u8] = &[0];

/// A synced log without a store on it. What it holds is not read again.
pub struct SyncedLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    filling: Mutex<Filling>,
    to_writer: Condvar,
}

#[derive(Default)]
struct Filling {
    batch: Batch,
    waiting: Vec<oneshot::Sender<()>>,
    is_closing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Filling> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<(Batch, Vec<oneshot::Sender<()>>)> {
        let mut filling = self.lock();
        while filling.waiting.is_empty() {
            if filling.is_closing {
                return None;
            }
            filling = self.to_writer.wait(filling).unwrap_or_else(PoisonError::into_inner);
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
        let shared = Arc::new(Shared::default());
        let writing = Arc::clone(&shared);
        let writer = thread::Builder::new().name("segno-floor".to_owned()).spawn(move || {
            while let Some((mut batch, waiting)) = writing.next() {
                sequence += 1;
                if log.append(sequence, batch.record_mut()).is_err() {
                    // Whoever waits learns of it by the sender that goes away.
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
        self.shared.to_writer.notify_one();
        synced.await.is_ok()
    }
}

impl Drop for SyncedLog {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.to_writer.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
