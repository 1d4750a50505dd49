//! The in-memory store keeps the store contract.

use std::sync::Arc;

use async_trait::async_trait;
use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno_testkit::clock::VirtualClock;
use segno_testkit::conformance::{ClockHandle, OpenStore, StoreHarness};

struct Memory;

#[async_trait]
impl StoreHarness for Memory {
    async fn open(&self) -> OpenStore {
        let clock = VirtualClock::new();
        let store = MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        OpenStore { store, clock: ClockHandle::Virtual(clock) }
    }
}

segno_testkit::conformance!(Memory);
