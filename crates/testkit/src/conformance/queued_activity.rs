//! How one activity stands in the worker queue, as an operator asks for it.

use segno::store::{QueuePlace, QueuedWork, ScheduledActivityIdentifier, TagFilter, WorkerMessage};

use super::fixture::*;

async fn queued(env: &Env, activity_id: u64) -> Option<QueuedWork> {
    standing(env, &activity("i1", activity_id)).await
}

/// How an activity stands; of several that were queued for it, the one that came last.
async fn standing(env: &Env, activity: &ScheduledActivityIdentifier) -> Option<QueuedWork> {
    let mut found = env.queued_activities(&activity.instance).await.unwrap();
    found.retain(|queued| {
        (queued.execution_id, queued.activity_id) == (activity.execution_id, activity.activity_id)
    });
    found.pop().map(|queued| queued.work)
}

async fn place(env: &Env, activity_id: u64) -> QueuePlace {
    queued(env, activity_id).await.expect("it is queued").place
}

pub(super) async fn what_is_not_queued_stands_nowhere(env: Env) {
    env.queue(job(1)).await;
    assert_eq!(queued(&env, 2).await, None);
    assert_eq!(standing(&env, &activity("nobody", 1)).await, None);
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
    let found = standing(&env, &other.activity).await.unwrap();
    assert_eq!(found.tag.as_deref(), Some("next"));
}

pub(super) async fn of_several_for_the_same_activity_the_last_one_counts(env: Env) {
    env.queue(tagged_job("first", 1)).await;
    env.queue(tagged_job("last", 1)).await;
    env.queue(tagged_job("other", 2)).await;
    let first = env.take(ask().tags(TagFilter::tags(["first"]))).await;
    let found = queued(&env, 1).await.unwrap();
    assert_eq!(
        (found.tag.as_deref(), found.place, found.attempt_count),
        (Some("last"), QueuePlace::Ready, 0)
    );
    let last = env.take(ask().tags(TagFilter::tags(["last"]))).await;
    let QueuePlace::Locked { lock_token, .. } = place(&env, 1).await else { panic!("it is held") };
    assert_eq!(lock_token, last[0].lock_token);
    env.finish(last[0].lock_token).await.unwrap();
    let left = queued(&env, 1).await.unwrap();
    assert_eq!(
        (left.tag.as_deref(), left.attempt_count),
        (Some("first"), 1),
        "the one before is still there"
    );
    env.finish(first[0].lock_token).await.unwrap();
    assert_eq!(queued(&env, 1).await, None);
}

pub(super) async fn activities_of_all_executions_are_listed_with_tag_and_count(env: Env) {
    let of_execution = |execution_id: u64, message: WorkerMessage| {
        let mut message = message;
        message.activity.execution_id = execution_id;
        message
    };
    env.queue(of_execution(2, tagged_job("gpu", 1))).await;
    env.queue(of_execution(2, session_job("s", 3))).await;
    env.queue(of_execution(1, job(9))).await;
    env.queue(of_execution(10, job(2))).await;
    let held = env.take(ask().tags(TagFilter::tags(["gpu"]))).await;
    env.abandon_work_item(held[0].lock_token, None, false).await.unwrap();
    let found = env.queued_activities("i1").await.unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|queued| {
            let QueuedWork { attempt_count, tag, session_id, .. } = &queued.work;
            let routing = (tag.as_deref(), session_id.as_deref());
            (queued.execution_id, queued.activity_id, *attempt_count, routing)
        })
        .collect();
    let expected = [
        (1, 9, 0, (None, None)),
        (2, 1, 1, (Some("gpu"), None)),
        (2, 3, 0, (None, Some("s"))),
        (10, 2, 0, (None, None)),
    ];
    assert_eq!(shown, expected, "by execution and activity, as numbers");
    assert!(found.iter().all(|queued| queued.work.place == QueuePlace::Ready));
}

pub(super) async fn delayed_activities_are_expedited_and_no_others_change(env: Env) {
    let later_ms = env.now().await + 3_600_000;
    let delayed = |message: WorkerMessage| WorkerMessage { visible_at_ms: Some(later_ms), ..message };
    env.queue(tagged_job("held", 1)).await;
    let held = env.take(ask().tags(TagFilter::tags(["held"]))).await;
    env.queue(tagged_job("tried", 2)).await;
    let tried = env.take(ask().tags(TagFilter::tags(["tried"]))).await;
    env.abandon_work_item(tried[0].lock_token, Some(LOCK), false).await.unwrap();
    env.queue(delayed(session_job("s", 3))).await;
    env.queue(delayed(job_of("i10", 4))).await;
    assert_eq!(env.expedite_activities("i1").await.unwrap(), 2);
    let tried = queued(&env, 2).await.unwrap();
    assert_eq!((tried.place, tried.attempt_count), (QueuePlace::Ready, 1), "its attempts stay");
    assert_eq!(place(&env, 3).await, QueuePlace::Ready);
    assert!(matches!(place(&env, 1).await, QueuePlace::Locked { .. }));
    let other = standing(&env, &activity("i10", 4)).await.unwrap();
    assert_eq!(other.place, QueuePlace::Delayed { visible_at_ms: later_ms });
    assert_eq!(env.expedite_activities("i1").await.unwrap(), 0, "a second time changes nothing");
    assert_eq!(env.expedite_activities("nobody").await.unwrap(), 0);
    env.finish(held[0].lock_token).await.unwrap();
    let again = env.take(ask().tags(TagFilter::tags(["tried"]))).await;
    assert_eq!((again.len(), again[0].attempt_count), (1, 2), "it can be fetched");
}
