//! A store that is busy or away never fails an instance, and an unknown outcome never doubles anything.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno::{Runtime, RuntimeOptions};
use segno_testkit::faults::{Fault, FaultStore, Plan, script};

use crate::support::{ECHOES, WAITS_FOR_SLOW, World};

impl World {
    pub async fn node_behind(&self, plan: Plan) -> (Runtime, Arc<FaultStore>) {
        let faulty = FaultStore::new(self.store.clone(), self.clock.clone(), plan);
        let options = RuntimeOptions { node_id: Some("a".to_owned()), ..RuntimeOptions::default() };
        let builder = Runtime::builder(faulty.clone()).registry(self.registry()).options(options);
        (builder.clock(self.clock.clone()).start().await.unwrap(), faulty)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_an_hour_fails_nothing() {
    for commit in 1..=6 {
        let world = World::new();
        let away = script([(commit, Fault::AwayFor(Duration::from_secs(3600)))]);
        let (_node, _faulty) = world.node_behind(away).await;
        assert_eq!(
            world.client.start(ECHOES, 3).id("i").result().await.unwrap(),
            3,
            "away at commit {commit}"
        );
        assert_eq!(world.client.history("i").await.unwrap().len(), 8);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_of_any_commit_doubles_nothing() {
    for fault in [Fault::FailAfter, Fault::FailBefore] {
        for commit in 1..=7 {
            let world = World::new();
            let (_node, _faulty) = world.node_behind(script([(commit, fault)])).await;
            let result = world.client.start(ECHOES, 3).id("i").result().await;
            assert_eq!(result.unwrap(), 3, "{fault:?} at commit {commit}");
            assert_eq!(world.client.history("i").await.unwrap().len(), 8, "{fault:?} at commit {commit}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_every_second_write_only_makes_it_slower() {
    let world = World::new();
    let plan: Plan = Box::new(|point| if point.number % 2 == 0 { Fault::None } else { Fault::FailBefore });
    let (_node, _faulty) = world.node_behind(plan).await;
    for i in 0..20 {
        world.client.start(ECHOES, 5).id(format!("i{i}")).await.unwrap();
    }
    for i in 0..20 {
        assert_eq!(world.client.result(ECHOES, format!("i{i}")).await.unwrap(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_do_not_stop_an_activity_or_drop_its_result() {
    let world = World::new();
    let mut failed = 0;
    let plan: Plan = Box::new(move |point| {
        let fail = point.operation == "renew_work_item_lock" && failed < 10;
        failed += u32::from(fail);
        if fail { Fault::FailBefore } else { Fault::None }
    });
    let (_node, _faulty) = world.node_behind(plan).await;
    let result = world.client.start(WAITS_FOR_SLOW, 300).result().await.unwrap();
    assert_eq!(result, "1 by a");
    assert_eq!(world.slow.began.load(Ordering::SeqCst), 1);
    assert_eq!(world.slow.told_at_ms.load(Ordering::SeqCst), 0, "the activity was told to stop");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stands_still_longer_than_its_locks_has_its_late_writes_refused() {
    // L6: the commit that stalls its node is done, so what follows on the node is late.
    for commit in 1..=4 {
        let world = World::new();
        let stall = script([(commit, Fault::StallFor(Duration::from_secs(120)))]);
        let (_frozen, _faulty) = world.node_behind(stall).await;
        world.client.start(ECHOES, 3).id("i").await.unwrap();
        world.pass(Duration::from_secs(1)).await;
        let _other = world.node("b").await;
        assert_eq!(world.client.result(ECHOES, "i").await.unwrap(), 3);
        world.pass(Duration::from_secs(300)).await;
        assert_eq!(world.client.history("i").await.unwrap().len(), 8, "stalled at commit {commit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_although_the_store_is_away() {
    let world = World::new();
    let away = script([(2, Fault::AwayFor(Duration::from_secs(86_400)))]);
    let (node, _faulty) = world.node_behind(away).await;
    world.client.start(ECHOES, 3).id("i").await.unwrap();
    world.pass(Duration::from_secs(5)).await;
    node.shutdown(Duration::from_secs(5)).await;
    let _next = world.node("b").await;
    assert_eq!(world.client.result(ECHOES, "i").await.unwrap(), 3);
}
