//! What a history says is open: activities, timers and children without an end.

use std::collections::BTreeMap;

use crate::event::{ActivityOptions, OnExhausted};
use crate::failure::Failure;
use crate::ids::derive;
use crate::payload::Payload;

/// What an orchestration wants of an activity.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Payload,
    pub(crate) options: &'a ActivityOptions,
}

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
    /// What waits for the instance to be resumed.
    pub(crate) hold: Hold,
}

/// Why an activity is not tried again before its instance is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Hold {
    #[default]
    None,
    /// An attempt failed while the instance was paused; the next one is due at this time.
    Retry(u64),
    /// All attempts are used up, and the instance is paused for it.
    Exhausted,
}

impl OpenActivity {
    /// An activity that has just been scheduled.
    pub(crate) fn new(name: &str, input: &Payload, options: &ActivityOptions) -> Self {
        OpenActivity {
            name: name.to_owned(),
            input: input.clone(),
            options: options.clone(),
            attempt: 1,
            first_attempt: 1,
            hold: Hold::None,
        }
    }

    pub(crate) fn call(&self) -> Call<'_> {
        Call { name: &self.name, input: &self.input, options: &self.options }
    }

    /// Number and time of the attempt that a resume starts, if it starts one.
    pub(crate) fn attempt_on_resume(&self) -> Option<(u32, Option<u64>)> {
        match self.hold {
            Hold::None => None,
            Hold::Retry(at_ms) => Some((self.attempt, Some(at_ms))),
            Hold::Exhausted => Some((self.attempt + 1, None)),
        }
    }

    /// The instance is resumed: an exhausted activity counts its attempts afresh.
    pub(crate) fn resume(&mut self) {
        if self.hold == Hold::Exhausted {
            self.attempt += 1;
            self.first_attempt = self.attempt;
        }
        self.hold = Hold::None;
    }
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
    pub(crate) fn judge(&self, failure: &Failure, now_ms: u64, seed: u64) -> AttemptVerdict {
        let relative = self.attempt - self.first_attempt + 1;
        let delay =
            self.options.retry.next_delay_ms(relative, failure, derive(seed, u64::from(self.attempt)));
        let retry_at = delay
            .map(|delay| now_ms.saturating_add(delay))
            .filter(|at| self.options.deadline_at_ms.is_none_or(|deadline| *at < deadline));
        match retry_at {
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
