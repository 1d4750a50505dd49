//! An instance has a custom status whose version only grows.

use bytes::Bytes;
use segno::store::{ExecutionStatus, StoredEvent};

use super::fixture::*;

async fn status_after(env: &Env, version: u64) -> Option<(Option<Bytes>, u64)> {
    env.get_custom_status("i1", version).await.unwrap()
}

fn is(status: &'static str, version: u64) -> Option<(Option<Bytes>, u64)> {
    Some((Some(Bytes::from(status)), version))
}

pub(super) async fn a_status_that_was_never_set_is_not_there(env: Env) {
    env.start("i1").await;
    assert_eq!(status_after(&env, 0).await, None);
    let info = env.info("i1").await;
    assert_eq!((info.custom_status, info.custom_status_version), (None, 0));
}

pub(super) async fn an_unknown_instance_has_no_status(env: Env) {
    assert_eq!(status_after(&env, 0).await, None);
}

pub(super) async fn the_first_status_has_version_one(env: Env) {
    env.turn_of("i1").await.custom_status("half way").ack().await;
    assert_eq!(status_after(&env, 0).await, is("half way", 1));
}

pub(super) async fn a_status_that_was_seen_is_not_returned_again(env: Env) {
    env.turn_of("i1").await.custom_status("half way").ack().await;
    assert_eq!(status_after(&env, 1).await, None);
    assert_eq!(status_after(&env, 9).await, None);
}

pub(super) async fn every_change_raises_the_version_by_one(env: Env) {
    for status in ["a", "b", "c"] {
        env.turn_of("i1").await.custom_status(status).ack().await;
    }
    assert_eq!(status_after(&env, 2).await, is("c", 3));
}

pub(super) async fn the_same_status_again_is_a_change(env: Env) {
    env.turn_of("i1").await.custom_status("a").ack().await;
    env.turn_of("i1").await.custom_status("a").ack().await;
    assert_eq!(status_after(&env, 1).await, is("a", 2));
}

pub(super) async fn a_turn_without_a_status_leaves_it_alone(env: Env) {
    env.turn_of("i1").await.custom_status("a").ack().await;
    env.turn_of("i1").await.event(1).ack().await;
    assert_eq!(status_after(&env, 0).await, is("a", 1));
}

pub(super) async fn a_cleared_status_has_a_version(env: Env) {
    env.turn_of("i1").await.custom_status("a").ack().await;
    env.turn_of("i1").await.clear_custom_status().ack().await;
    assert_eq!(status_after(&env, 1).await, Some((None, 2)));
    assert_eq!(env.info("i1").await.custom_status, None);
}

pub(super) async fn an_empty_status_is_not_a_cleared_one(env: Env) {
    env.turn_of("i1").await.custom_status("").ack().await;
    assert_eq!(status_after(&env, 0).await, is("", 1));
}

pub(super) async fn a_status_outlives_its_execution(env: Env) {
    env.turn_of("i1").await.custom_status("a").status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    assert_eq!(status_after(&env, 0).await, is("a", 1));
    env.turn_of("i1").await.custom_status("b").ack().await;
    assert_eq!(status_after(&env, 1).await, is("b", 2));
}

pub(super) async fn a_refused_turn_changes_no_status(env: Env) {
    env.append_with_execution("i1", 1, vec![StoredEvent { event_id: 1, data: "x".into() }]).await.unwrap();
    conflict(env.turn_of("i1").await.event(1).custom_status("a").try_ack().await);
    assert_eq!(status_after(&env, 0).await, None);
}

pub(super) async fn statuses_of_instances_are_their_own(env: Env) {
    env.turn_of("i1").await.custom_status("a").ack().await;
    env.turn_of("i2").await.custom_status("b").ack().await;
    assert_eq!(status_after(&env, 0).await, is("a", 1));
}
