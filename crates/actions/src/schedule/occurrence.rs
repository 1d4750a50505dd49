//! One moment of a schedule, and what is odd about it.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// One moment of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// The moment.
    pub time: Timestamp,
    /// As the clocks of the schedule's zone show it: RFC 3339 with the zone behind it.
    pub local: String,
    /// What daylight saving has to do with it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// What daylight saving has to do with a moment. Its text is a sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// It stands for local times that do not exist, because the clock is put forward over them.
    Shifted {
        /// The first of them.
        from: DateTime,
    },
    /// Local times between the moment before this one and this one do not exist, and did not happen.
    Skipped {
        /// The first of them.
        local: DateTime,
    },
    /// Its local time comes twice, and this is the first time.
    FirstPass,
    /// Its local time comes twice, and this is the second time.
    SecondPass,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Shifted { from } => {
                write!(f, "shifted by daylight saving: {} does not exist", Minutes(*from))
            }
            Note::Skipped { local } => {
                write!(f, "{} was skipped: daylight saving, it does not exist", Minutes(*local))
            }
            Note::FirstPass => f.write_str("first pass: daylight saving ends, this local time comes twice"),
            Note::SecondPass => {
                f.write_str("second pass: daylight saving ended, this local time came before")
            }
        }
    }
}

/// A local time for people, without seconds if there are none.
struct Minutes(DateTime);

impl fmt::Display for Minutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Minutes(local) = self;
        write!(f, "{} {:02}:{:02}", local.date(), local.hour(), local.minute())?;
        if local.second() > 0 {
            write!(f, ":{:02}", local.second())?;
        }
        Ok(())
    }
}
