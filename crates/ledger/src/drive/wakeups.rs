//! When something is due in a state by itself: the stored time at which a scope has to be looked after again.

use jiff::Timestamp;
use segno_actions::schedule::Zones;

use super::holder::as_time;
use crate::fold::State;

/// The earliest time at which a retry, a timer, a lost attempt or a tick is due, in Unix milliseconds.
pub(super) fn next_ms(state: &State, zones: &Zones, now_ms: u64) -> Option<u64> {
    let retry = state.retries().filter(|pool| pool.free_slots > 0);
    let retry = retry.filter_map(|pool| pool.tasks().next().map(|(at, _)| *at)).min();
    let lost = state.running().next().map(|(at, _)| *at);
    let timer = state.timers().next().map(|timer| timer.fire_at);
    let tick = next_tick(state, zones, now_ms);
    let due = [retry, lost, timer, tick].into_iter().flatten().min()?;
    Some(u64::try_from(due).unwrap_or(0))
}

/// The next tick of a schedule.
fn next_tick(state: &State, zones: &Zones, now_ms: u64) -> Option<i64> {
    let now = Timestamp::from_millisecond(as_time(now_ms)).ok()?;
    let ticks = state.schedules().filter(|row| row.enabled).filter_map(|row| {
        let spec = row.schedule().ok().flatten()?;
        let last = state.schedule_state(&row.schedule_id).and_then(|state| state.last_scheduled_for);
        let last = last.and_then(|last| Timestamp::from_millisecond(last).ok());
        let next = spec.compile(zones).ok()?.next_after(last.map_or(now, |last| last.max(now)))?;
        Some(next.time.as_millisecond())
    });
    ticks.min()
}
