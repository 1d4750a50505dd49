//! Durations as people write them: `30s`, `10m`, `1500ms`, `1h30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use segno::limits::MAX_TIMER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The units from large to small, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration in whole milliseconds that is text in files and on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// So many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        HumanDuration(Duration::from_millis(ms))
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        HumanDuration(Duration::from_secs(seconds))
    }

    /// As the standard library has it.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// In milliseconds.
    pub fn as_ms(self) -> u64 {
        segno::clock::duration_ms(self.0)
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a duration{problem}; write a number and a unit (ms, s, m, h, d), such as \"30s\" or \"1h30m\""
)]
pub struct NotADuration {
    text: String,
    problem: &'static str,
}

impl FromStr for HumanDuration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let refuse = |problem| NotADuration { text: text.chars().take(40).collect(), problem };
        let mut rest = text.trim();
        let mut total_ms: u64 = 0;
        if rest.is_empty() {
            return Err(refuse(", it is empty"));
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            let (unit, tail) = tail.split_at(letters);
            let unit = UNITS.iter().find(|(name, _)| *name == unit);
            let (Some((_, unit_ms)), false) = (unit, number.is_empty()) else { return Err(refuse("")) };
            let part_ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
            total_ms =
                part_ms.and_then(|ms| total_ms.checked_add(ms)).ok_or_else(|| refuse(", it is too long"))?;
            rest = tail.trim_start();
        }
        let duration = Duration::from_millis(total_ms);
        if duration > MAX_TIMER {
            Err(refuse(", it is longer than ten years"))
        } else {
            Ok(HumanDuration(duration))
        }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest_ms = self.as_ms();
        if rest_ms == 0 {
            return f.write_str("0s");
        }
        for (unit, unit_ms) in UNITS {
            if rest_ms >= unit_ms {
                write!(f, "{}{unit}", rest_ms / unit_ms)?;
                rest_ms %= unit_ms;
            }
        }
        Ok(())
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, ms, written) in [
            ("30s", 30_000, "30s"),
            ("10m", 600_000, "10m"),
            ("1500ms", 1_500, "1s500ms"),
            ("1h30m", 5_400_000, "1h30m"),
            (" 2d 1h ", 176_400_000, "2d1h"),
            ("90m", 5_400_000, "1h30m"),
            ("0s", 0, "0s"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!((duration.as_ms(), duration.to_string().as_str()), (ms, written), "{text}");
            assert_eq!(written.parse::<HumanDuration>().unwrap(), duration);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in
            ["", " ", "30", "s", "1.5s", "-3s", "3 weeks", "1h30", "∞s", "99999999999999999999s", "5000d"]
        {
            let error = text.parse::<HumanDuration>().unwrap_err().to_string();
            assert!(error.contains("such as \"30s\""), "{text}: {error}");
        }
        assert!(serde_json::from_str::<HumanDuration>("30").is_err());
    }
}
