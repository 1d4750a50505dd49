//! A watch waits for an instance to reach a state and is woken by the commit that takes it there.

use segno::store::{
    ErrorKind, ExecutionStatus, InstanceInfo, OrchestratorMessage, ProviderError, WatchUntil,
};

use super::fixture::*;
use super::wait::Waiting;

pub(super) async fn a_watch_that_is_met_answers_at_once(env: Env) {
    env.start_and_end("i1").await;
    let info = env.watch_instance("i1", WatchUntil::Terminal, NO_WAIT).await.unwrap();
    assert_eq!(info, Some(env.info("i1").await));
}

pub(super) async fn a_watch_is_woken_by_the_end(env: Env) {
    env.start("i1").await;
    let watch = env.waiting_watch(WatchUntil::Terminal).await;
    env.turn_of("i1").await.status(ExecutionStatus::Failed).output("why").ack().await;
    let info = watch.answer().await.unwrap();
    assert_eq!((info.status, info.output.as_deref()), (ExecutionStatus::Failed, Some(b"why".as_slice())));
}

pub(super) async fn every_terminal_state_ends_a_watch(env: Env) {
    for status in [ExecutionStatus::Completed, ExecutionStatus::Failed, ExecutionStatus::Cancelled] {
        let id = status.as_str();
        env.turn_of(id).await.status(status).ack().await;
        assert!(env.watch_instance(id, WatchUntil::Terminal, NO_WAIT).await.unwrap().is_some());
    }
}

pub(super) async fn continuing_as_new_is_not_the_end(env: Env) {
    env.start("i1").await;
    let watch = env.waiting_watch(WatchUntil::Terminal).await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    env.settle().await;
    watch.still_waits();
    env.turn_of("i1").await.execution(2).status(ExecutionStatus::Completed).ack().await;
    assert_eq!(watch.answer().await.unwrap().current_execution_id, 2);
}

pub(super) async fn a_watch_can_begin_before_its_instance(env: Env) {
    let watch = env.waiting_watch(WatchUntil::RevisionAfter(0)).await;
    env.send("i1", "go").await;
    env.settle().await;
    watch.still_waits();
    env.turn(&env.fetch().await).named("Flow").ack().await;
    assert_eq!(watch.answer().await.unwrap().orchestration_name.as_deref(), Some("Flow"));
}

pub(super) async fn a_watch_ends_with_nothing_after_its_time(env: Env) {
    env.start("i1").await;
    let watch = Waiting::start(&env, {
        let (env, timeout) = (env.clone(), env.span());
        async move { env.watch_instance("i1", WatchUntil::Terminal, timeout).await.unwrap() }
    })
    .await;
    watch.still_waits();
    assert_eq!(watch.answer_within(&env, env.span() * 2).await, None);
}

pub(super) async fn a_watch_without_patience_answers_at_once(env: Env) {
    env.start("i1").await;
    assert_eq!(env.watch_instance("i1", WatchUntil::Terminal, NO_WAIT).await.unwrap(), None);
    assert_eq!(env.watch_instance("nobody", WatchUntil::RevisionAfter(0), NO_WAIT).await.unwrap(), None);
}

pub(super) async fn a_watch_ignores_other_instances(env: Env) {
    env.start("i1").await;
    let watch = env.waiting_watch(WatchUntil::Terminal).await;
    env.start_and_end("i2").await;
    watch.still_waits();
    env.put_status("i1", ExecutionStatus::Completed).await;
    assert_eq!(watch.answer().await.unwrap().instance_id, "i1");
}

pub(super) async fn a_watch_is_woken_by_a_custom_status(env: Env) {
    env.turn_of("i1").await.custom_status("one").ack().await;
    let watch = env.waiting_watch(WatchUntil::CustomStatusAfter(1)).await;
    env.turn_of("i1").await.event(1).ack().await;
    env.settle().await;
    watch.still_waits();
    env.turn_of("i1").await.custom_status("two").ack().await;
    let info = watch.answer().await.unwrap();
    assert_eq!((info.custom_status.as_deref(), info.custom_status_version), (Some(b"two".as_slice()), 2));
}

pub(super) async fn a_watch_of_the_custom_status_ends_with_the_instance(env: Env) {
    env.start("i1").await;
    let watch = env.waiting_watch(WatchUntil::CustomStatusAfter(0)).await;
    env.put_status("i1", ExecutionStatus::Completed).await;
    assert_eq!(watch.answer().await.unwrap().custom_status_version, 0);
}

pub(super) async fn a_watch_of_the_revision_is_woken_by_any_commit(env: Env) {
    env.start("i1").await;
    let revision = env.info("i1").await.revision;
    let watch = env.waiting_watch(WatchUntil::RevisionAfter(revision)).await;
    env.turn_of("i1").await.event(2).ack().await;
    assert_eq!(watch.answer().await.unwrap().revision, revision + 1);
}

pub(super) async fn every_watch_of_an_instance_is_woken(env: Env) {
    let mut watches = Vec::new();
    for _ in 0..8 {
        watches.push(env.waiting_watch(WatchUntil::Terminal).await);
    }
    env.start_and_end("i1").await;
    for watch in watches {
        assert!(watch.answer().await.is_some());
    }
}

async fn watched_start(
    env: &Env,
    start: OrchestratorMessage,
) -> Waiting<Result<InstanceInfo, ProviderError>> {
    let env_of_start = env.clone();
    Waiting::start(env, async move { env_of_start.start_and_watch(start).await }).await
}

pub(super) async fn a_watched_start_answers_with_the_end(env: Env) {
    let start = watched_start(&env, guarded_start("i1")).await;
    start.still_waits();
    env.turn(&env.fetch().await).named("Flow").event(1).ack().await;
    env.settle().await;
    start.still_waits();
    env.turn_of("i1").await.status(ExecutionStatus::Completed).output("42").ack().await;
    assert_eq!(start.answer().await.unwrap(), env.info("i1").await);
}

pub(super) async fn a_watched_start_of_an_instance_that_exists_is_refused(env: Env) {
    env.start("i1").await;
    let refused = env.start_and_watch(guarded_start("i1")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    env.nothing_to_fetch().await;
}

pub(super) async fn a_watched_message_to_an_instance_that_has_ended_answers_at_once(env: Env) {
    env.start_and_end("i1").await;
    let info = env.start_and_watch(message("i1", "late")).await.unwrap();
    assert_eq!(info, env.info("i1").await);
    assert_eq!(bodies(&env.fetch().await), ["late"]);
}

pub(super) async fn a_watched_start_that_nobody_waits_for_has_started(env: Env) {
    let start = watched_start(&env, guarded_start("i1")).await;
    start.still_waits();
    start.give_up().await;
    env.turn(&env.fetch().await).named("Flow").status(ExecutionStatus::Completed).ack().await;
    assert!(env.watch_instance("i1", WatchUntil::Terminal, NO_WAIT).await.unwrap().is_some());
}
