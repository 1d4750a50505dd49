//! Rooms that register a settler: their records change in the commit that ends the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use segno::store::memory::MemoryStore;
use segno::store::{ErrorKind, Expect, ListRecords, ProviderError, RecordWrite, Store};
use segno::{ActivityContext, Client, Epilogue, Failure, Payload, Registry};
use segno_actions::functions::limits::MAX_SETTLE_WRITES;
use segno_actions::functions::{
    CallEnd, Functions, INVOKE, InvokeRequest, Scope, Settle, SettleError, Settler, invocation_id,
};
use segno_testkit::TestEnv;
use segno_testkit::clock::VirtualClock;
use serde_json::{Value, json};

use crate::support::name;

/// Kind of the records that the settler writes.
const INBOX: &str = "room.inbox";

/// Writes as many records as the data of a call says, after as many errors of the store.
#[derive(Default)]
struct Inbox {
    calls: AtomicU32,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Wanted {
    writes: usize,
    errors: u32,
}

#[async_trait]
impl Settler for Inbox {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        let Wanted { writes, errors } = end.settle.data()?;
        if self.calls.fetch_add(1, Ordering::SeqCst) < errors {
            return Err(ProviderError::new(ErrorKind::Unavailable, "get_record", "away").into());
        }
        assert!(end.now_ms > 0 && end.store.get_record(INBOX, "absent").await?.is_none());
        let outcome = match end.outcome {
            Ok(result) => format!("completed {}", result.as_str()),
            Err(failure) => format!("failed {}", failure.message),
        };
        let put = |number: usize| RecordWrite::Put {
            kind: INBOX.to_owned(),
            id: format!("{}{}/{number:03}", end.scope.id_prefix(), end.settle.id()),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: None,
            body: format!("{} {outcome}", end.instance).into(),
        };
        Ok(Epilogue { writes: (0..writes).map(put).collect(), committed: None })
    }
}

async fn double(_: ActivityContext, number: u32) -> Result<u32, Failure> {
    if number == 13 { Err(Failure::application("unlucky")) } else { Ok(2 * number) }
}

struct World {
    env: TestEnv,
    store: Arc<dyn Store>,
    functions: Functions,
}

impl World {
    async fn start() -> World {
        let clock = VirtualClock::auto();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let functions = Functions::builder(store.clone())
            .clock(clock.clone())
            .rust("double", double)
            .settler("room", Inbox::default())
            .build()
            .unwrap();
        let registry = functions.register(Registry::builder()).build().unwrap();
        let env = TestEnv::builder(registry).store(store.clone(), clock).start().await;
        World { env, store, functions }
    }

    /// Calls `double` for something, and returns what is in the inbox when the call has ended.
    async fn call(&self, number: u32, settle: Settle) -> Vec<String> {
        let scope = Scope::new("eu", "acme").unwrap();
        let request = InvokeRequest::new(name("double"), Payload::encode(&number).unwrap());
        let mut invocation = self.functions.prepare(&scope, request).await.unwrap();
        let id = invocation_id(&scope, settle.id());
        invocation.settle = Some(settle);
        let client: &Client = self.env.client();
        let _either = client.start(INVOKE, invocation).id(id).result().await;
        let all = ListRecords { kind: INBOX, limit: 1_000, ..ListRecords::default() };
        let found = self.store.list_records(all).await.unwrap();
        found.iter().map(|row| format!("{}: {}", row.id, String::from_utf8_lossy(&row.body))).collect()
    }
}

fn settle(kind: &str, id: &str, wanted: Value) -> Settle {
    Settle::new(kind, id).with(&wanted).unwrap()
}

#[test]
fn a_room_has_the_end_of_its_call_when_the_call_has_ended() {
    segno_testkit::run(async {
        let world = World::start().await;
        let one = json!({"writes": 1, "errors": 0});
        assert_eq!(
            world.call(21, settle("room", "a", one.clone())).await,
            ["eu/acme/a/000: eu/acme/invoke:a completed 42"]
        );
        let both = world.call(13, settle("room", "b", one)).await;
        assert_eq!(both[1], "eu/acme/b/000: eu/acme/invoke:b failed unlucky");
    });
}

#[test]
fn a_store_that_is_away_keeps_a_call_from_ending_and_nothing_else_does() {
    segno_testkit::run(async {
        let world = World::start().await;
        let later = world.call(1, settle("room", "a", json!({"writes": 1, "errors": 2}))).await;
        assert_eq!(later.len(), 1, "it was asked until it had an answer");
        for (id, kind, data) in [
            ("unknown kind", "unheard-of", json!({"writes": 1, "errors": 0})),
            ("other data", "room", json!({"writes": "many"})),
            ("too many", "room", json!({"writes": MAX_SETTLE_WRITES + 1, "errors": 0})),
        ] {
            assert_eq!(world.call(1, settle(kind, id, data)).await, later, "{id}");
        }
        let most =
            world.call(1, settle("room", "z", json!({"writes": MAX_SETTLE_WRITES, "errors": 0}))).await;
        assert_eq!(most.len(), 1 + MAX_SETTLE_WRITES);
    });
}

#[test]
fn two_rooms_cannot_settle_the_same_kind() {
    for (kind, twice) in [("room", true), ("action", false), ("recurring", false)] {
        let mut builder = Functions::builder(MemoryStore::new()).settler(kind, Inbox::default());
        if twice {
            builder = builder.settler(kind, Inbox::default());
        }
        let error = builder.build().err().unwrap().to_string();
        assert!(error.contains(&format!("settler {kind}: is registered twice")), "{error}");
    }
}
