//! Plain intervals, single times, and the time in which a schedule is alive.

use std::time::Duration;

use segno_actions::functions::HumanDuration;
use segno_actions::schedule::ScheduleSpec;

use crate::support::{ZONES, at, cron, locals};

fn every(text: &str) -> ScheduleSpec {
    ScheduleSpec::every(text.parse::<HumanDuration>().unwrap())
}

#[test]
fn intervals_are_counted_from_their_anchor() {
    let hourly = every("1h").compile(&ZONES).unwrap();
    assert_eq!(
        locals(&hourly, "2026-11-10T12:34:56Z", 2),
        ["2026-11-10T13:00:00+00:00", "2026-11-10T14:00:00+00:00"]
    );
    let anchored = ScheduleSpec { anchor: Some(at("2026-11-10T00:07:00Z")), ..every("25m") };
    let anchored = anchored.compile(&ZONES).unwrap();
    assert_eq!(locals(&anchored, "2026-11-10T00:07:00Z", 1), ["2026-11-10T00:32:00+00:00"]);
    assert_eq!(locals(&anchored, "2026-11-10T00:06:59.999Z", 1), ["2026-11-10T00:07:00+00:00"]);
    assert_eq!(locals(&anchored, "2026-11-09T23:50:00Z", 1), ["2026-11-10T00:07:00+00:00"], "also before it");
    assert_eq!(anchored.smallest_gap(), Some(Duration::from_secs(1_500)));
}

#[test]
fn intervals_begin_with_the_start_if_nothing_else_is_said_and_do_not_notice_daylight_saving() {
    let spec =
        ScheduleSpec { starts_at: Some(at("2026-03-28T22:30:00Z")), ..every("2h").timezone("Europe/Berlin") };
    assert_eq!(
        locals(&spec.compile(&ZONES).unwrap(), "2026-01-01T00:00:00Z", 3),
        ["2026-03-28T23:30:00+01:00", "2026-03-29T01:30:00+01:00", "2026-03-29T04:30:00+02:00"]
    );
}

#[test]
fn a_single_time_happens_once() {
    let once = ScheduleSpec::at(at("2026-11-10T12:00:00Z")).compile(&ZONES).unwrap();
    assert_eq!(once.next_after(at("2026-11-10T11:59:59Z")).unwrap().time, at("2026-11-10T12:00:00Z"));
    assert_eq!(once.next_after(at("2026-11-10T12:00:00Z")), None);
    assert_eq!(once.smallest_gap(), None);
}

#[test]
fn nothing_happens_before_the_start_or_after_the_end_and_both_belong_to_it() {
    let spec = ScheduleSpec {
        starts_at: Some(at("2026-11-10T09:00:00Z")),
        ends_at: Some(at("2026-11-12T09:00:00Z")),
        ..ScheduleSpec::cron("0 9 * * *")
    };
    let expected = ["2026-11-10T09:00:00+00:00", "2026-11-11T09:00:00+00:00", "2026-11-12T09:00:00+00:00"];
    assert_eq!(locals(&spec.compile(&ZONES).unwrap(), "2026-01-01T00:00:00Z", 10), expected);
}

#[test]
fn between_leaves_its_beginning_out_and_its_end_in() {
    let daily = cron("0 9 * * *", "UTC");
    let days: Vec<i8> = daily
        .between(at("2026-11-10T09:00:00Z"), at("2026-11-13T09:00:00Z"))
        .map(|occurrence| occurrence.time.to_zoned(jiff::tz::TimeZone::UTC).day())
        .collect();
    assert_eq!(days, [11, 12, 13]);
}

#[test]
fn a_schedule_is_stored_with_what_was_said_and_no_more() {
    for (spec, json) in [
        (ScheduleSpec::cron("0 9 * * *"), r#"{"cron_expr":"0 9 * * *","timezone":"UTC"}"#),
        (every("90m"), r#"{"every":"1h30m","timezone":"UTC"}"#),
        (ScheduleSpec::at(at("2026-11-10T12:00:00Z")), r#"{"at":"2026-11-10T12:00:00Z","timezone":"UTC"}"#),
    ] {
        assert_eq!(serde_json::to_string(&spec).unwrap(), json);
        assert_eq!(serde_json::from_str::<ScheduleSpec>(json).unwrap(), spec);
    }
    let json = r#"{"cron_expr":"0 9 * * *","daylight":{"overlap":"both"}}"#;
    let spec: ScheduleSpec = serde_json::from_str(json).unwrap();
    assert_eq!(
        serde_json::to_string(&spec).unwrap(),
        r#"{"cron_expr":"0 9 * * *","timezone":"UTC","daylight":{"gap":"shift","overlap":"both"}}"#
    );
    assert!(
        serde_json::from_str::<ScheduleSpec>(r#"{"cron_expr":"* * * * *","daylight":{"gap":"jump"}}"#)
            .is_err()
    );
}
