//! Failures that the command line finds by itself: at every door the same code, the same exit code, and a page.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::process::{Process, segno};
use serde_json::Value;
use tempfile::TempDir;

/// The failure of a command with `-o json`: its code, its message and its exit code. The code has a page.
#[track_caller]
fn failure(output: &Output) -> (String, String, i32) {
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    let report: Value = serde_json::from_str(line.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("stderr has no object: {error}: {line:?}"));
    let code = report["code"].as_str().unwrap().to_owned();
    assert_eq!(report["page"], format!("https://segno.dev/errors/{code}"), "{report}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/errors/{code}.md"));
    assert!(page.exists(), "docs/errors/{code}.md is missing");
    assert_eq!(report["exit_code"], output.status.code().unwrap(), "{report}");
    (code, report["message"].as_str().unwrap().to_owned(), output.status.code().unwrap())
}

/// Runs a command with `-o json`, against a server if it talks to one.
fn run(server: &Process, arguments: &[&str]) -> Output {
    let is_local = matches!(
        arguments,
        ["serve" | "config" | "store", ..] | ["recurring", "preview", ..] | ["runbook", "check" | "plan", ..]
    );
    let mut command = segno();
    command.args(arguments).args(["-o", "json"]);
    if !is_local && !arguments.contains(&"--server") {
        command.args(["--server", &server.address]);
    }
    command.output().unwrap()
}

/// Every flag and argument that takes a file to read; `FILE` is its path.
const DOORS: &[&[&str]] = &[
    &["start", "greet", "--input", "@FILE"],
    &["invoke", "echo", "--input", "@FILE"],
    &["signal", "ada", "wave", "--data", "@FILE"],
    &["enqueue", "ada", "orders", "--data", "@FILE"],
    &["functions", "put", "count", "@FILE"],
    &["action", "add", "--function", "echo", "--input", "@FILE"],
    &["recurring", "create", "--every", "1h", "--function", "echo", "--input", "@FILE"],
    &[
        "recurring",
        "create",
        "--every",
        "1h",
        "--provider",
        "echo",
        "--action-type",
        "x",
        "--payload",
        "@FILE",
    ],
    &["recurring", "update", "x", "--input", "@FILE"],
    &["hook", "create", "demo", "--verify", "none", "--function", "echo", "--input", "@FILE"],
    &["hook", "create", "demo", "--declaration", "@FILE"],
    &["hook", "update", "demo", "--input", "@FILE"],
    &["hook", "update", "demo", "--declaration", "@FILE"],
    &["hook", "test", "demo", "--data", "@FILE"],
    &["hook", "test", "signed", "--secret", "file:FILE"],
    &["serve", "--config", "FILE"],
    &["config", "check", "--config", "FILE"],
    &["config", "print", "--config", "FILE"],
    &["runbook", "check", "FILE"],
    &["runbook", "check", "RUNBOOK", "--data", "FILE"],
    &["runbook", "plan", "FILE", "--data", "MEMBERS"],
    &["runbook", "plan", "RUNBOOK", "--data", "FILE"],
    &["runbook", "publish", "FILE"],
    &["batch", "create", "--runbook", "wave", "--members", "FILE"],
    &["store", "verify", "FILE"],
    &["store", "restore", "FILE", "segno:NEW"],
];

#[test]
fn a_file_that_does_not_exist_is_not_found_at_every_door() {
    let directory = TempDir::new().unwrap();
    let mut start = segno();
    start.env("HOOK_SECRET", "secret").env("SEGNO_STORED_FUNCTIONS__SECRET_VARIABLES", "HOOK_");
    let server = Process::dev_by(start, &directory.path().join("store"));
    server.said(&["hook", "create", "demo", "--function", "echo", "--verify", "none"]);
    let signed = ["--verify", "github", "--secret", "env:HOOK_SECRET"];
    server.said(&[&["hook", "create", "signed", "--function", "echo"][..], &signed].concat());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
    let place = |file: &str| {
        let new = directory.path().join("new").display().to_string();
        let named = [
            ("RUNBOOK", examples.join("wave-mailbox-move.yaml").display().to_string()),
            ("MEMBERS", examples.join("members.csv").display().to_string()),
            ("NEW", new),
        ];
        let file = file.to_owned();
        move |argument: &str| {
            let argument = argument.replace("FILE", &file);
            named.iter().fold(argument, |argument, (name, path)| argument.replace(name, path))
        }
    };
    let missing = directory.path().join("nowhere.txt").display().to_string();
    let unreadable = directory.path().display().to_string();
    for (file, code, exit_code) in [(&missing, "not-found", 6), (&unreadable, "file-failed", 1)] {
        for door in DOORS {
            // A directory is a place of a secret, and a backup, that has other problems.
            let is_other = matches!(door, ["hook", .., "file:FILE"] | ["store", ..]);
            if is_other && code == "file-failed" {
                continue;
            }
            let arguments: Vec<String> = door.iter().map(|argument| place(file)(argument)).collect();
            let output = run(&server, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let (found, message, exit) = failure(&output);
            assert_eq!((found.as_str(), exit), (code, exit_code), "{door:?}: {message}");
            assert!(message.contains(file.as_str()), "{door:?}: {message}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{door:?}");
        }
    }
}

#[test]
fn what_a_server_refuses_about_runbooks_and_batches_has_its_code() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(&directory.path().join("store"));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
    let example = |name: &str| examples.join(name).display().to_string();
    let file = |name: &str, text: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let guests = example("guests.yaml");
    let published = server.said(&["runbook", "publish", &guests, "--rerun-init", "--ignore-overdue"]);
    assert!(published.contains("skipped") && published.contains("runs again"), "{published}");
    let text = std::fs::read_to_string(&guests).unwrap();
    assert_eq!(server.said(&["runbook", "show", "guests", "--yaml"]).trim(), text.trim());
    let create = ["batch", "create", "--runbook", "guests", "--members"];
    server.said(&[&create[..], &[&example("guests.csv"), "--start", "now+5d"]].concat());
    let wrong = file("wrong.yaml", text.replace("T-1d", "T+1d").replace("echo", "a b").as_bytes());
    let strange = file("strange.csv", b"Guest\n\xff\n");
    let others = example("members.csv");
    let with_members = |members| [&create[..], &[members]].concat();
    for (arguments, code, exit_code, words) in [
        (vec!["runbook", "publish", &wrong], "invalid-runbook", 2, "phases[0].offset"),
        (vec!["runbook", "publish", &wrong], "invalid-runbook", 2, "phases[1].steps[0]"),
        (vec!["runbook", "publish", &strange], "invalid-runbook", 2, "not UTF-8 at byte 6"),
        (vec!["runbook", "show", "nothing"], "unknown-runbook", 6, "nothing"),
        (vec!["runbook", "show", "guests", "--version", "9"], "unknown-runbook", 6, "version 9"),
        (with_members(&strange), "invalid-members", 2, "not UTF-8 at byte 6"),
        (with_members(&others), "invalid-members", 2, "Guest"),
        (vec!["batch", "show", "9"], "unknown-batch", 6, "9"),
        (vec!["batch", "advance", "1"], "batch-request-refused", 5, "follows its start time"),
        (vec!["batch", "approve", "1", "cellar"], "not-found", 6, "its phases are invite, seat"),
        (
            vec!["batch", "explain", "1", "stair-1"],
            "not-found",
            6,
            "\"stair-1\"; its phases are invite, seat",
        ),
        (vec!["batch", "explain", "1", "step-77"], "not-found", 6, "step 77"),
        (vec!["member", "show", "1", "77"], "not-found", 6, "77"),
        (vec!["member", "retry", "1", "Nobody"], "not-found", 6, "no member with the key \"Nobody\""),
        (vec!["batch", "members", "1", "--member", "77"], "not-found", 6, "no member with the key \"77\""),
    ] {
        let (found, message, exit) = failure(&run(&server, &arguments));
        assert_eq!((found.as_str(), exit), (code, exit_code), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    for by_key in [["member", "show", "1", "ADA"].as_slice(), &["batch", "members", "1", "--member", "ada"]] {
        let shown = server.said(by_key);
        assert!(shown.contains("Ada") && !shown.contains("Grace"), "{by_key:?}: {shown}");
    }
    let explained = server.said(&["batch", "explain", "1", "Seat"]);
    assert!(explained.contains("phase \"invite\" has not ended"), "{explained}");
    let skipped = server.said(&["batch", "skip-phase", "1", "invite"]);
    assert!(skipped.contains("applied"), "{skipped}");
    let shown = server.said(&["batch", "show", "1"]);
    assert!(shown.contains("skipped"), "{shown}");
    server.said(&["batch", "pause", "1", "--reason", "lunch"]);
    let listed = server.said(&["batch", "list", "--runbook", "guests"]);
    assert!(listed.contains("paused"), "{listed}");
    server.said(&["batch", "resume", "1"]);
    server.said(&["batch", "cancel", "1"]);
    assert!(server.said(&["batch", "show", "1"]).contains("cancelled"));
}

#[test]
fn what_is_found_without_a_server_has_its_code() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(&directory.path().join("store"));
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
    let runbook = examples.join("wave-mailbox-move.yaml").display().to_string();
    let (wrong, members) = (file("wrong.yaml", "name: x\n"), file("wrong.csv", "Id\n1\n"));
    let large = file("large.yaml", &"#".repeat(2 * 1024 * 1024));
    let label = ["recurring", "create", "--every", "1h", "--function", "echo", "--label", "x"];
    let metadata = ["recurring", "create", "--every", "1h", "--provider", "echo", "--metadata", "x"];
    for (arguments, code, exit_code, told) in [
        (&["recurring", "preview", "--cron", "0 25 * * *"][..], "invalid-schedule", 2, "--cron: "),
        (&["recurring", "preview", "--every", "1h", "--tz", "Berln"], "invalid-schedule", 2, "--tz: "),
        (
            &["recurring", "create", "--at", "2100-01-01 09:00", "--tz", "Berln", "--function", "echo"],
            "invalid-schedule",
            2,
            "--tz: ",
        ),
        (&["runbook", "check", &wrong], "invalid-runbook", 2, "wrong.yaml has 2 errors"),
        (&["runbook", "plan", &wrong, "--data", &members], "invalid-runbook", 2, "wrong.yaml has 2 errors"),
        (&["runbook", "check", &large], "invalid-runbook", 2, "large.yaml has 1 error"),
        (&["runbook", "check", &runbook, "--data", &members], "invalid-members", 2, "wrong.csv has 5 errors"),
        (&["runbook", "plan", &runbook, "--data", &members], "invalid-members", 2, "wrong.csv has 5 errors"),
        (&["list", "--server", "notaurl"], "invalid-arguments", 2, "correct --server, SEGNO_SERVER"),
        (&["list", "--server", "ftp://x"], "invalid-arguments", 2, "correct --server, SEGNO_SERVER"),
        (&["list", "--key", "a\nb"], "invalid-arguments", 2, "correct --key, SEGNO_KEY"),
        (&["list", "--profile", "nosuch"], "invalid-arguments", 2, "no profile"),
        (&label, "invalid-arguments", 2, "--label x: write KEY=VALUE"),
        (&metadata, "invalid-arguments", 2, "--metadata x: write KEY=VALUE"),
        (&["bulk", "cancel", "--prefix", "x"], "invalid-arguments", 2, "0 instances match; pass --yes"),
        (&["store", "info", "segno:/nonexistent"], "not-found", 6, "/nonexistent"),
    ] {
        let (found, message, exit) = failure(&run(&server, arguments));
        assert_eq!((found.as_str(), exit), (code, exit_code), "{arguments:?}: {message}");
        assert!(message.contains(told) && !message.contains('['), "{arguments:?}: {message}");
    }
    let shown = segno().args(["recurring", "preview", "--cron", "x"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&shown.stderr).ends_with(" [invalid-schedule]\n"),
        "people see the code too"
    );
    let checked = segno().args(["runbook", "check", &large]).output().unwrap();
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("the runbook has more than the limit of 1 MiB"), "{checked}");
}

#[test]
fn an_answer_that_is_not_of_a_server_is_told_from_silence() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let page = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<p>No";
            std::io::Write::write_all(&mut stream, page.as_bytes()).unwrap();
        }
    });
    let output = segno().args(["show", "ada", "--server", &address, "-o", "json"]).output().unwrap();
    let (code, message, exit_code) = failure(&output);
    assert_eq!((code.as_str(), exit_code), ("unreadable-answer", 1), "{message}");
}

#[test]
fn what_the_environment_sets_is_not_shown_as_something_to_type() {
    for arguments in [&["start"][..], &["history"], &["keys", "revoke"], &["start", "a", "--nonsense"]] {
        let output = segno()
            .args(arguments)
            .envs([("SEGNO_SERVER", "http://x"), ("SEGNO_KEY", "secret"), ("SEGNO_PROFILE", "p")])
            .envs([("SEGNO_NAMESPACE", "n"), ("SEGNO_TENANT", "t"), ("SEGNO_UTC", "1")])
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let usage = message.lines().find(|line| line.starts_with("Usage:")).unwrap();
        for flag in ["--server", "--key", "--profile", "--namespace", "--tenant", "--utc"] {
            assert!(!usage.contains(flag), "{arguments:?}: {usage}");
        }
        assert_eq!(output.status.code(), Some(2));
    }
    for verbs in [&[][..], &["bulk"], &["hook"]] {
        let output = segno().args(verbs).env("SEGNO_SERVER", "http://x").output().unwrap();
        let help = String::from_utf8(output.stderr).unwrap();
        assert!(help.contains("\nCommands:\n") && output.status.code() == Some(2), "{verbs:?}: {help}");
    }
}

#[test]
fn a_time_zone_that_is_none_is_told_and_local_times_are_refused() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", r#"{"name":"Ada"}"#, "--wait"]);
    let run = |arguments: &[&str]| {
        let mut command = segno();
        command.args(arguments).args(["--server", &server.address]).env("TZ", "Europe/Berln");
        command.output().unwrap()
    };
    let listed = run(&["list"]);
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains(" +00:00"));
    let warning = "warning: TZ is \"Europe/Berln\", which is no time zone, so times are shown in UTC\n";
    assert_eq!(String::from_utf8_lossy(&listed.stderr), warning, "once");
    for arguments in [
        &["list", "--utc"][..],
        &["list", "-o", "json"],
        &["wait", "ada"],
        &["list", "--since", "1h", "--utc"],
    ] {
        let quiet = run(arguments);
        assert_eq!(String::from_utf8_lossy(&quiet.stderr), "", "{arguments:?}");
    }
    let local = "2100-01-01 09:00";
    for arguments in [
        &["list", "--since", local][..],
        &["action", "add", "--function", "echo", "--at", local],
        &["start", "greet", "--at", local],
        &["audit", "--since", local],
        &["bulk", "cancel", "--created-before", local],
        &["hook", "payloads", "x", "--since", local],
        &["recurring", "pause", "x", "--until", local],
        &["recurring", "explain", "x", "--time", local],
        &["keys", "create", "--name", "x", "--role", "viewer", "--expires-at", local],
    ] {
        let refused = run(arguments);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("TZ is \"Europe/Berln\"") && message.contains("pass --utc"), "{message}");
    }
    // Schedules have their own zone.
    let created = run(&["recurring", "create", "--at", local, "--tz", "Europe/Berlin", "--function", "echo"]);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
}

#[test]
fn a_key_that_is_revoked_ends_what_follows_with_it() {
    let directory = TempDir::new().unwrap();
    let store = format!("segno:{}", directory.path().display());
    let made = segno()
        .args(["keys", "create", "--name", "boss", "--role", "admin", "--store", &store, "-o", "json"])
        .output()
        .unwrap();
    let boss: Value = serde_json::from_slice(&made.stdout).unwrap();
    let boss = boss["secret"].as_str().unwrap();
    let server = Process::start(&["serve", "--store", &store, "--listen", "127.0.0.1:0"]);
    let admin = |arguments: &[&str]| server.json(&[arguments, &["--key", boss]].concat());
    admin(&["functions", "put", "count", r#"{"executor":"remote"}"#]);
    let called = admin(&["invoke", "count", "--no-wait"]);
    let id = called["id"].as_str().unwrap();
    for (format, expected) in [("table", " [unauthorized]\n"), ("json", r#""code":"unauthorized""#)] {
        let viewer = admin(&["keys", "create", "--name", "eyes", "--role", "viewer"]);
        let listed = admin(&["keys", "list"]);
        let row = listed["items"].as_array().unwrap().iter().find(|row| row["id"] == viewer["id"]).unwrap();
        for (name, value) in row.as_object().unwrap().iter().filter(|(name, _)| *name != "last_used_at") {
            assert_eq!(&viewer[name], value, "a new key has the fields of the list");
        }
        let secret = viewer["secret"].as_str().unwrap();
        let mut tail = segno();
        tail.args(["tail", id, "--server", &server.address, "--key", secret, "-o", format]);
        let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Its first line: from then on it follows.
        let mut shown = BufReader::new(tail.stdout.take().unwrap());
        shown.read_line(&mut String::new()).unwrap();
        server.said(&["keys", "revoke", viewer["id"].as_str().unwrap(), "--key", boss]);
        let ended = tail.wait_with_output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(7), "{message}");
        assert!(message.contains(expected) && message.contains("pass another key"), "{message}");
    }
}
