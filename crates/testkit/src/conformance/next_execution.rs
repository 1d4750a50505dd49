//! The next execution of an instance begins in one commit, and nothing of the one before reaches it.

use segno::store::{
    ExecutionStatus, InstanceFilter, InstanceQuery, NextExecution, OrchestratorMessage, ProviderError,
    UnendedExecution, WatchUntil,
};

use super::fixture::*;

/// The execution after this one, of an instance that has ended.
fn after(instance: &str, execution_id: u64) -> NextExecution {
    NextExecution {
        after_execution_id: execution_id,
        incarnation: 100 + execution_id,
        unended: UnendedExecution::Refuse,
        orchestration_name: "Again".into(),
        orchestration_version: None,
        labels: [("k".to_owned(), "new".to_owned())].into(),
        start: message(instance, "again"),
    }
}

/// The same, also of one that has not ended.
fn by_force(instance: &str, execution_id: u64) -> NextExecution {
    let unended =
        UnendedExecution::End { status: ExecutionStatus::Cancelled, output: "cut off".to_owned().into() };
    NextExecution { unended, ..after(instance, execution_id) }
}

async fn begin(env: &Env, next: NextExecution) -> Result<(), ProviderError> {
    env.begin_next_execution(next).await
}

async fn instances_in(env: &Env, status: ExecutionStatus) -> usize {
    let query = InstanceQuery { statuses: [status].into(), limit: 10, ..InstanceQuery::default() };
    env.query_instances(query).await.unwrap().instances.len()
}

pub(super) async fn an_ended_instance_gets_the_next_execution(env: Env) {
    env.turn_of("i1").await.named("Flow").label("k", "old").custom_status("half").event(1).ack().await;
    env.put_status("i1", ExecutionStatus::Failed).await;
    let before = env.info("i1").await;
    begin(&env, after("i1", 1)).await.unwrap();
    let info = env.info("i1").await;
    assert_eq!((info.current_execution_id, info.status), (2, ExecutionStatus::Pending));
    assert_eq!((info.completed_at_ms, info.output, info.pinned_version), (None, None, None));
    assert_eq!((info.orchestration_name.as_deref(), info.orchestration_version), (Some("Again"), None));
    assert_eq!((info.labels["k"].as_str(), info.custom_status), ("new", None));
    assert_eq!(info.created_at_ms, before.created_at_ms);
    assert!(info.revision > before.revision && info.custom_status_version > before.custom_status_version);
    let item = env.fetch().await;
    assert_eq!(bodies(&item), ["again"]);
    assert_eq!((item.execution_id, item.last_event_id), (2, 0));
    assert_eq!(item.status, Some(ExecutionStatus::Pending));
    env.turn(&item).event(1).status(ExecutionStatus::Running).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn earlier_executions_stay(env: Env) {
    env.start_and_end("i1").await;
    begin(&env, after("i1", 1)).await.unwrap();
    assert_eq!(env.list_executions("i1").await.unwrap(), [1, 2]);
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1)]);
    let first = env.get_execution_info("i1", 1).await.unwrap();
    assert_eq!((first.status, first.event_count), (ExecutionStatus::Completed, 1));
    assert!(first.completed_at_ms.is_some());
    assert!(env.read("i1").await.unwrap().is_empty());
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.total_events), (1, 2, 1));
    assert_eq!((metrics.pending_instances, metrics.completed_instances), (1, 0));
}

pub(super) async fn an_instance_that_is_not_there_is_refused(env: Env) {
    not_found(begin(&env, by_force("i1", 1)).await);
    env.turn_of("i2").await.event(1).ack().await;
    not_found(begin(&env, by_force("i2", 1)).await);
    env.nothing_to_fetch().await;
}

pub(super) async fn an_instance_that_has_not_ended_is_refused_and_stays_as_it_is(env: Env) {
    let states = [ExecutionStatus::Running, ExecutionStatus::Paused, ExecutionStatus::ContinuedAsNew];
    for (n, status) in states.into_iter().enumerate() {
        let instance = format!("i{n}");
        env.start(&instance).await;
        env.put_status(&instance, status).await;
        conflict(begin(&env, after(&instance, 1)).await);
        let info = env.info(&instance).await;
        assert_eq!((info.current_execution_id, info.status), (1, status));
    }
    env.nothing_to_fetch().await;
}

pub(super) async fn another_execution_than_expected_is_refused(env: Env) {
    env.start_executions("i1", 2).await;
    conflict(begin(&env, by_force("i1", 1)).await);
    conflict(begin(&env, by_force("i1", 3)).await);
    assert_eq!(env.info("i1").await.current_execution_id, 2);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_repetition_changes_nothing(env: Env) {
    env.start_and_end("i1").await;
    begin(&env, after("i1", 1)).await.unwrap();
    let info = env.info("i1").await;
    begin(&env, after("i1", 1)).await.unwrap();
    assert_eq!(env.info("i1").await, info);
    assert_eq!(bodies(&env.fetch().await), ["again"]);
    let other = NextExecution { incarnation: 7, ..after("i1", 1) };
    conflict(begin(&env, other).await);
}

pub(super) async fn an_execution_that_runs_ends_in_the_same_commit(env: Env) {
    env.start("i1").await;
    begin(&env, by_force("i1", 1)).await.unwrap();
    let first = env.get_execution_info("i1", 1).await.unwrap();
    assert_eq!(first.status, ExecutionStatus::Cancelled);
    assert_eq!(first.output.as_deref(), Some(&b"cut off"[..]));
    assert!(first.completed_at_ms.is_some());
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1)]);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Pending);
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.running_instances, metrics.pending_instances), (0, 1));
}

pub(super) async fn an_execution_that_has_ended_keeps_its_end(env: Env) {
    env.start("i1").await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    begin(&env, by_force("i1", 1)).await.unwrap();
    let first = env.get_execution_info("i1", 1).await.unwrap();
    assert_eq!((first.status, first.output), (ExecutionStatus::ContinuedAsNew, None));
}

pub(super) async fn a_turn_in_flight_commits_nothing(env: Env) {
    env.start("i1").await;
    env.send("i1", "old").await;
    let item = env.fetch().await;
    begin(&env, by_force("i1", 1)).await.unwrap();
    lock_lost(env.turn(&item).event(2).status(ExecutionStatus::Completed).try_ack().await);
    lock_lost(env.renew_orchestration_item_lock(item.lock_token, LOCK).await);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Pending);
    let next = env.fetch().await;
    assert_eq!((bodies(&next), next.execution_id), (vec!["old", "again"], 2));
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1)]);
}

pub(super) async fn activities_and_timers_of_the_instance_are_gone(env: Env) {
    env.start("i1").await;
    env.start("i2").await;
    let due_ms = env.now().await + 1;
    let turn = env.turn_of("i1").await.work(job(2)).work(job(3)).post(timer("i1", 4, due_ms));
    turn.work(job_of("i2", 2)).event(2).ack().await;
    let running = env.work().await;
    begin(&env, by_force("i1", 1)).await.unwrap();
    lock_lost(env.complete(running.lock_token, "i1").await);
    assert_eq!(env.work().await.message.activity, activity("i2", 2));
    env.no_work().await;
    assert_eq!(bodies(&env.fetch().await), ["again"]);
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 0);
}

pub(super) async fn a_batch_that_was_given_back_with_a_delay_is_shown(env: Env) {
    env.start("i1").await;
    env.send("i1", "old").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(LOCK), true).await.unwrap();
    begin(&env, by_force("i1", 1)).await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["old", "again"]);
}

pub(super) async fn messages_that_wait_come_before_the_start(env: Env) {
    env.start_and_end("i1").await;
    env.send("i1", "late").await;
    begin(&env, after("i1", 1)).await.unwrap();
    env.send("i1", "new").await;
    assert_eq!(bodies(&env.fetch().await), ["late", "again", "new"]);
}

pub(super) async fn a_start_that_is_queued_can_be_replaced(env: Env) {
    env.post(guarded_start("i1")).await;
    conflict(begin(&env, after("i1", 1)).await);
    begin(&env, by_force("i1", 1)).await.unwrap();
    assert_eq!(env.list_executions("i1").await.unwrap(), [1, 2]);
    assert_eq!(env.get_execution_info("i1", 1).await.unwrap().status, ExecutionStatus::Cancelled);
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.execution_id), (vec!["start", "again"], 2));
    conflict(env.enqueue_for_orchestrator(guarded_start("i1"), None).await);
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions), (1, 2));
}

pub(super) async fn a_waiting_fetch_is_woken(env: Env) {
    env.start_and_end("i1").await;
    let waiting = env.waiting_fetch().await;
    begin(&env, after("i1", 1)).await.unwrap();
    assert_eq!(bodies(&waiting.answer().await[0]), ["again"]);
}

pub(super) async fn a_watch_waits_for_the_end_of_the_new_execution(env: Env) {
    env.start("i1").await;
    let waiting = env.waiting_watch(WatchUntil::Terminal).await;
    begin(&env, by_force("i1", 1)).await.unwrap();
    waiting.still_waits();
    let item = env.fetch().await;
    env.turn(&item).event(1).status(ExecutionStatus::Completed).ack().await;
    let info = waiting.answer().await.expect("it has ended");
    assert_eq!((info.current_execution_id, info.status), (2, ExecutionStatus::Completed));
}

pub(super) async fn listings_and_retention_see_it_as_pending(env: Env) {
    env.start_and_end("i1").await;
    begin(&env, after("i1", 1)).await.unwrap();
    assert_eq!(instances_in(&env, ExecutionStatus::Completed).await, 0);
    assert_eq!(instances_in(&env, ExecutionStatus::Pending).await, 1);
    let deleted = env.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!(deleted.instances_deleted, 0);
    conflict(env.delete_instance("i1", false).await);
    assert_eq!(env.delete_instance("i1", true).await.unwrap().executions_deleted, 2);
    env.nothing_to_fetch().await;
}

pub(super) async fn the_start_may_lie_ahead(env: Env) {
    env.start_and_end("i1").await;
    let visible_at_ms = Some(env.now().await + 3_600_000);
    let start = OrchestratorMessage { visible_at_ms, ..message("i1", "again") };
    begin(&env, NextExecution { start, ..after("i1", 1) }).await.unwrap();
    env.nothing_to_fetch().await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 1);
}
