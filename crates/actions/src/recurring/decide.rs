//! What to do with the next occurrence: a pure function of the recurring action, its schedule and the time.
//!
//! | situation | step |
//! |---|---|
//! | paused, and its time to go on has come | `Resume` |
//! | an occurrence waits and nothing runs any more | `Fire` that one |
//! | there is no next occurrence | `Disable` |
//! | the first of those that the calendar leaves out before it is due | `LeaveOut` all of them |
//! | the next occurrence is not due | nothing |
//! | it is due, and there will be no more executions | `Disable` |
//! | it is too late, or others are due after it: by the missed policy | `Fire`, `Skip` or, of several, `SkipRange`: missed, or coalesced |
//! | another one runs | by the overlap policy: `Fire`, `Skip`, `Buffer`, or `Fire` with others cancelled |
//! | else | `Fire` |
//!
//! One step is about one occurrence, or about a stretch of them that nobody runs. Steps are taken until there are none:
//! [`RecurringAction::advance`] says what each changes. So every occurrence is decided once, in the order of the times.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::ending::{ALL_EXCLUDED, ENDS_AT, MAX_EXECUTIONS, NO_NEXT, ONCE};
use super::history::SkipReason;
use super::model::RecurringAction;
use super::policy::{MissedPolicy, OverlapPolicy};
use crate::schedule::{Note, Schedule};

/// The time at which a decision is taken, and how late is too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub now: Timestamp,
    /// An occurrence that is later than this was missed.
    pub missed_after: Duration,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Go on after a pause.
    Resume,
    /// Call the function.
    Fire {
        /// The scheduled time.
        time: Timestamp,
        /// What daylight saving has to do with it.
        note: Option<Note>,
        /// Whether it had been missed and is caught up with.
        is_late: bool,
        /// Whether those that run are cancelled.
        cancels: bool,
    },
    /// Let it wait for the end of the one that runs.
    Buffer {
        /// The scheduled time.
        time: Timestamp,
    },
    /// Do not run it.
    Skip {
        /// The scheduled time.
        time: Timestamp,
        /// Why.
        reason: SkipReason,
    },
    /// Do not run any before the next one, because the calendar leaves out their days.
    LeaveOut {
        /// The first scheduled time.
        from: Timestamp,
        /// The next one that is to be run.
        until: Timestamp,
    },
    /// Do not run any of a stretch, because they were missed or coalesced.
    SkipRange {
        /// The first scheduled time.
        from: Timestamp,
        /// The first of them that was not too late. It and those after it are coalesced, those before it were missed.
        in_time_from: Option<Timestamp>,
        /// The first one after them.
        until: Timestamp,
    },
    /// There will be no more.
    Disable {
        /// Why.
        reason: String,
    },
}

/// The next step, or none if there is nothing to do now.
pub fn decide(action: &RecurringAction, schedule: &Schedule, moment: Moment) -> Option<Step> {
    if !action.enabled {
        return action.resumes_at.filter(|at| *at <= moment.now).map(|_| Step::Resume);
    }
    let progress = &action.progress;
    if let Some(time) = progress.buffered.filter(|_| progress.running.is_empty()) {
        // The clock may have been put back since.
        let is_due = action.fires_at(time) <= moment.now;
        return is_due.then_some(Step::Fire { time, note: None, is_late: false, cancels: false });
    }
    let Some(next) = action.next_execution_at else {
        let is_over = progress.buffered.is_none();
        return is_over.then(|| Step::Disable { reason: end_of(action, schedule).to_owned() });
    };
    if let Some(from) = progress.excluded.filter(|from| *from <= moment.now) {
        return Some(Step::LeaveOut { from, until: next });
    }
    if action.fires_at(next) > moment.now {
        return None;
    }
    if action.policy.max_executions.is_some_and(|most| action.execution_count >= most) {
        return Some(Step::Disable { reason: MAX_EXECUTIONS.to_owned() });
    }
    let lateness = Lateness { action, schedule, moment, next };
    Some(match lateness.judge() {
        Judgement::OnTime => overlap(action, schedule, next, false),
        Judgement::CatchUp => overlap(action, schedule, next, true),
        Judgement::Missed => lateness.skip(),
    })
}

/// Why there is no next time.
pub(super) fn end_of(action: &RecurringAction, schedule: &Schedule) -> &'static str {
    let since = action.progress.decided_until.unwrap_or(action.created_at);
    if action.policy.max_executions.is_some_and(|most| action.execution_count >= most) {
        MAX_EXECUTIONS
    } else if schedule.following(since).excluded.is_some() {
        ALL_EXCLUDED
    } else if action.schedule.at.is_some() {
        ONCE
    } else if action.schedule.ends_at.is_some() {
        ENDS_AT
    } else {
        NO_NEXT
    }
}

fn overlap(action: &RecurringAction, schedule: &Schedule, time: Timestamp, is_late: bool) -> Step {
    let runs = !action.progress.running.is_empty();
    let is_buffered = action.progress.buffered.is_some();
    match action.policy.overlap_policy {
        OverlapPolicy::Skip if runs => Step::Skip { time, reason: SkipReason::Overlap },
        OverlapPolicy::BufferOne if runs && is_buffered => Step::Skip { time, reason: SkipReason::Overlap },
        OverlapPolicy::BufferOne if runs => Step::Buffer { time },
        policy => {
            let cancels = runs && policy == OverlapPolicy::CancelOther;
            Step::Fire { time, note: note_of(schedule, time), is_late, cancels }
        }
    }
}

/// What daylight saving has to do with an occurrence.
fn note_of(schedule: &Schedule, time: Timestamp) -> Option<Note> {
    schedule.next_after(before(time)).filter(|occurrence| occurrence.time == time)?.note
}

enum Judgement {
    OnTime,
    CatchUp,
    Missed,
}

/// How late the next occurrence is, and what follows from it.
struct Lateness<'a> {
    action: &'a RecurringAction,
    schedule: &'a Schedule,
    moment: Moment,
    next: Timestamp,
}

impl Lateness<'_> {
    /// Of several that are due, only the last is on time: what becomes of the others is for the missed policy to say.
    fn judge(&self) -> Judgement {
        let policy = &self.action.policy;
        match policy.missed {
            _ if !self.is_too_late(self.next) && !self.next_is_due() => Judgement::OnTime,
            MissedPolicy::None => Judgement::Missed,
            MissedPolicy::Latest if self.next_is_due() => Judgement::Missed,
            MissedPolicy::Latest => Judgement::CatchUp,
            MissedPolicy::All => {
                let is_in_window = self.late(self.next) <= signed(policy.catch_up_window.get());
                let is_within_limit = self.action.progress.caught_up < policy.catch_up_limit;
                if is_in_window && is_within_limit { Judgement::CatchUp } else { Judgement::Missed }
            }
        }
    }

    fn late(&self, time: Timestamp) -> SignedDuration {
        self.moment.now.duration_since(self.action.fires_at(time))
    }

    fn is_too_late(&self, time: Timestamp) -> bool {
        self.late(time) > signed(self.moment.missed_after)
    }

    /// Whether the one after it is due as well.
    fn next_is_due(&self) -> bool {
        let following = self.schedule.next_after(self.next);
        following.is_some_and(|following| self.action.fires_at(following.time) <= self.moment.now)
    }

    /// Leaves out what was missed or is coalesced: at once everything that is certain to be, or else one.
    fn skip(&self) -> Step {
        let reason = if self.is_too_late(self.next) { SkipReason::Missed } else { SkipReason::Coalesced };
        let one = Step::Skip { time: self.next, reason };
        let Some(until) = self.first_that_may_run() else { return one };
        match self.schedule.between(before(self.next), before(until)).take(2).count() {
            0 | 1 => one,
            _ => {
                let in_time_from = self.first_in_time().filter(|first| *first < until);
                Step::SkipRange { from: self.next, in_time_from, until }
            }
        }
    }

    /// The first occurrence that is not too late. Jitter keeps the order, so there is none before it.
    fn first_in_time(&self) -> Option<Timestamp> {
        let jitter = self.action.policy.jitter.map_or(Duration::ZERO, |jitter| jitter.get());
        let longest = self.moment.missed_after.saturating_add(jitter);
        let cut = self.moment.now.checked_sub(signed(longest)).unwrap_or(Timestamp::MIN);
        let mut first = self.schedule.next_after(before(cut.max(self.next)))?.time;
        while self.is_too_late(first) {
            first = self.schedule.next_after(first)?.time;
        }
        Some(first)
    }

    /// The first occurrence that might not be missed: nothing before it can be within any bound.
    fn first_that_may_run(&self) -> Option<Timestamp> {
        let policy = &self.action.policy;
        let last = self.last_due()?;
        // What the calendar leaves out after the last one is not part of the stretch: it is decided when it is due.
        let following = || self.schedule.next_with_excluded(last);
        let until = match policy.missed {
            MissedPolicy::Latest => Some(last),
            MissedPolicy::All if self.action.progress.caught_up < policy.catch_up_limit => {
                let jitter = policy.jitter.map_or(Duration::ZERO, |jitter| jitter.get());
                let longest = policy.catch_up_window.get().saturating_add(jitter);
                let cut = self.moment.now.checked_sub(signed(longest)).unwrap_or(Timestamp::MIN);
                let first = self.schedule.next_after(before(cut)).map(|occurrence| occurrence.time);
                // The last one may be on time, however short the window is.
                first.map_or(Some(last), |first| Some(first.min(last)))
            }
            MissedPolicy::None | MissedPolicy::All if self.is_too_late(last) => following().or(Some(last)),
            MissedPolicy::None | MissedPolicy::All => Some(last),
        };
        until.filter(|until| *until > self.next)
    }

    /// The last occurrence that is due. There is one after a moment that is due if and only if that moment is before the
    /// last one, so halving finds it in a few dozen steps, however many there are.
    fn last_due(&self) -> Option<Timestamp> {
        let now = self.moment.now;
        let due_after = |time| {
            let next = self.schedule.next_after(time).map(|next| next.time);
            next.filter(|next| self.action.fires_at(*next) <= now)
        };
        let (mut last, mut end) = (due_after(before(self.next))?, now);
        while let Some(following) = due_after(last) {
            last = following;
            let middle = last.checked_add(end.duration_since(last) / 2).unwrap_or(last);
            match due_after(middle) {
                Some(later) => last = later,
                None => end = middle,
            }
        }
        Some(last)
    }
}

/// The moment just before a time: what comes after it includes the time itself.
pub(super) fn before(time: Timestamp) -> Timestamp {
    time.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
