//! A deletion removes an instance with everything that belongs to it, whole trees or nothing (C3, C4).

use segno::store::{
    DeleteInstanceResult, ErrorKind, ExecutionStatus, QueueDepths, SystemMetrics, WatchUntil,
};

use super::fixture::*;

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

/// `root` with children `a` and `b`, and `a1` below `a`; all ended.
async fn ended_tree(env: &Env) {
    env.start("root").await;
    for (child, parent) in [("a", "root"), ("b", "root"), ("a1", "a")] {
        env.tick().await;
        env.start_child(child, parent).await;
    }
    for instance in ["root", "a", "b", "a1"] {
        env.put_status(instance, ExecutionStatus::Completed).await;
    }
}

pub(super) async fn children_are_listed_oldest_first(env: Env) {
    env.start("p").await;
    for child in ["z", "a", "m"] {
        env.start_child(child, "p").await;
        env.tick().await;
    }
    assert_eq!(env.list_children("p").await.unwrap(), ["z", "a", "m"]);
    assert!(env.list_children("z").await.unwrap().is_empty());
}

pub(super) async fn a_child_knows_its_parent(env: Env) {
    env.start("p").await;
    env.start_child("c", "p").await;
    assert_eq!(env.get_parent_id("c").await.unwrap().as_deref(), Some("p"));
    assert_eq!(env.get_parent_id("p").await.unwrap(), None);
}

pub(super) async fn a_tree_has_its_root_first_and_every_descendant(env: Env) {
    ended_tree(&env).await;
    let tree = env.get_instance_tree("root").await.unwrap();
    assert_eq!((tree.root_id.as_str(), tree.all_ids[0].as_str()), ("root", "root"));
    let mut all_ids = tree.all_ids;
    all_ids.sort_unstable();
    assert_eq!(all_ids, ["a", "a1", "b", "root"]);
}

pub(super) async fn an_ended_instance_is_deleted(env: Env) {
    env.start_and_end("i1").await;
    env.delete_instance("i1", false).await.unwrap();
    not_found(env.get_instance_info("i1").await);
    not_found(env.read_history("i1").await);
    assert_eq!(env.read("i1").await.unwrap(), []);
    assert!(env.list_executions("i1").await.unwrap().is_empty());
    assert!(env.list_instances().await.unwrap().is_empty());
    assert_eq!(env.get_system_metrics().await.unwrap(), SystemMetrics::default());
}

pub(super) async fn a_deletion_counts_what_it_removed(env: Env) {
    env.start_executions("i1", 3).await;
    env.put_status("i1", ExecutionStatus::Completed).await;
    env.send("i1", "late").await;
    env.send_later("i1", "later", LOCK).await;
    env.queue(job(1)).await;
    let result = env.delete_instance("i1", false).await.unwrap();
    assert_eq!(
        result,
        DeleteInstanceResult {
            instances_deleted: 1,
            executions_deleted: 3,
            events_deleted: 3,
            queue_messages_deleted: 3
        }
    );
}

pub(super) async fn an_instance_that_has_not_ended_is_kept(env: Env) {
    let states = [ExecutionStatus::Pending, ExecutionStatus::Running, ExecutionStatus::Paused];
    for status in states.into_iter().chain([ExecutionStatus::ContinuedAsNew]) {
        let id = status.as_str();
        env.turn_of(id).await.event(1).status(status).ack().await;
        conflict(env.delete_instance(id, false).await);
        assert_eq!(env.read(id).await.unwrap(), [event(1)]);
    }
}

pub(super) async fn force_deletes_a_running_instance(env: Env) {
    env.start("i1").await;
    assert_eq!(env.delete_instance("i1", true).await.unwrap().instances_deleted, 1);
    not_found(env.get_instance_info("i1").await);
}

pub(super) async fn deleting_an_unknown_instance_is_not_found(env: Env) {
    not_found(env.delete_instance("nobody", false).await);
    not_found(env.delete_instance("nobody", true).await);
}

pub(super) async fn a_tree_is_deleted_from_its_root(env: Env) {
    ended_tree(&env).await;
    let result = env.delete_instance("root", false).await.unwrap();
    assert_eq!((result.instances_deleted, result.events_deleted), (4, 4));
    assert!(env.list_instances().await.unwrap().is_empty());
    assert!(env.list_children("root").await.unwrap().is_empty());
}

pub(super) async fn a_child_is_not_deleted_by_itself(env: Env) {
    ended_tree(&env).await;
    refused(env.delete_instance("a", false).await, ErrorKind::Invalid);
    refused(env.delete_instance("a1", true).await, ErrorKind::Invalid);
    assert_eq!(env.list_instances().await.unwrap().len(), 4);
}

pub(super) async fn a_running_descendant_keeps_the_whole_tree(env: Env) {
    ended_tree(&env).await;
    env.put_status("a1", ExecutionStatus::Running).await;
    conflict(env.delete_instance("root", false).await);
    assert_eq!(env.list_instances().await.unwrap().len(), 4);
    assert_eq!(env.delete_instance("root", true).await.unwrap().instances_deleted, 4);
}

pub(super) async fn a_child_that_is_not_in_the_list_stops_the_deletion(env: Env) {
    ended_tree(&env).await;
    conflict(env.delete_instances_atomic(&ids(&["root", "a", "b"]), false).await);
    conflict(env.delete_instances_atomic(&ids(&["root", "a", "b"]), true).await);
    assert_eq!(env.list_instances().await.unwrap().len(), 4);
}

pub(super) async fn one_running_instance_stops_the_whole_list(env: Env) {
    env.start_and_end("a").await;
    env.start("b").await;
    conflict(env.delete_instances_atomic(&ids(&["a", "b"]), false).await);
    assert_eq!(env.read("a").await.unwrap(), [event(1)]);
}

pub(super) async fn unknown_ids_in_the_list_are_passed_over(env: Env) {
    env.start_and_end("a").await;
    let result = env.delete_instances_atomic(&ids(&["nobody", "a"]), false).await.unwrap();
    assert_eq!(result.instances_deleted, 1);
    assert_eq!(
        env.delete_instances_atomic(&ids(&["nobody"]), false).await.unwrap(),
        DeleteInstanceResult::default()
    );
}

pub(super) async fn an_id_that_occurs_twice_is_deleted_once(env: Env) {
    env.start_and_end("a").await;
    let result = env.delete_instances_atomic(&ids(&["a", "a"]), false).await.unwrap();
    assert_eq!((result.instances_deleted, result.events_deleted), (1, 1));
    assert_eq!(env.get_system_metrics().await.unwrap().total_instances, 0);
}

pub(super) async fn a_deleted_instance_leaves_nothing_in_the_queues(env: Env) {
    env.start("i1").await;
    env.send("i1", "now").await;
    env.send_later("i1", "later", env.span()).await;
    env.queue(job(1)).await;
    env.delete_instance("i1", true).await.unwrap();
    assert_eq!(env.get_queue_depths().await.unwrap(), QueueDepths::default());
    env.advance_span().await;
    env.nothing_to_fetch().await;
    env.no_work().await;
}

pub(super) async fn a_turn_in_flight_cannot_bring_a_deleted_instance_back(env: Env) {
    env.start("i1").await;
    let turn = env.turn_of("i1").await.event(2).work(job(1)).post(message("i2", "x"));
    env.delete_instance("i1", true).await.unwrap();
    lock_lost(turn.try_ack().await);
    not_found(env.get_instance_info("i1").await);
    env.no_work().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn an_abandoned_turn_cannot_bring_its_messages_back(env: Env) {
    env.start("i1").await;
    let turn = env.turn_of("i1").await;
    env.delete_instance("i1", true).await.unwrap();
    lock_lost(env.abandon_orchestration_item(turn.ack.lock_token, None, false).await);
    lock_lost(env.renew_orchestration_item_lock(turn.ack.lock_token, LOCK).await);
    env.nothing_to_fetch().await;
}

pub(super) async fn an_activity_in_flight_cannot_bring_a_deleted_instance_back(env: Env) {
    env.start("i1").await;
    env.queue(job(1)).await;
    let work = env.work().await;
    env.delete_instance("i1", true).await.unwrap();
    lock_lost(env.complete(work.lock_token, "i1").await);
    lock_lost(env.renew_work(work.lock_token, LOCK).await);
    assert_eq!(env.lost_work_items(&[work.lock_token]).await.unwrap(), [work.lock_token]);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_new_instance_of_the_same_id_receives_nothing_old(env: Env) {
    env.turn_of("i1")
        .await
        .named("Old")
        .event(1)
        .label("team", "blue")
        .custom_status("s")
        .pinned("9.0.0")
        .ack()
        .await;
    env.send("i1", "old").await;
    env.send_later("i1", "old too", env.span()).await;
    env.delete_instance("i1", true).await.unwrap();
    env.post(guarded_start("i1")).await;
    env.advance_span().await;
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.execution_id, item.last_event_id), (vec!["start"], 1, 0));
    env.turn(&item).named("New").event(1).ack().await;
    let info = env.info("i1").await;
    assert_eq!(info.orchestration_name.as_deref(), Some("New"));
    assert_eq!((info.custom_status, info.pinned_version), (None, None));
    assert!(info.labels.is_empty());
}

pub(super) async fn a_stale_token_does_not_fit_a_new_instance_of_the_same_id(env: Env) {
    env.start("i1").await;
    let stale = env.turn_of("i1").await;
    env.delete_instance("i1", true).await.unwrap();
    env.send("i1", "go").await;
    let fresh = env.fetch().await;
    assert!(fresh.lock_token > stale.ack.lock_token);
    lock_lost(stale.event(2).try_ack().await);
    env.turn(&fresh).event(1).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn a_deletion_leaves_other_instances_alone(env: Env) {
    env.start_and_end("i1").await;
    env.start("i10").await;
    env.send("i10", "go").await;
    env.queue(job_of("i10", 1)).await;
    env.write([put("i1")]).await;
    env.delete_instance("i1", false).await.unwrap();
    assert_eq!(env.read("i10").await.unwrap(), [event(1)]);
    assert_eq!(&*env.fetch().await.instance, "i10");
    assert_eq!(env.work().await.message, job_of("i10", 1));
    assert!(env.record("i1").await.is_some());
}

pub(super) async fn a_deleted_child_leaves_its_parent_alone(env: Env) {
    ended_tree(&env).await;
    env.delete_instances_atomic(&ids(&["a", "a1"]), false).await.unwrap();
    assert_eq!(env.list_children("root").await.unwrap(), ["b"]);
    assert_eq!(env.delete_instance("root", false).await.unwrap().instances_deleted, 2);
}

pub(super) async fn a_watch_does_not_see_a_deleted_instance(env: Env) {
    env.start_and_end("i1").await;
    env.delete_instance("i1", false).await.unwrap();
    assert_eq!(env.watch_instance("i1", WatchUntil::Terminal, NO_WAIT).await.unwrap(), None);
    assert_eq!(env.get_custom_status("i1", 0).await.unwrap(), None);
}
