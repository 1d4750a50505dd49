//! Random cron expressions over the whole grammar against a brute-force matcher.
//!
//! The matcher is written from the grammar in `docs/guide/schedules.md` and shares nothing with the code: it keeps the text, and
//! judges each minute of local time by itself, with the calendar of the tests and no sets, bits or walks. The generator makes
//! everything that the grammar has, and things that it does not have; both must agree on what is refused, too.

use jiff::civil::{Date, DateTime};
use segno_actions::schedule::ScheduleSpec;
use segno_testkit::seeded::Random;

use crate::support::ZONES;

/// How many expressions are tried if `SEGNO_SCHEDULE_CASES` does not say otherwise. `SEGNO_SCHEDULE_SEED` repeats one.
const CASES: u64 = 150;

/// Days of which each expression is compared whether it happens on them.
const DAYS: usize = 150;

/// Days that are compared minute by minute, and second by second where a minute matches, of each expression.
const DAYS_LOOKED_INTO: usize = 1;

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// What a field is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
    Year,
}

impl Kind {
    fn bounds(self) -> (i64, i64) {
        match self {
            Kind::Second | Kind::Minute => (0, 59),
            Kind::Hour => (0, 23),
            Kind::Day => (1, 31),
            Kind::Month => (1, 12),
            Kind::Weekday => (0, 7),
            Kind::Year => (1, 5_000),
        }
    }

    fn number(self, text: &str) -> Option<i64> {
        let upper = text.to_uppercase();
        let named = match self {
            Kind::Weekday => WEEKDAYS.iter().position(|name| *name == upper),
            Kind::Month => MONTHS.iter().position(|name| *name == upper).map(|place| place + 1),
            _ => None,
        };
        let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let value =
            named.map(|place| place as i64).or_else(|| digits.then(|| text.parse().ok()).flatten())?;
        (self.bounds().0..=self.bounds().1).contains(&value).then_some(value)
    }

    /// `a-b`, `a`, `*/n`, `a-b/n`: its first value, its last one and its step.
    fn range(self, text: &str) -> Option<(i64, i64, i64)> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                if range != "*" && !range.contains('-') {
                    return None;
                }
                let digits = !step.is_empty() && step.chars().all(|c| c.is_ascii_digit());
                (
                    range,
                    digits
                        .then(|| step.parse::<i64>().ok())
                        .flatten()
                        .filter(|step| *step > 0 && *step <= 65_535)?,
                )
            }
            None => (text, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => self.bounds(),
            Some((from, to)) => {
                let is_sunday = self == Kind::Weekday && to.eq_ignore_ascii_case("SUN");
                (self.number(from)?, if is_sunday { 7 } else { self.number(to)? })
            }
            None => (self.number(range)?, self.number(range)?),
        };
        (from <= to).then_some((from, to, step))
    }

    /// Whether an item of a list is part of the grammar.
    fn knows(self, item: &str) -> bool {
        let upper = item.to_uppercase();
        match self {
            Kind::Day if upper == "L" || upper == "LW" => true,
            Kind::Day if upper.ends_with('W') => self.number(&item[..item.len() - 1]).is_some(),
            Kind::Weekday if upper.contains('#') => {
                let (range, nth) = upper.split_once('#').unwrap();
                range != "*" && ["1", "2", "3", "4", "5", "L"].contains(&nth) && self.range(range).is_some()
            }
            Kind::Weekday if upper.ends_with('L') => self.number(&item[..item.len() - 1]).is_some(),
            _ => item != "*" && self.range(item).is_some(),
        }
    }

    /// Whether an item allows a value.
    fn allows(self, item: &str, local: DateTime) -> bool {
        let (date, upper) = (local.date(), item.to_uppercase());
        let in_range = |range: &str, value: i64| {
            let (from, to, step) = self.range(range).unwrap();
            value >= from && value <= to && (value - from) % step == 0
        };
        match self {
            Kind::Second => in_range(item, local.second().into()),
            Kind::Minute => in_range(item, local.minute().into()),
            Kind::Hour => in_range(item, local.hour().into()),
            Kind::Month => in_range(item, local.month().into()),
            Kind::Year => in_range(item, local.year().into()),
            Kind::Day if upper == "L" => date.tomorrow().unwrap().day() == 1,
            Kind::Day if upper == "LW" => date == last_working_day(date),
            Kind::Day if upper.ends_with('W') => {
                nearest_working_day(date, item[..item.len() - 1].parse().unwrap()) == Some(date)
            }
            Kind::Day => in_range(item, local.day().into()),
            Kind::Weekday => {
                let day = i64::from(date.weekday().to_sunday_zero_offset());
                let (range, nth) = match upper.split_once('#') {
                    Some((range, nth)) => (range, nth),
                    None if upper.ends_with('L') => (&upper[..upper.len() - 1], "L"),
                    None => (upper.as_str(), ""),
                };
                let is_day = in_range(range, day) || (day == 0 && in_range(range, 7));
                let is_nth = match nth {
                    "" => true,
                    // No such weekday in the rest of the month.
                    "L" => same_weekdays(date).last() == Some(&date),
                    nth => same_weekdays(date).get(nth.parse::<usize>().unwrap() - 1) == Some(&date),
                };
                is_day && is_nth
            }
        }
    }
}

fn days_of_month(date: Date) -> Vec<Date> {
    (1..=31).filter_map(|day| Date::new(date.year(), date.month(), day).ok()).collect()
}

fn same_weekdays(date: Date) -> Vec<Date> {
    days_of_month(date).into_iter().filter(|other| other.weekday() == date.weekday()).collect()
}

fn working_days(date: Date) -> Vec<Date> {
    let is_working = |day: &Date| (1..=5).contains(&day.weekday().to_monday_one_offset());
    days_of_month(date).into_iter().filter(is_working).collect()
}

fn last_working_day(date: Date) -> Date {
    *working_days(date).last().unwrap()
}

/// The working day of the month that is nearest to a day; there are never two.
fn nearest_working_day(date: Date, day: i8) -> Option<Date> {
    let wanted = Date::new(date.year(), date.month(), day).ok()?;
    working_days(date).into_iter().min_by_key(|working| (working.day() - wanted.day()).abs())
}

/// An expression as it is written.
#[derive(Debug)]
struct Matcher {
    fields: Vec<(Kind, String)>,
    needs_both: bool,
}

impl Matcher {
    /// `None` for what the grammar does not have.
    fn read(text: &str) -> Option<Self> {
        let text = match text.to_lowercase().as_str() {
            "@hourly" => "0 * * * *",
            "@daily" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            _ => text,
        }
        .to_owned();
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.len() == 5 {
            words.insert(0, "0".to_owned());
        }
        if words.len() == 6 {
            words.push("*".to_owned());
        }
        let kinds =
            [Kind::Second, Kind::Minute, Kind::Hour, Kind::Day, Kind::Month, Kind::Weekday, Kind::Year];
        if words.len() != kinds.len() {
            return None;
        }
        let needs_both = words[5].starts_with('+');
        if needs_both {
            words[5].remove(0);
        }
        for place in [3, 5] {
            if words[place].starts_with('?') {
                words[place].replace_range(..1, "*");
            }
        }
        let fields: Vec<(Kind, String)> = kinds.into_iter().zip(words).collect();
        let is_known =
            fields.iter().all(|(kind, field)| field == "*" || field.split(',').all(|item| kind.knows(item)));
        is_known.then_some(Matcher { fields, needs_both })
    }

    fn field(&self, wanted: Kind) -> &str {
        &self.fields.iter().find(|(kind, _)| *kind == wanted).unwrap().1
    }

    fn allows(&self, kind: Kind, local: DateTime) -> bool {
        let field = self.field(kind);
        field == "*" || field.split(',').any(|item| kind.allows(item, local))
    }

    fn allows_date(&self, local: DateTime) -> bool {
        let (day, weekday) = (self.allows(Kind::Day, local), self.allows(Kind::Weekday, local));
        let is_day = match (self.field(Kind::Day), self.field(Kind::Weekday)) {
            ("*", _) | (_, "*") => day && weekday,
            _ if self.needs_both => day && weekday,
            _ => day || weekday,
        };
        is_day && self.allows(Kind::Month, local) && self.allows(Kind::Year, local)
    }

    /// All local times of a date, minute by minute.
    fn times(&self, date: Date) -> Vec<DateTime> {
        let mut times = Vec::new();
        for (hour, minute) in (0..24).flat_map(|hour| (0..60).map(move |minute| (hour, minute))) {
            let at = |second| date.at(hour, minute, second, 0);
            if self.allows(Kind::Hour, at(0)) && self.allows(Kind::Minute, at(0)) {
                times.extend((0..60).map(at).filter(|time| self.allows(Kind::Second, *time)));
            }
        }
        times
    }
}

/// Makes expressions.
struct Generator<'a>(&'a mut Random);

impl Generator<'_> {
    fn one_in(&mut self, count: u64) -> bool {
        self.0.below(count) == 0
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[usize::try_from(self.0.below(texts.len() as u64)).unwrap()]
    }

    fn expression(&mut self, year: i16) -> String {
        if self.one_in(25) {
            let nickname =
                self.pick(&["@hourly", "@daily", "@Weekly", "@monthly", "@YEARLY", "@annually", "@often"]);
            return nickname.to_owned();
        }
        let mut fields: Vec<String> = [Kind::Minute, Kind::Hour, Kind::Day, Kind::Month, Kind::Weekday]
            .map(|kind| self.field(kind))
            .into();
        if self.one_in(6) {
            fields[4].insert(0, '+');
        }
        if self.one_in(3) {
            fields.insert(0, self.field(Kind::Second));
            if self.one_in(2) {
                let near = i64::from(year) + i64::try_from(self.0.below(2)).unwrap();
                let range = format!("{}-{near}/2", near - 3);
                fields.push(
                    [near.to_string(), range, "*".to_owned(), self.field(Kind::Year)]
                        [usize::try_from(self.0.below(4)).unwrap()]
                    .clone(),
                );
            }
        }
        fields.join(" ")
    }

    fn field(&mut self, kind: Kind) -> String {
        if self.one_in(3) {
            return "*".to_owned();
        }
        if matches!(kind, Kind::Day | Kind::Weekday) && self.one_in(8) {
            return "?".to_owned();
        }
        let items = 1 + self.0.below(3);
        let items: Vec<String> = (0..items).map(|_| self.item(kind)).collect();
        items.join(",")
    }

    fn value(&mut self, kind: Kind) -> String {
        let (min, max) = kind.bounds();
        let number = min + i64::try_from(self.0.below(u64::try_from(max - min + 1).unwrap())).unwrap();
        let name = match kind {
            Kind::Weekday => WEEKDAYS[usize::try_from(number % 7).unwrap()],
            Kind::Month => MONTHS[usize::try_from(number - 1).unwrap()],
            _ => return number.to_string(),
        };
        match self.0.below(4) {
            0 => name.to_owned(),
            1 => name.to_lowercase(),
            _ => number.to_string(),
        }
    }

    fn range(&mut self, kind: Kind) -> String {
        match self.0.below(8) {
            0..3 => self.value(kind),
            3..5 => self.bounds(kind),
            5 => format!("*/{}", 1 + self.0.below(70)),
            6 => format!("*/{}", 1 + self.0.below(6)),
            _ => format!("{}/{}", self.bounds(kind), 1 + self.0.below(9)),
        }
    }

    /// A range; few of them go downwards, which is refused.
    fn bounds(&mut self, kind: Kind) -> String {
        let (mut from, mut to) = (self.value(kind), self.value(kind));
        if kind.number(&from) > kind.number(&to) && !self.one_in(12) {
            (from, to) = (to, from);
        }
        format!("{from}-{to}")
    }

    fn item(&mut self, kind: Kind) -> String {
        if self.one_in(60) {
            let junk = [
                "", "*", "60", "L", "5L", "W", "MON", "JAN", "1W2", "1#6", "1#0", "1#2L", "-1", "/5", "3/5",
                "*/0", "x",
            ];
            return self.pick(&junk).to_owned();
        }
        match (kind, self.0.below(6)) {
            (Kind::Day, 0) => self.pick(&["L", "LW", "l", "lw"]).to_owned(),
            (Kind::Day, 1) => format!("{}W", self.value(kind)),
            (Kind::Weekday, 0) => format!("{}L", self.value(kind)),
            (Kind::Weekday, 1) => {
                format!("{}#{}", self.range(kind), self.pick(&["1", "2", "3", "4", "5", "L"]))
            }
            _ => self.range(kind),
        }
    }
}

#[derive(Default)]
struct Tally {
    refused: u64,
    never: u64,
    compared: u64,
}

fn compare(seed: u64, tally: &mut Tally) {
    let random = &mut Random::new(seed);
    let year = 1995 + i16::try_from(random.below(100)).unwrap();
    let month = 1 + i8::try_from(random.below(12)).unwrap();
    let start = Date::new(year, month, 1).unwrap();
    let text = Generator(random).expression(year);
    let context = format!("SEGNO_SCHEDULE_SEED={seed}: {text:?} from {start}");
    let (matcher, compiled) = (Matcher::read(&text), ScheduleSpec::cron(text.as_str()).compile(&ZONES));
    let dates = || start.series(jiff::Span::new().days(1));
    let (matcher, schedule) = match (matcher, compiled) {
        (None, Err(_)) => {
            tally.refused += 1;
            return;
        }
        (Some(matcher), Err(error)) => {
            assert!(error.problem().contains("never happens"), "{context} is refused: {error}");
            let found = dates().take(12 * 366).find(|date| matcher.allows_date(date.at(0, 0, 0, 0)));
            assert_eq!(found, None, "{context} happens, and is refused: {error}");
            tally.never += 1;
            return;
        }
        (None, Ok(_)) => panic!("{context} is not in the grammar, and is accepted"),
        (Some(matcher), Ok(schedule)) => (matcher, schedule),
    };
    let moment = |local: DateTime| local.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let just_before = |local: DateTime| moment(local) - jiff::SignedDuration::from_nanos(1);
    let mut looked_into = 0;
    for date in dates().take(DAYS) {
        let expected = matcher.allows_date(date.at(0, 0, 0, 0));
        let (from, to) = (date.at(0, 0, 0, 0), date.tomorrow().unwrap().at(0, 0, 0, 0));
        let found = schedule.next_after(just_before(from)).is_some_and(|next| next.time < moment(to));
        assert_eq!(found, expected, "{context}: {date}, {}", schedule.describe());
        tally.compared += 1;
        if expected && looked_into < DAYS_LOOKED_INTO {
            looked_into += 1;
            let found: Vec<_> =
                schedule.between(just_before(from), just_before(to)).map(|at| at.time).collect();
            let expected: Vec<_> = matcher.times(date).into_iter().map(moment).collect();
            assert_eq!(found, expected, "{context}: times of {date}, {}", schedule.describe());
            tally.compared += u64::try_from(found.len()).unwrap();
        }
    }
}

#[test]
fn random_expressions_of_the_whole_grammar_agree_with_a_brute_force_matcher() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let mut tally = Tally::default();
    let first = number("SEGNO_SCHEDULE_SEED");
    let cases = first.map_or_else(|| number("SEGNO_SCHEDULE_CASES").unwrap_or(CASES), |_| 1);
    for seed in first.unwrap_or(0)..first.unwrap_or(0) + cases {
        compare(seed, &mut tally);
    }
    println!(
        "{cases} expressions: {} refused, {} never, {} moments",
        tally.refused, tally.never, tally.compared
    );
    if cases > 100 {
        assert!(tally.refused > 0 && tally.refused < cases / 2, "{} of {cases} were refused", tally.refused);
        assert!(tally.compared > 100 * cases, "compared only {}", tally.compared);
    }
}
