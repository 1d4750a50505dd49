//! The end of an occurrence's call, written down.

use async_trait::async_trait;
use jiff::Timestamp;
use segno::Epilogue;
use segno::store::Expect;
use serde::{Deserialize, Serialize};

use super::history::{HistoryEntry, Outcome};
use super::model::RecurringAction;
use super::record::{RECURRING_HISTORY_KIND, history_id, history_write, readable_history};
use super::run_end::RunEnd;
use crate::action::ActionError;
use crate::ended::{Ended, SUPERSEDED};
use crate::functions::{CallEnd, FunctionError, Settle, SettleError, Settler};
use crate::keep::Keep;
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
    /// Whether that is archived then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retires: bool,
}

/// What the call of an occurrence is made for.
pub(super) fn settle(id: &str, time: Timestamp, keep: Keep) -> Result<Settle, FunctionError> {
    let (keep_ms, retires) = keep.parts();
    Settle::new(SETTLE_KIND, id).with(&OfOccurrence { time, keep_ms, retires })
}

/// The scheduled time of the occurrence that a call was made for.
pub(crate) fn time_of(settle: &Settle) -> Option<Timestamp> {
    settle.data::<OfOccurrence>().ok().map(|data| data.time)
}

/// Writes the outcome into the history and a [`RunEnd`] for the action; nothing when it is known
/// already. It writes no record that other runs share.
pub(crate) struct OccurrenceSettler;

#[async_trait]
impl Settler for OccurrenceSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        Ok(epilogue(end).await?)
    }
}

async fn epilogue(end: CallEnd<'_>) -> Result<Epilogue, ActionError> {
    let OfOccurrence { time, keep_ms, retires } = end.settle.data()?;
    let (scope, instance, id) = (end.scope, end.instance, end.settle.id());
    let (ended, now) = (Ended::of(end.outcome), timestamp(end.now_ms));
    let record = end.store.get_record(RECURRING_HISTORY_KIND, &history_id(scope, id, time)).await?;
    let noted = record.and_then(|record| {
        let entry = readable_history(&record).filter(|entry| entry.instance.as_deref() == Some(instance))?;
        Some((record, entry))
    });
    let mut writes = Vec::new();
    let is_in_history = noted.is_some();
    if let Some((record, mut entry)) = noted {
        if !entry.end(&ended, now) {
            return Ok(Epilogue::default());
        }
        let (expect, keep) = (Expect::Version(record.version), Keep::of_parts(keep_ms, retires));
        writes.push(history_write(record.id, &entry, expect, keep)?);
    }
    let error = match &ended {
        Ended::Failed(error) => Some(short(error)),
        Ended::Completed(_) | Ended::Superseded => None,
    };
    let instance = instance.to_owned();
    let run_end = RunEnd { time, instance, ended_at: now, outcome: outcome(&ended), error, is_in_history };
    writes.push(run_end.write(scope, id)?);
    let id = id.to_owned();
    let committed = move || {
        if let Ended::Failed(error) = ended {
            metrics::counter!(telemetry::RECURRING_ERRORS).increment(1);
            tracing::error!(
                recurring_id = id,
                instance = run_end.instance,
                error,
                "recurring.dispatch_error"
            );
        }
    };
    Ok(Epilogue { writes, committed: Some(Box::new(committed)) })
}

fn outcome(ended: &Ended) -> Outcome {
    match ended {
        Ended::Completed(_) => Outcome::Completed,
        Ended::Failed(_) => Outcome::Failed,
        Ended::Superseded => Outcome::Cancelled,
    }
}

/// As much of an error as is kept.
fn short(error: &str) -> String {
    error.chars().take(MAX_DETAIL_CHARS).collect()
}

impl HistoryEntry {
    /// Its call has ended. False if that was known.
    fn end(&mut self, ended: &Ended, now: Timestamp) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        self.ended_at = Some(now);
        self.outcome = Some(outcome(ended));
        match ended {
            Ended::Completed(_) => {}
            Ended::Failed(error) => self.detail = Some(short(error)),
            Ended::Superseded => self.detail = Some(SUPERSEDED.to_owned()),
        }
        true
    }
}

impl RecurringAction {
    /// A call has ended without a [`RunEnd`]. False if the end was known: it counts once.
    pub(crate) fn end(
        &mut self,
        entry: Option<&mut HistoryEntry>,
        instance: &str,
        ended: &Ended,
        now: Timestamp,
    ) -> bool {
        let entry = entry.filter(|entry| entry.instance.as_deref() == Some(instance));
        let runs = self.progress.running.iter().any(|running| running.instance == instance);
        if !entry.map_or(runs, |entry| entry.end(ended, now)) {
            return false;
        }
        match ended {
            Ended::Completed(_) => self.succeeded(instance),
            Ended::Failed(error) => self.failed(Some(instance), error, now),
            Ended::Superseded => self.superseded(instance),
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
        let settle = settle("7", "2026-02-10T14:00:00Z".parse().unwrap(), Keep::of_parts(5, false)).unwrap();
        assert_eq!(serde_json::to_string(&settle).unwrap(), stored);
    }
}
