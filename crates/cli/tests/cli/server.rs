//! `segno dev`, `segno serve` and the verbs that talk to them, as processes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::process::{Process, segno};
use serde_json::Value;
use tempfile::TempDir;

const WAITS: &str = r#"{"name":"Ada","wait":true}"#;

#[test]
fn this_machine_is_measured() {
    let directory = TempDir::new().unwrap();
    let url = format!("segno:{}", directory.path().display());
    let bench = |arguments: &[&str], store: &str| {
        let mut command = segno();
        command.arg("bench").args(arguments).args(["--store", store, "--seconds", "1", "--output", "json"]);
        command.output().unwrap()
    };
    for (arguments, rate) in [(&["floor"][..], "turns_per_s"), (&["run", "hello"], "runs_per_s")] {
        let output = bench(arguments, &url);
        let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(measured[rate].as_f64().unwrap() > 0.0, "{measured}");
    }
    let refused = bench(&["floor"], "memory:");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the floor is that of a disk"));
}

#[test]
fn a_first_time_user_starts_watches_and_ends_a_workflow() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    assert_eq!(
        server.said(&["start", "greet", "--input", r#"{"name":"Ada"}"#, "--wait"]),
        "\"Hello, Ada!\"\n"
    );
    server.said(&["start", "greet", "--id", "ada", "--input", WAITS, "--label", "team=eu"]);
    let found = server.items(&["list", "--label", "team=eu"]);
    assert_eq!(found[0]["id"], "ada");
    let waited = server.run(&["wait", "ada", "--timeout", "0"]);
    assert_eq!(waited.status.code(), Some(124));
    server.said(&["signal", "ada", "wave"]);
    assert_eq!(server.said(&["wait", "ada"]), "\"Hello, Ada! Goodbye, Ada.\"\n");
    let shown = server.said(&["show", "ada"]);
    for part in ["ada", "greet", "completed", "wait for wave", "█"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let tailed = server.said(&["tail", "ada"]);
    assert!(tailed.contains("OrchestrationCompleted"), "{tailed}");
    assert_eq!(tailed.lines().count(), server.items(&["history", "ada"]).len());
    assert_eq!(server.said(&["invoke", "echo", "--input", "[1,2]", "--call-key", "k"]), "[1,2]\n");
    assert!(server.said(&["functions", "list"]).contains("echo"));
    let put = ["functions", "put", "count", r#"{"executor":"remote"}"#];
    assert_eq!(server.said(&put), "  count  created\n");
    assert_eq!(server.said(&put), "  count  replaced\n");
    assert_eq!(server.json(&["functions", "show", "count"])["declaration"]["executor"], "remote");
    server.said(&["functions", "delete", "count"]);
    assert_eq!(server.run(&["functions", "show", "count"]).status.code(), Some(6));
    assert_eq!(server.items(&["workers"]), Vec::<Value>::new());
    assert_eq!(server.items(&["logs", "ada"]), Vec::<Value>::new());
    assert!(server.said(&["queues"]).contains("messages"));
    assert_eq!(server.json(&["top"])["system"]["counts"]["completed"], 3);
    server.said(&["restart", "ada", "--new-id", "ada-2"]);
    let taken = server.run(&["restart", "ada", "--new-id", "ada-2"]);
    let told = "--new-id: an instance with the id \"ada-2\" exists already; choose another one";
    assert!(String::from_utf8_lossy(&taken.stderr).contains(told), "{taken:?}");
    server.said(&["cancel", "ada-2", "--reason", "enough"]);
    let cancelled = server.run(&["wait", "ada-2"]);
    assert_eq!(cancelled.status.code(), Some(8));
    assert!(String::from_utf8_lossy(&cancelled.stderr).contains("enough"));
    let shown = server.said(&["show", "ada-2"]);
    assert!(
        shown.contains("▒ until the execution ended without it") && !shown.contains("has not ended"),
        "{shown}"
    );
    let counted = server.json(&["bulk", "delete", "--prefix", "ada", "--dry-run"]);
    assert_eq!(counted["matched"], 2);
    let refused = server.run(&["bulk", "delete", "--prefix", "ada"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(server.json(&["bulk", "delete", "--prefix", "ada", "--yes"])["changed"], 2);
    server.said(&["start", "greet", "--id", "late", "--input", WAITS]);
    let running = server.run(&["delete", "late"]);
    assert_eq!(running.status.code(), Some(5), "{}", String::from_utf8_lossy(&running.stderr));
}

#[test]
fn a_webhook_is_declared_tried_looked_at_and_replayed() {
    let directory = TempDir::new().unwrap();
    let mut start = segno();
    start
        .env("HOOK_SECRET", "It's a Secret to Everybody")
        .env("SEGNO_STORED_FUNCTIONS__SECRET_VARIABLES", "HOOK_");
    let server = Process::dev_by(start, directory.path());
    let created = server.said(&[
        "hook",
        "create",
        "github",
        "--function",
        "echo",
        "--verify",
        "github",
        "--secret",
        "env:HOOK_SECRET",
        "--dedup-header",
        "x-github-delivery",
        "--input",
        r#"{"ref":"{{payload.ref}}"}"#,
    ]);
    assert!(created.contains("/v1/hooks/default/github"), "{created}");
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "It's a Secret to Everybody").unwrap();
    let secret = format!("file:{}", secret.display());
    let sample = ["hook", "test", "github", "--data", r#"{"ref":"main"}"#, "--header", "x-github-delivery=1"];
    let sent = server.json(&[&sample[..], &["--secret", &secret]].concat());
    assert_eq!(sent["outcome"], "routed");
    let again = server.json(&[&sample[..], &["--secret", &secret]].concat());
    assert_eq!((&again["outcome"], &again["id"]), (&Value::from("deduplicated"), &sent["id"]));
    std::fs::write(directory.path().join("wrong"), "wrong").unwrap();
    let wrong = format!("file:{}", directory.path().join("wrong").display());
    assert_eq!(server.run(&[&sample[..], &["--secret", &wrong]].concat()).status.code(), Some(7));
    let id = sent["id"].as_str().unwrap();
    let ended = loop {
        let shown = server.json(&["hook", "inspect", "github", id]);
        if shown["actions"][0]["status"] == "completed" {
            break shown;
        }
    };
    assert_eq!(ended["actions"][0]["result"]["ref"], "main");
    assert!(server.said(&["hook", "inspect", "github", id]).contains(r#"{"ref":"main"}"#));
    server.said(&["hook", "replay", "github", id]);
    assert_eq!(server.items(&["hook", "payloads", "github"]).len(), 1);
    let events = server.items(&["hook", "events", "github"]);
    assert_eq!(events[0]["outcome"]["kind"], "replayed");
    server.said(&["hook", "update", "github", "--filter", "payload.ref == 'main'", "--enabled=false"]);
    assert!(server.said(&["hook", "show", "github"]).contains("payload.ref == 'main'"));
    assert!(server.said(&["hook", "list"]).contains("github"));
    server.said(&["hook", "delete", "github"]);
    assert_eq!(server.run(&["hook", "show", "github"]).status.code(), Some(6));
}

#[test]
fn mistakes_have_exit_codes_and_say_what_to_do() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    for (arguments, code, told) in [
        (&["show", "nobody"][..], 6, "nobody"),
        (&["start", "greet", "--input", "Ada"], 2, "is not JSON"),
        (&["start", "greet", "--input", "@/nonexistent"], 6, "/nonexistent"),
        (&["start", "greet", "--label", "x"], 2, "KEY=VALUE"),
        (&["list", "--status", "odd"], 2, "pending, running"),
        (&["list", "--profile", "odd"], 2, "no profile"),
        (&["start", "greet", "--namespace", "A"], 2, "namespace"),
        (&["keys", "list"], 5, "without keys"),
    ] {
        let output = server.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(told), "{arguments:?}: {message}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
    let unreachable = segno().args(["list", "--server", "http://127.0.0.1:1"]).output().unwrap();
    assert_eq!(unreachable.status.code(), Some(1));
    let message = String::from_utf8_lossy(&unreachable.stderr);
    assert_eq!(
        message.trim_end(),
        "segno: cannot connect to http://127.0.0.1:1: Connection refused (os error 111); is `segno dev` running? Name another \
         server with --server or SEGNO_SERVER"
    );
}

#[test]
fn a_killed_server_goes_on_where_it_was() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", WAITS]);
    server.kill();
    let server = Process::dev(directory.path());
    server.said(&["signal", "ada", "wave"]);
    assert_eq!(server.said(&["wait", "ada"]), "\"Hello, Ada! Goodbye, Ada.\"\n");
}

#[test]
fn a_server_that_is_told_to_stop_exits_in_order() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "ada", "--input", WAITS]);
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn with_keys_only_who_has_one_gets_in() {
    let directory = TempDir::new().unwrap();
    let store = format!("segno:{}", directory.path().display());
    let made = segno()
        .args(["key", "create", "--name", "boss", "--role", "admin", "--store", &store, "--output", "json"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let key = made["secret"].as_str().unwrap();
    let server = Process::start(&["serve", "--store", &store, "--listen", "127.0.0.1:0"]);
    assert!(!server.said.iter().any(|line| line.contains("key is in")), "a key was there, so none is made");
    let refused = server.run(&["list"]);
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(7), "{message}");
    assert!(message.contains("SEGNO_KEY"), "{message}");
    let listed = server.items(&["keys", "list", "--key", key]);
    assert_eq!(listed[0]["name"], "boss");
    let viewer = server
        .json(&["keys", "create", "--name", "eyes", "--role", "viewer", "--grant", "shop/eu", "--key", key]);
    let viewer_key = viewer["secret"].as_str().unwrap();
    assert_eq!(server.run(&["list", "--key", viewer_key]).status.code(), Some(7));
    let mine = ["list", "--key", viewer_key, "--namespace", "shop", "--tenant", "eu"];
    assert_eq!(server.items(&mine), Vec::<Value>::new());
    server.said(&["keys", "revoke", viewer["id"].as_str().unwrap(), "--key", key]);
    assert_eq!(server.run(&mine).status.code(), Some(7));
}

#[test]
fn a_server_with_a_certificate_speaks_tls_only() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("server.crt"), file("server.key"));
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-days", "2", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(subject)
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let settings = file("segno.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ntls_certificates = {certificate:?}\ntls_key = {key:?}\n\
         [store]\nurl = \"memory:\"\n[auth]\nmode = \"none\"\n"
    );
    std::fs::write(&settings, text).unwrap();
    let server = Process::start(&["serve", "--config", &settings]);
    let secure = server.address.replace("http://127.0.0.1", "https://localhost");
    let list = |address: &str, trusted: &str| {
        let arguments = ["list", "--server", address, "--output", "json"];
        segno().args(arguments).env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR").output().unwrap()
    };
    let listed = list(&secure, &certificate);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert_eq!(listed.stdout, b"{\"items\":[],\"next_cursor\":null}\n");
    let another = file("another.crt");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-days", "2", "-subj", "/CN=another", "-keyout", &file("another.key"), "-out", &another])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let by_address = server.address.replace("http://", "https://");
    for (address, trusted, told) in [
        (&secure, another.as_str(), "its issuer is unknown on this machine; set SSL_CERT_FILE"),
        (&by_address, &certificate, "it is for another host; use an address with a host name"),
        (&secure, "/nowhere.pem", "No CA certificates were loaded from the system; install"),
    ] {
        let refused = list(address, trusted);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(report["code"], "certificate-refused", "{said}");
        assert!(report["message"].as_str().unwrap().contains(told), "{said}");
    }
    assert_eq!(list(&server.address, &certificate).status.code(), Some(1), "no TLS, no answer");
}

#[test]
fn the_first_key_goes_into_a_file_and_not_into_the_log() {
    let directory = TempDir::new().unwrap();
    let store = format!("segno:{}", directory.path().display());
    for named in [None, Some(directory.path().join("boss.key"))] {
        let store = format!("{store}/{}", usize::from(named.is_some()));
        let mut arguments = vec!["serve", "--store", &store, "--listen", "127.0.0.1:0"];
        arguments.extend(named.iter().flat_map(|file| ["--first-key-file", file.to_str().unwrap()]));
        let server = Process::start(&arguments);
        let told = server.said.iter().find_map(|line| line.split_once("key is in "));
        let file = told.unwrap().1.split(';').next().unwrap();
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = std::fs::read_to_string(file).unwrap();
        assert!(!server.said.iter().any(|line| line.contains(key.trim())), "{:?}", server.said);
        assert!(server.run(&["list", "--key", key.trim()]).status.success());
    }
}

#[test]
fn durable_writes_are_measured() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    server.said(&["start", "greet", "--input", r#"{"name":"Ada"}"#, "--wait"]);
    let host = server.address.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    write!(connection, "GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    for name in ["segno_store_commit_operations_count", "segno_store_commit_duration_seconds_count"] {
        let line = answer.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
        assert!(count > Some(0), "{name} in {answer}");
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().to_str().unwrap();
    let elsewhere = TempDir::new().unwrap();
    let other = elsewhere.path().to_str().unwrap();
    let server = Process::dev(directory.path());
    let taken = server.address.strip_prefix("http://").unwrap();
    let file = directory.path().join("bad.toml");
    std::fs::write(&file, "[server]\nlissen = 1\n").unwrap();
    let store = format!("segno:{data}");
    for (arguments, code, told) in [
        (vec!["dev", "--listen", "127.0.0.1:0", "--data", data], 3, "is open in another process"),
        (vec!["dev", "--listen", taken, "--data", "/tmp"], 1, "in use by another process"),
        (vec!["serve", "--config", file.to_str().unwrap()], 2, "lissen"),
        (vec!["serve", "--config", "/nonexistent.toml"], 6, "/nonexistent.toml"),
        (vec!["serve", "--set", "server.roles=[]"], 2, "server.roles"),
        (
            vec!["serve", "--store", "mysql://u:secret@x"],
            2,
            "use segno:DIR, postgres://USER@HOST/DATABASE or memory:",
        ),
        (vec!["dev", "--listen", "0.0.0.0:0", "--data", other], 1, "`segno serve` with auth.mode = \"keys\""),
        (vec!["dev", "--listen", "0.0.0.0", "--data", other], 2, "\"0.0.0.0\" has no port; use IP:PORT"),
        (vec!["dev", "--listen", "example.com:80", "--data", other], 2, "\"example.com:80\" is no address"),
        (vec!["dev", "--listen", "127.0.0.1:0", "--data", "/proc/segno"], 6, "/proc/segno"),
        (vec!["serve", "--store", &store, "--listen", "127.0.0.1:0"], 3, "is open in another process"),
        (
            vec!["serve", "--store", "memory:", "--listen", "0.0.0.0:0", "--set", "auth.mode=none"],
            1,
            "--insecure",
        ),
    ] {
        let output = segno().args(&arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(told), "{arguments:?}: {message}");
    }
}

#[test]
#[cfg(not(feature = "otlp"))]
fn a_build_without_otlp_refuses_to_be_told_where_traces_go() {
    for verb in
        [&["serve", "--store", "memory:"][..], &["dev", "--data", "/nonexistent"], &["config", "check"]]
    {
        let mut command = segno();
        let output = command.args(verb).env("SEGNO_TELEMETRY__OTLP_ENDPOINT", "http://[::1]:4318").output();
        let output = output.unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb:?}: {message}");
        assert!(message.contains("--features otlp"), "{verb:?}: {message}");
    }
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("segno.toml");
    std::fs::write(&file, "[server]\ndrain_seconds = 3\n").unwrap();
    let output = segno()
        .args(["config", "print", "--config", file.to_str().unwrap(), "--listen", "127.0.0.1:1"])
        .env("SEGNO_STORE__URL", "memory:")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |setting: &str| text.lines().find(|line| line.contains(setting)).unwrap().to_owned();
    assert!(line("server.drain_seconds").contains("segno.toml"), "{text}");
    assert!(line("store.url").contains("$SEGNO_STORE__URL"), "{text}");
    assert!(line("server.listen").contains("--listen"), "{text}");
    assert!(line("auth.mode").contains("default"), "{text}");
    assert!(segno().args(["config", "check"]).output().unwrap().status.success());
}

#[test]
fn the_selftest_kills_itself_and_finds_everything() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().to_str().unwrap();
    let output = segno()
        .args(["selftest", "--rounds", "3", "--directory", place, "--output", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&outcome["rounds"], &outcome["lost"]), (&Value::from(3), &Value::from(0)));
    assert!(outcome["acknowledged"].as_u64().unwrap() >= 3, "{outcome}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0, "nothing is left behind");
}
