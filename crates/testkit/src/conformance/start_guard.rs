//! Starting twice is starting once, what needs its instance finds it, and the store is the one that knows (I1, I3).

use segno::store::{ExecutionStatus, Guards, OrchestratorMessage, RecordBatch, StartGuard};

use super::fixture::*;

async fn start(env: &Env, instance: &str) -> Result<(), segno::store::ProviderError> {
    env.enqueue_for_orchestrator(guarded_start(instance), None).await
}

/// A message for an instance that must be there.
fn needing(instance: &str) -> OrchestratorMessage {
    OrchestratorMessage { guard: StartGuard::IfPresent, ..message(instance, "control") }
}

async fn nothing_queued(env: &Env) {
    env.nothing_to_fetch().await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.delayed()), (0, 0));
}

pub(super) async fn the_first_start_is_accepted(env: Env) {
    start(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["start"]);
}

pub(super) async fn a_second_start_is_refused_while_the_first_waits(env: Env) {
    start(&env, "i1").await.unwrap();
    conflict(start(&env, "i1").await);
    assert_eq!(env.fetch().await.messages.len(), 1);
}

pub(super) async fn a_second_start_is_refused_while_the_first_is_locked(env: Env) {
    start(&env, "i1").await.unwrap();
    env.fetch().await;
    conflict(start(&env, "i1").await);
}

pub(super) async fn a_second_start_is_refused_while_the_first_is_delayed(env: Env) {
    env.enqueue_for_orchestrator(guarded_start("i1"), Some(LOCK)).await.unwrap();
    conflict(start(&env, "i1").await);
    nothing_to_fetch_but_one_delayed(&env).await;
}

async fn nothing_to_fetch_but_one_delayed(env: &Env) {
    env.nothing_to_fetch().await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 1);
}

pub(super) async fn a_start_of_a_running_instance_is_refused(env: Env) {
    env.start("i1").await;
    conflict(start(&env, "i1").await);
    nothing_queued(&env).await;
}

pub(super) async fn a_start_of_an_ended_instance_is_refused(env: Env) {
    env.start_and_end("i1").await;
    conflict(start(&env, "i1").await);
    nothing_queued(&env).await;
}

pub(super) async fn a_start_is_refused_after_continuing_as_new(env: Env) {
    env.start("i1").await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    conflict(start(&env, "i1").await);
}

pub(super) async fn an_instance_without_a_name_can_be_started(env: Env) {
    env.turn_of("i1").await.event(1).ack().await;
    start(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["start"]);
}

pub(super) async fn other_messages_do_not_stand_in_the_way_of_a_start(env: Env) {
    env.send("i1", "early").await;
    start(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["early", "start"]);
}

pub(super) async fn a_message_without_a_guard_is_always_accepted(env: Env) {
    env.start("i1").await;
    env.send("i1", "start").await;
    env.send("i1", "start").await;
    assert_eq!(env.fetch().await.messages.len(), 2);
}

pub(super) async fn a_start_that_was_consumed_without_a_name_can_be_repeated(env: Env) {
    start(&env, "i1").await.unwrap();
    env.turn(&env.fetch().await).ack().await;
    start(&env, "i1").await.unwrap();
}

pub(super) async fn a_consumed_start_does_not_linger_behind_other_messages(env: Env) {
    start(&env, "i1").await.unwrap();
    env.send_later("i1", "later", LOCK).await;
    env.turn(&env.fetch().await).ack().await;
    start(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["start"]);
}

pub(super) async fn starts_of_different_instances_do_not_meet(env: Env) {
    start(&env, "i1").await.unwrap();
    start(&env, "i2").await.unwrap();
    assert_eq!(instances(&env.fetch_many(9).await), ["i1", "i2"]);
}

pub(super) async fn a_deleted_instance_can_be_started_again(env: Env) {
    env.start_and_end("i1").await;
    env.delete_instance("i1", false).await.unwrap();
    start(&env, "i1").await.unwrap();
    assert_eq!(env.fetch().await.last_event_id, 0);
}

pub(super) async fn a_turn_leaves_out_a_start_of_an_existing_instance(env: Env) {
    env.start("child").await;
    let turn = env.turn_of("i1").await.event(1).post(guarded_start("child")).post(message("other", "x"));
    turn.ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(instances(&env.fetch_many(9).await), ["other"]);
}

pub(super) async fn a_turn_leaves_out_a_start_that_waits_already(env: Env) {
    start(&env, "child").await.unwrap();
    env.send("i1", "go").await;
    let items = env.fetch_many(9).await;
    let parent = items.iter().find(|item| &*item.instance == "i1").unwrap();
    let child = items.iter().find(|item| &*item.instance == "child").unwrap();
    env.turn(parent).post(guarded_start("child")).ack().await;
    env.turn(child).named("Flow").ack().await;
    nothing_queued(&env).await;
}

pub(super) async fn a_turn_with_the_same_start_twice_starts_once(env: Env) {
    env.turn_of("i1").await.post(guarded_start("child")).post(guarded_start("child")).ack().await;
    assert_eq!(bodies(&env.fetch().await), ["start"]);
}

pub(super) async fn a_turn_that_starts_an_absent_instance_enqueues_the_start(env: Env) {
    env.turn_of("i1").await.post(guarded_start("child")).ack().await;
    conflict(start(&env, "child").await);
    assert_eq!(&*env.fetch().await.instance, "child");
}

pub(super) async fn a_record_commit_leaves_out_a_start_of_an_existing_instance(env: Env) {
    env.start("i1").await;
    let orchestrator_items = vec![guarded_start("i1"), guarded_start("i2")];
    let batch = RecordBatch { writes: vec![put("r")], orchestrator_items, ..RecordBatch::default() };
    env.commit_records(batch).await.unwrap();
    assert!(env.record("r").await.is_some());
    assert_eq!(instances(&env.fetch_many(9).await), ["i2"]);
}

pub(super) async fn a_record_commit_repeated_starts_once(env: Env) {
    // D4
    let batch = || RecordBatch { orchestrator_items: vec![guarded_start("i1")], ..RecordBatch::default() };
    env.commit_records(batch()).await.unwrap();
    env.commit_records(batch()).await.unwrap();
    assert_eq!(env.fetch().await.messages.len(), 1);
}

/// A batch that is refused if a guard forbids one of its messages.
fn depending(orchestrator_items: Vec<OrchestratorMessage>) -> RecordBatch {
    let guards = Guards::Refuse;
    RecordBatch { writes: vec![put("r")], orchestrator_items, worker_items: vec![job(1)], guards }
}

async fn nothing_was_done(env: &Env) {
    assert!(env.record("r").await.is_none());
    env.no_work().await;
    nothing_queued(env).await;
}

pub(super) async fn a_record_commit_that_depends_on_its_start_is_refused_when_the_instance_exists(env: Env) {
    env.start("running").await;
    env.start_and_end("ended").await;
    for existing in ["running", "ended"] {
        conflict(env.commit_records(depending(vec![guarded_start("new"), guarded_start(existing)])).await);
        nothing_was_done(&env).await;
    }
    start(&env, "new").await.unwrap();
}

pub(super) async fn a_record_commit_that_depends_on_its_start_is_refused_while_one_waits(env: Env) {
    start(&env, "i1").await.unwrap();
    conflict(env.commit_records(depending(vec![guarded_start("i1")])).await);
    env.turn(&env.fetch().await).named("Flow").ack().await;
    nothing_was_done(&env).await;
}

pub(super) async fn a_record_commit_that_depends_on_its_start_is_refused_with_the_same_start_twice(env: Env) {
    conflict(env.commit_records(depending(vec![guarded_start("i1"), guarded_start("i1")])).await);
    nothing_was_done(&env).await;
    start(&env, "i1").await.unwrap();
}

pub(super) async fn a_record_commit_that_depends_on_its_guards_is_done_as_a_whole(env: Env) {
    let messages = vec![guarded_start("i1"), needing("i1"), message("i2", "go")];
    env.commit_records(depending(messages)).await.unwrap();
    assert!(env.record("r").await.is_some());
    let items = env.fetch_many(9).await;
    assert_eq!(instances(&items), ["i1", "i2"]);
    assert_eq!(bodies(&items[0]), ["start", "control"]);
    assert_eq!(env.take_ids(ask().max(9)).await, [1]);
    conflict(env.commit_records(depending(vec![guarded_start("i1")])).await);
}

pub(super) async fn a_record_commit_that_depends_on_an_absent_instance_is_refused(env: Env) {
    not_found(env.commit_records(depending(vec![needing("i1"), guarded_start("i1")])).await);
    nothing_was_done(&env).await;
}

pub(super) async fn of_record_commits_that_depend_on_the_same_start_one_is_done(env: Env) {
    let commit = |number: u64| {
        let env = env.clone();
        let batch = RecordBatch {
            writes: vec![put(&format!("r{number}"))],
            orchestrator_items: vec![guarded_start("i1")],
            guards: Guards::Refuse,
            ..RecordBatch::default()
        };
        async move { env.commit_records(batch).await }
    };
    let (a, b, c) = tokio::join!(commit(1), commit(2), commit(3));
    let done = [a, b, c].into_iter().zip(1..).filter(|(outcome, _)| outcome.is_ok());
    let done: Vec<u64> = done.map(|(_, number)| number).collect();
    assert_eq!(done.len(), 1);
    for number in 1..=3 {
        assert_eq!(env.record(&format!("r{number}")).await.is_some(), done.contains(&number));
    }
    assert_eq!(env.fetch().await.messages.len(), 1);
}

pub(super) async fn a_delayed_start_comes_at_its_time(env: Env) {
    let visible_at_ms = Some(env.now().await + u64::try_from(env.span().as_millis()).unwrap());
    env.post(OrchestratorMessage { visible_at_ms, ..guarded_start("i1") }).await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["start"]);
}

async fn control(env: &Env, instance: &str) -> Result<(), segno::store::ProviderError> {
    env.enqueue_for_orchestrator(needing(instance), None).await
}

pub(super) async fn a_message_that_needs_its_instance_is_refused_when_there_is_none(env: Env) {
    not_found(control(&env, "i1").await);
    nothing_queued(&env).await;
}

pub(super) async fn a_message_that_needs_its_instance_reaches_one_that_runs(env: Env) {
    env.start("i1").await;
    control(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["control"]);
}

pub(super) async fn a_message_that_needs_its_instance_follows_a_start_that_waits(env: Env) {
    start(&env, "i1").await.unwrap();
    control(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["start", "control"]);
}

pub(super) async fn a_message_that_needs_its_instance_is_not_content_with_early_messages(env: Env) {
    env.turn_of("i1").await.event(1).status(ExecutionStatus::Pending).ack().await;
    not_found(control(&env, "i1").await);
}

pub(super) async fn a_message_that_needs_its_instance_is_refused_after_its_deletion(env: Env) {
    env.start_and_end("i1").await;
    env.delete_instances_atomic(&["i1".to_owned()], true).await.unwrap();
    not_found(control(&env, "i1").await);
}

pub(super) async fn a_message_that_needs_its_instance_may_come_any_number_of_times(env: Env) {
    env.start("i1").await;
    control(&env, "i1").await.unwrap();
    control(&env, "i1").await.unwrap();
    assert_eq!(env.fetch().await.messages.len(), 2);
}

pub(super) async fn a_message_that_needs_its_instance_is_no_start(env: Env) {
    start(&env, "i1").await.unwrap();
    control(&env, "i1").await.unwrap();
    env.turn(&env.fetch().await).ack().await;
    not_found(control(&env, "i1").await);
    start(&env, "i1").await.unwrap();
}

pub(super) async fn a_turn_leaves_out_what_needs_an_absent_instance(env: Env) {
    env.start("there").await;
    env.turn_of("i1").await.event(1).post(needing("nobody")).post(needing("there")).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(instances(&env.fetch_many(9).await), ["there"]);
    nothing_queued(&env).await;
}

pub(super) async fn a_turn_may_start_an_instance_and_send_what_needs_it(env: Env) {
    env.turn_of("i1").await.post(guarded_start("child")).post(needing("child")).ack().await;
    assert_eq!(bodies(&env.fetch().await), ["start", "control"]);
}

pub(super) async fn a_record_commit_leaves_out_what_needs_an_absent_instance(env: Env) {
    let orchestrator_items = vec![needing("nobody")];
    let batch = RecordBatch { writes: vec![put("r")], orchestrator_items, ..RecordBatch::default() };
    env.commit_records(batch).await.unwrap();
    assert!(env.record("r").await.is_some());
    nothing_queued(&env).await;
}

pub(super) async fn a_message_that_needs_its_instance_follows_a_start_that_is_locked_or_delayed(env: Env) {
    start(&env, "locked").await.unwrap();
    env.fetch().await;
    control(&env, "locked").await.unwrap();
    env.enqueue_for_orchestrator(guarded_start("delayed"), Some(LOCK)).await.unwrap();
    control(&env, "delayed").await.unwrap();
}

pub(super) async fn a_message_that_needs_its_instance_reaches_one_that_has_ended(env: Env) {
    env.start_and_end("i1").await;
    control(&env, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["control"]);
}

pub(super) async fn a_start_is_known_to_be_queued_until_its_turn(env: Env) {
    assert_eq!(env.queued_start_ms("i1").await.unwrap(), None);
    env.post(message("i1", "early")).await;
    assert_eq!(env.queued_start_ms("i1").await.unwrap(), None, "a message is no start");
    let before_ms = env.now().await;
    env.post(guarded_start("i1")).await;
    let since_ms = env.queued_start_ms("i1").await.unwrap().expect("it waits");
    assert!((before_ms..=env.now().await).contains(&since_ms));
    assert_eq!(env.queued_start_ms("i2").await.unwrap(), None);
    env.advance_span().await;
    assert_eq!(env.queued_start_ms("i1").await.unwrap(), Some(since_ms), "the time stays");
    let item = env.fetch().await;
    assert_eq!(env.queued_start_ms("i1").await.unwrap(), Some(since_ms), "fetched is still queued");
    env.turn(&item).named("Flow").ack().await;
    assert_eq!(env.queued_start_ms("i1").await.unwrap(), None);
}

pub(super) async fn a_delayed_start_is_queued_since_now(env: Env) {
    env.enqueue_for_orchestrator(guarded_start("i1"), Some(LOCK)).await.unwrap();
    let since_ms = env.queued_start_ms("i1").await.unwrap().expect("it waits");
    assert!(since_ms <= env.now().await);
}
