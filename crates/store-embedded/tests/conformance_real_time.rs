//! The embedded store keeps the store contract on the machine's clock, with its default settings.

#![expect(clippy::unwrap_used, reason = "a store that does not open fails its test")]

use async_trait::async_trait;
use segno_embedded::EmbeddedStore;
use segno_testkit::conformance::{ClockHandle, OpenStore, StoreHarness};

struct Embedded {
    directory: tempfile::TempDir,
}

impl Embedded {
    /// In memory where that is possible: a sync that stalls for a second would let the time of a case run out.
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Embedded { directory: directory.unwrap() }
    }
}

#[async_trait]
impl StoreHarness for Embedded {
    async fn open(&self) -> OpenStore {
        let store = EmbeddedStore::open(self.directory.path()).unwrap();
        OpenStore { store, clock: ClockHandle::Real }
    }

    async fn reopen(&self, open: OpenStore) -> OpenStore {
        drop(open);
        self.open().await
    }
}

segno_testkit::conformance!(Embedded::new());
