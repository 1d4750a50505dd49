//! Calls that are looked after: ended, missing, leased, waiting for a pool; and a node that stops
//! in order.

use std::sync::Arc;
use std::time::Duration;

use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno::work::{FetchWork, LeasedActivity, LockLife, TagFilter, WorkQueue};
use segno::{Client, Payload};
use segno_actions::functions::{CallName, PoolName, pool_tag};
use serde_json::json;

use super::world::{Reply, World, all_succeed, pools, small_runbook};
use crate::drive::{Driver, INBOX};
use crate::rows::{BatchId, BatchStatus, WorkStatus};

/// Workers that take so many seconds.
fn slow_world(seconds: u32) -> World {
    World::new(Arc::new(move |_, _, _| Reply::Later(seconds, json!({"Id": "x"}))))
}

/// A batch of one member with one step, whose job is `step-1`.
async fn one_step(world: &World, pool: &str) -> BatchId {
    let yaml = small_runbook(&[&["one"]]).replace("worker_id: here", &format!("worker_id: {pool}"));
    world.publish(&yaml).await;
    let batch = world.create(Some(world.now()), &["a"]).await;
    let is_sent = async || {
        let step = world.step(batch, "a", "one").await;
        step.is_some_and(|step| step.work.status == WorkStatus::Dispatched)
    };
    world.until("the dispatch", is_sent).await;
    batch
}

async fn fetch(world: &World, pool: &str) -> Option<LeasedActivity> {
    let request = FetchWork {
        tags: TagFilter::tags([pool_tag(&world.scope, &PoolName::new(pool).unwrap())]),
        max_items: 1,
        lease: Duration::from_secs(30),
        wait: Duration::from_secs(20 * 60),
        life: LockLife::Durable,
    };
    queue(world).fetch(request).await.unwrap().pop()
}

fn queue(world: &World) -> WorkQueue {
    WorkQueue::builder(world.store.clone()).clock(world.clock.clone()).build().unwrap()
}

#[test]
fn a_call_that_a_worker_has_may_take_longer_than_the_dispatch_timeout() {
    segno_testkit::run(async {
        let world = slow_world(3 * 60 * 60);
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = one_step(&world, "here").await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        assert_eq!(world.attempts.lock().unwrap()["step-1"], 1);
        drop(process);
    });
}

#[test]
fn the_outcome_of_a_call_is_found_when_its_result_was_lost() {
    segno_testkit::run(async {
        let world = slow_world(60);
        let mut process = world.process(world.store.clone(), "node-1").await;
        let batch = one_step(&world, "here").await;
        process.kill_driver();
        world.pass(300).await;
        let all = ListRecords { kind: INBOX, limit: 10, ..ListRecords::default() };
        let results = world.store.list_records(all).await.unwrap();
        assert_eq!(results.len(), 1, "the call has ended, and no driver was there");
        let lost = RecordWrite::Delete {
            kind: INBOX.to_owned(),
            id: results[0].id.clone(),
            expect: Expect::Anything,
        };
        let writes = RecordBatch { writes: vec![lost], ..RecordBatch::default() };
        world.store.commit_records(writes).await.unwrap();
        let second = world.process(world.store.clone(), "node-2").await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        assert_eq!(world.attempts.lock().unwrap()["step-1"], 1, "it was not called again");
        drop((process, second));
    });
}

#[test]
fn a_call_that_has_disappeared_is_started_again_under_its_id() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = one_step(&world, "remote").await;
        let client = Client::new(world.store.clone());
        client.delete("eu/acme/runbook:step-1", true).await.unwrap();
        let leased = fetch(&world, "remote").await.expect("it is handed out after the next look");
        assert_eq!(leased.activity.instance, "eu/acme/runbook:step-1");
        queue(&world).complete(&leased.lease, Payload::encode(&json!({"Id": "7"})).unwrap()).await.unwrap();
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        let step = world.step(batch, "a", "one").await.unwrap().work;
        assert_eq!(step.result_json.as_deref(), Some(r#"{"Id":"7"}"#));
        drop(process);
    });
}

#[test]
fn a_job_for_a_pool_that_is_announced_later_is_sent_then() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = one_step(&world, "Edge-01").await;
        world.pass(60).await;
        assert!(world.instances().await.is_empty(), "there is nothing to send it to");
        let (name, function) = (PoolName::new("Edge-01").unwrap(), CallName::new("Switch").unwrap());
        pools(world.store.clone()).announce(&world.scope, &name, "w", &[function]).await.unwrap();
        let leased = fetch(&world, "Edge-01").await.expect("it is handed out after the next look");
        queue(&world).complete(&leased.lease, Payload::encode(&json!({})).unwrap()).await.unwrap();
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        drop(process);
    });
}

#[test]
fn jobs_of_a_paused_pool_go_out_within_a_second_of_its_resumption() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let (here, pools) = (PoolName::new("here").unwrap(), pools(world.store.clone()));
        let pools = pools.clock(world.clock.clone());
        pools.pause(&world.scope, &here, None).await.unwrap();
        let mut process = world.process(world.store.clone(), "node-1").await;
        let batch = one_step(&world, "here").await;
        world.pass(60).await;
        assert!(world.instances().await.is_empty(), "there is nothing that runs it");
        assert_eq!(world.batch(batch).await.unsent_pools.len(), 1, "the next holder knows of it");
        // Another node takes the batch.
        process.kill_driver();
        let second = world.process(world.store.clone(), "node-2").await;
        world.pass(120).await;
        let resumed_at_ms = i64::try_from(world.clock.now_ms()).unwrap();
        pools.resume(&world.scope, &here).await.unwrap();
        let ended = world.until_ended(batch).await;
        assert_eq!((ended.status, ended.unsent_pools.len()), (BatchStatus::Completed, 0));
        let waited_ms = ended.completed_at.unwrap().as_millisecond() - resumed_at_ms;
        assert!(waited_ms <= 1_500, "{waited_ms} ms");
        drop((process, second));
    });
}

#[test]
fn a_node_that_stops_hands_its_batches_over_at_once() {
    segno_testkit::run(async {
        let world = slow_world(600);
        let mut process = world.process(world.store.clone(), "node-1").await;
        process.kill_driver();
        let services = || world.services(world.store.clone(), world.functions(world.store.clone()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let first = tokio::spawn(Driver::new(services(), "node-1").run(async {
            let _ = stopped.await;
        }));
        let batch = one_step(&world, "here").await;
        stop.send(()).unwrap();
        first.await.unwrap();
        let second = tokio::spawn(Driver::new(services(), "node-2").run(std::future::pending()));
        world.request(batch, "pause", crate::message::Action::PauseBatch { reason: None }).await;
        world.pass(1).await;
        assert!(world.batch(batch).await.paused_at.is_some(), "no lease had to expire");
        second.abort();
        drop(process);
    });
}
