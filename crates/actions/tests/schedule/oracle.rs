//! Random schedules against a slow oracle that looks at every minute around a change of the clocks.
//!
//! The oracle shares nothing with the code: it has its own reading of expressions, walks real time minute by minute, and
//! decides with lists of what the clock on the wall showed when.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use segno_actions::schedule::{Gap, Overlap};

use crate::support::{ZONES, at, cron_by};

const CASES: u64 = 400;

/// Zones with the odder rules: half hours, two hours, months of fasting, a lost day, changes at midnight.
const ODD_ZONES: [&str; 14] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
];

/// An expression without seconds and years, read in the plainest way.
struct Plain {
    text: String,
    fields: [BTreeSet<i8>; 5],
}

impl Plain {
    fn random(rng: &mut Rng) -> Self {
        let minute = rng.choice(["0", "30", "15,45", "*/20", "*", "59", "0,30", "5-7"]).unwrap();
        let hour = rng.choice(["*", "0-23", "2", "1", "0", "1,2", "0-3", "*/2", "23", "*/6", "3"]).unwrap();
        let weekday = rng.choice(["*", "*", "0", "1-5", "6,0"]).unwrap();
        Self::read(&format!("{minute} {hour} * * {weekday}"))
    }

    fn read(text: &str) -> Self {
        let ranges = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let mut fields = text.split(' ').zip(ranges).map(|(field, range)| values(field, range));
        Plain { text: text.to_owned(), fields: std::array::from_fn(|_| fields.next().unwrap()) }
    }

    fn matches(&self, local: DateTime) -> bool {
        let weekday = local.weekday().to_sunday_zero_offset();
        let values = [local.minute(), local.hour(), local.day(), local.month(), weekday];
        self.fields.iter().zip(values).all(|(field, value)| field.contains(&value))
    }

    fn is_hourly(&self) -> bool {
        self.fields[1].len() == 24
    }
}

fn values(field: &str, (min, max): (i8, i8)) -> BTreeSet<i8> {
    let number = |text: &str| text.parse::<i8>().unwrap();
    let part = |part: &str| -> Vec<i8> {
        match (part.strip_prefix("*/"), part.split_once('-')) {
            (Some(step), _) => (min..=max).filter(|value| value % number(step) == 0).collect(),
            (_, Some((from, to))) => (number(from)..=number(to)).collect(),
            _ if part == "*" => (min..=max).collect(),
            _ => vec![number(part)],
        }
    };
    field.split(',').flat_map(part).collect()
}

/// The moments in `from..=to`, found by looking at every minute from a good while before to a good while after.
fn moments(
    plain: &Plain,
    zone: &TimeZone,
    (gap, overlap): (Gap, Overlap),
    [from, to]: [Timestamp; 2],
) -> Vec<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let around = SignedDuration::from_hours(49);
    let mut shown: BTreeMap<DateTime, Vec<Timestamp>> = BTreeMap::new();
    let mut found: BTreeSet<Timestamp> = BTreeSet::new();
    let mut last: Option<DateTime> = None;
    let mut now = from - around;
    while now <= to + around {
        let local = zone.to_datetime(now);
        shown.entry(local).or_default().push(now);
        let mut missing = last.map_or(local, |last| last + minute);
        while missing < local {
            if plain.matches(missing) && gap == Gap::Shift && !plain.is_hourly() {
                found.insert(now);
            }
            missing += minute;
        }
        last = Some(local);
        now += minute;
    }
    for times in shown.into_iter().filter(|(local, _)| plain.matches(*local)).map(|(_, times)| times) {
        match overlap {
            _ if plain.is_hourly() => found.extend(times),
            Overlap::Both => found.extend(times),
            Overlap::First => found.extend(times.first().copied()),
            Overlap::Last => found.extend(times.last().copied()),
        }
    }
    found.range(from..=to).copied().collect()
}

#[test]
fn random_schedules_agree_with_looking_at_every_minute() {
    let mut compared = 0;
    for seed in 0..CASES {
        let mut rng = Rng::with_seed(seed);
        let name = rng.choice(ODD_ZONES).unwrap();
        let zone = ZONES.get(name).unwrap();
        let [first, last] =
            ["2000-01-01T00:00:00Z", "2037-01-01T00:00:00Z"].map(|text| at(text).as_second() / 60);
        let start = Timestamp::from_second(rng.i64(first..last) * 60).unwrap();
        let change = zone.following(start).next().map_or(start, |transition| transition.timestamp());
        let plain = Plain::random(&mut rng);
        let gap = rng.choice([Gap::Shift, Gap::Skip]).unwrap();
        let overlap = rng.choice([Overlap::First, Overlap::Last, Overlap::Both]).unwrap();
        let from = change - SignedDuration::from_mins(rng.i64(0..2_880));
        let to = change + SignedDuration::from_hours(36);
        let expected = moments(&plain, &zone, (gap, overlap), [from, to]);
        let schedule = cron_by(&plain.text, name, gap, overlap);
        let just_before = from - SignedDuration::from_nanos(1);
        let found: Vec<Timestamp> =
            schedule.between(just_before, to).map(|occurrence| occurrence.time).collect();
        assert_eq!(
            found, expected,
            "seed {seed}: {} in {name}, {gap:?}, {overlap:?}, from {from} to {to}",
            plain.text
        );
        compared += found.len();
    }
    assert!(compared > 10_000, "compared only {compared} moments");
}
