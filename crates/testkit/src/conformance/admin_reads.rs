//! Everything that is stored can be read and counted, and what is not there is not found.

use std::ops::RangeInclusive;

use segno::store::{
    AckWorkItem, ExecutionStatus, HistoryPage, HistoryQuery, QueueDepths, QueuePlace, StoredEvent,
    WorkerMessage,
};

use super::fixture::*;

pub(super) async fn an_empty_store_counts_nothing(env: Env) {
    assert_eq!(env.get_system_metrics().await.unwrap(), segno::store::SystemMetrics::default());
    assert_eq!(env.get_queue_depths().await.unwrap(), QueueDepths::default());
    assert!(env.list_instances().await.unwrap().is_empty());
}

pub(super) async fn a_store_says_what_it_is(env: Env) {
    assert!(!env.name().is_empty() && !env.version().is_empty());
}

pub(super) async fn what_is_unknown_is_not_found(env: Env) {
    env.start("i1").await;
    not_found(env.get_instance_info("nobody").await);
    not_found(env.get_execution_info("nobody", 1).await);
    not_found(env.get_execution_info("i1", 2).await);
    not_found(env.latest_execution_id("nobody").await);
    not_found(env.read_history("nobody").await);
    not_found(env.read_history_with_execution_id("i1", 2).await);
    not_found(env.read_history_with_execution_id("nobody", 1).await);
    not_found(env.read_history_page(part("i1", 2, 0, 10)).await);
    not_found(env.read_history_page(part("nobody", 1, 0, 10)).await);
    not_found(env.get_parent_id("nobody").await);
}

pub(super) async fn an_unknown_instance_has_no_executions_and_no_children(env: Env) {
    assert!(env.list_executions("nobody").await.unwrap().is_empty());
    assert!(env.list_children("nobody").await.unwrap().is_empty());
}

pub(super) async fn queued_activities_are_told_with_where_they_stand(env: Env) {
    let places = async |instance: &str| {
        let queued = env.queued_activities(instance).await.unwrap();
        queued.iter().map(|activity| (activity.activity_id, activity.work.place)).collect::<Vec<_>>()
    };
    let now_ms = env.now().await;
    let later_ms = now_ms + u64::try_from(LOCK.as_millis()).unwrap();
    env.queue(job(7)).await;
    let work = env.work_for(env.span()).await;
    env.queue(WorkerMessage { visible_at_ms: Some(later_ms), ..job(3) }).await;
    env.queue(job(5)).await;
    env.queue(job_of("i10", 1)).await;
    let found = places("i1").await;
    assert_eq!(found[0], (3, QueuePlace::Delayed { visible_at_ms: later_ms }));
    assert_eq!(found[1], (5, QueuePlace::Ready));
    let (id, QueuePlace::Locked { lock_token, until_ms }) = found[2] else { panic!("{found:?}") };
    assert_eq!(lock_token, work.lock_token);
    assert!(id == 7 && found.len() == 3 && until_ms > now_ms, "{found:?}");
    assert!(places("nobody").await.is_empty());
    env.advance_span().await;
    assert_eq!(places("i1").await[2], (7, QueuePlace::Ready), "its lock is over");
    let again = env.work().await;
    env.ack_work_item(AckWorkItem { lock_token: again.lock_token, completion: None, records: Vec::new() })
        .await
        .unwrap();
    assert_eq!(places("i1").await.len(), 2);
}

pub(super) async fn an_instance_is_described_in_full(env: Env) {
    let turn =
        env.turn_of("i1").await.named("Flow").parent("p").pinned("1.2.3").output("o").label("team", "blue");
    turn.metadata(|metadata| metadata.orchestration_version = Some("7".into()))
        .custom_status("s")
        .ack()
        .await;
    let info = env.info("i1").await;
    assert_eq!(info.instance_id, "i1");
    assert_eq!(info.orchestration_name.as_deref(), Some("Flow"));
    assert_eq!(info.orchestration_version.as_deref(), Some("7"));
    assert_eq!(info.parent_instance_id.as_deref(), Some("p"));
    assert_eq!(info.pinned_version.map(|version| version.to_string()).as_deref(), Some("1.2.3"));
    assert_eq!(info.output.as_deref(), Some(b"o".as_slice()));
    assert_eq!((info.custom_status.as_deref(), info.custom_status_version), (Some(b"s".as_slice()), 1));
    assert_eq!((info.current_execution_id, info.status), (1, ExecutionStatus::Running));
    assert_eq!((info.labels["team"].as_str(), info.completed_at_ms), ("blue", None));
}

pub(super) async fn every_state_is_kept(env: Env) {
    for status in ExecutionStatus::ALL {
        env.turn_of(status.as_str()).await.status(status).ack().await;
        assert_eq!(env.info(status.as_str()).await.status, status);
    }
}

pub(super) async fn an_instance_ends_when_it_gets_a_terminal_state(env: Env) {
    for status in [ExecutionStatus::Completed, ExecutionStatus::Failed, ExecutionStatus::Cancelled] {
        let id = status.as_str();
        env.start(id).await;
        assert_eq!(env.info(id).await.completed_at_ms, None);
        env.tick().await;
        let before = env.now().await;
        env.put_status(id, status).await;
        assert!((before..=env.now().await).contains(&env.info(id).await.completed_at_ms.unwrap()));
    }
}

pub(super) async fn a_paused_instance_has_not_ended(env: Env) {
    env.start("i1").await;
    env.put_status("i1", ExecutionStatus::Paused).await;
    assert_eq!(env.info("i1").await.completed_at_ms, None);
}

pub(super) async fn times_are_the_stores_times(env: Env) {
    let before = env.now().await;
    env.start("i1").await;
    let created = env.info("i1").await;
    assert!((before..=env.now().await).contains(&created.created_at_ms));
    env.advance_span().await;
    let later = env.now().await;
    env.turn_of("i1").await.event(2).ack().await;
    let updated = env.info("i1").await;
    assert_eq!(updated.created_at_ms, created.created_at_ms);
    assert!(updated.updated_at_ms >= later);
}

pub(super) async fn every_commit_raises_the_revision_by_one(env: Env) {
    env.start("i1").await;
    let first = env.info("i1").await.revision;
    env.turn_of("i1").await.ack().await;
    env.turn_of("i1").await.event(2).ack().await;
    assert_eq!(env.info("i1").await.revision, first + 2);
}

pub(super) async fn an_execution_is_described_in_full(env: Env) {
    let before = env.now().await;
    env.turn_of("i1").await.event(1).event(2).ack().await;
    env.turn_of("i1").await.event(3).status(ExecutionStatus::Failed).output("why").ack().await;
    let info = env.get_execution_info("i1", 1).await.unwrap();
    assert_eq!((info.execution_id, info.event_count), (1, 3));
    assert_eq!((info.status, info.output.as_deref()), (ExecutionStatus::Failed, Some(b"why".as_slice())));
    assert!(info.started_at_ms >= before && info.completed_at_ms.unwrap() >= info.started_at_ms);
}

pub(super) async fn each_execution_has_its_own_times(env: Env) {
    env.start("i1").await;
    env.put_status("i1", ExecutionStatus::ContinuedAsNew).await;
    env.advance_span().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    let first = env.get_execution_info("i1", 1).await.unwrap();
    let second = env.get_execution_info("i1", 2).await.unwrap();
    assert!(first.completed_at_ms.unwrap() < second.started_at_ms);
    assert_eq!((second.completed_at_ms, second.event_count), (None, 1));
}

pub(super) async fn histories_are_read_by_execution(env: Env) {
    env.start_executions("i1", 2).await;
    env.turn_of("i1").await.event(2).ack().await;
    assert_eq!(env.read_history_with_execution_id("i1", 1).await.unwrap(), [event(1)]);
    assert_eq!(env.read_history("i1").await.unwrap(), [event(1), event(2)]);
    assert_eq!(env.latest_execution_id("i1").await.unwrap(), 2);
}

pub(super) async fn an_execution_without_events_reads_empty(env: Env) {
    env.turn_of("i1").await.named("Flow").ack().await;
    assert_eq!(env.read_history("i1").await.unwrap(), []);
    assert_eq!(env.get_execution_info("i1", 1).await.unwrap().event_count, 0);
}

fn part(instance: &str, execution_id: u64, after_event_id: u64, limit: usize) -> HistoryQuery {
    HistoryQuery { instance_id: instance.to_owned(), execution_id, after_event_id, limit }
}

fn events(ids: RangeInclusive<u64>) -> Vec<StoredEvent> {
    ids.map(event).collect()
}

pub(super) async fn a_history_is_read_in_pages(env: Env) {
    env.start_executions("i1", 2).await;
    env.turn_of("i1").await.event(2).event(3).event(4).ack().await;
    let page = |after, limit| env.read_history_page(part("i1", 2, after, limit));
    assert_eq!(page(0, 2).await.unwrap(), HistoryPage { events: events(1..=2), next: Some(2) });
    assert_eq!(page(2, 2).await.unwrap(), HistoryPage { events: events(3..=4), next: None });
    assert_eq!(page(1, 100).await.unwrap(), HistoryPage { events: events(2..=4), next: None });
    assert_eq!(page(4, 100).await.unwrap(), HistoryPage::default());
    assert_eq!(page(u64::MAX >> 1, 100).await.unwrap(), HistoryPage::default());
    let earlier = env.read_history_page(part("i1", 1, 0, 100)).await.unwrap();
    assert_eq!(earlier, HistoryPage { events: events(1..=1), next: None });
    env.turn_of("i2").await.named("Flow").ack().await;
    assert_eq!(env.read_history_page(part("i2", 1, 0, 1)).await.unwrap(), HistoryPage::default());
}

pub(super) async fn pages_do_not_depend_on_the_commits_that_made_the_history(env: Env) {
    const LAST: u64 = 60;
    let mut next = 1;
    for size in [1, 7, 2, 30, 1, 1, 18] {
        let turn = (next..next + size).fold(env.turn_of("i1").await, Turn::event);
        turn.ack().await;
        next += size;
    }
    assert_eq!(next, LAST + 1);
    for limit in [1, 2, 3, 8, 29, 60, 61] {
        for after in 0..=LAST {
            let page = env.read_history_page(part("i1", 1, after, limit)).await.unwrap();
            let end = LAST.min(after + limit as u64);
            let expected = HistoryPage { events: events(after + 1..=end), next: (end < LAST).then_some(end) };
            assert_eq!(page, expected, "{limit} after {after}");
        }
    }
}

pub(super) async fn a_page_of_a_history_shows_what_came_meanwhile(env: Env) {
    env.start("i1").await;
    assert_eq!(env.read_history_page(part("i1", 1, 1, 10)).await.unwrap(), HistoryPage::default());
    env.turn_of("i1").await.event(2).ack().await;
    assert_eq!(env.read_history_page(part("i1", 1, 1, 10)).await.unwrap().events, [event(2)]);
    env.delete_instances_atomic(&["i1".to_owned()], true).await.unwrap();
    env.turn_of("i1").await.event(1).event(2).event(3).ack().await;
    assert_eq!(env.read_history_page(part("i1", 1, 2, 10)).await.unwrap().events, [event(3)]);
}

pub(super) async fn instances_are_listed_newest_first(env: Env) {
    for instance in ["b", "a", "c"] {
        env.start(instance).await;
        env.tick().await;
    }
    assert_eq!(env.list_instances().await.unwrap(), ["c", "a", "b"]);
}

pub(super) async fn instances_are_listed_by_state(env: Env) {
    for instance in ["a", "b", "c"] {
        env.start(instance).await;
        env.tick().await;
    }
    env.put_status("a", ExecutionStatus::Completed).await;
    env.put_status("c", ExecutionStatus::Completed).await;
    assert_eq!(env.list_instances_by_status(ExecutionStatus::Completed).await.unwrap(), ["c", "a"]);
    assert_eq!(env.list_instances_by_status(ExecutionStatus::Running).await.unwrap(), ["b"]);
    assert!(env.list_instances_by_status(ExecutionStatus::Failed).await.unwrap().is_empty());
}

pub(super) async fn each_state_is_counted(env: Env) {
    for status in ExecutionStatus::ALL {
        env.turn_of(status.as_str()).await.status(status).ack().await;
    }
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions), (7, 7));
    assert_eq!((metrics.pending_instances, metrics.paused_instances), (1, 1));
    assert_eq!(metrics.running_instances, 2, "one runs, one is between two executions");
    assert_eq!(
        (metrics.completed_instances, metrics.failed_instances, metrics.cancelled_instances),
        (1, 1, 1)
    );
}

pub(super) async fn counts_follow_an_instance_through_its_states(env: Env) {
    env.start("i1").await;
    assert_eq!(env.get_system_metrics().await.unwrap().running_instances, 1);
    env.put_status("i1", ExecutionStatus::Paused).await;
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.running_instances, metrics.paused_instances), (0, 1));
    env.put_status("i1", ExecutionStatus::Completed).await;
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.paused_instances, metrics.completed_instances, metrics.total_instances), (0, 1, 1));
}

pub(super) async fn executions_and_events_are_counted(env: Env) {
    env.start_executions("i1", 3).await;
    env.turn_of("i2").await.event(1).event(2).ack().await;
    env.append_with_execution("i3", 1, vec![event(1)]).await.unwrap();
    let metrics = env.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.total_events), (3, 5, 6));
}

pub(super) async fn a_refused_turn_is_not_counted(env: Env) {
    env.start("i1").await;
    let before = env.get_system_metrics().await.unwrap();
    conflict(env.turn_of("i1").await.event(2).event(1).status(ExecutionStatus::Failed).try_ack().await);
    assert_eq!(env.get_system_metrics().await.unwrap(), before);
}

pub(super) async fn visible_messages_are_counted_by_queue(env: Env) {
    env.send("i1", "a").await;
    env.send("i1", "b").await;
    env.send("i2", "c").await;
    env.queue(job(1)).await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!(
        depths,
        QueueDepths {
            orchestrator_queue: 3,
            worker_queue: 1,
            orchestrator_delayed: 0,
            worker_delayed: 0,
            locked: 0
        }
    );
}

pub(super) async fn locked_messages_are_counted_apart(env: Env) {
    env.send("i1", "a").await;
    env.send("i1", "b").await;
    env.queue(job(1)).await;
    env.queue(job(2)).await;
    env.fetch().await;
    env.work().await;
    env.send("i1", "c").await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!(
        depths,
        QueueDepths {
            orchestrator_queue: 1,
            worker_queue: 1,
            orchestrator_delayed: 0,
            worker_delayed: 0,
            locked: 3
        }
    );
}

pub(super) async fn delayed_messages_are_counted_apart(env: Env) {
    env.send_later("i1", "a", env.span()).await;
    let visible_at_ms = Some(env.now().await + u64::try_from(env.span().as_millis()).unwrap());
    env.queue(WorkerMessage { visible_at_ms, ..job(1) }).await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!(depths, QueueDepths { orchestrator_delayed: 1, worker_delayed: 1, ..QueueDepths::default() });
    env.advance_span().await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!(
        depths,
        QueueDepths {
            orchestrator_queue: 1,
            worker_queue: 1,
            orchestrator_delayed: 0,
            worker_delayed: 0,
            locked: 0
        }
    );
}

pub(super) async fn an_expired_lock_is_not_counted_as_one(env: Env) {
    env.send("i1", "a").await;
    env.queue(job(1)).await;
    env.fetch_for(env.span()).await;
    env.work_for(env.span()).await;
    assert_eq!(env.get_queue_depths().await.unwrap().locked, 2);
    env.advance_span().await;
    let depths = env.get_queue_depths().await.unwrap();
    assert_eq!(
        depths,
        QueueDepths {
            orchestrator_queue: 1,
            worker_queue: 1,
            orchestrator_delayed: 0,
            worker_delayed: 0,
            locked: 0
        }
    );
}

pub(super) async fn consumed_messages_are_not_counted(env: Env) {
    env.turn_of("i1").await.work(job(1)).ack().await;
    let work = env.work().await;
    env.finish(work.lock_token).await.unwrap();
    assert_eq!(env.get_queue_depths().await.unwrap(), QueueDepths::default());
}

pub(super) async fn an_abandoned_message_is_counted_as_delayed_until_its_time(env: Env) {
    env.send("i1", "a").await;
    let item = env.fetch().await;
    env.abandon_orchestration_item(item.lock_token, Some(LOCK), false).await.unwrap();
    assert_eq!(
        env.get_queue_depths().await.unwrap(),
        QueueDepths { orchestrator_delayed: 1, ..QueueDepths::default() }
    );
}
