//! A moment as people say it: `now`, `now+10m`, or RFC 3339.

use std::str::FromStr;

use jiff::Timestamp;
use segno::clock::Clock;
use segno_server::HumanDuration;

/// A moment that may depend on when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// So long from now.
    FromNow(HumanDuration),
    /// This one.
    At(Timestamp),
}

impl Moment {
    /// When it is, if now is what the clock says.
    pub fn resolve(self, clock: &dyn Clock) -> Timestamp {
        match self {
            Moment::FromNow(duration) => {
                let ms = clock.now_ms().saturating_add(duration.as_ms());
                let ms = i64::try_from(ms).unwrap_or(i64::MAX);
                Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
            }
            Moment::At(time) => time,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("now") {
            Some("") => Ok(Moment::FromNow(HumanDuration::from_millis(0))),
            Some(rest) => {
                let duration = rest.strip_prefix('+').ok_or("write \"now\" or \"now+10m\"")?;
                duration.parse().map(Moment::FromNow).map_err(|error| error.to_string())
            }
            None => text.parse().map(Moment::At).map_err(|error| {
                format!("{error}; write \"now\", \"now+10m\" or a time such as \"2026-03-27T09:00:00Z\"")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_later_and_fixed_times_are_read() {
        let in_ms = |ms| Ok(Moment::FromNow(HumanDuration::from_millis(ms)));
        assert_eq!("now".parse(), in_ms(0));
        assert_eq!("now+10m".parse(), in_ms(600_000));
        assert_eq!("now+1h30m".parse(), in_ms(5_400_000));
        let time = Timestamp::from_second(1_774_602_000).unwrap();
        assert_eq!("2026-03-27T09:00:00Z".parse(), Ok(Moment::At(time)));
        assert_eq!("2026-03-27T10:00:00+01:00".parse(), Ok(Moment::At(time)));
    }

    #[test]
    fn anything_else_is_refused_with_examples() {
        for text in ["", "nowish", "now-10m", "now+", "now+10", "tomorrow", "2026-03-27"] {
            let error = text.parse::<Moment>().unwrap_err();
            assert!(error.contains("such as") || error.contains("now+10m"), "{text}: {error}");
        }
    }
}
