//! From the local times of a cron expression to moments, where clocks are put forward and back.
//!
//! The rule, with its reasons, is in `docs/adr/0018-daylight-saving.md`:
//!
//! | | expression with fixed hours | expression for every hour |
//! |---|---|---|
//! | local times that do not exist | `shift`: once, together, when the clock is put forward; `skip`: not at all | do not happen |
//! | local times that come twice | `first`, `last` or `both` times | both times |
//!
//! "For every hour" means that the hour field allows all 24 hours (`*`, `*/1`, `0-23`): such an expression asks for a
//! distance in time, and real time neither stops nor repeats.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::cron::Pattern;
use super::occurrence::Note;
use super::spec::{Daylight, Gap, Overlap};
use super::stretch::{Change, Stretch};

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;

/// A cron expression in a zone.
#[derive(Debug, Clone)]
pub(super) struct LocalCron {
    pattern: Pattern,
    zone: TimeZone,
    gap: Gap,
    overlap: Overlap,
}

impl LocalCron {
    pub fn new(pattern: Pattern, zone: TimeZone, daylight: Daylight) -> Self {
        let Daylight { gap, overlap } = match pattern.is_hourly() {
            true => Daylight { gap: Gap::Skip, overlap: Overlap::Both },
            false => daylight,
        };
        LocalCron { pattern, zone, gap, overlap }
    }

    /// The expression.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The first moment after this one.
    pub fn next_after(&self, time: Timestamp) -> Option<(Timestamp, Option<Note>)> {
        let next_second = time.as_nanosecond().div_euclid(NANOSECONDS_PER_SECOND) + 1;
        let from = Timestamp::from_second(i64::try_from(next_second).ok()?).ok()?;
        let mut lookahead = Lookahead { pattern: &self.pattern, known: None };
        let mut stretch = Stretch::around(&self.zone, from);
        let mut local_from = stretch.local(from);
        let mut skipped = None;
        loop {
            let change_ahead = stretch.start.filter(|change| change.at >= from);
            if let Some((change, missing)) = change_ahead.and_then(|change| missing(&mut lookahead, change)) {
                match self.gap {
                    Gap::Shift => return Some((change.at, Some(Note::Shifted { from: missing }))),
                    // Nobody misses a local time that an expression for every hour passes over.
                    Gap::Skip => skipped = (!self.pattern.is_hourly()).then_some(missing),
                }
            }
            if let Some(local) = self.first_in(&stretch, local_from, &mut lookahead) {
                let note = pass(&stretch, local).or(skipped.map(|local| Note::Skipped { local }));
                return Some((stretch.time(local)?, note));
            }
            let end = stretch.end?;
            if lookahead.first_from(local_from).is_none() && end.local_after() >= local_from {
                // Nothing is left to come, and the clock does not go back to where something was.
                return None;
            }
            stretch = Stretch::behind(&self.zone, end);
            local_from = end.local_after();
        }
    }

    /// The first local time of a stretch that counts, and is not before `from`.
    fn first_in(&self, stretch: &Stretch, from: DateTime, lookahead: &mut Lookahead<'_>) -> Option<DateTime> {
        let shown_until = stretch.start.map(|change| change.local_before());
        let shown_again_from = stretch.end.map(|change| change.local_after());
        let end = stretch.end.map(|change| change.local_before());
        let (from, end) = match self.overlap {
            Overlap::First => (shown_until.map_or(from, |shown| from.max(shown)), end),
            Overlap::Last => (from, end.min(shown_again_from)),
            Overlap::Both => (from, end),
        };
        lookahead.first_from(from).filter(|local| end.is_none_or(|end| *local < end))
    }
}

/// The first local time that a change makes impossible.
fn missing(lookahead: &mut Lookahead<'_>, change: Change) -> Option<(Change, DateTime)> {
    let first = lookahead.first_from(change.local_before())?;
    (first < change.local_after()).then_some((change, first))
}

/// Whether a local time of this stretch comes twice.
fn pass(stretch: &Stretch, local: DateTime) -> Option<Note> {
    if stretch.start.is_some_and(|change| local < change.local_before()) {
        return Some(Note::SecondPass);
    }
    stretch.end.is_some_and(|change| local >= change.local_after()).then_some(Note::FirstPass)
}

/// The local times of a pattern, with the last answer kept: an expression that matches once in years passes many
/// changes before it does, and would be searched anew behind each.
struct Lookahead<'p> {
    pattern: &'p Pattern,
    /// What was asked last, and the answer.
    known: Option<(DateTime, Option<DateTime>)>,
}

impl Lookahead<'_> {
    /// The first local time that is not before this one.
    fn first_from(&mut self, local: DateTime) -> Option<DateTime> {
        if let Some((asked, answer)) = self.known
            && asked <= local
            && answer.is_none_or(|answer| answer >= local)
        {
            return answer;
        }
        let answer = self.pattern.first_from(local);
        self.known = Some((local, answer));
        answer
    }
}
