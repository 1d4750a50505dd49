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
    check(&directory, &["check", "d.yaml"], expect![[""]]);
    check(&directory, &["check", "bad.yaml"], expect![[""]]);
    check(&directory, &["plan", "bad.yaml"], expect![[""]]);
    check(&directory, &["test", "bad.yaml"], expect![[""]]);
    check(&directory, &["check", "none.yaml"], expect![[""]]);
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
    check(&directory, &["plan", "d.yaml", "--param", "dya=1", "--partition", "eu"], expect![[""]]);
    check(&directory, &["plan", "d.yaml", "--select", "load"], expect![[""]]);
    check(&directory, &["plan", "d.yaml", "--param", "day"], expect![[""]]);
}

#[test]
fn a_run_that_fails_in_a_test_is_a_failure() {
    let stubs = "tasks: {extract: {fail: true, error: no files}}\nfunctions: {load: {output: 1}, laod: {}}\n";
    let directory = files(&[("stubs.yaml", stubs), ("bad.yaml", "functions: {load: {duration: 5}}\n")]);
    check(&directory, &["test", "d.yaml", "--stubs", "stubs.yaml"], expect![[""]]);
    check(&directory, &["test", "d.yaml", "--stubs", "bad.yaml"], expect![[""]]);
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
