//! Withdrawal of a write: a caller that has waited long enough takes its write back, until the
//! write is sent.
//!
//! | state | becomes | by |
//! |---|---|---|
//! | waiting | sent | the exchanger, before the first try that reaches the database |
//! | waiting | withdrawn | the caller, whose patience is over; the exchanger then leaves the write out |
//!
//! A withdrawn write has changed nothing and never will. After it was sent, its outcome is unknown
//! until the database tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Shared by the caller of a write and the exchanger.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ticket(Arc<AtomicU8>);

impl Ticket {
    /// Marks the write as sent. `false` when it was withdrawn and must not be sent.
    pub(crate) fn send(&self) -> bool {
        self.leave(SENT) != WITHDRAWN
    }

    /// Takes the write back. `false` when it was sent already.
    pub(crate) fn withdraw(&self) -> bool {
        self.leave(WITHDRAWN) != SENT
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire) == WITHDRAWN
    }

    /// Moves from `WAITING` to another state, and returns the state that holds now.
    fn leave(&self, to: u8) -> u8 {
        match self.0.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => to,
            Err(now) => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_either_sent_or_withdrawn() {
        let sent = Ticket::default();
        assert!(sent.send() && sent.send() && !sent.withdraw() && !sent.is_withdrawn());
        let withdrawn = Ticket::default();
        assert!(
            withdrawn.withdraw() && withdrawn.withdraw() && !withdrawn.send() && withdrawn.is_withdrawn()
        );
    }
}
