//! Days on which nothing happens, as they are written.
//!
//! | text | days |
//! |---|---|
//! | `2026-12-25` | one day |
//! | `2026-12-24..2027-01-01` | all days from the first to the last |
//! | `12-25` or `--12-25` | the day of every year |
//! | `12-24..01-01` | the days of every year, also over its end |
//! | `SAT` or `Saturday` | the day of every week |
//! | `SAT..SUN` | the days of every week |

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Weekday};

/// The three letters of a weekday, from Monday on.
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// The rest of a weekday, from Monday on.
const REST_OF_WEEKDAYS: [&str; 7] = ["DAY", "SDAY", "NESDAY", "RSDAY", "DAY", "URDAY", "DAY"];

/// A year that has every date that any year has.
const LEAP_YEAR: i16 = 2000;

/// Longest text that is repeated in an error, in characters.
const MAX_SHOWN_CHARS: usize = 40;

/// A date of every year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonthDay {
    /// From 1 to 12.
    pub month: i8,
    /// From 1 to 31.
    pub day: i8,
}

/// Days on which nothing happens. What has two ends includes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// From a date to a date.
    Dates(Date, Date),
    /// From a date of every year to the next other one.
    Yearly(MonthDay, MonthDay),
    /// From a day of every week to the next other one.
    Weekly(Weekday, Weekday),
}

impl Exclusion {
    /// Whether a day is one of them.
    pub fn covers(&self, date: Date) -> bool {
        match *self {
            Exclusion::Dates(first, last) => (first..=last).contains(&date),
            Exclusion::Yearly(first, last) => {
                let day = MonthDay { month: date.month(), day: date.day() };
                is_within(first, day, last)
            }
            Exclusion::Weekly(first, last) => {
                let [first, day, last] = [first, date.weekday(), last].map(Weekday::to_monday_zero_offset);
                is_within(first, day, last)
            }
        }
    }
}

/// Whether something lies between two ends on a circle.
fn is_within<T: PartialOrd>(first: T, middle: T, last: T) -> bool {
    if first <= last { first <= middle && middle <= last } else { middle >= first || middle <= last }
}

impl FromStr for Exclusion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last) = (first.trim(), last.trim());
        if let (Some(first), Some(last)) = (weekday(first), weekday(last)) {
            return Ok(Exclusion::Weekly(first, last));
        }
        if let (Some(first), Some(last)) = (month_day(first), month_day(last)) {
            return Ok(Exclusion::Yearly(first, last));
        }
        match (date(first), date(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Exclusion::Dates(first, last)),
            (Some(_), Some(_)) => {
                Err(format!("{:?} ends before it begins; give the earlier date first", shown(text)))
            }
            _ => Err(format!(
                "{:?} is no day; write a date (2026-12-25), a date of every year (12-25), a weekday (SAT), or two of a kind \
                 with .. between them (2026-12-24..2027-01-01)",
                shown(text)
            )),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

fn weekday(text: &str) -> Option<Weekday> {
    let text = text.to_ascii_uppercase();
    let at = WEEKDAYS.iter().zip(REST_OF_WEEKDAYS).position(|(short, rest)| {
        text.strip_prefix(short).is_some_and(|left| left.is_empty() || left == rest)
    })?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

fn month_day(text: &str) -> Option<MonthDay> {
    let (month, day) = text.strip_prefix("--").unwrap_or(text).split_once('-')?;
    let (month, day) = (digits(month, 2)?, digits(day, 2)?);
    let day = MonthDay { month: i8::try_from(month).ok()?, day: i8::try_from(day).ok()? };
    Date::new(LEAP_YEAR, day.month, day.day).ok().map(|_| day)
}

fn date(text: &str) -> Option<Date> {
    let (year, day) = text.split_once('-')?;
    let (month, day) = day.split_once('-')?;
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i16> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for MonthDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{:02}", self.month, self.day)
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |day: Weekday| WEEKDAYS[usize::from(day.to_monday_zero_offset().unsigned_abs())];
        match *self {
            Exclusion::Dates(first, last) if first == last => write!(f, "{first}"),
            Exclusion::Dates(first, last) => write!(f, "{first}..{last}"),
            Exclusion::Yearly(first, last) if first == last => write!(f, "{first}"),
            Exclusion::Yearly(first, last) => write!(f, "{first}..{last}"),
            Exclusion::Weekly(first, last) if first == last => f.write_str(name(first)),
            Exclusion::Weekly(first, last) => write!(f, "{}..{}", name(first), name(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(text: &str, date: &str) -> bool {
        text.parse::<Exclusion>().unwrap().covers(date.parse().unwrap())
    }

    #[test]
    fn each_form_covers_its_days_and_no_other() {
        for (text, inside, outside) in [
            ("2026-12-25", &["2026-12-25"][..], &["2026-12-24", "2026-12-26", "2027-12-25"][..]),
            (
                "2026-12-24..2027-01-01",
                &["2026-12-24", "2026-12-31", "2027-01-01"],
                &["2026-12-23", "2027-01-02"],
            ),
            ("12-25", &["2026-12-25", "1999-12-25"], &["2026-12-24", "2026-11-25"]),
            ("--12-25", &["2026-12-25"], &["2026-12-26"]),
            ("02-29", &["2028-02-29"], &["2027-02-28", "2027-03-01"]),
            ("12-24..01-01", &["2026-12-24", "2026-12-31", "2027-01-01"], &["2026-12-23", "2027-01-02"]),
            ("03-01..03-31", &["2026-03-01", "2026-03-31"], &["2026-02-28", "2026-04-01"]),
            ("sat", &["2026-12-26"], &["2026-12-25", "2026-12-27"]),
            ("Saturday..SUN", &["2026-12-26", "2026-12-27"], &["2026-12-25", "2026-12-28"]),
            ("FRI..MON", &["2026-12-25", "2026-12-28"], &["2026-12-24", "2026-12-29"]),
        ] {
            inside.iter().for_each(|date| assert!(covers(text, date), "{text} covers {date}"));
            outside.iter().for_each(|date| assert!(!covers(text, date), "{text} does not cover {date}"));
        }
    }

    #[test]
    fn it_is_written_in_one_way() {
        for (text, written) in [
            ("2026-12-25", "2026-12-25"),
            (" 2026-12-24 .. 2027-01-01 ", "2026-12-24..2027-01-01"),
            ("--12-25", "12-25"),
            ("--12-24..--12-26", "12-24..12-26"),
            ("wednesday", "WED"),
            ("sat..SUNDAY", "SAT..SUN"),
        ] {
            let exclusion: Exclusion = text.parse().unwrap();
            assert_eq!(exclusion.to_string(), written);
            assert_eq!(written.parse(), Ok(exclusion));
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "..",
            "2026-13-01",
            "2026-02-29",
            "13-01",
            "02-30",
            "1-1",
            "2026-1-1",
            "SA",
            "SATUR",
            "SAT-SUN",
            "SAT..12-25",
            "2026-12-25..12-26",
            "2026-12-25T00:00:00Z",
            "+026-12-25",
            "12-25..",
            "Christmas",
        ] {
            let error = text.parse::<Exclusion>().unwrap_err();
            assert!(error.contains("is no day"), "{text}: {error}");
        }
        let error = "2026-12-26..2026-12-25".parse::<Exclusion>().unwrap_err();
        assert!(error.contains("ends before it begins"), "{error}");
    }
}
