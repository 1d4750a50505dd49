//! When steps may be dispatched: blackout windows as moments.
//!
//! Windows are local times. Where clocks are put back or forward within a window, it begins at the
//! earlier and ends at the later of the possible moments.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use segno_actions::schedule::{ScheduleError, Zones};

use crate::definition::Blackout;
use crate::limits::MAX_BLACKOUT_LOOKAHEAD_DAYS;

/// Seconds of a day of 24 hours.
const DAY_SEC: u32 = 86_400;

/// A Monday; the first moment from which a runbook's windows are examined for gaps.
const ANY_MONDAY: Timestamp = Timestamp::constant(946_857_600, 0);

/// The blackout windows of a runbook with their time zones.
#[derive(Debug, Clone)]
pub struct Blackouts {
    windows: Vec<(Blackout, TimeZone)>,
}

impl Blackouts {
    /// Looks up the time zones.
    ///
    /// # Errors
    /// When there is no such time zone; not for a runbook that was parsed with the same database.
    pub fn compile(blackouts: &[Blackout], zones: &Zones) -> Result<Self, ScheduleError> {
        let windows = blackouts.iter().map(|blackout| Ok((blackout.clone(), zones.get(&blackout.timezone)?)));
        Ok(Blackouts { windows: windows.collect::<Result<_, _>>()? })
    }

    /// The first moment from now on at which steps may be dispatched. If there is none within
    /// [`MAX_BLACKOUT_LOOKAHEAD_DAYS`], the end of that time, at which to evaluate again.
    pub fn next_allowed(&self, now: Timestamp) -> Timestamp {
        let lookahead = SignedDuration::from_hours(24 * MAX_BLACKOUT_LOOKAHEAD_DAYS);
        let latest = now.saturating_add(lookahead).unwrap_or(Timestamp::MAX);
        let mut allowed = now;
        // Every turn leaves a window, of which each day has as many as there are in the runbook.
        while allowed < latest {
            let ends = self.windows.iter().filter_map(|(window, zone)| window_end(window, zone, allowed));
            match ends.max() {
                Some(end) if end > allowed => allowed = end,
                _ => return allowed,
            }
        }
        latest
    }

    /// Whether the windows leave no time in any week.
    pub fn cover_everything(&self) -> bool {
        self.next_allowed(ANY_MONDAY)
            >= ANY_MONDAY
                .saturating_add(SignedDuration::from_hours(24 * MAX_BLACKOUT_LOOKAHEAD_DAYS))
                .unwrap_or(Timestamp::MAX)
    }
}

/// The end of the blackout that contains a moment; `None` if none does. A time zone that has
/// disappeared from the database since the runbook was parsed is taken as UTC.
pub fn blackout_until(blackouts: &[Blackout], zones: &Zones, now: Timestamp) -> Option<Timestamp> {
    let zone_of = |blackout: &Blackout| zones.get(&blackout.timezone).unwrap_or(TimeZone::UTC);
    let windows = blackouts.iter().map(|blackout| (blackout.clone(), zone_of(blackout))).collect();
    Some(Blackouts { windows }.next_allowed(now)).filter(|allowed| *allowed > now)
}

/// The end of the window that contains a moment.
fn window_end(window: &Blackout, zone: &TimeZone, moment: Timestamp) -> Option<Timestamp> {
    let date = zone.to_datetime(moment).date();
    // The day before too: a window may go on after midnight. The day after too: clocks that are put
    // back over midnight let a day begin twice.
    let days = [date.yesterday().ok(), Some(date), date.tomorrow().ok()];
    let ends = days.into_iter().flatten().filter_map(|day| {
        let (start, end) = window_of(window, zone, day)?;
        (start <= moment && moment < end).then_some(end)
    });
    ends.max()
}

/// The window that begins on a day, if one does.
fn window_of(window: &Blackout, zone: &TimeZone, day: Date) -> Option<(Timestamp, Timestamp)> {
    if !window.days.is_empty() && !window.days.iter().any(|days| days.covers(day)) {
        return None;
    }
    let last_day = if window.to_sec <= window.from_sec { day.tomorrow().ok()? } else { day };
    let start = local(day, window.from_sec)?;
    let end = local(last_day, window.to_sec)?;
    let start = zone.to_ambiguous_timestamp(start).earlier().ok()?;
    let end = zone.to_ambiguous_timestamp(end).later().ok()?;
    Some((start, end))
}

fn local(day: Date, seconds: u32) -> Option<DateTime> {
    let (day, seconds) =
        if seconds >= DAY_SEC { (day.tomorrow().ok()?, seconds - DAY_SEC) } else { (day, seconds) };
    let [hour, minute, second] = [seconds / 3_600, seconds / 60 % 60, seconds % 60].map(i8::try_from);
    let time = jiff::civil::Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()?;
    Some(day.to_datetime(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[&str], from: &str, to: &str, timezone: &str) -> Blackout {
        let seconds = |text: &str| {
            let (hour, minute) = text.split_once(':').unwrap();
            hour.parse::<u32>().unwrap() * 3_600 + minute.parse::<u32>().unwrap() * 60
        };
        let days = days.iter().map(|day| day.parse().unwrap()).collect();
        Blackout { days, from_sec: seconds(from), to_sec: seconds(to), timezone: timezone.to_owned() }
    }

    fn next(windows: &[Blackout], now: &str) -> String {
        let blackouts = Blackouts::compile(windows, &Zones::bundled()).unwrap();
        blackouts.next_allowed(now.parse().unwrap()).to_string()
    }

    #[test]
    fn without_windows_everything_is_allowed() {
        assert_eq!(next(&[], "2026-03-10T22:00:00Z"), "2026-03-10T22:00:00Z");
    }

    #[test]
    fn a_window_begins_with_its_first_second_and_ends_before_its_last() {
        let windows = [window(&[], "08:00", "18:00", "UTC")];
        for (now, allowed) in [
            ("2026-03-10T07:59:59Z", "2026-03-10T07:59:59Z"),
            ("2026-03-10T08:00:00Z", "2026-03-10T18:00:00Z"),
            ("2026-03-10T17:59:59.5Z", "2026-03-10T18:00:00Z"),
            ("2026-03-10T18:00:00Z", "2026-03-10T18:00:00Z"),
        ] {
            assert_eq!(next(&windows, now), allowed);
        }
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
        let windows = [window(&["FRI"], "22:00", "06:00", "Europe/Berlin")];
        // 2026-03-13 is a Friday; Berlin is at +01:00.
        assert_eq!(next(&windows, "2026-03-13T22:30:00Z"), "2026-03-14T05:00:00Z");
        assert_eq!(next(&windows, "2026-03-14T01:00:00Z"), "2026-03-14T05:00:00Z");
        assert_eq!(next(&windows, "2026-03-13T01:00:00Z"), "2026-03-13T01:00:00Z");
    }

    #[test]
    fn outside_of_all_windows_there_is_no_end() {
        let windows = [window(&[], "08:00", "18:00", "Nowhere/Nothing")];
        let until = |now: &str| blackout_until(&windows, &Zones::bundled(), now.parse().unwrap());
        assert_eq!(until("2026-03-10T07:00:00Z"), None);
        assert_eq!(until("2026-03-10T12:00:00Z"), Some("2026-03-10T18:00:00Z".parse().unwrap()));
    }

    #[test]
    fn adjacent_and_overlapping_windows_are_one() {
        let windows = [
            window(&["SAT..SUN"], "00:00", "24:00", "UTC"),
            window(&["MON"], "00:00", "06:00", "UTC"),
            window(&["MON"], "05:00", "09:00", "UTC"),
        ];
        assert_eq!(next(&windows, "2026-03-14T10:00:00Z"), "2026-03-16T09:00:00Z");
    }

    #[test]
    fn dates_of_a_freeze_are_left_out() {
        let windows = [window(&["12-24..01-01"], "00:00", "24:00", "America/New_York")];
        assert_eq!(next(&windows, "2026-12-24T04:59:59Z"), "2026-12-24T04:59:59Z");
        assert_eq!(next(&windows, "2026-12-24T05:00:00Z"), "2027-01-02T05:00:00Z");
    }

    #[test]
    fn clocks_that_change_make_windows_longer_not_shorter() {
        // Clocks in Berlin go from 02:00 to 03:00 on 2026-03-29 and from 03:00 back on 2026-10-25.
        let windows = [window(&[], "02:30", "04:00", "Europe/Berlin")];
        assert_eq!(next(&windows, "2026-03-29T00:30:00Z"), "2026-03-29T02:00:00Z");
        assert_eq!(next(&windows, "2026-10-25T00:29:59Z"), "2026-10-25T00:29:59Z");
        assert_eq!(next(&windows, "2026-10-25T00:30:00Z"), "2026-10-25T03:00:00Z");
        let ends_in_fold = [window(&[], "01:00", "02:30", "Europe/Berlin")];
        assert_eq!(next(&ends_in_fold, "2026-10-25T00:45:00Z"), "2026-10-25T01:30:00Z");
    }

    #[test]
    fn windows_that_leave_no_time_are_found() {
        let covers =
            |windows: &[Blackout]| Blackouts::compile(windows, &Zones::bundled()).unwrap().cover_everything();
        assert!(covers(&[window(&[], "00:00", "24:00", "UTC")]));
        assert!(covers(&[window(&[], "06:00", "06:00", "Europe/Berlin")]));
        assert!(covers(&[
            window(&["MON..FRI"], "00:00", "24:00", "UTC"),
            window(&["SAT..SUN"], "00:00", "24:00", "UTC")
        ]));
        assert!(!covers(&[window(&["MON..SAT"], "00:00", "24:00", "UTC")]));
        assert!(!covers(&[window(&[], "00:01", "00:00", "UTC")]));
        assert_eq!(
            next(&[window(&[], "00:00", "24:00", "UTC")], "2026-01-01T00:00:00Z"),
            "2027-02-05T00:00:00Z"
        );
    }
}
