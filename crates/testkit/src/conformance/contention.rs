//! The same rules with real threads that want the same thing at the same time (H1, H4, I1, I2, L1, L3, C3).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use segno::store::{
    AckOrchestrationItem, ErrorKind, Expect, LockToken, OrchestratorMessage, ProviderError, StoredEvent,
};

use super::fixture::*;

const RACERS: usize = 8;

/// Runs the same work in [`RACERS`] tasks at once.
async fn race<T, C>(env: &Env, work: impl Fn(Env, usize) -> C) -> Vec<T>
where
    T: Send + 'static,
    C: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..RACERS).map(|racer| tokio::spawn(work(env.clone(), racer))).collect();
    join_all(tasks).await.into_iter().map(|outcome| outcome.expect("no racer panics")).collect()
}

/// Fails unless exactly one racer won and every other one was refused with this kind.
#[track_caller]
fn one_winner<T: std::fmt::Debug>(outcomes: Vec<Result<T, ProviderError>>, refusal: ErrorKind) {
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1, "winners: {won:?}");
    lost.into_iter().for_each(|outcome| refused(outcome, refusal));
}

pub(super) async fn one_of_many_fetches_gets_the_instance(env: Env) {
    for round in 0..20 {
        env.send(&format!("i{round}"), "go").await;
        let fetched = race(&env, |env, _| async move { env.fetch_many(1).await.len() }).await;
        assert_eq!(fetched.iter().sum::<usize>(), 1);
    }
}

pub(super) async fn one_of_many_fetches_takes_over_an_expired_lock(env: Env) {
    env.send("i1", "go").await;
    env.fetch_for(env.span()).await;
    env.advance_span().await;
    let fetched = race(&env, |env, _| async move { env.fetch_many(1).await.len() }).await;
    assert_eq!(fetched.iter().sum::<usize>(), 1);
}

pub(super) async fn every_instance_is_fetched_exactly_once(env: Env) {
    for id in 0..60 {
        env.send(&format!("i{id}"), "go").await;
    }
    let fetched = race(&env, |env, racer| async move {
        let mut mine = Vec::new();
        loop {
            let items = env.fetch_many(1 + racer % 3).await;
            if items.is_empty() {
                return mine;
            }
            mine.extend(items.into_iter().map(|item| item.instance));
        }
    })
    .await
    .concat();
    assert_eq!((fetched.len(), fetched.iter().collect::<BTreeSet<_>>().len()), (60, 60));
}

pub(super) async fn every_activity_is_fetched_exactly_once(env: Env) {
    for id in 0..60 {
        env.queue(job(id)).await;
    }
    let mut fetched = race(&env, |env, racer| async move {
        let mut mine = Vec::new();
        loop {
            let ids = env.take_ids(ask().max(1 + racer % 3)).await;
            if ids.is_empty() {
                return mine;
            }
            mine.extend(ids);
        }
    })
    .await
    .concat();
    fetched.sort_unstable();
    assert_eq!(fetched, (0..60).collect::<Vec<u64>>());
}

pub(super) async fn one_commit_of_a_turn_wins(env: Env) {
    env.send("i1", "go").await;
    let item = env.fetch().await;
    let outcomes = race(&env, |env, _| {
        let turn = env.turn(&item).event(1).work(job(1));
        async move { turn.try_ack().await }
    })
    .await;
    one_winner(outcomes, ErrorKind::LockLost);
    assert_eq!(env.read("i1").await.unwrap(), [event(1)]);
    assert_eq!(env.take_ids(ask().max(9)).await, [1]);
}

pub(super) async fn one_end_of_an_activity_wins(env: Env) {
    env.queue(job(1)).await;
    let token = env.work().await.lock_token;
    let outcomes = race(&env, move |env, _| async move { env.complete(token, "i1").await }).await;
    one_winner(outcomes, ErrorKind::LockLost);
    assert_eq!(env.fetch().await.messages.len(), 1);
}

pub(super) async fn one_of_many_starts_wins(env: Env) {
    let outcomes =
        race(&env, |env, _| async move { env.enqueue_for_orchestrator(guarded_start("i1"), None).await })
            .await;
    one_winner(outcomes, ErrorKind::Conflict);
    assert_eq!(env.fetch().await.messages.len(), 1);
}

pub(super) async fn one_of_many_claims_wins(env: Env) {
    let claim = || put("claim").expecting(Expect::Absent).living(LOCK);
    let outcomes = race(&env, |env, _| async move { env.try_write([claim()]).await }).await;
    one_winner(outcomes, ErrorKind::Conflict);
}

pub(super) async fn one_of_many_appends_of_an_event_wins(env: Env) {
    let outcomes = race(&env, |env, racer| async move {
        let event = StoredEvent { event_id: 1, data: Bytes::from(format!("racer {racer}")) };
        env.append_with_execution("i1", 1, vec![event]).await
    })
    .await;
    one_winner(outcomes, ErrorKind::Conflict);
    assert_eq!(env.read("i1").await.unwrap().len(), 1);
}

pub(super) async fn a_counter_loses_no_increment(env: Env) {
    const INCREMENTS: usize = 25;
    env.write([put("counter").with_body("0")]).await;
    race(&env, |env, _| async move {
        for _ in 0..INCREMENTS {
            loop {
                let record = env.record("counter").await.unwrap();
                let count: usize = std::str::from_utf8(&record.body).unwrap().parse().unwrap();
                let next = put("counter").expecting(Expect::Version(record.version));
                match env.try_write([next.with_body((count + 1).to_string())]).await {
                    Ok(_) => break,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                }
            }
        }
    })
    .await;
    let body = env.record("counter").await.unwrap().body;
    assert_eq!(body, (RACERS * INCREMENTS).to_string().as_bytes());
}

pub(super) async fn a_sum_over_two_records_is_kept_by_batches(env: Env) {
    const MOVES: usize = 15;
    env.write([put("from").with_body("1000"), put("to").with_body("0")]).await;
    race(&env, |env, _| async move {
        for _ in 0..MOVES {
            loop {
                let (from, to) = (env.record("from").await.unwrap(), env.record("to").await.unwrap());
                let number = |body: &[u8]| std::str::from_utf8(body).unwrap().parse::<u64>().unwrap();
                let take = put("from").expecting(Expect::Version(from.version));
                let give = put("to").expecting(Expect::Version(to.version));
                let take = take.with_body((number(&from.body) - 1).to_string());
                let give = give.with_body((number(&to.body) + 1).to_string());
                if env.try_write([take, give]).await.is_ok() {
                    break;
                }
            }
        }
    })
    .await;
    let moved = RACERS * MOVES;
    assert_eq!(env.record("to").await.unwrap().body, moved.to_string().as_bytes());
    assert_eq!(env.record("from").await.unwrap().body, (1000 - moved).to_string().as_bytes());
}

pub(super) async fn no_message_is_lost_and_each_sender_keeps_its_order(env: Env) {
    const EACH: usize = 25;
    race(&env, |env, racer| async move {
        for index in 0..EACH {
            env.post(OrchestratorMessage::new("i1", format!("{racer} {index:02}"))).await;
        }
    })
    .await;
    let item = env.fetch().await;
    let mut by_sender: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for body in bodies(&item) {
        by_sender.entry(body.chars().next().unwrap()).or_default().push(body);
    }
    assert_eq!(by_sender.len(), RACERS);
    assert!(by_sender.values().all(|sent| sent.len() == EACH && sent.is_sorted()), "{by_sender:?}");
}

pub(super) async fn turns_of_one_instance_make_one_history(env: Env) {
    const MESSAGES: usize = 80;
    let sender = {
        let env = env.clone();
        tokio::spawn(async move {
            for index in 0..MESSAGES {
                env.post(OrchestratorMessage::new("i1", format!("{index}"))).await;
                tokio::task::yield_now().await;
            }
        })
    };
    let handled = race(&env, |env, _| async move {
        let mut handled = 0;
        while env.read("i1").await.unwrap().len() < MESSAGES {
            for item in env.fetch_many(1).await {
                let mut turn = env.turn(&item);
                for (index, message) in (1..).zip(&item.messages) {
                    turn = turn.event_data(item.last_event_id + index, message.body.clone());
                }
                turn.ack().await;
                handled += item.messages.len();
            }
            tokio::task::yield_now().await;
        }
        handled
    })
    .await;
    sender.await.unwrap();
    assert_eq!(handled.iter().sum::<usize>(), MESSAGES);
    let history = env.read("i1").await.unwrap();
    for (index, event) in history.iter().enumerate() {
        assert_eq!((event.event_id, &event.data), (index as u64 + 1, &Bytes::from(index.to_string())));
    }
}

pub(super) async fn tokens_are_never_given_twice(env: Env) {
    for id in 0..40 {
        env.send(&format!("i{id}"), "go").await;
        env.queue(job(id)).await;
    }
    let tokens = race(&env, |env, _| async move {
        let mut tokens: Vec<LockToken> = Vec::new();
        for _ in 0..5 {
            tokens.extend(env.fetch_many(1).await.iter().map(|item| item.lock_token));
            tokens.extend(env.take(ask()).await.iter().map(|item| item.lock_token));
        }
        assert!(tokens.is_sorted(), "each thread sees growing tokens");
        tokens
    })
    .await
    .concat();
    assert_eq!((tokens.len(), tokens.iter().collect::<BTreeSet<_>>().len()), (80, 80));
}

pub(super) async fn versions_of_records_are_never_given_twice(env: Env) {
    let versions = race(&env, |env, racer| async move {
        let mut versions = Vec::new();
        for _ in 0..20 {
            versions
                .extend(env.write([put(&format!("own {racer}")), put_of("all", &racer.to_string())]).await);
        }
        assert!(versions.is_sorted());
        versions
    })
    .await
    .concat();
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), versions.len());
}

pub(super) async fn no_waiting_fetch_is_forgotten(env: Env) {
    for round in 0..10 {
        let mut fetches = Vec::new();
        for _ in 0..RACERS {
            fetches.push(env.waiting_fetch().await);
        }
        race(&env, |env, racer| async move { env.send(&format!("{round}/{racer}"), "go").await }).await;
        let mut items = Vec::new();
        for fetch in fetches {
            items.extend(fetch.answer().await);
        }
        assert_eq!(instances(&items).into_iter().collect::<BTreeSet<_>>().len(), RACERS);
    }
}

pub(super) async fn no_waiting_worker_is_forgotten(env: Env) {
    for _ in 0..10 {
        let mut fetches = Vec::new();
        for _ in 0..RACERS {
            fetches.push(env.waiting_work(ask().waiting()).await);
        }
        race(&env, |env, racer| async move { env.queue(job(racer as u64)).await }).await;
        let mut ids = BTreeSet::new();
        for fetch in fetches {
            ids.extend(fetch.answer().await.iter().map(|item| item.message.activity.activity_id));
        }
        assert_eq!(ids.len(), RACERS);
    }
}

pub(super) async fn a_session_goes_to_one_owner(env: Env) {
    for id in 0..24 {
        env.queue(session_job("s", id)).await;
    }
    let taken = race(&env, |env, racer| async move {
        let mut mine = 0;
        for _ in 0..24 {
            mine += env.take(ask().owner(&format!("owner {racer}"))).await.len();
        }
        mine
    })
    .await;
    assert_eq!(taken.iter().filter(|&&count| count > 0).collect::<Vec<_>>(), [&24]);
}

pub(super) async fn a_deletion_and_a_turn_leave_nothing_behind(env: Env) {
    for round in 0..20 {
        let id = format!("i{round}");
        env.start(&id).await;
        env.send(&id, "go").await;
        let item = env.fetch().await;
        let turn = AckOrchestrationItem {
            history_delta: vec![event(2)],
            worker_items: vec![job_of(&id, 2)],
            ..AckOrchestrationItem::empty(item.lock_token, 1)
        };
        let (acking, deleting) = (env.clone(), env.clone());
        let ack = tokio::spawn(async move { acking.ack_orchestration_item(Arc::new(turn)).await });
        let delete = tokio::spawn(async move { deleting.delete_instances_atomic(&[id], true).await });
        if let Err(error) = ack.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::LockLost);
        }
        delete.await.unwrap().unwrap();
        env.no_work().await;
        env.nothing_to_fetch().await;
    }
    assert!(env.list_instances().await.unwrap().is_empty());
    assert_eq!(env.get_system_metrics().await.unwrap().total_events, 0);
}

pub(super) async fn a_cancellation_and_a_completion_do_not_both_happen(env: Env) {
    for round in 0..20 {
        env.queue(job(round)).await;
        let token = env.work().await.lock_token;
        let turn = env.turn_of("canceller").await.cancel_activity(activity("i1", round));
        let completing = env.clone();
        let complete = tokio::spawn(async move { completing.complete(token, "i1").await });
        turn.ack().await;
        let completed = complete.await.unwrap().is_ok();
        let delivered = env.fetch_many(1).await;
        assert_eq!(
            delivered.len(),
            usize::from(completed),
            "a completion is delivered if and only if it was accepted"
        );
        for item in &delivered {
            env.turn(item).ack().await;
        }
        env.no_work().await;
    }
}

pub(super) async fn counts_stay_right_under_load(env: Env) {
    race(&env, |env, racer| async move {
        for round in 0..10 {
            let events = vec![event(1), event(2)];
            env.append_with_execution(&format!("{racer}/{round}"), 1, events).await.unwrap();
        }
        env.delete_instances_atomic(&[format!("{racer}/0")], true).await.unwrap();
    })
    .await;
    let metrics = env.get_system_metrics().await.unwrap();
    let instances = RACERS as u64 * 9;
    assert_eq!((metrics.total_instances, metrics.running_instances), (instances, instances));
    assert_eq!((metrics.total_executions, metrics.total_events), (instances, instances * 2));
}
