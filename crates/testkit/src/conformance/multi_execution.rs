//! An instance has executions one after the other, each with its own history.

use segno::store::{ExecutionStatus, FetchedHistory};

use super::fixture::*;

pub(super) async fn each_execution_has_its_own_history(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.event(2).status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1), event(2)]);
    assert_eq!(env.read_with_execution("i1", 2).await.unwrap(), [event(1)]);
}

pub(super) async fn a_turn_names_the_execution_it_belongs_to(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    assert_eq!(env.latest_execution_id("i1").await.unwrap(), 2);
    env.send("i1", "go").await;
    let item = env.fetch().await;
    assert_eq!((item.execution_id, item.last_event_id), (2, 1));
    assert_eq!(item.history, FetchedHistory::Events(vec![event(1)]));
}

pub(super) async fn a_store_makes_up_no_execution(env: Env) {
    env.start("i1").await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    env.send("i1", "next").await;
    let item = env.fetch().await;
    assert_eq!((item.execution_id, item.status), (1, Some(ExecutionStatus::ContinuedAsNew)));
    assert_eq!(env.list_executions("i1").await.unwrap(), [1]);
}

pub(super) async fn executions_are_listed_ascending(env: Env) {
    env.start_executions("i1", 12).await;
    assert_eq!(env.list_executions("i1").await.unwrap(), (1..=12).collect::<Vec<u64>>());
}

pub(super) async fn a_new_execution_starts_fresh(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.status(ExecutionStatus::ContinuedAsNew).output("next input").ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    let info = env.info("i1").await;
    assert_eq!((info.current_execution_id, info.status), (2, ExecutionStatus::Running));
    assert_eq!((info.output, info.completed_at_ms), (None, None));
}

pub(super) async fn an_old_execution_keeps_its_end(env: Env) {
    env.start("i1").await;
    env.turn_of("i1").await.status(ExecutionStatus::ContinuedAsNew).output("next input").ack().await;
    env.turn_of("i1").await.execution(2).status(ExecutionStatus::Failed).output("why").ack().await;
    let old = env.get_execution_info("i1", 1).await.unwrap();
    assert_eq!(
        (old.status, old.output.as_deref()),
        (ExecutionStatus::ContinuedAsNew, Some(b"next input".as_slice()))
    );
    assert!(old.completed_at_ms.is_some());
    let new = env.get_execution_info("i1", 2).await.unwrap();
    assert_eq!((new.status, new.output.as_deref()), (ExecutionStatus::Failed, Some(b"why".as_slice())));
}

pub(super) async fn a_turn_of_an_older_execution_does_not_make_it_current(env: Env) {
    env.start_executions("i1", 2).await;
    env.turn_of("i1").await.execution(1).event(2).ack().await;
    assert_eq!(env.info("i1").await.current_execution_id, 2);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.read_with_execution("i1", 1).await.unwrap(), [event(1), event(2)]);
}

pub(super) async fn the_end_of_an_older_execution_is_not_the_end_of_the_instance(env: Env) {
    env.start_executions("i1", 2).await;
    env.turn_of("i1").await.execution(1).status(ExecutionStatus::Failed).output("old").ack().await;
    let info = env.info("i1").await;
    assert_eq!((info.status, info.output, info.completed_at_ms), (ExecutionStatus::Running, None, None));
    assert_eq!(env.get_execution_info("i1", 1).await.unwrap().status, ExecutionStatus::Failed);
}

pub(super) async fn an_existing_event_id_conflicts_in_its_own_execution_only(env: Env) {
    env.start_executions("i1", 2).await;
    conflict(env.turn_of("i1").await.execution(2).event(1).try_ack().await);
    conflict(env.append_with_execution("i1", 1, vec![event(1)]).await);
    env.append_with_execution("i1", 3, vec![event(1)]).await.unwrap();
}

pub(super) async fn an_unknown_execution_reads_empty(env: Env) {
    env.start("i1").await;
    assert_eq!(env.read_with_execution("i1", 2).await.unwrap(), []);
    assert_eq!(env.read_with_execution("nobody", 1).await.unwrap(), []);
    assert_eq!(env.read("nobody").await.unwrap(), []);
}

pub(super) async fn what_belongs_to_the_instance_outlives_an_execution(env: Env) {
    let turn = env.turn_of("i1").await.named("Flow").parent("p").label("team", "blue").custom_status("s");
    turn.status(ExecutionStatus::ContinuedAsNew).ack().await;
    let created_at_ms = env.info("i1").await.created_at_ms;
    env.tick().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    let info = env.info("i1").await;
    assert_eq!(info.orchestration_name.as_deref(), Some("Flow"));
    assert_eq!(info.parent_instance_id.as_deref(), Some("p"));
    assert_eq!((info.labels["team"].as_str(), info.custom_status_version), ("blue", 1));
    assert_eq!(info.created_at_ms, created_at_ms);
}

pub(super) async fn a_new_execution_may_have_another_name_and_version(env: Env) {
    env.start("i1").await;
    let turn = env.turn_of("i1").await.execution(2).named("Flow2");
    turn.metadata(|metadata| metadata.orchestration_version = Some("2.0".into())).ack().await;
    env.send("i1", "go").await;
    let item = env.fetch().await;
    assert_eq!((item.orchestration_name.as_deref(), item.version.as_deref()), (Some("Flow2"), Some("2.0")));
}

pub(super) async fn a_completion_for_an_old_execution_is_still_delivered(env: Env) {
    env.start("i1").await;
    env.queue(job(2)).await;
    let work = env.work().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    assert_eq!(bodies(&env.fetch().await), ["done"]);
}

pub(super) async fn an_append_to_a_higher_execution_makes_it_current(env: Env) {
    env.start("i1").await;
    env.append_with_execution("i1", 2, vec![event(1), event(2)]).await.unwrap();
    assert_eq!(env.latest_execution_id("i1").await.unwrap(), 2);
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
}

pub(super) async fn executions_of_different_instances_do_not_mix(env: Env) {
    env.start_executions("i1", 3).await;
    env.start("i2").await;
    assert_eq!(env.list_executions("i2").await.unwrap(), [1]);
    assert_eq!(env.latest_execution_id("i2").await.unwrap(), 1);
}
