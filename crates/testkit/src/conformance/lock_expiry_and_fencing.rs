//! A lock ends at its time, and who held it before changes nothing afterwards (L2, L3, L4, L6).

use segno::store::LockToken;

use super::fixture::*;

const UNKNOWN: LockToken = LockToken(u64::MAX);

/// An instance whose lock was taken over: the stale item and the fresh one.
async fn taken_over(env: &Env) -> (segno::store::OrchestrationItem, segno::store::OrchestrationItem) {
    env.send("i1", "go").await;
    let stale = env.fetch_for(env.span()).await;
    env.advance_span().await;
    (stale, env.fetch().await)
}

/// An activity whose lock was taken over: the stale token and the fresh one.
async fn work_taken_over(env: &Env) -> (LockToken, LockToken) {
    env.queue(job(1)).await;
    let stale = env.work_for(env.span()).await.lock_token;
    env.advance_span().await;
    (stale, env.work().await.lock_token)
}

pub(super) async fn an_instance_lock_holds_until_its_time(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance_short_of_span().await;
    env.nothing_to_fetch().await;
    env.turn(&item).ack().await;
}

pub(super) async fn an_expired_instance_is_offered_again(env: Env) {
    let (stale, fresh) = taken_over(&env).await;
    assert_eq!(fresh.messages, stale.messages);
}

pub(super) async fn an_expired_instance_comes_with_what_arrived_meanwhile(env: Env) {
    env.send("i1", "first").await;
    env.fetch_for(env.span()).await;
    env.send("i1", "second").await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["first", "second"]);
}

pub(super) async fn a_takeover_has_a_higher_token(env: Env) {
    let (stale, fresh) = taken_over(&env).await;
    assert!(fresh.lock_token > stale.lock_token);
}

pub(super) async fn a_stale_token_cannot_ack(env: Env) {
    let (stale, fresh) = taken_over(&env).await;
    lock_lost(env.turn(&stale).event(1).work(job(1)).try_ack().await);
    env.no_work().await;
    env.turn(&fresh).event(1).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn a_stale_token_cannot_abandon(env: Env) {
    let (stale, fresh) = taken_over(&env).await;
    lock_lost(env.abandon_orchestration_item(stale.lock_token, None, false).await);
    env.nothing_to_fetch().await;
    env.turn(&fresh).ack().await;
}

pub(super) async fn a_stale_token_cannot_renew(env: Env) {
    let (stale, fresh) = taken_over(&env).await;
    lock_lost(env.renew_orchestration_item_lock(stale.lock_token, LOCK).await);
    env.turn(&fresh).ack().await;
}

pub(super) async fn an_expired_token_cannot_ack_even_if_nobody_took_over(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance_span().await;
    lock_lost(env.turn(&item).event(1).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), []);
}

pub(super) async fn an_expired_token_cannot_renew(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance_span().await;
    lock_lost(env.renew_orchestration_item_lock(item.lock_token, LOCK).await);
    env.fetch().await;
}

pub(super) async fn an_expired_token_cannot_abandon(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.advance_span().await;
    lock_lost(env.abandon_orchestration_item(item.lock_token, Some(LOCK), false).await);
    env.fetch().await;
}

pub(super) async fn an_unknown_token_holds_no_instance(env: Env) {
    lock_lost(env.abandon_orchestration_item(UNKNOWN, None, false).await);
    lock_lost(env.renew_orchestration_item_lock(UNKNOWN, LOCK).await);
    let mut turn = env.turn_of("i1").await;
    turn.ack.lock_token = UNKNOWN;
    lock_lost(turn.try_ack().await);
}

pub(super) async fn a_renewed_instance_lock_outlives_its_first_time(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.renew_orchestration_item_lock(item.lock_token, LOCK).await.unwrap();
    env.advance_span().await;
    env.nothing_to_fetch().await;
    env.turn(&item).ack().await;
}

pub(super) async fn a_renewed_instance_lock_ends_after_its_new_time(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch_for(env.span()).await;
    env.renew_orchestration_item_lock(item.lock_token, env.span() * 2).await.unwrap();
    env.advance_span().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    env.fetch().await;
}

pub(super) async fn an_acked_or_abandoned_token_cannot_renew(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).ack().await;
    lock_lost(env.renew_orchestration_item_lock(item.lock_token, LOCK).await);
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    lock_lost(env.renew_orchestration_item_lock(item.lock_token, LOCK).await);
}

pub(super) async fn an_abandoned_token_cannot_ack(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    lock_lost(env.turn(&item).event(1).try_ack().await);
    assert_eq!(bodies(&env.fetch().await), ["go"]);
}

pub(super) async fn a_lock_that_expired_twice_is_fenced_twice(env: Env) {
    env.send("i1", "go").await;
    let first = env.fetch_for(env.span()).await;
    env.advance_span().await;
    let second = env.fetch_for(env.span()).await;
    env.advance_span().await;
    let third = env.fetch().await;
    lock_lost(env.turn(&first).try_ack().await);
    lock_lost(env.turn(&second).try_ack().await);
    env.turn(&third).ack().await;
}

pub(super) async fn a_work_lock_holds_until_its_time(env: Env) {
    env.queue(job(1)).await;
    let item = env.work_for(env.span()).await;
    env.advance_short_of_span().await;
    env.no_work().await;
    env.finish(item.lock_token).await.unwrap();
}

pub(super) async fn an_expired_activity_is_offered_again(env: Env) {
    let (stale, fresh) = work_taken_over(&env).await;
    assert!(fresh > stale);
}

pub(super) async fn a_stale_token_cannot_finish_an_activity(env: Env) {
    // L1
    let (stale, fresh) = work_taken_over(&env).await;
    lock_lost(env.complete(stale, "i1").await);
    env.nothing_to_fetch().await;
    env.complete(fresh, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["done"]);
}

pub(super) async fn a_stale_token_cannot_abandon_an_activity(env: Env) {
    let (stale, fresh) = work_taken_over(&env).await;
    lock_lost(env.abandon_work_item(stale, None, false).await);
    env.no_work().await;
    env.finish(fresh).await.unwrap();
}

pub(super) async fn a_stale_token_cannot_renew_an_activity(env: Env) {
    let (stale, fresh) = work_taken_over(&env).await;
    lock_lost(env.renew_work(stale, LOCK).await);
    env.finish(fresh).await.unwrap();
}

pub(super) async fn an_expired_token_cannot_finish_an_activity(env: Env) {
    env.queue(job(1)).await;
    let token = env.work_for(env.span()).await.lock_token;
    env.advance_span().await;
    lock_lost(env.complete(token, "i1").await);
    lock_lost(env.renew_work(token, LOCK).await);
    env.nothing_to_fetch().await;
    env.work().await;
}

pub(super) async fn an_unknown_token_holds_no_activity(env: Env) {
    env.queue(job(1)).await;
    lock_lost(env.complete(UNKNOWN, "i1").await);
    lock_lost(env.abandon_work_item(UNKNOWN, None, false).await);
    lock_lost(env.renew_work(UNKNOWN, LOCK).await);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_renewed_work_lock_outlives_its_first_time(env: Env) {
    env.queue(job(1)).await;
    let token = env.work_for(env.span()).await.lock_token;
    env.renew_work(token, LOCK).await.unwrap();
    env.advance_span().await;
    env.no_work().await;
    env.finish(token).await.unwrap();
}

pub(super) async fn a_renewed_work_lock_ends_after_its_new_time(env: Env) {
    env.queue(job(1)).await;
    let token = env.work_for(env.span()).await.lock_token;
    env.renew_work(token, env.span() * 2).await.unwrap();
    env.advance_span().await;
    env.no_work().await;
    env.advance_span().await;
    assert!(env.work().await.lock_token > token);
}

pub(super) async fn a_renewal_can_make_a_work_lock_shorter(env: Env) {
    env.queue(job(1)).await;
    let token = env.work_for(env.span() * 10).await.lock_token;
    env.renew_work(token, env.span()).await.unwrap();
    env.no_work().await;
    env.advance_span().await;
    assert!(env.work().await.lock_token > token);
}

pub(super) async fn the_time_of_a_work_fetch_is_the_stores_time(env: Env) {
    env.queue(job(1)).await;
    env.advance_span().await;
    let before = env.now().await;
    let fetched_at_ms = env.work().await.fetched_at_ms;
    assert!((before..=env.now().await).contains(&fetched_at_ms));
}

pub(super) async fn tokens_of_the_two_queues_are_not_exchangeable(env: Env) {
    env.send("i1", "go").await;
    env.queue(job(1)).await;
    let (item, work) = (env.fetch().await, env.work().await);
    lock_lost(env.finish(item.lock_token).await);
    lock_lost(env.abandon_orchestration_item(work.lock_token, None, false).await);
    env.finish(work.lock_token).await.unwrap();
    env.turn(&item).ack().await;
}
