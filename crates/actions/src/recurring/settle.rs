//! The end of an occurrence's call, written down.

use std::time::Duration;

use jiff::Timestamp;
use segno::Epilogue;

use super::history::{HistoryEntry, Outcome};
use super::model::RecurringAction;
use super::plan::Plan;
use super::record::{RECURRING_HISTORY_KIND, RECURRING_KIND, decode, decode_history, history_id, record_id};
use crate::action::ActionError;
use crate::moment::timestamp;
use crate::settle::{Ended, SUPERSEDED, Settling};
use crate::telemetry;

/// Longest error that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 1_000;

/// Which occurrence ended.
pub(crate) struct Occurrence<'a> {
    pub(crate) id: &'a str,
    pub(crate) time: Timestamp,
    pub(crate) keep: Duration,
}

/// What is written when the call of an occurrence ends; nothing when that is known already.
pub(crate) async fn epilogue(
    settling: &Settling,
    occurrence: Occurrence<'_>,
    instance: &str,
    ended: Ended,
) -> Result<Epilogue, ActionError> {
    let (store, scope) = (&settling.store, &settling.scope);
    let (record_id, history_id) =
        (record_id(scope, occurrence.id), history_id(scope, occurrence.id, occurrence.time));
    let (record, entry) = segno::try_join(
        store.get_record(RECURRING_KIND, &record_id),
        store.get_record(RECURRING_HISTORY_KIND, &history_id),
    )
    .await?;
    // It may have been deleted while it ran.
    let Some(record) = record else { return Ok(Epilogue::default()) };
    let stored = decode(&record)?;
    let mut action = stored.action;
    let mut entry = entry.as_ref().map(decode_history).transpose()?;
    let before = action.before();
    let now = timestamp(settling.clock.now_ms());
    if !action.end(entry.as_mut(), instance, &ended, now) {
        return Ok(Epilogue::default());
    }
    let mut plan = Plan::default();
    entry.into_iter().for_each(|entry| plan.note(entry));
    plan.conclude(&**store, before, &action, now).await?;
    let news: Vec<HistoryEntry> = plan.entries().filter(|entry| entry.outcome.is_none()).cloned().collect();
    let writes = plan.into_batch(&action, stored.version, occurrence.keep)?.writes;
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
