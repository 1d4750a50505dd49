//! Timer ids. A timer that fires or is accepted before its request is folded is rebuilt from its id
//! alone, so ids must be readable whatever their keys contain.

use std::fmt;
use std::str::FromStr;

use super::segment::{escape, unescape};

/// What a timer of an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerPurpose {
    /// The end of the wait before the next attempt.
    Retry,
    /// A look at the heartbeats.
    Heartbeat,
    /// The end of the time that the task may take.
    Sla,
}

impl TimerPurpose {
    const fn segment(self) -> &'static str {
        match self {
            TimerPurpose::Retry => "retry",
            TimerPurpose::Heartbeat => "heartbeat",
            TimerPurpose::Sla => "sla",
        }
    }
}

/// What a timer id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerName {
    /// `timer:{retry|heartbeat|sla}:{run}:{task}:{attempt}:{epoch_s}`.
    Attempt {
        /// What it is for.
        purpose: TimerPurpose,
        /// The run.
        run_id: String,
        /// The task.
        task_key: String,
        /// The attempt.
        attempt: u32,
        /// When it fires, in Unix seconds.
        epoch_s: i64,
    },
    /// `timer:cron:{schedule}:{epoch_s}`.
    Cron {
        /// The schedule.
        schedule_id: String,
        /// When it fires, in Unix seconds.
        epoch_s: i64,
    },
}

impl TimerName {
    /// When it fires, in Unix seconds.
    pub fn epoch_s(&self) -> i64 {
        match self {
            TimerName::Attempt { epoch_s, .. } | TimerName::Cron { epoch_s, .. } => *epoch_s,
        }
    }
}

impl fmt::Display for TimerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerName::Attempt { purpose, run_id, task_key, attempt, epoch_s } => {
                let (run, task) = (escape(run_id), escape(task_key));
                write!(f, "timer:{}:{run}:{task}:{attempt}:{epoch_s}", purpose.segment())
            }
            TimerName::Cron { schedule_id, epoch_s } => {
                write!(f, "timer:cron:{}:{epoch_s}", escape(schedule_id))
            }
        }
    }
}

/// A text that is not a timer id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a timer id: it has the form timer:retry:{{run}}:{{task}}:{{attempt}}:{{epoch}}")]
pub struct InvalidTimerId(pub String);

impl FromStr for TimerName {
    type Err = InvalidTimerId;

    fn from_str(text: &str) -> Result<Self, InvalidTimerId> {
        let read = || -> Option<TimerName> {
            // Segments are escaped, so a colon always divides two of them.
            let segments: Vec<&str> = text.split(':').collect();
            let attempt_of = |purpose, parts: &[&str; 4]| {
                Some(TimerName::Attempt {
                    purpose,
                    run_id: unescape(parts[0])?,
                    task_key: unescape(parts[1])?,
                    attempt: parts[2].parse().ok()?,
                    epoch_s: parts[3].parse().ok()?,
                })
            };
            match segments.as_slice() {
                ["timer", "retry", parts @ ..] => attempt_of(TimerPurpose::Retry, parts.try_into().ok()?),
                ["timer", "heartbeat", parts @ ..] => {
                    attempt_of(TimerPurpose::Heartbeat, parts.try_into().ok()?)
                }
                ["timer", "sla", parts @ ..] => attempt_of(TimerPurpose::Sla, parts.try_into().ok()?),
                ["timer", "cron", schedule, epoch] => {
                    Some(TimerName::Cron { schedule_id: unescape(schedule)?, epoch_s: epoch.parse().ok()? })
                }
                _ => None,
            }
        };
        read().ok_or_else(|| InvalidTimerId(text.chars().take(200).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(run_id: &str, task_key: &str) -> TimerName {
        TimerName::Attempt {
            purpose: TimerPurpose::Retry,
            run_id: run_id.to_owned(),
            task_key: task_key.to_owned(),
            attempt: 1,
            epoch_s: 1_705_340_400,
        }
    }

    #[test]
    fn plain_ids_are_as_published() {
        assert_eq!(retry("run1", "extract").to_string(), "timer:retry:run1:extract:1:1705340400");
        let cron = TimerName::Cron { schedule_id: "daily-etl".to_owned(), epoch_s: 1_736_935_200 };
        assert_eq!(cron.to_string(), "timer:cron:daily-etl:1736935200");
    }

    #[test]
    fn timer_ids_with_colons_in_their_keys_are_read_back() {
        let names = [retry("run:1", "a:b:2"), retry("r%3A", "t:%25"), retry("", "timer:cron:x:1")];
        for name in names {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        let cron = TimerName::Cron { schedule_id: "team:daily".to_owned(), epoch_s: -5 };
        assert_eq!(cron.to_string().parse(), Ok(cron));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "timer", "timer:retry:a:b:1", "timer:retry:a:b:c:1:2", "timer:cron:a:b:1", "timer:x:a:b:1:1"]
        {
            assert_eq!(text.parse::<TimerName>(), Err(InvalidTimerId(text.to_owned())));
        }
    }
}
