//! `segno store …` on a disk that is full, and on one that is mounted read-only. Each test runs in a mount namespace of its
//! own, with a small file system in memory.
//!
//! That needs the right to mount: as root, or where users may have namespaces. A test that cannot have it fails;
//! `SEGNO_WITHOUT_MOUNTS=1` leaves these tests out.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use crate::process::Process;
use segno::store::{ErrorKind, OrchestratorMessage, Store, StoredEvent};
use segno_api::instance::{OnConflict, StartInstance, Status};
use segno_api::system::NodeState;
use segno_api::{Client, Json};
use segno_stores::StoreUrl;
use serde_json::Value;

/// Set for a test that is in a namespace of its own.
const INSIDE: &str = "SEGNO_TEST_HAS_NAMESPACE";

/// Leaves these tests out, where mounting is not allowed.
const LEFT_OUT: &str = "SEGNO_WITHOUT_MOUNTS";

/// Room on the disk: for a store with a log, a spare segment and what a checkpoint writes.
const DISK_BYTES: u64 = 8 * 1024 * 1024;

/// A command that takes longer than this hangs.
const PATIENCE_SECONDS: &str = "60";

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

const INSTANCES: u64 = 40;

/// How often a server is asked for its health before it counts as wrong.
const MAX_ASKED: usize = 500;

/// Runs a test of this name in a mount namespace of its own.
fn in_namespace(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    if std::env::var_os(LEFT_OUT).is_some() {
        eprintln!("{name} is left out, because {LEFT_OUT} is set");
        return;
    }
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new("unshare");
    command.args(if is_root { ["--mount"].as_slice() } else { &["--mount", "--map-root-user"] });
    let output = command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("full_disk::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare(1) of util-linux");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\nIf it may not mount: run it as root, or leave it out with {LEFT_OUT}=1"
    );
}

/// A small disk, and a large one beside it.
struct Disks {
    small: PathBuf,
    large: tempfile::TempDir,
}

impl Disks {
    fn new() -> Self {
        let large = tempfile::tempdir().unwrap();
        let small = large.path().join("small");
        fs::create_dir(&small).unwrap();
        mount(&["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "none", &small.display().to_string()]);
        Disks { small, large }
    }

    fn store(&self) -> String {
        self.small.join("store").display().to_string()
    }

    fn elsewhere(&self, name: &str) -> String {
        self.large.path().join(name).display().to_string()
    }

    /// Takes all room that is left.
    fn fill_up(&self) {
        let mut ballast = fs::File::create(self.small.join("ballast")).unwrap();
        let mut piece = vec![7; 64 * 1024];
        while !piece.is_empty() {
            // The last pieces are small, so that not a single block is left.
            match ballast.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    piece.truncate(piece.len() / 2)
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.small.join("ballast")).unwrap();
    }
}

fn mount(arguments: &[&str]) {
    let output = Command::new("mount").args(arguments).output().expect("mount(8)");
    assert!(output.status.success(), "mount {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a command says. One that hangs is ended, with the code 124.
fn segno(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE_SECONDS).arg(env!("CARGO_BIN_EXE_segno")).arg("store").args(arguments);
    command.output().expect("timeout(1) of coreutils")
}

fn json(arguments: &[&str]) -> Value {
    let output = segno(&[arguments, &["--output", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], code: i32, reasons: &[&str]) {
    let output = segno(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    for reason in reasons {
        assert!(message.contains(reason), "{arguments:?}: {reason:?} is not in {message}");
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// An open store with instances that have a message each.
fn filled(path: &str) -> Arc<dyn Store> {
    block_on(async {
        let store = path.parse::<StoreUrl>().unwrap().open().await.unwrap();
        for number in 0..INSTANCES {
            let id = format!("i{number:03}");
            let events = vec![StoredEvent { event_id: 1, data: vec![1; 300].into() }];
            store.append_with_execution(&id, 1, events).await.unwrap();
            store.enqueue_for_orchestrator(OrchestratorMessage::new(id, "go"), None).await.unwrap();
        }
        store
    })
}

/// The files of a store that is open are those of one that was killed.
fn killed(open: &str, copy: &Path) {
    fs::create_dir(copy).unwrap();
    for entry in fs::read_dir(open).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
}

/// Names, lengths and times of all files in a directory.
fn state_of(directory: &str) -> Vec<(String, u64, i64, i64)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, metadata.len(), metadata.mtime(), metadata.mtime_nsec())
        })
        .collect();
    files.sort();
    files
}

/// What only reads works, and changes nothing.
fn reads_work(disks: &Disks, store: &str, round: &str) {
    let before = state_of(store);
    let info = json(&["info", store]);
    assert_eq!(info["instances"]["total"], INSTANCES, "{round}");
    assert_eq!(info["queues"]["orchestrator"], INSTANCES, "{round}");
    assert_eq!(json(&["check", store])["sound"], true, "{round}");
    let file = disks.elsewhere(&format!("{round}.segno"));
    let backup = json(&["backup", store, &file]);
    assert_eq!(backup["instances"], INSTANCES, "{round}");
    let copy = disks.elsewhere(&format!("{round}-copy"));
    assert_eq!(json(&["copy", store, &copy])["sha256"], backup["sha256"], "{round}");
    let saved = json(&["salvage", store, &disks.elsewhere(&format!("{round}-saved"))]);
    assert_eq!(saved["instances"], INSTANCES, "{round}");
    assert_eq!(state_of(store), before, "{round}: it was changed");
}

#[test]
fn a_closed_store_is_read_on_a_full_disk() {
    in_namespace("a_closed_store_is_read_on_a_full_disk", || {
        let disks = Disks::new();
        let store = disks.store();
        let open = filled(&store);
        let was_killed = disks.small.join("killed");
        killed(&store, &was_killed);
        let was_killed = was_killed.display().to_string();
        drop(open);
        let file = disks.elsewhere("before.segno");
        json(&["backup", &store, &file]);
        disks.fill_up();
        reads_work(&disks, &store, "closed");
        reads_work(&disks, &was_killed, "killed");
        let target = disks.small.join("new").display().to_string();
        for command in [["restore", &file, &target], ["copy", &store, &target], ["salvage", &store, &target]]
        {
            refused(&command, 1, &[&target, "No space left"]);
            let _ = fs::remove_dir_all(&target);
        }
        refused(
            &["backup", &store, &disks.small.join("backup").display().to_string()],
            1,
            &["backup.partial", "No space left"],
        );
        refused(&["compact", &was_killed], 1, &[&was_killed, "No space left"]);
        disks.make_room();
        json(&["compact", &was_killed]);
        reads_work(&disks, &was_killed, "compacted");
    });
}

#[test]
fn a_closed_store_is_read_on_a_read_only_file_system() {
    in_namespace("a_closed_store_is_read_on_a_read_only_file_system", || {
        let disks = Disks::new();
        let store = disks.store();
        let open = filled(&store);
        let was_killed = disks.small.join("killed");
        killed(&store, &was_killed);
        drop(open);
        mount(&["-o", "remount,ro", &disks.small.display().to_string()]);
        reads_work(&disks, &store, "closed");
        reads_work(&disks, &was_killed.display().to_string(), "killed");
        refused(&["compact", &store], 1, &[&store, "Read-only file system"]);
        let before = state_of(&store);
        let listed = crate::process::segno().args(["keys", "list", "--store", &store]).output().unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        assert_eq!(state_of(&store), before, "keys were read without writing");
    });
}

#[test]
fn a_server_on_a_full_disk_says_so_and_names_the_file() {
    in_namespace("a_server_on_a_full_disk_says_so_and_names_the_file", || {
        let disks = Disks::new();
        let data = disks.small.join("data");
        let server = Process::dev(&data);
        let input = format!("\"{}\"", "x".repeat(100_000));
        let start =
            |id: &str| server.run(&["invoke", "echo", "--call-key", id, "--input", &input, "--no-wait"]);
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/runbooks");
        let example = |name: &str| examples.join(name).display().to_string();
        server.said(&["runbook", "publish", &example("guests.yaml")]);
        server.said(&["batch", "create", "--runbook", "guests", "--members", &example("guests.csv")]);
        disks.fill_up();
        let refused =
            (0..200).map(|number| start(&format!("k{number}"))).find(|output| !output.status.success());
        let message = String::from_utf8(refused.expect("the disk is full").stderr).unwrap();
        // An answer about readiness is good for a second.
        let unhealthy = std::iter::repeat_with(|| server.run(&["health", "-o", "json"]))
            .take(MAX_ASKED)
            .find(|health| !health.status.success());
        let health = String::from_utf8(unhealthy.expect("the disk is full").stderr).unwrap();
        assert_eq!(message.matches("waiting for the server, trying again").count(), 1, "{message}");
        for text in [&message, &health] {
            assert!(text.contains("its disk is full") && text.contains("No space left"), "{text}");
            assert!(
                text.contains("log-") || text.contains("log.tmp") || text.contains("state.redb"),
                "{text}"
            );
            assert!(
                !text.contains(data.to_str().unwrap()),
                "a path of the machine is told to callers: {text}"
            );
        }
        // Writes have failed, so that some of what is in memory waits for room.
        for read in [
            ["batch", "show", "1"].as_slice(),
            &["batch", "explain", "1", "seat"],
            &["action", "list"],
            &["recurring", "list"],
            &["list"],
        ] {
            let shown = server.run(read);
            assert!(shown.status.success(), "{read:?}: {}", String::from_utf8_lossy(&shown.stderr));
        }
        disks.make_room();
        let mut healths = std::iter::repeat_with(|| server.run(&["health"])).take(MAX_ASKED);
        assert!(healths.any(|health| health.status.success()), "and it goes on");
    });
}

/// A start of an instance, large enough to find no room.
fn large_start(id: &str) -> StartInstance {
    StartInstance {
        orchestration: "greet".to_owned(),
        version: None,
        id: Some(id.to_owned()),
        input: Json::from_text(format!(r#"{{"name":"{}"}}"#, "x".repeat(100_000))).unwrap(),
        labels: Default::default(),
        start_at: None,
        on_conflict: OnConflict::Reject,
    }
}

/// Starts instances on a disk that is full until the outcome of one is unknown; its id, which is
/// its idempotency key too.
async fn start_into_the_void(server: &Process, client: &Client, disks: &Disks) -> String {
    for round in 0..MAX_ASKED {
        disks.fill_up();
        for number in 0.. {
            let id = format!("r{round}-{number}");
            match client.start(&large_start(&id), Some(&id), Duration::ZERO).await {
                Ok(_) => {}
                Err(error) if error.code() == Some("outcome-unknown") => return id,
                // Something else that the server writes has met the full disk first.
                Err(error) => {
                    assert_eq!(error.code(), Some("unavailable"), "{id}: {error}");
                    break;
                }
            }
        }
        disks.make_room();
        let mut healths = std::iter::repeat_with(|| server.run(&["health"])).take(MAX_ASKED);
        assert!(healths.any(|health| health.status.success()), "it goes on");
    }
    panic!("another write was always the first to meet the full disk");
}

/// Warnings of a log that say the same again, without the number of those that were left out.
fn repeated_warnings(log: &[String]) -> Vec<&String> {
    let mut seen = HashSet::new();
    let is_repeated = |line: &&String| {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return false };
        let is_warning = line["level"] == "WARN" && line["error"].is_string();
        // Lines of other places in the code may read the same, but for the names of their fields.
        let fields: Vec<&String> = line.as_object().into_iter().flat_map(|line| line.keys()).collect();
        let said = format!("{} {} {} {fields:?}", line["target"], line["message"], line["error"]);
        is_warning && !seen.insert(said) && line["not_logged"].is_null()
    };
    log.iter().filter(is_repeated).collect()
}

#[test]
fn a_server_on_a_full_disk_shows_and_acknowledges_nothing_that_a_crash_may_lose() {
    in_namespace("a_server_on_a_full_disk_shows_and_acknowledges_nothing_that_a_crash_may_lose", || {
        let disks = Disks::new();
        let data = disks.small.join("data");
        let mut server = Process::dev(&data);
        let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
        block_on(async {
            let id = start_into_the_void(&server, &client, &disks).await;
            for _ in 0..50 {
                let again = client.start(&large_start(&id), Some(&id), Duration::ZERO).await.unwrap_err();
                assert_eq!(again.code(), Some("outcome-unknown"), "{again}");
                assert!(again.to_string().contains("has not confirmed yet"), "{again}");
                let shown = client.instance(&id, Duration::ZERO).await.unwrap_err();
                assert_eq!(shown.code(), Some("unavailable"), "{shown}");
                assert!(shown.to_string().contains("is not on disk yet"), "{shown}");
            }
            let nodes = client.nodes().await.unwrap().nodes;
            assert!(nodes.iter().all(|node| node.state == NodeState::Up), "{nodes:?}");
            let log = server.log.lock().unwrap().clone();
            assert!(log.iter().any(|line| line.contains("the disk is full")), "{log:?}");
            assert_eq!(repeated_warnings(&log), [] as [&String; 0]);
            // The start was not acknowledged, so the kill may lose it.
            server.kill();
            disks.make_room();
            let server = Process::dev(&data);
            let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
            let started = client.start(&large_start(&id), Some(&id), Duration::ZERO).await.unwrap();
            assert_eq!(started.id, id);
            let ended = client.instance(&id, PATIENCE).await.unwrap();
            assert_eq!(ended.status, Status::Completed);
        });
    });
}

#[test]
fn a_store_that_is_open_on_a_full_disk_is_backed_up_to_another_one() {
    in_namespace("a_store_that_is_open_on_a_full_disk_is_backed_up_to_another_one", || {
        let disks = Disks::new();
        let store = disks.store();
        let open = filled(&store);
        disks.fill_up();
        let send = |body: usize| {
            let message = OrchestratorMessage::new("i000", vec![1; body]);
            block_on(open.enqueue_for_orchestrator(message, None))
        };
        let mut acknowledged = INSTANCES;
        // The log has some room left in its file.
        let refused = loop {
            match send(20_000) {
                Ok(()) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        assert!(refused.to_string().contains(&store), "the message names the disk: {refused}");
        let info = json(&["info", &store]);
        assert_eq!((&info["in_use"], &info["instances"]["total"]), (&true.into(), &INSTANCES.into()));
        let backup = json(&["backup", &store, &disks.elsewhere("full.segno")]);
        assert_eq!((&backup["instances"], &backup["messages"]), (&INSTANCES.into(), &acknowledged.into()));
        let restored = json(&["restore", &disks.elsewhere("full.segno"), &disks.elsewhere("restored")]);
        assert_eq!(restored["sha256"], backup["sha256"]);
        disks.make_room();
        while send(10).is_err() {
            std::thread::yield_now();
        }
        let backup = json(&["backup", &store, &disks.elsewhere("room.segno")]);
        assert!(backup["messages"].as_u64().unwrap() > acknowledged, "and it goes on");
    });
}
