//! The end of an activity, its completion and its records are one commit (D2, L1, H6).

use segno::store::{AckWorkItem, Expect, OrchestratorMessage};

use super::fixture::*;

pub(super) async fn a_finished_activity_leaves_the_queue(env: Env) {
    env.queue(job(1)).await;
    let work = env.work_for(env.span()).await;
    env.finish(work.lock_token).await.unwrap();
    env.advance_span().await;
    env.no_work().await;
}

pub(super) async fn a_completion_reaches_its_instance(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    let item = env.fetch().await;
    assert_eq!((&*item.instance, bodies(&item)), ("i1", vec!["done"]));
}

pub(super) async fn a_completion_may_be_for_another_instance(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.complete(work.lock_token, "parent").await.unwrap();
    assert_eq!(&*env.fetch().await.instance, "parent");
}

pub(super) async fn an_activity_without_a_completion_tells_nobody(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.finish(work.lock_token).await.unwrap();
    env.nothing_to_fetch().await;
}

pub(super) async fn an_activity_is_finished_once(env: Env) {
    env.queue(job(1)).await;
    let work = env.work().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    lock_lost(env.complete(work.lock_token, "i1").await);
    assert_eq!(env.fetch().await.messages.len(), 1);
}

pub(super) async fn a_delayed_completion_comes_at_its_time(env: Env) {
    env.queue(job(1)).await;
    let lock_token = env.work().await.lock_token;
    let visible_at_ms = Some(env.now().await + u64::try_from(env.span().as_millis()).unwrap());
    let completion = Some(OrchestratorMessage { visible_at_ms, ..message("i1", "done") });
    env.ack_work_item(AckWorkItem { lock_token, completion, records: Vec::new() }).await.unwrap();
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["done"]);
}

pub(super) async fn records_are_written_with_the_completion(env: Env) {
    env.write([put("old")]).await;
    env.queue(job(1)).await;
    let lock_token = env.work().await.lock_token;
    let records = vec![put("new"), delete("old")];
    let completion = Some(message("i1", "done"));
    env.ack_work_item(AckWorkItem { lock_token, completion, records }).await.unwrap();
    assert!(env.record("new").await.is_some());
    assert_eq!(env.record("old").await, None);
    env.fetch().await;
}

pub(super) async fn a_failed_record_expectation_finishes_nothing(env: Env) {
    env.queue(job(1)).await;
    let lock_token = env.work().await.lock_token;
    let records = vec![put("new"), put("other").expecting(Expect::Version(5))];
    let completion = Some(message("i1", "done"));
    conflict(env.ack_work_item(AckWorkItem { lock_token, completion, records }).await);
    assert_eq!(env.record("new").await, None);
    env.nothing_to_fetch().await;
    env.complete(lock_token, "i1").await.unwrap();
}

pub(super) async fn a_lost_lock_writes_no_record(env: Env) {
    env.queue(job(1)).await;
    let lock_token = env.work_for(env.span()).await.lock_token;
    env.advance_span().await;
    lock_lost(env.ack_work_item(AckWorkItem { lock_token, completion: None, records: vec![put("r")] }).await);
    assert_eq!(env.record("r").await, None);
}

pub(super) async fn completions_keep_the_order_in_which_they_were_committed(env: Env) {
    for id in 1..=3 {
        env.queue(job(id)).await;
    }
    let items = env.take(ask().max(3)).await;
    for (index, body) in [(2, "third"), (0, "first"), (1, "second")] {
        let completion = Some(message("i1", body));
        let ack = AckWorkItem { lock_token: items[index].lock_token, completion, records: Vec::new() };
        env.ack_work_item(ack).await.unwrap();
    }
    assert_eq!(bodies(&env.fetch().await), ["third", "first", "second"]);
}

pub(super) async fn the_same_activity_id_of_two_instances_is_two_activities(env: Env) {
    env.queue(job_of("i1", 1)).await;
    env.queue(job_of("i2", 1)).await;
    let items = env.take(ask().max(2)).await;
    env.complete(items[0].lock_token, "i1").await.unwrap();
    env.complete(items[1].lock_token, "i2").await.unwrap();
    assert_eq!(instances(&env.fetch_many(9).await), ["i1", "i2"]);
}

pub(super) async fn a_locked_activity_comes_with_everything_that_was_enqueued(env: Env) {
    let message = segno::store::WorkerMessage { tag: Some("gpu".to_owned()), ..session_job("s", 4) };
    env.queue(message.clone()).await;
    assert_eq!(env.take(ask().owner("a")).await[0].message, message);
}
