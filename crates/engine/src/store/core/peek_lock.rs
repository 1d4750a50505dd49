//! The parts of both queues: sequence numbers, attempt counts, and depths.
//!
//! Both are peek-lock queues: a fetch locks an entry for a time, and a commit under the lock removes
//! it; otherwise the entry is redelivered.

/// A counter whose numbers strictly increase and never repeat: message ids, lock tokens, record
/// versions.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    last: u64,
}

impl Sequence {
    /// A counter that continues after `last`, for a store that was restarted.
    pub fn after(last: u64) -> Self {
        Sequence { last }
    }

    /// The number that was issued last; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next number; the first is 1.
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The state of a queue entry beside its message. A durable store stores it to restore the entry
/// after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its id, which is its position in the queue.
    pub id: u64,
    /// When it is, or became, visible.
    pub visible_at_ms: u64,
    /// Number of deliveries.
    pub attempts: u32,
}

/// Whether an abandoned delivery counts as an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The work was tried: the delivery counts.
    Counts,
    /// The work was not tried: the delivery does not count.
    Ignored,
}

impl Attempt {
    /// The attempt count of an entry that is abandoned after `attempts` deliveries.
    pub fn settle(self, attempts: u32) -> u32 {
        match self {
            Attempt::Counts => attempts,
            Attempt::Ignored => attempts.saturating_sub(1),
        }
    }
}

/// Number of entries of a queue in each state, updated by every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Visible and not locked.
    pub visible: u64,
    /// Visible only later.
    pub delayed: u64,
    /// Delivered, and neither removed nor abandoned yet.
    pub locked: u64,
}

/// The earlier of two times that may not exist.
pub fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
