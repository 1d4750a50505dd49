//! Numbers, sizes, durations and times as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How exactly a time is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// To the second.
    Second,
    /// To the millisecond.
    Millisecond,
}

/// A time on the clocks of a zone, with their distance from UTC, so that it is never in doubt which
/// zone is meant.
pub fn local_time(at: Timestamp, zone: &TimeZone, precision: Precision) -> String {
    let form = match precision {
        Precision::Second => "%Y-%m-%d %H:%M:%S %:z",
        Precision::Millisecond => "%Y-%m-%d %H:%M:%S%.3f %:z",
    };
    at.to_zoned(zone.clone()).strftime(form).to_string()
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 error`, `1,000 errors`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// What is called: an orchestration, else a function.
pub fn target(orchestration: Option<&str>, function: &str) -> String {
    match (orchestration, function) {
        (Some(orchestration), _) => format!("orchestration {orchestration}"),
        (None, "") => String::new(),
        (None, function) => format!("function {function}"),
    }
}

/// A size in MiB.
pub fn size(bytes: u64) -> String {
    const BYTES_PER_MIB: f64 = 1_048_576.0;
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let mib = bytes as f64 / BYTES_PER_MIB;
    format!("{mib:.2} MiB")
}

/// Milliseconds as people say it.
pub fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_durations_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(size(1_572_864), "1.50 MiB");
        assert_eq!([0, 1, 1_000].map(|number| counted(number, "byte")), ["0 bytes", "1 byte", "1,000 bytes"]);
        assert_eq!([5, 1_500, 61_000, 3_660_000].map(duration), ["5 ms", "1.5 s", "1 min 1 s", "1 h 1 min"]);
    }

    #[test]
    fn times_have_the_distance_of_their_zone_from_utc() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let west = TimeZone::fixed(jiff::tz::Offset::from_seconds(-12_600).unwrap());
        for (ms, zone, text) in [
            (0, &TimeZone::UTC, "1970-01-01 00:00:00 +00:00"),
            (951_827_696_000, &TimeZone::UTC, "2000-02-29 12:34:56 +00:00"),
            (1_794_700_799_999, &berlin, "2026-11-15 00:59:59 +01:00"),
            (1_782_000_000_000, &berlin, "2026-06-21 02:00:00 +02:00"),
            (0, &west, "1969-12-31 20:30:00 -03:30"),
        ] {
            let at = Timestamp::from_millisecond(ms).unwrap();
            assert_eq!(local_time(at, zone, Precision::Second), text);
        }
        let at = Timestamp::from_millisecond(1_794_700_799_999).unwrap();
        let exact = local_time(at, &TimeZone::UTC, Precision::Millisecond);
        assert_eq!(exact, "2026-11-14 23:59:59.999 +00:00");
    }
}
