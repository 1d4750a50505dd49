//! Metrics of batches, against a story with known counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use segno::store::{Expect, RecordBatch, RecordWrite};
use serde_json::json;

use super::world::{Reply, World};
use crate::drive::INBOX;
use crate::drive::place::BatchPlace;
use crate::telemetry;

/// A step that polls once, and one that fails for a member.
const RUNBOOK: &str = r#"
name: migrate
data_source: {type: manual, primary_key: Key}
phases:
  - name: move
    offset: T-0
    steps:
      - {name: sync, worker_id: here, function: Wait-Sync, poll: {interval: 5m, timeout: 1h}}
      - {name: switch, worker_id: here, function: Switch, params: {Key: "{{Key}}"}}
"#;

#[test]
fn metrics_tell_what_happened_to_batches() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || segno_testkit::run(story()));
    let mut numbers: BTreeMap<String, f64> = BTreeMap::new();
    let mut late = 0;
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
        let name = [&[key.key().name()], &labels[..]].concat().join(" ");
        match value {
            #[expect(clippy::cast_precision_loss, reason = "counts of a short story")]
            DebugValue::Counter(count) => drop(numbers.insert(name, count as f64)),
            DebugValue::Gauge(value) => drop(numbers.insert(name, value.into_inner())),
            DebugValue::Histogram(values) if name == telemetry::LATENESS_SECONDS => {
                late += values.len();
                assert!(values.iter().all(|value| value.into_inner() < 60.0), "{values:?}");
            }
            DebugValue::Histogram(_) => {}
        }
    }
    for (name, labels, expected) in [
        (telemetry::STEPS, " step pending", 4.0),
        (telemetry::STEPS, " step polling", 2.0),
        (telemetry::STEPS, " step succeeded", 3.0),
        (telemetry::STEPS, " step failed", 1.0),
        (telemetry::DISPATCHES, " attempt", 4.0),
        (telemetry::DISPATCHES, " poll", 2.0),
        (telemetry::BATCHES_ENDED, " failed", 1.0),
        (telemetry::UNREADABLE_MESSAGES, "", 1.0),
        (telemetry::INBOX_DEPTH, "", 0.0),
        (telemetry::BATCHES_HELD, "", 0.0),
    ] {
        let name = format!("{name}{labels}");
        assert_eq!(numbers.get(&name), Some(&expected), "{name} of {numbers:#?}");
    }
    assert!(late >= 2, "two polls were due: {late}");
}

async fn story() {
    let world = World::new(Arc::new(|function, job, input| match function {
        "wait-sync" if !job.contains("poll") => Reply::Done(json!({"complete": false})),
        "switch" if input["Key"] == "bad" => Reply::Fail("no licence"),
        _ => Reply::Done(json!({"complete": true})),
    }));
    world.publish(RUNBOOK).await;
    let batch = world.create(Some(world.now()), &["ada", "bad"]).await;
    let junk = RecordWrite::Put {
        kind: INBOX.to_owned(),
        id: format!("{}request-junk", BatchPlace::new(world.scope.clone(), batch).folder()),
        expect: Expect::Absent,
        due_at_ms: Some(1),
        time_to_live: None,
        body: b"junk"[..].into(),
    };
    world.store.commit_records(RecordBatch { writes: vec![junk], ..RecordBatch::default() }).await.unwrap();
    let _process = world.process(world.store.clone(), "node").await;
    world.until_ended(batch).await;
    // Until the node has released it.
    world.pass(60).await;
}
