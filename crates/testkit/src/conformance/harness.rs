//! How the suite opens a store, and how time passes for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use segno::clock::Clock;
use segno::store::Store;

use crate::clock::VirtualClock;

/// Opens stores for the suite. Lives as long as the case, so it may own a directory or a database.
#[async_trait]
pub trait StoreHarness: Send + Sync {
    /// A fresh, empty store. Called once per case.
    async fn open(&self) -> OpenStore;

    /// The same store as the next process finds it: closed, and opened again on the same clock. A
    /// store that ends with its process is returned as it is.
    async fn reopen(&self, open: OpenStore) -> OpenStore {
        open
    }

    /// Called after a case that passed, for what cannot be cleaned up in `Drop`.
    async fn close(&self) {}
}

/// A store that was just opened, and its clock.
pub struct OpenStore {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// The clock that decides its visibility and expiry.
    pub clock: ClockHandle,
}

/// How time passes for a store.
#[derive(Debug, Clone)]
pub enum ClockHandle {
    /// The store uses this clock; the suite moves it and never waits.
    Virtual(Arc<VirtualClock>),
    /// The store has its own clock (a database's, say) that a test can set; the suite moves it and waits only for
    /// answers to travel.
    Stepped(Arc<dyn SteppedClock>),
    /// The store has its own clock that nobody can set; the suite waits, a few hundred milliseconds at a time.
    Real,
}

/// A store's own clock that stands still until it is moved.
#[async_trait]
pub trait SteppedClock: fmt::Debug + Send + Sync {
    /// The same time for what runs in this process.
    fn local(&self) -> Arc<dyn Clock>;

    /// Lets this much time pass.
    async fn advance(&self, duration: Duration);
}
