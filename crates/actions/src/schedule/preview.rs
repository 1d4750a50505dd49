//! The next moments of a schedule, for people to look at before they rely on it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::compiled::{Following, Schedule};

/// Most moments that are counted of those that the calendar leaves out.
const MAX_COUNTED: usize = 1_000;

/// Most steps of one search: a day that is passed is one, a moment that is found is `STEPS_PER_MOMENT`. Times that come once in
/// decades, or of which the calendar leaves out most, would take seconds for a thousand of them.
pub const MAX_PREVIEW_STEPS: usize = 250_000;

/// Steps of a moment that is found, whether or not the calendar leaves it out.
const STEPS_PER_MOMENT: usize = 50;

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

/// The next moments of a schedule, as far as they were searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The moments, in order.
    pub lines: Vec<PreviewLine>,
    /// Where the search ended because it took [`MAX_PREVIEW_STEPS`], although more were wanted; a search from here goes on.
    pub next_after: Option<Timestamp>,
}

/// The next `count` moments after `from`, or fewer if there are no more or the search takes too long.
pub fn preview(schedule: &Schedule, from: Timestamp, count: usize) -> Preview {
    let (mut last, mut last_offset) = (from, schedule.offset(from));
    let (mut lines, mut steps) = (Vec::new(), 0);
    while lines.len() < count {
        if steps >= MAX_PREVIEW_STEPS {
            return Preview { lines, next_after: Some(last) };
        }
        let Following { excluded, next: Some(next), left_out } = schedule.following(last) else { break };
        let offset = schedule.offset(next.time);
        let changed = (offset != last_offset)
            .then(|| format!("clocks were changed: UTC{last_offset} before, UTC{offset} from here on"));
        let by_clocks = next.note.map(|note| note.to_string()).or(changed);
        let by_calendar = excluded.map(|first| (first, times_left_out(schedule, first, next.time)));
        steps += steps_of(last, next.time, left_out + by_calendar.map_or(0, |(_, count)| count));
        let by_calendar = by_calendar.map(|(first, count)| told(schedule, first, count));
        let notes: Vec<String> = [by_calendar, by_clocks].into_iter().flatten().collect();
        (last, last_offset) = (next.time, offset);
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        lines.push(PreviewLine { time: next.time, local: next.local, note });
    }
    Preview { lines, next_after: None }
}

/// What a search from one moment to the next has cost: days that were looked at, and moments that were found on the way.
fn steps_of(from: Timestamp, to: Timestamp, found: usize) -> usize {
    let days = to.duration_since(from).as_hours() / 24;
    usize::try_from(days).unwrap_or(0) + STEPS_PER_MOMENT * (found + 1)
}

fn times_left_out(schedule: &Schedule, first: Timestamp, until: Timestamp) -> usize {
    schedule.count_with_excluded(first, until, MAX_COUNTED)
}

/// What the calendar leaves out before a moment, for people.
fn told(schedule: &Schedule, first: Timestamp, count: usize) -> String {
    let date = schedule.date(first);
    match count {
        1 => {
            let exclusion = schedule.exclusion_of(first).unwrap_or_default();
            format!("left out by the calendar: {date} ({exclusion})")
        }
        MAX_COUNTED => format!("left out by the calendar: {MAX_COUNTED} times or more from {date} on"),
        count => format!("left out by the calendar: {count} times from {date} on"),
    }
}
