//! The PostgreSQL store keeps the store contract.

mod support;

use async_trait::async_trait;
use segno_testkit::conformance::{ClockHandle, OpenStore, SteppedClock, StoreHarness};
use support::Schema;
use tokio::sync::OnceCell;

/// A store in a schema of its own, whose clock stands still until the suite moves it.
#[derive(Default)]
struct Postgres {
    schema: OnceCell<Schema>,
}

#[async_trait]
impl StoreHarness for Postgres {
    async fn open(&self) -> OpenStore {
        let schema = self.schema.get_or_init(Schema::take).await;
        let clock = schema.stop_clock().await;
        let store = schema.open(schema.options().clock(clock.local())).await;
        OpenStore { store, clock: ClockHandle::Stepped(clock) }
    }

    async fn reopen(&self, open: OpenStore) -> OpenStore {
        let ClockHandle::Stepped(clock) = open.clock else { unreachable!("it is opened with that clock") };
        drop(open.store);
        let schema = self.schema.get_or_init(Schema::take).await;
        let store = schema.open(schema.options().clock(clock.local())).await;
        OpenStore { store, clock: ClockHandle::Stepped(clock) }
    }
}

segno_testkit::conformance!(Postgres::default());
