//! What is wrong with a DAG: all at once, each problem with its line, column, path and advice. The files in `golden/`
//! have for each text its problems.

use expect_test::{ExpectFile, expect_file};

use crate::{SMALLEST, problems, tasks, with};

fn check(texts: impl IntoIterator<Item = String>, expected: ExpectFile) {
    let cases = texts.into_iter().map(|text| format!("{}\n\n{}\n", text.trim(), problems(&text)));
    expected.assert_eq(&cases.collect::<Vec<_>>().join("────\n"));
}

fn of_tasks(cases: &[&[&str]]) -> Vec<String> {
    cases.iter().map(|case| tasks(case)).collect()
}

#[test]
fn all_problems_are_found_at_once() {
    let text = r#"
name: daily sales
params: {day: {defalt: 1, schema: {type: strnig}}, n: {schema: {type: integer}, default: x}}
partitions: {day: {window: dayly, first: 2026-01-01}, region: {values: [a, a]}}
partitioned_by: dya
max_concurrent_runs: many
tasks:
  - {key: extract, funktion: extract}
  - {key: load, function: Load, depends_on: [extrakt], retry: {attempts: 0}, timeout: 5}
  - {key: load, function: load, input: "{{ params.dya }}"}
  - {key: report, function: report, input: {"{{ x }}": "{{ y"}}
"#;
    check([text.to_owned()], expect_file!["golden/at_once.txt"]);
}

#[test]
fn edges_lead_to_tasks_and_not_in_circles() {
    let cases: &[&[&str]] = &[
        &["key: a, function: f, depends_on: a"],
        &[
            "key: a, function: f, depends_on: c",
            "key: b, function: f, depends_on: a",
            "key: c, function: f, depends_on: [b]",
        ],
        &["key: extract, function: f", "key: load, function: f, depends_on: [extrct, extract, extract]"],
        &["key: a, function: f", "key: a, function: g"],
    ];
    check(of_tasks(cases), expect_file!["golden/edges.txt"]);
}

#[test]
fn trigger_rules_that_never_hold_are_reported() {
    let cases: &[&[&str]] = &[
        &["key: a, function: f, trigger_rule: one_failed"],
        &[
            "key: a, function: f",
            "key: mend, function: f, depends_on: a, trigger_rule: all_failed",
            "key: end, function: f, depends_on: [a, mend]",
        ],
        &[
            "key: a, function: f",
            "key: mend, function: f, depends_on: a, trigger_rule: one_failed",
            "key: end, function: f, depends_on: [a, mend], trigger_rule: none_failed",
        ],
        &["key: a, function: f", "key: b, function: f, depends_on: a, trigger_rule: all"],
    ];
    check(of_tasks(cases), expect_file!["golden/rules.txt"]);
}

#[test]
fn templates_name_what_is_there() {
    let cases: &[&[&str]] = &[
        &[
            "key: a, function: f, input: ['{{ params.dya }}', '{{ parms.day }}', '{{ run.name }}', '{{ partition.key }}', '{{ item }}']",
        ],
        &[
            "key: a, function: f, input: '{{ tasks.b.output }}'",
            "key: b, function: f, depends_on: a, input: ['{{ tasks.c.output }}', '{{ tasks.b.output }}', '{{ tasks.aa.output }}', '{{ tasks.a.rows }}', '{{ tasks }}']",
            "key: c, function: f",
        ],
        // What comes first by way of others, and what may have failed.
        &[
            "key: a.b, function: f",
            "key: b, function: f, depends_on: a.b",
            "key: c, function: f, depends_on: b, input: '{{ tasks[\"a.b\"].output.rows[0] }}'",
            "key: d, function: f, depends_on: c, trigger_rule: all_done, input: '{{ tasks.c.output }} {{ tasks.b.output | default(1) }}'",
            "key: e, function: f, depends_on: d, input: ['{{ tasks.d.output }}', '{{ tasks.b.output }}']",
        ],
        &[
            "key: a, function: f, for_each: 'x {{ params.day }}'",
            "key: b, function: f, for_each: 5",
            "key: c, function: f, for_each: '{{ item }}'",
            "key: d, function: f, for_each: {items: [1, 2, 3], max_items: 2}",
        ],
    ];
    check(of_tasks(cases), expect_file!["golden/templates.txt"]);
}

#[test]
fn what_runs_by_itself_needs_parameters_and_a_window() {
    let cases = [
        "params: {source: }\nschedule: {cron_expr: 0 6 * *, timezone: Berlin}",
        "params: {source: }\nschedule: {cron_expr: 0 6 * * *, every: 1h}",
        "schedule: {every: 1h, params: {a: 1}}",
        "partitions: {region: {values: [eu]}}\npartitioned_by: region\nschedule: {every: 1h}",
        "sensors: [{name: s, function: f, interval: 10s}, {name: S, function: g}]",
        "notify: {function: f, on: []}",
    ];
    check(cases.map(with), expect_file!["golden/triggers.txt"]);
}

#[test]
fn assets_and_partitions_fit_together() {
    let cases = [
        "partitions: {day: {window: daily, first: 2026-01}, none: {values: [a]}, grid: {dimensions: [day, weak]}}",
        "partitions: {day: {window: daily, values: [a]}, both: {values: [a], first: a}, no: {}}",
        "partitions: {day: {window: daily, first: 2026-01-01}, region: {values: [a]}}\n\
         assets:\n  a: {partitions: day, freshness: 5s}\n  \
         b: {partitions: region, upstream: [{asset: a, mapping: same}, {asset: a, mapping: window}, c]}",
        "assets: {a: {upstream: [b]}, b: {upstream: [a]}}",
    ];
    let keys = "partitions: {day: {window: daily, first: 2026-01-01}}\nassets: {a: {partitions: day}}\n";
    let makers = tasks(&["key: a, function: f, asset: a", "key: b, function: f, asset: a, pool: p"]);
    let cases = cases.map(with).into_iter().chain([format!("{keys}{makers}")]);
    check(cases, expect_file!["golden/assets.txt"]);
}

#[test]
fn what_is_valid_and_would_surprise_is_a_warning() {
    let cases = [
        "assets: {made: {}, alone: {freshness: 1h}, raw: {}, derived: {upstream: [raw]}}\npartitions: {day: {window: daily, first: 2026-01-01}}",
        "partitions: {day: {window: daily, first: 2026-01-01}, region: {values: [eu]}, grid: {dimensions: [day, region]}, used: {values: [a]}}\npartitioned_by: used",
    ];
    let makers = ["key: only, function: work, asset: made"];
    let calls: &[&str] = &[
        "key: a, function: f, retry: {attempts: 1}",
        "key: b, function: f, heartbeat_timeout: 0s",
        "key: c, function: f, retry: {attempts: 1}, timeout: 1h",
        "key: d, orchestration: F, retry: {attempts: 1}, heartbeat_timeout: 0s",
        "key: e, function: f, retry: {attempts: 1}, completion: callback",
        "key: f, function: f",
    ];
    let cases = cases.map(|keys| format!("{}{keys}\n", tasks(&makers))).into_iter().chain([tasks(calls)]);
    check(cases, expect_file!["golden/doubts.txt"]);
}

#[test]
fn names_are_those_of_the_field() {
    let cases = [
        ("function: work", "function: New-User"),
        ("function: work", "orchestration: invoke"),
        ("only", "'load[0]'"),
        ("function: work", "function: work, tag: GPU"),
        ("function: work", "function: work, retry: {initial_delay: 1h, max_delay: 1m}"),
    ];
    check(cases.map(|(part, other)| SMALLEST.replace(part, other)), expect_file!["golden/names.txt"]);
}
