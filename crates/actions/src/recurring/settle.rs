//! The end of an occurrence's call, written down.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use segno::Epilogue;
use serde::{Deserialize, Serialize};

use super::history::{HistoryEntry, Outcome};
use super::model::RecurringAction;
use super::plan::Plan;
use super::record::{
    RECURRING_HISTORY_KIND, RECURRING_KIND, decode, history_id, readable_history, record_id,
};
use crate::action::ActionError;
use crate::ended::{Ended, SUPERSEDED};
use crate::functions::{CallEnd, FunctionError, Settle, SettleError, Settler};
use crate::moment::timestamp;
use crate::telemetry;

/// Longest error that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 1_000;

/// Kind of calls that are made for an occurrence of a recurring action.
pub(crate) const SETTLE_KIND: &str = "recurring";

/// Data of such a call.
#[derive(Serialize, Deserialize)]
struct OfOccurrence {
    /// The scheduled time.
    time: Timestamp,
    /// How long it is kept what became of the occurrence.
    keep_ms: u64,
}

/// What the call of an occurrence is made for.
pub(super) fn settle(id: &str, time: Timestamp, keep_ms: u64) -> Result<Settle, FunctionError> {
    Settle::new(SETTLE_KIND, id).with(&OfOccurrence { time, keep_ms })
}

/// The scheduled time of the occurrence that a call was made for.
pub(crate) fn time_of(settle: &Settle) -> Option<Timestamp> {
    settle.data::<OfOccurrence>().ok().map(|data| data.time)
}

/// Writes the outcome into the recurring action and its history; nothing when it is known already.
pub(crate) struct OccurrenceSettler;

#[async_trait]
impl Settler for OccurrenceSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        Ok(epilogue(end).await?)
    }
}

async fn epilogue(end: CallEnd<'_>) -> Result<Epilogue, ActionError> {
    let OfOccurrence { time, keep_ms } = end.settle.data()?;
    let (store, scope, instance, id) = (end.store, end.scope, end.instance, end.settle.id());
    let ended = Ended::of(end.outcome);
    let (record_id, history_id) = (record_id(scope, id), history_id(scope, id, time));
    let (record, entry) = segno::try_join(
        store.get_record(RECURRING_KIND, &record_id),
        store.get_record(RECURRING_HISTORY_KIND, &history_id),
    )
    .await?;
    // It may have been deleted while it ran.
    let Some(record) = record else { return Ok(Epilogue::default()) };
    let stored = decode(&record)?;
    let mut action = stored.action;
    let mut entry = entry.as_ref().and_then(readable_history);
    let before = action.before();
    let now = timestamp(end.now_ms);
    if !action.end(entry.as_mut(), instance, &ended, now) {
        return Ok(Epilogue::default());
    }
    let mut plan = Plan::default();
    entry.into_iter().for_each(|entry| plan.note(entry));
    plan.conclude(&**store, before, &action, now).await?;
    let news: Vec<HistoryEntry> = plan.entries().filter(|entry| entry.outcome.is_none()).cloned().collect();
    let writes = plan.into_batch(&action, stored.version, Duration::from_millis(keep_ms))?.writes;
    let (id, instance) = (action.id, instance.to_owned());
    let committed = move || {
        news.iter().for_each(|entry| entry.tell(&id));
        if let Ended::Failed(error) = ended {
            metrics::counter!(telemetry::RECURRING_ERRORS).increment(1);
            tracing::error!(recurring_id = id, instance, error, "recurring.dispatch_error");
        }
    };
    Ok(Epilogue { writes, committed: Some(Box::new(committed)) })
}

impl RecurringAction {
    /// A call has ended. False if that was known: it counts once.
    pub(crate) fn end(
        &mut self,
        entry: Option<&mut HistoryEntry>,
        instance: &str,
        ended: &Ended,
        now: Timestamp,
    ) -> bool {
        let entry = entry.filter(|entry| entry.instance.as_deref() == Some(instance));
        let runs = self.progress.running.iter().any(|running| running.instance == instance);
        if entry.as_ref().map_or(!runs, |entry| entry.outcome.is_some()) {
            return false;
        }
        match ended {
            Ended::Completed(_) => self.succeeded(instance),
            Ended::Failed(error) => self.failed(Some(instance), error, now),
            Ended::Superseded => self.superseded(instance),
        }
        if let Some(entry) = entry {
            entry.ended_at = Some(now);
            entry.outcome = Some(match ended {
                Ended::Completed(_) => Outcome::Completed,
                Ended::Failed(_) => Outcome::Failed,
                Ended::Superseded => Outcome::Cancelled,
            });
            match ended {
                Ended::Completed(_) => {}
                Ended::Failed(error) => entry.detail = Some(error.chars().take(MAX_DETAIL_CHARS).collect()),
                Ended::Superseded => entry.detail = Some(SUPERSEDED.to_owned()),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_call_of_an_occurrence_is_made_for_is_stored_in_a_form_that_does_not_change() {
        let stored = r#"{"kind":"recurring","id":"7","time":"2026-02-10T14:00:00Z","keep_ms":5}"#;
        let settle = settle("7", "2026-02-10T14:00:00Z".parse().unwrap(), 5).unwrap();
        assert_eq!(serde_json::to_string(&settle).unwrap(), stored);
    }
}
