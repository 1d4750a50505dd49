//! A schedule that is ready to answer.

use std::iter;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::calendar::Calendar;
use super::daylight::LocalCron;
use super::describe;
use super::occurrence::{Note, Occurrence};
use crate::functions::HumanDuration;

/// So often in a row the calendar may leave out what comes next, days that follow each other counted as one. What is left
/// out more often never happens: a weekday and a date of the year meet within 40 years, which is half as many weeks.
const MAX_LEFT_OUT: usize = 4_000;

/// A clock that is put back over midnight shows the day before again within this time.
const SECOND_PASS: SignedDuration = SignedDuration::from_hours(24);

/// A checked schedule; made by [`ScheduleSpec::compile`](super::ScheduleSpec::compile).
#[derive(Debug, Clone)]
pub struct Schedule {
    rhythm: Rhythm,
    zone: TimeZone,
    calendar: Option<Box<Calendar>>,
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

/// What comes after a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Following {
    /// The first moment before the next one that the calendar leaves out.
    pub excluded: Option<Timestamp>,
    /// The next one, or none if there will be none any more.
    pub next: Option<Occurrence>,
    /// How often a moment was found that the calendar leaves out, days that follow each other counted as one.
    pub left_out: usize,
}

/// How moments follow each other.
#[derive(Debug, Clone)]
pub(super) enum Rhythm {
    /// By the clock on the wall.
    Cron(Box<LocalCron>),
    /// Again and again after the same time.
    Every { interval: HumanDuration, anchor: Timestamp },
    /// Once.
    Once(Timestamp),
}

impl Schedule {
    pub(super) fn new(rhythm: Rhythm, zone: TimeZone, calendar: Option<Calendar>) -> Self {
        Schedule { rhythm, zone, calendar: calendar.map(Box::new), starts_at: None, ends_at: None }
    }

    /// Nothing happens outside of these bounds.
    pub(super) fn within(self, starts_at: Option<Timestamp>, ends_at: Option<Timestamp>) -> Self {
        Schedule { starts_at, ends_at, ..self }
    }

    /// The first moment after this one, or none if there will be none any more.
    pub fn next_after(&self, time: Timestamp) -> Option<Occurrence> {
        self.following(time).next
    }

    /// The first moment after this one, and what the calendar leaves out before it.
    pub fn following(&self, time: Timestamp) -> Following {
        let (mut after, mut excluded) = (time, None);
        for left_out in 0..MAX_LEFT_OUT {
            let Some((time, note)) = self.next_by_rhythm(after) else { break };
            let Some(calendar) = self.calendar.as_ref().filter(|calendar| calendar.excludes(self.date(time)))
            else {
                return Following { excluded, next: Some(self.occurrence(time, note)), left_out };
            };
            excluded.get_or_insert(time);
            let Some(resume) = self.last_left_out(calendar, time) else { break };
            after = resume;
        }
        Following { excluded, next: None, left_out: MAX_LEFT_OUT }
    }

    /// The first moment after this one, whatever the calendar says.
    fn next_by_rhythm(&self, time: Timestamp) -> Option<(Timestamp, Option<Note>)> {
        let after = self.starts_at.map_or(time, |start| time.max(just_before(start)));
        let (time, note) = match &self.rhythm {
            Rhythm::Cron(cron) => cron.next_after(after)?,
            Rhythm::Every { interval, anchor } => (next_interval(*interval, *anchor, after)?, None),
            Rhythm::Once(at) => (Some(*at).filter(|at| *at > after)?, None),
        };
        self.ends_at.is_none_or(|end| time <= end).then_some((time, note))
    }

    /// A moment up to which everything after one that is left out is left out as well.
    fn last_left_out(&self, calendar: &Calendar, time: Timestamp) -> Option<Timestamp> {
        let open = calendar.first_open(self.date(time).tomorrow().ok()?)?;
        let begins = just_before(open.to_zoned(self.zone.clone()).ok()?.timestamp());
        let change = self.zone.following(time).next().map(|change| just_before(change.timestamp()));
        let change = change.filter(|change| change.duration_since(time) < SECOND_PASS);
        Some(change.map_or(begins, |change| begins.min(change)).max(time))
    }

    /// The exclusion by which the calendar leaves out the day of a moment, in words.
    pub fn exclusion_of(&self, time: Timestamp) -> Option<String> {
        self.calendar.as_ref()?.reason(self.date(time))
    }

    /// The first moment after this one, whatever the calendar says.
    pub(crate) fn next_with_excluded(&self, time: Timestamp) -> Option<Timestamp> {
        self.next_by_rhythm(time).map(|(time, _)| time)
    }

    /// How many moments there are from one up to another that does not count, whatever the calendar says; at most so many
    /// are counted.
    pub fn count_with_excluded(&self, from: Timestamp, until: Timestamp, most: usize) -> usize {
        let all =
            iter::successors(self.next_by_rhythm(just_before(from)), |last| self.next_by_rhythm(last.0));
        all.take_while(|(time, _)| *time < until).take(most).count()
    }

    /// All moments after this one, in order, found as they are asked for. There may be no end of them.
    pub fn after(&self, time: Timestamp) -> impl Iterator<Item = Occurrence> + '_ {
        iter::successors(self.next_after(time), |last| self.next_after(last.time))
    }

    /// All moments after `from` up to and including `to`, in order, found as they are asked for.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Occurrence> + '_ {
        self.after(from).take_while(move |occurrence| occurrence.time <= to)
    }

    /// The shortest time between two moments as the clock on the wall shows it, for holding schedules to a minimum. None
    /// if there are no two. Where clocks are changed, two moments can be closer by as much as the clock is put forward;
    /// nobody who wants a run every two hours means to ask for less than that.
    pub fn smallest_gap(&self) -> Option<Duration> {
        match &self.rhythm {
            Rhythm::Cron(cron) => cron.pattern().smallest_gap(),
            Rhythm::Every { interval, .. } => Some(interval.get()),
            Rhythm::Once(_) => None,
        }
    }

    /// The schedule in plain English, with its zone, as in "At 09:00, Monday through Friday (Europe/Berlin)".
    pub fn describe(&self) -> String {
        let mut text = match &self.rhythm {
            Rhythm::Cron(cron) => {
                format!("{} ({})", describe::cron(cron.pattern().expression()), self.zone_name())
            }
            Rhythm::Every { interval, anchor } => format!("Every {interval}, counted from {anchor}"),
            Rhythm::Once(at) => format!("Once, at {}", self.local(*at)),
        };
        if let Some(start) = self.starts_at {
            text.push_str(&format!(", not before {}", self.local(start)));
        }
        if let Some(end) = self.ends_at {
            text.push_str(&format!(", not after {}", self.local(end)));
        }
        if let Some(calendar) = &self.calendar {
            text.push_str(&format!(", {}", calendar.describe()));
        }
        text
    }

    /// What a user should know who is used to another cron: how the schedule reads what others read differently.
    pub fn warnings(&self) -> Vec<String> {
        match &self.rhythm {
            Rhythm::Cron(cron) => cron.pattern().expression().warning().into_iter().collect(),
            Rhythm::Every { .. } | Rhythm::Once(_) => Vec::new(),
        }
    }

    /// The name of its zone, spelt as the database spells it.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// A moment as the clocks of the zone show it: RFC 3339 with the zone behind it.
    pub fn local(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).to_string()
    }

    /// How far the zone's clocks are from UTC at a moment.
    pub(super) fn offset(&self, time: Timestamp) -> jiff::tz::Offset {
        self.zone.to_offset(time)
    }

    /// The day of a moment in the zone.
    pub(super) fn date(&self, time: Timestamp) -> Date {
        self.zone.to_datetime(time).date()
    }

    fn occurrence(&self, time: Timestamp, note: Option<Note>) -> Occurrence {
        Occurrence { time, local: self.local(time), note }
    }
}

/// The last moment before a time.
fn just_before(time: Timestamp) -> Timestamp {
    time.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN)
}

/// The first whole number of intervals from the anchor that lies after a time.
fn next_interval(interval: HumanDuration, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    let interval = i128::from(interval.as_ms()) * 1_000_000;
    let anchor = anchor.as_nanosecond();
    let passed = (after.as_nanosecond() - anchor).div_euclid(interval);
    Timestamp::from_nanosecond(anchor + (passed + 1) * interval).ok()
}
