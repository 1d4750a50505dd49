//! The next moments of a schedule, for people to look at before they rely on it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::compiled::Schedule;

/// One moment of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewLine {
    /// The moment, in UTC.
    pub time: Timestamp,
    /// As the clocks of the schedule's zone show it: RFC 3339 with the zone behind it.
    pub local: String,
    /// What daylight saving has to do with it, if anything, for people.
    pub note: Option<String>,
}

/// The next `count` moments after `from`, or fewer if there are no more.
pub fn preview(schedule: &Schedule, from: Timestamp, count: usize) -> Vec<PreviewLine> {
    let mut last_offset = schedule.offset(from);
    let lines = schedule.after(from).take(count).map(|occurrence| {
        let offset = schedule.offset(occurrence.time);
        let changed = (offset != last_offset)
            .then(|| format!("clocks were changed: UTC{last_offset} before, UTC{offset} from here on"));
        last_offset = offset;
        PreviewLine {
            time: occurrence.time,
            local: occurrence.local,
            note: occurrence.note.map(|note| note.to_string()).or(changed),
        }
    });
    lines.collect()
}
