//! A turn takes back activities and timers; their holders learn of it by losing their locks (C1, T2).

use segno::store::{
    LockToken, OrchestratorMessage, ScheduledActivityIdentifier, TimerIdentifier, WorkerMessage,
};

use super::fixture::*;

async fn cancel(env: &Env, activity_id: u64) {
    env.turn_of("i1").await.cancel_activity(activity("i1", activity_id)).ack().await;
}

/// Executions and event ids around (2, 2), with their neighbours on all sides.
fn grid() -> impl Iterator<Item = (u64, u64)> {
    (1..=3).flat_map(|execution_id| (1..=3).map(move |event_id| (execution_id, event_id)))
}

async fn soon(env: &Env) -> u64 {
    env.now().await + u64::try_from(env.span().as_millis()).unwrap()
}

pub(super) async fn a_queued_activity_is_taken_back(env: Env) {
    env.queue(job(1)).await;
    cancel(&env, 1).await;
    env.no_work().await;
}

pub(super) async fn a_delayed_activity_is_taken_back(env: Env) {
    let visible_at_ms = Some(soon(&env).await);
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    cancel(&env, 1).await;
    env.advance_span().await;
    env.no_work().await;
}

pub(super) async fn a_running_activity_cannot_be_finished_after_its_cancellation(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    cancel(&env, 1).await;
    lock_lost(env.complete(work.lock_token, "i1").await);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_running_activity_learns_of_its_cancellation_by_renewing(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.renew_work(work.lock_token, LOCK).await.unwrap();
    cancel(&env, 1).await;
    lock_lost(env.renew_work(work.lock_token, LOCK).await);
}

pub(super) async fn a_cancelled_activity_cannot_be_given_back(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    cancel(&env, 1).await;
    lock_lost(env.abandon_work_item(work.lock_token, None, false).await);
    env.no_work().await;
}

pub(super) async fn a_cancelled_activity_does_not_come_back_when_its_lock_expires(env: Env) {
    env.queue(job(1)).await;
    env.work_for(env.span()).await;
    cancel(&env, 1).await;
    env.advance_span().await;
    env.no_work().await;
}

pub(super) async fn cancelling_what_is_unknown_or_finished_is_fine(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.finish(work.lock_token).await.unwrap();
    let turn =
        env.turn_of("i1").await.cancel_activity(activity("i1", 1)).cancel_activity(activity("nobody", 9));
    turn.event(1).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn only_the_named_activity_is_taken_back(env: Env) {
    let mut expected = vec![activity("i2", 2)];
    for (execution_id, activity_id) in grid() {
        expected.push(ScheduledActivityIdentifier { execution_id, ..activity("i1", activity_id) });
    }
    for activity in &expected {
        env.queue(WorkerMessage { activity: activity.clone(), ..job(1) }).await;
    }
    let cancelled = ScheduledActivityIdentifier { execution_id: 2, ..activity("i1", 2) };
    env.turn_of("i1").await.cancel_activity(cancelled.clone()).ack().await;
    expected.retain(|activity| *activity != cancelled);
    let left: Vec<_> = env.take(ask().max(99)).await.into_iter().map(|item| item.message.activity).collect();
    assert_eq!(left, expected);
}

pub(super) async fn many_activities_are_taken_back_in_one_turn(env: Env) {
    let turn = (1..=100).fold(env.turn_of("i1").await, |turn, id| turn.work(job(id)));
    turn.ack().await;
    let running = env.take(ask().max(50)).await;
    let turn = env.turn_of("i1").await;
    (1..=100).fold(turn, |turn, id| turn.cancel_activity(activity("i1", id))).ack().await;
    env.no_work().await;
    let tokens: Vec<LockToken> = running.iter().map(|item| item.lock_token).collect();
    assert_eq!(env.lost_work_items(&tokens).await.unwrap().len(), 50);
}

pub(super) async fn an_activity_that_a_turn_asks_for_and_takes_back_never_runs(env: Env) {
    env.turn_of("i1").await.work(job(2)).cancel_activity(activity("i1", 2)).ack().await;
    env.no_work().await;
}

pub(super) async fn a_turn_can_take_back_activities_of_another_instance(env: Env) {
    env.queue(job_of("child", 1)).await;
    env.turn_of("i1").await.cancel_activity(activity("child", 1)).ack().await;
    env.no_work().await;
}

pub(super) async fn a_cancelled_activity_is_named_as_lost(env: Env) {
    env.queue(job(1)).await;
    env.queue(job(2)).await;
    let (one, two) = (env.work().await.lock_token, env.work().await.lock_token);
    cancel(&env, 1).await;
    assert_eq!(env.lost_work_items(&[one, two]).await.unwrap(), [one]);
}

pub(super) async fn finished_given_back_and_unknown_activities_are_lost(env: Env) {
    env.queue(job(1)).await;
    env.queue(job(2)).await;
    let (one, two) = (env.work().await.lock_token, env.work().await.lock_token);
    env.finish(one).await.unwrap();
    env.abandon_work_item(two, None, false).await.unwrap();
    let unknown = LockToken(u64::MAX);
    let mut lost = env.lost_work_items(&[one, two, unknown]).await.unwrap();
    lost.sort_unstable();
    assert_eq!(lost, [one, two, unknown]);
}

pub(super) async fn an_expired_activity_is_lost_also_after_a_takeover(env: Env) {
    env.queue(job(1)).await;
    let stale = env.work_for(env.span()).await.lock_token;
    assert_eq!(env.lost_work_items(&[stale]).await.unwrap(), []);
    env.advance_span().await;
    assert_eq!(env.lost_work_items(&[stale]).await.unwrap(), [stale]);
    let fresh = env.work().await.lock_token;
    assert_eq!(env.lost_work_items(&[stale, fresh]).await.unwrap(), [stale]);
}

pub(super) async fn asking_for_lost_work_changes_nothing(env: Env) {
    env.queue(job(1)).await;
    let token = env.work().await.lock_token;
    assert_eq!(env.lost_work_items(&[]).await.unwrap(), []);
    assert_eq!(env.lost_work_items(&[token, token]).await.unwrap(), []);
    env.no_work().await;
    env.finish(token).await.unwrap();
}

pub(super) async fn asking_for_lost_work_does_not_extend_a_lock(env: Env) {
    env.queue(job(1)).await;
    let token = env.work_for(env.span()).await.lock_token;
    env.advance_short_of_span().await;
    env.lost_work_items(&[token]).await.unwrap();
    env.advance_span().await;
    env.work().await;
}

pub(super) async fn a_timer_that_was_taken_back_never_fires(env: Env) {
    env.post(timer("i1", 2, soon(&env).await)).await;
    env.turn_of("i1").await.cancel_timer(2).ack().await;
    env.advance_span().await;
    env.nothing_to_fetch().await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 0);
}

pub(super) async fn a_timer_that_came_due_during_the_turn_is_taken_back(env: Env) {
    env.post(timer("i1", 2, soon(&env).await)).await;
    let turn = env.turn_of("i1").await;
    env.advance_span().await;
    turn.cancel_timer(2).ack().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn a_timer_that_was_fetched_and_cancelled_is_gone(env: Env) {
    env.post(timer("i1", 2, 1)).await;
    let item = env.fetch().await;
    env.turn(&item).cancel_timer(2).ack().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn taking_back_an_unknown_timer_is_fine(env: Env) {
    env.turn_of("i1").await.cancel_timer(77).event(1).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn only_the_named_timer_is_taken_back(env: Env) {
    let at_ms = soon(&env).await;
    env.post(timer("i1", 2, at_ms)).await;
    env.post(timer("i1", 3, at_ms)).await;
    env.send_later("i1", "not a timer", env.span()).await;
    env.turn_of("i1").await.cancel_timer(2).ack().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["timer", "not a timer"]);
}

pub(super) async fn the_same_timer_of_another_instance_stays(env: Env) {
    env.post(timer("i2", 2, soon(&env).await)).await;
    env.turn_of("i1").await.cancel_timer(2).ack().await;
    env.advance_span().await;
    assert_eq!(&*env.fetch().await.instance, "i2");
}

pub(super) async fn the_same_timer_of_another_execution_stays(env: Env) {
    let at_ms = soon(&env).await;
    for (execution_id, timer_id) in grid() {
        let identifier = Some(TimerIdentifier { execution_id, timer_id });
        env.post(OrchestratorMessage { timer: identifier, ..timer("i1", 0, at_ms) }).await;
    }
    let mut turn = env.turn_of("i1").await;
    turn.ack.cancelled_timers.push(TimerIdentifier { execution_id: 2, timer_id: 2 });
    turn.ack().await;
    env.advance_span().await;
    assert_eq!(env.fetch().await.messages.len(), grid().count() - 1);
}

pub(super) async fn a_refused_turn_takes_back_no_timer(env: Env) {
    env.start("i1").await;
    env.post(timer("i1", 2, soon(&env).await)).await;
    let turn = env.turn_of("i1").await.cancel_timer(2);
    let token = turn.ack.lock_token;
    conflict(turn.event(1).try_ack().await);
    env.abandon_orchestration_item(token, None, false).await.unwrap();
    env.advance_span().await;
    assert_eq!(env.fetch().await.messages.len(), 2);
}
