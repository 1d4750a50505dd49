//! What a history says is open: activities, timers and children without an end.

use std::collections::BTreeMap;

use crate::event::{ActivityOptions, OnExhausted};
use crate::failure::Failure;
use crate::ids::derive;
use crate::payload::Payload;

/// An activity without an end.
#[derive(Debug, Clone)]
pub(crate) struct OpenActivity {
    pub(crate) name: String,
    pub(crate) input: Payload,
    pub(crate) options: ActivityOptions,
    /// Number of the attempt that is queued or running, from 1.
    pub(crate) attempt: u32,
    /// The attempt from which the policy counts; later than 1 after a resume.
    pub(crate) first_attempt: u32,
    /// All attempts are used up, and the instance is paused for it.
    pub(crate) exhausted: bool,
}

/// What to do about a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AttemptVerdict {
    RetryAt(u64),
    /// Stop here until the instance is resumed.
    Hold,
    GiveUp,
}

impl OpenActivity {
    /// Judges a failed attempt. `deadline` is a hard end: a retry that could only start after it is not made.
    pub(crate) fn judge(&self, failure: &Failure, now_ms: u64, seed: u64, paused: bool) -> AttemptVerdict {
        let relative = self.attempt - self.first_attempt + 1;
        let delay =
            self.options.retry.next_delay_ms(relative, failure, derive(seed, u64::from(self.attempt)));
        let retry_at = delay
            .map(|delay| now_ms.saturating_add(delay))
            .filter(|at| self.options.deadline_at_ms.is_none_or(|deadline| *at < deadline));
        match retry_at {
            Some(_) if paused => AttemptVerdict::Hold,
            Some(at_ms) => AttemptVerdict::RetryAt(at_ms),
            None if self.options.on_exhausted == OnExhausted::Pause && !failure.is_cancelled() => {
                AttemptVerdict::Hold
            }
            None => AttemptVerdict::GiveUp,
        }
    }
}

/// Something that was scheduled and has not ended.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Activity(Box<OpenActivity>),
    Timer,
    Child { instance: String },
}

/// Open operations by the event that scheduled them.
pub(crate) type Operations = BTreeMap<u64, Operation>;
