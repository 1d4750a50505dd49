//! The orchestration `invoke`, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use segno::client::{OnConflict, StartCall};
use segno::store::memory::MemoryStore;
use segno::store::{ErrorKind, Store};
use segno::work::{FetchWork, LockLife, TagFilter, WorkQueue};
use segno::{ActivityContext, Category, Client, Context, Failure, Orchestration, Payload, Registry};
use segno_actions::functions::{
    Call, FUNCTION, Function, FunctionError, Functions, FunctionsBuilder, HumanDuration, INVOKE, Invocation,
    InvokeRequest, RetryPolicy, Route, Scope, Tag, invocation_id, is_built_in, remote_tag,
};
use segno_testkit::TestEnv;
use segno_testkit::clock::VirtualClock;
use segno_testkit::crash::CrashTest;
use serde_json::{Value, json};

use crate::support::{declaration, name};

/// An environment in virtual time whose nodes have these functions.
struct World {
    env: TestEnv,
    functions: Functions,
    calls: AtomicU32,
}

impl World {
    async fn start(declare: impl FnOnce(FunctionsBuilder) -> FunctionsBuilder) -> World {
        let clock = VirtualClock::auto();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let builder = Functions::builder(store.clone()).clock(clock.clone());
        let functions = declare(builder).build().unwrap();
        let registry = functions.register(Registry::builder()).build().unwrap();
        let env = TestEnv::builder(registry).store(store, clock).start().await;
        World { env, functions, calls: AtomicU32::new(0) }
    }

    async fn prepare(&self, request: InvokeRequest) -> Result<Invocation, FunctionError> {
        self.functions.prepare(&Scope::default(), request).await
    }

    /// A start under a key of its own.
    fn calling(&self, invocation: Invocation) -> StartCall<Payload> {
        let key = self.calls.fetch_add(1, Ordering::SeqCst).to_string();
        let id = invocation_id(&invocation.scope(), &key);
        self.env.client().start(INVOKE, invocation).id(id)
    }

    async fn call(&self, function: &str, input: Value) -> Result<Value, Failure> {
        let invocation = self.prepare(request(function, input)).await.unwrap();
        let result = self.calling(invocation).result().await;
        result
            .map(|payload| payload.decode().unwrap())
            .map_err(|error| error.failure().cloned().unwrap_or_else(|| panic!("{error}")))
    }
}

fn request(function: &str, input: Value) -> InvokeRequest {
    InvokeRequest::new(name(function), Payload::encode(&input).unwrap())
}

async fn double(_: ActivityContext, number: u32) -> Result<u32, Failure> {
    Ok(2 * number)
}

#[test]
fn code_is_called_with_json() {
    segno_testkit::run(async {
        let world = World::start(|builder| builder.rust("double", double)).await;
        assert_eq!(world.call("double", json!(21)).await.unwrap(), json!(42));
        let failure = world.call("double", json!("x")).await.unwrap_err();
        assert!(failure.has_code("payload-mismatch"), "{failure:?}");
        assert_eq!(failure.category, Category::Configuration);
    });
}

#[test]
fn starting_twice_is_starting_once() {
    segno_testkit::run(async {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let count = move |_: ActivityContext, (): ()| {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Failure>(run) }
        };
        let world = World::start(|builder| builder.rust("count", count)).await;
        let id = invocation_id(&Scope::default(), "order 7");
        for created in [true, false, false] {
            let invocation = world.prepare(request("count", Value::Null)).await.unwrap();
            let start = world.env.client().start(INVOKE, invocation).id(id.as_str());
            let started = start.on_conflict(OnConflict::UseExisting).await.unwrap();
            assert_eq!(started.created(), created);
            world.env.client().result(INVOKE, id.as_str()).await.unwrap();
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn failures_are_tried_again_as_declared_or_asked() {
    segno_testkit::run(async {
        let flaky = |ctx: ActivityContext, good_at: u32| async move {
            if ctx.attempt() >= good_at { Ok(ctx.attempt()) } else { Err(Failure::application("not yet")) }
        };
        let declared = "executor = \"rust\"\nretry = { attempts = 3 }";
        let world = World::start(|builder| {
            builder.rust("flaky", flaky).declare(name("flaky"), declaration(declared))
        })
        .await;
        assert_eq!(world.call("flaky", json!(3)).await.unwrap(), json!(3));
        assert_eq!(world.call("flaky", json!(4)).await.unwrap_err().message, "not yet");
        let retry = Some(RetryPolicy::attempts(5));
        let asked = InvokeRequest { retry, ..request("flaky", json!(5)) };
        let invocation = world.prepare(asked).await.unwrap();
        let result = world.calling(invocation).result().await.unwrap();
        assert_eq!(result.as_str(), "5");
    });
}

#[test]
fn an_attempt_that_takes_too_long_is_ended() {
    segno_testkit::run(async {
        let hang = |ctx: ActivityContext, (): ()| async move {
            ctx.cancelled().await;
            Ok::<(), Failure>(())
        };
        let declared = "executor = \"rust\"\ntimeout = \"5s\"";
        let world =
            World::start(|builder| builder.rust("hang", hang).declare(name("hang"), declaration(declared)))
                .await;
        let before_ms = segno::clock::Clock::now_ms(&**world.env.clock());
        let failure = world.call("hang", Value::Null).await.unwrap_err();
        assert!(failure.has_code("attempt-timeout"), "{failure:?}");
        let took_ms = segno::clock::Clock::now_ms(&**world.env.clock()) - before_ms;
        assert!((5_000..6_000).contains(&took_ms), "{took_ms}");
    });
}

#[test]
fn a_request_is_checked_before_anything_is_queued() {
    segno_testkit::run(async {
        let declared = "executor = \"rust\"\ninput_schema = { type = \"integer\", minimum = 1 }";
        let world = World::start(|builder| {
            builder.rust("double", double).declare(name("double"), declaration(declared))
        })
        .await;
        let error = world.prepare(request("double", json!(0))).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("invalid-input", ErrorKind::Invalid));
        assert!(error.to_string().contains("the input: "), "{error}");
        let error = world.prepare(request("treble", json!(1))).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("unknown-function", ErrorKind::NotFound));
        let asked = InvokeRequest { retry: Some(RetryPolicy::attempts(0)), ..request("double", json!(1)) };
        let error = world.prepare(asked).await.unwrap_err();
        assert_eq!((error.code(), error.kind()), ("invalid-invocation", ErrorKind::Invalid));
        assert_eq!(world.call("double", json!(1)).await.unwrap(), json!(2));
    });
}

#[test]
fn a_request_goes_before_the_declaration() {
    segno_testkit::run(async {
        let declared = "executor = \"remote\"\ntimeout = \"5s\"\ndeadline = \"1m\"\nheartbeat_timeout = \"2s\"\ntag = \"gpu\"";
        let world = World::start(|builder| builder.declare(name("far"), declaration(declared))).await;
        let plain = world.prepare(request("far", Value::Null)).await.unwrap();
        assert_eq!(plain.route, Route::Remote { tag: Some(Tag::new("gpu").unwrap()) });
        let limits = |invocation: &Invocation| {
            (invocation.timeout_ms, invocation.deadline_ms, invocation.heartbeat_timeout_ms)
        };
        assert_eq!(limits(&plain), (Some(5_000), Some(60_000), Some(2_000)));
        let asked = InvokeRequest {
            tag: Some(Tag::new("cpu").unwrap()),
            timeout: Some(HumanDuration::from_secs(1)),
            deadline: Some(HumanDuration::from_secs(2)),
            heartbeat_timeout: Some(HumanDuration::from_secs(3)),
            ..request("far", Value::Null)
        };
        let asked = world.prepare(asked).await.unwrap();
        assert_eq!(asked.route, Route::Remote { tag: Some(Tag::new("cpu").unwrap()) });
        assert_eq!(limits(&asked), (Some(1_000), Some(2_000), Some(3_000)));
        let json: InvokeRequest = serde_json::from_str(r#"{"function":"far","timeout":"1s"}"#).unwrap();
        assert_eq!(json.input, Payload::null());
        assert!(serde_json::from_str::<InvokeRequest>(r#"{"function":"far","timeuot":"1s"}"#).is_err());
    });
}

#[test]
fn a_remote_call_waits_under_its_tag_for_a_worker() {
    segno_testkit::run(async {
        let world =
            World::start(|builder| builder.declare(name("far"), declaration("executor = \"remote\""))).await;
        let (client, clock) = (world.env.client(), world.env.clock().clone());
        let (scope, gpu) = (Scope::new("eu", "acme").unwrap(), Tag::new("gpu").unwrap());
        let asked = InvokeRequest { tag: Some(gpu.clone()), ..request("far", json!({ "n": 1 })) };
        let invocation = world.functions.prepare(&scope, asked).await.unwrap();
        let instance = world.calling(invocation).await.unwrap().id().to_owned();
        let queue = WorkQueue::builder(world.env.store().clone()).clock(clock).build().unwrap();
        let fetch = FetchWork {
            tags: TagFilter::tags([remote_tag(&scope, &name("far").into(), Some(&gpu))]),
            max_items: 10,
            lease: Duration::from_secs(60),
            wait: Duration::from_secs(60),
            life: LockLife::Durable,
        };
        let leased = queue.fetch(fetch).await.unwrap().remove(0);
        assert_eq!(leased.activity.name, FUNCTION.name());
        let call: Call = leased.activity.input.decode().unwrap();
        assert_eq!((call.function, call.input.as_str()), (name("far").into(), r#"{"n":1}"#));
        assert_eq!((call.namespace, call.tenant), (scope.namespace, scope.tenant));
        queue.complete(&leased.lease, Payload::encode(&"done").unwrap()).await.unwrap();
        assert_eq!(client.result(INVOKE, instance).await.unwrap().as_str(), "\"done\"");
    });
}

#[test]
fn a_function_that_is_gone_when_its_turn_comes_fails_for_good() {
    segno_testkit::run(async {
        let world = World::start(|builder| builder).await;
        let scope = Scope::default();
        let hook: Function = declaration("executor = \"http\"\nurl = \"https://example.org\"");
        world.functions.create(&scope, &name("hook"), &hook).await.unwrap();
        let asked = InvokeRequest { retry: Some(RetryPolicy::attempts(9)), ..request("hook", json!(1)) };
        let invocation = world.prepare(asked).await.unwrap();
        world.functions.delete(&scope, &name("hook"), None).await.unwrap();
        let error = world.calling(invocation.clone()).result().await.unwrap_err();
        let failure = error.failure().unwrap();
        assert!(failure.has_code("unknown-function") && !failure.retryable, "{failure:?}");
        world.functions.create(&scope, &name("hook"), &declaration("executor = \"remote\"")).await.unwrap();
        let error = world.calling(invocation).result().await.unwrap_err();
        assert!(error.failure().unwrap().has_code("function-is-remote"), "{error}");
    });
}

#[test]
fn a_call_of_another_scope_than_its_instance_is_refused_and_nothing_of_it_runs() {
    segno_testkit::run(async {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = runs.clone();
        let count = move |_: ActivityContext, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Failure>(()) }
        };
        let world = World::start(|builder| builder.rust("count", count)).await;
        let client = world.env.client();
        let scope = Scope::new("eu", "acme").unwrap();
        let invocation = world.functions.prepare(&scope, request("count", Value::Null)).await.unwrap();
        for id in ["order-7", "default/default/invoke:k", "eu/acme2/invoke:k", "eu/acme"] {
            let error = client.start(INVOKE, invocation.clone()).id(id).result().await.unwrap_err();
            let failure = error.failure().unwrap();
            assert!(failure.has_code("scope-mismatch") && !failure.retryable, "{id}: {failure:?}");
            assert_eq!(failure.category, Category::Configuration);
            let history = client.history(id).await.unwrap();
            let asked = history.iter().any(|event| event.kind.name() == "ActivityScheduled");
            assert!(!asked, "{id}: {history:?}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        client.start(INVOKE, invocation).id("eu/acme/anything").result().await.unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn an_attempt_of_another_scope_than_its_instance_is_refused() {
    const RELAY: Orchestration<Call, Payload> = Orchestration::new("relay");
    segno_testkit::run(async {
        let clock = VirtualClock::auto();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let functions = Functions::builder(store.clone()).clock(clock.clone()).rust("double", double);
        let functions = functions.build().unwrap();
        let relay = |ctx: Context, call: Call| async move { ctx.activity(FUNCTION, call).await };
        let registry = functions.register(Registry::builder()).orchestration(RELAY, relay).build().unwrap();
        let env = TestEnv::builder(registry).store(store, clock).start().await;
        let call = json!({ "namespace": "eu", "tenant": "acme", "function": "double", "input": 21 });
        let call: Call = serde_json::from_value(call).unwrap();
        let error = env.client().start(RELAY, call.clone()).id("eu/other/x").result().await.unwrap_err();
        assert!(error.failure().unwrap().has_code("scope-mismatch"), "{error}");
        let doubled = env.client().start(RELAY, call).id("eu/acme/x").result().await.unwrap();
        assert_eq!(doubled.as_str(), "42");
    });
}

#[test]
fn what_is_called_again_is_decided_afresh_in_the_scope_of_the_caller() {
    segno_testkit::run(async {
        let declared = "executor = \"rust\"\ntimeout = \"5s\"\ninput_schema = { type = \"integer\" }";
        let world = World::start(|builder| {
            builder.rust("double", double).declare(name("double"), declaration(declared))
        })
        .await;
        let scope = Scope::new("eu", "acme").unwrap();
        let written = json!({
            "namespace": "other", "tenant": "other", "function": "double", "input": 21,
            "route": { "remote": {} }, "retry": { "max": 9, "first": 0, "factor": 1.0, "cap": 0, "jitter": 0.0 },
            "gives_up_when_lost": true, "settle": { "kind": "action", "id": "x", "keep_ms": 1 },
        });
        let again =
            world.functions.prepare_again(&scope, &Payload::encode(&written).unwrap(), None).await.unwrap();
        assert_eq!(again, world.functions.prepare(&scope, request("double", json!(21))).await.unwrap());
        for (wrong, code) in [
            (json!({ "function": "double", "input": "x" }), "invalid-input"),
            (json!({ "function": "treble", "input": 1 }), "unknown-function"),
            (json!({ "name": "Ada" }), "invalid-invocation"),
        ] {
            let wrong = Payload::encode(&wrong).unwrap();
            assert_eq!(world.functions.prepare_again(&scope, &wrong, None).await.unwrap_err().code(), code);
        }
    });
}

#[test]
fn every_orchestration_of_ours_is_known_as_built_in() {
    segno_testkit::run(async {
        let world = World::start(|builder| builder).await;
        let registered = world.functions.register(Registry::builder()).build().unwrap();
        let names = registered.orchestration_names();
        assert!(!names.is_empty() && names.iter().all(|(name, _)| is_built_in(name)), "{names:?}");
        assert!(!is_built_in("greet"));
    });
}

#[test]
fn a_crash_at_any_commit_changes_nothing() {
    // The catalogue has configured functions only and never waits, so that one serves all the runs.
    let store: Arc<dyn Store> = MemoryStore::new();
    let flaky = |ctx: ActivityContext, number: u32| async move {
        if ctx.attempt() == 1 { Err(Failure::application("once")) } else { Ok(number + 1) }
    };
    let declared = "executor = \"rust\"\nretry = { attempts = 2, initial_delay = \"1ms\" }";
    let functions = Functions::builder(store)
        .rust("flaky", flaky)
        .declare(name("flaky"), declaration(declared))
        .build()
        .unwrap();
    let registry = functions.register(Registry::builder()).build().unwrap();
    let report = CrashTest::new(registry, |outside| {
        let functions = functions.clone();
        async move {
            let invocation = functions.prepare(&Scope::default(), request("flaky", json!(1))).await.unwrap();
            run_once(&outside.client, invocation).await
        }
    })
    .run();
    assert!(report.commits >= 4, "{report:?}");
}

async fn run_once(client: &Client, invocation: Invocation) -> String {
    let id = invocation_id(&Scope::default(), "crash");
    let start = client.start(INVOKE, invocation).id(id).on_conflict(OnConflict::UseExisting);
    start.result().await.unwrap().as_str().to_owned()
}
