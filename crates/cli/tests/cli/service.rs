//! As a service: what a server tells the service manager, its health check, the unit file and the archive of a release.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Process, segno};
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
