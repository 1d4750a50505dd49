//! What the log has beyond the last checkpoint stays short, and a store that was closed has none.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno_embedded::{EmbeddedStore, OpenError, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::disk::Disk;
use crate::{block_on, script};

fn try_open(
    disk: &Arc<Disk>,
    clock: &Arc<VirtualClock>,
    age: Duration,
) -> Result<Arc<EmbeddedStore>, OpenError> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .checkpoint_age(age);
    EmbeddedStore::open_with("", options)
}

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>, age: Duration) -> Arc<EmbeddedStore> {
    try_open(disk, clock, age).unwrap()
}

/// What a store shows that has lost its log: all of its last checkpoint, or that the log reached further when that was made.
async fn without_log(disk: &Disk) -> String {
    let mut contents = disk.contents();
    contents.remove("log-");
    let clock = VirtualClock::new();
    match try_open(&Disk::with(contents), &clock, Duration::from_secs(60)) {
        Ok(store) => script::show_all(&*store, &clock, script::end_ms()).await,
        Err(error) => {
            assert!(error.to_string().contains("was acknowledged"), "{error}");
            error.to_string()
        }
    }
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
fn a_store_that_was_closed_needs_no_log() {
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
