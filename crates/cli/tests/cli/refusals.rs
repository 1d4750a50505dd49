//! What a store, a server or a command refuses, and how it tells: stores and backups of newer
//! builds, servers that hang, files that may not grow, directories of others, settings that name
//! what cannot be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use segno::clock::{Clock, SystemClock};

use crate::operators::{Left, Place, refused, said, segno, store_at};
use crate::process::Process;

/// The checksum of headers.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

/// Writes a format into a file, and the checksum of the header before `sum_at`.
fn set_format(path: &Path, format: u32, sum_at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[8..12].copy_from_slice(&format.to_le_bytes());
    let sum = crc32c(&bytes[..sum_at]);
    bytes[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

fn newest_segment(store: &str) -> std::path::PathBuf {
    let names = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let segments = names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("log-"));
    segments.max().unwrap()
}

#[test]
fn a_store_of_a_newer_build_is_not_taken_for_damage() {
    let place = Place::new();
    let [store, saved] = ["store", "saved"].map(|name| place.at(name));
    store_at(&store, Left::Closed);
    set_format(&newest_segment(&store), 3, 28);
    let reasons = ["format version 3", "use a newer build"];
    refused(&["serve", "--listen", "127.0.0.1:0", "--store", &store], 1, &reasons);
    for verb in ["check", "info", "compact"] {
        refused(&["store", verb, &store], 1, &reasons);
    }
    refused(&["store", "backup", &store, &place.at("b.segno")], 1, &reasons);
    refused(&["store", "salvage", &store, &saved], 1, &reasons);
    assert!(!Path::new(&saved).exists(), "nothing was made");
    // With the format that this build knows, it is the same store.
    set_format(&newest_segment(&store), 2, 28);
    said(&["store", "check", &store]);
}

#[test]
fn a_backup_of_a_newer_build_is_not_taken_for_damage() {
    let place = Place::new();
    let [store, file, new] = ["store", "b.segno", "new"].map(|name| place.at(name));
    store_at(&store, Left::Closed);
    said(&["store", "backup", &store, &file]);
    set_format(Path::new(&file), 99, 12);
    let reasons = ["backup format 99", "use a newer build"];
    refused(&["store", "verify", &file], 1, &reasons);
    refused(&["store", "restore", &file, &new], 1, &reasons);
    assert!(!Path::new(&new).exists(), "nothing was made");
}

#[test]
fn a_server_that_hangs_is_named_in_time() {
    let place = Place::new();
    let store = place.at("store");
    let server = Process::dev(Path::new(&store));
    server.signal("STOP");
    let began_ns = SystemClock.monotonic_ns();
    refused(&["health", "--server", &server.address], 1, &["did not answer in time"]);
    let seconds = (SystemClock.monotonic_ns() - began_ns) / 1_000_000_000;
    assert!(seconds < 20, "{seconds} s");
    let process = format!("process {}", server.child.id());
    let reasons = [process.as_str(), "does not answer"];
    refused(&["store", "info", &store], 1, &reasons);
    refused(&["store", "backup", &store, &place.at("b.segno")], 1, &reasons);
    server.signal("CONT");
    said(&["health", "--server", &server.address]);
    said(&["store", "info", &store]);
}

#[test]
fn a_file_that_may_not_grow_is_as_a_full_disk() {
    let place = Place::new();
    let store = place.at("store");
    let mut limited = Command::new("sh");
    // 16 MiB in blocks of 512 bytes.
    limited.args(["-c", "ulimit -f 32768; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_segno")]);
    let mut server = Process::dev_by(limited, Path::new(&store));
    let input = place.at("input.json");
    fs::write(&input, format!("\"{}\"", "x".repeat(900_000))).unwrap();
    let start = ["start", "greet", "--input", &format!("@{input}")];
    let failed = (0..60).map(|_| server.run(&start)).find(|output| !output.status.success());
    let message = String::from_utf8(failed.expect("the limit is reached").stderr).unwrap();
    assert!(message.contains("limit of file sizes"), "{message}");
    assert!(server.child.try_wait().unwrap().is_none(), "the server still runs");
    said(&["list", "--limit", "1", "--server", &server.address]);
}

#[test]
fn no_store_is_made_among_files_of_others() {
    let place = Place::new();
    let other = place.at("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let file = Path::new(&other).join("notes.txt");
    fs::write(&file, "mine").unwrap();
    let reasons = [file.to_str().unwrap(), "not empty", "name a new directory or an empty one"];
    refused(&["serve", "--listen", "127.0.0.1:0", "--store", &other], 5, &reasons);
    refused(&["dev", "--listen", "127.0.0.1:0", "--data", &other], 5, &reasons);
    refused(&["keys", "create", "--name", "ops", "--role", "admin", "--store", &other], 5, &reasons);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "nothing was made");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o755, "its mode is left alone");
}

#[test]
fn settings_are_checked_as_a_server_checks_them() {
    let tls = ["--set", "server.tls_certificates=/nowhere.pem", "--set", "server.tls_key=/nowhere.key"];
    refused(&[&["config", "check"][..], &tls].concat(), 1, &["/nowhere.pem"]);
    let directories =
        ["runbooks.csv_directory=/nowhere/csv", "stored_functions.secret_directory=/nowhere/secrets"];
    let output = segno(&["config", "check", "--set", directories[0], "--set", directories[1]], &[]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    for named in
        ["runbooks.csv_directory: /nowhere/csv", "stored_functions.secret_directory: /nowhere/secrets"]
    {
        assert!(message.contains(named), "{message}");
    }
    let open = ["config", "check", "--set", "auth.mode=none", "--listen", "0.0.0.0:7070"];
    let message = String::from_utf8(segno(&open, &[]).stderr).unwrap();
    assert!(message.contains("--insecure"), "{message}");
    refused(
        &["config", "check", "--store", "bogus://x"],
        2,
        &["store.url: there is no store of the kind \"bogus\""],
    );
}

#[test]
fn a_copy_into_a_filled_store_names_that_store() {
    let place = Place::new();
    let [one, other] = ["one", "other"].map(|name| place.at(name));
    store_at(&one, Left::Closed);
    store_at(&other, Left::Closed);
    refused(&["store", "copy", &one, &other], 5, &[&format!("segno:{other}: the store is not empty")]);
}
