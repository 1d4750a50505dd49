//! A commit stores all of its parts or none (D2, H4).

use segno::store::{ExecutionStatus, Expect};

use super::fixture::*;

/// A turn that touches everything a turn can touch.
fn full_turn(turn: Turn) -> Turn {
    turn.named("Flow")
        .event(1)
        .event(2)
        .work(job(2))
        .post(message("other", "hello"))
        .status(ExecutionStatus::Paused)
        .label("team", "blue")
        .custom_status("half way")
        .record(put("r"))
}

async fn nothing_was_stored(env: &Env) {
    assert_eq!(env.read("i1").await.unwrap(), []);
    not_found(env.get_instance_info("i1").await);
    env.no_work().await;
    env.nothing_to_fetch().await;
    assert_eq!(env.record("r").await, None);
}

pub(super) async fn a_turn_stores_all_its_parts(env: Env) {
    full_turn(env.turn_of("i1").await).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Paused);
    assert_eq!(env.info("i1").await.labels["team"], "blue");
    assert_eq!(env.work().await.message, job(2));
    assert_eq!(&*env.fetch().await.instance, "other");
    assert!(env.record("r").await.is_some());
}

pub(super) async fn a_turn_with_an_unknown_token_stores_nothing(env: Env) {
    let mut turn = full_turn(env.turn_of("i1").await);
    turn.ack.lock_token.0 += 1_000;
    lock_lost(turn.try_ack().await);
    nothing_was_stored(&env).await;
}

pub(super) async fn a_turn_with_an_expired_token_stores_nothing(env: Env) {
    env.send("i1", "go").await;
    let turn = full_turn(env.turn(&env.fetch_for(env.span()).await));
    env.advance_span().await;
    lock_lost(turn.try_ack().await);
    assert_eq!(env.fetch().await.last_event_id, 0);
    nothing_was_stored(&env).await;
}

pub(super) async fn a_turn_with_a_failed_record_expectation_stores_nothing(env: Env) {
    let turn = full_turn(env.turn_of("i1").await).record(put("s").expecting(Expect::Version(7)));
    conflict(turn.try_ack().await);
    nothing_was_stored(&env).await;
}

pub(super) async fn a_turn_with_an_existing_event_id_stores_nothing(env: Env) {
    env.start("i1").await;
    conflict(full_turn(env.turn_of("i1").await).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.info("i1").await.status, ExecutionStatus::Running);
    assert_eq!(env.info("i1").await.custom_status_version, 0);
    env.no_work().await;
    env.nothing_to_fetch().await;
    assert_eq!(env.record("r").await, None);
}

pub(super) async fn an_existing_event_is_never_overwritten(env: Env) {
    env.start("i1").await;
    conflict(env.turn_of("i1").await.event_data(1, "other bytes").try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn a_conflicting_turn_takes_back_no_work(env: Env) {
    env.start("i1").await;
    env.queue(job(5)).await;
    let turn = env.turn_of("i1").await.event(1).cancel_activity(activity("i1", 5));
    conflict(turn.try_ack().await);
    assert_eq!(env.work().await.message, job(5));
}

pub(super) async fn a_refused_turn_keeps_its_lock_and_can_be_corrected(env: Env) {
    env.start("i1").await;
    env.send("i1", "go").await;
    let item = env.fetch().await;
    conflict(env.turn(&item).event(1).try_ack().await);
    env.nothing_to_fetch().await;
    env.turn(&item).event(2).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
    env.nothing_to_fetch().await;
}

pub(super) async fn an_empty_turn_consumes_its_messages(env: Env) {
    env.turn_of("i1").await.ack().await;
    env.nothing_to_fetch().await;
    assert_eq!(env.get_queue_depths().await.unwrap().orchestrator_queue, 0);
}

pub(super) async fn a_turn_consumes_only_what_was_fetched(env: Env) {
    let turn = env.turn_of("i1").await;
    env.send("i1", "late").await;
    turn.ack().await;
    assert_eq!(bodies(&env.fetch().await), ["late"]);
}

pub(super) async fn a_consumed_message_never_comes_back(env: Env) {
    env.send("i1", "go").await;
    env.turn(&env.fetch_for(env.span()).await).ack().await;
    env.advance_span().await;
    env.nothing_to_fetch().await;
}

pub(super) async fn a_turn_is_committed_once(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    env.turn(&item).event(1).ack().await;
    lock_lost(env.turn(&item).event(2).try_ack().await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}

pub(super) async fn a_turn_appends_to_the_history(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.event(2).event(3).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2), event(3)]);
}

pub(super) async fn a_long_history_comes_back_in_order(env: Env) {
    let turn = (1..=300).fold(env.turn_of("i1").await, Turn::event);
    turn.ack().await;
    assert_eq!(env.read("i1").await.unwrap(), (1..=300).map(event).collect::<Vec<_>>());
}

pub(super) async fn a_history_grows_at_its_end_only(env: Env) {
    env.turn_of("i1").await.event(1).event(3).ack().await;
    env.send("i1", "go").await;
    let item = env.fetch().await;
    conflict(env.turn(&item).event(2).try_ack().await);
    env.turn(&item).execution(2).event(1).ack().await;
    conflict(env.append_with_execution("i1", 1, vec![event(2)]).await);
    conflict(env.append_with_execution("i1", 1, vec![event(5), event(4)]).await);
    env.append_with_execution("i1", 1, vec![event(4)]).await.unwrap();
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1), event(3), event(4)]);
}

pub(super) async fn a_turn_with_many_items_enqueues_each_of_them(env: Env) {
    let turn =
        (1..=100).fold(env.turn_of("i1").await, |turn, id| turn.work(job(id)).post(message("i2", "x")));
    turn.ack().await;
    assert_eq!(env.take_ids(ask().max(200)).await, (1..=100).collect::<Vec<u64>>());
    assert_eq!(env.fetch().await.messages.len(), 100);
}

pub(super) async fn a_turn_can_send_to_its_own_instance(env: Env) {
    env.turn_of("i1").await.post(message("i1", "again")).ack().await;
    assert_eq!(bodies(&env.fetch().await), ["again"]);
}

pub(super) async fn metadata_that_is_not_given_stays(env: Env) {
    env.turn_of("i1").await.named("Flow").label("team", "blue").output("o").pinned("1.2.3").ack().await;
    env.turn_of("i1").await.event(1).ack().await;
    let info = env.info("i1").await;
    assert_eq!(info.orchestration_name.as_deref(), Some("Flow"));
    assert_eq!(info.labels["team"], "blue");
    assert_eq!(info.output.as_deref(), Some(b"o".as_slice()));
    assert_eq!(info.pinned_version.unwrap().to_string(), "1.2.3");
}

pub(super) async fn new_labels_replace_the_whole_set(env: Env) {
    env.turn_of("i1").await.label("a", "1").ack().await;
    env.turn_of("i1").await.label("b", "2").ack().await;
    assert_eq!(
        env.info("i1").await.labels.into_iter().collect::<Vec<_>>(),
        [("b".to_owned(), "2".to_owned())]
    );
}

pub(super) async fn a_turn_can_write_and_delete_records(env: Env) {
    env.write([put("old")]).await;
    env.turn_of("i1").await.record(delete("old")).record(put("new")).ack().await;
    assert_eq!(env.record("old").await, None);
    assert!(env.record("new").await.is_some());
}

pub(super) async fn an_append_outside_a_turn_creates_what_it_needs(env: Env) {
    env.append_with_execution("i1", 1, vec![event(1), event(2)]).await.unwrap();
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
    assert_eq!(env.info("i1").await.orchestration_name, None);
    assert_eq!(env.list_executions("i1").await.unwrap(), [1]);
}

pub(super) async fn an_append_of_an_existing_event_id_changes_nothing(env: Env) {
    env.start("i1").await;
    conflict(env.append_with_execution("i1", 1, vec![event(2), event(1)]).await);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
}
