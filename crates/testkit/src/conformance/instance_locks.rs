//! An instance has one holder at a time, and the holder gets everything that is visible (L3).

use segno::store::{ExecutionStatus, FetchedHistory};

use super::fixture::*;

pub(super) async fn a_locked_instance_is_passed_over(env: Env) {
    env.send("i1", "go").await;
    env.fetch().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn a_locked_instance_does_not_block_others(env: Env) {
    env.send("i1", "go").await;
    env.fetch().await;
    env.send("i2", "go").await;
    assert_eq!(&*env.fetch().await.instance, "i2");
}

pub(super) async fn a_message_for_a_locked_instance_waits_for_the_lock(env: Env) {
    env.send("i1", "first").await;
    let item = env.fetch().await;
    env.send("i1", "second").await;
    env.nothing_to_fetch().await;
    env.turn(&item).ack().await;
    assert_eq!(bodies(&env.fetch().await), ["second"]);
}

pub(super) async fn an_ack_frees_only_its_own_instance(env: Env) {
    env.send("i1", "go").await;
    env.send("i2", "go").await;
    let (one, _other) = (env.fetch().await, env.fetch().await);
    env.turn(&one).ack().await;
    env.send("i1", "more").await;
    env.send("i2", "more").await;
    assert_eq!(env.fetch().await.instance, one.instance);
    env.nothing_to_fetch().await;
}

pub(super) async fn an_abandon_frees_only_its_own_instance(env: Env) {
    env.send("i1", "go").await;
    env.send("i2", "go").await;
    let (one, _other) = (env.fetch().await, env.fetch().await);
    env.abandon_orchestration_item(one.lock_token, None, false).await.unwrap();
    assert_eq!(env.fetch().await.instance, one.instance);
    env.nothing_to_fetch().await;
}

pub(super) async fn tokens_strictly_increase(env: Env) {
    // L2
    env.queue(job(1)).await;
    let mut tokens = vec![env.work().await.lock_token];
    for instance in ["i1", "i2", "i1"] {
        env.send(instance, "go").await;
        let item = env.fetch().await;
        env.turn(&item).ack().await;
        tokens.push(item.lock_token);
    }
    env.queue(job(2)).await;
    tokens.push(env.work().await.lock_token);
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
}

pub(super) async fn a_batch_holds_every_visible_message_of_its_instance(env: Env) {
    for body in ["a", "b", "c"] {
        env.send("i1", body).await;
        env.send("i2", body).await;
    }
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c"]);
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c"]);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_new_instance_comes_empty(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    assert_eq!((&*item.instance, item.execution_id, item.last_event_id), ("i1", 1, 0));
    assert_eq!((item.orchestration_name, item.version, item.status), (None, None, None));
    assert_eq!(item.history, FetchedHistory::Events(Vec::new()));
}

pub(super) async fn a_known_instance_comes_with_its_state(env: Env) {
    let turn = env.turn_of("i1").await.named("Flow").event(1).event(2).status(ExecutionStatus::Paused);
    turn.metadata(|metadata| metadata.orchestration_version = Some("2.1".into())).ack().await;
    env.send("i1", "go").await;
    let item = env.fetch().await;
    assert_eq!(item.orchestration_name.as_deref(), Some("Flow"));
    assert_eq!(item.version.as_deref(), Some("2.1"));
    assert_eq!((item.status, item.last_event_id), (Some(ExecutionStatus::Paused), 2));
    assert_eq!(item.history, FetchedHistory::Events(vec![event(1), event(2)]));
}

pub(super) async fn an_enqueue_makes_no_instance(env: Env) {
    env.send("i1", "go").await;
    env.post(guarded_start("i2")).await;
    not_found(env.get_instance_info("i1").await);
    assert!(env.list_instances().await.unwrap().is_empty());
}

pub(super) async fn a_fetch_makes_no_instance(env: Env) {
    env.send("i1", "go").await;
    env.fetch().await;
    not_found(env.get_instance_info("i1").await);
    assert_eq!(env.get_system_metrics().await.unwrap().total_instances, 0);
}

pub(super) async fn an_empty_turn_makes_no_instance(env: Env) {
    // C3: a late message for a deleted instance must not leave a ghost.
    env.turn_of("i1").await.ack().await;
    not_found(env.get_instance_info("i1").await);
    assert!(env.list_instances().await.unwrap().is_empty());
}

pub(super) async fn a_first_turn_without_metadata_makes_a_running_instance(env: Env) {
    env.turn_of("i1").await.event(1).ack().await;
    let info = env.info("i1").await;
    assert_eq!((info.status, info.current_execution_id), (ExecutionStatus::Running, 1));
    assert_eq!(info.orchestration_name, None);
}

pub(super) async fn a_message_may_come_before_the_start(env: Env) {
    env.send("i1", "early signal").await;
    env.post(guarded_start("i1")).await;
    assert_eq!(bodies(&env.fetch().await), ["early signal", "start"]);
}

pub(super) async fn the_time_of_a_fetch_is_the_stores_time(env: Env) {
    // L7
    env.send("i1", "go").await;
    env.advance_span().await;
    let before = env.now().await;
    let fetched_at_ms = env.fetch().await.fetched_at_ms;
    assert!((before..=env.now().await).contains(&fetched_at_ms));
}

pub(super) async fn an_ended_instance_still_gets_its_messages(env: Env) {
    env.start_and_end("i1").await;
    env.send("i1", "late").await;
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.status), (vec!["late"], Some(ExecutionStatus::Completed)));
}

pub(super) async fn a_locked_instance_can_be_read(env: Env) {
    env.start("i1").await;
    let _turn = env.turn_of("i1").await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Running);
}

pub(super) async fn ids_that_share_a_beginning_are_different_instances(env: Env) {
    env.start("i").await;
    env.start("i1").await;
    env.send("i", "short").await;
    env.send("i1", "long").await;
    let mut items = env.fetch_many(2).await;
    items.sort_by(|a, b| a.instance.cmp(&b.instance));
    assert_eq!((bodies(&items[0]), bodies(&items[1])), (vec!["short"], vec!["long"]));
}
