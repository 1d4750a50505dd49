//! Random schedules against a slow oracle that looks at every minute around a change of the clocks.
//!
//! The oracle shares nothing with the code: it has its own reading of expressions, walks real time minute by minute, and
//! decides with lists of what the clock on the wall showed when.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use segno_actions::schedule::{Gap, Overlap};
use segno_testkit::seeded::Random;

use crate::support::{ZONES, at, cron_by};

/// How many schedules are tried if `SEGNO_SCHEDULE_CASES` does not say otherwise.
const CASES: u64 = 100;

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

fn pick<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[usize::try_from(random.below(choices.len() as u64)).unwrap()]
}

fn minutes_from(time: Timestamp, minutes: u64) -> Timestamp {
    time + SignedDuration::from_mins(i64::try_from(minutes).unwrap())
}

/// An expression without seconds and years, read in the plainest way.
struct Plain {
    text: String,
    fields: [BTreeSet<i8>; 5],
}

impl Plain {
    fn random(random: &mut Random) -> Self {
        let minute = pick(random, &["0", "30", "15,45", "*/20", "*", "59", "0,30", "5-7"]);
        let hour = pick(random, &["*", "0-23", "2", "1", "0", "1,2", "0-3", "*/2", "23", "*/6", "3"]);
        let weekday = pick(random, &["*", "*", "0", "1-5", "6,0"]);
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
    let around = SignedDuration::from_hours(26);
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
    let cases = std::env::var("SEGNO_SCHEDULE_CASES").map_or(CASES, |cases| cases.parse().unwrap());
    for seed in 0..cases {
        let random = &mut Random::new(seed);
        let name = pick(random, &ODD_ZONES);
        let zone = ZONES.get(name).unwrap();
        let [first, last] = ["2000-01-01T00:00:00Z", "2037-01-01T00:00:00Z"]
            .map(|text| u64::try_from(at(text).as_second() / 60).unwrap());
        let start = minutes_from(Timestamp::UNIX_EPOCH, random.between(first, last));
        let change = zone.following(start).next().map_or(start, |transition| transition.timestamp());
        let plain = Plain::random(random);
        let gap = pick(random, &[Gap::Shift, Gap::Skip]);
        let overlap = pick(random, &[Overlap::First, Overlap::Last, Overlap::Both]);
        let from = minutes_from(change - SignedDuration::from_hours(48), random.below(2_880));
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
        compared += u64::try_from(found.len()).unwrap();
    }
    assert!(compared > 20 * cases, "compared only {compared} moments");
}
