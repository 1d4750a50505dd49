//! A cron expression as a set of local times.
//!
//! `expression.rs` reads the text and knows which dates match. The walk from one local time to the next is bounded, so that
//! an expression which never matches is found out at once, and it knows no time zones. What the local times mean is
//! decided in `daylight.rs`.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};

use super::error::ScheduleError;
use super::expression::{Expression, LAST_YEAR, Values};

/// The longest expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 512;

/// Calendars repeat after so many years: what does not match in them never does.
const CALENDAR_CYCLE_YEARS: u32 = 400;

/// Where the search for a first match begins when an expression is checked.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// How many dates are compared to find the shortest distance between two; every such distance turns up early.
const COMPARED_DATES: usize = 64;

const SECONDS_PER_DAY: i64 = 86_400;

/// A cron expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    expression: Expression,
    days: DaysOfMonths,
}

/// The days on which an expression happens in months of each length and first weekday, found when first asked for. Nothing
/// else decides about a day, so 28 answers serve all months of the 400 years that a search may pass.
#[derive(Debug, Clone, Default)]
struct DaysOfMonths([OnceLock<u32>; 28]);

impl DaysOfMonths {
    /// The first day of a month, from this date on, that the expression allows.
    fn first_from(&self, date: Date, expression: &Expression) -> Option<Date> {
        let (first, length) = (date.first_of_month(), date.days_in_month());
        let weekday = usize::from(first.weekday().to_monday_zero_offset().unsigned_abs());
        let shape = weekday * 4 + usize::from((length - 28).unsigned_abs());
        let days = *self.0.get(shape)?.get_or_init(|| {
            let dates = (1..=length).filter_map(|day| first.with().day(day).build().ok());
            let allowed = dates.filter(|date| expression.matches_day(*date));
            allowed.fold(0, |days, date| days | 1 << date.day())
        });
        let rest = days & (u32::MAX << date.day());
        let day = i8::try_from(rest.trailing_zeros()).ok().filter(|day| *day <= length)?;
        first.with().day(day).build().ok()
    }
}

impl Pattern {
    /// Reads an expression.
    pub fn parse(expression: &str) -> Result<Self, ScheduleError> {
        if expression.len() > MAX_EXPRESSION_BYTES {
            let problem = format!("it has more than {MAX_EXPRESSION_BYTES} characters; write a shorter one");
            return Err(ScheduleError::new("cron_expr", problem));
        }
        let parsed =
            Expression::parse(expression).map_err(|problem| ScheduleError::new("cron_expr", problem))?;
        let pattern = Pattern { expression: parsed, days: DaysOfMonths::default() };
        if pattern.first_time().is_none() || pattern.date_from(EPOCH).is_none() {
            let problem = format!(
                "{expression:?} never happens: no date after 1970 has such a day, month, weekday and year; correct one of them"
            );
            return Err(ScheduleError::new("cron_expr", problem));
        }
        Ok(pattern)
    }

    /// Whether it asks for something in every hour of a day, and so for a distance in time rather than for times of day.
    pub fn is_hourly(&self) -> bool {
        self.expression.hours == Values::all(0, 23)
    }

    /// The parsed expression.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The first local time that is not before this one. Fractions of a second must be zero.
    pub fn first_from(&self, local: DateTime) -> Option<DateTime> {
        let today = local.date();
        if self.matches(today)
            && let Some(time) = self.time_from(local.time())
        {
            return Some(today.to_datetime(time));
        }
        let date = self.date_from(today.tomorrow().ok()?)?;
        Some(date.to_datetime(self.first_time()?))
    }

    /// The shortest time between two local times.
    ///
    /// Two neighbours differ first in their second, minute, hour or date; what is below that goes from its last value
    /// to its first.
    pub fn smallest_gap(&self) -> Option<Duration> {
        let Expression { seconds, minutes, hours, .. } = &self.expression;
        let span_of_seconds = span(*seconds);
        let span_of_minutes = span(*minutes) * 60 + span_of_seconds;
        let span_of_day = span(*hours) * 3_600 + span_of_minutes;
        let gaps = [
            smallest_step(*seconds),
            smallest_step(*minutes).map(|step| step * 60 - span_of_seconds),
            smallest_step(*hours).map(|step| step * 3_600 - span_of_minutes),
            self.fewest_days().map(|days| days * SECONDS_PER_DAY - span_of_day),
        ];
        let seconds = gaps.into_iter().flatten().min()?;
        Some(Duration::from_secs(u64::try_from(seconds).ok()?))
    }

    /// The smallest number of days between two dates.
    fn fewest_days(&self) -> Option<i64> {
        let mut last = self.date_from(EPOCH)?;
        let mut fewest: Option<i64> = None;
        for _ in 0..COMPARED_DATES {
            let Some(next) = last.tomorrow().ok().and_then(|tomorrow| self.date_from(tomorrow)) else {
                break;
            };
            let days = i64::from((next - last).get_days());
            fewest = Some(fewest.map_or(days, |fewest| fewest.min(days)));
            last = next;
        }
        fewest
    }

    fn first_time(&self) -> Option<Time> {
        self.time_from(Time::midnight())
    }

    /// The first time of day that is not before this one.
    fn time_from(&self, time: Time) -> Option<Time> {
        let Expression { seconds, minutes, hours, .. } = &self.expression;
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        let in_this_hour = hours.has(hour);
        let in_this_minute = in_this_hour && minutes.has(minute);
        let found = (in_this_minute.then(|| seconds.from(second)).flatten())
            .map(|second| (hour, minute, second))
            .or_else(|| {
                let minute = in_this_hour.then(|| minutes.from(minute + 1)).flatten()?;
                Some((hour, minute, seconds.from(0)?))
            })
            .or_else(|| Some((hours.from(hour + 1)?, minutes.from(0)?, seconds.from(0)?)));
        let (hour, minute, second) = found?;
        Time::new(hour, minute, second, 0).ok()
    }

    /// The first date that is not before this one.
    fn date_from(&self, date: Date) -> Option<Date> {
        let mut matching_years = 0;
        for year in date.year()..=i16::try_from(LAST_YEAR).unwrap_or(i16::MAX) {
            if !self.expression.matches_year(year) {
                continue;
            }
            matching_years += 1;
            if matching_years > CALENDAR_CYCLE_YEARS + 1 {
                return None;
            }
            let january = Date::new(year, 1, 1).ok()?;
            if let Some(found) = self.date_in_year_from(date.max(january)) {
                return Some(found);
            }
        }
        None
    }

    fn date_in_year_from(&self, date: Date) -> Option<Date> {
        let months = (date.month()..=12).filter(|month| self.expression.months.has(*month));
        let firsts = months.filter_map(|month| Date::new(date.year(), month, 1).ok());
        firsts.map(|first| first.max(date)).find_map(|from| self.days.first_from(from, &self.expression))
    }

    fn matches(&self, date: Date) -> bool {
        self.expression.matches_year(date.year())
            && self.expression.months.has(date.month())
            && self.expression.matches_day(date)
    }
}

/// The smallest difference between two values.
fn smallest_step(values: Values) -> Option<i64> {
    values.iter().zip(values.iter().skip(1)).map(|(one, next)| next - one).min()
}

/// From the first value to the last.
fn span(values: Values) -> i64 {
    values.iter().last().unwrap_or(0) - values.iter().next().unwrap_or(0)
}
