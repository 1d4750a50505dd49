//! A lock on an activity that outlives the process holds when the store is opened again: its holder
//! is elsewhere, and goes on.

use segno::store::{LockLife, LockToken, LockedWorkItem, TagFilter, WorkerMessage};

use super::fixture::{Ask, Env, LOCK, activity, ask, job, lock_lost, tagged_job};

/// Any activity, under a lock that outlives the process.
fn durable() -> Ask {
    ask().durable()
}

/// The same for activities with the tag of remote workers.
fn far() -> Ask {
    durable().tags(TagFilter::tags(["far"]))
}

fn far_job(activity_id: u64) -> WorkerMessage {
    tagged_job("far", activity_id)
}

/// Queues an activity and locks it.
async fn leased(env: &Env, ask: Ask) -> LockedWorkItem {
    env.queue(job(1)).await;
    env.take(ask).await.pop().expect("the activity that was queued just now")
}

/// Whether the token holds.
async fn holds(env: &Env, token: LockToken) -> bool {
    env.lost_work_items(&[token]).await.unwrap().is_empty()
}

pub(super) async fn a_durable_lock_holds_after_reopening(env: Env) {
    let item = leased(&env, durable()).await;
    let env = env.reopen().await;
    assert!(holds(&env, item.lock_token).await);
    env.no_work().await;
    assert!(env.take(durable()).await.is_empty());
    assert_eq!(env.get_queue_depths().await.unwrap().locked, 1);
}

pub(super) async fn the_holder_of_a_durable_lock_can_answer_after_reopening(env: Env) {
    let item = leased(&env, durable()).await;
    let env = env.reopen().await;
    env.renew_work(item.lock_token, LOCK).await.unwrap();
    let env = env.reopen().await;
    env.complete(item.lock_token, "i1").await.unwrap();
    assert_eq!(env.fetch().await.messages.len(), 1);
    lock_lost(env.finish(item.lock_token).await);
    let env = env.reopen().await;
    env.no_work().await;
}

pub(super) async fn the_holder_of_a_durable_lock_can_give_up_after_reopening(env: Env) {
    let item = leased(&env, durable()).await;
    let env = env.reopen().await;
    env.abandon_work_item(item.lock_token, None, true).await.unwrap();
    assert_eq!(env.take(durable()).await[0].attempt_count, 1);
}

pub(super) async fn a_durable_lock_ends_at_its_time_after_reopening(env: Env) {
    let item = leased(&env, durable().lock(env.span())).await;
    let env = env.reopen().await;
    env.no_work().await;
    env.advance_span().await;
    lock_lost(env.finish(item.lock_token).await);
    let again = env.work().await;
    assert_eq!((again.attempt_count, again.message), (2, job(1)));
    assert!(again.lock_token > item.lock_token);
}

pub(super) async fn a_durable_lock_that_ended_meanwhile_is_gone(env: Env) {
    let item = leased(&env, durable().lock(env.span())).await;
    env.advance_span().await;
    let env = env.reopen().await;
    assert!(!holds(&env, item.lock_token).await);
    assert_eq!(env.work().await.attempt_count, 2);
}

pub(super) async fn every_delivery_under_a_durable_lock_counts_across_reopening(mut env: Env) {
    env.queue(job(1)).await;
    for delivery in 1..=3 {
        let item = env.take(durable().lock(env.span())).await.pop().expect("its lock has ended");
        assert_eq!(item.attempt_count, delivery);
        env = env.reopen().await;
        env.advance_span().await;
    }
}

pub(super) async fn a_renewal_of_a_durable_lock_outlives_the_process(env: Env) {
    let item = leased(&env, durable().lock(env.span())).await;
    env.renew_work(item.lock_token, LOCK).await.unwrap();
    let env = env.reopen().await;
    env.advance_span().await;
    env.no_work().await;
    env.finish(item.lock_token).await.unwrap();
}

pub(super) async fn a_renewal_makes_a_lock_durable(env: Env) {
    let item = leased(&env, ask()).await;
    env.renew_work_item_lock(item.lock_token, LOCK, LockLife::Durable).await.unwrap();
    let env = env.reopen().await;
    env.no_work().await;
    env.finish(item.lock_token).await.unwrap();
}

pub(super) async fn a_durable_lock_that_was_made_shorter_ends_earlier(env: Env) {
    let item = leased(&env, durable()).await;
    env.renew_work(item.lock_token, env.span()).await.unwrap();
    env.no_work().await;
    env.advance_span().await;
    assert_eq!(env.work().await.attempt_count, 2);
}

pub(super) async fn a_cancelled_activity_leaves_no_durable_lock(env: Env) {
    env.start("i1").await;
    let item = leased(&env, durable()).await;
    env.turn_of("i1").await.cancel_activity(activity("i1", 1)).event(2).ack().await;
    lock_lost(env.renew_work(item.lock_token, LOCK).await);
    let env = env.reopen().await;
    lock_lost(env.renew_work(item.lock_token, LOCK).await);
    env.no_work().await;
}

pub(super) async fn a_waiting_fetch_gets_a_durable_lock_on_what_comes(env: Env) {
    let turn = env.turn_of("i1").await;
    let fetch = env.waiting_work(far().max(2).waiting()).await;
    turn.work(far_job(1)).work(far_job(2)).work(far_job(3)).work(tagged_job("near", 4)).event(1).ack().await;
    let items = fetch.answer().await;
    let taken: Vec<_> = items.iter().map(|item| (item.message.clone(), item.attempt_count)).collect();
    assert_eq!(taken, [(far_job(1), 1), (far_job(2), 1)], "the oldest, and no more than it asked for");
    let env = env.reopen().await;
    for item in &items {
        assert!(holds(&env, item.lock_token).await);
    }
    assert_eq!(env.take_ids(far().max(9)).await, [3]);
    env.finish(items[0].lock_token).await.unwrap();
    assert_eq!(env.take_ids(ask().max(9)).await, [4]);
}

pub(super) async fn what_is_cancelled_before_a_waiting_fetch_gets_it_is_not_handed_out(env: Env) {
    let turn = env.turn_of("i1").await;
    let fetch = env.waiting_work(far().waiting()).await;
    turn.work(far_job(1)).cancel_activity(activity("i1", 1)).event(1).ack().await;
    env.settle().await;
    fetch.still_waits();
    env.queue(far_job(2)).await;
    assert_eq!(fetch.answer().await[0].message, far_job(2));
}

pub(super) async fn what_comes_for_a_fetch_that_has_gone_is_for_others(env: Env) {
    let fetch = env.waiting_work(far().waiting()).await;
    fetch.give_up().await;
    env.queue(far_job(1)).await;
    let item = env.take(far()).await.pop().expect("the first fetch is gone");
    assert_eq!(item.attempt_count, 1);
}

pub(super) async fn activities_for_waiting_fetches_go_to_the_one_that_takes_their_tag(env: Env) {
    let far_fetch = env.waiting_work(far().waiting()).await;
    let near_fetch = env.waiting_work(durable().tags(TagFilter::tags(["near"])).waiting()).await;
    env.queue(tagged_job("near", 1)).await;
    assert_eq!(near_fetch.answer().await[0].message, tagged_job("near", 1));
    far_fetch.still_waits();
    env.queue(far_job(2)).await;
    assert_eq!(far_fetch.answer().await[0].message, far_job(2));
}

pub(super) async fn a_waiting_fetch_does_not_get_a_delayed_activity_early(env: Env) {
    let fetch = env.waiting_work(far().waiting()).await;
    let visible_at_ms = Some(env.now().await + env.span().as_millis() as u64);
    env.queue(WorkerMessage { visible_at_ms, ..far_job(1) }).await;
    env.settle().await;
    fetch.still_waits();
    env.advance_span().await;
    assert_eq!(fetch.answer().await.len(), 1);
}
