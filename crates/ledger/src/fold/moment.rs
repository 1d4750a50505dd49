//! The event that is being applied, as the rows see it: its id, and the time inside its id.

use crate::ids::Ulid;

/// The id and the time of the event that is being applied. No other time exists in the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The id.
    pub(super) id: Ulid,
    /// The time inside the id, in Unix milliseconds.
    pub(super) at: i64,
}

impl Moment {
    /// The moment of an event.
    pub(super) fn of(id: Ulid) -> Self {
        Moment { id, at: id.time_ms() }
    }
}
