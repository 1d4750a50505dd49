//! `segno batch …` and `segno member …` against a server: what the verbs do, print and exit with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;

/// Init and a phase of functions that the server has, and a phase of a pool that nothing has declared.
const STEER: &str = r#"
name: steer
data_source: {type: manual, primary_key: Key}
init:
  - {name: open, worker_id: dev, function: greet, params: {name: all}}
phases:
  - name: Prepare
    offset: T-0
    steps:
      - {name: hello, worker_id: dev, function: greet, params: {name: "{{Key}}"}}
  - name: Cutover
    offset: T-0
    steps:
      - {name: move, worker_id: nowhere, function: Move}
"#;

/// A batch that is not as wanted after so many looks stays as it is.
const MOST_LOOKS: usize = 500;

/// A server and a directory for files.
struct Stand {
    server: Process,
    directory: TempDir,
}

impl Stand {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        Stand { server: Process::dev(&directory.path().join("data")), directory }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a verb that fails, and returns what it told.
    fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.server.run(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        told
    }

    /// Runs a request that is applied.
    fn applies(&self, arguments: &[&str], request: &str) {
        let said = self.server.said(arguments);
        assert!(said.contains("applied") && said.contains(request), "{arguments:?}: {said}");
    }

    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..MOST_LOOKS {
            last = self.server.json(&["batch", "show", "1"]);
            if wanted(&last) {
                return last;
            }
        }
        panic!("it stays as it is: {last:#}")
    }

    /// A batch of [`STEER`] whose init has ended.
    fn batch(&self) {
        let (runbook, members) = (self.file("steer.yaml", STEER), self.file("m.csv", "Key\nAda\nGrace\n"));
        let said = self.server.said(&["runbook", "publish", path(&runbook)]);
        assert!(said.contains("WARNING"), "{said}");
        assert!(said.contains("phases[1].steps[0].worker_id: no pool \"nowhere\" is known"), "{said}");
        self.server.said(&["batch", "create", "--runbook", "steer", "--members", path(&members)]);
        self.until(|batch| batch["is_sealed"] == true);
        self.applies(&["batch", "advance", "1"], "advance");
        self.until(|batch| batch["status"] == "active");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn batches_phases_members_and_steps_are_steered() {
    let stand = Stand::new();
    stand.batch();
    let server = &stand.server;
    let said = server.said(&["batch", "show", "1"]);
    assert!(said.contains("INIT  ID  POOL  FUNCTION") && said.contains("open  1   dev   greet"), "{said}");
    assert!(stand.fails(&["batch", "skip-phase", "1", "nothing"], 6).contains("Prepare, Cutover"));
    stand.fails(&["batch", "skip-phase", "1", "99"], 6);
    stand.applies(&["batch", "skip-phase", "1", "PREPARE"], "skip_phase");
    stand.applies(&["batch", "advance", "1"], "advance");
    let batch = stand.until(|batch| batch["phases"][1]["step_counts"]["dispatched"] == 2);
    let why = batch["explanation"]["why"].as_str().unwrap();
    assert!(
        why.ends_with("waits for a worker: pool \"nowhere\" is not declared, and no worker has announced it")
    );
    let said = server.said(&["member", "show", "1", "2"]);
    assert!(said.contains("dispatched"), "{said}");
    let late = stand.file("late.csv", "Key\nZoe\n");
    stand.applies(&["batch", "add-members", "1", path(&late)], "put_members");
    stand.applies(&["batch", "remove-members", "1", "ada"], "remove_members");
    let step = server.json(&["member", "show", "1", "2"])["steps"][0]["id"].to_string();
    stand.applies(&["batch", "cancel-step", "1", &step], "cancel_step");
    stand.fails(&["member", "cancel", "1", "2"], 5);
    let list = server.said(&["batch", "list"]);
    assert!(list.contains("2        0       active"), "one is cancelled, one has left: {list}");
    stand.applies(&["member", "resume", "1", "2"], "resume_member");
    stand.applies(&["batch", "pause", "1", "--reason", "lunch"], "pause_batch");
    let said = server.said(&["batch", "show", "1"]);
    assert!(said.contains("paused\n") && said.contains("the batch is paused: lunch"), "{said}");
    stand.applies(&["batch", "cancel", "1"], "cancel_batch");
    stand.until(|batch| batch["status"] == "cancelled");
}

#[test]
fn requests_that_apply_to_nothing_fail_with_the_code_of_their_reason() {
    let stand = Stand::new();
    stand.batch();
    for (arguments, code) in [
        (&["batch", "retry", "1"][..], 5),
        (&["batch", "retry", "1", "--member", "1"], 5),
        (&["batch", "retry-init", "1"], 5),
        (&["batch", "retry-rollback", "1", "step-99"], 6),
        (&["batch", "retry-rollback", "1", "init-99"], 6),
        (&["batch", "retry-rollback", "1", "phase-1"], 2),
        (&["batch", "reschedule", "1", "--start", "now+2d"], 5),
        (&["batch", "reschedule", "1", "--start", "0001-01-01T00:00:00Z"], 2),
        (&["batch", "remove-members", "1", "nobody"], 6),
        (&["batch", "resume", "1"], 5),
        (&["batch", "approve", "1", "prepare"], 5),
        (&["batch", "reject", "1", "prepare"], 5),
        (&["batch", "resume-phase", "1", "prepare"], 5),
        (&["batch", "skip-step", "1", "99"], 6),
        (&["batch", "cancel-step", "1", "99"], 6),
        (&["member", "retry", "1", "99"], 6),
        (&["member", "resume", "1", "1"], 5),
        (&["member", "retry-removal", "1", "1"], 5),
        (&["batch", "show", "9"], 6),
    ] {
        stand.fails(arguments, code);
    }
    let told = stand.fails(&["batch", "show", "first"], 2);
    assert!(told.contains("'first'") && told.contains("ids are whole numbers"), "{told}");
    let wrong = stand.file("wrong.csv", "Key\nAda\nADA\nAda,2\n");
    let told = stand.fails(&["batch", "create", "--runbook", "steer", "--members", path(&wrong)], 2);
    assert!(told.contains("2 errors\nline 3: ") && told.contains("\nline 4: "), "{told}");
    assert_eq!(told.matches("line 3: ").count(), 1, "{told}");
}

#[test]
fn publishing_tells_what_runs_again_and_a_dry_run_tells_it_before() {
    let stand = Stand::new();
    let server = &stand.server;
    let (runbook, members) = (stand.file("steer.yaml", STEER), stand.file("m.csv", "Key\nAda\nGrace\n"));
    server.said(&["runbook", "publish", path(&runbook)]);
    let start = ["--start", "2026-01-01T00:00:00Z"];
    let create = ["batch", "create", "--runbook", "steer", "--members", path(&members)];
    server.said(&[&create[..], &start[..]].concat());
    stand.until(|batch| batch["phases"][1]["status"] == "dispatched");
    let newer = stand.file("newer.yaml", &STEER.replace("name: steer", "name: steer\ndescription: newer"));
    let dry = server.run(&["runbook", "publish", path(&newer), "--dry-run"]);
    let (told, warned) = (String::from_utf8(dry.stdout).unwrap(), String::from_utf8(dry.stderr).unwrap());
    assert!(told.contains("not published; this is a dry run"), "{told}");
    assert!(told.contains("1 batch with 2 members"), "{told}");
    assert!(told.contains("Prepare  1 batch        2"), "{told}");
    assert!(warned.contains("would run again: \"Prepare\" in 1 batch with 2 members"), "{warned}");
    assert!(warned.contains("--ignore-overdue"), "{warned}");
    assert_eq!(server.json(&["runbook", "show", "steer"])["runbook"]["active_version"], 1);
    let done = server.run(&["runbook", "publish", path(&newer)]);
    let (told, warned) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(told.contains("1 batch with 2 members"), "{told}");
    assert!(warned.contains("run again: \"Prepare\""), "{warned}");
    let refused = stand.fails(&["runbook", "delete", "steer"], 5);
    assert!(refused.contains("runbook-in-use") && refused.contains("batch 1 uses"), "{refused}");
    assert!(stand.fails(&["runbook", "delete", "steer", "--version", "1"], 5).contains("runbook-in-use"));
    stand.fails(&["runbook", "delete", "nothing"], 6);
    let spare = stand.file("spare.yaml", &STEER.replace("name: steer", "name: spare"));
    server.said(&["runbook", "publish", path(&spare)]);
    assert!(server.said(&["runbook", "delete", "spare"]).contains("deleted"));
    stand.fails(&["runbook", "show", "spare"], 6);
}
