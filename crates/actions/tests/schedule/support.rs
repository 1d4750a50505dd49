//! The words that the tests are written in.

use std::sync::LazyLock;

use jiff::Timestamp;
use segno_actions::schedule::{Gap, Occurrence, Overlap, Schedule, ScheduleSpec, Zones};

/// The bundled database, so that tests do not depend on the machine.
pub static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);

/// A moment.
pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A cron schedule with the default rule for daylight saving.
pub fn cron(expression: &str, zone: &str) -> Schedule {
    cron_by(expression, zone, Gap::Shift, Overlap::First)
}

/// A cron schedule.
pub fn cron_by(expression: &str, zone: &str, gap: Gap, overlap: Overlap) -> Schedule {
    let spec = ScheduleSpec::cron(expression).timezone(zone).daylight(gap, overlap);
    spec.compile(&ZONES).unwrap_or_else(|error| panic!("{expression} in {zone}: {error}"))
}

/// The local time of an occurrence with its distance from UTC, without the zone.
pub fn local(occurrence: &Occurrence) -> String {
    occurrence.local.split('[').next().unwrap_or_default().to_owned()
}

/// The local times of the next occurrences.
pub fn locals(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
    schedule.after(at(from)).take(count).map(|occurrence| local(&occurrence)).collect()
}
