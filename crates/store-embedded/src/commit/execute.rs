//! Operations that change rows: each runs on the current state and is answered when the batch that it
//! depends on is durable.

use std::future::Future;

use segno::store::{ErrorKind, ProviderError};

use crate::commit::refusal::Refusal;
use crate::commit::shared::{Core, Shared};
use crate::commit::submission::{IsQuiet, submit};
use crate::commit::waiting::durable;
use crate::state::machine::State;

/// The outcome of an operation.
pub(crate) enum CommitOutcome<T, F> {
    Run(Result<T, ProviderError>),
    /// Backpressure: too many changes are not written yet, so the operation has to wait.
    Backpressure(Box<F>),
}

pub(crate) type CommitResult<T, F> = Result<CommitOutcome<T, F>, ProviderError>;

impl Core {
    /// Runs an operation that may change rows. Resolves when the changes are durable.
    ///
    /// The operation is submitted before there is a future: a future that contained it would be as large
    /// as all its data, and there is one for every commit.
    pub(crate) fn commit<T, F>(
        &self,
        operation: &'static str,
        change: F,
    ) -> impl Future<Output = Result<T, ProviderError>>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
        T: Send + 'static,
    {
        self.commit_quietly(operation, |_| false, change)
    }

    /// The same for a caller that a consequence of the commit wakes: if the result is quiet, the caller is
    /// not necessarily woken when it is durable. A caller that awaits nothing else may wait for ever.
    pub(crate) fn commit_quietly<T, F>(
        &self,
        operation: &'static str,
        is_quiet: IsQuiet<T>,
        change: F,
    ) -> impl Future<Output = Result<T, ProviderError>>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
        T: Send + 'static,
    {
        let (caller, submitted) = submit(operation, is_quiet, change);
        match self.try_lock() {
            Ok(mut shared) => caller.run(self, &mut shared, self.clock.now_ms()),
            Err(delegation) => delegation.commit(caller),
        }
        async move {
            match submitted.await? {
                CommitOutcome::Run(output) => output,
                CommitOutcome::Backpressure(change) => {
                    Box::pin(self.commit_when_there_is_room(operation, *change)).await
                }
            }
        }
    }

    async fn commit_when_there_is_room<T, F>(
        &self,
        operation: &'static str,
        change: F,
    ) -> Result<T, ProviderError>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        self.wait_for_room().await.map_err(|refusal| refusal.at(operation).nothing_changed())?;
        self.commit_here(operation, change).await
    }

    /// The same, for an operation that cannot be delegated because it borrows something.
    pub(crate) async fn commit_here<T, F>(
        &self,
        operation: &'static str,
        mut change: F,
    ) -> Result<T, ProviderError>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        loop {
            let (ran, outcome) = {
                let mut shared = self.lock();
                let (ran, batch) = self.run(&mut shared, self.clock.now_ms(), operation, change);
                (ran, batch.and_then(|sequence| shared.outcome_of(sequence)))
            };
            match ran? {
                CommitOutcome::Run(output) => {
                    durable(operation, outcome).await?;
                    return output;
                }
                CommitOutcome::Backpressure(unchanged) => change = *unchanged,
            }
            self.wait_for_room().await.map_err(|refusal| refusal.at(operation).nothing_changed())?;
        }
    }

    /// Runs an operation if there is room for its changes. Also returns the batch that it depends on.
    pub(crate) fn run<T, F>(
        &self,
        shared: &mut Shared,
        now_ms: u64,
        operation: &'static str,
        change: F,
    ) -> (CommitResult<T, F>, Option<u64>)
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        if let Err(error) = shared.check_open(operation) {
            return (Err(error.nothing_changed()), None);
        }
        if let Some(refusal) = &shared.refusal {
            return (Err(refusal.at(operation).nothing_changed()), None);
        }
        if self.is_overloaded(shared) {
            return (Ok(CommitOutcome::Backpressure(Box::new(change))), None);
        }
        let state = &mut shared.state;
        state.advance(now_ms);
        let before = state.tables.batch.len();
        let output = change(state, now_ms);
        let batch = if state.tables.batch.len() > before {
            Some(state.pending.request_write())
        } else {
            // An operation without changes reports what it has read, for example that another caller was
            // first.
            state.pending.newest()
        };
        (Ok(CommitOutcome::Run(output)), batch)
    }

    /// Whether the current checkpoint must end before more changes are accepted.
    fn is_behind(&self, shared: &Shared) -> bool {
        let rows = &shared.state.tables.rows;
        rows.is_frozen() && self.limits.is_overloaded(rows.active(), &shared.tail)
    }

    /// Whether too many changes are not written or not in a checkpoint.
    fn is_overloaded(&self, shared: &Shared) -> bool {
        shared.state.tables.batch.len() > self.limits.max_batch_bytes || self.is_behind(shared)
    }

    /// Waits while too many changes are not written or not in a checkpoint. Fails if the checkpoint itself
    /// waits for room on the disk.
    async fn wait_for_room(&self) -> Result<(), Refusal> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let shared = self.lock();
                if !self.is_overloaded(&shared) || shared.refusal.is_some() || shared.is_closing {
                    return Ok(());
                }
                if let Some(refusal) = self.full_disk.refused().filter(|_| self.is_behind(&shared)) {
                    return Err(refusal);
                }
            }
            room.await;
        }
    }
}

/// The error of an operation that panicked under the lock of another caller.
pub(crate) fn panicked(operation: &'static str) -> ProviderError {
    ProviderError::new(
        ErrorKind::Internal,
        operation,
        "the operation panicked; this is a defect of the store",
    )
}
