//! How one activity stands in the worker queue, as an operator asks for it.

use segno::store::{QueuePlace, QueuedWork, WorkerMessage};

use super::fixture::*;

async fn queued(env: &Env, activity_id: u64) -> Option<QueuedWork> {
    env.queued_activity(&activity("i1", activity_id)).await.unwrap()
}

async fn place(env: &Env, activity_id: u64) -> QueuePlace {
    queued(env, activity_id).await.expect("it is queued").place
}

pub(super) async fn what_is_not_queued_stands_nowhere(env: Env) {
    env.queue(job(1)).await;
    assert_eq!(queued(&env, 2).await, None);
    assert_eq!(env.queued_activity(&activity("nobody", 1)).await.unwrap(), None);
    let work = env.work().await;
    env.finish(work.lock_token).await.unwrap();
    assert_eq!(queued(&env, 1).await, None);
}

pub(super) async fn a_waiting_activity_is_ready_with_its_routing(env: Env) {
    env.queue(WorkerMessage { session_id: Some("s".to_owned()), ..tagged_job("gpu", 1) }).await;
    let found = queued(&env, 1).await.unwrap();
    assert_eq!((found.place, found.attempt_count), (QueuePlace::Ready, 0));
    assert_eq!((found.tag.as_deref(), found.session_id.as_deref()), (Some("gpu"), Some("s")));
    env.queue(job(2)).await;
    let plain = queued(&env, 2).await.unwrap();
    assert_eq!((plain.tag, plain.session_id), (None, None));
}

pub(super) async fn a_delayed_activity_has_its_time_until_it_comes(env: Env) {
    let visible_at_ms = env.now().await + u64::try_from(env.span().as_millis()).unwrap();
    env.queue(WorkerMessage { visible_at_ms: Some(visible_at_ms), ..job(1) }).await;
    assert_eq!(place(&env, 1).await, QueuePlace::Delayed { visible_at_ms });
    env.advance_span().await;
    assert_eq!(place(&env, 1).await, QueuePlace::Ready);
}

pub(super) async fn a_held_activity_has_its_lock_until_that_ends(env: Env) {
    env.queue(job(1)).await;
    let work = env.work_for(env.span()).await;
    let found = queued(&env, 1).await.unwrap();
    let QueuePlace::Locked { lock_token, until_ms } = found.place else { panic!("{found:?}") };
    assert_eq!((lock_token, found.attempt_count), (work.lock_token, 1));
    assert!(until_ms > work.fetched_at_ms, "{until_ms} {}", work.fetched_at_ms);
    env.renew_work(work.lock_token, env.span() * 2).await.unwrap();
    let renewed = place(&env, 1).await;
    assert!(matches!(renewed, QueuePlace::Locked { until_ms: later, .. } if later > until_ms), "{renewed:?}");
    env.advance_span().await;
    env.advance_span().await;
    assert_eq!(place(&env, 1).await, QueuePlace::Ready, "the lock has run out");
    let again = env.work().await;
    assert_eq!(queued(&env, 1).await.unwrap().attempt_count, 2);
    env.abandon_work_item(again.lock_token, None, true).await.unwrap();
    let back = queued(&env, 1).await.unwrap();
    assert_eq!((back.place, back.attempt_count), (QueuePlace::Ready, 1), "that fetch does not count");
}

pub(super) async fn executions_and_events_are_told_apart(env: Env) {
    let mut other = job(1);
    other.activity.execution_id += 1;
    env.queue(WorkerMessage { tag: Some("next".to_owned()), ..other.clone() }).await;
    assert_eq!(queued(&env, 1).await, None);
    let found = env.queued_activity(&other.activity).await.unwrap().unwrap();
    assert_eq!(found.tag.as_deref(), Some("next"));
}
