//! Every fetch is counted per message, and an abandon gives the batch back as it was (L5).

use super::fixture::*;

async fn abandon(env: &Env) -> u32 {
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    item.attempt_count
}

async fn abandon_uncounted(env: &Env) -> u32 {
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, true).await.unwrap();
    item.attempt_count
}

async fn abandon_work(env: &Env) -> u32 {
    let item = env.work().await;
    env.abandon_work_item(item.lock_token, None, false).await.unwrap();
    item.attempt_count
}

async fn abandon_work_uncounted(env: &Env) -> u32 {
    let item = env.work().await;
    env.abandon_work_item(item.lock_token, None, true).await.unwrap();
    item.attempt_count
}

pub(super) async fn every_fetch_of_a_message_counts(env: Env) {
    env.send("i1", "go").await;
    assert_eq!((abandon(&env).await, abandon(&env).await, abandon(&env).await), (1, 2, 3));
}

pub(super) async fn an_expired_lock_counts(env: Env) {
    env.send("i1", "go").await;
    env.fetch_for(env.span()).await;
    env.advance_span().await;
    assert_eq!(env.fetch().await.attempt_count, 2);
}

pub(super) async fn an_ignored_attempt_does_not_count(env: Env) {
    env.send("i1", "go").await;
    abandon(&env).await;
    assert_eq!(abandon_uncounted(&env).await, 2);
    assert_eq!(env.fetch().await.attempt_count, 2);
}

pub(super) async fn ignored_attempts_never_go_below_zero(env: Env) {
    env.send("i1", "go").await;
    for _ in 0..3 {
        assert_eq!(abandon_uncounted(&env).await, 1);
    }
    assert_eq!(env.fetch().await.attempt_count, 1);
}

pub(super) async fn a_batch_has_the_count_of_its_most_fetched_message(env: Env) {
    env.send("i1", "old").await;
    abandon(&env).await;
    env.send("i1", "new").await;
    let item = env.fetch().await;
    assert_eq!((item.attempt_count, item.messages.len()), (2, 2));
}

pub(super) async fn the_next_message_starts_its_own_count(env: Env) {
    env.send("i1", "old").await;
    abandon(&env).await;
    env.turn(&env.fetch().await).ack().await;
    env.send("i1", "new").await;
    assert_eq!(env.fetch().await.attempt_count, 1);
}

pub(super) async fn a_message_that_came_under_a_lock_is_not_counted_for_it(env: Env) {
    env.send("i1", "old").await;
    let item = env.fetch().await;
    env.send("i1", "new").await;
    env.turn(&item).ack().await;
    assert_eq!(env.fetch().await.attempt_count, 1);
}

pub(super) async fn a_renewal_does_not_count(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.renew_orchestration_item_lock(item.lock_token, LOCK).await.unwrap();
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    assert_eq!(env.fetch().await.attempt_count, 2);
}

pub(super) async fn an_abandoned_batch_comes_back_at_once(env: Env) {
    env.send("i1", "a").await;
    env.send("i1", "b").await;
    abandon(&env).await;
    assert_eq!(bodies(&env.fetch().await), ["a", "b"]);
}

pub(super) async fn an_abandoned_batch_comes_back_after_its_delay(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(env.span()), false).await.unwrap();
    env.advance_short_of_span().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert_eq!(env.fetch().await.attempt_count, 2);
}

pub(super) async fn an_abandoned_batch_stays_ahead_of_later_messages(env: Env) {
    env.send("i1", "a").await;
    env.send("i1", "b").await;
    let item = env.fetch().await;
    env.send("i1", "c").await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c"]);
}

pub(super) async fn an_abandon_changes_nothing_else(env: Env) {
    env.start("i1").await;
    let before = env.info("i1").await;
    env.send("i1", "go").await;
    abandon(&env).await;
    assert_eq!(env.info("i1").await, before);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn an_abandon_works_once(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    lock_lost(env.abandon_orchestration_item(item.lock_token, None, true).await);
    assert_eq!(env.fetch().await.attempt_count, 2);
}

pub(super) async fn every_fetch_of_an_activity_counts(env: Env) {
    env.queue(job(1)).await;
    assert_eq!((abandon_work(&env).await, abandon_work(&env).await, abandon_work(&env).await), (1, 2, 3));
}

pub(super) async fn an_expired_work_lock_counts(env: Env) {
    env.queue(job(1)).await;
    env.work_for(env.span()).await;
    env.advance_span().await;
    assert_eq!(env.work().await.attempt_count, 2);
}

pub(super) async fn an_ignored_attempt_of_an_activity_does_not_count(env: Env) {
    env.queue(job(1)).await;
    abandon_work(&env).await;
    assert_eq!(abandon_work_uncounted(&env).await, 2);
    assert_eq!(env.work().await.attempt_count, 2);
}

pub(super) async fn ignored_attempts_of_an_activity_never_go_below_zero(env: Env) {
    env.queue(job(1)).await;
    for _ in 0..3 {
        assert_eq!(abandon_work_uncounted(&env).await, 1);
    }
    assert_eq!(env.work().await.attempt_count, 1);
}

pub(super) async fn a_renewal_of_an_activity_does_not_count(env: Env) {
    env.queue(job(1)).await;
    let item = env.work().await;
    env.renew_work(item.lock_token, LOCK).await.unwrap();
    env.abandon_work_item(item.lock_token, None, false).await.unwrap();
    assert_eq!(env.work().await.attempt_count, 2);
}

pub(super) async fn activities_are_counted_one_by_one(env: Env) {
    env.queue(job(1)).await;
    abandon_work(&env).await;
    env.queue(job(2)).await;
    let counts: Vec<u32> = env.take(ask().max(2)).await.iter().map(|item| item.attempt_count).collect();
    assert_eq!(counts, [2, 1]);
}

pub(super) async fn an_abandoned_activity_comes_back_unchanged(env: Env) {
    env.queue(tagged_job("gpu", 1)).await;
    abandon_work(&env).await;
    assert_eq!(env.work().await.message, tagged_job("gpu", 1));
}

pub(super) async fn an_abandoned_activity_comes_back_after_its_delay(env: Env) {
    env.queue(job(1)).await;
    let item = env.work().await;
    env.abandon_work_item(item.lock_token, Some(env.span()), false).await.unwrap();
    env.advance_short_of_span().await;
    env.no_work().await;
    env.advance_span().await;
    env.work().await;
}

pub(super) async fn an_abandoned_activity_cannot_be_finished_by_its_old_token(env: Env) {
    env.queue(job(1)).await;
    let item = env.work().await;
    env.abandon_work_item(item.lock_token, None, false).await.unwrap();
    lock_lost(env.complete(item.lock_token, "i1").await);
    env.nothing_to_fetch().await;
    env.work().await;
}
