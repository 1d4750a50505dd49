//! What cannot be a schedule is refused with the field, the reason and what to do.

use std::time::Instant;

use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{Daylight, Gap, ScheduleSpec};

use crate::support::{ZONES, at};

/// Refuses a schedule for a field, with words.
fn check(spec: &ScheduleSpec, field: &str, words: &[&str]) {
    let error = spec.compile(&ZONES).expect_err("it should be refused");
    assert_eq!(error.field(), field, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word:?}");
    }
}

#[test]
fn expressions_that_are_none_name_the_wrong_field() {
    for (expression, words) in [
        ("", &["it is empty", "write five fields"][..]),
        ("   ", &["it is empty"]),
        ("* * * *", &["it has 4 fields"]),
        ("* * * * * * * *", &["it has 8 fields"]),
        ("hello", &["it has 1 field;"]),
        ("@sometimes", &["@hourly, @daily"]),
        ("61 * * * *", &["\"61\" cannot be the minute"]),
        ("0 25 * * *", &["\"25\" cannot be the hour"]),
        ("0 0 32 * *", &["\"32\" cannot be the day of month"]),
        ("0 0 * 13 *", &["\"13\" cannot be the month"]),
        ("0 0 * * 8", &["\"8\" cannot be the day of week"]),
        ("0 0 * * MOO", &["\"MOO\" cannot be the day of week"]),
        ("60 0 0 * * *", &["\"60\" cannot be the second"]),
        ("0 0 0 * * * 99999", &["\"99999\" cannot be the year"]),
        ("5-1 * * * *", &["\"5-1\" cannot be the minute"]),
        ("*/0 * * * *", &["\"*/0\" cannot be the minute"]),
        ("0 0 * * MON#6", &["cannot be the day of week"]),
        ("99 99 * * *", &["is not a cron expression", "such as \"0 9 * * MON-FRI\""]),
        ("ß ∞ * * *", &["is not a cron expression"]),
        (", * * * *", &["\",\" cannot be the minute", "a value is missing beside a comma"]),
        ("0 0 , * *", &["\",\" cannot be the day of month"]),
        ("1,,2 * * * *", &["\"1,,2\" cannot be the minute", "a value is missing"]),
        ("1, * * * *", &["a value is missing"]),
        ("MON * * * *", &["\"MON\" cannot be the minute"]),
        ("0 0 * * MON,L", &["cannot be the day of week", "L needs a weekday before it"]),
        ("0 0 15W3 * *", &["\"15W3\" cannot be the day of month"]),
        ("0 0 * * 5#2L", &["# needs a number from 1 to 5"]),
        ("0 0 * * FRI-MON", &["a range goes upwards"]),
        ("5/10 * * * *", &["a step needs * or a range before it"]),
        ("*,5 * * * *", &["* must stand alone"]),
    ] {
        check(&ScheduleSpec::cron(expression), "cron_expr", words);
    }
    check(&ScheduleSpec::cron("1,".repeat(1_000)), "cron_expr", &["more than 512 characters"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long the search takes is what is tested")]
fn dates_that_never_come_are_refused_at_once() {
    let begun = Instant::now();
    for expression in
        ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 * +MON#1", "0 0 0 29 2 * 2027", "0 0 0 1 1 * 1969"]
    {
        check(&ScheduleSpec::cron(expression), "cron_expr", &["never happens"]);
    }
    assert!(begun.elapsed().as_millis() < 2_000, "the search is bounded, and took {:?}", begun.elapsed());
}

#[test]
fn zones_that_are_none_are_refused_with_names_that_are_near() {
    for (zone, words) in [
        ("Europe/Berln", &["did you mean \"Europe/Berlin\"?"][..]),
        ("Berlin", &["\"Europe/Berlin\""]),
        ("america/new york", &["\"America/New_York\""]),
        ("Mars/Olympus_Mons", &["use a name of the IANA database"]),
        ("", &["there is no time zone \"\"", "use a name"]),
        ("../../etc/passwd", &["there is no time zone"]),
        ("+02:00", &["there is no time zone"]),
    ] {
        check(&ScheduleSpec::cron("0 9 * * *").timezone(zone), "timezone", words);
    }
    let long = "x".repeat(100_000);
    let error = ScheduleSpec::cron("0 9 * * *").timezone(long).compile(&ZONES).unwrap_err();
    assert!(error.to_string().len() < 300, "what is repeated is bounded");
}

#[test]
fn one_schedule_and_what_goes_with_it() {
    let time = at("2026-11-10T12:00:00Z");
    let every = ScheduleSpec::every(HumanDuration::from_secs(60));
    check(&ScheduleSpec::default(), "cron_expr", &["give one of cron_expr, every and at"]);
    check(&ScheduleSpec { at: Some(time), ..every.clone() }, "every", &["more than one"]);
    check(
        &ScheduleSpec { at: Some(time), ..ScheduleSpec::cron("* * * * *") },
        "cron_expr",
        &["more than one"],
    );
    check(&ScheduleSpec { anchor: Some(time), ..ScheduleSpec::at(time) }, "anchor", &["leave anchor out"]);
    let daylight = Daylight { gap: Gap::Skip, ..Daylight::default() };
    check(&ScheduleSpec { daylight, ..every.clone() }, "daylight", &["leave daylight out"]);
    check(
        &ScheduleSpec::every(HumanDuration::from_millis(999)),
        "every",
        &["999ms is too short", "at least 1s"],
    );
    check(&ScheduleSpec::every(HumanDuration::from_millis(0)), "every", &["too short"]);
    let (earlier, later) = (at("2026-11-10T11:00:00Z"), at("2026-11-10T13:00:00Z"));
    let backwards = ScheduleSpec { starts_at: Some(later), ends_at: Some(earlier), ..every };
    check(&backwards, "ends_at", &["is before starts_at"]);
    check(&ScheduleSpec { starts_at: Some(later), ..ScheduleSpec::at(time) }, "at", &["before starts_at"]);
    check(&ScheduleSpec { ends_at: Some(earlier), ..ScheduleSpec::at(time) }, "at", &["after ends_at"]);
    let days = |days: &str| ScheduleSpec::cron("0 9 * * *").exclude([days]);
    check(&days("2026-02-30"), "exclude", &["\"2026-02-30\" is no day", "write a date (2026-12-25)"]);
    check(&days("2026-12-26..2026-12-25"), "exclude", &["ends before it begins"]);
    let many = ScheduleSpec::cron("0 9 * * *").exclude(vec!["SAT"; 501]);
    check(&many, "exclude", &["has 501 entries, the limit is 500"]);
}
