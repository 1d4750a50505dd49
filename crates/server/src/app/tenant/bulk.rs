//! One change for many instances of a tenant.

use std::time::Duration;

use segno::client::{Bulk, BulkObstacle, BulkPreview, BulkResult};
use segno::clock;
use segno::store::InstanceQuery;

use super::reserved::is_reserved;
use super::{InstanceFilter, Restarting, Tenant};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::trace::TraceContext;

/// After this time a bulk call begins nothing more, so that it is answered within the time of a request.
const BULK_TIME: Duration = Duration::from_secs(15);

/// Which instances, in the caller's ids.
pub enum BulkTarget {
    /// All that match.
    Matching(InstanceFilter),
    /// These, in their order, from the one after `after` on.
    Ids {
        /// Their ids.
        ids: Vec<String>,
        /// The last id that the call before came to.
        after: Option<String>,
        /// At most this many.
        limit: usize,
    },
}

/// What is done to many instances.
pub enum BulkChange {
    /// They are counted, with those that the change would reach.
    Count(BulkPreview),
    /// They are cancelled.
    Cancel {
        /// Why.
        reason: String,
    },
    /// They are paused.
    Pause {
        /// Why.
        reason: String,
    },
    /// They are resumed.
    Resume,
    /// They are deleted.
    Delete {
        /// Also those that have not ended.
        force: bool,
    },
    /// Their next executions begin.
    Restart {
        /// Also of those that have not ended.
        force: bool,
        /// What makes each restart the same when the request is repeated.
        repeat: RepeatSafe,
        /// The caller's trace.
        trace: TraceContext,
    },
    /// Their delayed activities run at once.
    Retry,
}

/// Why a call ended before it came to all instances.
enum Ended {
    Engine(segno::Error),
    Refused(Box<Refusal>),
}

impl From<segno::Error> for Ended {
    fn from(error: segno::Error) -> Self {
        Ended::Engine(error)
    }
}

impl Tenant {
    /// Does one thing to all instances that match or are named, at most as many as the target says.
    ///
    /// # Errors
    /// Those of the engine, and `invalid-request` for a cursor that is none of the ids.
    pub async fn bulk(&self, target: BulkTarget, change: BulkChange) -> Result<BulkResult, Refusal> {
        let clock = self.app.clock.clone();
        let until_ms = clock.now_ms().saturating_add(clock::duration_ms(BULK_TIME));
        let is_time_up = move || clock.now_ms() >= until_ms;
        let scope = self.scope.clone();
        // Batches and runs decide about their calls.
        let is_reserved = move |id: &str| scope.shown(id).is_some_and(is_reserved);
        let bulk = self.bulk_on(target).until(is_time_up).passing_over(is_reserved);
        let done = match change {
            BulkChange::Count(preview) => bulk.count(preview).await,
            BulkChange::Cancel { reason } => bulk.cancel(&reason).await,
            BulkChange::Pause { reason } => bulk.pause(&reason).await,
            BulkChange::Resume => bulk.resume().await,
            BulkChange::Delete { force } => bulk.delete(force).await,
            BulkChange::Retry => bulk.retry().await,
            BulkChange::Restart { force, repeat, trace } => {
                let restart = |stored: String| self.restart_one(stored, force, &repeat, trace.clone());
                match bulk.apply(restart).await {
                    Err(Ended::Refused(refusal)) => return Err(*refusal),
                    Err(Ended::Engine(error)) => Err(error),
                    Ok(done) => Ok(done),
                }
            }
        };
        let done = done.map_err(|error| match error.code() {
            // Its limit was checked before: what is left to be wrong is the cursor.
            segno::Code::InvalidOption => Refusal::broken_cursor(),
            _ => self.refused(error),
        })?;
        let shown = |id: String| self.shown_instance(Some(&id));
        let left = done.left_sample.into_iter();
        Ok(BulkResult {
            next: self.next(done.next),
            sample: done.sample.into_iter().filter_map(shown).collect(),
            left_sample: left.filter_map(|(id, obstacle)| Some((shown(id)?, obstacle))).collect(),
            ..done
        })
    }

    fn bulk_on(&self, target: BulkTarget) -> Bulk {
        let client = &self.resources().client;
        match target {
            BulkTarget::Matching(filter) => {
                let limit = filter.limit;
                client.bulk(InstanceQuery { limit: 0, ..self.query(filter) }).limit(limit)
            }
            BulkTarget::Ids { ids, after, limit } => {
                let ids = ids.iter().map(|id| self.stored(id)).collect();
                client.bulk_of(ids, after.map(|after| self.stored(&after))).limit(limit)
            }
        }
    }

    /// Restarts one of many. A repetition of the request finds what its first try began.
    async fn restart_one(
        &self,
        stored: String,
        force: bool,
        repeat: &RepeatSafe,
        trace: TraceContext,
    ) -> Result<Option<BulkObstacle>, Ended> {
        let Some(id) = self.shown_instance(Some(&stored)) else { return Ok(Some(BulkObstacle::Gone)) };
        let request_id = repeat.uuid_for(&id);
        let restarting = Restarting { force, request_id, input: None };
        match self.restart(&id, restarting, trace).await {
            Ok(()) => Ok(None),
            Err(refusal) => match obstacle_of(&refusal) {
                Some(obstacle) => Ok(Some(obstacle)),
                None => Err(Ended::Refused(Box::new(refusal))),
            },
        }
    }
}

/// What a refused restart says of the instance; `None` if it is about more than that.
fn obstacle_of(refusal: &Refusal) -> Option<BulkObstacle> {
    use segno::Code::{InstanceEnded, InstanceRunning, NotFound, StoredDataUnreadable};
    let code = refusal.code();
    let known = [
        (InstanceRunning, BulkObstacle::Running),
        (InstanceEnded, BulkObstacle::Ended),
        (NotFound, BulkObstacle::Gone),
        (StoredDataUnreadable, BulkObstacle::Unreadable),
    ];
    let known = known.into_iter().find(|(of, _)| of.as_str() == code).map(|(_, obstacle)| obstacle);
    known.or_else(|| {
        let is_busy = refusal.status() == axum::http::StatusCode::TOO_MANY_REQUESTS;
        (refusal.status().is_client_error() && !is_busy).then_some(BulkObstacle::Refused)
    })
}
