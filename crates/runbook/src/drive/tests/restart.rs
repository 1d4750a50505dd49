//! A process that dies and starts again, and what is told about its batches meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use segno::store::ProviderError;
use serde_json::json;

use super::world::{Reply, World, small_runbook};
use crate::drive::Processes;
use crate::rows::{BatchId, BatchStatus, RowKey};

/// A process of a store that lets in one at a time: all others are gone.
struct TheOnlyOne(&'static str);

#[async_trait]
impl Processes for TheOnlyOne {
    fn id(&self) -> &str {
        self.0
    }

    async fn is_alive(&self, id: &str) -> Result<bool, ProviderError> {
        Ok(id == self.0)
    }
}

/// A batch whose step takes 4 s, and whose driver dies after one.
async fn dead_after_a_second(world: &World, id: &'static str) -> BatchId {
    world.publish(&small_runbook(&[&["one"], &["two"]])).await;
    let batch = world.create(Some(world.now()), &["a"]).await;
    let mut first = world.process_of(world.store.clone(), "node-1", Some(Arc::new(TheOnlyOne(id)))).await;
    world.until("the first step", async || !world.steps(batch).await.is_empty()).await;
    world.pass(1).await;
    first.kill_driver();
    // Functions go on.
    std::mem::forget(first);
    batch
}

fn world() -> World {
    World::new(Arc::new(|_: &str, _: &str, _: &serde_json::Value| Reply::Later(90, json!({}))))
}

#[test]
fn a_restart_takes_up_the_batches_of_a_process_that_is_gone_at_once() {
    segno_testkit::run(async {
        let world = world();
        let batch = dead_after_a_second(&world, "process-1").await;
        let died_at_ms = world.clock.now_ms();
        let processes = Arc::new(TheOnlyOne("process-2"));
        let _second = world.process_of(world.store.clone(), "node-1", Some(processes)).await;
        world.request(batch, "r", crate::message::Action::PauseBatch { reason: None }).await;
        let answered = async || world.runbooks.receipt(&world.scope, batch, "r").await.unwrap().unwrap();
        for _ in 0..20 {
            if answered().await.answered_at.is_some() {
                break;
            }
            world.pass(1).await;
        }
        let answered = answered().await.answered_at.expect("the lease of a dead process is void");
        let waited_ms = answered.as_millisecond() - i64::try_from(died_at_ms).unwrap();
        assert!(waited_ms < 5_000, "{waited_ms} ms");
    });
}

#[test]
fn a_batch_whose_node_is_late_tells_so_until_another_takes_it() {
    segno_testkit::run(async {
        let world = world();
        let batch = dead_after_a_second(&world, "process-1").await;
        let explain = async || world.runbooks.explain(&world.scope, batch, &RowKey::Batch).await.unwrap();
        let before = explain().await;
        assert!(!before.why.contains("late"), "{before:?}");
        world.request(batch, "r", crate::message::Action::PauseBatch { reason: None }).await;
        world.pass(5).await;
        let late = explain().await;
        assert!(late.why.contains("node node-1 holds the batch and is late"), "{late:?}");
        let until = late.wakes_at.expect("the end of the lease");
        assert!(until > world.now(), "{late:?}");
        // No node is left: the batch is free then, and nothing takes it.
        let left = until.duration_since(world.now()).as_secs();
        world.pass(u64::try_from(left).unwrap() + 5).await;
        let free = explain().await;
        assert!(free.why.ends_with("no node has taken the batch"), "{free:?}");
        let _second = world.process(world.store.clone(), "node-2").await;
        world.until_answered(batch, "r").await;
        let paused = explain().await;
        assert!(paused.why.starts_with("the batch is paused"), "{paused:?}");
        assert_eq!(world.batch(batch).await.status, BatchStatus::Active);
    });
}
