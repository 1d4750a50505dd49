//! Records that change in the commit that ends an instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use segno::store::memory::MemoryStore;
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Records};
use segno::{
    Activity, Context, Epilogue, Failure, InstanceEnd, Orchestration, Payload, Registry, RuntimeOptions,
};
use segno_testkit::faults::{Fault, FaultStore, Plan, script};

use crate::support::{HANG, Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const DOUBLE: Activity<u32, u32> = Activity::new("double");
const KIND: &str = "test.outcome";

fn put(expect: Expect, text: &str) -> RecordWrite {
    RecordWrite::Put {
        kind: KIND.to_owned(),
        id: "one".to_owned(),
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::copy_from_slice(text.as_bytes()),
    }
}

async fn outcome(store: &MemoryStore) -> Option<String> {
    let record = store.get_record(KIND, "one").await.unwrap();
    record.map(|record| String::from_utf8(record.body.to_vec()).unwrap())
}

/// Appends how the instance ended to what the record says.
async fn note(store: Arc<MemoryStore>, ended: Result<Payload, Failure>) -> Result<Epilogue, ProviderError> {
    let record = store.get_record(KIND, "one").await?;
    let expect = record.as_ref().map_or(Expect::Absent, |record| Expect::Version(record.version));
    let before = record.map_or_else(String::new, |record| String::from_utf8_lossy(&record.body).into_owned());
    let text = match ended {
        Ok(output) => format!("{before}ok {};", output.as_str()),
        Err(failure) => format!("{before}failed {};", failure.message),
    };
    Ok(Epilogue { writes: vec![put(expect, &text)], committed: None })
}

/// Code that notes its end: zero fails, anything else is doubled.
fn registry(store: &Arc<MemoryStore>) -> Registry {
    let store = Arc::clone(store);
    let main = move |ctx: Context, n: u32| {
        let store = Arc::clone(&store);
        async move {
            ctx.at_end(move |ended| note(Arc::clone(&store), ended));
            if n == 0 {
                return Err(Failure::application("nothing to double"));
            }
            ctx.activity(DOUBLE, n).await
        }
    };
    let double = async |_, n: u32| if n == 13 { std::future::pending().await } else { Ok(n * 2) };
    Registry::builder().orchestration(MAIN, main).activity(DOUBLE, double).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_the_end_is_there_with_it() {
    in_both_modes(|world| async move {
        let _node = world.node(&registry(&world.store)).await;
        assert_eq!(world.client.start(MAIN, 21).id("a").result().await.unwrap(), 42);
        assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 42;"));
        // It is no step of the code: the history knows nothing of it.
        assert_eq!(world.kinds("a").await.len(), 4);
        world.client.start(MAIN, 0).id("b").await.unwrap();
        world.ended("b").await;
        assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 42;failed nothing to double;"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_instance_tells_its_end_too() {
    in_both_modes(|world| async move {
        let _node = world.node(&registry(&world.store)).await;
        world.client.start(MAIN, 13).id("a").await.unwrap();
        world.settle().await;
        world.client.cancel("a", "not needed").await.unwrap();
        world.ended("a").await;
        assert_eq!(outcome(&world.store).await.as_deref(), Some("failed not needed;"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_others_change_meanwhile_is_read_again() {
    let world = World::resident();
    let store = Arc::clone(&world.store);
    let calls = Arc::new(AtomicU32::new(0));
    let (counter, committed) = (Arc::clone(&calls), Log::default());
    let noted = committed.clone();
    let main = move |ctx: Context, n: u32| {
        let (store, counter, noted) = (Arc::clone(&store), Arc::clone(&counter), noted.clone());
        async move {
            ctx.at_end(move |ended| {
                let (store, noted) = (Arc::clone(&store), noted.clone());
                let call = counter.fetch_add(1, Ordering::Relaxed) + 1;
                async move {
                    let mut epilogue = note(Arc::clone(&store), ended).await?;
                    epilogue.committed = Some(Box::new(move || noted.push(call.to_string())));
                    if call <= 3 {
                        let writes = vec![put(Expect::Anything, &format!("other {call};"))];
                        store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
                    }
                    Ok(epilogue)
                }
            });
            Ok(n)
        }
    };
    let registry = Registry::builder().orchestration(MAIN, main).build().unwrap();
    let _node = world.node(&registry).await;
    assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), 1);
    assert_eq!(outcome(&world.store).await.as_deref(), Some("other 3;ok 1;"));
    assert_eq!((calls.load(Ordering::Relaxed), committed.lines()), (4, vec!["4".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_epilogue_that_cannot_be_made_holds_the_end_back_and_is_asked_again() {
    for error in [ErrorKind::Unavailable, ErrorKind::Conflict, ErrorKind::Internal] {
        let world = World::resident();
        let calls = Arc::new(AtomicU32::new(0));
        let (store, counter) = (Arc::clone(&world.store), Arc::clone(&calls));
        let main = move |ctx: Context, n: u32| {
            let (store, counter) = (Arc::clone(&store), Arc::clone(&counter));
            async move {
                ctx.at_end(move |ended| {
                    let call = counter.fetch_add(1, Ordering::Relaxed) + 1;
                    assert!(call != 2, "the second call panics");
                    let store = Arc::clone(&store);
                    async move {
                        match call {
                            1 => Err(ProviderError::new(error, "get_record", "not now")),
                            _ => note(store, ended).await,
                        }
                    }
                });
                Ok(n)
            }
        };
        let registry = Registry::builder().orchestration(MAIN, main).build().unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), 1, "{error}");
        assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 1;"), "{error}");
        assert_eq!(calls.load(Ordering::Relaxed), 3, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_an_epilogue_never_fail_an_instance_however_many_there_are() {
    let world = World::resident();
    let calls = Arc::new(AtomicU32::new(0));
    let (store, counter) = (Arc::clone(&world.store), Arc::clone(&calls));
    let main = move |ctx: Context, n: u32| {
        let (store, counter) = (Arc::clone(&store), Arc::clone(&counter));
        async move {
            ctx.at_end(move |ended| {
                let (call, store) = (counter.fetch_add(1, Ordering::Relaxed) + 1, Arc::clone(&store));
                async move {
                    match call {
                        1..=50 => Err(ProviderError::new(ErrorKind::Internal, "get_record", "not now")),
                        _ => note(store, ended).await,
                    }
                }
            });
            Ok(n)
        }
    };
    let registry = Registry::builder().orchestration(MAIN, main).build().unwrap();
    let _node = world.node(&registry).await;
    let began_ms = world.now_ms();
    assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), 1);
    assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 1;"));
    assert_eq!((world.now_ms() - began_ms) / 1_000, 50, "a second between two calls");
}

#[tokio::test(start_paused = true)]
async fn what_an_epilogue_holds_is_given_back_also_if_that_is_the_context() {
    let world = World::resident();
    let held = Arc::new(());
    let holding = Arc::clone(&held);
    let main = move |ctx: Context, n: u32| {
        let holding = Arc::clone(&holding);
        async move {
            let own = ctx.clone();
            ctx.at_end(move |_| {
                let _uses_both = (own.instance_id(), &holding);
                async { Ok(Epilogue::default()) }
            });
            Ok(n)
        }
    };
    let registry = Registry::builder().orchestration(MAIN, main).build().unwrap();
    let _node = world.node(&registry).await;
    for _ in 0..5 {
        world.client.start(MAIN, 1).result().await.unwrap();
    }
    world.settle().await;
    // The code has one and this test the other.
    assert_eq!(Arc::strong_count(&held), 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_execution_has_the_end() {
    let world = World::resident();
    let store = Arc::clone(&world.store);
    let main = move |ctx: Context, n: u32| {
        let store = Arc::clone(&store);
        async move {
            ctx.at_end(move |ended| note(Arc::clone(&store), ended));
            if n < 3 { ctx.continue_as_new(n + 1).await } else { Ok(n) }
        }
    };
    let registry = Registry::builder().orchestration(MAIN, main).build().unwrap();
    let _node = world.node(&registry).await;
    assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), 3);
    assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 3;"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_or_an_unknown_outcome_at_any_commit_tells_the_end_once() {
    for fault in [Fault::FailAfter, Fault::FailBefore, Fault::CrashBefore, Fault::CrashAfter] {
        for commit in 1..=4 {
            let world = World::resident();
            let plan: Plan = script([(commit, fault)]);
            let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), plan);
            let registry = registry(&world.store);
            let options = RuntimeOptions { node_id: Some("first".to_owned()), ..RuntimeOptions::default() };
            let first = segno::Runtime::builder(faulty).registry(registry.clone()).options(options);
            let _first = first.clock(world.clock.clone()).start().await.unwrap();
            world.client.start(MAIN, 21).id("a").await.unwrap();
            world.pass(secs(120)).await;
            let _second = world.node(&registry).await;
            let ended = world.client.wait_until_ended("a", HANG).await.unwrap();
            assert_eq!(ended.result(), Some(&Payload::encode(&42).unwrap()), "{fault:?} at commit {commit}");
            assert_eq!(
                outcome(&world.store).await.as_deref(),
                Some("ok 42;"),
                "{fault:?} at commit {commit}"
            );
        }
    }
}

/// Wants a record to be as it never is.
fn conflicting() -> Registry {
    let main = async |ctx: Context, n: u32| {
        ctx.at_end(async |_| Ok(Epilogue { writes: vec![put(Expect::Version(77), "")], committed: None }));
        Ok(n)
    };
    Registry::builder().orchestration(MAIN, main).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_end_that_conflicts_all_the_time_does_not_keep_a_node_from_stopping() {
    let world = World::resident();
    let slow: Plan = Box::new(|point| match point.operation {
        "ack_orchestration_item" => Fault::Delay(secs(1)),
        _ => Fault::None,
    });
    let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), slow);
    let node = segno::Runtime::builder(faulty).registry(conflicting()).clock(world.clock.clone());
    let node = node.start().await.unwrap();
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(5)).await;
    let asked_ms = world.now_ms();
    node.shutdown(secs(2)).await;
    let took_ms = world.now_ms() - asked_ms;
    assert!((2_000..=3_100).contains(&took_ms), "the shutdown took {took_ms} ms");
    // It was given back: another node takes it without waiting for its lock.
    let _next = world.node(&registry(&world.store)).await;
    world.ended("a").await;
    assert!(world.now_ms() - asked_ms < 4_000);
}

/// Puts what the settler is told into a record.
async fn settled(end: InstanceEnd) -> Result<Epilogue, ProviderError> {
    let text = format!("{} {} {}", end.instance, end.settle.as_str(), end.outcome.is_ok());
    let RecordWrite::Put { kind, body, .. } = put(Expect::Anything, &text) else { unreachable!() };
    let write = RecordWrite::Put {
        kind,
        id: "settled".to_owned(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body,
    };
    Ok(Epilogue { writes: vec![write], committed: None })
}

async fn settlement(store: &MemoryStore) -> Option<String> {
    let record = store.get_record(KIND, "settled").await.unwrap();
    record.map(|record| String::from_utf8(record.body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_end_is_settled_by_the_data_of_the_start_whatever_the_code_does() {
    in_both_modes(|world| async move {
        let store = Arc::clone(&world.store);
        let main = move |ctx: Context, n: u32| {
            let store = Arc::clone(&store);
            async move {
                ctx.at_end(move |ended| note(Arc::clone(&store), ended));
                if n < 3 { ctx.continue_as_new(n + 1).await } else { Ok(n) }
            }
        };
        let registry = Registry::builder().orchestration(MAIN, main).settler(settled).build().unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 9).id("plain").result().await.unwrap(), 9);
        assert_eq!(settlement(&world.store).await, None, "nothing is settled that was not asked for");
        // The third execution ends it; both what its code wants and what its start wants are in the commit of that.
        let start = world.client.start(MAIN, 1).id("a").settle(&"order 7");
        assert_eq!(start.result().await.unwrap(), 3);
        assert_eq!(settlement(&world.store).await.as_deref(), Some("a \"order 7\" true"));
        assert_eq!(outcome(&world.store).await.as_deref(), Some("ok 9;ok 3;"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_and_a_cancelled_end_are_settled_too_and_there_is_one_settler() {
    let world = World::resident();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, _: u32| -> Result<u32, Failure> {
            ctx.sleep(secs(3_600)).await?;
            Ok(1)
        })
        .settler(settled)
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").settle(&7).await.unwrap();
    world.client.cancel("a", "enough").await.unwrap();
    world.ended("a").await;
    assert_eq!(settlement(&world.store).await.as_deref(), Some("a 7 false"));
    let twice = Registry::builder().settler(settled).settler(settled).build();
    assert_eq!(twice.err().map(|error| error.code()), Some(segno::Code::DuplicateRegistration));
}
