//! Stragglers. An event below the watermark cannot be folded after what came later; its run is
//! folded again from all of its events. Other runs keep their rows.

use super::apply::{Admission, FoldReport, apply, run_of};
use super::moment::Moment;
use super::shared::{RUN_DAYS, days_after};
use super::state::State;
use crate::event::Envelope;

/// Replaces the rows of a run by those that follow from these events, which have to be all events
/// of the run up to the watermark. Events of other runs are left out.
///
/// Its rows may have a smaller `row_version` afterwards, so changes that contain a rebuilt run are
/// for a new base, or for a delta whose order is known, and not for a merge by `row_version`.
pub fn rebuild_run(state: &mut State, run_id: &str, events: &[Envelope]) -> FoldReport {
    let mut report = FoldReport::default();
    let mut order: Vec<&Envelope> = events
        .iter()
        .filter(|envelope| envelope.event().and_then(run_of).as_deref() == Some(run_id))
        .filter(|envelope| state.watermark().is_some_and(|watermark| envelope.event_id <= watermark))
        .collect();
    order.sort_by_key(|envelope| envelope.event_id);
    order.dedup_by_key(|envelope| envelope.event_id);
    for envelope in &order {
        let key = &envelope.idempotency_key;
        if state.shared.keys.get(key).is_some_and(|row| row.run_id.as_deref() == Some(run_id)) {
            state.shared.keys.remove(key);
        }
    }
    state.remove_run(run_id);
    for envelope in order {
        let Some(event) = envelope.event() else { continue };
        end_retention(state, run_id, Moment::of(envelope.event_id).at);
        if apply(state, envelope, event, Admission::Always) {
            report.applied += 1;
        } else {
            report.ignored += 1;
        }
    }
    if let Some(watermark) = state.watermark() {
        let now = Moment::of(watermark).at;
        end_retention(state, run_id, now);
        state.shared.expire(now);
    }
    report
}

/// Removes the run if it had been removed by this time.
fn end_retention(state: &mut State, run_id: &str, now: i64) {
    let ended_at = state.runs.get(run_id).and_then(|run| run.listed_end);
    if ended_at.is_some_and(|at| days_after(at, RUN_DAYS) <= now) {
        state.remove_run(run_id);
    }
}
