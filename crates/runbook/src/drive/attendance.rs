//! Whether a batch is looked after in time. What a row waits for follows from the rows; that its node
//! has died, or that no node runs, does not.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ProviderError, Store};

use super::inbox;
use super::lease::{LEASE, Tenure};
use super::place::{BatchPlace, LEASES};
use super::post::timestamp;
use crate::step::{Explanation, Releaser};

/// A node that has left something undone for longer is late.
const LATE_AFTER: Duration = Duration::from_secs(3);

/// Adds to an explanation that the batch is not looked after, if that is so.
pub(super) async fn add_delay(
    store: &dyn Store,
    place: &BatchPlace,
    mut explanation: Explanation,
    now_ms: u64,
) -> Result<Explanation, ProviderError> {
    if explanation.releaser.is_none() {
        return Ok(explanation);
    }
    let Some(record) = store.get_record(LEASES, &place.id()).await? else { return Ok(explanation) };
    let late_ms = now_ms.saturating_sub(duration_ms(LATE_AFTER));
    let is_past = |at: jiff::Timestamp| u64::try_from(at.as_millisecond()).unwrap_or_default() < late_ms;
    let waits_long =
        inbox::oldest_ms(store, place, now_ms).await?.is_some_and(|posted_ms| posted_ms < late_ms);
    let is_overdue = waits_long || explanation.wakes_at.is_some_and(is_past);
    match Tenure::of(&record, now_ms) {
        Some(tenure) if is_overdue || is_unrenewed(&tenure, now_ms) => {
            let until = timestamp(tenure.until_ms);
            explanation.why = format!(
                "{}; node {} holds the batch and is late: unless it goes on, another node takes the batch when \
                 its lease ends",
                explanation.why, tenure.node
            );
            explanation.releaser = Some(Releaser::Time(until));
            explanation.wakes_at = Some(until);
        }
        None if is_overdue || record.due_at_ms.is_some_and(|due_ms| due_ms < late_ms) => {
            explanation.why = format!("{}; no node has taken the batch", explanation.why);
            explanation.releaser = Some(Releaser::Node);
            explanation.wakes_at = None;
        }
        _ => {}
    }
    Ok(explanation)
}

/// Whether a holder should have renewed its lease: it does when half of it is over.
fn is_unrenewed(tenure: &Tenure, now_ms: u64) -> bool {
    let left_ms = tenure.until_ms.saturating_sub(now_ms);
    left_ms.saturating_add(duration_ms(LATE_AFTER)) < duration_ms(LEASE) / 2
}
