//! What both queues share: numbers that never come back, attempts, and counts of what waits.

/// A counter whose numbers strictly increase and never repeat; message ids, lock tokens and record versions.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    last: u64,
}

impl Sequence {
    /// A counter that continues after `last`, for a store that was restarted.
    pub fn after(last: u64) -> Self {
        Sequence { last }
    }

    /// The number that was taken last; 0 when none was.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next number; the first is 1.
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// What a queue knows of an entry beyond its message; what a store keeps to put it back after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its id, which is its place in the queue.
    pub id: u64,
    /// When it is, or became, visible.
    pub visible_at_ms: u64,
    /// How often it has been fetched.
    pub attempts: u32,
}

/// Whether a fetch that was given back counts as an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The work was tried.
    Counts,
    /// The work was not tried: the fetch is taken out of the count.
    Ignored,
}

impl Attempt {
    /// The attempt count after giving back work that had been fetched `attempts` times.
    pub fn settle(self, attempts: u32) -> u32 {
        match self {
            Attempt::Counts => attempts,
            Attempt::Ignored => attempts.saturating_sub(1),
        }
    }
}

/// How many entries of a queue are in which state, kept up to date by every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depths {
    /// Visible, and nobody has locked them.
    pub visible: u64,
    /// Their time has not come.
    pub delayed: u64,
    /// Fetched and not yet given back or removed.
    pub locked: u64,
}

/// The earlier of two times that may not exist.
pub fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
