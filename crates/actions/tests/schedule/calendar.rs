//! Days on which nothing happens.

#![expect(clippy::disallowed_methods, reason = "how long the search takes is what is tested")]

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{Following, Overlap, Preview, ScheduleSpec, preview};

use crate::support::{ZONES, at, locals};

fn daily(zone: &str, exclude: &[&str]) -> ScheduleSpec {
    ScheduleSpec::cron("0 9 * * *").timezone(zone).exclude(exclude.iter().copied())
}

#[test]
fn a_day_is_the_day_of_the_zone() {
    let schedule = |zone| ScheduleSpec::cron("30 23 * * *").timezone(zone).exclude(["2026-12-25"]);
    // In Auckland the 25th is over when it begins in Los Angeles.
    for (zone, days) in [
        ("Pacific/Auckland", ["2026-12-24T23:30:00+13:00", "2026-12-26T23:30:00+13:00"]),
        ("America/Los_Angeles", ["2026-12-24T23:30:00-08:00", "2026-12-26T23:30:00-08:00"]),
    ] {
        assert_eq!(locals(&schedule(zone).compile(&ZONES).unwrap(), "2026-12-24T09:00:00Z", 2), days);
    }
    let every = ScheduleSpec::every(HumanDuration::from_secs(6 * 3_600)).timezone("Asia/Tokyo");
    let every = every.exclude(["2026-12-25"]).compile(&ZONES).unwrap();
    let found = locals(&every, "2026-12-24T06:00:00Z", 3);
    assert_eq!(
        found,
        ["2026-12-24T21:00:00+09:00", "2026-12-26T03:00:00+09:00", "2026-12-26T09:00:00+09:00"]
    );
}

#[test]
fn what_is_left_out_is_said_in_words_and_notes() {
    let schedule = daily("Europe/Berlin", &["12-25..12-26", "2026-12-31"]).compile(&ZONES).unwrap();
    assert_eq!(schedule.describe(), "At 09:00 (Europe/Berlin), not on 12-25..12-26, 2026-12-31");
    let lines = preview(&schedule, at("2026-12-23T12:00:00Z"), 6).lines;
    let notes: Vec<(String, &str)> = lines
        .iter()
        .map(|line| (line.local[..10].to_owned(), line.note.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        ("2026-12-24", ""),
        ("2026-12-27", "left out by the calendar: 2 times from 2026-12-25 on"),
        ("2026-12-28", ""),
        ("2026-12-29", ""),
        ("2026-12-30", ""),
        ("2027-01-01", "left out by the calendar: 2026-12-31 (2026-12-31)"),
    ];
    assert_eq!(notes, expected.map(|(day, note)| (day.to_owned(), note)));
    let minutes = ScheduleSpec::cron("* * * * *").exclude(["SAT"]).compile(&ZONES).unwrap();
    let line = preview(&minutes, at("2026-12-25T23:59:00Z"), 1).lines.remove(0);
    assert_eq!(line.note.unwrap(), "left out by the calendar: 1000 times or more from 2026-12-26 on");
}

#[test]
fn a_clock_that_goes_back_over_midnight_hides_no_open_day() {
    // In St. John's, clocks went from 00:01 back to 23:01 of the day before, on 7 November 2010.
    let spec = ScheduleSpec::cron("*/20 * * * *").timezone("America/St_Johns");
    for (excluded, expected) in [
        // The first minute of the 7th is left out, and then it is the 6th again.
        (
            "2010-11-07",
            ["2010-11-06T23:40:00-02:30", "2010-11-06T23:20:00-03:30", "2010-11-06T23:40:00-03:30"],
        ),
        // The 6th is left out in both passes, and the minute of the 7th between them is not.
        (
            "2010-11-06",
            ["2010-11-07T00:00:00-02:30", "2010-11-07T00:00:00-03:30", "2010-11-07T00:20:00-03:30"],
        ),
    ] {
        let schedule = spec.clone().exclude([excluded]).compile(&ZONES).unwrap();
        assert_eq!(locals(&schedule, "2010-11-07T02:00:00Z", 3), expected, "without {excluded}");
    }
}

#[test]
fn a_schedule_with_a_calendar_is_one_without_and_some_left_out() {
    let days = ["SAT..SUN", "12-24..01-01", "2026-03-27..2026-03-31", "2026-10-25", "02-29"];
    for zone in ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Beirut", "America/Havana"]
    {
        for expression in ["*/30 * * * *", "15,45 0,2,23 * * *", "0 9 1 * MON"] {
            for overlap in [Overlap::First, Overlap::Both] {
                let all = ScheduleSpec::cron(expression).timezone(zone);
                let all = all.daylight(segno_actions::schedule::Gap::Shift, overlap);
                let some = all.clone().exclude(days).compile(&ZONES).unwrap();
                let all = all.compile(&ZONES).unwrap();
                let (from, to) = (at("2026-01-01T00:00:00Z"), at("2027-02-01T00:00:00Z"));
                let open: Vec<Timestamp> = all
                    .between(from, to)
                    .map(|occurrence| occurrence.time)
                    .filter(|time| some.exclusion_of(*time).is_none())
                    .collect();
                let found: Vec<Timestamp> =
                    some.between(from, to).map(|occurrence| occurrence.time).collect();
                assert_eq!(found, open, "{expression} in {zone}");
                for pair in open.windows(2).take(400) {
                    let Following { excluded, next, .. } = some.following(pair[0]);
                    assert_eq!(next.unwrap().time, pair[1]);
                    let first = all.next_after(pair[0]).unwrap().time;
                    assert_eq!(
                        excluded,
                        Some(first).filter(|first| *first < pair[1]),
                        "{expression} in {zone}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_never_happens_is_found_out_at_once_and_what_is_rare_is_found() {
    let begun = Instant::now();
    let from = at("2026-01-01T00:00:00Z");
    for (expression, exclude) in [
        ("* * * * * *", &["MON..SUN"][..]),
        ("* * * * * *", &["01-01..12-31"]),
        ("0 9 * * MON", &["MON"]),
        ("0 9 25 12 *", &["12-25"]),
        ("0 9 * * MON,WED,FRI", &["FRI", "MON", "WED"]),
        ("0 9 * * *", &["0001-01-01..9999-12-31"]),
    ] {
        let spec = ScheduleSpec::cron(expression).exclude(exclude.iter().copied());
        assert_eq!(spec.compile(&ZONES).unwrap().next_after(from), None, "{expression} without {exclude:?}");
    }
    let rare = ScheduleSpec::cron("0 9 * * SUN").exclude(["01-01..02-28", "03-01..12-31"]);
    let next = rare.compile(&ZONES).unwrap().next_after(from).unwrap();
    assert_eq!(next.time, at("2032-02-29T09:00:00Z"));
    let long =
        ScheduleSpec::cron("* * * * * *").exclude(["2026-01-01..2525-12-31"]).timezone("Europe/Berlin");
    let next = long.compile(&ZONES).unwrap().next_after(from).unwrap();
    assert!(next.time.duration_since(at("2525-12-31T23:00:00Z")) < SignedDuration::from_secs(1));
    assert!(begun.elapsed().as_millis() < 5_000, "the search is bounded, and took {:?}", begun.elapsed());
}

#[test]
fn a_preview_of_rare_times_is_bounded_and_goes_on_where_it_ended() {
    let from = at("2026-03-01T00:00:00Z");
    for (name, spec) in [
        ("leap days", ScheduleSpec::cron("0 0 29 2 *").timezone("Europe/Berlin")),
        ("Christmas", ScheduleSpec::cron("0 0 25 12 *").timezone("America/New_York").exclude(["SAT", "SUN"])),
        ("left out", ScheduleSpec::cron("* * * * *").exclude(["MON", "TUE", "WED", "THU", "FRI", "SAT"])),
        ("rare in many", ScheduleSpec::cron("0 0 * * *").exclude(["01-02..12-31"])),
    ] {
        let schedule = spec.compile(&ZONES).unwrap();
        let began = Instant::now();
        let Preview { lines, next_after } = preview(&schedule, from, 1_000);
        let took = began.elapsed();
        println!("{name}: {} times in {took:?}", lines.len());
        assert!(took.as_secs() < 2, "{name}: {took:?} for {} times", lines.len());
        assert_eq!(next_after.is_none(), lines.len() == 1_000, "{name}: {} times", lines.len());
        if let Some(next_after) = next_after {
            assert_eq!(next_after, lines.last().unwrap().time, "{name}");
            let more = preview(&schedule, next_after, 1).lines.remove(0);
            assert_eq!(Some(more.time), schedule.after(next_after).next().map(|next| next.time), "{name}");
        }
    }
}
