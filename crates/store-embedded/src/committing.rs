//! Operations that change rows: each runs on the state of this moment and is answered when what it depends on is durable.

use std::future::Future;

use segno::store::{ErrorKind, ProviderError};

use crate::refusal::Refusal;
use crate::shared::{Core, Shared};
use crate::state::State;
use crate::submitted::{IsQuiet, submit};
use crate::waiting::durable;

/// What came of trying an operation.
pub enum Tried<T, F> {
    Run(Result<T, ProviderError>),
    /// There is too much in memory already.
    Crowded(Box<F>),
}

pub type Ran<T, F> = Result<Tried<T, F>, ProviderError>;

impl Core {
    /// Runs an operation that may change rows, and answers when they are durable.
    ///
    /// It is tried before there is a future: one that held the operation would be as large as all that the operation
    /// carries, and there is one for every commit.
    pub fn commit<T, F>(
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

    /// The same for whoever is woken by something that follows from it: if what came of it is quiet, its caller need not be woken
    /// when it is durable. It may be all the same. Whoever awaits this alone may wait for ever.
    pub fn commit_quietly<T, F>(
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
            Err(leaving) => leaving.commit(caller),
        }
        async move {
            match submitted.await? {
                Tried::Run(output) => output,
                Tried::Crowded(change) => Box::pin(self.commit_when_there_is_room(operation, *change)).await,
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
        self.commit_alone(operation, change).await
    }

    /// The same, for an operation that cannot be left to others because it borrows something.
    pub async fn commit_alone<T, F>(&self, operation: &'static str, mut change: F) -> Result<T, ProviderError>
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
                Tried::Run(output) => {
                    durable(operation, outcome).await?;
                    return output;
                }
                Tried::Crowded(unchanged) => change = *unchanged,
            }
            self.wait_for_room().await.map_err(|refusal| refusal.at(operation).nothing_changed())?;
        }
    }

    /// Runs an operation if there is room for what it changes. Returns the batch that it depends on as well.
    pub fn run<T, F>(
        &self,
        shared: &mut Shared,
        now_ms: u64,
        operation: &'static str,
        change: F,
    ) -> (Ran<T, F>, Option<u64>)
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        if let Err(error) = shared.check_open(operation) {
            return (Err(error.nothing_changed()), None);
        }
        if let Some(refusal) = &shared.refusal {
            return (Err(refusal.at(operation).nothing_changed()), None);
        }
        if self.is_crowded(shared) {
            return (Ok(Tried::Crowded(Box::new(change))), None);
        }
        let state = &mut shared.state;
        state.advance(now_ms);
        let before = state.tables.batch.len();
        let output = change(state, now_ms);
        let batch = if state.tables.batch.len() > before {
            Some(state.unsynced.want())
        } else {
            // What changes nothing tells what it has seen, like a read: that somebody else was first, for example.
            state.unsynced.newest()
        };
        (Ok(Tried::Run(output)), batch)
    }

    /// Whether a checkpoint that is being made must end before more is taken in.
    fn is_behind(&self, shared: &Shared) -> bool {
        let rows = &shared.state.tables.rows;
        rows.is_frozen() && self.limits.is_crowded(rows.active(), &shared.tail)
    }

    /// Whether there is too much that is not written or not in a checkpoint.
    fn is_crowded(&self, shared: &Shared) -> bool {
        shared.state.tables.batch.len() > self.limits.max_batch_bytes || self.is_behind(shared)
    }

    /// Waits while there is too much that is not written or not in a checkpoint. A checkpoint that waits for room on the
    /// disk is not waited for.
    async fn wait_for_room(&self) -> Result<(), Refusal> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let shared = self.lock();
                if !self.is_crowded(&shared) || shared.refusal.is_some() || shared.is_closing {
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

/// The answer to an operation that ended in a panic while somebody else did it.
pub fn panicked(operation: &'static str) -> ProviderError {
    ProviderError::new(
        ErrorKind::Internal,
        operation,
        "the operation panicked; this is a defect of the store",
    )
}
