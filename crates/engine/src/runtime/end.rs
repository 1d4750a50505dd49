//! The commit that ends an execution, with the records that its code wants changed together with that.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::Stage;
use super::observer::Span;
use super::turn::{Stop, Turn};
use crate::epilogue::{Epilogue, MakeEpilogue};
use crate::failure::{self, Failure};
use crate::payload::Payload;
use crate::store::{AckOrchestrationItem, ErrorKind, ProviderError};
use crate::telemetry;

/// How often it is tried at once when others change the same records. Each try that fails is a change that went ahead.
const MAX_TRIES: u32 = 100;

/// After each so many tries in vain there is a warning: the records are shared by too many ends.
const WARN_EVERY: u32 = 10;

/// Pause when that was in vain, or when the code's wish could not be heard.
const PAUSE: Duration = Duration::from_secs(1);

impl Turn<'_> {
    /// Commits the end of an execution, with what its code wants written then.
    pub(super) async fn commit_with_epilogue(
        &self,
        turn: Arc<AckOrchestrationItem>,
        (make, outcome): (MakeEpilogue, Result<Payload, Failure>),
        span: Option<Box<Span>>,
    ) -> Result<(), Stop> {
        let instance = self.instance;
        for tries in 1..=MAX_TRIES {
            let Epilogue { writes, committed } = make_epilogue(&make, outcome.clone()).await?;
            let has_writes = !writes.is_empty();
            let mut turn = AckOrchestrationItem::clone(&turn);
            turn.records.extend(writes);
            match self.commit(Arc::new(turn), span.as_deref()).await {
                Err(error) if has_writes && error.kind() == ErrorKind::Conflict => {
                    metrics::counter!(telemetry::END_CONFLICTS).increment(1);
                    note_conflict(instance, tries, &error);
                    if self.shared.is_at(Stage::Releasing) {
                        let reason =
                            "the node stops, and the records of its end change all the time".to_owned();
                        return Err(Stop::NotHere { delay: Duration::ZERO, reason });
                    }
                }
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    committed.into_iter().for_each(|committed| committed());
                    return Ok(());
                }
            }
        }
        // Whoever changes the records makes progress, so nothing is wrong with this turn.
        let reason = "the records that belong to its end are changed by others all the time".to_owned();
        Err(Stop::NotHere { delay: PAUSE, reason })
    }
}

/// Logs a conflict: one is nothing to worry about, many are.
fn note_conflict(instance: &str, tries: u32, error: &ProviderError) {
    if tries.is_multiple_of(WARN_EVERY) {
        tracing::warn!(instance, tries, %error, "the end of an instance conflicts with other changes; trying again");
    } else {
        tracing::debug!(instance, tries, %error, "a record has changed; its end is written once more");
    }
}

async fn make_epilogue(make: &MakeEpilogue, outcome: Result<Payload, Failure>) -> Result<Epilogue, Stop> {
    // The call itself may panic too, not only what it returns.
    let made = AssertUnwindSafe(async { make(outcome).await }).catch_unwind().await;
    match made {
        Ok(Ok(epilogue)) => Ok(epilogue),
        // Nothing is wrong with the turn, whatever is wrong with what its code wants to be told.
        Ok(Err(error)) => Err(Stop::NotHere { delay: PAUSE, reason: error.to_string() }),
        Err(panic) => {
            let reason = failure::from_panic("what belongs to the end of the instance", &*panic).to_string();
            Err(Stop::Abandon { delay: PAUSE, reason })
        }
    }
}
