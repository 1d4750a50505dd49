//! A holder that commits a turn in several parts keeps its lock, and only its lock.

use segno::store::ExecutionStatus;

use super::fixture::*;

pub(super) async fn a_kept_lock_lets_the_holder_commit_more(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.turn(&item).event(2).keep_lock().ack().await;
    env.turn(&item).event(3).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2), event(3)]);
    lock_lost(env.turn(&item).event(4).try_ack().await);
}

pub(super) async fn each_part_is_visible_at_once(env: Env) {
    env.turn_of("i1")
        .await
        .event(1)
        .work(job(1))
        .post(message("i2", "x"))
        .record(put("r"))
        .keep_lock()
        .ack()
        .await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.work().await.message, job(1));
    assert_eq!(&*env.fetch().await.instance, "i2");
    assert!(env.record("r").await.is_some());
}

pub(super) async fn a_kept_lock_keeps_others_out(env: Env) {
    env.turn_of("i1").await.event(1).keep_lock().ack().await;
    env.send("i1", "meanwhile").await;
    env.nothing_to_fetch().await;
}

pub(super) async fn the_first_part_consumes_the_fetched_messages(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    env.nothing_to_fetch().await;
}

pub(super) async fn what_arrives_between_parts_stays_for_the_next_turn(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.send("i1", "meanwhile").await;
    env.turn(&item).event(2).ack().await;
    let next = env.fetch().await;
    assert_eq!((bodies(&next), next.attempt_count, next.last_event_id), (vec!["meanwhile"], 1, 2));
}

pub(super) async fn what_a_part_sends_to_its_own_instance_stays_for_the_next_turn(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).post(message("i1", "self")).keep_lock().ack().await;
    env.nothing_to_fetch().await;
    env.turn(&item).ack().await;
    assert_eq!(bodies(&env.fetch().await), ["self"]);
}

pub(super) async fn a_part_committed_twice_is_a_conflict(env: Env) {
    // D4: after an unknown outcome the holder repeats the part and learns that it had worked.
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).work(job(1)).keep_lock().ack().await;
    conflict(env.turn(&item).event(1).work(job(1)).keep_lock().try_ack().await);
    assert_eq!(env.take_ids(ask().max(9)).await, [1]);
    env.turn(&item).event(2).ack().await;
}

pub(super) async fn a_kept_lock_keeps_its_remaining_time(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance_short_of_span().await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.send("i1", "next").await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    lock_lost(env.turn(&item).event(2).try_ack().await);
    assert_eq!(bodies(&env.fetch().await), ["next"]);
}

pub(super) async fn a_part_does_not_extend_the_lock(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance(env.span() / 2).await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.advance(env.span() / 2).await;
    lock_lost(env.turn(&item).event(2).try_ack().await);
}

pub(super) async fn a_kept_lock_that_expired_is_fenced(env: Env) {
    env.send("i1", "go").await;
    let stale = env.fetch_for(env.span()).await;
    env.turn(&stale).event(1).keep_lock().ack().await;
    env.send("i1", "next").await;
    env.advance_span().await;
    let fresh = env.fetch().await;
    assert_eq!((bodies(&fresh), fresh.last_event_id), (vec!["next"], 1));
    lock_lost(env.turn(&stale).event(2).try_ack().await);
    env.turn(&fresh).event(2).ack().await;
}

pub(super) async fn a_kept_lock_can_be_renewed(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.turn(&item).event(1).keep_lock().ack().await;
    env.renew_orchestration_item_lock(item.lock_token, LOCK).await.unwrap();
    env.advance_span().await;
    env.turn(&item).event(2).ack().await;
}

pub(super) async fn a_refused_part_keeps_the_parts_before_it(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).keep_lock().ack().await;
    conflict(env.turn(&item).event(1).status(ExecutionStatus::Failed).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Running);
}

pub(super) async fn a_part_may_begin_the_next_execution(env: Env) {
    env.start("i1").await;
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(2).status(ExecutionStatus::ContinuedAsNew).keep_lock().ack().await;
    env.turn(&item).execution(2).event(1).ack().await;
    assert_eq!(env.list_executions("i1").await.unwrap(), [1, 2]);
}
