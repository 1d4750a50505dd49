//! Backups have the ledger, or say that they do not: made while a run is under way, restored, and the run goes on.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, segno};

const DAG: &str = "name: slow-one
tasks:
  - {key: a, function: echo, input: 1}
  - {key: b, function: slow, input: {seconds: 2}, depends_on: [a]}
  - {key: c, function: echo, input: 1, depends_on: [b]}
";

fn store(arguments: &[&str]) -> Output {
    segno().arg("store").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = store(&[arguments, &["-o", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Publishes the DAG, ends one run of it and begins another.
fn runs(server: &Process, directory: &TempDir) -> [String; 2] {
    let file = directory.path().join("dag.yaml");
    fs::write(&file, DAG).unwrap();
    server.said(&["dag", "publish", text(&file)]);
    let id = |run: Value| run["id"].as_str().unwrap().to_owned();
    let first = id(server.json(&["run", "start", "slow-one"]));
    assert!(server.run(&["run", "watch", &first]).status.success());
    [first, id(server.json(&["run", "start", "slow-one"]))]
}

#[test]
fn a_run_goes_on_in_a_store_that_was_restored_from_a_backup_of_a_working_server() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut server = Process::dev(&at("data"));
    let [first, second] = runs(&server, &directory);
    let backup = json(&["backup", text(&at("data")), text(&at("backup"))]);
    assert_eq!((&backup["complete"], &backup["ledger"]["state"]), (&true.into(), &"included".into()));
    assert!(backup["ledger"]["objects"].as_u64().unwrap() > 3, "{backup}");
    server.kill();
    assert_eq!(json(&["verify", text(&at("backup"))])["ledger"], backup["ledger"]);
    let restored = json(&["restore", text(&at("backup")), text(&at("new"))]);
    assert_eq!(restored["ledger"], backup["ledger"]);
    let server = Process::dev(&at("new"));
    let watched = server.run(&["run", "watch", &second]);
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    for run in [&first, &second] {
        let shown = server.said(&["run", "show", run]);
        assert!(shown.contains("3 of 3: 3 succeeded"), "{shown}");
    }
    drop(server);
    let copied = json(&["copy", text(&at("new")), text(&at("copied"))]);
    assert_eq!((&copied["complete"], &copied["ledger"]["state"]), (&true.into(), &"included".into()));
    let server = Process::dev(&at("copied"));
    assert_eq!(server.items(&["run", "list", "--status", "succeeded"]).len(), 2);
}

#[test]
fn a_backup_without_a_ledger_that_is_elsewhere_is_not_complete_and_says_so_to_the_end() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let data = at("data");
    let mut command = segno();
    command.env("SEGNO_LEDGER__URL", "memory:");
    let server = Process::dev_by(command, &data);
    runs(&server, &directory);
    drop(server);
    let file = at("backup");
    let backup = store(&["backup", text(&data), text(&file)]);
    let (said, warned) =
        (String::from_utf8(backup.stdout).unwrap(), String::from_utf8(backup.stderr).unwrap());
    assert!(said.contains("NOT INCLUDED: it is at memory:"), "{said}");
    assert!(warned.contains("the backup is not complete") && warned.contains("memory:"), "{warned}");
    let expected = serde_json::json!({ "state": "elsewhere", "place": "memory:" });
    let new = at("new");
    for arguments in [&["verify", text(&file)][..], &["restore", text(&file), text(&new)]] {
        let told = json(arguments);
        assert_eq!((&told["complete"], &told["ledger"]), (&false.into(), &expected), "{arguments:?}");
        assert!(told["records"].as_u64().is_some_and(|records| records > 0));
    }
}

#[test]
fn a_ledger_goes_where_it_is_told_to_and_nowhere_else() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = Process::dev(&at("data"));
    runs(&server, &directory);
    drop(server);
    json(&["backup", text(&at("data")), text(&at("backup"))]);
    let url = format!("file:{}", at("elsewhere").display());
    json(&["restore", text(&at("backup")), text(&at("new")), "--ledger", &url]);
    assert!(at("elsewhere/default/default/manifests").is_dir());
    assert!(!at("new/ledger").exists());
    let refused = store(&["restore", text(&at("backup")), text(&at("third")), "--ledger", &url]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{told}");
    assert!(told.contains("choose an empty place"), "{told}");
    let again = store(&["restore", text(&at("backup")), text(&at("third"))]);
    assert!(again.status.success(), "the same command goes on: {}", String::from_utf8_lossy(&again.stderr));
    assert!(at("third/ledger/default/default/manifests").is_dir());
}
