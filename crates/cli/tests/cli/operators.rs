//! What an operator meets who has nothing but the binary: places where there is no store, starts that are refused, keys
//! without a server. Every refusal has a code that scripts can tell, the place it is about, and what to do next.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use segno::store::OrchestratorMessage;
use segno_stores::StoreUrl;

/// A command that takes longer than this hangs.
const PATIENCE_SECONDS: &str = "60";

pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

pub fn segno(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE_SECONDS).arg(env!("CARGO_BIN_EXE_segno")).args(arguments);
    command.env_remove("SEGNO_SERVER").envs(environment.iter().copied()).output().unwrap()
}

#[track_caller]
pub fn said(arguments: &[&str]) -> String {
    let output = segno(arguments, &[]);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fails unless the command fails with this code and all of this in its message.
#[track_caller]
pub fn refused(arguments: &[&str], code: i32, reasons: &[&str]) {
    let output = segno(arguments, &[]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    for reason in reasons {
        assert!(message.contains(reason), "{arguments:?}: {reason:?} is not in {message}");
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// A store with a message in it, left as by a clean stop, or as by `kill -9`.
pub fn store_at(path: &str, left: Left) {
    block_on(async {
        let store = path.parse::<StoreUrl>().unwrap().open().await.unwrap();
        store.enqueue_for_orchestrator(OrchestratorMessage::new("i", "go"), None).await.unwrap();
        if left == Left::Killed {
            // The files of a store that is open are those of one that was killed.
            let open = format!("{path}-open");
            copy_files(path, &open);
            drop(store);
            fs::remove_dir_all(path).unwrap();
            fs::rename(&open, path).unwrap();
        }
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Closed,
    Killed,
}

fn copy_files(from: &str, to: &str) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), Path::new(to).join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn where_there_is_no_store_the_place_and_the_next_step_are_named() {
    let place = Place::new();
    let [missing, empty, other, file, new] =
        ["missing", "empty", "other", "file", "new"].map(|name| place.at(name));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(Path::new(&other).join("notes.txt"), "mine").unwrap();
    fs::write(&file, "mine").unwrap();
    for (path, why) in [
        (&missing, "No such file or directory"),
        (&empty, "it is empty"),
        (&other, "it has no file state.redb"),
        (&file, "Not a directory"),
    ] {
        let reasons = [path.as_str(), why, "name the directory that the server has in its store.url"];
        for command in [&["info", path][..], &["backup", path, &new], &["check", path], &["compact", path]] {
            refused(&[&["store"], command].concat(), 6, &reasons);
        }
        refused(&["store", "salvage", path, &new], 6, &reasons);
        refused(&["store", "copy", path, &new], 6, &reasons);
        refused(&["keys", "list", "--store", path], 6, &reasons);
        refused(&["keys", "revoke", "x", "--store", path], 6, &reasons);
        assert!(!Path::new(&new).exists(), "{path}: something was made");
    }
    assert!(!Path::new(&missing).exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_log_that_has_lost_its_newest_file_is_refused_and_salvaged() {
    for left in [Left::Closed, Left::Killed] {
        let place = Place::new();
        let store = place.at("store");
        store_at(&store, left);
        let names = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let newest = names.filter(|name| name.starts_with("log-")).max().unwrap();
        fs::remove_file(Path::new(&store).join(&newest)).unwrap();
        let reasons = [store.as_str(), &newest, "is missing", "may be lost", "segno store salvage"];
        refused(&["store", "info", &store], 4, &reasons);
        refused(&["store", "backup", &store, &place.at("x")], 4, &reasons);
        refused(&["serve", "--listen", "127.0.0.1:0", "--store", &store], 4, &reasons);
        let output = segno(&["store", "check", &store], &[]);
        assert_eq!(output.status.code(), Some(4), "{left:?}");
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(report.contains(&newest) && report.contains("commits from "), "{left:?}: {report}");
        let report = said(&["store", "salvage", &store, &place.at("saved")]);
        assert!(report.contains(&newest), "{left:?}: {report}");
        assert!(said(&["store", "check", &place.at("saved")]).contains("sound"), "{left:?}");
        said(&["store", "info", &place.at("saved")]);
    }
}

#[test]
fn a_start_that_is_refused_leaves_no_store_behind() {
    let place = Place::new();
    let store = place.at("a/store");
    let serve = ["serve", "--store", &store, "--set", "auth.mode=none"];
    refused(&[&serve[..], &["--listen", "0.0.0.0:0"]].concat(), 1, &["--insecure"]);
    let tls = ["--set", "server.tls_certificates=/nowhere.pem", "--set", "server.tls_key=/nowhere.key"];
    refused(&[&serve[..], &["--listen", "127.0.0.1:0"], &tls].concat(), 1, &["/nowhere.pem"]);
    assert!(!Path::new(&place.at("a")).exists());
    let file = place.at("file");
    fs::write(&file, "mine").unwrap();
    let reasons = [file.as_str(), "a store is a directory", "segno:DIR"];
    refused(&["serve", "--listen", "127.0.0.1:0", "--store", &format!("segno:{file}")], 1, &reasons);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn keys_are_looked_after_without_a_server_as_with_one() {
    let place = Place::new();
    let store = place.at("store");
    said(&["keys", "create", "--name", "ops", "--role", "admin", "--store", &store]);
    refused(&["keys", "revoke", "nosuch", "--store", &store], 6, &["nosuch"]);
    refused(&["keys", "create", "--name", "", "--role", "admin", "--store", &store], 2, &["name"]);
    // A flag wins over the environment; two flags that do not fit are an error.
    let elsewhere = [("SEGNO_SERVER", "http://127.0.0.1:1")];
    let output = segno(&["keys", "list", "--store", &store], &elsewhere);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("ops"));
    refused(&["keys", "list", "--store", &store, "--server", "http://x"], 2, &["--store", "--server"]);
    refused(&["keys", "--server", "http://x", "list", "--store", &store], 2, &["--store", "--server"]);
}

#[test]
fn a_backup_never_replaces_a_file_of_the_store_that_it_reads() {
    let place = Place::new();
    let store = place.at("s");
    store_at(&store, Left::Closed);
    let state = format!("{store}/state.redb");
    let around = format!("{store}/../s/new.segno");
    for file in [&state, &around] {
        refused(&["store", "backup", &store, file, "--overwrite"], 2, &[file, "inside the store"]);
    }
    for verb in ["copy", "salvage"] {
        refused(&["store", verb, &store, &format!("{store}/sub")], 2, &["is inside"]);
    }
    said(&["store", "check", &store]);
    said(&["store", "backup", &store, &place.at("b.segno")]);
}
