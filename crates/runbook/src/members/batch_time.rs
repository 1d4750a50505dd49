//! When the batch of a row starts.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use segno_actions::document::shown;

use super::csv::Row;
use crate::definition::{BatchTime, DataSource};
use crate::limits::IMMEDIATE_BATCH_SEC;

/// When the batch of a row starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BatchStart {
    /// At this moment.
    At(Timestamp),
    /// Now; its phases have no due times and are advanced by hand.
    ByHand,
}

impl BatchStart {
    /// The start of the batch that a row belongs to.
    ///
    /// # Errors
    /// The column of the batch time has no time.
    pub fn of_row(row: &Row, source: &DataSource, now: Timestamp) -> Result<Self, String> {
        match &source.batch_time {
            BatchTime::Manual => Ok(BatchStart::ByHand),
            BatchTime::Immediate => Ok(BatchStart::At(immediate_start(now))),
            BatchTime::Column(column) => {
                let text = row.columns.get(column).and_then(|value| value.as_str()).unwrap_or_default();
                let start = parse_batch_time(text)?;
                check_start(start, now).map(|()| BatchStart::At(start))
            }
        }
    }
}

/// No batch starts before: earlier times are defaults of programs, such as 0001-01-01 and 1970-01-01.
pub const EARLIEST_START: Timestamp = Timestamp::constant(946_684_800, 0);

/// No batch starts later than so long from now: a hundred years of 366 days.
const LATEST_START_HOURS: i64 = 100 * 366 * 24;

/// Checks that a batch can start at a time.
///
/// # Errors
/// The time and what is allowed.
pub fn check_start(start: Timestamp, now: Timestamp) -> Result<(), String> {
    let latest = now.saturating_add(SignedDuration::from_hours(LATEST_START_HOURS)).unwrap_or(Timestamp::MAX);
    if start < EARLIEST_START {
        return Err(too_early(start));
    }
    if start > latest {
        return Err(format!("{start} is more than a hundred years from now"));
    }
    Ok(())
}

/// The start of a batch of `batch_time: immediate`: now, floored to five minutes.
pub fn immediate_start(now: Timestamp) -> Timestamp {
    let seconds = now.as_second().div_euclid(IMMEDIATE_BATCH_SEC) * IMMEDIATE_BATCH_SEC;
    Timestamp::from_second(seconds).unwrap_or(now)
}

/// Reads a batch time: with an offset from UTC, or else in UTC; a date alone is its midnight.
///
/// # Errors
/// The text and what to write instead.
pub fn parse_batch_time(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    let in_utc = || text.parse::<DateTime>().ok().and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    let time = text.parse::<Timestamp>().ok().or_else(in_utc).ok_or_else(|| {
        format!("{:?} is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15", shown(text))
    })?;
    if time < EARLIEST_START { Err(too_early(time)) } else { Ok(time) }
}

fn too_early(start: Timestamp) -> String {
    format!("{start} is before {EARLIEST_START}, the earliest start of a batch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_times_are_read_in_utc_unless_they_have_an_offset() {
        for (text, time) in [
            ("2026-03-15T06:00:00Z", "2026-03-15T06:00:00Z"),
            ("2026-03-15T06:00:00+01:00", "2026-03-15T05:00:00Z"),
            (" 2026-03-15 06:00:30 ", "2026-03-15T06:00:30Z"),
            ("2026-03-15 06:00", "2026-03-15T06:00:00Z"),
            ("2026-03-15T06:00", "2026-03-15T06:00:00Z"),
            ("2026-03-15", "2026-03-15T00:00:00Z"),
        ] {
            assert_eq!(parse_batch_time(text).map(|time| time.to_string()).as_deref(), Ok(time), "{text}");
        }
        for text in ["", "soon", "3/15/2026", "2026-02-30", "2026-03-15T25:00"] {
            assert!(parse_batch_time(text).unwrap_err().contains("is not a time; write"), "{text}");
        }
    }

    #[test]
    fn a_batch_starts_in_this_century_or_the_next() {
        let now = "2026-03-15T00:00:00Z".parse().unwrap();
        for (start, words) in [
            ("0001-01-01T00:00:00Z", "before 2000-01-01T00:00:00Z"),
            ("1999-12-31T23:59:59Z", "before 2000-01-01T00:00:00Z"),
            ("2126-06-01T00:00:00Z", "a hundred years"),
        ] {
            let refused = check_start(start.parse().unwrap(), now).unwrap_err();
            assert!(refused.starts_with(start) && refused.contains(words), "{refused}");
        }
        for start in ["2000-01-01T00:00:00Z", "2125-12-31T00:00:00Z"] {
            assert_eq!(check_start(start.parse().unwrap(), now), Ok(()));
        }
    }

    #[test]
    fn immediate_batches_start_at_a_multiple_of_five_minutes() {
        for (now, start) in [
            ("2026-03-15T06:04:59.999Z", "2026-03-15T06:00:00Z"),
            ("2026-03-15T06:05:00Z", "2026-03-15T06:05:00Z"),
            ("1969-12-31T23:59:00Z", "1969-12-31T23:55:00Z"),
        ] {
            assert_eq!(immediate_start(now.parse().unwrap()).to_string(), start);
        }
    }
}
