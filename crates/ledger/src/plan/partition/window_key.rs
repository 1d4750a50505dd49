//! Keys of windows. Each size has its own form, so that a key shows what it is a key of; keys sort by time.

use jiff::Timestamp;
use jiff::civil::{Date, ISOWeekDate, Weekday};
use segno_actions::document::shown;

use super::calendar::{Calendar, Window};
use super::error::PartitionError;
use crate::plan::definition::WindowSize;

/// Characters of a date, as in `2026-03-29`.
const DATE_CHARS: usize = 10;
/// Characters of a month, as in `2026-03`.
const MONTH_CHARS: usize = 7;

impl WindowSize {
    /// A key, for errors.
    pub(crate) fn example(self) -> &'static str {
        match self {
            WindowSize::Hourly => "2026-03-29T01:00+01:00",
            WindowSize::Daily => "2026-03-29",
            WindowSize::Weekly => "2026-W13",
            WindowSize::Monthly => "2026-03",
        }
    }

    /// The size whose keys have the form of a text.
    pub(super) fn of_key(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.len() {
            _ if text.contains('T') => Some(WindowSize::Hourly),
            _ if text.contains("-W") => Some(WindowSize::Weekly),
            DATE_CHARS => Some(WindowSize::Daily),
            MONTH_CHARS => Some(WindowSize::Monthly),
            _ => None,
        }
    }
}

/// Whether a text is in the last year of the calendar, or behind it: windows there have no end.
fn is_last_year(key: &str) -> bool {
    let digits = key.trim_start_matches('+').chars().take_while(char::is_ascii_digit).collect::<String>();
    digits.parse::<u64>().is_ok_and(|year| year >= 9_999)
}

impl Calendar {
    /// The key of a window.
    pub fn key(&self, window: Window) -> String {
        let local = window.start.to_zoned(self.zone.clone());
        let date = local.date();
        match self.size {
            WindowSize::Hourly => local.strftime("%Y-%m-%dT%H:%M%:z").to_string().replace("+00:00", "Z"),
            WindowSize::Daily => date.to_string(),
            WindowSize::Weekly => {
                let week = date.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            WindowSize::Monthly => format!("{:04}-{:02}", date.year(), date.month()),
        }
    }

    /// The window of a key.
    ///
    /// # Errors
    /// When the text is not a key of this size, or the zone has no such window.
    pub fn window(&self, key: &str) -> Result<Window, PartitionError> {
        let refuse = |why: &str| {
            let example = self.size.example();
            PartitionError::new(format!(
                "{:?} is not a partition key{why}; write it as {example}",
                shown(key)
            ))
        };
        let window = self.read(key).ok_or_else(|| match is_last_year(key) {
            true => refuse(": its window does not end within the calendar, whose last year is 9999"),
            false => refuse(""),
        })?;
        if window.start >= window.end {
            return Err(refuse(" of this zone, which left the day out"));
        }
        let written = self.key(window);
        match written == key {
            true => Ok(window),
            false => Err(PartitionError::new(format!(
                "{:?} is not a partition key; did you mean {written:?}?",
                shown(key)
            ))),
        }
    }

    fn read(&self, key: &str) -> Option<Window> {
        match self.size {
            WindowSize::Hourly => {
                let time: Timestamp = key.parse().ok()?;
                self.containing(time)
            }
            WindowSize::Daily => self.window_of(date(key)?),
            WindowSize::Weekly => {
                let (year, week) = key.split_once("-W")?;
                let week =
                    ISOWeekDate::new(digits(year, 4)?, i8::try_from(digits(week, 2)?).ok()?, Weekday::Monday);
                self.window_of(week.ok()?.date())
            }
            WindowSize::Monthly => {
                let (year, month) = key.split_once('-')?;
                let first = Date::new(digits(year, 4)?, i8::try_from(digits(month, 2)?).ok()?, 1);
                self.window_of(first.ok()?)
            }
        }
    }
}

fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let mut part = |count| digits(parts.next()?, count);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i16> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno_actions::schedule::Zones;

    fn calendar(size: WindowSize, zone: &str) -> Calendar {
        Calendar { size, zone: Zones::bundled().get(zone).unwrap() }
    }

    #[test]
    fn keys_are_read_and_written() {
        use WindowSize::{Daily, Hourly, Monthly, Weekly};
        for (size, zone, key, start) in [
            (Daily, "UTC", "2026-03-29", "2026-03-29T00:00:00Z"),
            (Daily, "Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00Z"),
            (Weekly, "UTC", "2026-W01", "2025-12-29T00:00:00Z"),
            (Weekly, "UTC", "2020-W53", "2020-12-28T00:00:00Z"),
            (Monthly, "America/New_York", "2026-03", "2026-03-01T05:00:00Z"),
            (Hourly, "UTC", "2026-03-29T01:00Z", "2026-03-29T01:00:00Z"),
            // The hour that comes twice.
            (Hourly, "Europe/Berlin", "2026-10-25T02:00+02:00", "2026-10-25T00:00:00Z"),
            (Hourly, "Europe/Berlin", "2026-10-25T02:00+01:00", "2026-10-25T01:00:00Z"),
        ] {
            let calendar = calendar(size, zone);
            let window = calendar.window(key).unwrap();
            assert_eq!(window.start.to_string(), start, "{key}");
            assert_eq!(calendar.key(window), key);
            assert_eq!(WindowSize::of_key(key), Some(size));
        }
    }

    #[test]
    fn texts_that_are_no_keys_are_refused_with_an_example() {
        use WindowSize::{Daily, Hourly, Monthly, Weekly};
        for (size, zone, key, says) in [
            (Daily, "UTC", "2026-3-29", "write it as 2026-03-29"),
            (Daily, "UTC", "2026-02-30", "write it as"),
            (Daily, "UTC", "2026-03-29T00:00Z", "write it as"),
            (Daily, "UTC", "", "write it as"),
            (Daily, "Pacific/Apia", "2011-12-30", "left the day out"),
            (Weekly, "UTC", "2026-W54", "write it as 2026-W13"),
            (Weekly, "UTC", "2026-03-29", "write it as 2026-W13"),
            (Monthly, "UTC", "2026-13", "write it as 2026-03"),
            (Hourly, "Europe/Berlin", "2026-03-29T02:30+02:00", "did you mean \"2026-03-29T01:00+01:00\"?"),
            (Hourly, "Europe/Berlin", "2026-03-28T23:00Z", "did you mean \"2026-03-29T00:00+01:00\"?"),
            (Hourly, "Europe/Berlin", "2026-03-29T02:00", "write it as"),
        ] {
            let error = calendar(size, zone).window(key).unwrap_err().to_string();
            assert!(error.contains(says) && error.ends_with("[invalid-partition]"), "{key}: {error}");
        }
    }
}
