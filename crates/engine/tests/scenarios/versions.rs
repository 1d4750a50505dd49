//! Versions side by side, and code that is not there.

use segno::published;
use segno::store::{DispatcherCapabilityFilter, ExecutionStatus, InstanceQuery, SemverRange, engine_version};
use segno::{
    Category, Code, Context, Failure, Orchestration, Registry, RegistryBuilder, RuntimeOptions, Signal,
};

use crate::support::{World, days, in_both_modes, secs};

const MAIN: Orchestration<u32, String> = Orchestration::new("main");
const PARENT: Orchestration<u32, String> = Orchestration::new("parent");
const GO: Signal<u32> = Signal::new("go");

/// An orchestration that waits for a signal if told so, and gives its version.
fn with_versions(versions: &[&'static str]) -> RegistryBuilder {
    let mut builder = Registry::builder();
    for version in versions {
        builder = builder.orchestration(MAIN.at(*version), async |ctx: Context, n| {
            if n == 1 {
                ctx.signal(GO).await?;
            }
            Ok::<_, Failure>(ctx.orchestration_version().to_owned())
        });
    }
    builder
}

#[tokio::test(start_paused = true)]
async fn a_start_gets_the_latest_version_or_the_one_it_asks_for() {
    in_both_modes(|world| async move {
        let registry = with_versions(&["1.0.0", "1.10.0", "1.9.0", "2.0.0-beta.1"]).build().unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("latest").result().await.unwrap(), "2.0.0-beta.1");
        assert_eq!(world.client.start(MAIN.at("1.9.0"), 0).id("exact").result().await.unwrap(), "1.9.0");
        let instance = world.client.instance("exact").await.unwrap();
        assert_eq!(instance.version.as_deref(), Some("1.9.0"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_default_version_beats_the_latest() {
    let world = World::resident();
    let registry = with_versions(&["1.0.0", "2.0.0"]).default_version(MAIN.at("1.0.0")).build().unwrap();
    let _node = world.node(&registry).await;
    assert_eq!(world.client.start(MAIN, 0).id("default").result().await.unwrap(), "1.0.0");
    assert_eq!(world.client.start(MAIN.at("2.0.0"), 0).id("exact").result().await.unwrap(), "2.0.0");
}

#[tokio::test(start_paused = true)]
async fn a_running_instance_stays_on_its_version_when_new_code_comes() {
    in_both_modes(|world| async move {
        let node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
        world.client.start(MAIN, 1).id("old").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        let _node = world.node(&with_versions(&["1.0.0", "2.0.0"]).build().unwrap()).await;
        world.client.start(MAIN, 1).id("new").await.unwrap();
        for id in ["old", "new"] {
            world.client.signal(id, GO, 1).await.unwrap();
        }
        assert_eq!(world.output::<String>("old").await, "1.0.0");
        assert_eq!(world.output::<String>("new").await, "2.0.0");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn children_and_continue_as_new_choose_their_version() {
    in_both_modes(|world| async move {
        let registry = with_versions(&["1.0.0", "2.0.0"])
            .orchestration(PARENT.at("1.0.0"), async |ctx: Context, n| {
                let old = ctx.child(MAIN.at("1.0.0"), 0).await?;
                let latest = ctx.child(MAIN, 0).await?;
                let detached = ctx.start_detached(MAIN.at("1.0.0"), 0).id("detached").await?;
                assert_eq!(
                    (old.as_str(), latest.as_str(), detached.as_str()),
                    ("1.0.0", "2.0.0", "detached")
                );
                match n {
                    0 => ctx.continue_as_new(9).version("1.5.0").await,
                    _ => ctx.continue_as_new(9).await,
                }
            })
            .orchestration(PARENT.at("1.5.0"), async |_, _| Ok("1.5.0".to_owned()))
            .orchestration(PARENT.at("3.0.0"), async |_, _| Ok("3.0.0".to_owned()))
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(PARENT.at("1.0.0"), 0).id("a").result().await.unwrap(), "1.5.0");
        assert_eq!(world.client.start(PARENT.at("1.0.0"), 1).id("b").result().await.unwrap(), "3.0.0");
        assert_eq!(world.output::<String>("detached").await, "1.0.0");
        assert_eq!(world.client.instance("b").await.unwrap().version.as_deref(), Some("3.0.0"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unregistered_code_waits_for_the_node_that_brings_it() {
    in_both_modes(|world| async move {
        let node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
        world.client.start(MAIN.at("2.0.0"), 0).id("version").await.unwrap();
        world.client.start(PARENT, 0).id("name").await.unwrap();
        world.pass(secs(10 * 60)).await;
        node.shutdown(secs(1)).await;
        let registry = with_versions(&["1.0.0", "2.0.0"])
            .orchestration(PARENT, async |_, _| Ok("here".to_owned()))
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<String>("version").await, "2.0.0");
        assert_eq!(world.output::<String>("name").await, "here");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_that_nobody_registers_fails_as_configuration_in_the_end() {
    in_both_modes(|world| async move {
        let _node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN.at("9.9.9"), 0).id("a").label("k", "v").await.unwrap();
        let failure = world.failure("a").await;
        assert_eq!(failure.category, Category::Configuration);
        assert!(failure.has_code("unregistered") && failure.message.contains("9.9.9"), "{failure}");
        assert_eq!(world.now_ms() - begin_ms, 15 * 60 * 1_000);
        let instance = world.client.instance("a").await.unwrap();
        assert_eq!((instance.orchestration.as_deref(), instance.labels["k"].as_str()), (Some("main"), "v"));
        assert_eq!(world.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        world.histories_need_not_fit_the_code();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_instance_whose_code_is_gone_waits_and_goes_on_when_it_is_back() {
    in_both_modes(|world| async move {
        let node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
        world.client.start(MAIN, 1).id("a").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        let node = world.node(&with_versions(&["2.0.0"]).build().unwrap()).await;
        world.client.signal("a", GO, 1).await.unwrap();
        world.pass(secs(60)).await;
        assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Running);
        node.shutdown(secs(1)).await;
        let _node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
        assert_eq!(world.output::<String>("a").await, "1.0.0");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_a_node_cannot_replay_is_left_to_one_that_can() {
    let world = World::resident();
    let registry = with_versions(&["1.0.0"]).build().unwrap();
    let node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.settle().await;
    node.shutdown(secs(1)).await;
    let old = SemverRange { min: semver::Version::new(0, 0, 0), max: semver::Version::new(0, 0, 1) };
    let capabilities = DispatcherCapabilityFilter { supported_versions: vec![old] };
    let options = RuntimeOptions { capabilities, node_id: Some("old".to_owned()), ..world.options() };
    assert!(engine_version() > semver::Version::new(0, 0, 1));
    let _old = world.node_with(&registry, options).await;
    world.client.signal("a", GO, 1).await.unwrap();
    world.pass(secs(3_600)).await;
    assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Running);
    let _new = world.node(&registry).await;
    assert_eq!(world.output::<String>("a").await, "1.0.0");
}

#[tokio::test(start_paused = true)]
async fn bad_registrations_are_refused() {
    let twice = with_versions(&["1.0.0", "1.0.0"]).build();
    assert_eq!(twice.err().unwrap().code(), Code::DuplicateRegistration);
    assert_eq!(with_versions(&["1"]).build().err().unwrap().code(), Code::InvalidVersion);
    let missing = with_versions(&["1.0.0"]).default_version(MAIN.at("2.0.0")).build();
    assert_eq!(missing.err().unwrap().code(), Code::InvalidVersion);
    let unversioned = with_versions(&["1.0.0"]).default_version(MAIN).build();
    assert_eq!(unversioned.err().unwrap().code(), Code::InvalidVersion);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_code_fails_nothing_that_other_nodes_go_on_with() {
    const BUSY: Orchestration<(), ()> = Orchestration::new("busy");
    let world = World::resident();
    let clock = world.clock.clone();
    let busy = move |ctx: Context, ()| {
        let clock = clock.clone();
        ctx.run("busy", move || {
            let clock = clock.clone();
            async move {
                segno::clock::sleep(&*clock, secs(20 * 60)).await;
                Ok::<_, Failure>(())
            }
        })
    };
    let without = with_versions(&["2.0.0"]).orchestration(BUSY, busy).build().unwrap();
    let with = with_versions(&["1.0.0"]).build().unwrap();
    let one_at_a_time = RuntimeOptions { orchestration_concurrency: 1, ..world.options() };
    let _without = world.bystander(&without, one_at_a_time).await;
    // The node without the code sees the start, is busy while another node does it, and sees the next turn.
    world.client.start(MAIN.at("1.0.0"), 1).id("a").await.unwrap();
    world.settle().await;
    world.client.start(BUSY, ()).id("busy").await.unwrap();
    world.settle().await;
    let node = world.node(&with).await;
    world.pass(secs(20 * 60)).await;
    node.shutdown(secs(1)).await;
    world.client.signal("a", GO, 1).await.unwrap();
    world.pass(secs(2)).await;
    assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Running);
}

#[tokio::test(start_paused = true)]
async fn a_start_of_unregistered_code_is_pending_from_its_first_turn_and_can_be_cancelled_at_once() {
    let world = World::resident();
    world.client.start(PARENT, 0).id("a").label("k", "v").await.unwrap();
    // Before any node has looked at it, its time is that of the start.
    let queued = world.client.instance("a").await.unwrap();
    world.pass(secs(100)).await;
    assert_eq!(world.client.instance("a").await.unwrap(), queued);
    let _node = world.node(&with_versions(&["1.0.0"]).build().unwrap()).await;
    world.settle().await;
    let pending = InstanceQuery { statuses: [ExecutionStatus::Pending].into(), ..InstanceQuery::default() };
    let listed = world.client.list(pending).await.unwrap().instances;
    let first = listed.first().expect("every accepted start is listed");
    assert_eq!((first.orchestration.as_deref(), first.labels["k"].as_str()), (Some("parent"), "v"));
    assert_eq!(world.history("a").await, []);
    world.client.signal("a", GO, 1).await.unwrap();
    world.pass(secs(300)).await;
    let later = world.client.instance("a").await.unwrap();
    assert_eq!((later.created_at_ms, later.status), (first.created_at_ms, ExecutionStatus::Pending));
    // A cancellation does not wait for the end of a pause of up to a minute.
    let asked_ms = world.now_ms();
    world.client.cancel("a", "misspelled").await.unwrap();
    assert_eq!(world.ended("a").await.status, ExecutionStatus::Cancelled);
    assert!(world.now_ms() - asked_ms < 100, "{} ms", world.now_ms() - asked_ms);
}

#[tokio::test(start_paused = true)]
async fn the_names_of_a_node_are_published_and_known_for_a_day_after_it() {
    let world = World::resident();
    let registry = with_versions(&["1.0.0", "1.2.0"]).build().unwrap();
    let (one, other) = (world.node(&registry).await, world.node(&registry).await);
    world.pass(days(3)).await;
    let published = published::published(&*world.store, None, 10).await.unwrap();
    assert_eq!(published.len(), 1);
    assert_eq!(
        (published[0].name.as_str(), &*published[0].versions),
        ("main", &["1.0.0".to_owned(), "1.2.0".to_owned()][..])
    );
    one.shutdown(secs(1)).await;
    other.shutdown(secs(1)).await;
    world.pass(secs(22 * 60 * 60)).await;
    assert!(published::is_published(&*world.store, "main").await.unwrap());
    world.pass(secs(3 * 60 * 60)).await;
    assert!(!published::is_published(&*world.store, "main").await.unwrap());
}
