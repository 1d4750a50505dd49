//! All days on which nothing happens, put together so that one look answers.

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::error::ScheduleError;
use super::exclusion::{Exclusion, MonthDay};

/// Most exclusions of a schedule.
const MAX_EXCLUSIONS: usize = 500;

/// After so many days the dates and weekdays of the calendar begin again: 400 years.
const DAYS_OF_ALL_YEARS: usize = 146_097;

/// Most exclusions that are named in a description.
const MAX_NAMED: usize = 5;

/// The days that a schedule leaves out.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    exclusions: Vec<Exclusion>,
    /// One bit for each weekday, from Monday on.
    weekdays: u8,
    /// One bit for each day of a month, for each month.
    yearly: [u32; 12],
    /// Dates from and to, in order, none of which touches another.
    dates: Vec<(Date, Date)>,
}

impl Calendar {
    /// Reads exclusions; none if there are none.
    ///
    /// # Errors
    /// When one is no day, or there are too many.
    pub fn read(texts: &[String]) -> Result<Option<Self>, ScheduleError> {
        if texts.len() > MAX_EXCLUSIONS {
            let problem =
                format!("has {} entries, the limit is {MAX_EXCLUSIONS}; join dates with ..", texts.len());
            return Err(ScheduleError::new("exclude", problem));
        }
        let exclusions: Result<Vec<Exclusion>, String> = texts.iter().map(|text| text.parse()).collect();
        let exclusions = exclusions.map_err(|problem| ScheduleError::new("exclude", problem))?;
        Ok((!exclusions.is_empty()).then(|| Self::of(exclusions)))
    }

    fn of(exclusions: Vec<Exclusion>) -> Self {
        let week = Date::constant(2000, 1, 3);
        let weekdays = (0..7u8).filter(|day| {
            let date = week.saturating_add(i64::from(*day).days());
            exclusions
                .iter()
                .any(|exclusion| matches!(exclusion, Exclusion::Weekly(..)) && exclusion.covers(date))
        });
        let mut dates: Vec<(Date, Date)> = exclusions
            .iter()
            .filter_map(|exclusion| match exclusion {
                Exclusion::Dates(first, last) => Some((*first, *last)),
                _ => None,
            })
            .collect();
        dates.sort_unstable();
        dates.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1.saturating_add(1.day());
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        Calendar {
            weekdays: weekdays.fold(0, |bits, day| bits | 1 << day),
            yearly: yearly(&exclusions),
            dates,
            exclusions,
        }
    }

    /// Whether nothing happens on a day.
    pub fn excludes(&self, date: Date) -> bool {
        self.is_excluded_for_ever(date) || self.dates_around(date).is_some()
    }

    /// The first day from this one on on which something may happen; none if there is none in all years.
    pub fn first_open(&self, from: Date) -> Option<Date> {
        let mut date = from;
        for _ in 0..DAYS_OF_ALL_YEARS + self.dates.len() {
            date = match self.dates_around(date) {
                Some((_, last)) => last.tomorrow().ok()?,
                None if self.is_excluded_for_ever(date) => date.tomorrow().ok()?,
                None => return Some(date),
            };
        }
        None
    }

    /// The exclusion that a day is left out by, in words.
    pub fn reason(&self, date: Date) -> Option<String> {
        self.exclusions.iter().find(|exclusion| exclusion.covers(date)).map(Exclusion::to_string)
    }

    /// What is left out, for people.
    pub fn describe(&self) -> String {
        let named: Vec<String> = self.exclusions.iter().take(MAX_NAMED).map(Exclusion::to_string).collect();
        match self.exclusions.len().saturating_sub(named.len()) {
            0 => format!("not on {}", named.join(", ")),
            more => format!("not on {} and {more} more", named.join(", ")),
        }
    }

    fn is_excluded_for_ever(&self, date: Date) -> bool {
        let weekday = date.weekday().to_monday_zero_offset();
        let month = usize::from(date.month().unsigned_abs() - 1);
        self.weekdays & (1 << weekday) != 0 || self.yearly[month] & (1 << date.day()) != 0
    }

    fn dates_around(&self, date: Date) -> Option<(Date, Date)> {
        let after = self.dates.partition_point(|(first, _)| *first <= date);
        self.dates[..after].last().copied().filter(|(_, last)| date <= *last)
    }
}

/// The days of every year that are left out, looked at in a year that has all of them.
fn yearly(exclusions: &[Exclusion]) -> [u32; 12] {
    let yearly: Vec<(MonthDay, MonthDay)> = exclusions
        .iter()
        .filter_map(|exclusion| match exclusion {
            Exclusion::Yearly(first, last) => Some((*first, *last)),
            _ => None,
        })
        .collect();
    let mut months = [0; 12];
    for date in Date::constant(2000, 1, 1).series(1.day()).take(366) {
        let covers = |(first, last): &(MonthDay, MonthDay)| Exclusion::Yearly(*first, *last).covers(date);
        if yearly.iter().any(covers) {
            months[usize::from(date.month().unsigned_abs() - 1)] |= 1 << date.day();
        }
    }
    months
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(texts: &[&str]) -> Calendar {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Calendar::read(&texts).unwrap().unwrap()
    }

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn it_says_of_every_day_what_its_exclusions_say() {
        let calendar = calendar(&[
            "SAT..SUN",
            "12-24..01-01",
            "05-01",
            "2026-04-03",
            "2026-04-06..2026-04-10",
            "2026-04-09..2026-04-20",
        ]);
        for date in date("2025-12-01").series(1.day()).take(800) {
            let expected = calendar.exclusions.iter().any(|exclusion| exclusion.covers(date));
            assert_eq!(calendar.excludes(date), expected, "{date}");
            assert_eq!(calendar.reason(date).is_some(), expected, "{date}");
            let first = date.series(1.day()).find(|date| !calendar.excludes(*date));
            assert_eq!(calendar.first_open(date), first, "{date}");
        }
        assert_eq!(calendar.dates.len(), 2, "dates that touch are one");
    }

    #[test]
    fn a_calendar_without_an_open_day_is_found_out() {
        for texts in [
            &["MON..SUN"][..],
            &["TUE..MON"],
            &["01-01..12-31"],
            &["07-01..06-30"],
            &["0001-01-01..9999-12-31"],
            &["MON..SAT", "01-01..12-30", "2000-01-01..9999-12-31"],
        ] {
            assert_eq!(calendar(texts).first_open(date("2026-01-01")), None, "{texts:?}");
        }
        // The last Sunday on a 29 February before the year 10000 is years away, and found.
        let rare = calendar(&["MON..SAT", "01-01..02-28", "03-01..12-31"]);
        assert_eq!(rare.first_open(date("2026-01-01")), Some(date("2032-02-29")));
    }

    #[test]
    fn what_it_leaves_out_is_named_within_bounds() {
        assert_eq!(calendar(&["--12-25", "sat"]).describe(), "not on 12-25, SAT");
        let many: Vec<String> = (1..=9).map(|day| format!("01-0{day}")).collect();
        let many = Calendar::read(&many).unwrap().unwrap();
        assert_eq!(many.describe(), "not on 01-01, 01-02, 01-03, 01-04, 01-05 and 4 more");
        let error = Calendar::read(&vec!["SAT".to_owned(); 501]).unwrap_err();
        assert_eq!(error.field(), "exclude");
    }
}
