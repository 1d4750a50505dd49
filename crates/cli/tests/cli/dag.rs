//! `segno dag …` from outside. No server runs.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::process::segno;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

const DAG: &str = "\
name: d
params: {day: monday}
tasks:
  - {key: extract, function: extract, input: {day: \"{{ params.day }}\"}, retry: {attempts: 2, initial_delay: 5s}}
  - {key: load, function: load, depends_on: extract, input: {rows: \"{{ tasks.extract.output.rows }}\"}}
  - {key: mend, function: mend, depends_on: extract, trigger_rule: one_failed}
";

/// A directory with the DAG, and these files.
fn files(more: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    let write = |(name, text): &(&str, &str)| fs::write(directory.path().join(name), text).unwrap();
    [("d.yaml", DAG)].iter().chain(more).for_each(write);
    directory
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    segno().current_dir(directory).arg("dag").args(arguments).output().unwrap()
}

/// What is printed, lines of stderr with `!` before them, and the exit code.
fn check(directory: &TempDir, arguments: &[&str], expected: Expect) {
    let output = run(directory.path(), arguments);
    let mut text = String::from_utf8(output.stdout).unwrap();
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        text.push_str(&format!("! {line}\n"));
    }
    text.push_str(&format!("= {}\n", output.status.code().unwrap()));
    expected.assert_eq(&text);
}

#[test]
fn problems_are_listed_as_compilers_do() {
    let bad = "name: d\ntasks:\n  - {key: a, function: f, depends_on: b, funtion: g}\n";
    let directory = files(&[("bad.yaml", bad)]);
    check(
        &directory,
        &["check", "d.yaml"],
        expect![[r#"
        d.yaml: DAG "d" with 3 tasks and 2 dependencies; 0 warnings
        = 0
    "#]],
    );
    check(
        &directory,
        &["check", "bad.yaml"],
        expect![[r#"
        bad.yaml:3:39: error: tasks[0].depends_on[0]: there is no task "b"
        bad.yaml:3:42: warning: tasks[0].funtion: the key "funtion" is not known and has no effect; did you mean "function"?
        ! segno: bad.yaml has 1 error [invalid-dag]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "bad.yaml"],
        expect![[r#"
        ! bad.yaml:3:39: error: tasks[0].depends_on[0]: there is no task "b"
        ! bad.yaml:3:42: warning: tasks[0].funtion: the key "funtion" is not known and has no effect; did you mean "function"?
        ! segno: bad.yaml has 1 error [invalid-dag]
        = 2
    "#]],
    );
    check(
        &directory,
        &["test", "bad.yaml"],
        expect![[r#"
        ! bad.yaml:3:39: error: tasks[0].depends_on[0]: there is no task "b"
        ! bad.yaml:3:42: warning: tasks[0].funtion: the key "funtion" is not known and has no effect; did you mean "function"?
        ! segno: bad.yaml has 1 error [invalid-dag]
        = 2
    "#]],
    );
    check(
        &directory,
        &["check", "none.yaml"],
        expect![[r#"
        ! segno: none.yaml cannot be read: No such file or directory (os error 2)
        = 6
    "#]],
    );
}

#[test]
fn problems_are_data_for_programs() {
    let directory = files(&[("bad.yaml", "name: d\ntasks: []\n")]);
    let output = run(directory.path(), &["check", "bad.yaml", "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = json!({
        "file": "bad.yaml", "severity": "error", "line": 2, "column": 8, "path": "tasks",
        "problem": "there is no task", "advice": "add at least one",
    });
    assert_eq!(report, json!({ "valid": false, "errors": 1, "warnings": 0, "problems": [problem] }));
    let failure: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&failure["code"], &failure["exit_code"]), (&json!("invalid-dag"), &json!(2)));
}

#[test]
fn a_plan_is_data_for_programs() {
    let directory = files(&[]);
    let arguments = ["plan", "d.yaml", "--param", "day={\"n\": 1}", "--select", "extract", "-o", "json"];
    let output = run(directory.path(), &arguments);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["params"], json!({ "day": { "n": 1 } }));
    assert_eq!(plan["critical_path"], json!(["extract"]));
    assert_eq!(plan["tasks"][0]["input"], json!({ "value": { "day": { "n": 1 } } }));
    assert_eq!(plan["tasks"][0]["depth"], json!(0));
}

#[test]
fn a_plan_that_cannot_be_made_says_why() {
    let directory = files(&[]);
    check(
        &directory,
        &["plan", "d.yaml", "--param", "dya=1", "--partition", "eu"],
        expect![[r#"
        ! segno: there is no parameter "dya"; did you mean "day"?
        ! the DAG "d" has no partitions; leave out "eu" [invalid-run]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "d.yaml", "--select", "load"],
        expect![[r#"
        ! segno: the selected tasks need outputs of "extract", which are not selected; select these too, as in +load, or rerun tasks of an earlier run [invalid-run]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "d.yaml", "--param", "day"],
        expect![[r#"
        ! segno: --param day: write NAME=VALUE
        = 2
    "#]],
    );
}

#[test]
fn a_run_that_fails_in_a_test_is_a_failure() {
    let stubs = "tasks: {extract: {fail: true, error: no files}}\nfunctions: {load: {output: 1}, laod: {}}\n";
    let directory = files(&[("stubs.yaml", stubs), ("bad.yaml", "functions: {load: {duration: 5}}\n")]);
    check(
        &directory,
        &["test", "d.yaml", "--stubs", "stubs.yaml"],
        expect![[r#"
        AT   TASK     ATTEMPT  WHAT       VALUE
        +0s  extract  1        started    {"day":"monday"}
        +1s  extract  1        failed     no files; again at +6s
        +6s  extract  2        started    {"day":"monday"}
        +7s  extract  2        failed     no files
        +7s  mend     1        started    null
        +8s  mend     1        succeeded  null

        TASK     STATUS     ATTEMPTS  REASON
        extract  failed     2         no files
        load     skipped    0         left out because of its upstream tasks
        mend     succeeded  1

        The run failed after 8s.
        ! stubs.yaml:2:32: warning: functions.laod: nothing in the DAG has the name "laod"; did you mean "load"?
        ! warning: the stub functions.laod was never used
        ! warning: the stub functions.load was never used
        ! segno: the run failed: 1 task failed
        = 8
    "#]],
    );
    check(
        &directory,
        &["test", "d.yaml", "--stubs", "bad.yaml"],
        expect![[r#"
        ! bad.yaml:1:30: error: functions.load.duration: the duration 5 has no unit; write 5s, 5m, 5h or 5d
        ! segno: bad.yaml has 1 error [invalid-stubs]
        = 2
    "#]],
    );
}

#[test]
fn a_dag_is_read_from_standard_input() {
    let directory = files(&[]);
    let input = fs::File::open(directory.path().join("d.yaml")).unwrap();
    let output = segno().args(["dag", "check", "-"]).stdin(Stdio::from(input)).output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "-: DAG \"d\" with 3 tasks and 2 dependencies; 0 warnings\n"
    );
}
