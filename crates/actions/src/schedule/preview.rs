//! The next moments of a schedule, for people to look at before they rely on it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::compiled::{Following, Schedule};

/// Most moments that are counted of those that the calendar leaves out.
const MAX_COUNTED: usize = 1_000;

/// One moment of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewLine {
    /// The moment, in UTC.
    pub time: Timestamp,
    /// As the clocks of the schedule's zone show it: RFC 3339 with the zone behind it.
    pub local: String,
    /// What daylight saving or the calendar has to do with it, if anything, for people.
    pub note: Option<String>,
}

/// The next `count` moments after `from`, or fewer if there are no more.
pub fn preview(schedule: &Schedule, from: Timestamp, count: usize) -> Vec<PreviewLine> {
    let (mut last, mut last_offset) = (from, schedule.offset(from));
    let mut lines = Vec::new();
    while lines.len() < count {
        let Following { excluded, next: Some(next) } = schedule.following(last) else { break };
        let offset = schedule.offset(next.time);
        let changed = (offset != last_offset)
            .then(|| format!("clocks were changed: UTC{last_offset} before, UTC{offset} from here on"));
        let by_clocks = next.note.map(|note| note.to_string()).or(changed);
        let by_calendar = excluded.map(|first| left_out(schedule, first, next.time));
        let notes: Vec<String> = [by_calendar, by_clocks].into_iter().flatten().collect();
        (last, last_offset) = (next.time, offset);
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        lines.push(PreviewLine { time: next.time, local: next.local, note });
    }
    lines
}

/// What the calendar leaves out before a moment, for people.
fn left_out(schedule: &Schedule, first: Timestamp, until: Timestamp) -> String {
    let date = schedule.date(first);
    match schedule.count_with_excluded(first, until, MAX_COUNTED) {
        1 => {
            let exclusion = schedule.exclusion_of(first).unwrap_or_default();
            format!("left out by the calendar: {date} ({exclusion})")
        }
        MAX_COUNTED => format!("left out by the calendar: {MAX_COUNTED} times or more from {date} on"),
        count => format!("left out by the calendar: {count} times from {date} on"),
    }
}
