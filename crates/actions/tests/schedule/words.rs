//! Schedules in plain English, and previews.

use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{Gap, Overlap, ScheduleSpec, preview};

use crate::support::{ZONES, at, cron, cron_by};

#[test]
fn expressions_read_as_people_say_them() {
    for (expression, words) in [
        ("0 9 * * MON-FRI", "At 09:00, Monday through Friday"),
        ("0 9 * * *", "At 09:00"),
        ("0 9 * * SAT,SUN", "At 09:00, Saturday and Sunday"),
        ("0 9 * * MON,WED,FRI", "At 09:00, Monday, Wednesday, and Friday"),
        ("0 9 * * MON-WED,SAT", "At 09:00, Monday through Wednesday and Saturday"),
        ("0 9 * * FRI#2", "At 09:00, on the 2nd Friday of the month"),
        ("0 9,17 * * *", "At minute 0 past hour 9 and 17"),
        ("0 */6 * * *", "At minute 0 of every 6 hours"),
        ("*/10 9-17 * * *", "Every 10 minutes past hour 9-17"),
        ("0 12 1 */3 *", "At 12:00, on day 1, every 3 months"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("* * * * *", "Every minute"),
        ("* * * * * *", "Every second"),
        ("0 0 1 * MON-FRI", "At 00:00, on day 1 or Monday through Friday"),
        ("30 4 1 JAN *", "At 04:30, on day 1, in January"),
    ] {
        assert_eq!(cron(expression, "UTC").describe(), format!("{words} (UTC)"), "{expression}");
    }
}

#[test]
fn zones_intervals_and_bounds_are_said() {
    assert_eq!(cron("0 9 * * *", "europe/berlin").describe(), "At 09:00 (Europe/Berlin)");
    let every = ScheduleSpec {
        starts_at: Some(at("2026-11-10T00:00:00Z")),
        ends_at: Some(at("2026-11-11T00:00:00Z")),
        ..ScheduleSpec::every(HumanDuration::from_secs(900))
    };
    assert_eq!(
        every.compile(&ZONES).unwrap().describe(),
        "Every 15m, counted from 2026-11-10T00:00:00Z, not before 2026-11-10T00:00:00+00:00[UTC], not after \
         2026-11-11T00:00:00+00:00[UTC]"
    );
    let once =
        ScheduleSpec::at(at("2026-07-01T12:00:00Z")).timezone("Europe/Berlin").compile(&ZONES).unwrap();
    assert_eq!(once.describe(), "Once, at 2026-07-01T14:00:00+02:00[Europe/Berlin]");
}

#[test]
fn a_preview_shows_where_the_clocks_are_changed() {
    let weekdays = cron("0 9 * * MON-FRI", "Europe/Berlin");
    let lines = preview(&weekdays, at("2026-03-27T00:00:00Z"), 3);
    assert_eq!(
        serde_json::to_value(&lines).unwrap(),
        serde_json::json!([
            {"time": "2026-03-27T08:00:00Z", "local": "2026-03-27T09:00:00+01:00[Europe/Berlin]", "note": null},
            {
                "time": "2026-03-30T07:00:00Z",
                "local": "2026-03-30T09:00:00+02:00[Europe/Berlin]",
                "note": "clocks were changed: UTC+01 before, UTC+02 from here on",
            },
            {"time": "2026-03-31T07:00:00Z", "local": "2026-03-31T09:00:00+02:00[Europe/Berlin]", "note": null},
        ])
    );
}

#[test]
fn a_preview_says_what_daylight_saving_does_to_a_time() {
    let notes = |overlap, gap, expression: &str, from: &str| -> Vec<String> {
        let schedule = cron_by(expression, "Europe/Berlin", gap, overlap);
        preview(&schedule, at(from), 3).into_iter().map(|line| line.note.unwrap_or_default()).collect()
    };
    assert_eq!(
        notes(Overlap::First, Gap::Shift, "30 2 * * *", "2026-03-28T00:00:00Z"),
        ["", "shifted by daylight saving: 2026-03-29 02:30 does not exist", ""]
    );
    assert_eq!(
        notes(Overlap::First, Gap::Skip, "30 2 * * *", "2026-03-28T00:00:00Z"),
        ["", "2026-03-29 02:30 was skipped: daylight saving, it does not exist", ""]
    );
    assert_eq!(
        notes(Overlap::Both, Gap::Shift, "30 2 * * *", "2026-10-25T00:00:00Z"),
        [
            "first pass: daylight saving ends, this local time comes twice",
            "second pass: daylight saving ended, this local time came before",
            ""
        ]
    );
}
