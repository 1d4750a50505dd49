//! A snapshot of the whole store: the rows of a checkpoint that is made for it. Nothing is held up meanwhile, and nothing
//! that happens later shows.

use segno::store::ProviderError;
use tokio::sync::oneshot;

use crate::base::Snapshot;
use crate::shared::{Core, Refusal};

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
            // A batch is never empty.
            shared.state.touch();
            shared.state.unsynced.want();
            self.call_writer(&mut shared);
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
            shared.state.touch();
            shared.state.unsynced.want();
            self.call_writer(&mut shared);
        }
    }
}
