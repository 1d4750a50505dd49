//! Settings of actions and recurring actions.

use std::time::Duration;

use segno::clock::duration_ms;

use crate::action::KEEP_FINISHED;
use crate::keep::Keep;

/// Settings of actions and recurring actions, and of the loop that fires them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionOptions {
    /// Whether the loop fires recurring actions.
    pub fires_recurring: bool,
    /// Longest time that the loop waits before it looks again. It wakes by itself when something is due.
    pub check_interval: Duration,
    /// Most firings under way at once.
    pub concurrency: usize,
    /// How late an occurrence may be and still be fired. Later ones were missed.
    pub missed_after: Duration,
    /// How long actions that have ended are kept.
    pub keep_finished: Duration,
    /// How long it is kept what became of each occurrence.
    pub keep_history: Duration,
    /// Whether what has ended stays after that until it is archived.
    pub retires: bool,
    /// Shortest time between two occurrences of a recurring action.
    pub min_interval: Duration,
    /// Most recurring actions of a namespace and tenant.
    pub max_recurring_per_tenant: u64,
}

impl Default for ActionOptions {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        ActionOptions {
            fires_recurring: true,
            check_interval: Duration::from_secs(5),
            concurrency: 256,
            missed_after: Duration::from_secs(60),
            keep_finished: KEEP_FINISHED,
            keep_history: 7 * DAY,
            retires: false,
            min_interval: Duration::from_secs(1),
            max_recurring_per_tenant: 10_000,
        }
    }
}

impl ActionOptions {
    /// How long actions that have ended are kept, and what becomes of them then.
    pub fn finished(&self) -> Keep {
        Keep::of_parts(duration_ms(self.keep_finished), self.retires)
    }

    /// How long histories are kept, and what becomes of them then.
    pub fn history(&self) -> Keep {
        Keep::of_parts(duration_ms(self.keep_history), self.retires)
    }
}
