//! A full disk: the checkpoint thread waits inside the write that found no room, and retries it. redb
//! gets no error, so its file stays usable and reads continue. Commits continue as long as the log has
//! room.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::commit::refusal::Refusal;

/// Whether a write failed for lack of room: on the disk, in the quota of its owner, or within the
/// limit of file sizes of the process.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The pause grows to this many times the first one.
const LONGEST_PAUSES: u32 = 8;

/// Whether to wait for room, and whether a write does.
#[derive(Debug)]
pub(crate) struct FullDisk {
    pause: Duration,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Told when there may be room for changes in memory, or when there will not be for now.
    pub(crate) room: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Whether a write that finds no room waits; else it fails.
    is_patient: bool,
    /// That no write is taken, while one waits.
    refused: Option<Refusal>,
}

impl FullDisk {
    /// Writes fail until [`Self::be_patient`].
    pub(crate) fn new(pause: Duration) -> Arc<Self> {
        Arc::new(FullDisk {
            pause,
            waiting: Mutex::default(),
            changed: Condvar::new(),
            room: Arc::new(Notify::new()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, writes wait for room.
    pub(crate) fn be_patient(&self) {
        self.lock().is_patient = true;
    }

    /// From now on, writes fail when there is no room; those that wait do so at once.
    pub(crate) fn give_up(&self) {
        self.lock().is_patient = false;
        self.changed.notify_all();
    }

    /// Why a write waits now.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.lock().refused.clone()
    }

    /// Does something until the disk has room for it.
    pub(crate) fn retry<T>(&self, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut pause = self.pause;
        loop {
            let error = match attempt() {
                Err(error) if is_full(&error) => error,
                other => {
                    if pause > self.pause {
                        self.lock().refused = None;
                        tracing::info!("the disk has room again; the checkpoint goes on");
                    }
                    return other;
                }
            };
            let mut waiting = self.lock();
            if waiting.refused.is_none() && waiting.is_patient {
                tracing::warn!(%error, "the disk is full; the checkpoint waits until there is room");
                waiting.refused = Some(Refusal::full(&error));
                self.room.notify_waiters();
            }
            let waits = |waiting: &mut Waiting| waiting.is_patient;
            let waited = self.changed.wait_timeout_while(waiting, pause, waits);
            let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !waiting.is_patient {
                waiting.refused = None;
                return Err(error);
            }
            pause = (pause * 2).min(self.pause * LONGEST_PAUSES);
        }
    }
}
