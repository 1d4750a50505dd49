//! Exchanges of workers: their numbers, and what became of an answer whose lease does not hold any
//! more.

use std::hash::Hash;
use std::time::Duration;

use axum::body::Bytes;
use segno::event::EventKind;
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno::work::Lease;
use segno::{Failure, Payload};

use super::Tenant;
use crate::problem::Refusal;
use crate::work::Exchange;

/// How long the end of an attempt, which is stored, is waited for to be in the history.
const WAIT_FOR_TURN: Duration = Duration::from_secs(5);

impl Tenant {
    /// The exchange that a request of a worker is for.
    ///
    /// # Errors
    /// `conflict` when the worker has used the number for another request.
    pub fn exchange(&self, (worker, number): (&str, u64), request: &impl Hash) -> Result<Exchange, Refusal> {
        self.resources().exchanges.open(&self.scope, (worker, number), request)
    }

    /// Runs a part of the current request to its end, whether or not its caller waits.
    ///
    /// # Errors
    /// Those of the work, and those of a server that stops.
    pub async fn detached(
        &self,
        work: impl Future<Output = Result<Bytes, Refusal>> + Send + 'static,
    ) -> Result<Bytes, Refusal> {
        self.app.detached.run(work).await?
    }

    /// Whether the attempt of a lease has ended with exactly this answer: a request whose answer
    /// was lost, with the node that took it, finds its lease gone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_ended_with(
        &self,
        lease: &str,
        answer: &Result<Payload, Failure>,
    ) -> Result<bool, Refusal> {
        let lease = self.opened(lease)?.lease;
        let (client, instance) = (&self.resources().client, lease.instance.as_str());
        let refused = |error: segno::Error| self.refused(error);
        // Read before the history, so that no change is missed.
        let Ok(seen) = client.instance(instance).await else { return Ok(false) };
        if let Some(is_same) = self.recorded_end(&lease, answer).await? {
            return Ok(is_same);
        }
        let queued = client.queued_activities(instance).await.map_err(refused)?;
        let named = (lease.execution_id, lease.activity_id);
        let is_queued = queued.iter().any(|one| (one.execution_id, one.activity_id) == named);
        if is_queued || seen.has_ended() {
            return Ok(false);
        }
        // Its end is stored as a message that no turn has read yet.
        match client.wait_for_revision(instance, seen.revision, WAIT_FOR_TURN).await {
            Ok(_) => Ok(self.recorded_end(&lease, answer).await?.unwrap_or(false)),
            Err(error) if error.code() == segno::Code::WaitTimedOut => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }

    /// Whether the end of an attempt, as its history has it, is this answer; `None` when the
    /// history has no end of it.
    async fn recorded_end(
        &self,
        lease: &Lease,
        answer: &Result<Payload, Failure>,
    ) -> Result<Option<bool>, Refusal> {
        let query = HistoryQuery {
            instance_id: lease.instance.clone(),
            execution_id: lease.execution_id,
            after_event_id: lease.activity_id,
            limit: MAX_PAGE_ROWS,
        };
        let page = match self.resources().client.history_page(query).await {
            Ok(page) => page,
            Err(error) if error.code() == segno::Code::NotFound => return Ok(None),
            Err(error) => return Err(self.refused(error)),
        };
        Ok(page.events.iter().find_map(|event| ends_as(&event.kind, lease, answer)))
    }
}

/// Whether an event that ends an attempt has this answer; `None` for one that does not end it.
fn ends_as(event: &EventKind, lease: &Lease, answer: &Result<Payload, Failure>) -> Option<bool> {
    match event {
        EventKind::ActivityCompleted { source, result } if *source == lease.activity_id => {
            Some(answer.as_ref().is_ok_and(|own| own.as_str() == result.as_str()))
        }
        EventKind::ActivityAttemptFailed { source, attempt, failure, .. }
        | EventKind::ActivityFailed { source, attempt, failure }
            if (*source, *attempt) == (lease.activity_id, lease.attempt) =>
        {
            Some(answer.as_ref().is_err_and(|own| own.code == failure.code && own.message == failure.message))
        }
        _ => None,
    }
}
