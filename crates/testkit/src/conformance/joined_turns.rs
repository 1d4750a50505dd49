//! A turn may be committed together with the end of the activity that brings it. For stores that join turns; others pass.

use segno::store::{
    AckOrchestrationItem, ExecutionStatus, Expect, LockedWorkItem, TurnLock, WatchUntil, WorkerMessage,
};

use super::fixture::*;

const INCARNATION: u64 = 7;

/// Makes `i1` with one event and an activity, and locks the activity. `None` when the store does not join turns.
async fn running(env: &Env) -> Option<LockedWorkItem> {
    schedule(env, job(1)).await?;
    Some(env.work().await)
}

/// Makes `i1` with one event and this activity.
async fn schedule(env: &Env, job: WorkerMessage) -> Option<()> {
    if !env.joins_turns() {
        return None;
    }
    let turn = env.turn_of("i1").await.named("Flow").event(1).work(job);
    turn.metadata(|metadata| metadata.incarnation = Some(INCARNATION)).ack().await;
    Some(())
}

/// A turn that joins the activity.
fn joining(env: &Env, work: &LockedWorkItem) -> Turn {
    joining_as(env, work, INCARNATION)
}

fn joining_as(env: &Env, work: &LockedWorkItem, incarnation: u64) -> Turn {
    let empty = AckOrchestrationItem::empty(work.lock_token, 1);
    Turn { env: env.clone(), ack: AckOrchestrationItem { lock: TurnLock::Activity { incarnation }, ..empty } }
}

/// Fails unless a turn is refused and leaves nothing behind. The activity can be ended by itself then.
async fn refused_to(env: &Env, work: &LockedWorkItem, turn: Turn) {
    let before = env.info("i1").await;
    lock_lost(turn.work(job(9)).post(message("i2", "x")).record(put("r")).try_ack().await);
    assert_eq!(env.info("i1").await, before);
    assert_eq!(env.record("r").await, None);
    env.no_work().await;
    env.finish(work.lock_token).await.unwrap();
}

pub(super) async fn a_joined_turn_ends_its_activity(env: Env) {
    let Some(work) = running(&env).await else { return };
    let turn = joining(&env, &work).event(2).work(job(2)).post(message("i2", "x")).record(put("r"));
    turn.ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
    lock_lost(env.finish(work.lock_token).await);
    assert_eq!(env.work().await.message, job(2));
    env.no_work().await;
    assert_eq!(instances(&env.fetch_many(9).await), ["i2"]);
    assert!(env.record("r").await.is_some());
}

pub(super) async fn a_joined_turn_leaves_no_lock(env: Env) {
    let Some(work) = running(&env).await else { return };
    joining(&env, &work).event(2).ack().await;
    lock_lost(env.abandon_orchestration_item(work.lock_token, None, false).await);
    env.send("i1", "next").await;
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.last_event_id, item.attempt_count), (vec!["next"], 2, 1));
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!((depths.worker_queue, depths.locked), (0, 1));
}

pub(super) async fn an_activity_is_joined_once(env: Env) {
    let Some(work) = running(&env).await else { return };
    joining(&env, &work).event(2).ack().await;
    lock_lost(joining(&env, &work).event(2).try_ack().await);
    lock_lost(joining(&env, &work).event(3).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
}

pub(super) async fn one_turn_after_the_other_joins(env: Env) {
    let Some(mut work) = running(&env).await else { return };
    for number in 2..=5 {
        joining(&env, &work).event(number).work(job(number)).ack().await;
        work = env.work().await;
    }
    joining(&env, &work).event(6).status(ExecutionStatus::Completed).output("all").ack().await;
    let info = env.watch_instance("i1", WatchUntil::Terminal, NO_WAIT).await.unwrap().unwrap();
    assert_eq!((info.status, info.output.as_deref()), (ExecutionStatus::Completed, Some(&b"all"[..])));
    env.no_work().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn nothing_joins_a_locked_instance(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.send("i1", "go").await;
    let item = env.fetch().await;
    refused_to(&env, &work, joining(&env, &work).event(2)).await;
    env.turn(&item).event(2).ack().await;
}

pub(super) async fn nothing_joins_while_a_message_waits(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.send("i1", "go").await;
    refused_to(&env, &work, joining(&env, &work).event(2)).await;
    assert_eq!(bodies(&env.fetch().await), ["go"]);
}

pub(super) async fn a_message_that_is_due_later_is_no_obstacle(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.send_later("i1", "later", env.span()).await;
    joining(&env, &work).event(2).ack().await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    let item = env.fetch().await;
    assert_eq!((bodies(&item), item.last_event_id), (vec!["later"], 2));
}

pub(super) async fn a_joined_turn_takes_back_a_timer(env: Env) {
    let Some(work) = running(&env).await else { return };
    let at_ms = env.now().await + u64::try_from(env.span().as_millis()).unwrap();
    env.post(timer("i1", 4, at_ms)).await;
    joining(&env, &work).event(2).cancel_timer(4).ack().await;
    env.advance_span().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn nothing_joins_an_instance_that_was_given_back_for_a_while(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(LOCK), false).await.unwrap();
    refused_to(&env, &work, joining(&env, &work).event(2)).await;
}

pub(super) async fn a_joined_turn_follows_the_last_event(env: Env) {
    let Some(work) = running(&env).await else { return };
    lock_lost(joining(&env, &work).event(1).try_ack().await);
    lock_lost(joining(&env, &work).event(3).try_ack().await);
    lock_lost(joining(&env, &work).try_ack().await);
    refused_to(&env, &work, joining(&env, &work).execution(2).event(1)).await;
}

pub(super) async fn a_joined_turn_goes_on_with_the_same_incarnation(env: Env) {
    let Some(work) = running(&env).await else { return };
    refused_to(&env, &work, joining_as(&env, &work, INCARNATION + 1).event(2)).await;
}

pub(super) async fn nothing_joins_an_execution_without_an_incarnation(env: Env) {
    if !env.joins_turns() {
        return;
    }
    env.turn_of("i1").await.named("Flow").event(1).work(job(1)).ack().await;
    let work = env.work().await;
    refused_to(&env, &work, joining_as(&env, &work, 0).event(2)).await;
}

pub(super) async fn a_joined_turn_may_name_its_activity_among_the_cancelled(env: Env) {
    let Some(work) = running(&env).await else { return };
    joining(&env, &work).event(2).cancel_activity(activity("i1", 1)).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
    env.no_work().await;
}

pub(super) async fn a_joined_turn_keeps_the_session_of_its_activity(env: Env) {
    if schedule(&env, session_job("s", 1)).await.is_none() {
        return;
    }
    let work = env.take(ask().owner("a")).await.remove(0);
    joining(&env, &work).event(2).work(session_job("s", 2)).ack().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [0; 0], "the session is another's");
    assert_eq!(env.take_ids(ask().owner("a")).await, [2]);
}

pub(super) async fn nothing_joins_an_earlier_execution(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    let next = env.turn_of("i1").await.execution(2).event(1);
    next.metadata(|metadata| metadata.incarnation = Some(INCARNATION)).ack().await;
    refused_to(&env, &work, joining(&env, &work).event(2)).await;
}

pub(super) async fn nothing_joins_an_activity_that_was_delivered_before(env: Env) {
    if schedule(&env, job(1)).await.is_none() {
        return;
    }
    let given_back = env.work().await;
    env.abandon_work_item(given_back.lock_token, None, false).await.unwrap();
    let work = env.work().await;
    refused_to(&env, &work, joining(&env, &work).event(2)).await;
}

pub(super) async fn nothing_joins_under_a_lock_that_is_lost(env: Env) {
    if schedule(&env, job(1)).await.is_none() {
        return;
    }
    let work = env.work_for(env.span()).await;
    env.advance_span().await;
    lock_lost(joining(&env, &work).event(2).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.work().await.message, job(1));
}

pub(super) async fn nothing_joins_an_activity_that_was_cancelled(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.turn_of("i1").await.cancel_activity(activity("i1", 1)).ack().await;
    lock_lost(joining(&env, &work).event(2).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn nothing_joins_an_instance_that_was_deleted(env: Env) {
    let Some(work) = running(&env).await else { return };
    env.delete_instance("i1", true).await.unwrap();
    lock_lost(joining(&env, &work).event(2).try_ack().await);
    not_found(env.get_instance_info("i1").await);
}

pub(super) async fn a_joined_turn_with_a_failed_expectation_changes_nothing(env: Env) {
    let Some(work) = running(&env).await else { return };
    let wrong = put("r").expecting(Expect::Version(5));
    conflict(joining(&env, &work).event(2).record(put("other")).record(wrong).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.record("other").await, None);
    joining(&env, &work).event(2).record(put("r")).ack().await;
}

pub(super) async fn a_joined_turn_has_no_lock_to_keep(env: Env) {
    let Some(work) = running(&env).await else { return };
    refused_to(&env, &work, joining(&env, &work).event(2).keep_lock()).await;
}
