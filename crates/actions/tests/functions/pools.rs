//! Pools of workers, and the door by which rooms call functions through them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno::work::{FetchWork, LeasedActivity, LockLife, TagFilter, WorkQueue};
use segno::{ActivityContext, Client, Epilogue, Failure, Orchestration, Payload, Registry};
use segno_actions::functions::limits::{MAX_ANNOUNCED_BYTES, MAX_ANNOUNCED_POOLS, MAX_POOL_FUNCTIONS};
use segno_actions::functions::{
    Call, CallEnd, CallName, FUNCTION_LABEL, FunctionError, Functions, HumanDuration, PoolName, Route, Scope,
    Settle, SettleError, Settler, Trigger, pool_tag,
};
use segno_actions::pools::{
    AllowList, CallState, Pool, PoolCall, PoolOrigin, Pools, Room, RoomCall, RoomCalls, Transport,
};
use segno_actions::{Listed, OrchestrationName};
use segno_testkit::TestEnv;
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{Fault, FaultStore};
use serde_json::{Value, json};

/// Kind of the records that results come in as.
const INBOX: &str = "room.inbox";

/// Writes each result into a record of its own.
struct Inbox;

#[async_trait]
impl Settler for Inbox {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        let body = match end.outcome {
            Ok(result) => result.as_str().to_owned(),
            Err(failure) => failure.message.clone(),
        };
        let put = RecordWrite::Put {
            kind: INBOX.to_owned(),
            id: format!("{}{}", end.scope.id_prefix(), end.settle.id()),
            expect: Expect::Absent,
            due_at_ms: Some(end.now_ms),
            time_to_live: None,
            body: body.into(),
        };
        Ok(Epilogue { writes: vec![put], committed: None })
    }
}

async fn greet(_: ActivityContext, name: String) -> Result<String, Failure> {
    Ok(format!("Hello, {name}"))
}

fn pool(name: &str) -> PoolName {
    PoolName::new(name).unwrap()
}

fn function(name: &str) -> CallName {
    CallName::new(name).unwrap()
}

fn functions(names: &[&str]) -> Vec<CallName> {
    names.iter().map(|name| function(name)).collect()
}

fn allow(entries: &[&str]) -> AllowList {
    AllowList::new(entries).unwrap()
}

struct World {
    clock: Arc<VirtualClock>,
    store: Arc<dyn Store>,
    env: TestEnv,
    functions: Functions,
    pools: Pools,
    scope: Scope,
}

impl World {
    async fn start() -> World {
        let clock = VirtualClock::auto();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let builder = Functions::builder(store.clone()).clock(clock.clone());
        let functions = builder.rust("new-greeting", greet).settler("room", Inbox).build().unwrap();
        let greeting = Orchestration::<String, String>::named("Greeting");
        let registry = Registry::builder()
            .orchestration(greeting, |_, name: String| async move { Ok(format!("Hello, {name}")) });
        let registry = functions.register(registry).build().unwrap();
        let env = TestEnv::builder(registry).store(store.clone(), clock.clone()).start().await;
        let pools = Self::pools(store.clone()).unwrap().clock(clock.clone());
        let scope = Scope::new("eu", "acme").unwrap();
        World { clock, store, env, functions, pools, scope }
    }

    fn pools(store: Arc<dyn Store>) -> Result<Pools, FunctionError> {
        let cloud = Pool { timeout: Some(HumanDuration::from_secs(60)), ..Pool::new(allow(&["New-*"])) };
        let here = Pool { transport: Transport::Local, ..Pool::new(allow(&["*"])) };
        Pools::new(store, BTreeMap::from([(pool("Cloud-01"), cloud), (pool("here"), here)]))
    }

    fn room(&self) -> RoomCalls {
        let (functions, pools) = (self.functions.clone(), self.pools.clone());
        RoomCalls::new(Room::RUNBOOK, &functions, pools, Client::new(self.store.clone()))
    }

    fn call(&self, pool_name: &str, name: &str, input: Value) -> PoolCall {
        PoolCall::new(pool(pool_name), function(name), Payload::encode(&input).unwrap())
    }

    async fn prepare(&self, call: PoolCall) -> Result<segno_actions::functions::Invocation, FunctionError> {
        self.pools.prepare(&self.functions, &self.scope, call).await
    }

    /// Starts a job in a commit of its own.
    async fn start_job(&self, job: &str, call: PoolCall) -> String {
        let mut batch = RecordBatch::default();
        let wanted = RoomCall::new(job, call, Settle::new("room", job));
        let id = self.room().add_start(&mut batch, &self.scope, wanted).await.unwrap();
        self.store.commit_records(batch).await.unwrap();
        id
    }

    async fn fetch(&self, pool_name: &str) -> Option<LeasedActivity> {
        let request = FetchWork {
            tags: TagFilter::tags([pool_tag(&self.scope, &pool(pool_name))]),
            max_items: 1,
            lease: Duration::from_secs(30),
            wait: Duration::from_secs(5),
            life: LockLife::Durable,
        };
        self.queue().fetch(request).await.unwrap().pop()
    }

    fn queue(&self) -> WorkQueue {
        WorkQueue::builder(self.store.clone()).clock(self.clock.clone()).build().unwrap()
    }

    async fn inbox(&self) -> Vec<String> {
        let all = ListRecords { kind: INBOX, limit: 100, ..ListRecords::default() };
        let found = self.store.list_records(all).await.unwrap();
        found.iter().map(|row| format!("{} {}", row.id, String::from_utf8_lossy(&row.body))).collect()
    }

    async fn state(&self, job: &str) -> CallState {
        self.room().state(&self.scope, job).await.unwrap()
    }
}

#[test]
fn the_allow_list_of_the_settings_decides() {
    segno_testkit::run(async {
        let world = World::start().await;
        let made = world.prepare(world.call("Cloud-01", "New-EntraUser", json!({"a": 1}))).await.unwrap();
        assert_eq!(made.route, Route::Pool { pool: pool("Cloud-01") });
        assert_eq!((made.function.as_str(), made.timeout_ms), ("New-EntraUser", Some(60_000)));
        for (pool_name, name, code, words) in [
            ("Cloud-01", "Remove-EntraUser", "function-not-in-pool", "pools.Cloud-01.functions"),
            ("Cloud-01", "new-entrauser", "function-not-in-pool", "new-entrauser"),
            ("cloud-01", "New-EntraUser", "unknown-pool", "[pools.cloud-01]"),
        ] {
            let error = world.prepare(world.call(pool_name, name, json!(1))).await.unwrap_err();
            assert_eq!(error.code(), code);
            assert!(error.to_string().contains(words), "{error}");
        }
        // Announcing changes nothing there.
        world.pools.announce(&world.scope, &pool("Cloud-01"), "w", &functions(&["Remove-X"])).await.unwrap();
        let refused = world.prepare(world.call("Cloud-01", "Remove-X", json!(1))).await.unwrap_err();
        assert_eq!(refused.code(), "function-not-in-pool");
    });
}

#[test]
fn a_pool_is_there_from_the_first_worker_that_announces_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        let (name, scope) = (pool("Edge"), &world.scope);
        let nothing = world.pools.announce(scope, &name, "w", &[]).await.unwrap_err();
        assert_eq!(nothing.code(), "unknown-pool");
        world.pools.announce(scope, &name, "w", &functions(&["New-X"])).await.unwrap();
        world.pools.announce(scope, &name, "v", &functions(&["New-X", "Set-Y"])).await.unwrap();
        world.pools.announce(scope, &name, "v", &[]).await.unwrap();
        let found = world.pools.find(scope, &name).await.unwrap();
        assert_eq!(
            (found.origin, &found.pool.functions),
            (PoolOrigin::Announced, &allow(&["New-X", "Set-Y"]))
        );
        let other = Scope::new("eu", "other").unwrap();
        assert_eq!(world.pools.find(&other, &name).await.unwrap_err().code(), "unknown-pool");
        // Another node sees it too, and both list it with those of the settings.
        let far = World::pools(world.store.clone()).unwrap();
        assert!(far.find(scope, &name).await.is_ok());
        let names = async |after: Option<&PoolName>, limit| -> Vec<String> {
            let page = far.list(scope, after, limit).await.unwrap();
            Listed::split(page).0.into_iter().map(|found| found.name.to_string()).collect()
        };
        assert_eq!(names(None, 9).await, ["Cloud-01", "Edge", "here"]);
        assert_eq!(names(Some(&name), 9).await, ["here"]);
        assert_eq!(names(None, 2).await, ["Cloud-01", "Edge"]);
        world.pools.forget(scope, &name).await.unwrap();
        assert_eq!(world.pools.find(scope, &name).await.unwrap_err().code(), "unknown-pool");
        assert_eq!(world.pools.forget(scope, &name).await.unwrap_err().code(), "unknown-pool");
        assert_eq!(world.pools.forget(scope, &pool("here")).await.unwrap_err().code(), "invalid-pool");
    });
}

#[test]
fn workers_announce_no_more_than_is_allowed() {
    segno_testkit::run(async {
        let world = World::start().await;
        let many: Vec<CallName> =
            (0..=MAX_POOL_FUNCTIONS).map(|number| function(&format!("F{number}"))).collect();
        let (name, scope) = (pool("Edge"), &world.scope);
        world.pools.announce(scope, &name, "w", &many[1..]).await.unwrap();
        let error = world.pools.announce(scope, &name, "w", &many[..1]).await.unwrap_err();
        assert_eq!(error.code(), "invalid-pool");
        for number in 1..MAX_ANNOUNCED_POOLS {
            world.pools.announce(scope, &pool(&format!("p{number}")), "w", &many[..1]).await.unwrap();
        }
        let error = world.pools.announce(scope, &pool("last"), "w", &many[..1]).await.unwrap_err();
        assert_eq!(error.code(), "invalid-pool");
        let other = Scope::default();
        world.pools.announce(&other, &pool("last"), "w", &many[..1]).await.unwrap();
    });
}

#[test]
fn workers_of_a_tenant_announce_no_more_bytes_than_is_allowed() {
    segno_testkit::run(async {
        let world = World::start().await;
        let scope = &world.scope;
        // About 110 kB each.
        let long: Vec<CallName> =
            (0..900).map(|number| function(&format!("{}{number}", "F".repeat(115)))).collect();
        let mut announced = 0;
        let error = loop {
            let name = pool(&format!("p{announced}"));
            match world.pools.announce(scope, &name, "w", &long).await {
                Ok(()) => announced += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(announced, MAX_ANNOUNCED_BYTES / 110_000);
        assert_eq!(error.code(), "invalid-pool");
        assert!(error.to_string().contains(&MAX_ANNOUNCED_BYTES.to_string()), "{error}");
        // Pools that are there do not grow beyond it either, and what is deleted makes room.
        world.pools.announce(scope, &pool("small"), "w", &[function("f")]).await.unwrap();
        world.pools.announce(scope, &pool("small"), "w", &long).await.unwrap_err();
        world.pools.forget(scope, &pool("p0")).await.unwrap();
        world.pools.announce(scope, &pool("small"), "w", &long).await.unwrap();
        world.pools.announce(&Scope::default(), &pool("p0"), "w", &long).await.unwrap();
    });
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let store: Arc<dyn Store> = MemoryStore::new();
    let bus = Pool { transport: Transport::Bus, ..Pool::new(allow(&["*"])) };
    for (declared, code) in [(Pool::new(allow(&[])), "invalid-pool"), (bus, "bus-not-configured")] {
        let pools = Pools::new(store.clone(), BTreeMap::from([(pool("p"), declared)]));
        let error = pools.err().unwrap();
        assert!(error.code() == code && error.to_string().contains("pools.p."), "{error}");
    }
}

#[test]
fn a_worker_of_the_pool_gets_every_function_and_its_answer_reaches_the_room() {
    segno_testkit::run(async {
        let world = World::start().await;
        let call = world.call("Cloud-01", "New-EntraUser", json!({"upn": "a@b"}));
        let id = world.start_job("step-1042", call.clone()).await;
        assert_eq!(id, "eu/acme/runbook:step-1042");
        world.start_job("step-1043", world.call("Cloud-01", "New-Mailbox", json!(2))).await;
        // Starting it again is nothing.
        world.start_job("step-1042", call).await;
        let leased = world.fetch("Cloud-01").await.unwrap();
        let seen: Call = leased.activity.input.decode().unwrap();
        assert_eq!((seen.function.as_str(), seen.input.as_str()), ("New-EntraUser", r#"{"upn":"a@b"}"#));
        assert_eq!(leased.activity.instance, id);
        let labels = world.env.client().instance(id.as_str()).await.unwrap().labels;
        assert_eq!(labels[FUNCTION_LABEL], "eu/acme/New-EntraUser");
        assert_eq!((Trigger::of(&labels), labels["pool"].as_str()), (Some(Trigger::Runbook), "Cloud-01"));
        let CallState::Leased { until_ms } = world.state("step-1042").await else { panic!("it is leased") };
        assert_eq!(until_ms, leased.lease.expires_at_ms);
        assert_eq!(world.state("step-1043").await, CallState::Waiting);
        assert_eq!(world.state("step-1044").await, CallState::Missing);
        world.queue().complete(&leased.lease, Payload::encode("done").unwrap()).await.unwrap();
        let next = world.fetch("Cloud-01").await.unwrap();
        world.queue().fail(&next.lease, Failure::application("no licence").non_retryable()).await.unwrap();
        assert!(world.fetch("Cloud-01").await.is_none(), "each was started once");
        assert_eq!(world.inbox().await, ["eu/acme/step-1042 \"done\"", "eu/acme/step-1043 no licence"]);
        assert_eq!(world.state("step-1042").await, CallState::Ended(Ok(Payload::encode("done").unwrap())));
        assert!(
            matches!(world.state("step-1043").await, CallState::Ended(Err(failure)) if failure.message == "no licence")
        );
    });
}

#[test]
fn a_job_that_was_not_committed_was_not_started_and_one_can_be_cancelled() {
    segno_testkit::run(async {
        let world = World::start().await;
        let room = world.room();
        let mut batch = RecordBatch::default();
        let put = RecordWrite::Put {
            kind: "room.row".to_owned(),
            id: "eu/acme/1".to_owned(),
            expect: Expect::Version(77),
            due_at_ms: None,
            time_to_live: None,
            body: "dispatched".into(),
        };
        batch.writes.push(put);
        let call = world.call("Cloud-01", "New-EntraUser", json!(1));
        let wanted = RoomCall::new("step-1", call.clone(), Settle::new("room", "step-1"));
        room.add_start(&mut batch, &world.scope, wanted).await.unwrap();
        world.store.commit_records(batch).await.unwrap_err();
        assert_eq!(world.state("step-1").await, CallState::Missing);
        world.start_job("step-1", call).await;
        let mut batch = RecordBatch::default();
        room.add_cancel(&mut batch, &world.scope, "step-1", "the member was removed").unwrap();
        room.add_cancel(&mut batch, &world.scope, "step-2", "there is none").unwrap();
        world.store.commit_records(batch).await.unwrap();
        let ended =
            world.env.client().wait_until_ended("eu/acme/runbook:step-1", Duration::from_secs(60)).await;
        assert!(ended.unwrap().has_ended());
        assert_eq!(world.inbox().await, ["eu/acme/step-1 the member was removed"]);
        assert!(world.fetch("Cloud-01").await.is_none(), "what is cancelled is not handed out");
    });
}

#[test]
fn an_orchestration_of_a_room_is_started_once_and_its_end_reaches_the_room() {
    segno_testkit::run(async {
        let world = World::start().await;
        let room = RoomCalls::new(
            Room::LEDGER,
            &world.functions,
            world.pools.clone(),
            Client::new(world.store.clone()),
        );
        let name = OrchestrationName::new("Greeting").unwrap();
        for input in ["Ada", "Bob"] {
            let (mut batch, input) = (RecordBatch::default(), Payload::encode(input).unwrap());
            let settle = Settle::new("room", "dispatch-1");
            let id = room
                .add_orchestration(&mut batch, &world.scope, ("dispatch-1", settle), (name.clone(), input))
                .await
                .unwrap();
            assert_eq!(id, "eu/acme/dag:dispatch-1");
            world.store.commit_records(batch).await.unwrap();
        }
        let client = world.env.client();
        client.wait_until_ended("eu/acme/dag:dispatch-1", Duration::from_secs(60)).await.unwrap();
        assert_eq!(world.inbox().await, ["eu/acme/dispatch-1 \"Hello, Ada\""]);
        let labels = client.instance("eu/acme/dag:dispatch-1").await.unwrap().labels;
        assert_eq!(Trigger::of(&labels), Some(Trigger::Dag));
    });
}

#[test]
fn a_local_pool_calls_the_function_of_the_catalogue_in_lowercase() {
    segno_testkit::run(async {
        let world = World::start().await;
        world.start_job("step-1", world.call("here", "New-Greeting", json!("Ada"))).await;
        world.env.client().wait_until_ended("eu/acme/runbook:step-1", Duration::from_secs(60)).await.unwrap();
        assert_eq!(world.inbox().await, ["eu/acme/step-1 \"Hello, Ada\""]);
        let unknown = world.prepare(world.call("here", "New-Nothing", json!(1))).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-function");
        world.pools.pause(&world.scope, &pool("here"), None).await.unwrap();
        let paused = world.prepare(world.call("here", "New-Greeting", json!(1))).await.unwrap_err();
        assert_eq!(paused.code(), "pool-paused");
        world.pools.resume(&world.scope, &pool("here")).await.unwrap();
        world.prepare(world.call("here", "New-Greeting", json!("Ada"))).await.unwrap();
    });
}

#[test]
fn a_paused_pool_admits_nothing_on_any_node() {
    segno_testkit::run(async {
        let world = World::start().await;
        let (name, scope) = (pool("Cloud-01"), &world.scope);
        let far = World::pools(world.store.clone()).unwrap().clock(world.clock.clone());
        assert_eq!(far.admit(scope, &name, 5).await.unwrap().calls, 5);
        let paused = world.pools.pause(scope, &name, Some("maintenance".to_owned())).await.unwrap();
        assert_eq!(paused.paused.as_ref().unwrap().reason.as_deref(), Some("maintenance"));
        let again = world.pools.pause(scope, &name, Some("longer".to_owned())).await.unwrap().paused.unwrap();
        assert_eq!((again.at, again.reason.as_deref()), (paused.paused.unwrap().at, Some("longer")));
        assert_eq!(far.admit(scope, &name, 5).await.unwrap().calls, 0);
        assert_eq!(far.admit(&Scope::default(), &name, 5).await.unwrap().calls, 5, "of this tenant alone");
        far.resume(scope, &name).await.unwrap();
        assert_eq!(world.pools.admit(scope, &name, 5).await.unwrap().calls, 5);
        let rest = world.pools.throttled(scope, &name, None).await.unwrap();
        assert_eq!((rest, far.admit(scope, &name, 1).await.unwrap().calls), (Duration::from_secs(2), 0));
        let headroom = far.headroom(scope, &name).await.unwrap();
        assert_eq!((headroom.calls, headroom.rest), (0, Some(rest)), "and is left alone until then");
        segno::clock::sleep(&*world.clock, rest).await;
        assert_eq!(far.admit(scope, &name, 1).await.unwrap().calls, 1);
        assert_eq!(world.pools.pause(scope, &pool("none"), None).await.unwrap_err().code(), "unknown-pool");
        let long = Some("x".repeat(2_000));
        assert_eq!(world.pools.pause(scope, &name, long).await.unwrap_err().code(), "invalid-pool");
    });
}

/// How often a store with a slow disk is written to, and for how long, while 16 fetchers of a node ask for one call at a time.
#[test]
fn fetchers_of_a_node_share_the_commits_of_a_rate() {
    const FETCHERS: usize = 16;
    const ROUNDS: usize = 10;
    segno_testkit::run(async {
        let clock = VirtualClock::auto();
        let commits = Arc::new(AtomicUsize::new(0));
        let plan = Box::new({
            let commits = commits.clone();
            move |_| {
                commits.fetch_add(1, Ordering::Relaxed);
                Fault::Delay(Duration::from_millis(2))
            }
        });
        let store = FaultStore::new(MemoryStore::with_clock(clock.clone()), clock.clone(), plan);
        let rated = Pool { calls_per_second: Some(1_000.0), ..Pool::new(allow(&["*"])) };
        let pools = Pools::new(store, BTreeMap::from([(pool("rated"), rated)])).unwrap().clock(clock.clone());
        let (scope, name) = (Scope::default(), pool("rated"));
        let began_ms = clock.now_ms();
        let fetchers = (0..FETCHERS).map(async |_| {
            let mut calls = 0;
            for _ in 0..ROUNDS {
                calls += pools.admit(&scope, &name, 1).await.unwrap().calls;
            }
            calls
        });
        let calls: usize = segno::join_all(fetchers).await.into_iter().sum();
        let (commits, took_ms) = (commits.load(Ordering::Relaxed), clock.now_ms() - began_ms);
        println!("{calls} calls by {commits} commits in {took_ms} ms");
        assert_eq!(calls, FETCHERS * ROUNDS);
        assert!(commits <= 2 * ROUNDS + 1, "{commits} commits for {calls} calls in {took_ms} ms");
        // What is left of the burst of a second, and not one more.
        let rest = pools.admit(&scope, &name, 10_000).await.unwrap().calls;
        let most = 1_000 + usize::try_from(clock.now_ms() - began_ms).unwrap();
        assert!(calls + rest <= most, "{calls} and {rest} of {most}");
    });
}

#[test]
fn a_fetcher_that_gives_up_leaves_the_others_their_turn() {
    segno_testkit::run(async {
        let clock = VirtualClock::auto();
        let plan = Box::new(|_| Fault::Delay(Duration::from_millis(2)));
        let store = FaultStore::new(MemoryStore::with_clock(clock.clone()), clock.clone(), plan);
        let rated = Pool { calls_per_second: Some(1_000.0), ..Pool::new(allow(&["*"])) };
        let pools = Pools::new(store, BTreeMap::from([(pool("rated"), rated)])).unwrap().clock(clock.clone());
        let (scope, name) = (Scope::default(), pool("rated"));
        let leader = segno::clock::timeout(&*clock, Duration::from_millis(1), pools.admit(&scope, &name, 1));
        let (given_up, served) = segno::join(leader, pools.admit(&scope, &name, 1)).await;
        assert!(given_up.is_none(), "its commit takes longer");
        assert_eq!(served.unwrap().calls, 1);
    });
}

#[test]
fn nothing_is_noted_of_a_pool_that_was_forgotten() {
    segno_testkit::run(async {
        let world = World::start().await;
        let (name, scope) = (pool("Edge"), &world.scope);
        let functions = [CallName::new("Get-Disk").unwrap()];
        world.pools.announce(scope, &name, "w", &functions).await.unwrap();
        world.pools.forget(scope, &name).await.unwrap();
        assert_eq!(world.pools.throttled(scope, &name, None).await.unwrap(), Duration::ZERO);
        let states = ListRecords {
            kind: segno_actions::pools::POOL_STATE_KIND,
            id_prefix: "",
            after_id: None,
            limit: 10,
        };
        assert!(world.store.list_records(states).await.unwrap().is_empty());
    });
}

#[test]
fn a_resume_wakes_all_that_wait_for_the_pool_on_every_node_at_once() {
    segno_testkit::run(async {
        let world = World::start().await;
        let (name, scope) = (pool("Cloud-01"), &world.scope);
        // A node that has read nothing of the pool yet: what it has read counts for a second.
        let far = || World::pools(world.store.clone()).unwrap().clock(world.clock.clone());
        let hour = Duration::from_secs(60 * 60);
        for close in ["pause", "throttle"] {
            let far = far();
            match close {
                "pause" => drop(world.pools.pause(scope, &name, None).await.unwrap()),
                _ => drop(world.pools.throttled(scope, &name, Some(hour)).await.unwrap()),
            }
            assert!(far.headroom(scope, &name).await.unwrap().is_closed);
            let begun_ms = world.clock.now_ms();
            let wait = |pools: &Pools| {
                let (pools, scope, name) = (pools.clone(), scope.clone(), name.clone());
                async move { pools.wait_for_resume(&scope, &name, hour).await.unwrap() }
            };
            // The last one resumes the pool when the others wait.
            let (pools, scope) = (world.pools.clone(), scope.clone());
            let resume = async { drop(pools.resume(&scope, &name).await.unwrap()) };
            segno::join(segno::join(wait(&far), wait(&far)), segno::join(wait(&world.pools), resume)).await;
            assert_eq!(world.clock.now_ms(), begun_ms, "{close}: no time has passed");
            let room = far.headroom(&scope, &name).await.unwrap();
            assert!(room.calls > 0 && !room.is_closed, "{close}: what was read before is forgotten");
        }
        // A resume of before does not wake a fetch that waits for the next one.
        world.pools.pause(scope, &name, None).await.unwrap();
        let begun_ms = world.clock.now_ms();
        far().wait_for_resume(scope, &name, Duration::from_secs(5)).await.unwrap();
        assert_eq!(world.clock.now_ms() - begun_ms, 5_000);
    });
}
