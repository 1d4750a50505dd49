//! `segno runbook …` from outside. No server runs.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::process::segno;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

const RUNBOOK: &str = include_str!("../../../../examples/runbooks/wave-mailbox-move.yaml");
const MEMBERS: &str = include_str!("../../../../examples/runbooks/members.csv");

/// A directory with the runbook and members of the example, and these files.
fn files(more: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    let write = |(name, text): &(&str, &str)| fs::write(directory.path().join(name), text).unwrap();
    [("wave.yaml", RUNBOOK), ("members.csv", MEMBERS)].iter().chain(more).for_each(write);
    directory
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    segno().current_dir(directory).arg("runbook").args(arguments).output().unwrap()
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
fn a_runbook_without_problems_is_summarized() {
    let directory = files(&[]);
    check(
        &directory,
        &["check", "wave.yaml"],
        expect![[r#"
        wave.yaml:42:93: warning: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
        wave.yaml: runbook "wave-mailbox-move" with 2 phases and 3 steps; 1 warning
        = 0
    "#]],
    );
    check(
        &directory,
        &["check", "wave.yaml", "--data", "members.csv"],
        expect![[r#"
        wave.yaml:42:93: warning: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
        wave.yaml: runbook "wave-mailbox-move" with 2 phases and 3 steps; 1 warning
        = 0
    "#]],
    );
    check(
        &directory,
        &["check", "wave.yaml", "--columns", "SourceId, Upn,WaveTime"],
        expect![[r#"
        wave.yaml:11:5: warning: data_source.multi_valued_columns[0].name: there is no column "Aliases"
        wave.yaml:25:37: warning: phases[0].steps[0].params.UserPrincipalName: nothing provides the variable "TargetUpn"; did you mean "TargetId"?
        wave.yaml:31:58: warning: phases[0].steps[1].params.ExpectedValues: nothing provides the variable "Aliases"; add the column to the data source
        wave.yaml:42:93: warning: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
        wave.yaml: runbook "wave-mailbox-move" with 2 phases and 3 steps; 4 warnings
        = 0
    "#]],
    );
}

#[test]
fn all_problems_are_listed_and_the_exit_code_is_2() {
    let wrong = RUNBOOK
        .replace("on_failure: undo-user", "on_failure: undo-usr\n        onFailure: x")
        .replace("offset: T-5d", "offset: T+5d")
        .replace("type: sql", "type: sqll");
    let directory = files(&[("wave.yaml", &wrong)]);
    check(
        &directory,
        &["check", "wave.yaml"],
        expect![[r#"
        wave.yaml:5:9: error: data_source.type: "sqll" is not known here; did you mean "sql"?
        wave.yaml:20:13: error: phases[0].offset: "T+5d" lies after the start of the batch; phases are due before it or at it; write T-0, or T- and a duration, as in T-5d, T-3h or T-30m
        wave.yaml:27:21: error: phases[0].steps[0].on_failure: there is no rollback "undo-usr"; did you mean "undo-user"?
        wave.yaml:28:9: warning: phases[0].steps[0].onFailure: the key "onFailure" is not known and has no effect; did you mean "on_failure"?
        wave.yaml:43:5: warning: rollbacks.undo-user: no step uses the rollback "undo-user"; add on_failure: undo-user to a step
        ! segno: wave.yaml has 3 errors [invalid-runbook]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "wave.yaml", "--data", "members.csv"],
        expect![[r#"
        ! wave.yaml:5:9: error: data_source.type: "sqll" is not known here; did you mean "sql"?
        ! wave.yaml:20:13: error: phases[0].offset: "T+5d" lies after the start of the batch; phases are due before it or at it; write T-0, or T- and a duration, as in T-5d, T-3h or T-30m
        ! wave.yaml:27:21: error: phases[0].steps[0].on_failure: there is no rollback "undo-usr"; did you mean "undo-user"?
        ! wave.yaml:28:9: warning: phases[0].steps[0].onFailure: the key "onFailure" is not known and has no effect; did you mean "on_failure"?
        ! wave.yaml:43:5: warning: rollbacks.undo-user: no step uses the rollback "undo-user"; add on_failure: undo-user to a step
        ! segno: wave.yaml has 3 errors [invalid-runbook]
        = 2
    "#]],
    );
}

#[test]
fn problems_of_the_data_are_listed_with_their_file() {
    let rows = "SourceId,Upn,TargetUpn,Aliases,WaveTime\n1,a,b,,2026-03-20\n1,c,d,,2026-03-20\n2,e\n";
    let directory = files(&[("rows.csv", rows), ("few.csv", "SourceId,upn\n1,a\n")]);
    check(
        &directory,
        &["check", "wave.yaml", "--data", "rows.csv"],
        expect![[r#"
            wave.yaml:42:93: warning: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
            rows.csv:3: error: SourceId: the key "1" is already on line 2; letter case does not matter
            rows.csv:4: error: expected 5 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
            ! segno: rows.csv has 2 errors [invalid-members]
            = 2
        "#]],
    );
    check(
        &directory,
        &["plan", "wave.yaml", "--data", "few.csv"],
        expect![[r#"
            ! few.csv:1: error: the column "Aliases" is missing
            ! few.csv:1: error: the column "TargetUpn" is missing
            ! few.csv:1: error: the column "Upn" is missing; did you mean "upn"?
            ! few.csv:1: error: the column "WaveTime" is missing
            ! segno: few.csv has 4 errors [invalid-members]
            = 2
        "#]],
    );
    check(
        &directory,
        &["check", "wave.yaml", "--data", "none.csv"],
        expect![[r#"
            ! segno: none.csv cannot be read: No such file or directory (os error 2)
            = 6
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
fn no_problem_hides_another() {
    let rows = "SourceId,Upn,TargetUpn,WaveTime\n1,a,b,next week\n1,c,d,2026-03-20\n2,e\n";
    let wrong = RUNBOOK.replace("on_failure: undo-user", "on_failure: undo-usr");
    let named = RUNBOOK.replace("undo-user", "undo-user-0-run");
    let directory = files(&[("wrong.yaml", &wrong), ("named.yaml", &named), ("rows.csv", rows)]);
    check(
        &directory,
        &["check", "wave.yaml", "--data", "rows.csv"],
        expect![[r#"
        wave.yaml:42:93: warning: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
        rows.csv:1: error: the column "Aliases" is missing
        rows.csv:2: error: WaveTime: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
        rows.csv:3: error: SourceId: the key "1" is already on line 2; letter case does not matter
        rows.csv:4: error: expected 4 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
        ! segno: rows.csv has 4 errors [invalid-members]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "wave.yaml", "--data", "rows.csv"],
        expect![[r#"
        ! rows.csv:1: error: the column "Aliases" is missing
        ! rows.csv:2: error: WaveTime: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
        ! rows.csv:3: error: SourceId: the key "1" is already on line 2; letter case does not matter
        ! rows.csv:4: error: expected 4 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
        ! segno: rows.csv has 4 errors [invalid-members]
        = 2
    "#]],
    );
    check(
        &directory,
        &["check", "wrong.yaml", "--data", "rows.csv"],
        expect![[r#"
        wrong.yaml:27:21: error: phases[0].steps[0].on_failure: there is no rollback "undo-usr"; did you mean "undo-user"?
        wrong.yaml:42:5: warning: rollbacks.undo-user: no step uses the rollback "undo-user"; add on_failure: undo-user to a step
        rows.csv:2: error: WaveTime: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
        rows.csv:3: error: SourceId: the key "1" is already on line 2; letter case does not matter
        rows.csv:4: error: expected 4 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
        ! segno: wrong.yaml has 1 error, rows.csv has 3 errors [invalid-runbook]
        = 2
    "#]],
    );
    check(
        &directory,
        &["plan", "wrong.yaml", "--data", "rows.csv"],
        expect![[r#"
        ! wrong.yaml:27:21: error: phases[0].steps[0].on_failure: there is no rollback "undo-usr"; did you mean "undo-user"?
        ! wrong.yaml:42:5: warning: rollbacks.undo-user: no step uses the rollback "undo-user"; add on_failure: undo-user to a step
        ! rows.csv:2: error: WaveTime: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
        ! rows.csv:3: error: SourceId: the key "1" is already on line 2; letter case does not matter
        ! rows.csv:4: error: expected 4 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
        ! segno: wrong.yaml has 1 error, rows.csv has 3 errors [invalid-runbook]
        = 2
    "#]],
    );
    check(
        &directory,
        &["check", "named.yaml"],
        expect![[r#"
        named.yaml:42:5: error: rollbacks.undo-user-0-run: "undo-user-0-run" ends as the ids of repeated jobs do, in -run, -retry or -poll, with or without a number; use another name
        ! segno: named.yaml has 1 error [invalid-runbook]
        = 2
    "#]],
    );
}

#[test]
fn a_plan_for_programs_has_its_problems_as_such() {
    let rows = MEMBERS.replace("2026-03-27T06:00:00Z", "next week");
    let directory = files(&[("rows.csv", &rows), ("few.csv", "SourceId\n1\n")]);
    for (data, batches, errors) in [("rows.csv", 1, 1), ("few.csv", 0, 4)] {
        let output = run(directory.path(), &["plan", "wave.yaml", "--data", data, "-o", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["batches"].as_array().unwrap().len(), batches, "{report}");
        let of = |severity: &str| {
            let problems = report["problems"].as_array().unwrap().iter();
            problems.filter(|problem| problem["severity"] == severity).cloned().collect::<Vec<_>>()
        };
        assert_eq!((of("error").len(), of("warning").len()), (errors, 0), "{report}");
        assert!(of("error").iter().all(|problem| problem["file"] == data), "{report}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().count(), 1, "nothing but the failure: {stderr}");
        let failure: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!((&failure["code"], &failure["exit_code"]), (&json!("invalid-members"), &json!(2)));
    }
}

#[test]
fn a_plan_shows_batches_phases_and_calls() {
    let directory = files(&[]);
    let plan = ["plan", "wave.yaml", "--data", "members.csv", "--now", "2026-03-16T00:00:00Z"];
    check(
        &directory,
        &[&plan[..], &["--limit", "1"]].concat(),
        expect![[r#"
            Runbook "wave-mailbox-move": 2 batches, 3 members

            Batch of 2 members, start 2026-03-20 06:00:00 +00:00

            PHASE    DUE                         BEGINS                      NOTE
            prepare  2026-03-15 06:00:00 +00:00  2026-03-16 00:00:00 +00:00  overdue
            cutover  2026-03-20 06:00:00 +00:00  2026-03-20 06:00:00 +00:00

            init
              PHASE  STEP        POOL      FUNCTION            PARAMS
              init   open-batch  cloud-01  New-MigrationBatch  {"Name":"batch-{{_batch_id}}","Start":"2026-03-20T06:00:00Z"}

            1001 (line 2)
              PHASE    STEP         POOL      FUNCTION                  PARAMS
              prepare  create-user  cloud-01  New-EntraUser             {"UserPrincipalName":"ada@new.example"}
              prepare  wait-sync    cloud-01  Test-EntraAttributeMatch  {"ExpectedValues":["countess@new.example","al@new.example"],"UserId":"{{TargetId}}"}
              cutover  switch       cloud-01  Set-PrimaryEmail          {"Identity":"ada@old.example"}

            and 1 more member; pass --limit or --member to see them

            Batch of 1 member, start 2026-03-27 06:00:00 +00:00

            PHASE    DUE                         BEGINS                      NOTE
            prepare  2026-03-22 06:00:00 +00:00  2026-03-22 06:00:00 +00:00
            cutover  2026-03-27 06:00:00 +00:00  2026-03-27 06:00:00 +00:00

            init
              PHASE  STEP        POOL      FUNCTION            PARAMS
              init   open-batch  cloud-01  New-MigrationBatch  {"Name":"batch-{{_batch_id}}","Start":"2026-03-27T06:00:00Z"}

            1003 (line 4)
              PHASE    STEP         POOL      FUNCTION                  PARAMS
              prepare  create-user  cloud-01  New-EntraUser             {"UserPrincipalName":"alan@new.example"}
              prepare  wait-sync    cloud-01  Test-EntraAttributeMatch  {"ExpectedValues":["turing@new.example"],"UserId":"{{TargetId}}"}
              cutover  switch       cloud-01  Set-PrimaryEmail          {"Identity":"alan@old.example"}
            = 0
        "#]],
    );
    check(
        &directory,
        &[&plan[..], &["--member", "1003"]].concat(),
        expect![[r#"
            Runbook "wave-mailbox-move": 2 batches, 3 members

            Batch of 1 member, start 2026-03-27 06:00:00 +00:00

            PHASE    DUE                         BEGINS                      NOTE
            prepare  2026-03-22 06:00:00 +00:00  2026-03-22 06:00:00 +00:00
            cutover  2026-03-27 06:00:00 +00:00  2026-03-27 06:00:00 +00:00

            init
              PHASE  STEP        POOL      FUNCTION            PARAMS
              init   open-batch  cloud-01  New-MigrationBatch  {"Name":"batch-{{_batch_id}}","Start":"2026-03-27T06:00:00Z"}

            1003 (line 4)
              PHASE    STEP         POOL      FUNCTION                  PARAMS
              prepare  create-user  cloud-01  New-EntraUser             {"UserPrincipalName":"alan@new.example"}
              prepare  wait-sync    cloud-01  Test-EntraAttributeMatch  {"ExpectedValues":["turing@new.example"],"UserId":"{{TargetId}}"}
              cutover  switch       cloud-01  Set-PrimaryEmail          {"Identity":"alan@old.example"}
            = 0
        "#]],
    );
    check(
        &directory,
        &[&plan[..], &["--member", "nobody"]].concat(),
        expect![[r#"
        ! segno: members.csv has no member "nobody"; check --member
        = 2
    "#]],
    );
}

#[test]
fn a_plan_of_more_rows_than_allowed_is_refused() {
    let mut rows = MEMBERS.lines().next().unwrap().to_owned() + "\n";
    (0..50_001).for_each(|key| rows.push_str(&format!("{key},a,b,,2026-03-20\n")));
    let directory = files(&[("rows.csv", &rows)]);
    check(
        &directory,
        &["plan", "wave.yaml", "--data", "rows.csv"],
        expect![[r#"
            ! rows.csv:50002: error: there are more than 50000 rows, which is the limit; split the file, and add the other parts with `segno batch add-members`
            ! segno: rows.csv has 1 error [invalid-members]
            = 2
        "#]],
    );
}

#[test]
fn a_plan_with_rows_that_cannot_be_used_fails_after_it_is_shown() {
    let rows = MEMBERS.replace("2026-03-27T06:00:00Z", "next week");
    let directory = files(&[("members.csv", &rows)]);
    let plan =
        ["plan", "wave.yaml", "--data", "members.csv", "--now", "2026-03-16T00:00:00Z", "--limit", "0"];
    check(
        &directory,
        &plan,
        expect![[r#"
            Runbook "wave-mailbox-move": 1 batch, 2 members

            Batch of 2 members, start 2026-03-20 06:00:00 +00:00

            PHASE    DUE                         BEGINS                      NOTE
            prepare  2026-03-15 06:00:00 +00:00  2026-03-16 00:00:00 +00:00  overdue
            cutover  2026-03-20 06:00:00 +00:00  2026-03-20 06:00:00 +00:00

            init
              PHASE  STEP        POOL      FUNCTION            PARAMS
              init   open-batch  cloud-01  New-MigrationBatch  {"Name":"batch-{{_batch_id}}","Start":"2026-03-20T06:00:00Z"}

            and 2 more members; pass --limit or --member to see them
            ! members.csv:4: error: WaveTime: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
            ! segno: members.csv has 1 error [invalid-members]
            = 2
        "#]],
    );
}

#[test]
fn reports_for_programs_are_json() {
    let directory = files(&[]);
    let json = |arguments: &[&str]| -> Value {
        let output = run(directory.path(), &[arguments, &["--output", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = json(&["check", "wave.yaml", "--columns", "SourceId,Upn,WaveTime,Aliases"]);
    assert_eq!(
        (&report["valid"], &report["errors"], &report["warnings"]),
        (&json!(true), &json!(0), &json!(2))
    );
    assert_eq!(
        report["problems"][0],
        json!({
            "file": "wave.yaml", "severity": "warning", "line": 25, "column": 37,
            "path": "phases[0].steps[0].params.UserPrincipalName",
            "problem": "nothing provides the variable \"TargetUpn\"", "advice": "did you mean \"TargetId\"?"
        })
    );
    let plan = json(&["plan", "wave.yaml", "--data", "members.csv", "--now", "2026-03-16T00:00:00Z"]);
    assert_eq!(plan["batches"][0]["members"], 2);
    assert_eq!(
        plan["batches"][0]["phases"][0],
        json!({ "name": "prepare", "due": "2026-03-15T06:00:00Z", "begins": "2026-03-16T00:00:00Z", "overdue": true })
    );
    assert_eq!(
        plan["batches"][0]["calls"][0]["calls"][1],
        json!({
            "phase": "prepare", "step": "wait-sync", "worker_id": "cloud-01", "function": "Test-EntraAttributeMatch",
            "params": { "UserId": "{{TargetId}}", "ExpectedValues": ["countess@new.example", "al@new.example"] }
        })
    );
}

#[test]
fn a_runbook_is_read_from_standard_input() {
    use std::io::Write as _;
    let mut child =
        segno().args(["runbook", "check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(RUNBOOK.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("-: runbook \"wave-mailbox-move\""));
}

#[test]
fn a_file_that_is_no_runbook_is_not_sent_for_a_preview() {
    let directory = files(&[("wave.yaml", &RUNBOOK.replace("offset: T-5d", "offset: T+5d"))]);
    for (arguments, code, words) in [
        (["preview", "wave.yaml"], 2, "phases[0].offset"),
        (["preview", "none/such.yaml"], 6, "none/such.yaml"),
    ] {
        let output = run(directory.path(), &arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
