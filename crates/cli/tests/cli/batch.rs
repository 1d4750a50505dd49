//! `segno batch watch` and `segno batch report`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::process::{Process, segno};

fn example(name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
    examples.join(name).display().to_string()
}

/// A batch of guests, with other arguments of `create`.
fn create(server: &Process, arguments: &[&str]) {
    server.said(&["runbook", "publish", &example("guests.yaml")]);
    let members = example("guests.csv");
    server.said(&[&["batch", "create", "--runbook", "guests", "--members", &members], arguments].concat());
}

#[test]
fn watch_ends_with_the_batch_and_its_exit_code_is_the_outcome() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    create(&server, &["--start", "now"]);
    let watched = server.run(&["batch", "watch", "1"]);
    let (out, err) = (String::from_utf8_lossy(&watched.stdout), String::from_utf8_lossy(&watched.stderr));
    assert_eq!(watched.status.code(), Some(0), "{out}{err}");
    assert!(err.contains("batch 1 completed: 6 of 6 steps have ended (100%)"), "{err}");
    // What has ended is told at once.
    assert_eq!(server.run(&["batch", "watch", "1"]).status.code(), Some(0));
    create(&server, &[]);
    server.said(&["batch", "cancel", "2", "--reason", "rain"]);
    let cancelled = server.run(&["batch", "watch", "2"]);
    let err = String::from_utf8_lossy(&cancelled.stderr).into_owned();
    assert_eq!(cancelled.status.code(), Some(8), "{err}");
    assert!(err.contains("batch 2 is cancelled: rain"), "{err}");
    assert_eq!(server.run(&["batch", "watch", "9"]).status.code(), Some(6));
}

#[test]
fn watch_follows_a_batch_through_a_restart_of_the_server() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    create(&server, &[]);
    while server.items(&["batch", "members", "1"]).len() < 2 {}
    let mut command = segno();
    command.args(["batch", "watch", "1", "--server", &server.address]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // It follows once it shows a change.
    let mut seen = String::new();
    for verb in ["pause", "resume"].iter().cycle() {
        server.said(&["batch", verb, "1"]);
        seen = lines.next().unwrap().unwrap();
        if !seen.is_empty() {
            break;
        }
    }
    assert!(seen.contains("paused") || seen.contains("detected"), "{seen}");
    server.kill();
    let listen = server.address.strip_prefix("http://").unwrap();
    let data = directory.path().to_str().unwrap();
    let server = Process::start(&["dev", "--listen", listen, "--data", data]);
    server.run(&["batch", "resume", "1"]);
    server.said(&["batch", "skip-phase", "1", "invite"]);
    server.said(&["batch", "skip-phase", "1", "seat"]);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let ended = watch.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{rest:?} {err}");
    assert!(err.contains("batch 1 completed"), "{err}");
}

#[test]
fn a_report_is_csv_on_stdout() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    create(&server, &["--start", "now"]);
    assert_eq!(server.run(&["batch", "watch", "1"]).status.code(), Some(0));
    let report = server.said(&["batch", "report", "1"]);
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 1 + 6, "{report}");
    assert!(lines[0].starts_with("member_key,member_id,member_status,phase,step,"), "{report}");
    assert!(lines[1].starts_with("Ada,1,active,invite,greet,1,succeeded,1,0,"), "{report}");
    let refused = server.run(&["batch", "report", "1", "-o", "json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(server.run(&["batch", "report", "9"]).status.code(), Some(6));
}
