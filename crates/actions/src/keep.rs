//! How long something that has ended is kept, and what becomes of it then.

use std::time::Duration;

use jiff::Timestamp;
use segno::clock::duration_ms;

use crate::moment::due_ms;

/// How long something that has ended is kept, and what becomes of it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It ceases to exist.
    Expire(Duration),
    /// It becomes due, and is there until it is archived.
    Retire(Duration),
}

impl Keep {
    /// For so many milliseconds, as calls store it.
    pub(crate) fn of_parts(keep_ms: u64, retires: bool) -> Self {
        let time = Duration::from_millis(keep_ms);
        if retires { Keep::Retire(time) } else { Keep::Expire(time) }
    }

    /// The milliseconds, and whether it retires.
    pub(crate) fn parts(self) -> (u64, bool) {
        match self {
            Keep::Expire(time) => (duration_ms(time), false),
            Keep::Retire(time) => (duration_ms(time), true),
        }
    }

    /// The life of its record.
    pub fn life(self) -> Option<Duration> {
        match self {
            Keep::Expire(time) => Some(time),
            Keep::Retire(_) => None,
        }
    }

    /// When it is due to be retired, after it has ended at a time.
    pub fn due_at_ms(self, ended_at: Timestamp) -> Option<u64> {
        match self {
            Keep::Expire(_) => None,
            Keep::Retire(time) => Some(due_ms(ended_at).saturating_add(duration_ms(time))),
        }
    }
}

impl From<Duration> for Keep {
    fn from(time: Duration) -> Self {
        Keep::Expire(time)
    }
}
