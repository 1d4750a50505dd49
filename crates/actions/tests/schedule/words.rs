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
        ("0 9 * * MON", "At 09:00, on Monday"),
        // What is written as a step is one only if the clock starts again where the step ends.
        ("*/61 * * * *", "At minute 0 past every hour"),
        ("*/25 * * * *", "At minute 0, 25, and 50 past every hour"),
        ("0 */25 * * *", "At 00:00"),
        ("0-30/5 * * * *", "At minute 0, 5, 10, 15, 20, 25, and 30 past every hour"),
        ("1,*/15 * * * *", "At minute 0, 1, 15, 30, and 45 past every hour"),
        ("*/15 */6 * * *", "Every 15 minutes past hour 0, 6, 12, and 18"),
        ("* */2 * * *", "Every minute past hour 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, and 22"),
        ("0 0 1 */13 *", "At 00:00, on day 1, in January"),
        ("0 0 1 */5 *", "At 00:00, on day 1, in January, June, and November"),
        ("*/7 * * * * *", "At second 0, 7, 14, 21, 28, 35, 42, 49, and 56 of every minute"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("*/10 5 * * * *", "Every 10 seconds of minute 5 past every hour"),
        ("30 0 9 * * *", "At 09:00:30"),
        ("* * 9 * * *", "Every second past hour 9"),
        ("0 0 LW * *", "At 00:00, on the last day of the month from Monday to Friday"),
        (
            "0 0 L,LW * *",
            "At 00:00, on the last day of the month and the last day of the month from Monday to Friday",
        ),
        ("0 0 15W * *", "At 00:00, on the weekday nearest to day 15"),
        ("0 0 * * 7L", "At 00:00, on the last Sunday of the month"),
        ("0 0 13 * +FRI", "At 00:00, on day 13 if it is also Friday"),
        ("0 0 0 1 1 * 2030", "At 00:00, on day 1, in January, in year 2030"),
        ("0 0 0 1 1 * 2030-2035", "At 00:00, on day 1, in January, in year 2030-2035"),
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
    let lines = preview(&weekdays, at("2026-03-27T00:00:00Z"), 3).lines;
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
        preview(&schedule, at(from), 3).lines.into_iter().map(|line| line.note.unwrap_or_default()).collect()
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

#[test]
fn what_other_crons_read_differently_is_warned_of() {
    let warnings = |expression: &str| cron(expression, "UTC").warnings();
    for expression in ["0 0 */2 * MON", "0 0 1 * */2", "0 0 */2 * */3", "0 0 ?/2 * MON"] {
        let warned = warnings(expression);
        assert_eq!(warned.len(), 1, "{expression}");
        assert!(warned[0].contains("when either matches") && warned[0].contains("\"+"), "{warned:?}");
    }
    for expression in
        ["0 0 */2 * *", "0 0 * * */2", "0 0 */2 * +MON", "0 0 1 * MON", "0 0 1-31/2 * MON", "@daily"]
    {
        assert_eq!(warnings(expression), [""; 0], "{expression}");
    }
}
