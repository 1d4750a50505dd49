//! What every verb shares: formats, times, colours, lists in pages, flags at any place, and failures that programs read.

use std::process::{Command, Output};

use crate::process::{Process, segno};
use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Input of the sample `greet`.
const ADA: &str = r#"{"name":"Ada"}"#;

/// The same for an instance that waits for a signal.
const WAITS: &str = r#"{"name":"Ada","wait":true}"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command prints on stderr, and its exit code.
fn refused(output: &Output) -> (Value, i32) {
    assert_eq!(text(&output.stdout), "", "nothing but data is on stdout");
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "one object: {line}");
    (serde_json::from_str(&line).unwrap(), output.status.code().unwrap())
}

#[test]
fn every_list_has_one_shape() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", ADA, "--wait"]);
    server.said(&["hook", "create", "demo", "--function", "echo", "--verify", "none"]);
    server.said(&["hook", "test", "demo"]);
    server.said(&["action", "add", "later", "--function", "echo", "--at", "1h"]);
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
    let example = |name: &str| examples.join(name).display().to_string();
    server.said(&["runbook", "publish", &example("guests.yaml")]);
    server.said(&["batch", "create", "--runbook", "guests", "--members", &example("guests.csv")]);
    while server.items(&["batch", "members", "1"]).len() < 2 {}
    let recurring = server.json(&["recurring", "create", "--every", "1h", "--function", "echo"]);
    let id = recurring["recurring_id"].as_str().unwrap();
    server.said(&["recurring", "pause", id]);
    for (verb, some) in [
        (&["list"][..], true),
        (&["history", "ada"], true),
        (&["functions", "list"], true),
        (&["nodes"], true),
        (&["settings"], true),
        (&["workers"], false),
        (&["pool", "list"], true),
        (&["runbook", "list"], true),
        (&["batch", "list"], true),
        (&["batch", "members", "1"], true),
        (&["logs", "ada"], false),
        (&["hook", "list"], true),
        (&["hook", "payloads", "demo"], true),
        (&["hook", "events", "demo"], true),
        (&["hook", "events"], true),
        (&["action", "list"], true),
        (&["recurring", "list"], true),
        (&["recurring", "history", id], false),
        (&["config", "print"], true),
        (&["recurring", "preview", "--every", "1h"], true),
    ] {
        let run = |format: &str| {
            // Two of them talk to no server.
            let is_local = matches!(verb, ["config", ..] | ["recurring", "preview", ..]);
            let mut command = segno();
            command.args(verb).args(["-o", format]);
            let output = if is_local {
                command.output().unwrap()
            } else {
                server.run(&[verb, &["-o", format]].concat())
            };
            assert!(output.status.success(), "{verb:?}: {}", text(&output.stderr));
            assert_eq!(text(&output.stderr), "", "{verb:?}");
            text(&output.stdout)
        };
        let list: Value = serde_json::from_str(&run("json")).unwrap();
        let names: Vec<&String> = list.as_object().unwrap().keys().collect();
        assert_eq!(names, ["items", "next_cursor"], "{verb:?}");
        assert_eq!(list["next_cursor"], Value::Null, "{verb:?}");
        let items = list["items"].as_array().unwrap();
        assert_eq!(!items.is_empty(), some, "{verb:?}");
        let lines: Vec<Value> =
            run("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), items.len(), "{verb:?}");
        let yaml = run("yaml");
        assert!(yaml.starts_with("items:"), "{verb:?}: {yaml}");
    }
}

#[test]
fn keys_of_a_server_are_a_list_like_others() {
    let directory = TempDir::new().unwrap();
    let store = format!("segno:{}", directory.path().display());
    for name in ["one", "two", "three"] {
        let made =
            segno().args(["keys", "create", "--name", name, "--role", "viewer", "--store", &store]).output();
        assert!(made.unwrap().status.success());
    }
    let list =
        segno().args(["keys", "list", "--limit", "2", "--store", &store, "-o", "json"]).output().unwrap();
    let page: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let cursor = page["next_cursor"].as_str().unwrap();
    let more: Value = serde_json::from_slice(&list.stderr).unwrap();
    assert_eq!(more["next_cursor"], cursor);
    let rest = segno()
        .args(["keys", "list", "--cursor", cursor, "--store", &store, "-o", "jsonl"])
        .output()
        .unwrap();
    assert_eq!(text(&rest.stdout).lines().count(), 1);
    assert_eq!(text(&rest.stderr), "");
}

#[test]
fn one_thing_is_an_object_or_a_document() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let input = r#"{"name":"no","wait":false}"#;
    server.said(&["start", "greet", "--id", "ada", "--input", input, "--wait"]);
    let shown = server.json(&["show", "ada"]);
    assert_eq!(shown["instance"]["id"], "ada");
    let created = shown["instance"]["created_at"].as_str().unwrap();
    assert!(created.ends_with('Z'), "JSON has times in UTC: {created}");
    assert_eq!(server.said(&["show", "ada", "-o", "jsonl"]).lines().count(), 1);
    let yaml = server.said(&["wait", "ada", "-o", "yaml"]);
    let lines: Vec<&str> =
        yaml.lines().filter(|line| !line.contains("_at:") && !line.contains("revision")).collect();
    expect![[r#"
        namespace: default
        tenant: default
        id: ada
        orchestration: greet
        version: "1.0.0"
        status: completed
        execution: 1
        result: Hello, no!
        custom_status_version: 0"#]]
    .assert_eq(&lines.join("\n"));
    let tailed = server.said(&["tail", "ada", "-o", "yaml"]);
    assert_eq!(tailed.matches("---\n").count(), server.items(&["history", "ada"]).len());
    let tailed = server.said(&["tail", "ada", "-o", "json"]);
    assert!(tailed.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{tailed}");
}

#[test]
fn a_failure_is_one_object_for_programs() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    for format in ["json", "jsonl", "yaml"] {
        let (report, code) = refused(&server.run(&["show", "nobody", "-o", format]));
        assert_eq!((&report["code"], code), (&json!("not-found"), 6));
        assert_eq!(
            (&report["exit_code"], &report["message"]),
            (&json!(6), &json!("there is no instance nobody"))
        );
        assert_eq!(report["page"], "https://segno.dev/errors/not-found");
        assert!(report["request_id"].is_string(), "{report}");
        let (report, code) =
            refused(&segno().args(["list", "--limit", "none", "-o", format]).output().unwrap());
        assert_eq!((&report["code"], code), (&json!("invalid-arguments"), 2));
        assert!(
            report["message"].as_str().unwrap().starts_with("invalid value 'none' for '--limit <NUMBER>'"),
            "{report}"
        );
    }
    let (report, code) = refused(&server.run(&["invoke", "echo", "--input", "[1", "-o", "json"]));
    assert_eq!((&report["code"], code), (&json!("invalid-arguments"), 2));
    let away = segno().args(["list", "--server", "http://127.0.0.1:1", "-o", "json"]).output().unwrap();
    let (report, code) = refused(&away);
    assert_eq!((&report["code"], code), (&json!("unreachable"), 1));
    server.said(&["start", "greet", "--id", "ada", "--input", WAITS]);
    let (report, code) = refused(&server.run(&["wait", "ada", "--timeout", "10ms", "-o", "json"]));
    assert_eq!((&report["code"], code), (&json!("wait-timed-out"), 124));
    assert_eq!(report["message"], "ada has not ended within 10ms; its status is running");
}

#[test]
fn help_and_versions_are_for_people_whatever_the_format() {
    for arguments in
        [&["--help", "-o", "json"][..], &["--version", "-o", "json"], &["list", "--help", "-o", "yaml"]]
    {
        let output = segno().args(arguments).output().unwrap();
        assert!(
            output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn times_are_local_unless_utc_is_asked_for() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let berlin = |arguments: &[&str], utc: Option<&str>| {
        let mut command = segno();
        command.args(arguments).args(["--server", &server.address]).env("TZ", "Europe/Berlin");
        if let Some(utc) = utc {
            command.env("SEGNO_UTC", utc);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let add = ["action", "add", "later", "--function", "echo", "--at"];
    for (at, utc, due) in [
        ("2100-01-01T00:00:00Z", None, "2100-01-01 01:00:00 +01:00"),
        ("2100-07-01T00:00:00Z", None, "2100-07-01 02:00:00 +02:00"),
        ("2100-07-01T00:00:00Z", Some("1"), "2100-07-01 00:00:00 +00:00"),
        ("2100-07-01T00:00:00Z", Some("0"), "2100-07-01 02:00:00 +02:00"),
        ("2100-01-01 09:30", None, "2100-01-01 09:30:00 +01:00"),
        ("2100-01-01", None, "2100-01-01 00:00:00 +01:00"),
        ("2100-01-01 09:30", Some("true"), "2100-01-01 09:30:00 +00:00"),
    ] {
        let added = berlin(&[&add[..], &[at]].concat(), utc);
        assert!(added.contains(&format!("due       {due}\n")), "{at}: {added}");
    }
    let added = berlin(&[&["--utc"], &add[..], &["2100-01-01 09:30"]].concat(), None);
    assert!(added.contains("2100-01-01 09:30:00 +00:00"), "{added}");
    let listed = berlin(&["action", "list"], None);
    assert!(listed.contains("2100-01-01 01:00:00 +01:00"), "{listed}");
    let json = berlin(&["action", "list", "-o", "json"], None);
    assert!(json.contains("\"2100-01-01T00:00:00Z\"") && !json.contains("+01:00"), "{json}");
}

#[test]
fn times_are_relative_where_flags_look_back_or_ahead() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", ADA, "--wait"]);
    let found = |flags: &[&str]| server.items(&[&["list"], flags].concat()).len();
    assert_eq!(found(&["--created-from", "1h"]), 1);
    assert_eq!(found(&["--since", "now-2d"]), 1);
    assert_eq!(found(&["--created-from", "now+1h"]), 0);
    assert_eq!(found(&["--created-before", "1h"]), 0);
    assert_eq!(found(&["--created-before", "now+1h"]), 1);
    let refused = server.run(&["list", "--created-from", "yesterday"]);
    let message = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && message.contains("\"2d\" for two days ago"), "{message}");
    let started = server.said(&["start", "greet", "--id", "late", "--at", "2100-01-01T00:00:00Z"]);
    assert_eq!(started, "  late  starts at 2100-01-01 00:00:00 +00:00\n");
    let waited = server.run(&["wait", "late", "--timeout", "1"]);
    assert!(text(&waited.stderr).contains("late has not ended within 1s; its status is pending"));
    let refused = server.run(&["invoke", "echo", "--deadline", "10"]);
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("--deadline"), "{refused:?}");
}

#[test]
fn global_flags_are_taken_at_any_place() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let address = server.address.as_str();
    for arguments in [
        &["-o", "json", "--server", address, "functions", "list"][..],
        &["--server", address, "functions", "-o", "json", "list"],
        &["functions", "--server", address, "list", "-o", "json"],
        &["functions", "list", "--server", address, "-ojson"],
        &["--server", address, "list", "--output=json"],
        &["recurring", "--server", address, "list", "--utc", "-o", "json"],
        &["--server", "http://127.0.0.1:1", "action", "list", "--server", address, "-o", "json"],
    ] {
        let output = segno().args(arguments).env("SEGNO_SERVER", "http://127.0.0.1:2").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        assert!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["items"].is_array());
    }
    for arguments in [
        &["--server", address, "version"][..],
        &["store", "info", "segno:/nowhere", "--key", "x"],
        &["bench", "floor", "--store", "memory:", "--tenant", "x"],
    ] {
        let output = segno().args(arguments).output().unwrap();
        let message = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && message.contains("talks to no server; leave --"),
            "{message}"
        );
    }
    let help = text(&segno().args(["store", "info", "--help"]).output().unwrap().stdout);
    assert!(!help.contains("--server") && help.contains("--output"), "{help}");
}

#[test]
fn a_list_with_more_tells_the_command_that_goes_on() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    for id in ["a", "b", "c"] {
        server.said(&["start", "greet", "--id", id, "--input", ADA, "--label", "team=it's", "--wait"]);
    }
    let mut command = String::new();
    let mut seen = String::new();
    for round in 0..3 {
        let output = match round {
            0 => server.run(&["list", "--limit", "1", "--label", "team=it's"]),
            _ => {
                let program = env!("CARGO_BIN_EXE_segno");
                let line = command.replacen("segno", program, 1);
                Command::new("sh")
                    .args(["-c", &line])
                    .env("XDG_CONFIG_HOME", "/nonexistent")
                    .output()
                    .unwrap()
            }
        };
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        seen.push_str(text(&output.stdout).lines().nth(1).unwrap().split(' ').next().unwrap());
        command = text(&output.stderr).trim_end().strip_prefix("more: ").unwrap_or_default().to_owned();
    }
    assert_eq!((seen.as_str(), command.as_str()), ("cba", ""), "newest first, and no more at the end");
    let refused = server.run(&["list", "--cursor", "nonsense"]);
    let message = text(&refused.stderr);
    assert!(message.contains("--cursor: is not one that this server gave"), "{message}");
}

#[test]
fn colours_are_used_when_they_are_asked_for() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", ADA, "--wait"]);
    let red_and_green = server.said(&["list", "--color", "always"]);
    assert!(red_and_green.contains("\x1b[32mcompleted\x1b[0m"), "{red_and_green:?}");
    for arguments in [&["list"][..], &["list", "--color", "never"], &["list", "--color", "auto"]] {
        assert!(!server.said(arguments).contains('\x1b'), "{arguments:?} into a pipe");
    }
    assert!(!server.said(&["list", "--color", "always", "-o", "json"]).contains('\x1b'));
}

#[test]
fn the_version_has_its_formats() {
    let output =
        segno().args(["version", "-o", "json"]).env("SEGNO_SERVER", "http://nowhere").output().unwrap();
    let version: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    for format in ["embedded", "postgres", "backup"] {
        assert!(version["formats"][format].as_u64().unwrap() > 0, "{version}");
    }
    assert!(version["features"].is_array());
    let shown = text(&segno().arg("version").output().unwrap().stdout);
    assert!(shown.contains("embedded store"), "{shown}");
}

#[test]
fn the_server_speaks_in_flags_and_verbs() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", WAITS]);
    server.said(&["hook", "create", "demo", "--function", "echo", "--verify", "none"]);
    let mut page = String::new();
    for arguments in [
        &["start", "greet", "--id", "ada"][..],
        &["start", "invoke"],
        &["start", "nothing"],
        &["delete", "ada"],
        &["restart", "ada"],
        &["action", "add", "--function", "nosuch"],
        &["recurring", "create", "--every", "1h", "--function", "nosuch"],
        &["recurring", "create", "--every", "1h", "--provider", "nosuch"],
        &[
            "recurring",
            "create",
            "--every",
            "1h",
            "--provider",
            "nosuch",
            "--action-type",
            "x",
            "--payload",
            "{}",
        ],
        &["recurring", "create", "--cron", "x", "--function", "echo"],
        &["invoke", "nosuch"],
        &["functions", "show", "nosuch"],
        &["functions", "delete", "nosuch"],
        &["functions", "delete", "echo"],
        &["hook", "create", "demo", "--function", "echo", "--verify", "none"],
        &["hook", "create", "other", "--function", "echo", "--verify", "github"],
        &["hook", "create", "other", "--function", "nosuch", "--verify", "none"],
        &["hook", "show", "nosuch"],
        &["keys", "create", "--name", "x", "--role", "viewer", "--expires-at", "now-1h"],
        &["keys", "list"],
        &["bulk", "cancel", "--dry-run"],
        &["list", "--label", "x"],
        &["list", "--cursor", "x"],
        &["signal", "nobody", "wave"],
    ] {
        let output = server.run(arguments);
        let message = text(&output.stderr).replace(&server.address, "http://SERVER");
        page.push_str(&format!(
            "$ segno {}\n{message}= {}\n\n",
            arguments.join(" "),
            output.status.code().unwrap()
        ));
    }
    expect_test::expect_file!["snapshots/wording.txt"].assert_eq(&page);
}
