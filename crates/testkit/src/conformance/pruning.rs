//! Pruning removes old executions, never the current one and never one that runs (C4).

use segno::store::{ExecutionStatus, PruneOptions, PruneResult};

use super::fixture::*;

fn keep(keep_last: u32) -> PruneOptions {
    PruneOptions { keep_last: Some(keep_last), completed_before_ms: None }
}

async fn prune(env: &Env, options: PruneOptions) -> PruneResult {
    env.prune_executions("i1", options).await.unwrap()
}

async fn left(env: &Env) -> Vec<u64> {
    env.list_executions("i1").await.unwrap()
}

pub(super) async fn without_options_only_the_current_execution_stays(env: Env) {
    env.start_executions("i1", 4).await;
    prune(&env, PruneOptions::default()).await;
    assert_eq!(left(&env).await, [4]);
}

pub(super) async fn keeping_none_or_one_keeps_the_current_execution(env: Env) {
    for keep_last in [0, 1] {
        env.start_executions("i1", 3).await;
        prune(&env, keep(keep_last)).await;
        assert_eq!(left(&env).await, [3]);
        env.delete_instance("i1", true).await.unwrap();
    }
}

pub(super) async fn the_newest_executions_are_kept(env: Env) {
    env.start_executions("i1", 5).await;
    prune(&env, keep(3)).await;
    assert_eq!(left(&env).await, [3, 4, 5]);
}

pub(super) async fn keeping_more_than_there_are_removes_nothing(env: Env) {
    env.start_executions("i1", 3).await;
    assert_eq!(prune(&env, keep(10)).await.executions_deleted, 0);
    assert_eq!(left(&env).await, [1, 2, 3]);
}

pub(super) async fn the_current_execution_stays_even_when_it_has_ended(env: Env) {
    env.start_executions("i1", 2).await;
    env.put_status("i1", ExecutionStatus::Completed).await;
    prune(&env, PruneOptions { keep_last: None, completed_before_ms: Some(u64::MAX >> 2) }).await;
    assert_eq!(left(&env).await, [2]);
}

pub(super) async fn an_old_execution_that_runs_stays(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.execution(2).event(1).status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(3).event(1).ack().await;
    prune(&env, PruneOptions::default()).await;
    assert_eq!(left(&env).await, [1, 3]);
}

pub(super) async fn only_executions_that_ended_before_the_time_go(env: Env) {
    env.start_executions("i1", 2).await;
    env.tick().await;
    let cutoff = env.now().await;
    env.tick().await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    env.turn_of("i1").await.execution(3).event(1).ack().await;
    prune(&env, PruneOptions { keep_last: None, completed_before_ms: Some(cutoff) }).await;
    assert_eq!(left(&env).await, [2, 3]);
}

pub(super) async fn the_time_itself_is_not_before_it(env: Env) {
    env.start_executions("i1", 2).await;
    let ended = env.get_execution_info("i1", 1).await.unwrap().completed_at_ms.unwrap();
    prune(&env, PruneOptions { keep_last: None, completed_before_ms: Some(ended) }).await;
    assert_eq!(left(&env).await, [1, 2]);
    prune(&env, PruneOptions { keep_last: None, completed_before_ms: Some(ended + 1) }).await;
    assert_eq!(left(&env).await, [2]);
}

pub(super) async fn both_options_must_hold(env: Env) {
    env.start_executions("i1", 4).await;
    env.tick().await;
    let cutoff = Some(env.now().await);
    prune(&env, PruneOptions { keep_last: Some(3), completed_before_ms: cutoff }).await;
    assert_eq!(left(&env).await, [2, 3, 4]);
    prune(&env, PruneOptions { keep_last: Some(1), completed_before_ms: Some(1) }).await;
    assert_eq!(left(&env).await, [2, 3, 4]);
}

pub(super) async fn a_pruned_execution_is_gone(env: Env) {
    env.start_executions("i1", 2).await;
    prune(&env, PruneOptions::default()).await;
    not_found(env.get_execution_info("i1", 1).await);
    not_found(env.read_history_with_execution_id("i1", 1).await);
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), []);
}

pub(super) async fn what_is_kept_is_untouched(env: Env) {
    env.start_executions("i1", 3).await;
    let before = env.info("i1").await;
    prune(&env, keep(2)).await;
    let after = env.info("i1").await;
    assert_eq!((after.status, after.current_execution_id), (before.status, before.current_execution_id));
    assert_eq!(env.read_with_execution("i1", 2).await.unwrap(), [event(1)]);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn pruning_counts_what_it_removed(env: Env) {
    env.turn_of("i1").await.event(1).event(2).event(3).status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    let result = prune(&env, PruneOptions::default()).await;
    assert_eq!(result, PruneResult { instances_processed: 1, executions_deleted: 1, events_deleted: 3 });
    assert_eq!(prune(&env, PruneOptions::default()).await.executions_deleted, 0);
}

pub(super) async fn pruning_keeps_the_counts_of_the_store_right(env: Env) {
    env.start_executions("i1", 4).await;
    prune(&env, keep(2)).await;
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.total_events), (1, 2, 2));
}

pub(super) async fn an_unknown_instance_cannot_be_pruned(env: Env) {
    not_found(env.prune_executions("nobody", PruneOptions::default()).await);
}

pub(super) async fn a_pruned_instance_goes_on(env: Env) {
    env.start_executions("i1", 3).await;
    let turn = env.turn_of("i1").await;
    prune(&env, PruneOptions::default()).await;
    turn.event(2).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
}
