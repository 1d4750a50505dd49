//! A snapshot of the whole store: the rows of a checkpoint that is made for it. Nothing is held up meanwhile, and nothing
//! that happens later shows.

use segno::store::ProviderError;
use tokio::sync::oneshot;

use crate::refusal::Refusal;
use crate::shared::{Core, Shared};
use crate::stored::Snapshot;

/// The rows of one moment.
#[derive(Debug)]
pub struct Taken {
    pub rows: Snapshot,
    /// The moment.
    pub at_ms: u64,
}

impl Core {
    /// The rows of this moment.
    pub async fn take_snapshot(&self, operation: &'static str) -> Result<Taken, ProviderError> {
        let taken = {
            let mut shared = self.lock();
            shared.check_open(operation)?;
            if let Some(refusal) = &shared.refusal {
                return Err(refusal.at(operation));
            }
            let (answer, taken) = oneshot::channel();
            shared.snapshots.push(answer);
            Self::want_batch(&mut shared);
            taken
        };
        taken.await.map_err(|_| {
            let refusal = self.lock().refusal.clone();
            refusal.unwrap_or_else(Refusal::closed).at(operation)
        })
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
