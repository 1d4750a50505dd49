//! `segno store …` from outside: what it prints, what it exits with, and what is on the disk afterwards.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use segno::store::{OrchestratorMessage, Store, StoredEvent};
use segno_stores::StoreUrl;
use serde_json::Value;

fn segno(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_segno")).arg("store").args(arguments).output().unwrap()
}

/// Standard output of a command that must succeed.
fn said(arguments: &[&str]) -> String {
    let output = segno(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(&[arguments, &["--output", "json"]].concat())).unwrap()
}

/// Fails unless the command fails with this code and this in its message, and prints nothing to standard output.
#[track_caller]
fn refused(arguments: &[&str], code: i32, reason: &str) {
    let output = segno(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(message.contains(reason), "{arguments:?}: {message}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// A store with this many instances, each with a message that waits. It is open until it is dropped.
fn filled(path: &str, instances: u64) -> Arc<dyn Store> {
    block_on(async {
        let store = path.parse::<StoreUrl>().unwrap().open().await.unwrap();
        // All at once, so that they share their syncs.
        let mut commits = tokio::task::JoinSet::new();
        for number in 0..instances {
            let (id, store) = (format!("i{number:06}"), Arc::clone(&store));
            let data = vec![u8::try_from(number % 251).unwrap(); 300].into();
            commits.spawn(async move {
                let events = vec![StoredEvent { event_id: 1, data }];
                store.append_with_execution(&id, 1, events).await.unwrap();
                store.enqueue_for_orchestrator(OrchestratorMessage::new(id, "go"), None).await.unwrap();
            });
        }
        commits.join_all().await;
        store
    })
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

#[test]
fn a_store_goes_through_backup_restore_and_copy_unchanged() {
    let place = Place::new();
    let [store, file, restored, copied] =
        ["store", "backup.segno", "restored", "copied"].map(|name| place.at(name));
    drop(filled(&store, 50));
    let backup = json(&["backup", &store, &file]);
    assert_eq!((&backup["instances"], &backup["messages"]), (&50.into(), &50.into()));
    assert_eq!(json(&["verify", &file])["sha256"], backup["sha256"]);
    assert_eq!(json(&["restore", &file, &restored])["sha256"], backup["sha256"]);
    assert_eq!(json(&["copy", &restored, &format!("segno:{copied}")])["sha256"], backup["sha256"]);
    let info = json(&["info", &copied]);
    assert_eq!(info["instances"]["total"], 50);
    assert_eq!(info["queues"]["orchestrator"], 50);
    assert_eq!(info["in_use"], false);
    assert_eq!(info["process_id"], Value::Null, "no process has it open");
    for time in [&backup["taken_at"], &info["oldest_created_at"], &info["newest_created_at"]] {
        let time: jiff::Timestamp = time.as_str().expect("a time as text").parse().unwrap();
        assert!(time.as_millisecond() > 1_700_000_000_000, "{time}");
    }
    assert_eq!(json(&["verify", &file])["taken_at"], backup["taken_at"]);
    assert_eq!(json(&["check", &copied])["sound"], true);
    assert!(json(&["compact", &copied])["bytes_after"].as_u64().unwrap() > 0);
    assert_eq!(json(&["copy", &copied, &place.at("again")])["sha256"], backup["sha256"]);
    assert_eq!(json(&["salvage", &copied, &place.at("saved")])["instances"], 50);
}

/// Room that all files of a store take.
fn room(directory: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap()).map(|file| file.blocks() * 512).sum()
}

#[test]
fn a_store_that_is_compacted_takes_no_more_room_than_before() {
    let place = Place::new();
    let store = place.at("store");
    for instances in [0, 2, 50, 500] {
        drop(filled(&store, instances));
        let mut before = room(&store);
        for round in 0..3 {
            let report = json(&["compact", &store]);
            let (old, new) = (report["bytes_before"].as_u64(), report["bytes_after"].as_u64());
            assert!(new <= old, "{instances} instances, round {round}: {report}");
            let after = room(&store);
            assert!(after <= before, "{instances} instances, round {round}: {before} became {after}");
            before = after;
            let names: Vec<String> = fs::read_dir(&store)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
        }
        assert_eq!(json(&["check", &store])["sound"], true);
        fs::remove_dir_all(&store).unwrap();
    }
}

#[test]
fn a_directory_with_files_of_others_is_not_filled() {
    let place = Place::new();
    let [store, file, target] = ["store", "backup.segno", "target"].map(|name| place.at(name));
    drop(filled(&store, 2));
    said(&["backup", &store, &file]);
    fs::create_dir(&target).unwrap();
    fs::write(Path::new(&target).join("notes.txt"), "mine").unwrap();
    for command in [["restore", &file, &target], ["copy", &store, &target], ["salvage", &store, &target]] {
        refused(&command, 5, "notes.txt; name a new directory or an empty one");
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "nothing was made in it");
}

#[test]
fn a_salvage_that_is_killed_is_not_taken_for_a_store_and_can_be_run_again() {
    let place = Place::new();
    let [store, saved] = ["store", "saved"].map(|name| place.at(name));
    drop(filled(&store, 3_000));
    json(&["salvage", &store, &saved]);
    let length: u64 = fs::read_dir(&saved).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    fs::remove_dir_all(&saved).unwrap();
    let mut refusals = 0;
    for round in 0..rounds() {
        killed_at(&["salvage", &store, &saved], Path::new(&saved), round * length / rounds());
        let output = segno(&["info", &saved, "--output", "json"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => {
                let found: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(found["instances"]["total"], 3_000, "round {round}: a part looks like a store");
            }
            Some(4) => {
                assert!(message.contains("`segno store salvage` into it was interrupted"), "{message}");
                refused(&["check", &saved], 4, "was interrupted");
                assert_eq!(json(&["salvage", &store, &saved])["instances"], 3_000, "round {round}: again");
                refusals += 1;
            }
            // Before there was a marker there was nothing.
            Some(6) => {}
            code => panic!("round {round}: {code:?} {message}"),
        }
        let _ = fs::remove_dir_all(&saved);
    }
    assert!(refusals > 0, "no kill was in the middle");
}

#[test]
fn people_get_a_table() {
    let place = Place::new();
    let store = place.at("store");
    drop(filled(&store, 3));
    let text = said(&["info", &store]);
    for line in ["store ", "instances\n", "  all ", "queues\n", "  messages ", "state.redb", "log to replay"]
    {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
    assert!(said(&["check", &store]).contains("sound"));
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn a_store_in_use_is_shown_and_backed_up() {
    let place = Place::new();
    let [store, file] = ["store", "backup.segno"].map(|name| place.at(name));
    let open = filled(&store, 20);
    let info = json(&["info", &store]);
    assert_eq!((&info["in_use"], &info["process_id"]), (&true.into(), &std::process::id().into()));
    let backup = json(&["backup", &store, &file]);
    assert_eq!(backup["instances"], 20);
    assert_eq!(json(&["copy", &store, &place.at("copied")])["sha256"], backup["sha256"]);
    let holder = format!("process id {}", std::process::id());
    refused(&["check", &store], 3, &holder);
    refused(&["compact", &store], 3, &holder);
    refused(&["restore", &file, &store], 3, &holder);
    fs::remove_file(Path::new(&store).join("control.sock")).unwrap();
    refused(&["info", &store], 3, &holder);
    drop(open);
    assert_eq!(json(&["info", &store])["in_use"], false);
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason_and_a_code() {
    let place = Place::new();
    let [store, file, missing] = ["store", "backup.segno", "missing"].map(|name| place.at(name));
    drop(filled(&store, 2));
    said(&["backup", &store, &file]);
    refused(&["backup", &store, &file], 5, "is there already");
    said(&["backup", &store, &file, "--overwrite"]);
    refused(&["restore", &file, &store], 5, "not empty");
    refused(&["info", &missing], 6, "there is no store in");
    refused(&["backup", &missing, &place.at("x")], 6, "there is no store in");
    refused(&["restore", &missing, &place.at("new")], 6, "No such file");
    assert!(!Path::new(&place.at("new")).exists(), "a wrong name leaves no store behind");
    assert!(!Path::new(&missing).exists());
    refused(&["restore", &place.at("store/lock"), &place.at("new")], 2, "is not a Segno backup");
    refused(&["restore", &store, &place.at("new")], 2, "is not a Segno backup");
    refused(&["verify", &store], 2, "is not a Segno backup");
    refused(&["check", "postgres://localhost/segno"], 2, "a store in PostgreSQL is checked with pg_amcheck");
    refused(&["compact", "postgres://localhost/segno"], 2, "PostgreSQL vacuums its tables");
    refused(&["copy", &store, &store], 2, "to itself");
    refused(&["info", "mysql://x"], 2, "postgres://USER@HOST/DATABASE");
    refused(&["info", "memory:"], 2, "holds nothing");
    refused(&["backup", &store], 2, "FILE");
    refused(&["backup", &store, "/nowhere/backup"], 6, "/nowhere/backup.partial");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    refused(&["verify", &file], 4, "it ends in the middle");
    refused(&["restore", &file, &place.at("new")], 4, "it ends in the middle");
    assert!(!Path::new(&place.at("new")).exists(), "a backup that is cut leaves no store behind");
    let mut damaged = bytes.clone();
    damaged[40] ^= 1;
    fs::write(&file, &damaged).unwrap();
    refused(&["restore", &file, &place.at("new")], 4, "its checksum is wrong");
    for command in ["info", "check", "compact"] {
        refused(&[command, &place.at("new")], 4, "`segno store restore` into it was interrupted");
    }
    refused(&["backup", &place.at("new"), &place.at("half.segno")], 4, "`segno store restore` into it");
    refused(&["copy", &store, &place.at("new")], 4, "`segno store restore` into it was interrupted");
    let report = segno(&["info", &place.at("new"), "-o", "json"]).stderr;
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["code"], "store-unfinished");
    assert_eq!(report["page"], "https://segno.dev/errors/store-unfinished");
    fs::write(&file, &bytes).unwrap();
    said(&["restore", &file, &place.at("new")]);
    assert_eq!(json(&["info", &place.at("new")])["instances"]["total"], 2);
}

#[test]
fn a_damaged_store_is_found_and_what_is_left_is_saved() {
    let place = Place::new();
    let store = place.at("store");
    drop(filled(&store, 50));
    let state = Path::new(&store).join("state.redb");
    let mut bytes = fs::read(&state).unwrap();
    let middle = bytes.windows(9).position(|window| window == [7; 9]).expect("an event of 300 equal bytes");
    bytes[middle] ^= 1;
    fs::write(&state, &bytes).unwrap();
    let output = segno(&["check", &store, "--output", "json"]);
    assert_eq!(output.status.code(), Some(4));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["sound"], false);
    assert!(!found["findings"].as_array().unwrap().is_empty());
    let saved = json(&["salvage", &store, &place.at("saved")]);
    assert!(saved["instances"].as_u64().unwrap() < 50);
    assert_eq!(json(&["check", &place.at("saved")])["sound"], true);
}

/// Kills the command when what it has written has this length, or lets it end.
fn killed_at(arguments: &[&str], watched: &Path, bytes: u64) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_segno"));
    let mut child =
        command.arg("store").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{arguments:?}");
            return false;
        }
        let written = if watched.is_dir() {
            let files = fs::read_dir(watched).unwrap().filter_map(Result::ok);
            files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
        } else {
            fs::metadata(watched).map_or(0, |metadata| metadata.len())
        };
        if written >= bytes {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
        std::thread::yield_now();
    }
}

fn rounds() -> u64 {
    std::env::var("SEGNO_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6)
}

#[test]
fn a_backup_that_is_killed_is_not_there() {
    let place = Place::new();
    let [store, whole] = ["store", "whole.segno"].map(|name| place.at(name));
    let _open = filled(&store, 3_000);
    let content = json(&["backup", &store, &whole])["sha256"].clone();
    let length = fs::metadata(&whole).unwrap().len();
    let file = place.at("backup.segno");
    for round in 0..rounds() {
        let partial = place.at("backup.segno.partial");
        let killed = killed_at(&["backup", &store, &file], Path::new(&partial), round * length / rounds());
        if killed && Path::new(&file).exists() {
            // It was killed when it had been given its name, so it is whole.
            assert_eq!(json(&["verify", &file])["sha256"], content, "round {round}");
        }
        let _ = fs::remove_file(&file);
        assert_eq!(json(&["backup", &store, &file])["sha256"], content, "round {round}: and again");
        assert!(!Path::new(&partial).exists());
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_restore_or_copy_that_is_killed_is_not_taken_for_a_store() {
    let place = Place::new();
    let [source, file, store] = ["source", "backup.segno", "store"].map(|name| place.at(name));
    let open = filled(&source, 3_000);
    let content = json(&["backup", &source, &file])["sha256"].clone();
    json(&["restore", &file, &store]);
    let files = fs::read_dir(&store).unwrap().filter_map(Result::ok);
    let length: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    fs::remove_dir_all(&store).unwrap();
    let mut refusals = 0;
    for round in 0..rounds() {
        let command = if round % 2 == 0 { ["restore", &file, &store] } else { ["copy", &source, &store] };
        killed_at(&command, Path::new(&store), (round + 1) * length / (rounds() + 1));
        let output = segno(&["backup", &store, &place.at("check.segno"), "--overwrite", "--output", "json"]);
        match output.status.code() {
            Some(0) => {
                let found: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(found["sha256"], content, "round {round}: a part of it looks like a store");
            }
            Some(4) => {
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                let command = format!("`segno store {}` into it was interrupted", command[0]);
                assert!(message.contains(&command), "round {round}: {message}");
                refusals += 1;
            }
            // Before there was a marker there was nothing.
            Some(6) => {}
            code => panic!("round {round}: {code:?} {}", String::from_utf8_lossy(&output.stderr)),
        }
        if output.status.code() != Some(0) {
            assert_eq!(json(&command)["sha256"], content, "round {round}: and again");
        }
        fs::remove_dir_all(&store).unwrap();
    }
    assert!(refusals > 0, "no kill was in the middle");
    drop(open);
}
