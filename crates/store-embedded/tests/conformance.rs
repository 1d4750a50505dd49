//! The embedded store keeps the store contract.

#![expect(clippy::unwrap_used, reason = "a store that does not open fails its test")]

use std::sync::Arc;

use async_trait::async_trait;
use segno::clock::Clock;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::conformance::{ClockHandle, OpenStore, StoreHarness};

/// Small enough for checkpoints to happen in the middle of cases.
const CHECKPOINT_BYTES: usize = 2_000;

struct Embedded {
    directory: tempfile::TempDir,
}

impl Embedded {
    fn new() -> Self {
        Embedded { directory: tempfile::tempdir().unwrap() }
    }
}

impl Embedded {
    fn open_on(&self, clock: Arc<VirtualClock>) -> OpenStore {
        let options = OpenOptions::default()
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .checkpoint_bytes(CHECKPOINT_BYTES);
        let store = EmbeddedStore::open_with(self.directory.path(), options).unwrap();
        OpenStore { store, clock: ClockHandle::Virtual(clock) }
    }
}

#[async_trait]
impl StoreHarness for Embedded {
    async fn open(&self) -> OpenStore {
        self.open_on(VirtualClock::new())
    }

    async fn reopen(&self, open: OpenStore) -> OpenStore {
        let ClockHandle::Virtual(clock) = open.clock else { unreachable!("it is opened with that clock") };
        drop(open.store);
        self.open_on(clock)
    }
}

segno_testkit::conformance!(Embedded::new());
