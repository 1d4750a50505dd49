//! Times as text: RFC 3339 in UTC with three decimals, so that texts compare as times do and SQLite's functions read
//! them.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The text of a time in Unix milliseconds. Times beyond the year 9999 or before 0 are shown as its limits.
pub fn text(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms);
    let time = time.unwrap_or(if ms < 0 { Timestamp::MIN } else { Timestamp::MAX });
    let time = TimeZone::UTC.to_datetime(time);
    let (date, time) = (time.date(), time.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year().max(0),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
    )
}

/// The time that a text in a comparison means, in Unix milliseconds, rounded down: a date, or a date and a time as in
/// RFC 3339 or as SQLite's functions return them, in UTC unless it has an offset.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_date = bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[0].is_ascii_digit();
    if !is_date {
        return None;
    }
    let time = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) if bytes.len() == 10 => in_utc(text.parse::<Date>().ok()?.into())?,
        Err(_) if matches!(bytes[10], b' ' | b'T') => in_utc(text.parse::<DateTime>().ok()?)?,
        Err(_) => return None,
    };
    Some(time.as_millisecond())
}

fn in_utc(time: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_compare_as_their_times() {
        let times = [-1, 0, 1, 999, 1_000, 1_763_494_531_123, 253_402_207_200_000];
        let texts = times.map(text);
        assert!(texts.is_sorted(), "{texts:?}");
        for (ms, text) in times.iter().zip(&texts) {
            assert_eq!(parse(text), Some(*ms), "{text}");
        }
        assert_eq!(text(1_763_494_531_123), "2025-11-18T19:35:31.123Z");
    }

    #[test]
    fn comparisons_take_what_people_and_functions_write() {
        let noon = parse("2026-11-18T12:00:00.000Z");
        for written in [
            "2026-11-18T12:00:00Z",
            "2026-11-18 12:00:00",
            "2026-11-18 12:00",
            "2026-11-18T12:00:00.000",
            "2026-11-18T13:00:00+01:00",
            "2026-11-18 13:00:00+01:00",
        ] {
            assert_eq!(parse(written), noon, "{written}");
        }
        assert_eq!(parse("2026-11-18"), parse("2026-11-18T00:00:00.000Z"));
        for other in ["", "now", "2026", "2026-13-01", "2026-11-18x", "12:00:00", "tomorrow at noon"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
