//! As a service: what a server tells the service manager, its health check, the unit file and the archive of a release.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Process, segno};
use segno::clock::{Clock, SystemClock, deadline_ms};
use tempfile::TempDir;

/// Longest wait for a message of the server.
const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn a_server_tells_the_service_manager_that_it_is_ready_and_that_it_stops() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut command = segno();
    command.env("NOTIFY_SOCKET", &socket);
    let mut server = Process::dev_by(command, &directory.path().join("data"));
    assert_eq!(told(), "READY=1");
    // Ready means that it answers.
    assert_eq!(server.said(&["health"]).trim(), "status  ok");
    server.signal("TERM");
    assert_eq!(told(), "STOPPING=1");
    assert!(server.child.wait().unwrap().success());
    let output = server.run(&["health"]);
    assert_eq!(output.status.code(), Some(1), "a server that is gone is not healthy");
}

/// A server with a thread that hangs: a query reads its secret from a pipe that has no writer.
fn with_a_thread_that_hangs(directory: &Path) -> Process {
    let own = directory.join("default/default");
    std::fs::create_dir_all(&own).unwrap();
    let pipe = own.join("db");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = format!(
        "name: hangs\ndata_source: {{type: sql, connection: {{file: {}}}, query: SELECT 1, primary_key: Key, \
         batch_time: immediate}}\nphases: [{{name: a, offset: T-0, steps: [{{name: b, worker_id: dev, function: echo}}]}}]\n",
        pipe.display()
    );
    let runbook = directory.join("hangs.yaml");
    std::fs::write(&runbook, text).unwrap();
    let secrets = format!("stored_functions.secret_directory={}", directory.display());
    let data = directory.join("data");
    let data = data.to_str().unwrap();
    let server = Process::start(&["dev", "--listen", "127.0.0.1:0", "--data", data, "--set", &secrets]);
    server.said(&["runbook", "publish", runbook.to_str().unwrap()]);
    server.said(&["runbook", "enable", "hangs"]);
    let until_ms = deadline_ms(&SystemClock, PATIENCE);
    while server.json(&["runbook", "show", "hangs"])["runbook"]["automation"]["running"] != true {
        assert!(SystemClock.now_ms() < until_ms, "the query does not run");
    }
    server
}

/// The exit code of a server that ends within a while.
fn code(server: &mut Process, within: Duration) -> Option<i32> {
    let until_ms = deadline_ms(&SystemClock, within);
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            return status.code();
        }
        assert!(SystemClock.now_ms() < until_ms, "it has not ended within {within:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_thread_that_hangs_keeps_no_server_from_ending() {
    let directory = TempDir::new().unwrap();
    let mut server = with_a_thread_that_hangs(directory.path());
    server.signal("TERM");
    assert_eq!(code(&mut server, PATIENCE), Some(0));
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let directory = TempDir::new().unwrap();
    let mut server = with_a_thread_that_hangs(directory.path());
    server.signal("TERM");
    server.signal("INT");
    assert_eq!(code(&mut server, Duration::from_secs(4)), Some(130));
}

#[test]
fn a_service_manager_that_is_gone_stops_no_server() {
    let directory = TempDir::new().unwrap();
    let mut command = segno();
    command.env("NOTIFY_SOCKET", directory.path().join("nothing"));
    let server = Process::dev_by(command, &directory.path().join("data"));
    server.said(&["health"]);
}

#[test]
fn the_unit_file_is_one_that_systemd_takes() {
    let unit = std::fs::read_to_string(root().join("packaging/segno.service")).unwrap();
    let installed = "/usr/local/bin/segno";
    assert!(unit.contains(&format!("ExecStart={installed} serve")));
    // No number of crashes leaves the service stopped. systemd reads the limit in this section only.
    let (of_unit, of_service) = unit.split_once("[Service]").unwrap();
    assert!(of_unit.lines().any(|line| line == "StartLimitIntervalSec=0"));
    assert!(of_service.lines().any(|line| line == "Restart=always"));
    let directory = TempDir::new().unwrap();
    let copy = directory.path().join("segno.service");
    std::fs::write(&copy, unit.replace(installed, env!("CARGO_BIN_EXE_segno"))).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&copy).output();
    let output = output.unwrap_or_else(|error| panic!("systemd-analyze (Debian's package systemd): {error}"));
    // A key that it does not know is a message and no failure.
    let messages = String::from_utf8_lossy(&output.stderr);
    let of_the_unit: Vec<&str> = messages.lines().filter(|line| line.contains("segno.service")).collect();
    assert!(output.status.success() && of_the_unit.is_empty(), "{messages}");
}

#[test]
fn a_release_has_what_it_lists_and_says_what_is_in_it() {
    let directory = TempDir::new().unwrap();
    // In the place of the binary, which takes long to compress.
    let binary = directory.path().join("segno");
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_segno"));
    std::fs::write(&binary, script).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let release = Command::new(root().join("scripts/release.sh"))
        .arg(directory.path())
        .arg("--binary")
        .arg(&binary)
        .output()
        .unwrap();
    assert!(release.status.success(), "{}", String::from_utf8_lossy(&release.stderr));
    let archive = String::from_utf8(release.stdout).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let name = Path::new(archive.trim()).file_name().unwrap().to_str().unwrap();
    let stem = name.strip_suffix(".tar.gz").unwrap();
    run("sha256sum", &["--check", &format!("{stem}.sha256")]);
    let files = run("tar", &["--list", "--file", name]);
    for file in ["segno", "segno.service", "segno.cdx.json", "LICENSE-MIT", "completions/segno.bash"] {
        assert!(files.lines().any(|line| line == format!("{stem}/{file}")), "{file} is not in {files}");
    }
    let document = std::fs::read_to_string(directory.path().join(format!("{stem}.cdx.json"))).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let names: Vec<&str> = document["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|component| component["name"].as_str().unwrap())
        .collect();
    for linked in ["tokio", "segno-server", "opentelemetry-otlp"] {
        assert!(names.contains(&linked), "{linked} is linked and not listed");
    }
    assert!(!names.contains(&"expect-test"), "a crate for tests is in no binary");
}
