//! Stretches of time in which a zone keeps one distance from UTC, and the changes between them.
//!
//! Inside a stretch, local time and time run side by side, so that the order of one is the order of the other. All that
//! is odd about local time is in the changes.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneTransition};
use jiff::{SignedDuration, Timestamp};

/// For how long the local times that a change skips or repeats can be near: no clock was ever put forward or back by more
/// than about a day.
const CHANGES_MATTER: SignedDuration = SignedDuration::from_hours(72);

/// A moment at which the clocks of a zone are put forward or back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// The moment.
    pub at: Timestamp,
    before: Offset,
    after: Offset,
}

impl Change {
    /// What the clocks would have shown without it.
    pub fn local_before(&self) -> DateTime {
        self.before.to_datetime(self.at)
    }

    /// What the clocks show.
    pub fn local_after(&self) -> DateTime {
        self.after.to_datetime(self.at)
    }
}

/// The time between two changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// The change that it begins with, which belongs to it; none if that was too long ago to matter.
    pub start: Option<Change>,
    /// The change that it ends with; it belongs to the next one.
    pub end: Option<Change>,
    offset: Offset,
}

impl Stretch {
    /// The stretch that a moment lies in.
    ///
    /// Changes are only ever looked for forward in time: backward, the search mistakes a change that the rules of a zone
    /// would have brought for one that happened, in the year in which these rules began (Indiana, 2007).
    pub fn around(zone: &TimeZone, time: Timestamp) -> Self {
        let before = time.checked_sub(CHANGES_MATTER).unwrap_or(Timestamp::MIN);
        let mut stretch = Stretch { start: None, end: None, offset: zone.to_offset(before) };
        stretch.end = change_after(zone, before, stretch.offset);
        while let Some(change) = stretch.end
            && change.at <= time
        {
            stretch = Stretch::behind(zone, change);
        }
        stretch
    }

    /// The stretch behind a change.
    pub fn behind(zone: &TimeZone, change: Change) -> Self {
        let offset = change.after;
        Stretch { start: Some(change), end: change_after(zone, change.at, offset), offset }
    }

    /// What the clocks show at a moment of this stretch.
    pub fn local(&self, time: Timestamp) -> DateTime {
        self.offset.to_datetime(time)
    }

    /// When the clocks show a local time of this stretch.
    pub fn time(&self, local: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(local).ok()
    }
}

fn change_after(zone: &TimeZone, time: Timestamp, before: Offset) -> Option<Change> {
    let change = |transition: TimeZoneTransition<'_>| Change {
        at: transition.timestamp(),
        before,
        after: transition.offset(),
    };
    zone.following(time).next().map(change)
}
