//! A snapshot of the whole store: the rows of a checkpoint that is made for it. It blocks no
//! operation, and later changes are not visible in it.
//!
//! While the store cannot write, for example on a full disk, a snapshot has the rows of the last
//! checkpoint and the log beyond it: everything that was ever acknowledged.

use std::sync::Arc;

use segno::store::ProviderError;
use tokio::sync::oneshot;

use crate::checkpoint::recovery::{self, Replayed};
use crate::commit::refusal::Refusal;
use crate::commit::shared::{Core, Shared};
use crate::disk::files::Files;
use crate::rows::view::View;

/// Most reads of the log: a checkpoint that is made meanwhile frees segments that are being read.
const MAX_READS: u32 = 5;

/// The rows of one moment.
#[derive(Debug)]
pub(crate) struct StoreSnapshot {
    pub(crate) view: Arc<View>,
    /// The moment.
    pub(crate) at_ms: u64,
}

impl Core {
    /// The rows of this moment. They are in a checkpoint when this returns.
    pub(crate) async fn take_snapshot(
        &self,
        operation: &'static str,
    ) -> Result<StoreSnapshot, ProviderError> {
        self.wait_for_snapshot(operation).await?.map_err(|refusal| refusal.at(operation))
    }

    /// The rows of this moment, also while the store cannot write.
    pub(crate) async fn read_snapshot(
        &self,
        operation: &'static str,
        files: &Arc<dyn Files>,
    ) -> Result<StoreSnapshot, ProviderError> {
        match self.wait_for_snapshot(operation).await? {
            Ok(taken) => Ok(taken),
            Err(_) if !self.lock().is_closing => self.read_log(operation, files),
            Err(refusal) => Err(refusal.at(operation)),
        }
    }

    /// Requests a checkpoint. Does not wait for a full disk.
    async fn wait_for_snapshot(
        &self,
        operation: &'static str,
    ) -> Result<Result<StoreSnapshot, Refusal>, ProviderError> {
        let mut taken = {
            let mut shared = self.lock();
            shared.check_open(operation)?;
            if let Some(refusal) = &shared.refusal {
                return Ok(Err(refusal.clone()));
            }
            let (answer, taken) = oneshot::channel();
            shared.snapshots.push(answer);
            Self::request_batch(&mut shared);
            taken
        };
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(refusal) = self.full_disk.refused() {
                return Ok(Err(refusal));
            }
            tokio::select! {
                biased;
                taken = &mut taken => {
                    let refused = |_| self.lock().refusal.clone().unwrap_or_else(Refusal::closed);
                    return Ok(taken.map_err(refused));
                }
                () = changed => {}
            }
        }
    }

    /// The rows of the last checkpoint, with every commit behind it that is durable. Writes nothing.
    fn read_log(
        &self,
        operation: &'static str,
        files: &Arc<dyn Files>,
    ) -> Result<StoreSnapshot, ProviderError> {
        let at_ms = self.clock.now_ms();
        for _ in 0..MAX_READS {
            let (base, durable) = {
                let shared = self.lock();
                let state = &shared.state;
                (Arc::clone(state.tables.rows.base()), state.pending.durable())
            };
            match recovery::replay(files, Arc::clone(&base), durable, at_ms) {
                Ok(Replayed { tables, read, .. }) if read.last >= durable => {
                    return Ok(StoreSnapshot { view: View::of(tables), at_ms });
                }
                replayed => {
                    let is_last = Arc::ptr_eq(&base, self.lock().state.tables.rows.base());
                    if let (true, Err(error)) = (is_last, replayed) {
                        return Err(error.at(operation));
                    }
                }
            }
        }
        Err(ProviderError::unavailable(operation, "the log changed while it was read; try again"))
    }

    /// Requests a checkpoint for snapshots that were requested during the previous one.
    pub(crate) fn continue_snapshots(&self) {
        let mut shared = self.lock();
        if !shared.snapshots.is_empty() {
            Self::request_batch(&mut shared);
        }
    }

    /// Requests a batch, with which a checkpoint is made.
    fn request_batch(shared: &mut Shared) {
        // A batch is never empty.
        shared.state.touch();
        let sequence = shared.state.pending.request_write();
        // The writer is notified only if a caller waits for the batch. The snapshot itself is answered
        // by the checkpoint.
        drop(shared.outcome_of(sequence));
    }
}
