//! What became of each occurrence, and why.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::decide::before;
use super::ending;
use crate::schedule::{Note, Schedule};
use crate::telemetry;

/// Most occurrences of a stretch that are counted for the record.
pub(crate) const MAX_COUNTED: usize = 1_000;

/// What was decided about an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Its call was started.
    Fired,
    /// It was not run.
    Skipped,
    /// It waits for the end of another.
    Buffered,
    /// Its call could not be made.
    Refused,
    /// Nothing runs any more from then on.
    Disabled,
}

/// Why an occurrence was not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The run before had not ended.
    Overlap,
    /// It was paused or disabled.
    Paused,
    /// The calendar leaves out its day.
    Calendar,
    /// Its dedup key had been seen.
    Dedup,
    /// It was too late when a node came to it, and the policy for missed ones does not catch up with it.
    Missed,
    /// A later one was due by then as well, and of several that are due at once only the last is run.
    Coalesced,
}

impl SkipReason {
    /// The name, as in JSON and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::Overlap => "overlap",
            SkipReason::Paused => "paused",
            SkipReason::Calendar => "calendar",
            SkipReason::Dedup => "dedup",
            SkipReason::Missed => "missed",
            SkipReason::Coalesced => "coalesced",
        }
    }
}

/// How the call of an occurrence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well.
    Completed,
    /// With a failure, or it was cancelled by a user.
    Failed,
    /// It was cancelled for the next occurrence (`overlap_policy: cancel_other`), which is not a failure.
    Cancelled,
}

/// What became of an occurrence, or of a stretch of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The scheduled time; of a stretch, the first.
    pub time: Timestamp,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// What was decided.
    pub decision: Decision,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SkipReason>,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What daylight saving has to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Whether a caller ran it, out of schedule.
    #[serde(default, rename = "manual", skip_serializing_if = "std::ops::Not::not")]
    pub is_manual: bool,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// How its call ended; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When its call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Of a stretch: the first scheduled time after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Of a stretch: how many occurrences it has; of very many, a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl HistoryEntry {
    pub(crate) fn new(time: Timestamp, decision: Decision, now: Timestamp) -> Self {
        HistoryEntry {
            time,
            decided_at: now,
            decision,
            reason: None,
            detail: None,
            note: None,
            is_manual: false,
            instance: None,
            outcome: None,
            ended_at: None,
            until: None,
            count: None,
        }
    }

    pub(crate) fn fired(time: Timestamp, instance: &str, now: Timestamp) -> Self {
        HistoryEntry { instance: Some(instance.to_owned()), ..Self::new(time, Decision::Fired, now) }
    }

    pub(crate) fn skipped(time: Timestamp, reason: SkipReason, now: Timestamp) -> Self {
        HistoryEntry { reason: Some(reason), ..Self::new(time, Decision::Skipped, now) }
    }

    /// Of all occurrences from one up to another, for one reason.
    pub(crate) fn stretch(
        schedule: &Schedule,
        (from, until): (Timestamp, Timestamp),
        reason: SkipReason,
        now: Timestamp,
    ) -> Self {
        let count = schedule.between(before(from), before(until)).take(MAX_COUNTED).count();
        HistoryEntry { until: Some(until), count: Some(count as u64), ..Self::skipped(from, reason, now) }
    }

    /// Of all that the calendar leaves out from one occurrence up to another.
    pub(crate) fn left_out(schedule: &Schedule, from: Timestamp, until: Timestamp, now: Timestamp) -> Self {
        let count = schedule.count_with_excluded(from, until, MAX_COUNTED);
        let detail = schedule.exclusion_of(from);
        let entry = Self::skipped(from, SkipReason::Calendar, now);
        HistoryEntry { until: Some(until), count: Some(count as u64), detail, ..entry }
    }

    /// Counts and logs it, once it is committed, if it is about something that was not run.
    fn tell_skipped(&self, recurring_id: &str) {
        let Some(reason) = self.reason.map(SkipReason::as_str) else { return };
        let (time, count) = (self.time, self.count.unwrap_or(1));
        metrics::counter!(telemetry::RECURRING_SKIPPED, "reason" => reason).increment(count);
        tracing::info!(recurring_id, %time, count, reason, "recurring.skip");
    }

    /// What is left of a stretch without one of its occurrences, which has an entry of its own. The stretch itself if that
    /// is not in it.
    pub(crate) fn without(&self, time: Timestamp, schedule: &Schedule) -> Vec<HistoryEntry> {
        let until = self.until.unwrap_or(Timestamp::MAX);
        if !(self.time..until).contains(&time) {
            return vec![self.clone()];
        }
        let is_calendar = self.reason == Some(SkipReason::Calendar);
        let count = |from: Timestamp, until: Timestamp| match is_calendar {
            true => schedule.count_with_excluded(from, until, MAX_COUNTED) as u64,
            false => schedule.between(before(from), before(until)).take(MAX_COUNTED).count() as u64,
        };
        let following = match is_calendar {
            true => schedule.next_with_excluded(time),
            false => schedule.next_after(time).map(|next| next.time),
        };
        let total = self.count.unwrap_or(1);
        // The schedule may have been changed since; what was counted then is not counted otherwise now.
        let is_exact = total < MAX_COUNTED as u64;
        let earlier = if time == self.time { 0 } else { count(self.time, time).clamp(1, total.max(2) - 1) };
        let next = following.unwrap_or(until).min(until);
        let later = if is_exact { total.saturating_sub(earlier + 1) } else { count(next, until) };
        let piece = |time, until, count| HistoryEntry { time, until, count: Some(count), ..self.clone() };
        let pieces = [(self.time, Some(time), earlier), (next, self.until, later)];
        pieces
            .into_iter()
            .filter(|(_, _, count)| *count > 0)
            .map(|(from, to, count)| piece(from, to, count))
            .collect()
    }

    /// Counts and logs it, once it is committed, if it is about something that will not run.
    pub(crate) fn tell(&self, recurring_id: &str) {
        match self.decision {
            Decision::Disabled => self.tell_disabled(recurring_id),
            _ => self.tell_skipped(recurring_id),
        }
    }

    fn tell_disabled(&self, recurring_id: &str) {
        let reason = self.detail.as_deref().unwrap_or_default();
        tracing::warn!(recurring_id, reason, "{}", ending::event(reason));
    }

    /// Whether it is about an occurrence of this time.
    pub(crate) fn covers(&self, time: Timestamp) -> bool {
        self.time == time || self.until.is_some_and(|until| (self.time..until).contains(&time))
    }
}
