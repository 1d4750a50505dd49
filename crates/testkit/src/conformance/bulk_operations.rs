//! Retention removes and prunes many instances by a filter, and passes over what still lives (C4).

use segno::store::{DeleteInstanceResult, ExecutionStatus, InstanceFilter, PruneOptions};

use super::fixture::*;

fn only(ids: &[&str]) -> InstanceFilter {
    let instance_ids = Some(ids.iter().map(|&id| id.to_owned()).collect());
    InstanceFilter { instance_ids, ..InstanceFilter::default() }
}

async fn left(env: &Env) -> Vec<String> {
    let mut ids = env.list_instances().await.unwrap();
    ids.sort_unstable();
    ids
}

/// Ends these instances in this order, one tick apart.
async fn start_and_end_all(env: &Env, ids: &[&str]) {
    for id in ids {
        env.start_and_end(id).await;
        env.tick().await;
    }
}

pub(super) async fn every_ended_instance_is_deleted(env: Env) {
    start_and_end_all(&env, &["a", "b"]).await;
    env.start("c").await;
    env.put_status("c", ExecutionStatus::Failed).await;
    let result = env.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((result.instances_deleted, result.executions_deleted, result.events_deleted), (3, 3, 3));
    assert!(left(&env).await.is_empty());
}

pub(super) async fn instances_that_have_not_ended_are_passed_over(env: Env) {
    for status in ExecutionStatus::ALL {
        env.turn_of(status.as_str()).await.status(status).ack().await;
    }
    let result = env.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!(result.instances_deleted, 3);
    assert_eq!(left(&env).await, ["ContinuedAsNew", "Paused", "Pending", "Running"]);
}

pub(super) async fn only_the_listed_instances_are_deleted(env: Env) {
    start_and_end_all(&env, &["a", "b", "c"]).await;
    env.start("d").await;
    env.delete_instance_bulk(only(&["a", "c", "d", "nobody"])).await.unwrap();
    assert_eq!(left(&env).await, ["b", "d"]);
}

pub(super) async fn an_empty_list_deletes_nothing(env: Env) {
    start_and_end_all(&env, &["a"]).await;
    assert_eq!(env.delete_instance_bulk(only(&[])).await.unwrap(), DeleteInstanceResult::default());
    assert_eq!(left(&env).await, ["a"]);
}

pub(super) async fn only_instances_that_ended_before_the_time_are_deleted(env: Env) {
    start_and_end_all(&env, &["a", "b", "c"]).await;
    let completed_before_ms = env.info("b").await.completed_at_ms;
    env.delete_instance_bulk(InstanceFilter { completed_before_ms, ..InstanceFilter::default() })
        .await
        .unwrap();
    assert_eq!(left(&env).await, ["b", "c"]);
}

pub(super) async fn a_limit_takes_the_oldest_completions_first(env: Env) {
    for id in ["a", "b", "c"] {
        env.start(id).await;
    }
    for id in ["c", "a", "b"] {
        env.tick().await;
        env.put_status(id, ExecutionStatus::Completed).await;
    }
    env.delete_instance_bulk(InstanceFilter { limit: Some(2), ..InstanceFilter::default() }).await.unwrap();
    assert_eq!(left(&env).await, ["b"]);
}

pub(super) async fn all_criteria_of_a_bulk_deletion_must_hold(env: Env) {
    start_and_end_all(&env, &["a", "b", "c", "d"]).await;
    let completed_before_ms = env.info("d").await.completed_at_ms;
    let filter = InstanceFilter { completed_before_ms, limit: Some(1), ..only(&["b", "c", "d"]) };
    env.delete_instance_bulk(filter).await.unwrap();
    assert_eq!(left(&env).await, ["a", "c", "d"]);
}

pub(super) async fn a_root_is_deleted_with_its_descendants(env: Env) {
    env.start("root").await;
    env.start_child("a", "root").await;
    env.start_child("a1", "a").await;
    for id in ["root", "a", "a1"] {
        env.put_status(id, ExecutionStatus::Completed).await;
    }
    let result = env.delete_instance_bulk(only(&["root"])).await.unwrap();
    assert_eq!(result.instances_deleted, 3);
    assert!(left(&env).await.is_empty());
}

pub(super) async fn children_are_passed_over(env: Env) {
    env.start("root").await;
    env.start_child("a", "root").await;
    env.put_status("a", ExecutionStatus::Completed).await;
    let result = env.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((result.instances_deleted, left(&env).await.len()), (0, 2));
}

pub(super) async fn a_root_with_a_running_descendant_is_passed_over(env: Env) {
    env.start("root").await;
    env.start_child("a", "root").await;
    env.start_child("a1", "a").await;
    env.put_status("root", ExecutionStatus::Completed).await;
    env.put_status("a", ExecutionStatus::Completed).await;
    start_and_end_all(&env, &["other"]).await;
    assert_eq!(env.delete_instance_bulk(InstanceFilter::default()).await.unwrap().instances_deleted, 1);
    assert_eq!(left(&env).await, ["a", "a1", "root"]);
}

pub(super) async fn a_bulk_deletion_removes_queued_messages(env: Env) {
    start_and_end_all(&env, &["i1"]).await;
    env.send("i1", "late").await;
    env.queue(job(1)).await;
    let result = env.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!(result.queue_messages_deleted, 2);
    env.nothing_to_fetch().await;
    env.no_work().await;
}

pub(super) async fn every_instance_is_pruned(env: Env) {
    env.start_executions("a", 3).await;
    env.start_executions("b", 2).await;
    env.start("c").await;
    let result = env.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await.unwrap();
    assert_eq!((result.executions_deleted, result.events_deleted, result.instances_processed), (3, 3, 3));
    assert_eq!(env.list_executions("a").await.unwrap(), [3]);
    assert_eq!(env.list_executions("b").await.unwrap(), [2]);
}

pub(super) async fn only_the_listed_instances_are_pruned(env: Env) {
    env.start_executions("a", 3).await;
    env.start_executions("b", 3).await;
    let result = env.prune_executions_bulk(only(&["b"]), PruneOptions::default()).await.unwrap();
    assert_eq!((result.instances_processed, result.executions_deleted), (1, 2));
    assert_eq!(env.list_executions("a").await.unwrap(), [1, 2, 3]);
}

pub(super) async fn a_time_in_the_filter_prunes_ended_instances_only(env: Env) {
    env.start_executions("runs", 2).await;
    env.start_executions("ended", 2).await;
    env.put_status("ended", ExecutionStatus::Completed).await;
    let filter = InstanceFilter { completed_before_ms: Some(u64::MAX >> 2), ..InstanceFilter::default() };
    env.prune_executions_bulk(filter, PruneOptions::default()).await.unwrap();
    assert_eq!(env.list_executions("runs").await.unwrap(), [1, 2]);
    assert_eq!(env.list_executions("ended").await.unwrap(), [2]);
}

pub(super) async fn options_of_a_bulk_prune_hold_for_each_instance(env: Env) {
    env.start_executions("a", 4).await;
    env.start_executions("b", 2).await;
    let options = PruneOptions { keep_last: Some(3), completed_before_ms: None };
    env.prune_executions_bulk(InstanceFilter::default(), options).await.unwrap();
    assert_eq!(env.list_executions("a").await.unwrap(), [2, 3, 4]);
    assert_eq!(env.list_executions("b").await.unwrap(), [1, 2]);
}
