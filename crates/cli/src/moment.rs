//! Times and durations as people give them to flags: one parser, and one help, for all of them.
//!
//! | given | meaning |
//! |---|---|
//! | `2026-03-27T09:00:00Z`, `2026-03-27T10:00:00+01:00` | RFC 3339 |
//! | `2026-03-27`, `2026-03-27 09:00`, `2026-03-27T09:00:30` | on local clocks; a date is its first moment |
//! | `now`, `now+10m`, `now-2d` | from now |
//! | `2d` | two days ago, or from now: by what the flag is for |

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use segno::clock::Clock;
use segno_server::HumanDuration;

/// The help of a flag that names a time in the past.
macro_rules! past_help {
    ($text:literal) => {
        concat!($text, ": `2d` (ago), `now-2d`, a local date or time such as `2026-03-27 09:00`, or RFC 3339")
    };
}

/// The help of a flag that names a time in the future.
macro_rules! future_help {
    ($text:literal) => {
        concat!(
            $text,
            ": `10m` (from now), `now+10m`, a local date or time such as `2026-03-27 09:00`, or RFC 3339"
        )
    };
}

/// The help of a flag that names a time on either side of now.
macro_rules! anytime_help {
    ($text:literal) => {
        concat!($text, ": `now-2d`, `now+10m`, a local date or time such as `2026-03-27 09:00`, or RFC 3339")
    };
}

pub(crate) use {anytime_help, future_help, past_help};

/// A moment that may depend on when it is asked for, and on the zone of local clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// So long from now, or before it.
    FromNow(SignedDuration),
    /// This one.
    At(Timestamp),
    /// When local clocks show this.
    Local(DateTime),
}

/// What a duration without `now` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    Ago,
    FromNow,
    Neither,
}

/// A time of a flag that looks back: `2d` is two days ago.
///
/// # Errors
/// When the text is no time.
pub fn past(text: &str) -> Result<Moment, String> {
    parse(text, Bare::Ago)
}

/// A time of a flag that looks ahead: `2d` is in two days.
///
/// # Errors
/// When the text is no time.
pub fn future(text: &str) -> Result<Moment, String> {
    parse(text, Bare::FromNow)
}

/// A time of a flag that looks either way: `2d` is neither.
///
/// # Errors
/// When the text is no time.
pub fn anytime(text: &str) -> Result<Moment, String> {
    parse(text, Bare::Neither)
}

/// A duration of a flag that has always taken seconds: a number without a unit is that many.
///
/// # Errors
/// When the text is no duration.
pub fn seconds(text: &str) -> Result<HumanDuration, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if is_number { format!("{text}s") } else { text.to_owned() };
    text.parse::<HumanDuration>().map_err(|error| error.to_string())
}

/// The time of a clock.
pub fn now(clock: &dyn Clock) -> Timestamp {
    let ms = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

fn parse(text: &str, bare: Bare) -> Result<Moment, String> {
    let signed = |duration: &str| {
        let duration: Result<HumanDuration, _> = duration.parse();
        duration.map(|duration| SignedDuration::from_millis(duration.as_ms().cast_signed()))
    };
    if let Some(rest) = text.strip_prefix("now") {
        let shift = match (rest, rest.split_at_checked(1)) {
            ("", _) => Some(SignedDuration::ZERO),
            (_, Some(("+", duration))) => signed(duration).ok(),
            (_, Some(("-", duration))) => signed(duration).ok().map(|duration| -duration),
            _ => None,
        };
        return shift.map(Moment::FromNow).ok_or_else(|| advice(text, bare));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(Moment::At(time));
    }
    if let Ok(local) = text.parse::<DateTime>() {
        return Ok(Moment::Local(local));
    }
    match (signed(text), bare) {
        (Ok(duration), Bare::Ago) => Ok(Moment::FromNow(-duration)),
        (Ok(duration), Bare::FromNow) => Ok(Moment::FromNow(duration)),
        (Ok(_), Bare::Neither) => Err(format!("write \"now+{text}\" or \"now-{text}\"")),
        (Err(_), _) => Err(advice(text, bare)),
    }
}

fn advice(text: &str, bare: Bare) -> String {
    let (relative, bare) = match bare {
        Bare::Ago => ("now-2d", ", \"2d\" for two days ago"),
        Bare::FromNow => ("now+10m", ", \"10m\" for in ten minutes"),
        Bare::Neither => ("now+10m", ""),
    };
    let text: String = text.chars().take(40).collect();
    format!(
        "{text:?} is not a time; write \"now\", \"{relative}\"{bare}, a local date or time such as \
         \"2026-03-27\" or \"2026-03-27 09:00\", or RFC 3339 such as \"2026-03-27T09:00:00Z\""
    )
}

impl Moment {
    /// When it is, if it is now, on the clocks of this zone. A local time that clocks skip is moved behind the gap, and of one
    /// that comes twice the first is meant.
    pub fn resolve(self, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let end = |is_ahead| if is_ahead { Timestamp::MAX } else { Timestamp::MIN };
        match self {
            Moment::FromNow(duration) => {
                now.checked_add(duration).unwrap_or_else(|_| end(duration.is_positive()))
            }
            Moment::At(time) => time,
            Moment::Local(local) => zone
                .to_timestamp(local)
                .unwrap_or_else(|_| end(local > DateTime::constant(1970, 1, 1, 0, 0, 0, 0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What flags say, read on 2026-03-27 at 09:00 UTC in Berlin, where clocks are put forward on 2026-03-29 at 02:00.
    fn read(parser: fn(&str) -> Result<Moment, String>, text: &str) -> Result<String, String> {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = "2026-03-27T09:00:00Z".parse().unwrap();
        parser(text).map(|moment| moment.resolve(now, &berlin).to_string())
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        type Parser = fn(&str) -> Result<Moment, String>;
        for (parser, text, time) in [
            (past as Parser, "2026-03-27T09:00:00Z", "2026-03-27T09:00:00Z"),
            (past, "2026-03-27T10:00:00+01:00", "2026-03-27T09:00:00Z"),
            (past, "2026-03-27 10:00:00.5+01:00", "2026-03-27T09:00:00.5Z"),
            (past, "2026-03-27", "2026-03-26T23:00:00Z"),
            (past, "2026-03-27 09:30", "2026-03-27T08:30:00Z"),
            (past, "2026-03-27T09:30:15", "2026-03-27T08:30:15Z"),
            (future, "2026-03-29 02:30", "2026-03-29T01:30:00Z"),
            (future, "2026-10-25 02:30", "2026-10-25T00:30:00Z"),
            (past, "now", "2026-03-27T09:00:00Z"),
            (past, "now-2d", "2026-03-25T09:00:00Z"),
            (past, "now+10m", "2026-03-27T09:10:00Z"),
            (future, "now-2d", "2026-03-25T09:00:00Z"),
            (anytime, "now-1h30m", "2026-03-27T07:30:00Z"),
            (past, "1h", "2026-03-27T08:00:00Z"),
            (past, "2d", "2026-03-25T09:00:00Z"),
            (future, "1h", "2026-03-27T10:00:00Z"),
            (future, "1h30m", "2026-03-27T10:30:00Z"),
        ] {
            assert_eq!(read(parser, text), Ok(time.to_owned()), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_examples() {
        for text in ["", "nowish", "now+", "now+10", "now*2d", "tomorrow", "10", "-2d", "2026-02-30", "25:00"]
        {
            for parser in [past, future, anytime] {
                let error = parser(text).unwrap_err();
                assert!(error.contains("2026-03-27 09:00") && error.contains("now"), "{text}: {error}");
            }
        }
        assert_eq!(anytime("2d"), Err("write \"now+2d\" or \"now-2d\"".to_owned()));
        assert!(past("x").unwrap_err().contains("ago") && !future("x").unwrap_err().contains("ago"));
    }

    #[test]
    fn the_ends_of_time_are_not_passed() {
        let ten_years = SignedDuration::from_hours(24 * 3_650);
        assert_eq!(Moment::FromNow(-ten_years).resolve(Timestamp::MIN, &TimeZone::UTC), Timestamp::MIN);
        assert_eq!(Moment::FromNow(ten_years).resolve(Timestamp::MAX, &TimeZone::UTC), Timestamp::MAX);
    }

    #[test]
    fn a_number_where_seconds_were_taken_is_seconds() {
        for (text, ms) in [("30", 30_000), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000), ("0", 0)] {
            assert_eq!(seconds(text).map(HumanDuration::as_ms), Ok(ms), "{text}");
        }
        for text in ["", "x", "-1", "1.5", "5 weeks"] {
            assert!(seconds(text).unwrap_err().contains("\"30s\""), "{text}");
        }
    }
}
