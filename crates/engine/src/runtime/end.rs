//! The commit that ends an instance, with its epilogue: the records that change together with the
//! end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::Stage;
use super::observer::ExecutionSpan;
use super::turn::{Turn, TurnError};
use crate::epilogue::{Epilogue, MakeEpilogue};
use crate::failure::{self, Failure};
use crate::payload::Payload;
use crate::store::{AckOrchestrationItem, ErrorKind, ProviderError};
use crate::telemetry;

/// How often the commit is tried at once when others change the same records. Each conflict is a
/// change that succeeded.
const MAX_TRIES: u32 = 100;

/// After each so many conflicts there is a warning: too many ends share the records.
const WARN_EVERY: u32 = 10;

/// Delay before the redelivery when all tries had conflicts, or when the epilogue could not be
/// made.
const REDELIVERY: Duration = Duration::from_secs(1);

/// Commits the end of an instance with its epilogue. The epilogue is made anew for every try.
pub(super) async fn commit(
    turn: &Turn<'_>,
    ack: Arc<AckOrchestrationItem>,
    (make, outcome): (MakeEpilogue, Result<Payload, Failure>),
    span: Option<Box<ExecutionSpan>>,
) -> Result<(), TurnError> {
    let instance = turn.instance();
    for tries in 1..=MAX_TRIES {
        let Epilogue { writes, committed } = make_epilogue(&make, outcome.clone()).await?;
        let has_writes = !writes.is_empty();
        let mut ack = AckOrchestrationItem::clone(&ack);
        ack.records.extend(writes);
        match turn.commit(Arc::new(ack), span.as_deref()).await {
            Err(error) if has_writes && error.kind() == ErrorKind::Conflict => {
                metrics::counter!(telemetry::END_CONFLICTS).increment(1);
                log_conflict(instance, tries, &error);
                if turn.shared().is_at(Stage::Releasing) {
                    let reason = "the node stops, and the records of its end change all the time".to_owned();
                    return Err(TurnError::Release { delay: Duration::ZERO, reason });
                }
            }
            Err(error) => return Err(error.into()),
            Ok(()) => {
                committed.into_iter().for_each(|committed| committed());
                return Ok(());
            }
        }
    }
    // Each conflict is progress elsewhere, so nothing is wrong with this turn.
    let reason = "the records that belong to its end are changed by others all the time".to_owned();
    Err(TurnError::Release { delay: REDELIVERY, reason })
}

/// Logs a conflict. A single one is normal, many are not.
fn log_conflict(instance: &str, tries: u32, error: &ProviderError) {
    if tries.is_multiple_of(WARN_EVERY) {
        tracing::warn!(instance, tries, %error, "the end of an instance conflicts with other changes; trying again");
    } else {
        tracing::debug!(instance, tries, %error, "a record has changed; the end is committed again");
    }
}

async fn make_epilogue(
    make: &MakeEpilogue,
    outcome: Result<Payload, Failure>,
) -> Result<Epilogue, TurnError> {
    // The call itself may panic too, not only what it returns.
    let made = AssertUnwindSafe(async { make(outcome).await }).catch_unwind().await;
    match made {
        Ok(Ok(epilogue)) => Ok(epilogue),
        // The epilogue could not be made; nothing is wrong with the turn.
        Ok(Err(error)) => Err(TurnError::Release { delay: REDELIVERY, reason: error.to_string() }),
        Err(panic) => {
            let reason = failure::from_panic("what belongs to the end of the instance", &*panic).to_string();
            Err(TurnError::Abandon { delay: REDELIVERY, reason })
        }
    }
}
