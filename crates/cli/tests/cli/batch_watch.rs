//! `segno batch watch` and `segno batch report`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

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
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let (sender, shown) = std::sync::mpsc::channel();
    let reader =
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    // It follows once it shows a change.
    let mut verbs = ["pause", "resume"].iter().cycle();
    let seen = loop {
        server.said(&["batch", verbs.next().unwrap(), "1"]);
        if let Ok(line) = shown.recv_timeout(Duration::from_millis(100)) {
            break line;
        }
    };
    assert!(["paused", "active"].iter().any(|state| seen.contains(state)), "{seen}");
    server.kill();
    let listen = server.address.strip_prefix("http://").unwrap();
    let data = directory.path().to_str().unwrap();
    let server = Process::start(&["dev", "--listen", listen, "--data", data]);
    server.run(&["batch", "resume", "1"]);
    for phase in 0..2 {
        server.said(&["batch", "advance", "1"]);
        while server.json(&["batch", "show", "1"])["phases"][phase]["status"] != "completed" {}
    }
    let ended = watch.wait_with_output().unwrap();
    reader.join().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{err}");
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
    // The batch is deleted with its report, but not before its end.
    create(&server, &[]);
    let refused = server.run(&["batch", "delete", "2"]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("segno batch cancel 2"));
    assert!(server.said(&["batch", "delete", "1"]).contains("deleted"));
    assert_eq!(server.run(&["batch", "report", "1"]).status.code(), Some(6));
}
