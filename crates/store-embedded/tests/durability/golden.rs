//! Stores that were written once and must open for ever: `tests/golden/NAME` with their files, and `content.txt` with
//! what they show.
//!
//! `UPDATE_GOLDEN=1` makes those of the present format that are not there. It never changes one that is there: if such a
//! store does not open or shows something else, the code is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno::store::{
    FetchWorkItems, LockLife, Provider, ProviderAdmin, ScheduledActivityIdentifier, TagFilter, WorkerMessage,
};
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::{block_on, script};

/// The format of the state and that of the log; the log of those with one number has format 1.
const FORMAT: &str = "v2-2";

/// Leases of the store that has some, and how long they last.
const LEASES: u64 = 3;
const LEASE: Duration = Duration::from_secs(60);

/// What is not part of a store at rest.
const LEFT_OUT: [&str; 3] = ["lock", "control.sock", "spare.tmp"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !LEFT_OUT.iter().any(|name| *name == entry.file_name()) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn open(path: &Path, clock: &Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default().clock(Arc::clone(clock) as Arc<dyn Clock>);
    EmbeddedStore::open_with(path, options).unwrap()
}

/// What a copy of a store shows, with its queues.
fn content(path: &Path) -> String {
    let directory = tempfile::tempdir().unwrap();
    copy(path, directory.path());
    let clock = VirtualClock::new();
    let store = open(directory.path(), &clock);
    block_on(script::show_all(&*store, &clock, script::end_ms()))
}

#[test]
fn every_store_that_was_ever_written_opens_and_shows_what_it_did() {
    let mut found = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        let expected = fs::read_to_string(path.join("content.txt")).unwrap();
        assert_eq!(content(&path), expected, "{}", path.display());
        let report = segno_embedded::check(copied(&path).path(), |_| {}).unwrap();
        assert!(report.is_sound(), "{}: {:?}", path.display(), report.findings);
        found += 1;
    }
    assert!(found >= 11, "{found} stores");
}

#[test]
fn a_store_of_an_older_format_goes_on_as_one_of_the_present() {
    for name in ["v1-closed", "v1-killed", "v1-log-only", "v2-closed", "v2-killed", "v2-log-only"] {
        let directory = copied(&golden().join(name));
        for seed in [31, 32] {
            write(directory.path(), seed, EmbeddedStore::close);
            let report = segno_embedded::check(directory.path(), |_| {}).unwrap();
            assert!(report.is_sound(), "{name}: {:?}", report.findings);
        }
        let store = open(directory.path(), &VirtualClock::new());
        assert_eq!(block_on(store.info()).unwrap().format_version, 2, "{name}");
    }
}

#[test]
fn the_log_of_a_store_of_an_older_format_is_missed_once_it_has_been_opened() {
    for name in ["v1-closed", "v1-killed", "v1-log-only", "v2-closed", "v2-killed", "v2-log-only"] {
        let directory = copied(&golden().join(name));
        // A copy of a store that is open is one that was killed.
        write(directory.path(), 33, |_| {
            let killed = copied(directory.path());
            let names = fs::read_dir(killed.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let newest = names.filter(|name| name.to_string_lossy().starts_with("log-")).max().unwrap();
            fs::remove_file(killed.path().join(&newest)).unwrap();
            let refused = EmbeddedStore::open(killed.path()).unwrap_err().to_string();
            assert!(refused.contains(&*newest.to_string_lossy()), "{name}: {refused}");
        });
    }
}

#[test]
fn a_store_with_leases_opens_with_them() {
    for name in ["v2-leased", "v2-2-leased"] {
        let directory = copied(&golden().join(name));
        check_leases(directory.path());
    }
}

fn check_leases(path: &Path) {
    let clock = VirtualClock::new();
    let store = open(path, &clock);
    assert_eq!(block_on(store.get_queue_depths()).unwrap().locked, LEASES);
    clock.advance(LEASE);
    assert_eq!(block_on(store.get_queue_depths()).unwrap().locked, 0);
}

/// Leases activities to workers elsewhere. One of the leases is renewed.
fn write_leases(path: &Path, leave: impl FnOnce(&EmbeddedStore)) {
    let store = open(path, &VirtualClock::new());
    block_on(async {
        for activity_id in 1..=LEASES + 1 {
            let activity =
                ScheduledActivityIdentifier { instance: "a".to_owned(), execution_id: 1, activity_id };
            let body = "work".into();
            let message = WorkerMessage { activity, session_id: None, tag: None, visible_at_ms: None, body };
            store.enqueue_for_worker(message).await.unwrap();
        }
        let request = FetchWorkItems {
            max_items: LEASES as usize,
            lock_timeout: LEASE / 2,
            poll_timeout: Duration::ZERO,
            session: None,
            tag_filter: &TagFilter::Any,
            life: LockLife::Durable,
        };
        for item in store.fetch_work_items(request).await.unwrap() {
            store.renew_work_item_lock(item.lock_token, LEASE, LockLife::Durable).await.unwrap();
        }
    });
    leave(&store);
}

fn copied(path: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    copy(path, directory.path());
    directory
}

/// Random operations leave instances with several executions, records, and entries of both queues.
fn write(path: &Path, seed: u64, leave: impl FnOnce(&EmbeddedStore)) {
    let clock = VirtualClock::new();
    let store = open(path, &clock);
    block_on(async {
        for step in &script::script(seed, 60) {
            script::run(step, &*store, &clock).await;
        }
    });
    leave(&store);
}

fn keep(name: &str, files: &Path) {
    let path = golden().join(format!("{FORMAT}-{name}"));
    if std::env::var("UPDATE_GOLDEN").as_deref() != Ok("1") || path.exists() {
        return;
    }
    copy(files, &path);
    fs::write(path.join("content.txt"), content(files)).unwrap();
}

#[test]
fn stores_of_the_present_format_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 21, EmbeddedStore::close);
    keep("closed", directory.path());
    // Something behind the last checkpoint.
    write(directory.path(), 22, |_| keep("killed", directory.path()));
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 23, |_| keep("log-only", directory.path()));
    let directory = tempfile::tempdir().unwrap();
    write_leases(directory.path(), EmbeddedStore::close);
    keep("leased", directory.path());
}
