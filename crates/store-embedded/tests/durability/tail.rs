//! What the log has beyond the last checkpoint stays short, and there is nothing beyond that of a store that was closed.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno_embedded::{EmbeddedStore, OpenOptions, salvage_files};
use segno_testkit::clock::VirtualClock;

use crate::disk::Disk;
use crate::{block_on, script};

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>, age: Duration) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .checkpoint_age(age);
    EmbeddedStore::open_with("", options).unwrap()
}

/// The same files without the log: a store with all of the last checkpoint and nothing else. It has to be salvaged,
/// because a store refuses to open when its log is gone.
pub fn last_checkpoint(disk: &Disk) -> Arc<Disk> {
    let mut contents = disk.contents();
    contents.remove("log-");
    let (damaged, saved) = (Disk::with(contents), Disk::empty());
    salvage_files(&damaged.mount(), &saved.mount(), &mut |_| {}).unwrap();
    saved
}

async fn without_log(disk: &Disk) -> String {
    let clock = VirtualClock::new();
    let store = open(&last_checkpoint(disk), &clock, Duration::from_secs(60));
    script::show_all(&*store, &clock, script::end_ms()).await
}

async fn with_log(disk: &Disk) -> String {
    let clock = VirtualClock::new();
    let store = open(&Disk::with(disk.contents()), &clock, Duration::from_secs(60));
    script::show_all(&*store, &clock, script::end_ms()).await
}

async fn write(store: &EmbeddedStore, clock: &Arc<VirtualClock>) {
    for step in &script::script(5, 40) {
        script::run(step, store, clock).await;
    }
}

#[test]
fn a_store_that_was_closed_has_everything_in_its_checkpoint() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock, Duration::from_secs(60));
        write(&store, &clock).await;
        assert_ne!(without_log(&disk).await, with_log(&disk).await, "the log must matter before");
        store.close();
        assert_eq!(without_log(&disk).await, with_log(&disk).await);
    });
}

#[test]
fn a_checkpoint_comes_when_nothing_else_does() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock, Duration::from_millis(1));
        write(&store, &clock).await;
        while without_log(&disk).await != with_log(&disk).await {
            tokio::task::yield_now().await;
        }
        // And then nothing happens any more.
        let done = disk.done();
        with_log(&disk).await;
        assert_eq!(disk.done(), done);
    });
}

#[test]
fn a_checkpoint_comes_when_changes_are_old_however_busy_the_store() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock, Duration::from_secs(60));
        write(&store, &clock).await;
        clock.advance(Duration::from_secs(60));
        let before = without_log(&disk).await;
        write(&store, &clock).await;
        while without_log(&disk).await == before {
            tokio::task::yield_now().await;
        }
    });
}
