//! One fetch can lock many instances, and leaves out histories that the runtime holds already.

use std::sync::{Arc, Mutex};

use segno::store::{
    ExecutionPosition, FetchOrchestrationItems, FetchedHistory, LockToken, OrchestrationItem,
    ResidentExecutions,
};

use super::fixture::*;

/// A runtime that holds these executions and remembers what it was asked.
struct Holding {
    held: Vec<(&'static str, u64, u64)>,
    asked: Mutex<Vec<(String, u64, u64)>>,
    incarnations: Mutex<Vec<Option<u64>>>,
}

impl Holding {
    fn new(held: &[(&'static str, u64, u64)]) -> Arc<Self> {
        Arc::new(Holding { held: held.to_vec(), asked: Mutex::default(), incarnations: Mutex::default() })
    }
}

impl ResidentExecutions for Holding {
    fn holds(&self, position: &ExecutionPosition<'_>) -> bool {
        let ExecutionPosition { instance, execution_id, last_event_id, .. } = *position;
        self.asked.lock().unwrap().push((instance.to_owned(), execution_id, last_event_id));
        self.incarnations.lock().unwrap().push(position.incarnation);
        self.held.contains(&(instance, execution_id, last_event_id))
    }
}

async fn fetch_holding(env: &Env, holding: &Arc<Holding>) -> Vec<OrchestrationItem> {
    let resident: &Arc<dyn ResidentExecutions> = &(Arc::clone(holding) as _);
    let request = FetchOrchestrationItems {
        max_items: 9,
        resident: Some(resident),
        ..FetchOrchestrationItems::one(LOCK)
    };
    env.fetch_orchestration_items(request).await.unwrap()
}

async fn five_instances(env: &Env) {
    for instance in ["a", "b", "c", "d", "e"] {
        env.send(instance, "go").await;
    }
}

pub(super) async fn a_fetch_takes_as_many_instances_as_asked(env: Env) {
    five_instances(&env).await;
    let mut items = env.fetch_many(3).await;
    assert_eq!(items.len(), 3);
    items.extend(env.fetch_many(3).await);
    assert_eq!(instances(&items), ["a", "b", "c", "d", "e"]);
}

pub(super) async fn a_fetch_answers_with_fewer_rather_than_wait(env: Env) {
    five_instances(&env).await;
    let request =
        FetchOrchestrationItems { max_items: 99, poll_timeout: LOCK, ..FetchOrchestrationItems::one(LOCK) };
    assert_eq!(env.fetch_orchestration_items(request).await.unwrap().len(), 5);
}

pub(super) async fn each_instance_of_a_batch_has_its_own_token(env: Env) {
    five_instances(&env).await;
    let mut tokens: Vec<LockToken> = env.fetch_many(5).await.iter().map(|item| item.lock_token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 5);
}

pub(super) async fn instances_of_a_batch_end_independently(env: Env) {
    env.send("a", "go").await;
    env.send("b", "go").await;
    let items = env.fetch_many(2).await;
    env.turn(&items[0]).event(1).ack().await;
    env.abandon_orchestration_item(items[1].lock_token, None, false).await.unwrap();
    let next = env.fetch().await;
    assert_eq!((&*next.instance, next.attempt_count), (&*items[1].instance, 2));
    env.nothing_to_fetch().await;
}

pub(super) async fn each_instance_of_a_batch_comes_with_its_own_messages(env: Env) {
    for body in ["1", "2"] {
        env.send("a", body).await;
        env.send("b", body).await;
    }
    let items = env.fetch_many(9).await;
    assert_eq!(instances(&items), ["a", "b"]);
    assert!(items.iter().all(|item| bodies(item) == ["1", "2"]));
}

pub(super) async fn each_instance_of_a_batch_comes_with_its_own_history(env: Env) {
    env.start("a").await;
    env.turn_of("b").await.event(1).event(2).ack().await;
    env.send("a", "go").await;
    env.send("b", "go").await;
    let mut items = env.fetch_many(9).await;
    items.sort_by(|a, b| a.instance.cmp(&b.instance));
    assert_eq!(items[0].history, FetchedHistory::Events(vec![event(1)]));
    assert_eq!(items[1].history, FetchedHistory::Events(vec![event(1), event(2)]));
}

pub(super) async fn a_batch_of_activities_takes_as_many_as_asked(env: Env) {
    for id in 1..=5 {
        env.queue(job(id)).await;
    }
    let items = env.take(ask().max(3)).await;
    let mut tokens: Vec<LockToken> = items.iter().map(|item| item.lock_token).collect();
    tokens.dedup();
    assert_eq!((items.len(), tokens.len()), (3, 3));
    assert_eq!(env.take_ids(ask().max(3)).await, [4, 5]);
}

pub(super) async fn activities_of_a_batch_end_independently(env: Env) {
    env.queue(job(1)).await;
    env.queue(job(2)).await;
    let items = env.take(ask().max(2)).await;
    env.finish(items[0].lock_token).await.unwrap();
    env.abandon_work_item(items[1].lock_token, None, false).await.unwrap();
    assert_eq!(env.take_ids(ask().max(9)).await, [2]);
}

pub(super) async fn a_history_that_the_runtime_holds_is_left_out(env: Env) {
    env.start("i1").await;
    env.send("i1", "go").await;
    let items = fetch_holding(&env, &Holding::new(&[("i1", 1, 1)])).await;
    assert_eq!((&items[0].history, items[0].last_event_id), (&FetchedHistory::Resident, 1));
    assert_eq!(bodies(&items[0]), ["go"]);
}

pub(super) async fn a_history_that_the_runtime_holds_only_in_part_is_loaded(env: Env) {
    env.turn_of("i1").await.event(1).event(2).ack().await;
    env.send("i1", "go").await;
    let items = fetch_holding(&env, &Holding::new(&[("i1", 1, 1)])).await;
    assert_eq!(items[0].history, FetchedHistory::Events(vec![event(1), event(2)]));
}

pub(super) async fn a_runtime_is_asked_about_the_current_execution(env: Env) {
    env.start_executions("i1", 2).await;
    env.send("i1", "go").await;
    let holding = Holding::new(&[("i1", 1, 1)]);
    let items = fetch_holding(&env, &holding).await;
    assert_eq!(items[0].history, FetchedHistory::Events(vec![event(1)]));
    assert!(holding.asked.lock().unwrap().contains(&("i1".to_owned(), 2, 1)));
}

pub(super) async fn each_instance_of_a_batch_is_asked_about(env: Env) {
    env.start("a").await;
    env.start("b").await;
    env.send("a", "go").await;
    env.send("b", "go").await;
    let mut items = fetch_holding(&env, &Holding::new(&[("b", 1, 1)])).await;
    items.sort_by(|a, b| a.instance.cmp(&b.instance));
    assert_eq!(items[0].history, FetchedHistory::Events(vec![event(1)]));
    assert_eq!(items[1].history, FetchedHistory::Resident);
}

pub(super) async fn a_turn_of_a_resident_execution_is_a_turn_like_any_other(env: Env) {
    env.start("i1").await;
    env.send("i1", "go").await;
    let items = fetch_holding(&env, &Holding::new(&[("i1", 1, 1)])).await;
    env.turn(&items[0]).event(2).ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2)]);
}

pub(super) async fn a_runtime_gets_back_the_incarnation_that_it_gave_an_execution(env: Env) {
    env.turn_of("i1").await.event(1).metadata(|metadata| metadata.incarnation = Some(u64::MAX)).ack().await;
    env.turn_of("i1").await.event(2).ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    env.turn_of("i1").await.execution(2).metadata(|metadata| metadata.incarnation = Some(7)).ack().await;
    let holding = Holding::new(&[]);
    env.send("i1", "go").await;
    let items = fetch_holding(&env, &holding).await;
    env.turn(&items[0]).ack().await;
    assert_eq!(*holding.incarnations.lock().unwrap(), [Some(7)]);
}
