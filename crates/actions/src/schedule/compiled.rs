//! A schedule that is ready to answer.

use std::iter;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::daylight::LocalCron;
use super::describe;
use super::occurrence::{Note, Occurrence};
use crate::functions::HumanDuration;

/// A checked schedule; made by [`ScheduleSpec::compile`](super::ScheduleSpec::compile).
#[derive(Debug, Clone)]
pub struct Schedule {
    rhythm: Rhythm,
    zone: TimeZone,
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
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
    pub(super) fn new(
        rhythm: Rhythm,
        zone: TimeZone,
        starts_at: Option<Timestamp>,
        ends_at: Option<Timestamp>,
    ) -> Self {
        Schedule { rhythm, zone, starts_at, ends_at }
    }

    /// The first moment after this one, or none if there will be none any more.
    pub fn next_after(&self, time: Timestamp) -> Option<Occurrence> {
        let just_before =
            |start: Timestamp| start.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN);
        let after = self.starts_at.map_or(time, |start| time.max(just_before(start)));
        let (time, note) = match &self.rhythm {
            Rhythm::Cron(cron) => cron.next_after(after)?,
            Rhythm::Every { interval, anchor } => (next_interval(*interval, *anchor, after)?, None),
            Rhythm::Once(at) => (Some(*at).filter(|at| *at > after)?, None),
        };
        if self.ends_at.is_some_and(|end| time > end) {
            return None;
        }
        Some(self.occurrence(time, note))
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
            Rhythm::Cron(cron) => format!("{} ({})", describe::cron(cron.pattern()), self.zone_name()),
            Rhythm::Every { interval, anchor } => format!("Every {interval}, counted from {anchor}"),
            Rhythm::Once(at) => format!("Once, at {}", self.local(*at)),
        };
        if let Some(start) = self.starts_at {
            text.push_str(&format!(", not before {}", self.local(start)));
        }
        if let Some(end) = self.ends_at {
            text.push_str(&format!(", not after {}", self.local(end)));
        }
        text
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

    fn occurrence(&self, time: Timestamp, note: Option<Note>) -> Occurrence {
        Occurrence { time, local: self.local(time), note }
    }
}

/// The first whole number of intervals from the anchor that lies after a time.
fn next_interval(interval: HumanDuration, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    let interval = i128::from(interval.as_ms()) * 1_000_000;
    let anchor = anchor.as_nanosecond();
    let passed = (after.as_nanosecond() - anchor).div_euclid(interval);
    Timestamp::from_nanosecond(anchor + (passed + 1) * interval).ok()
}
