//! Cron expressions without daylight saving.

use std::time::Duration;

use crate::support::{at, cron, locals};

/// The next times of an expression in UTC.
fn check(expression: &str, from: &str, expected: &[&str]) {
    let found = locals(&cron(expression, "UTC"), from, expected.len());
    let found: Vec<&str> = found.iter().map(|local| local.trim_end_matches("+00:00")).collect();
    assert_eq!(found, expected, "{expression} after {from}");
}

#[test]
fn five_six_and_seven_fields_and_names() {
    for (expression, from, expected) in [
        ("0 9 * * MON-FRI", "2026-03-27T12:00:00Z", &["2026-03-30T09:00:00", "2026-03-31T09:00:00"][..]),
        (
            "*/20 * * * *",
            "2026-01-01T00:00:00Z",
            &["2026-01-01T00:20:00", "2026-01-01T00:40:00", "2026-01-01T01:00:00"],
        ),
        ("30 0 12 * * *", "2026-01-01T12:00:30Z", &["2026-01-02T12:00:30"]),
        ("*/25 59 23 31 12 *", "2026-12-31T23:59:25Z", &["2026-12-31T23:59:50", "2027-12-31T23:59:00"]),
        ("0 0 0 1 1 * 2030", "2026-01-01T00:00:00Z", &["2030-01-01T00:00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00"]),
        ("0 0 L * *", "2026-02-01T00:00:00Z", &["2026-02-28T00:00:00", "2026-03-31T00:00:00"]),
        ("0 0 LW * *", "2026-02-01T00:00:00Z", &["2026-02-27T00:00:00"]),
        ("0 0 15W * *", "2026-02-01T00:00:00Z", &["2026-02-16T00:00:00"]),
        ("0 9 * * FRI#2", "2026-11-01T00:00:00Z", &["2026-11-13T09:00:00", "2026-12-11T09:00:00"]),
        ("0 9 * * FRIL", "2026-11-01T00:00:00Z", &["2026-11-27T09:00:00"]),
        ("0 0 13 * FRI", "2026-11-10T00:00:00Z", &["2026-11-13T00:00:00", "2026-11-20T00:00:00"]),
        ("0 0 13 * +FRI", "2026-11-10T00:00:00Z", &["2026-11-13T00:00:00", "2027-08-13T00:00:00"]),
        ("0 0 29 2 +MON", "2026-11-10T00:00:00Z", &["2044-02-29T00:00:00", "2072-02-29T00:00:00"]),
        ("0 0 * * 7", "2026-11-10T00:00:00Z", &["2026-11-15T00:00:00"]),
        ("0 0 1 JAN,jul *", "2026-11-10T00:00:00Z", &["2027-01-01T00:00:00", "2027-07-01T00:00:00"]),
        ("@hourly", "2026-11-10T00:00:00Z", &["2026-11-10T01:00:00"]),
        ("@daily", "2026-11-10T00:00:00Z", &["2026-11-11T00:00:00"]),
        ("@weekly", "2026-11-10T00:00:00Z", &["2026-11-15T00:00:00"]),
        ("@monthly", "2026-11-10T00:00:00Z", &["2026-12-01T00:00:00"]),
        ("@yearly", "2026-11-10T00:00:00Z", &["2027-01-01T00:00:00"]),
    ] {
        check(expression, from, expected);
    }
}

#[test]
fn the_moment_that_is_asked_for_is_left_out_and_fractions_do_not_matter() {
    check("0 9 * * *", "2026-03-27T09:00:00Z", &["2026-03-28T09:00:00"]);
    check("0 9 * * *", "2026-03-27T08:59:59.999999999Z", &["2026-03-27T09:00:00"]);
    check("* * * * * *", "2026-03-27T08:59:59.5Z", &["2026-03-27T09:00:00", "2026-03-27T09:00:01"]);
    check(
        "* * * * * *",
        "1969-12-31T23:59:57.5Z",
        &["1969-12-31T23:59:58", "1969-12-31T23:59:59", "1970-01-01T00:00:00"],
    );
}

#[test]
fn a_year_that_is_over_has_no_more_occurrences() {
    let schedule = cron("0 0 0 1 1 * 2027", "Europe/Berlin");
    assert!(schedule.next_after(at("2026-11-10T00:00:00Z")).is_some());
    assert_eq!(schedule.next_after(at("2027-06-01T00:00:00Z")), None);
    assert_eq!(schedule.next_after(jiff::Timestamp::MAX), None);
}

#[test]
fn the_smallest_gap_is_what_two_neighbours_are_apart() {
    const HOUR: u64 = 3_600;
    const DAY: u64 = 24 * HOUR;
    for (expression, seconds) in [
        ("* * * * * *", 1),
        ("*/7 * * * * *", 4),
        ("* * * * *", 60),
        ("0,1 0 * * *", 60),
        ("0,59 * * * *", 60),
        ("*/15 * * * *", 900),
        ("*/25 * * * *", 600),
        ("0 * * * *", HOUR),
        ("0 */2 * * *", 2 * HOUR),
        ("0 0,23 * * *", HOUR),
        ("0 9 * * *", DAY),
        ("0 9 * * MON", 7 * DAY),
        ("0 9 * * MON,WED", 2 * DAY),
        ("0 9 * * MON-FRI", DAY),
        ("0 0 1,31 * *", DAY),
        ("0 0 1 * *", 28 * DAY),
        ("0,30 0,12 1 1 *", 1_800),
    ] {
        assert_eq!(
            cron(expression, "UTC").smallest_gap(),
            Some(Duration::from_secs(seconds)),
            "{expression}"
        );
    }
    assert_eq!(cron("0 0 0 1 1 * 2030", "UTC").smallest_gap(), None, "there are no two");
}
