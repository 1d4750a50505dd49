//! What a decision changes in a recurring action.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::decide::{Step, before, end_of};
use super::ending::{MAX_EXECUTIONS, after_failures};
use super::history::SkipReason;
use super::model::{RecurringAction, RunningOccurrence};
use super::policy::OverlapPolicy;
use crate::action::record::FIRST_CHECK;
use crate::schedule::Schedule;

/// Most runs that are remembered of an action whose runs may overlap. What is beyond is still told when it ends; only what
/// ends without telling is not noticed.
const MAX_REMEMBERED: usize = 64;

/// Longest error that is kept, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

impl RecurringAction {
    /// Takes a step. What it calls is up to others: [`RecurringAction::started`] and [`RecurringAction::failed`] tell how
    /// that went.
    pub fn advance(&mut self, step: &Step, schedule: &Schedule, now: Timestamp) {
        match step {
            Step::Resume => self.resume(schedule, now),
            Step::Disable { reason } => self.disable(reason),
            Step::Buffer { time } => {
                self.progress.buffered = Some(*time);
                self.decided(*time, schedule);
            }
            Step::Skip { time, reason } => {
                if matches!(reason, SkipReason::Missed | SkipReason::Coalesced) {
                    self.progress.caught_up = 0;
                }
                self.decided(*time, schedule);
            }
            Step::LeaveOut { from, .. } => {
                // Only what is due is decided: the calendar may be changed before the rest is.
                self.progress.decided_until = Some(*from);
                self.progress.excluded = None;
            }
            Step::SkipRange { until, .. } => {
                self.progress.caught_up = 0;
                self.decided(before(*until), schedule);
            }
            Step::Fire { time, is_late, .. } => {
                self.progress.caught_up =
                    if *is_late { self.progress.caught_up.saturating_add(1) } else { 0 };
                if self.progress.buffered == Some(*time) {
                    self.progress.buffered = None;
                } else {
                    self.decided(*time, schedule);
                }
            }
        }
    }

    /// The call of an occurrence was started.
    pub fn started(&mut self, time: Timestamp, instance: &str, now: Timestamp) {
        self.execution_count += 1;
        self.last_executed_at = Some(now);
        self.last_execution_id = Some(instance.to_owned());
        let running = &mut self.progress.running;
        if self.policy.overlap_policy == OverlapPolicy::CancelOther {
            running.clear();
        }
        if running.len() < MAX_REMEMBERED {
            running.push(RunningOccurrence { time, instance: instance.to_owned(), started_at: now });
        }
        self.progress.check_at.get_or_insert_with(|| later(now, FIRST_CHECK));
        if self.policy.max_executions.is_some_and(|most| self.execution_count >= most) {
            self.disable(MAX_EXECUTIONS);
        }
    }

    /// A call ended well.
    pub(crate) fn succeeded(&mut self, instance: &str) {
        self.forget(instance);
        self.consecutive_failures = 0;
    }

    /// A call was cancelled for the next one, which says nothing about the function.
    pub(crate) fn superseded(&mut self, instance: &str) {
        self.forget(instance);
    }

    /// A call failed, or could not be made. Too many in a row pause the action.
    pub fn failed(&mut self, instance: Option<&str>, error: &str, now: Timestamp) {
        if let Some(instance) = instance {
            self.forget(instance);
        }
        self.failure_count += 1;
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.last_error = Some(error.chars().take(MAX_ERROR_CHARS).collect());
        if self.enabled
            && self.policy.pause_after_failures.is_some_and(|most| self.consecutive_failures >= most)
        {
            self.disable(&after_failures(self.consecutive_failures));
            self.paused_at = Some(now);
        }
    }

    /// Sets the next time, from now on and never again for what was decided.
    pub(super) fn arm(&mut self, schedule: &Schedule, now: Timestamp) {
        let from = self.progress.decided_until.map_or(now, |until| until.max(now));
        self.decided(from, schedule);
        if self.next_execution_at.is_none() {
            let reason = end_of(self, schedule);
            self.disable(reason);
        }
    }

    /// Finds the next time again when the zone database has changed.
    pub(crate) fn refresh(&mut self, schedule: &Schedule, zones: &str) {
        if self.progress.zones == zones {
            return;
        }
        self.progress.zones = zones.to_owned();
        if let (true, Some(until)) = (self.enabled, self.progress.decided_until) {
            self.decided(until, schedule);
        }
    }

    /// Goes on after a pause.
    pub(super) fn resume(&mut self, schedule: &Schedule, now: Timestamp) {
        self.enabled = true;
        self.paused_at = None;
        self.pause_note = None;
        self.resumes_at = None;
        self.disabled_reason = None;
        self.consecutive_failures = 0;
        self.arm(schedule, now);
    }

    pub(crate) fn disable(&mut self, reason: &str) {
        self.enabled = false;
        self.next_execution_at = None;
        self.resumes_at = None;
        self.progress.excluded = None;
        self.progress.buffered = None;
        self.disabled_reason = Some(reason.to_owned());
    }

    /// Everything up to a time is decided, and so the next occurrence is up.
    fn decided(&mut self, time: Timestamp, schedule: &Schedule) {
        let following = schedule.following(time);
        self.progress.decided_until = Some(time);
        self.next_execution_at = following.next.map(|next| next.time);
        self.progress.excluded = following.excluded.filter(|_| self.next_execution_at.is_some());
    }

    fn forget(&mut self, instance: &str) {
        self.progress.running.retain(|running| running.instance != instance);
        if self.progress.running.is_empty() {
            self.progress.check_at = None;
        }
    }
}

/// A time so much later.
pub(crate) fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}
