//! Messages come in the order in which they were enqueued, and never before their time (T1).

use segno::store::{OrchestratorMessage, WorkerMessage};

use super::fixture::*;

async fn after_span(env: &Env) -> Option<u64> {
    Some(env.now().await + u64::try_from(env.span().as_millis()).unwrap())
}

pub(super) async fn messages_come_oldest_first(env: Env) {
    for body in ["a", "b", "c", "d"] {
        env.send("i1", body).await;
    }
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c", "d"]);
}

pub(super) async fn message_ids_grow_with_every_enqueue(env: Env) {
    for body in ["a", "b", "c"] {
        env.send("i1", body).await;
    }
    let first = env.fetch().await;
    env.turn(&first).ack().await;
    env.send("i2", "d").await;
    let mut ids: Vec<u64> = first.messages.iter().map(|message| message.message_id).collect();
    ids.push(env.fetch().await.messages[0].message_id);
    assert!(ids.is_sorted_by(|before, after| before < after), "{ids:?}");
}

pub(super) async fn messages_of_a_turn_keep_their_order(env: Env) {
    let turn =
        env.turn_of("i1").await.post(message("i2", "a")).post(message("i2", "b")).post(message("i2", "c"));
    turn.ack().await;
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c"]);
}

pub(super) async fn order_survives_an_expired_lock(env: Env) {
    env.send("i1", "a").await;
    env.send("i1", "b").await;
    env.fetch_for(env.span()).await;
    env.send("i1", "c").await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["a", "b", "c"]);
}

pub(super) async fn a_batch_is_in_queue_order_also_with_delayed_messages(env: Env) {
    env.send_later("i1", "a", env.span()).await;
    env.send("i1", "b").await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["a", "b"]);
}

pub(super) async fn a_delayed_message_is_not_early(env: Env) {
    env.send_later("i1", "late", env.span()).await;
    env.advance_short_of_span().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn a_delayed_message_comes_at_its_time(env: Env) {
    env.send_later("i1", "late", env.span()).await;
    env.advance_span().await;
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.attempt_count), (vec!["late"], 1));
}

pub(super) async fn a_message_with_a_time_comes_at_its_time(env: Env) {
    let visible_at_ms = after_span(&env).await;
    env.post(OrchestratorMessage { visible_at_ms, ..message("i1", "late") }).await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["late"]);
}

pub(super) async fn a_message_whose_time_has_passed_comes_at_once(env: Env) {
    env.post(OrchestratorMessage { visible_at_ms: Some(1), ..message("i1", "old") }).await;
    assert_eq!(bodies(&env.fetch().await), ["old"]);
}

pub(super) async fn a_delay_wins_over_a_later_time_of_the_message(env: Env) {
    let message = OrchestratorMessage { visible_at_ms: Some(u64::MAX >> 2), ..message("i1", "x") };
    env.enqueue_for_orchestrator(message, Some(env.span())).await.unwrap();
    env.advance_span().await;
    env.fetch().await;
}

pub(super) async fn a_delay_wins_over_an_earlier_time_of_the_message(env: Env) {
    let message = OrchestratorMessage { visible_at_ms: Some(1), ..message("i1", "x") };
    env.enqueue_for_orchestrator(message, Some(env.span())).await.unwrap();
    env.nothing_to_fetch().await;
}

pub(super) async fn a_delay_of_zero_is_none(env: Env) {
    env.send_later("i1", "now", NO_WAIT).await;
    assert_eq!(bodies(&env.fetch().await), ["now"]);
}

pub(super) async fn a_delayed_message_does_not_hold_back_others(env: Env) {
    env.send_later("i1", "late", LOCK).await;
    env.send("i1", "now").await;
    env.send("i2", "now").await;
    let items = env.fetch_many(2).await;
    assert_eq!(instances(&items), ["i1", "i2"]);
    assert_eq!((bodies(&items[0]), bodies(&items[1])), (vec!["now"], vec!["now"]));
}

pub(super) async fn a_turn_leaves_delayed_messages_in_the_queue(env: Env) {
    env.send_later("i1", "late", env.span()).await;
    env.turn_of("i1").await.ack().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["late"]);
}

pub(super) async fn a_message_that_comes_due_under_a_lock_waits_for_it(env: Env) {
    env.send_later("i1", "late", env.span()).await;
    let turn = env.turn_of("i1").await;
    env.advance_span().await;
    env.nothing_to_fetch().await;
    turn.ack().await;
    assert_eq!(bodies(&env.fetch().await), ["late"]);
}

pub(super) async fn a_timer_of_a_turn_comes_at_its_time(env: Env) {
    let at_ms = after_span(&env).await.unwrap();
    env.turn_of("i1").await.post(timer("i1", 2, at_ms)).ack().await;
    env.advance_short_of_span().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert!(env.fetch().await.fetched_at_ms >= at_ms);
}

pub(super) async fn a_time_in_the_far_future_is_kept(env: Env) {
    env.post(OrchestratorMessage { visible_at_ms: Some(u64::MAX >> 2), ..message("i1", "x") }).await;
    env.queue(WorkerMessage { visible_at_ms: Some(u64::MAX >> 2), ..job(1) }).await;
    env.nothing_to_fetch().await;
    env.no_work().await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 2);
}

pub(super) async fn activities_come_oldest_first(env: Env) {
    for id in [3, 1, 2] {
        env.queue(job(id)).await;
    }
    assert_eq!(env.take_ids(ask()).await, [3]);
    assert_eq!(env.take_ids(ask().max(5)).await, [1, 2]);
}

pub(super) async fn activities_of_a_turn_keep_their_order(env: Env) {
    env.turn_of("i1").await.work(job(3)).work(job(1)).work(job(2)).ack().await;
    assert_eq!(env.take_ids(ask().max(5)).await, [3, 1, 2]);
}

pub(super) async fn a_delayed_activity_is_not_early(env: Env) {
    let visible_at_ms = after_span(&env).await;
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    env.advance_short_of_span().await;
    env.no_work().await;
}

pub(super) async fn a_delayed_activity_comes_at_its_time(env: Env) {
    let visible_at_ms = after_span(&env).await;
    env.turn_of("i1").await.work(WorkerMessage { visible_at_ms, ..job(1) }).ack().await;
    env.no_work().await;
    env.advance_span().await;
    assert_eq!(env.work().await.attempt_count, 1);
}

pub(super) async fn a_delayed_activity_does_not_hold_back_others(env: Env) {
    let visible_at_ms = after_span(&env).await;
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    env.queue(job(2)).await;
    assert_eq!(env.take_ids(ask().max(5)).await, [2]);
}

pub(super) async fn a_locked_activity_does_not_hold_back_others(env: Env) {
    env.queue(job(1)).await;
    env.queue(job(2)).await;
    env.work().await;
    assert_eq!(env.take_ids(ask().max(5)).await, [2]);
}

pub(super) async fn the_clock_of_the_store_moves_on(env: Env) {
    let before = env.now().await;
    env.advance_span().await;
    assert!(env.now().await >= before + u64::try_from(env.span().as_millis()).unwrap());
}

pub(super) async fn nothing_overtakes_a_batch_that_was_given_back_with_a_delay(env: Env) {
    env.send("i1", "1").await;
    let item = env.fetch().await;
    env.send("i1", "2").await;
    env.post(timer("i1", 7, env.now_ms().await.unwrap() + 1)).await;
    env.abandon_orchestration_item(item.lock_token, Some(env.span()), false).await.unwrap();
    env.send("i1", "4").await;
    env.nothing_to_fetch().await;
    env.advance_short_of_span().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    let order = bodies(&env.fetch().await).iter().map(|body| (*body).to_owned()).collect::<Vec<_>>();
    assert_eq!((order.len(), order[0].as_str(), order[1].as_str(), order[3].as_str()), (4, "1", "2", "4"));
}

pub(super) async fn a_delay_of_one_instance_holds_up_no_other(env: Env) {
    env.send("i1", "1").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(LOCK), false).await.unwrap();
    env.send("i2", "1").await;
    assert_eq!(&*env.fetch().await.instance, "i2");
    env.nothing_to_fetch().await;
}
