//! `segno recurring …` from outside.

use std::process::Output;

use crate::process::segno;
use serde_json::{Value, json};

fn preview(arguments: &[&str]) -> Output {
    segno().args(["recurring", "preview"]).args(arguments).output().unwrap()
}

/// Standard output of a preview that must succeed.
fn shown(arguments: &[&str]) -> String {
    let output = preview(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn shown_json(arguments: &[&str]) -> Vec<Value> {
    let list: Value = serde_json::from_str(&shown(&[arguments, &["-o", "json"]].concat())).unwrap();
    list["items"].as_array().unwrap().clone()
}

#[test]
fn a_preview_for_programs_is_a_list_of_times() {
    let weekdays = ["--cron", "0 9 * * MON-FRI", "--tz", "Europe/Berlin", "--from", "2026-03-27T00:00:00Z"];
    let lines = shown_json(&[&weekdays[..], &["--count", "10"]].concat());
    assert_eq!(lines.len(), 10);
    assert_eq!(
        lines[0],
        json!({"time": "2026-03-27T08:00:00Z", "local": "2026-03-27T09:00:00+01:00[Europe/Berlin]", "note": null})
    );
    assert_eq!(lines[1]["time"], "2026-03-30T07:00:00Z", "in summer time");
    assert_eq!(lines[9]["local"], "2026-04-09T09:00:00+02:00[Europe/Berlin]");
}

#[test]
fn a_preview_for_people_says_the_schedule_and_the_version_of_the_zones() {
    let text = shown(&[
        "--cron",
        "30 2 * * *",
        "--tz",
        "europe/berlin",
        "--from",
        "2026-03-28T12:00:00Z",
        "--count",
        "1",
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "At 02:30 (Europe/Berlin)");
    assert!(lines[2].starts_with("TIME ") && lines[2].ends_with("NOTE"), "{text}");
    assert_eq!(
        lines[3],
        "2026-03-29T01:00:00Z  2026-03-29T03:00:00+02:00[Europe/Berlin]  shifted by daylight saving: 2026-03-29 02:30 does not exist"
    );
    assert!(lines[5].starts_with("Time zone database 20"), "{text}");
}

#[test]
fn the_rule_for_daylight_saving_is_chosen() {
    let times = |rule: &[&str], from: &str| -> Vec<Value> {
        let schedule = ["--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--count", "2", "--from", from];
        let lines = shown_json(&[&schedule[..], rule].concat());
        lines.iter().map(|line| line["time"].clone()).collect()
    };
    let spring = "2026-03-28T12:00:00Z";
    assert_eq!(times(&["--gap", "skip"], spring), ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]);
    let autumn = "2026-10-24T12:00:00Z";
    assert_eq!(times(&["--overlap", "last"], autumn)[0], "2026-10-25T01:30:00Z");
    assert_eq!(times(&["--overlap", "both"], autumn), ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
}

#[test]
fn intervals_and_single_times_have_previews_too() {
    let every = shown_json(&["--every", "15m", "--from", "2026-03-27T00:01:00Z", "--count", "2"]);
    assert_eq!([&every[0]["time"], &every[1]["time"]], ["2026-03-27T00:15:00Z", "2026-03-27T00:30:00Z"]);
    let once = shown_json(&["--at", "2026-03-27T10:00:00+01:00", "--from", "2026-03-27T00:00:00Z"]);
    assert_eq!(once.len(), 1);
    assert_eq!(once[0]["time"], "2026-03-27T09:00:00Z");
    assert_eq!(shown_json(&["--at", "now+10m"]).len(), 1);
    let over = shown(&["--at", "2026-03-27T00:00:00Z", "--from", "2026-03-28T00:00:00Z"]);
    assert!(over.contains("There is no time after 2026-03-28T00:00:00Z."), "{over}");
}

#[test]
fn mistakes_name_the_flag_and_change_nothing() {
    for (arguments, reason) in [
        (
            &["--cron", "0 25 * * *"][..],
            "segno: --cron: \"0 25 * * *\" is not a cron expression: \"25\" cannot be the hour",
        ),
        (&["--cron", "0 0 30 2 *"], "never happens"),
        (
            &["--cron", "0 9 * * *", "--tz", "Europe/Berln"],
            "segno: --tz: there is no time zone \"Europe/Berln\"",
        ),
        (&["--every", "10ms"], "segno: --every: 10ms is too short"),
        (&["--every", "soon"], "is not a duration"),
        (&["--at", "tomorrow"], "now+10m"),
        (&["--every", "1h", "--anchor", "2d"], "write \"now+2d\" or \"now-2d\""),
        (&["--every", "1h", "--starts-at", "now+1h", "--ends-at", "now"], "segno: --ends-at: "),
        (&["--every", "1h", "--cron", "* * * * *"], "cannot be used with"),
        (&["--every", "1h", "--gap", "skip"], "cannot be used with"),
        (&["--cron", "* * * * *", "--anchor", "2026-03-27T00:00:00Z"], "cannot be used with"),
        (&["--cron", "* * * * *", "--count", "0"], "1..=1000"),
        (&[], "--cron"),
    ] {
        let output = preview(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(reason), "{arguments:?}: {message}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
}
