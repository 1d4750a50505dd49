//! Moments: the times of actions as stores know them, in whole milliseconds.

use jiff::Timestamp;

/// When something is due, in Unix milliseconds: rounded up, so that nothing is early. Times before 1970 are due at once.
pub fn due_ms(at: Timestamp) -> u64 {
    const NANOSECONDS: i128 = 1_000_000;
    let nanoseconds = at.as_nanosecond().max(0);
    u64::try_from((nanoseconds + NANOSECONDS - 1) / NANOSECONDS).unwrap_or(u64::MAX)
}

/// A time of a clock. One beyond what calendars have is the last that they have.
pub fn timestamp(unix_ms: u64) -> Timestamp {
    let at = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_early_and_nothing_overflows() {
        for (at, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59Z", 0),
            ("1970-01-01T00:00:01.5Z", 1_500),
            ("1970-01-01T00:00:01.500000001Z", 1_501),
        ] {
            let at: Timestamp = at.parse().unwrap();
            assert_eq!(due_ms(at), ms);
        }
        assert_eq!(timestamp(u64::MAX), Timestamp::MAX);
        assert_eq!(timestamp(1_500).to_string(), "1970-01-01T00:00:01.5Z");
    }
}
