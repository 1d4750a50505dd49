//! Every counter against a scenario with known counts.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use segno::{Context, Failure, Orchestration, Registry, Runtime, telemetry};

use crate::support::{ECHO, World};

const MIXED: Orchestration<u32, u32> = Orchestration::new("mixed");

async fn mixed(ctx: Context, n: u32) -> Result<u32, Failure> {
    if n == 0 {
        return Err(Failure::application("zero"));
    }
    for _ in 0..5 {
        ctx.activity(ECHO, "x".to_owned()).await?;
    }
    ctx.run("step", || async { Ok(()) }).await?;
    ctx.sleep(Duration::from_secs(1)).await?;
    if n > 1 { ctx.continue_as_new(n - 1).await } else { Ok(n) }
}

#[tokio::test(start_paused = true)]
async fn counters_tell_what_happened() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    let registry = Registry::builder()
        .activity(ECHO, |_, text: String| async move { Ok(text) })
        .orchestration(MIXED, mixed)
        .build()
        .unwrap();
    let builder = Runtime::builder(world.store.clone()).registry(registry);
    let node = builder.clock(world.clock.clone()).start().await.unwrap();
    for i in 0..10 {
        world.client.start(MIXED, 2).id(format!("two-{i}")).await.unwrap();
    }
    world.client.start(MIXED, 0).id("zero").await.unwrap();
    for i in 0..10 {
        world.client.result(MIXED, format!("two-{i}")).await.unwrap();
    }
    world.client.wait_until_ended("zero", Duration::MAX).await.unwrap();
    node.shutdown(Duration::from_secs(1)).await;

    let mut counters = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<String> = key.key().labels().map(|label| label.value().to_owned()).collect();
        if let DebugValue::Counter(count) = value {
            counters.insert(format!("{}{:?}", key.key().name(), labels), count);
        }
    }
    let expected = [
        (telemetry::INSTANCES_STARTED, "[]", 11),
        (telemetry::INSTANCES_ENDED, r#"["completed"]"#, 10),
        (telemetry::INSTANCES_ENDED, r#"["failed"]"#, 1),
        (telemetry::CONTINUED_AS_NEW, "[]", 10),
        (telemetry::ATTEMPTS_QUEUED, "[]", 100),
        (telemetry::ACTIVITY_ATTEMPTS, r#"["completed"]"#, 100),
        (telemetry::STEPS_RUN, "[]", 20),
        // Each execution: start, five activities, the step, the timer.
        (telemetry::TURNS, "[]", 1 + 20 * 8),
    ];
    for (name, labels, count) in expected {
        assert_eq!(counters.get(&format!("{name}{labels}")), Some(&count), "{name}{labels} of {counters:#?}");
    }
    assert!(!counters.contains_key(&format!("{}[\"turn\"]", telemetry::POISONED)));
}
