use std::fmt::Write as _;

use expect_test::{Expect, expect};
use segno_actions::schedule::Zones;
use serde_json::Map;

use super::super::stubs::parse_stubs;
use super::*;
use crate::plan::{OtherOutputs, RunRequest, Selection, parse};

/// What happens to a DAG with these stubs, as text.
fn played(dag: &str, stubs: &str) -> String {
    let parsed = parse(dag.as_bytes(), &Zones::bundled()).unwrap_or_else(|error| panic!("{error}"));
    let selection = Selection::all(&parsed.dag);
    let request = RunRequest {
        params: &Map::new(),
        partition: None,
        selection: &selection,
        other_outputs: OtherOutputs::None,
    };
    let plan = parsed.plan(&request).unwrap();
    let (stubs, _) = parse_stubs(stubs.as_bytes(), &parsed.dag).unwrap();
    let report = rehearse(&plan, &parsed.dag.pools, &stubs, "2026-01-01T00:00:00Z".parse().unwrap());
    let mut text = String::new();
    for step in &report.steps {
        let kind = match &step.kind {
            StepKind::Expanded { count } => format!("adds {count} tasks"),
            StepKind::NotExpanded { error } => format!("adds no task: {error}"),
            StepKind::Started { input } => format!("({input})"),
            StepKind::Succeeded { output } => format!("= {output}"),
            StepKind::Failed { error, retry_at_ms: Some(at) } => {
                format!("failed, again at {}s: {error}", at / 1_000)
            }
            StepKind::Failed { error, retry_at_ms: None } => format!("failed: {error}"),
        };
        writeln!(text, "{}s {}#{} {kind}", step.at_ms / 1_000, step.task, step.attempt).unwrap();
    }
    writeln!(text, "{} after {}s", report.state.text(), report.duration_ms / 1_000).unwrap();
    for task in report.tasks.iter().filter(|task| task.state != TaskState::Succeeded) {
        writeln!(text, "{} {}", task.task, task.state.text()).unwrap();
    }
    report.unused_stubs.iter().for_each(|stub| writeln!(text, "unused: {stub}").unwrap());
    text
}

fn check(dag: &str, stubs: &str, expected: Expect) {
    expected.assert_eq(&played(dag, stubs));
}

#[test]
fn outputs_flow_from_task_to_task() {
    check(
        r#"
name: d
params: {day: monday}
tasks:
  - {key: extract, function: extract, input: {day: "{{ params.day }}"}}
  - {key: load, function: load, depends_on: extract, input: {n: "{{ tasks.extract.output.rows }}", run: "{{ run.id }}"}}
"#,
        "functions: {extract: {output: {rows: 3}, duration: 5s}, other: {output: 1}}",
        expect![[r#"
            0s extract#1 ({"day":"monday"})
            5s extract#1 = {"rows":3}
            5s load#1 ({"n":3,"run":"run_test"})
            6s load#1 = {"n":3,"run":"run_test"}
            SUCCEEDED after 6s
            unused: functions.other
        "#]],
    );
}

#[test]
fn failures_are_tried_again_and_then_skip_what_comes_after() {
    let dag = r#"
name: d
tasks:
  - {key: a, function: f, retry: {attempts: 3, initial_delay: 10s, factor: 2}}
  - {key: b, function: g, depends_on: a}
  - {key: mend, function: h, depends_on: a, trigger_rule: one_failed}
"#;
    check(
        dag,
        "tasks: {a: {fail: 2, error: not yet}}",
        expect![[r#"
        0s a#1 (null)
        1s a#1 failed, again at 11s: not yet
        11s a#2 (null)
        12s a#2 failed, again at 32s: not yet
        32s a#3 (null)
        33s a#3 = null
        33s b#1 (null)
        34s b#1 = null
        SUCCEEDED after 34s
        mend SKIPPED
    "#]],
    );
    check(
        dag,
        "tasks: {a: {fail: true}}",
        expect![[r#"
        0s a#1 (null)
        1s a#1 failed, again at 11s: the stub fails
        11s a#2 (null)
        12s a#2 failed, again at 32s: the stub fails
        32s a#3 (null)
        33s a#3 failed: the stub fails
        33s mend#1 (null)
        34s mend#1 = null
        FAILED after 34s
        a FAILED
        b SKIPPED
    "#]],
    );
    check(
        dag,
        "functions: {f: {fail: true, retryable: false}}",
        expect![[r#"
        0s a#1 (null)
        1s a#1 failed: the stub fails
        1s mend#1 (null)
        2s mend#1 = null
        FAILED after 2s
        a FAILED
        b SKIPPED
    "#]],
    );
}

#[test]
fn lists_add_tasks_whose_outputs_are_a_list() {
    let dag = r#"
name: d
pools: {two: 2}
tasks:
  - {key: list, function: list}
  - {key: each, function: each, depends_on: list, for_each: "{{ tasks.list.output }}", input: "{{ item }}", pool: two}
  - {key: sum, function: sum, depends_on: each, input: "{{ tasks.each.output }}"}
"#;
    check(
        dag,
        "functions: {list: {output: [a, b, c]}}\ntasks: {'each[1]': {output: B, duration: 10s}}",
        expect![[r#"
            0s list#1 (null)
            1s list#1 = ["a","b","c"]
            1s each#0 adds 3 tasks
            1s each[0]#1 ("a")
            1s each[1]#1 ("b")
            2s each[0]#1 = "a"
            2s each[2]#1 ("c")
            3s each[2]#1 = "c"
            11s each[1]#1 = "B"
            11s sum#1 (["a","B","c"])
            12s sum#1 = ["a","B","c"]
            SUCCEEDED after 12s
        "#]],
    );
    check(
        dag,
        "functions: {list: {output: []}}",
        expect![[r#"
        0s list#1 (null)
        1s list#1 = []
        1s each#0 adds 0 tasks
        1s sum#1 ([])
        2s sum#1 = []
        SUCCEEDED after 2s
    "#]],
    );
    check(
        dag,
        "functions: {list: {output: 5}}",
        expect![[r#"
        0s list#1 (null)
        1s list#1 = 5
        1s each#0 adds no task: for_each: expected a list, found a number; name a list in {{ … }}
        FAILED after 1s
        each FAILED
        sum SKIPPED
    "#]],
    );
}

#[test]
fn inputs_that_cannot_be_resolved_and_time_outs_fail() {
    check(
        r#"
name: d
tasks:
  - {key: a, function: f}
  - {key: b, function: g, depends_on: a, input: "{{ tasks.a.output.rows }}"}
  - {key: c, function: slow, timeout: 5s, retry: {attempts: 1}}
"#,
        "functions: {f: {output: {}}, slow: {duration: 1m}}",
        expect![[r#"
            0s a#1 (null)
            0s c#1 (null)
            1s a#1 = {}
            1s b#1 failed: column 4: tasks.a.output.rows cannot be resolved: tasks.a.output has no field "rows"; write | default(…) if it may be missing [template-failed]
            5s c#1 failed: timed out; the stub takes 1m
            FAILED after 5s
            b FAILED
            c FAILED
        "#]],
    );
}
