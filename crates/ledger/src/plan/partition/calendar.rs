//! Windows of time by the clocks of a zone. Each ends where the next begins, so no moment is in two windows or in none,
//! also where clocks are put forward or back: a day can have 23 or 25 hours, and an hour that comes twice is two windows.

use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::plan::definition::WindowSize;

/// Seconds of an hour.
const HOUR_SEC: i64 = 3_600;

/// A window of time: from its start up to its end, which does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
}

/// All windows of one size in one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    pub size: WindowSize,
    pub zone: TimeZone,
}

impl Calendar {
    /// The window that a moment is in; nothing beyond the years that times can have.
    pub fn containing(&self, time: Timestamp) -> Option<Window> {
        if self.size == WindowSize::Hourly {
            let start = self.full_hour_up_to(time)?;
            return Some(Window { start, end: self.full_hour_after(start)? });
        }
        let mut first = first_date(self.size, self.zone.to_datetime(time).date())?;
        loop {
            let window = self.window_of(first)?;
            // A clock that is put back over midnight shows the day before again, after the new day has begun.
            if time < window.end {
                return Some(window);
            }
            first = next_date(self.size, first)?;
        }
    }

    /// The window after another one.
    pub fn following(&self, window: Window) -> Option<Window> {
        self.containing(window.end)
    }

    /// The window whose first day is this one. It is empty if the zone has left the day out.
    pub fn window_of(&self, first: Date) -> Option<Window> {
        let midnight = |date: Date| Some(date.to_zoned(self.zone.clone()).ok()?.timestamp());
        Some(Window { start: midnight(first)?, end: midnight(next_date(self.size, first)?)? })
    }

    /// The last moment up to this one at which the clock shows a full hour.
    pub fn full_hour_up_to(&self, time: Timestamp) -> Option<Timestamp> {
        let mut time = Timestamp::from_second(time.as_second()).ok()?;
        loop {
            match self.seconds_of_hour(time) {
                0 => return Some(time),
                // A change of the clock by less than an hour may lie in between.
                seconds => time = time.checked_sub(SignedDuration::from_secs(seconds)).ok()?,
            }
        }
    }

    fn full_hour_after(&self, time: Timestamp) -> Option<Timestamp> {
        let mut time = time;
        loop {
            let seconds = HOUR_SEC - self.seconds_of_hour(time);
            time = time.checked_add(SignedDuration::from_secs(seconds)).ok()?;
            if self.seconds_of_hour(time) == 0 {
                return Some(time);
            }
        }
    }

    fn seconds_of_hour(&self, time: Timestamp) -> i64 {
        let local = self.zone.to_datetime(time);
        i64::from(local.minute()) * 60 + i64::from(local.second())
    }
}

/// The first day of the window that a day is in.
fn first_date(size: WindowSize, date: Date) -> Option<Date> {
    match size {
        WindowSize::Hourly | WindowSize::Daily => Some(date),
        WindowSize::Weekly => {
            let week = date.iso_week_date();
            Some(ISOWeekDate::new(week.year(), week.week(), Weekday::Monday).ok()?.date())
        }
        WindowSize::Monthly => Some(date.first_of_month()),
    }
}

fn next_date(size: WindowSize, first: Date) -> Option<Date> {
    let span = match size {
        WindowSize::Hourly | WindowSize::Daily => 1.day(),
        WindowSize::Weekly => 1.week(),
        WindowSize::Monthly => 1.month(),
    };
    first.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno_actions::schedule::Zones;

    fn windows(size: WindowSize, zone: &str, from: &str, count: usize) -> Vec<String> {
        let calendar = Calendar { size, zone: Zones::bundled().get(zone).unwrap() };
        let first = calendar.containing(from.parse().unwrap()).unwrap();
        let all = std::iter::successors(Some(first), |window| calendar.following(*window));
        all.take(count)
            .map(|window| format!("{} +{}m", window.start, window.end.duration_since(window.start).as_mins()))
            .collect()
    }

    #[test]
    fn windows_follow_each_other_where_clocks_change() {
        use WindowSize::{Daily, Hourly, Monthly, Weekly};
        for (size, zone, from, expected) in [
            // 23 hours and 25 hours.
            (
                Daily,
                "Europe/Berlin",
                "2026-03-28T12:00:00Z",
                &[
                    "2026-03-27T23:00:00Z +1440m",
                    "2026-03-28T23:00:00Z +1380m",
                    "2026-03-29T22:00:00Z +1440m",
                ][..],
            ),
            (
                Daily,
                "Europe/Berlin",
                "2026-10-24T22:00:00Z",
                &["2026-10-24T22:00:00Z +1500m", "2026-10-25T23:00:00Z +1440m"],
            ),
            // The hour from 02:00 is left out, and the one from 02:00 comes twice.
            (
                Hourly,
                "Europe/Berlin",
                "2026-03-29T00:30:00Z",
                &["2026-03-29T00:00:00Z +60m", "2026-03-29T01:00:00Z +60m"],
            ),
            (
                Hourly,
                "Europe/Berlin",
                "2026-10-25T00:59:59Z",
                &["2026-10-25T00:00:00Z +60m", "2026-10-25T01:00:00Z +60m"],
            ),
            // Clocks are changed by half an hour.
            (
                Hourly,
                "Australia/Lord_Howe",
                "2026-04-04T14:10:00Z",
                &["2026-04-04T14:00:00Z +90m", "2026-04-04T15:30:00Z +60m"],
            ),
            (Hourly, "Australia/Lord_Howe", "2026-04-04T15:20:00Z", &["2026-04-04T14:00:00Z +90m"]),
            // Hours begin at half past of UTC.
            (Hourly, "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2025-12-31T23:30:00Z +60m"]),
            // There is no midnight.
            (
                Daily,
                "America/Sao_Paulo",
                "2018-11-03T12:00:00Z",
                &["2018-11-03T03:00:00Z +1440m", "2018-11-04T03:00:00Z +1380m"],
            ),
            // The clock was put back over midnight at one minute past it.
            (Daily, "America/St_Johns", "2010-11-07T03:00:00Z", &["2010-11-07T02:30:00Z +1500m"]),
            // A day that the zone left out.
            (
                Daily,
                "Pacific/Apia",
                "2011-12-29T12:00:00Z",
                &["2011-12-29T10:00:00Z +1440m", "2011-12-30T10:00:00Z +1440m"],
            ),
            (
                Weekly,
                "UTC",
                "2026-01-01T00:00:00Z",
                &["2025-12-29T00:00:00Z +10080m", "2026-01-05T00:00:00Z +10080m"],
            ),
            (
                Monthly,
                "UTC",
                "2028-02-29T12:00:00Z",
                &["2028-02-01T00:00:00Z +41760m", "2028-03-01T00:00:00Z +44640m"],
            ),
        ] {
            assert_eq!(windows(size, zone, from, expected.len()), expected, "{size:?} {zone} {from}");
        }
    }

    #[test]
    fn every_moment_is_in_one_window() {
        let mut random = fastrand::Rng::with_seed(7);
        let zones =
            ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo", "Pacific/Apia"];
        let sizes = [WindowSize::Hourly, WindowSize::Daily, WindowSize::Weekly, WindowSize::Monthly];
        for _ in 0..3_000 {
            let calendar = Calendar {
                size: *random.choice(&sizes).unwrap(),
                zone: Zones::bundled().get(random.choice(zones).unwrap()).unwrap(),
            };
            let time = Timestamp::from_second(random.i64(0..2_000_000_000)).unwrap();
            let window = calendar.containing(time).unwrap();
            assert!(window.start <= time && time < window.end, "{calendar:?} {time} {window:?}");
            assert_eq!(calendar.containing(window.start), Some(window), "{calendar:?} {time}");
            assert_eq!(calendar.following(window).unwrap().start, window.end, "{calendar:?} {time}");
        }
    }
}
