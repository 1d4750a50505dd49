//! A fetch waits inside the store and is woken by whatever makes work visible (L4).

use segno::store::{
    DispatcherCapabilityFilter, FetchOrchestrationItems, RecordBatch, SemverRange, TagFilter, WorkerMessage,
};
use semver::Version;

use super::fixture::*;
use super::wait::Waiting;

const WAITERS: usize = 8;

async fn after_span(env: &Env) -> Option<u64> {
    Some(env.now().await + u64::try_from(env.span().as_millis()).unwrap())
}

pub(super) async fn a_fetch_without_patience_answers_at_once(env: Env) {
    let fetch = Waiting::start(&env, {
        let env = env.clone();
        async move { env.fetch_many(1).await }
    });
    assert!(fetch.await.answer().await.is_empty());
    env.no_work().await;
}

pub(super) async fn a_fetch_waits_out_its_poll_timeout(env: Env) {
    let deadline = after_span(&env).await.unwrap();
    let fetch = env.fetch_waiting_for(env.span()).await;
    assert!(fetch.answer_within(&env, env.span() * 2).await.is_empty());
    assert!(env.now().await >= deadline);
}

pub(super) async fn a_fetch_is_woken_by_an_enqueue(env: Env) {
    let fetch = env.waiting_fetch().await;
    env.send("i1", "go").await;
    assert_eq!(&*fetch.answer().await[0].instance, "i1");
}

pub(super) async fn a_fetch_is_woken_by_a_turn_of_another_instance(env: Env) {
    let turn = env.turn_of("i1").await;
    let fetch = env.waiting_fetch().await;
    turn.post(message("i2", "go")).ack().await;
    assert_eq!(&*fetch.answer().await[0].instance, "i2");
}

pub(super) async fn a_fetch_is_woken_by_a_finished_activity(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    let fetch = env.waiting_fetch().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    assert_eq!(bodies(&fetch.answer().await[0]), ["done"]);
}

pub(super) async fn a_fetch_is_woken_by_a_record_commit(env: Env) {
    let fetch = env.waiting_fetch().await;
    let batch = RecordBatch { orchestrator_items: vec![message("i1", "go")], ..RecordBatch::default() };
    env.commit_records(batch).await.unwrap();
    assert_eq!(&*fetch.answer().await[0].instance, "i1");
}

pub(super) async fn a_fetch_is_woken_by_an_abandon(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    let fetch = env.waiting_fetch().await;
    env.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
    assert_eq!(fetch.answer().await[0].attempt_count, 2);
}

pub(super) async fn a_fetch_is_woken_when_an_abandoned_batch_is_due(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(env.span()), false).await.unwrap();
    let fetch = env.waiting_fetch().await;
    env.advance_span().await;
    assert_eq!(fetch.answer().await[0].attempt_count, 2);
}

pub(super) async fn a_fetch_is_woken_by_the_ack_that_frees_an_instance(env: Env) {
    let turn = env.turn_of("i1").await;
    env.send("i1", "meanwhile").await;
    let fetch = env.waiting_fetch().await;
    turn.ack().await;
    assert_eq!(bodies(&fetch.answer().await[0]), ["meanwhile"]);
}

pub(super) async fn a_fetch_is_woken_by_the_time_of_a_delayed_message(env: Env) {
    env.send_later("i1", "late", env.span()).await;
    let fetch = env.waiting_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&fetch.answer().await[0]), ["late"]);
}

pub(super) async fn a_fetch_is_woken_for_a_delayed_message_that_came_later(env: Env) {
    let fetch = env.waiting_fetch().await;
    env.send_later("i1", "late", env.span()).await;
    env.settle().await;
    fetch.still_waits();
    env.advance_span().await;
    assert_eq!(bodies(&fetch.answer().await[0]), ["late"]);
}

pub(super) async fn a_fetch_that_waits_for_a_later_time_is_woken_for_an_earlier_one(env: Env) {
    env.send_later("far", "x", LOCK / 2).await;
    let fetch = env.waiting_fetch().await;
    env.send_later("near", "x", env.span()).await;
    env.advance_span().await;
    assert_eq!(&*fetch.answer().await[0].instance, "near");
}

pub(super) async fn a_fetch_is_woken_by_the_expiry_of_a_lock(env: Env) {
    env.send("i1", "go").await;
    env.fetch_for(env.span()).await;
    let fetch = env.waiting_fetch().await;
    env.advance_span().await;
    assert_eq!(fetch.answer().await[0].attempt_count, 2);
}

pub(super) async fn a_fetch_is_woken_for_what_came_under_an_expired_lock(env: Env) {
    env.send("i1", "go").await;
    env.turn(&env.fetch_for(env.span()).await).keep_lock().ack().await;
    env.send("i1", "meanwhile").await;
    let fetch = env.waiting_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&fetch.answer().await[0]), ["meanwhile"]);
}

pub(super) async fn every_waiting_fetch_is_woken_for_its_own_instance(env: Env) {
    let mut fetches = Vec::new();
    for _ in 0..WAITERS {
        fetches.push(env.waiting_fetch().await);
    }
    for id in 0..WAITERS {
        env.send(&format!("i{id}"), "go").await;
    }
    let mut items = Vec::new();
    for fetch in fetches {
        items.extend(fetch.answer().await);
    }
    assert_eq!(instances(&items), (0..WAITERS).map(|id| format!("i{id}")).collect::<Vec<_>>());
}

pub(super) async fn one_turn_wakes_as_many_fetches_as_it_made_work_for(env: Env) {
    let turn = env.turn_of("i1").await;
    let (one, two) = (env.waiting_fetch().await, env.waiting_fetch().await);
    turn.post(message("a", "go")).post(message("b", "go")).ack().await;
    let mut items = one.answer().await;
    items.extend(two.answer().await);
    assert_eq!(instances(&items), ["a", "b"]);
}

pub(super) async fn a_dropped_fetch_takes_nothing_with_it(env: Env) {
    let (dropped, kept) = (env.waiting_fetch().await, env.waiting_fetch().await);
    dropped.give_up().await;
    env.send("i1", "go").await;
    let items = kept.answer().await;
    assert_eq!((&*items[0].instance, items[0].attempt_count), ("i1", 1));
}

pub(super) async fn a_fetch_waits_on_while_only_others_work_arrives(env: Env) {
    env.turn_of("i1").await.pinned("9.0.0").ack().await;
    let fetch = Waiting::start(&env, {
        let env = env.clone();
        async move {
            let range = SemverRange { min: Version::new(0, 0, 0), max: Version::new(1, 0, 0) };
            let filter = DispatcherCapabilityFilter { supported_versions: vec![range] };
            let request = FetchOrchestrationItems {
                poll_timeout: LOCK,
                filter: Some(&filter),
                ..FetchOrchestrationItems::one(LOCK)
            };
            env.fetch_orchestration_items(request).await.unwrap()
        }
    })
    .await;
    env.send("i1", "too new").await;
    env.settle().await;
    fetch.still_waits();
    env.send("i2", "fits").await;
    assert_eq!(&*fetch.answer().await[0].instance, "i2");
}

pub(super) async fn a_worker_waits_out_its_poll_timeout(env: Env) {
    let deadline = after_span(&env).await.unwrap();
    let fetch = env.waiting_work(ask().waiting_for(env.span())).await;
    assert!(fetch.answer_within(&env, env.span() * 2).await.is_empty());
    assert!(env.now().await >= deadline);
}

pub(super) async fn a_worker_is_woken_by_an_enqueue(env: Env) {
    let fetch = env.waiting_work(ask().waiting()).await;
    env.queue(job(1)).await;
    assert_eq!(fetch.answer().await[0].message, job(1));
}

pub(super) async fn a_worker_is_woken_by_a_turn(env: Env) {
    let turn = env.turn_of("i1").await;
    let fetch = env.waiting_work(ask().waiting()).await;
    turn.work(job(1)).ack().await;
    assert_eq!(fetch.answer().await[0].message, job(1));
}

pub(super) async fn a_worker_is_woken_by_a_record_commit(env: Env) {
    let fetch = env.waiting_work(ask().waiting()).await;
    let batch = RecordBatch { worker_items: vec![job(1)], ..RecordBatch::default() };
    env.commit_records(batch).await.unwrap();
    assert_eq!(fetch.answer().await[0].message, job(1));
}

pub(super) async fn a_worker_is_woken_by_an_abandon(env: Env) {
    env.queue(job(1)).await;
    let item = env.work().await;
    let fetch = env.waiting_work(ask().waiting()).await;
    env.abandon_work_item(item.lock_token, None, false).await.unwrap();
    assert_eq!(fetch.answer().await[0].attempt_count, 2);
}

pub(super) async fn a_worker_is_woken_by_an_activity_that_is_expedited(env: Env) {
    let visible_at_ms = Some(env.now().await + 3_600_000);
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    let fetch = env.waiting_work(ask().waiting()).await;
    assert_eq!(env.expedite_activities("i1").await.unwrap(), 1);
    assert_eq!(fetch.answer().await[0].attempt_count, 1);
}

pub(super) async fn a_worker_is_woken_by_the_time_of_a_delayed_activity(env: Env) {
    let visible_at_ms = after_span(&env).await;
    let fetch = env.waiting_work(ask().waiting()).await;
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    env.settle().await;
    fetch.still_waits();
    env.advance_span().await;
    assert_eq!(fetch.answer().await.len(), 1);
}

pub(super) async fn a_worker_is_woken_by_the_expiry_of_a_lock(env: Env) {
    env.queue(job(1)).await;
    env.work_for(env.span()).await;
    let fetch = env.waiting_work(ask().waiting()).await;
    env.advance_span().await;
    assert_eq!(fetch.answer().await[0].attempt_count, 2);
}

pub(super) async fn a_worker_is_woken_by_the_expiry_of_a_session(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.queue(session_job("s", 2)).await;
    env.take(ask().owner("a").session_lock(env.span())).await;
    let fetch = env.waiting_work(ask().owner("b").waiting()).await;
    env.advance_span().await;
    assert_eq!(fetch.answer().await[0].message, session_job("s", 2));
}

pub(super) async fn workers_of_one_owner_are_all_woken_for_its_session(env: Env) {
    let mut fetches = Vec::new();
    for _ in 0..WAITERS {
        fetches.push(env.waiting_work(ask().owner("a").waiting()).await);
    }
    let turn = env.turn_of("i1").await;
    (0..WAITERS as u64).fold(turn, |turn, id| turn.work(session_job("s", id))).ack().await;
    for fetch in fetches {
        assert_eq!(fetch.answer().await.len(), 1);
    }
}

pub(super) async fn an_owner_is_woken_for_new_work_of_its_session(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.take(ask().owner("a")).await;
    let other = env.waiting_work(ask().owner("b").waiting()).await;
    let owner = env.waiting_work(ask().owner("a").owned_only().waiting()).await;
    env.queue(session_job("s", 2)).await;
    assert_eq!(owner.answer().await[0].message, session_job("s", 2));
    other.still_waits();
}

pub(super) async fn every_waiting_worker_is_woken_for_its_own_activity(env: Env) {
    let mut fetches = Vec::new();
    for _ in 0..WAITERS {
        fetches.push(env.waiting_work(ask().waiting()).await);
    }
    let turn = env.turn_of("i1").await;
    (0..WAITERS as u64).fold(turn, |turn, id| turn.work(job(id))).ack().await;
    let mut ids = Vec::new();
    for fetch in fetches {
        ids.extend(fetch.answer().await.iter().map(|item| item.message.activity.activity_id));
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..WAITERS as u64).collect::<Vec<_>>());
}

pub(super) async fn the_right_worker_is_woken_among_many(env: Env) {
    let gpu = env.waiting_work(ask().tags(TagFilter::tags(["gpu"])).waiting()).await;
    let cpu = env.waiting_work(ask().tags(TagFilter::tags(["cpu"])).waiting()).await;
    let plain = env.waiting_work(ask().tags(TagFilter::DefaultOnly).waiting()).await;
    env.queue(job(3)).await;
    assert_eq!(plain.answer().await[0].message, job(3));
    env.queue(tagged_job("cpu", 2)).await;
    assert_eq!(cpu.answer().await[0].message, tagged_job("cpu", 2));
    gpu.still_waits();
    env.queue(tagged_job("gpu", 1)).await;
    assert_eq!(gpu.answer().await[0].message, tagged_job("gpu", 1));
}

pub(super) async fn a_worker_without_sessions_waits_on_while_session_work_arrives(env: Env) {
    let fetch = env.waiting_work(ask().waiting()).await;
    env.queue(session_job("s", 1)).await;
    env.settle().await;
    fetch.still_waits();
    env.queue(job(2)).await;
    assert_eq!(fetch.answer().await[0].message, job(2));
}

pub(super) async fn a_dropped_worker_fetch_takes_nothing_with_it(env: Env) {
    let dropped = env.waiting_work(ask().waiting()).await;
    let kept = env.waiting_work(ask().waiting()).await;
    dropped.give_up().await;
    env.queue(job(1)).await;
    assert_eq!(kept.answer().await[0].attempt_count, 1);
}
