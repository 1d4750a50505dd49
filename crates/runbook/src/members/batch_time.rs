//! When the batch of a row starts.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::csv::Row;
use crate::definition::{BatchTime, DataSource};
use crate::limits::IMMEDIATE_BATCH_SEC;
use crate::names::shown;

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
                parse_batch_time(text).map(BatchStart::At)
            }
        }
    }
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
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let local = text.parse::<DateTime>().ok().and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    local.ok_or_else(|| {
        format!("{:?} is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15", shown(text))
    })
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
