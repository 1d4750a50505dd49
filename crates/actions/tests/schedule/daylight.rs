//! Daylight saving, case by case.

use segno_actions::schedule::{Gap, Note, Overlap};

use crate::support::{at, cron, cron_by, local, locals};

const NEW_YORK: &str = "America/New_York";
const BERLIN: &str = "Europe/Berlin";

#[test]
fn times_that_do_not_exist_happen_once_when_the_clock_is_put_forward() {
    for (expression, zone, from, expected) in [
        (
            "30 2 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"][..],
        ),
        (
            "15,45 2 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:15:00-04:00"],
        ),
        (
            "*/30 2 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "0 2,3 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "30 2,3 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            &["2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"],
        ),
        (
            "0 */2 * * *",
            NEW_YORK,
            "2026-03-08T04:30:00Z",
            &["2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"],
        ),
        (
            "30 2 * * *",
            BERLIN,
            "2026-03-28T12:00:00Z",
            &["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        (
            "30 1 * * *",
            "Europe/Dublin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T02:00:00+01:00", "2026-03-30T01:30:00+01:00"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
        (
            "30 2 * * *",
            "Antarctica/Troll",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        (
            "30 1 * * *",
            "Antarctica/Troll",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T03:00:00+02:00", "2026-03-30T01:30:00+02:00"],
        ),
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00:00Z",
            &["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
        ),
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-03-21T12:00:00Z",
            &["2026-03-22T03:00:00+01:00", "2026-03-23T02:30:00+01:00"],
        ),
        (
            "30 23 * * SAT",
            "America/Scoresbysund",
            "2025-03-29T12:00:00Z",
            &["2025-03-30T00:00:00-01:00", "2025-04-05T23:30:00-01:00"],
        ),
    ] {
        let schedule = cron(expression, zone);
        assert_eq!(locals(&schedule, from, expected.len()), expected, "{expression} in {zone}");
    }
}

#[test]
fn times_that_do_not_exist_can_be_left_out() {
    let skipping = |expression| cron_by(expression, NEW_YORK, Gap::Skip, Overlap::First);
    let from = "2026-03-07T12:00:00Z";
    assert_eq!(locals(&skipping("30 2 * * *"), from, 1), ["2026-03-09T02:30:00-04:00"]);
    assert_eq!(locals(&skipping("0 2,3 * * *"), from, 1), ["2026-03-08T03:00:00-04:00"]);
    let next = skipping("30 2 * * *").next_after(at(from)).unwrap();
    assert_eq!(next.note, Some(Note::Skipped { local: "2026-03-08T02:30:00".parse().unwrap() }));
}

#[test]
fn times_that_come_twice_happen_as_often_as_is_said() {
    let from = "2026-10-31T12:00:00Z";
    let first = ["2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:00:00-05:00"];
    let last = ["2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:00:00-05:00"];
    let both = [
        "2026-11-01T01:00:00-04:00",
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:00:00-05:00",
        "2026-11-01T01:30:00-05:00",
        "2026-11-02T01:00:00-05:00",
    ];
    for (overlap, expected) in [(Overlap::First, &first[..]), (Overlap::Last, &last), (Overlap::Both, &both)]
    {
        let schedule = cron_by("0,30 1 * * *", NEW_YORK, Gap::Shift, overlap);
        assert_eq!(locals(&schedule, from, expected.len()), expected, "{overlap:?}");
    }
    for (expression, zone, from, expected) in [
        ("30 1 * * *", NEW_YORK, from, &["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"][..]),
        (
            "30 2 * * *",
            BERLIN,
            "2026-10-24T12:00:00Z",
            &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
        (
            "30 1 * * *",
            "Europe/Dublin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T01:30:00+01:00", "2026-10-26T01:30:00+00:00"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T00:00:00Z",
            &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
        ),
        (
            "30 1,2 * * *",
            "Antarctica/Troll",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T01:30:00+00:00"],
        ),
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-14T12:00:00Z",
            &["2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00+00:00"],
        ),
        (
            "0 0 * * *",
            "America/Havana",
            "2026-10-31T12:00:00Z",
            &["2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"],
        ),
    ] {
        let schedule = cron(expression, zone);
        assert_eq!(locals(&schedule, from, expected.len()), expected, "{expression} in {zone}");
    }
}

#[test]
fn asking_in_the_second_pass_does_not_bring_the_first_back() {
    let schedule = cron("0,30 1 * * *", NEW_YORK);
    assert_eq!(locals(&schedule, "2026-11-01T06:10:00Z", 1), ["2026-11-02T01:00:00-05:00"]);
    let last = cron_by("0,30 1 * * *", NEW_YORK, Gap::Shift, Overlap::Last);
    assert_eq!(locals(&last, "2026-11-01T05:10:00Z", 1), ["2026-11-01T01:00:00-05:00"]);
}

#[test]
fn expressions_for_every_hour_follow_real_time() {
    for (expression, zone, from, expected) in [
        (
            "0 * * * *",
            NEW_YORK,
            "2026-03-08T05:30:00Z",
            &["2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"][..],
        ),
        (
            "*/20 * * * *",
            NEW_YORK,
            "2026-03-08T06:30:00Z",
            &["2026-03-08T01:40:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00"],
        ),
        (
            "30 0-23 * * *",
            NEW_YORK,
            "2026-03-08T06:00:00Z",
            &["2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"],
        ),
        (
            "*/30 * * * *",
            NEW_YORK,
            "2026-11-01T04:45:00Z",
            &[
                "2026-11-01T01:00:00-04:00",
                "2026-11-01T01:30:00-04:00",
                "2026-11-01T01:00:00-05:00",
                "2026-11-01T01:30:00-05:00",
                "2026-11-01T02:00:00-05:00",
            ],
        ),
        (
            "0 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T14:00:00Z",
            &["2026-10-04T01:00:00+10:30", "2026-10-04T03:00:00+11:00"],
        ),
        (
            "0 */1 * * *",
            BERLIN,
            "2026-10-24T23:30:00Z",
            &["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"],
        ),
    ] {
        for (gap, overlap) in [(Gap::Shift, Overlap::First), (Gap::Skip, Overlap::Last)] {
            let schedule = cron_by(expression, zone, gap, overlap);
            assert_eq!(locals(&schedule, from, expected.len()), expected, "{expression} in {zone}");
        }
    }
}

#[test]
fn a_day_that_does_not_exist_ends_nothing() {
    let zone = "Pacific/Apia";
    let from = "2011-12-29T12:00:00Z";
    assert_eq!(
        locals(&cron("0 9 * * *", zone), from, 4),
        [
            "2011-12-29T09:00:00-10:00",
            // For 30 December, which Samoa did not have.
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T09:00:00+14:00",
            "2012-01-01T09:00:00+14:00"
        ]
    );
    let skipping = cron_by("0 9 * * *", zone, Gap::Skip, Overlap::First);
    assert_eq!(locals(&skipping, from, 2), ["2011-12-29T09:00:00-10:00", "2011-12-31T09:00:00+14:00"]);
    assert_eq!(
        locals(&cron("0 0 30 12 *", zone), from, 2),
        ["2011-12-31T00:00:00+14:00", "2012-12-30T00:00:00+14:00"]
    );
    assert_eq!(
        locals(&cron("0 */6 * * *", zone), "2011-12-30T00:00:00Z", 3),
        ["2011-12-29T18:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T06:00:00+14:00"]
    );
}

#[test]
fn notes_say_what_is_odd_and_nothing_else() {
    let note = |overlap, expression: &str, from: &str| {
        let next = cron_by(expression, NEW_YORK, Gap::Shift, overlap).next_after(at(from)).unwrap();
        (local(&next), next.note)
    };
    let shifted = Note::Shifted { from: "2026-03-08T02:15:00".parse().unwrap() };
    assert_eq!(
        note(Overlap::First, "15,45 2 * * *", "2026-03-08T00:00:00Z"),
        ("2026-03-08T03:00:00-04:00".to_owned(), Some(shifted))
    );
    let autumn = "2026-11-01T00:00:00Z";
    assert_eq!(note(Overlap::First, "30 1 * * *", autumn).1, Some(Note::FirstPass));
    assert_eq!(note(Overlap::Last, "30 1 * * *", autumn).1, Some(Note::SecondPass));
    assert_eq!(note(Overlap::First, "0 2 * * *", autumn).1, None);
    assert_eq!(note(Overlap::First, "59 0 * * *", autumn).1, None);
    assert_eq!(
        note(Overlap::First, "0 * * * *", "2026-03-08T06:00:00Z").1,
        None,
        "hourly passes over the gap"
    );
}
