//! A snapshot of the whole store: the rows of a checkpoint that is made for it. Nothing is held up meanwhile, and nothing
//! that happens later shows.
//!
//! A reader gets one also while nothing can be written, as on a full disk: the rows of the last checkpoint, with
//! what the log has beyond it. That is all that was ever acknowledged.

use std::sync::Arc;

use segno::store::ProviderError;
use tokio::sync::oneshot;

use crate::files::Files;
use crate::recovery::{self, Replayed};
use crate::refusal::Refusal;
use crate::shared::{Core, Shared};
use crate::view::View;

/// How often the log is read again because a checkpoint was made meanwhile, which frees what it covers.
const MAX_READS: u32 = 5;

/// The rows of one moment.
#[derive(Debug)]
pub struct Taken {
    pub view: Arc<View>,
    /// The moment.
    pub at_ms: u64,
}

impl Core {
    /// The rows of this moment. They are in a checkpoint when this returns.
    pub async fn take_snapshot(&self, operation: &'static str) -> Result<Taken, ProviderError> {
        self.wait_for_snapshot(operation).await?.map_err(|refusal| refusal.at(operation))
    }

    /// The rows of this moment, also while nothing can be written.
    pub async fn read_snapshot(
        &self,
        operation: &'static str,
        files: &Arc<dyn Files>,
    ) -> Result<Taken, ProviderError> {
        match self.wait_for_snapshot(operation).await? {
            Ok(taken) => Ok(taken),
            Err(_) if !self.lock().is_closing => self.read_log(operation, files),
            Err(refusal) => Err(refusal.at(operation)),
        }
    }

    /// Has a checkpoint made. A disk that is full is not waited for.
    async fn wait_for_snapshot(
        &self,
        operation: &'static str,
    ) -> Result<Result<Taken, Refusal>, ProviderError> {
        let mut taken = {
            let mut shared = self.lock();
            shared.check_open(operation)?;
            if let Some(refusal) = &shared.refusal {
                return Ok(Err(refusal.clone()));
            }
            let (answer, taken) = oneshot::channel();
            shared.snapshots.push(answer);
            Self::want_batch(&mut shared);
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
    fn read_log(&self, operation: &'static str, files: &Arc<dyn Files>) -> Result<Taken, ProviderError> {
        let at_ms = self.clock.now_ms();
        for _ in 0..MAX_READS {
            let (base, durable) = {
                let shared = self.lock();
                let state = &shared.state;
                (Arc::clone(state.tables.rows.base()), state.unsynced.durable())
            };
            match recovery::replay(files, Arc::clone(&base), durable, at_ms) {
                Ok(Replayed { tables, read, .. }) if read.last >= durable => {
                    return Ok(Taken { view: View::of(tables), at_ms });
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

    /// Has a checkpoint made for whoever asked while one was being made already.
    pub fn go_on_with_snapshots(&self) {
        let mut shared = self.lock();
        if !shared.snapshots.is_empty() {
            Self::want_batch(&mut shared);
        }
    }

    /// Has the writer write a batch, with which a checkpoint is made.
    fn want_batch(shared: &mut Shared) {
        // A batch is never empty.
        shared.state.touch();
        let sequence = shared.state.unsynced.want();
        // The writer is called for those who wait for the batch, so one of them must be there; the answer comes otherwise.
        drop(shared.outcome_of(sequence));
    }
}
