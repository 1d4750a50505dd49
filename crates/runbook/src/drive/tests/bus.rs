//! Batches whose jobs go over the bus: a worker of the seed receives, answers and completes; nodes
//! die at each commit; messages come twice, late, for unknown rows and malformed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno_actions::functions::PoolName;
use segno_testkit::crash::crash_points;
use segno_testkit::faults::{self, Fault, FaultStore};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::scenario::{Outcome, outcome, play, play_cancelled, workers};
use super::world::{Reply, Workers, World, all_succeed, pools, small_runbook};
use crate::bus::{
    Bus, BusError, Filter, Message, RecordBus, Settlement, StoredState, SubscriptionName,
    SubscriptionSettings, TopicName,
};
use crate::drive::{BatchDeletion, OUTBOX, ReceiptState, WORKER_ID};
use crate::edge::BusEdge;
use crate::message::{EventMessage, JobMessage};
use crate::rows::{BatchId, BatchStatus, MemberStatus, WorkStatus};
use crate::telemetry;

/// How a worker sends its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Once,
    /// Three times: at once under one id, later under another one.
    Thrice,
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn subscription(topic: &str, name: &str) -> SubscriptionName {
    SubscriptionName::new(topic, name).unwrap()
}

/// A worker of the seed: receives jobs of its pool, and completes each after it has sent the result.
fn worker(world: &World, habit: Habit) -> JoinHandle<()> {
    let bus = world.record_bus(world.store.clone());
    let (workers, attempts, clock) = (world.workers.clone(), world.attempts.clone(), world.clock.clone());
    tokio::spawn(async move {
        let from = subscription("worker-jobs", "cloud-01");
        loop {
            for received in bus.receive(&from, 10, Duration::from_secs(60)).await.unwrap() {
                let job: JobMessage = serde_json::from_str(&received.message.body).unwrap();
                assert_eq!(received.message.message_id, job.job_id);
                assert_eq!(received.message.properties[WORKER_ID], "cloud-01");
                *attempts.lock().unwrap().entry(job.job_id.clone()).or_default() += 1;
                let (bus, clock, workers) = (bus.clone(), clock.clone(), workers.clone());
                let from = from.clone();
                tokio::spawn(async move {
                    let answer = answer(&workers, &job, &*clock).await;
                    send_result(&bus, &format!("result-{}", job.job_id), &answer).await;
                    if habit == Habit::Thrice {
                        send_result(&bus, &format!("result-{}", job.job_id), &answer).await;
                        segno::clock::sleep(&*clock, Duration::from_secs(30)).await;
                        send_result(&bus, &format!("again-{}", job.job_id), &answer).await;
                    }
                    // A slow worker that does not renew its lock gets the job again.
                    let settled = bus.settle(&from, &received.lock, Settlement::Complete).await;
                    assert!(matches!(settled, Ok(()) | Err(BusError::LockLost(_))), "{settled:?}");
                });
            }
        }
    })
}

async fn answer(workers: &Workers, job: &JobMessage, clock: &dyn segno::clock::Clock) -> Value {
    let function = job.function_name.to_lowercase();
    let input: Value = serde_json::from_str(job.parameters.get()).unwrap();
    let (status, result, error) = match workers(&function, &job.job_id, &input) {
        Reply::Done(value) => ("Success", value, Value::Null),
        Reply::Fail(message) => ("Failure", Value::Null, json!({"Message": message})),
        Reply::Later(seconds, value) => {
            segno::clock::sleep(clock, Duration::from_secs(seconds.into())).await;
            ("Success", value, Value::Null)
        }
    };
    // The letter case of the seed's time.
    json!({
        "JobId": job.job_id, "BatchId": job.batch_id, "WorkerId": job.worker_id, "Status": status,
        "FunctionName": job.function_name, "Result": result, "Error": error,
        "CorrelationData": job.correlation_data,
    })
}

async fn send_result(bus: &RecordBus, id: &str, answer: &Value) {
    bus.send(&topic("worker-results"), vec![Message::json(id, answer.to_string())]).await.unwrap();
}

fn run(crash: Option<(u64, Fault)>, habit: Habit) -> (Outcome, u64) {
    segno_testkit::run(async {
        let world = World::new(workers()).with_bus().await;
        let worker = worker(&world, habit);
        let scenario = async { vec![play(&world).await, play_cancelled(&world).await] };
        let (batches, commits) = with_crash(&world, crash, scenario).await;
        worker.abort();
        (outcome(&world, &batches).await, commits)
    })
}

/// Plays a scenario while a process dies at a commit and another one takes over.
async fn with_crash(
    world: &World,
    crash: Option<(u64, Fault)>,
    scenario: impl Future<Output = Vec<BatchId>>,
) -> (Vec<BatchId>, u64) {
    let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), faults::script(crash));
    let first = world.process(faulty.clone() as Arc<dyn Store>, "node-1").await;
    let scenario = async {
        let batches = scenario.await;
        // What comes late is taken by a process too.
        world.pass(4_000).await;
        batches
    };
    tokio::pin!(scenario);
    let batches = tokio::select! {
        biased;
        batches = &mut scenario => batches,
        () = faulty.died() => {
            drop(first);
            let _second = world.process(world.store.clone(), "node-2").await;
            scenario.await
        }
    };
    (batches, faulty.commits())
}

/// Two members with two steps over the bus. The worker takes an hour for one of them, which a
/// message of the bus removes meanwhile.
fn run_small(crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    segno_testkit::run(async {
        let workers: Workers = Arc::new(|_, _, input| match input["Key"].as_str() {
            Some("b") => Reply::Later(3_600, json!({"Id": "late"})),
            _ => Reply::Done(json!({"Id": "x"})),
        });
        let world = World::new(workers).with_bus().await;
        let (bus, watch) =
            (world.record_bus(world.store.clone()), subscription("orchestrator-events", "watch"));
        bus.subscribe(&watch, &SubscriptionSettings::default()).await.unwrap();
        let worker = worker(&world, Habit::Once);
        let scenario = async {
            world.publish(&small_runbook(&[&["one", "two"]])).await;
            let batch = world.create(Some(world.now()), &["a", "b"]).await;
            let is_done = async || match world.step(batch, "a", "one").await {
                Some(step) => step.work.status == WorkStatus::Succeeded,
                None => false,
            };
            world.until("the first step of a", is_done).await;
            let id = world.member(batch, "b").await.id;
            let body = json!({"messageType": "member-removed", "runbookName": "migrate", "runbookVersion": 1,
                "batchId": batch, "batchMemberId": id, "memberKey": "b"});
            bus.send(&topic("orchestrator-events"), vec![Message::json("m-1", body.to_string())])
                .await
                .unwrap();
            world.until_ended(batch).await;
            vec![batch]
        };
        let (batches, commits) = with_crash(&world, crash, scenario).await;
        worker.abort();
        let mut outcome = outcome(&world, &batches).await;
        // The key has a digest of the message, and with it the id of the member, which may differ.
        for row in outcome.rows.iter_mut().filter(|row| row.starts_with("receipt \"bus-m-1-")) {
            *row = row.rsplit(' ').take(1).map(|state| format!("receipt of the message {state}")).collect();
        }
        // Each message was sent once, and each job of the member that stays was done once.
        let mut sent: Vec<String> = drain(&bus, &watch)
            .await
            .iter()
            .map(|message| {
                format!("event {}", message.properties.get("MessageType").map_or("m-1", |kind| kind))
            })
            .collect();
        sent.sort();
        outcome.rows.extend(sent);
        for name in ["one", "two"] {
            let job = world.step(batches[0], "a", name).await.unwrap().work.job_id.unwrap();
            outcome.rows.push(format!("{name} of a {:?}", world.attempts.lock().unwrap().get(&job)));
        }
        assert!(outbox_ids(&world).await.is_empty(), "{:?}", outbox_ids(&world).await);
        for topic in ["orchestrator-events", "results"] {
            assert_eq!(dead(&world, topic).await, []);
        }
        (outcome, commits)
    })
}

#[test]
fn a_process_that_dies_between_receive_inbox_and_complete_loses_nothing() {
    let (expected, commits) = run_small(None);
    assert!(expected.instances.is_empty(), "the outbox row is the job: {:?}", expected.instances);
    assert!((20..200).contains(&commits), "{commits}");
    for (number, fault) in crash_points(commits) {
        let (outcome, _) = run_small(Some((number, fault)));
        outcome.check(&expected, &format!("{fault:?} at commit {number} of {commits}"));
    }
}

/// Crashes of the scenario with everything in a test of the gate; more by `SEGNO_RUNBOOK_CRASHES`.
const CRASHES: u64 = 12;

#[test]
fn a_batch_with_everything_over_the_bus_survives_crashes() {
    let crashes = std::env::var("SEGNO_RUNBOOK_CRASHES").ok().and_then(|text| text.parse().ok());
    let crashes: u64 = crashes.unwrap_or(CRASHES);
    let (expected, commits) = run(None, Habit::Once);
    assert!(commits > 100, "{commits}");
    for number in 1..=crashes.min(commits) {
        let fault = if number % 2 == 0 { Fault::CrashBefore } else { Fault::CrashAfter };
        let at = (commits * number).div_ceil(crashes + 1).max(1);
        run(Some((at, fault)), Habit::Once).0.check(&expected, &format!("{fault:?} at {at} of {commits}"));
    }
}

#[test]
fn results_that_come_twice_and_late_do_no_harm() {
    let (expected, _) = run(None, Habit::Once);
    let (outcome, _) = run(None, Habit::Thrice);
    outcome.check(&expected, "each result three times");
}

/// Ids and types of all messages of a subscription.
async fn drain(bus: &RecordBus, from: &SubscriptionName) -> Vec<Message> {
    let mut found = Vec::new();
    loop {
        let received = bus.receive(from, 100, Duration::ZERO).await.unwrap();
        if received.is_empty() {
            return found;
        }
        for one in received {
            bus.settle(from, &one.lock, Settlement::Complete).await.unwrap();
            found.push(one.message);
        }
    }
}

async fn outbox_ids(world: &World) -> Vec<String> {
    let all = ListRecords { kind: OUTBOX, limit: 1_000, ..ListRecords::default() };
    world.store.list_records(all).await.unwrap().into_iter().map(|record| record.id).collect()
}

#[test]
fn all_five_messages_of_the_seed_are_sent_and_the_outbox_ends_empty() {
    segno_testkit::run(async {
        let world = World::new(workers()).with_bus().await;
        let bus = world.record_bus(world.store.clone());
        let watch = subscription("orchestrator-events", "watch");
        bus.subscribe(&watch, &SubscriptionSettings::default()).await.unwrap();
        let process = world.process(world.store.clone(), "node-1").await;
        let worker = worker(&world, Habit::Once);
        let batch = play(&world).await;
        // A member that has left comes back.
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        runbooks.put_members(scope, batch, vec![super::world::entry("d")], ("back", None)).await.unwrap();
        world.pass(300).await;
        let mut seen = BTreeMap::<&str, usize>::new();
        let messages = drain(&bus, &watch).await;
        for message in &messages {
            let event = EventMessage::read(message.body.as_bytes()).unwrap();
            assert_eq!(message.properties["MessageType"], event.message_type());
            assert_eq!((message.content_type.as_str(), event.batch_id()), ("application/json", batch));
            *seen.entry(event.message_type()).or_default() += 1;
        }
        for kind in ["batch-init", "phase-due", "member-added", "member-removed", "poll-check"] {
            assert!(seen.contains_key(kind), "{kind}: {seen:?}");
        }
        assert_eq!(seen["batch-init"], 1);
        assert!(outbox_ids(&world).await.is_empty(), "{:?}", outbox_ids(&world).await);
        let own = subscription("orchestrator-events", "orchestrator");
        assert!(drain(&bus, &own).await.is_empty(), "what we send does not come back to us");
        worker.abort();
        drop(process);
    });
}

/// A batch of two members with one step over the bus, and no worker.
async fn waiting_batch(world: &World) -> BatchId {
    world.publish(&small_runbook(&[&["one"]])).await;
    let batch = world.create(Some(world.now()), &["a", "b"]).await;
    let is_sent = async || {
        let step = world.step(batch, "b", "one").await;
        step.is_some_and(|step| step.work.status == WorkStatus::Dispatched)
    };
    world.until("the dispatch", is_sent).await;
    batch
}

async fn dead(world: &World, topic: &str) -> Vec<(String, String, String)> {
    let bus = world.record_bus(world.store.clone());
    let dead = bus.dead_letters(&subscription(topic, "orchestrator"), None, 100).await.unwrap();
    let (dead, _) = segno_actions::Listed::split(dead);
    let shown = dead
        .into_iter()
        .map(|letter| (letter.message.message_id, letter.reason.reason, letter.reason.description));
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    shown
}

#[test]
fn messages_of_a_scheduler_are_accepted_for_rows_that_we_hold() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        let bus = world.record_bus(world.store.clone());
        let (a, phase) = (world.member(batch, "a").await.id, world.phase(batch, "phase0").await.id);
        let step = world.step(batch, "b", "one").await.unwrap();
        let of = json!({"RunbookName": "migrate", "RunbookVersion": 1, "BatchId": batch});
        let message = |kind: &str, more: Value| {
            let mut body = of.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Message::json(format!("m-{kind}"), body.to_string()).property("MessageType", kind)
        };
        let due =
            json!({"phaseExecutionId": phase, "phaseName": "phase0", "offsetMinutes": 0, "memberIds": []});
        let timeout = json!({"stepExecutionId": step.id, "isInitStep": false, "stepName": "one",
            "dispatchedAt": step.work.dispatched_at});
        let messages = vec![
            message("batch-init", json!({"batchStartTime": null, "memberCount": 2})),
            message("phase-due", due),
            message("member-removed", json!({"batchMemberId": a, "memberKey": "a"})),
            message("poll-check", json!({"stepExecutionId": step.id, "stepName": "one", "pollCount": 1})),
        ];
        bus.send(&topic("orchestrator-events"), messages.clone()).await.unwrap();
        // A member that is gone may come back by message as well.
        let removed = async || world.member(batch, "a").await.status == MemberStatus::Removed;
        world.until("the removal", removed).await;
        let added = message("member-added", json!({"batchMemberId": a, "memberKey": "a"}));
        bus.send(&topic("orchestrator-events"), vec![added]).await.unwrap();
        world
            .until("the return", async || world.member(batch, "a").await.status == MemberStatus::Active)
            .await;
        let timeout = message("dispatch-timeout", timeout);
        bus.send(&topic("orchestrator-events"), vec![timeout]).await.unwrap();
        world.pass(60).await;
        let failed = world.step(batch, "b", "one").await.unwrap().work;
        assert_eq!(failed.status, WorkStatus::Failed, "the dispatch time-out was taken");
        assert_eq!(dead(&world, "orchestrator-events").await, []);
        let mut receipts = BTreeMap::new();
        let all = ListRecords { kind: crate::drive::RECEIPTS, limit: 100, ..ListRecords::default() };
        for record in world.store.list_records(all).await.unwrap() {
            let receipt: crate::drive::Receipt = serde_json::from_slice(&record.body).unwrap();
            if receipt.by.as_deref() == Some("bus") {
                receipts.insert(receipt.action.clone(), receipt.state);
            }
        }
        let expected = [
            ("batch-init", ReceiptState::Ignored),
            ("dispatch-timeout", ReceiptState::Applied),
            ("member-added", ReceiptState::Applied),
            ("member-removed", ReceiptState::Applied),
            ("phase-due", ReceiptState::Ignored),
            ("poll-check", ReceiptState::Ignored),
        ];
        assert_eq!(receipts, expected.map(|(kind, state)| (kind.to_owned(), state)).into());
        // The same messages again, after the window of duplicate detection, change nothing.
        world.pass(700).await;
        bus.send(&topic("orchestrator-events"), messages).await.unwrap();
        world.pass(60).await;
        assert_eq!(world.member(batch, "a").await.status, MemberStatus::Active, "removed once, not twice");
        drop(process);
    });
}

#[test]
fn messages_that_cannot_be_taken_become_dead_letters_with_a_reason() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        let bus = world.record_bus(world.store.clone());
        let event = |id: &str, body: Value| Message::json(id, body.to_string());
        let of = |runbook: &str, batch: u64| {
            json!({"messageType": "member-removed", "runbookName": runbook, "runbookVersion": 1, "batchId": batch,
                "batchMemberId": 99_999, "memberKey": "x"})
        };
        bus.send(
            &topic("orchestrator-events"),
            vec![
                Message::json("a-json", "{"),
                event("b-type", json!({"messageType": "tea-time"})),
                event("c-batch", of("migrate", 77)),
                event("d-member", of("migrate", batch.0)),
                event("e-runbook", of("other", batch.0)),
            ],
        )
        .await
        .unwrap();
        let result = |job: &str, data: Value| {
            json!({"jobId": job, "batchId": batch, "status": "success", "correlationData": data}).to_string()
        };
        bus.send(
            &topic("results"),
            vec![
                Message::json("f-json", "no"),
                Message::json("g-missing", result("step-1", Value::Null)),
                Message::json("h-invalid", result("step-1", json!({}))),
                Message::json("i-step", result("step-99999", json!({"stepExecutionId": 99_999}))),
            ],
        )
        .await
        .unwrap();
        world.pass(5).await;
        let short = |dead: Vec<(String, String, String)>| -> Vec<String> {
            dead.into_iter().map(|(id, reason, text)| format!("{id} {reason}: {text}")).collect()
        };
        let events = short(dead(&world, "orchestrator-events").await);
        for (found, words) in events.iter().zip([
            "a-json DeserializationFailed: the body is not a JSON object",
            "b-type UnknownMessageType: there is no message type \"tea-time\"",
            "c-batch UnknownRow: there is no batch 77",
            "d-member UnknownRow: batch 1 has no member 99999",
            "e-runbook UnknownRow: batch 1 is one of the runbook \"migrate\", not of \"other\"",
        ]) {
            assert!(found.starts_with(words), "{found}");
        }
        let results = short(dead(&world, "results").await);
        for (found, words) in results.iter().zip([
            "f-json DeserializationFailed",
            "g-missing MissingCorrelationData",
            "h-invalid InvalidCorrelationData",
            "i-step UnknownRow: batch 1 has no step 99999",
        ]) {
            assert!(found.starts_with(words), "{found}");
        }
        assert_eq!((events.len(), results.len()), (5, 4));
        drop(process);
    });
}

#[test]
fn a_job_whose_row_is_gone_is_sent_again_under_its_id_and_a_pool_that_is_paused_gets_none() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let pools = pools(world.store.clone()).clock(world.clock.clone());
        let pool = PoolName::new("cloud-01").unwrap();
        pools.pause(&world.scope, &pool, None).await.unwrap();
        world.pass(2).await;
        let process = world.process(world.store.clone(), "node-1").await;
        let bus = world.record_bus(world.store.clone());
        let copy = subscription("jobs", "copy");
        let filter = Filter::property(WORKER_ID, "cloud-01");
        let settings = SubscriptionSettings { filter, ..SubscriptionSettings::default() };
        bus.subscribe(&copy, &settings).await.unwrap();
        let batch = waiting_batch(&world).await;
        world.pass(60).await;
        assert_eq!(drain(&bus, &copy).await, [], "the pool is paused");
        pools.resume(&world.scope, &pool).await.unwrap();
        world.pass(60).await;
        assert_eq!(drain(&bus, &copy).await.len(), 2);
        // Both rows are lost. They are sent again under their ids, and the bus drops what it has.
        for id in outbox_ids(&world).await.into_iter().filter(|id| id.contains("/jobs/")) {
            let lost = RecordWrite::Delete { kind: OUTBOX.to_owned(), id, expect: Expect::Anything };
            let writes = RecordBatch { writes: vec![lost], ..RecordBatch::default() };
            world.store.commit_records(writes).await.unwrap();
        }
        world.pass(11 * 60).await;
        let jobs = outbox_ids(&world).await.into_iter().filter(|id| id.contains("/jobs/")).count();
        assert_eq!((jobs, drain(&bus, &copy).await.len()), (2, 0));
        let worker = worker(&world, Habit::Once);
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        worker.abort();
        drop(process);
    });
}

/// Else a worker's key could end calls that other workers hold, and functions that nodes run.
#[test]
fn a_result_over_the_bus_for_a_job_that_was_not_sent_over_it_is_a_dead_letter() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        world.pass(5).await;
        // A job of another transport has no row in the outbox.
        for id in outbox_ids(&world).await.into_iter().filter(|id| id.contains("/jobs/")) {
            let none = RecordWrite::Delete { kind: OUTBOX.to_owned(), id, expect: Expect::Anything };
            let writes = RecordBatch { writes: vec![none], ..RecordBatch::default() };
            world.store.commit_records(writes).await.unwrap();
        }
        let step = world.step(batch, "a", "one").await.unwrap();
        let bus = world.record_bus(world.store.clone());
        for pool in ["cloud-01", "other"] {
            let result = json!({"jobId": step.work.job_id, "batchId": batch, "workerId": pool,
                "status": "success", "correlationData": {"stepExecutionId": step.id}});
            send_result(&bus, &format!("r-{pool}"), &result).await;
        }
        let rollback = json!({"jobId": "rollback-1-1-undo-0", "batchId": batch, "status": "success"});
        send_result(&bus, "s", &rollback).await;
        world.pass(5).await;
        let dead = dead(&world, "results").await;
        let texts: Vec<&str> = dead.iter().map(|(_, _, text)| text.as_str()).collect();
        let job = format!("the job {} was not sent over the bus", step.work.job_id.as_deref().unwrap());
        assert_eq!(texts, [&*job, &*job, "the result of rollback-1-1-undo-0 has no workerId"]);
        let later = world.step(batch, "a", "one").await.unwrap();
        assert_eq!(later.work.status, WorkStatus::Dispatched);
        drop(process);
    });
}

#[test]
fn a_message_keeps_its_lock_while_its_inbox_record_cannot_be_written() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        world.pass(5).await;
        drop(process);
        let (bus, results) = (world.record_bus(world.store.clone()), subscription("results", "orchestrator"));
        // The store of the batches goes away at the first write; the bus does not.
        let away = faults::script([(1, Fault::AwayFor(Duration::from_mins(20)))]);
        let store = FaultStore::new(world.store.clone(), world.clock.clone(), away);
        let edge = BusEdge { bus: Arc::new(bus.clone()), ..world.edge(store) };
        let edge = tokio::spawn(edge.run(std::future::pending()));
        let step = world.step(batch, "a", "one").await.unwrap();
        let result = json!({"jobId": step.work.job_id, "batchId": batch, "status": "success",
            "correlationData": {"stepExecutionId": step.id}});
        send_result(&bus, "r-1", &result).await;
        // Longer than ten locks: without renewal it would be a dead letter.
        for _ in 0..19 {
            world.pass(60).await;
            let (waiting, _) = segno_actions::Listed::split(bus.messages(&results, None, 10).await.unwrap());
            let shown: Vec<_> = waiting.iter().map(|one| (one.state, one.delivery_count)).collect();
            assert_eq!(shown, [(StoredState::Locked, 1)], "it is completed only after it is stored");
        }
        world.pass(120).await;
        assert!(bus.messages(&results, None, 10).await.unwrap().is_empty());
        assert_eq!(dead(&world, "results").await, []);
        let process = world.process(world.store.clone(), "node-2").await;
        let taken =
            async || world.step(batch, "a", "one").await.unwrap().work.status == WorkStatus::Succeeded;
        world.until("the result", taken).await;
        edge.abort();
        drop(process);
    });
}

#[test]
fn a_job_without_a_result_fails_at_the_dispatch_timeout_and_its_late_result_changes_nothing() {
    segno_testkit::run(async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Failed);
        let step = world.step(batch, "a", "one").await.unwrap();
        let error = step.work.error_message.clone().unwrap();
        assert!(error.contains("dispatch time-out"), "{error}");
        assert!(outbox_ids(&world).await.is_empty(), "a cancelled job has no row");
        let worker = worker(&world, Habit::Once);
        world.pass(600).await;
        let later = world.step(batch, "a", "one").await.unwrap();
        assert_eq!((later.work.status, later.work.result_json), (WorkStatus::Failed, None));
        assert_eq!(dead(&world, "results").await, [], "it is no dead letter: its row is there");
        // It waits in the inbox of a batch that no node holds, and does not keep it from being deleted.
        let is_deleted = async || {
            let deletion = world.runbooks.delete_batch(&world.scope, batch).await.unwrap();
            deletion == BatchDeletion::Deleted
        };
        world.until("the deletion", is_deleted).await;
        worker.abort();
        drop(process);
    });
}

/// Counters and gauges of the bus by their labels, summed over snapshots.
fn bus_metrics(snapshotter: &Snapshotter, counts: &mut BTreeMap<String, f64>) {
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
        match (key.key().name(), value) {
            #[expect(clippy::cast_precision_loss, reason = "counts of a short story")]
            (telemetry::BUS_MESSAGES, DebugValue::Counter(count)) => {
                *counts.entry(labels.join(" ")).or_default() += count as f64;
            }
            (telemetry::BUS_OLDEST_SECONDS, DebugValue::Gauge(age)) => {
                counts.insert(format!("oldest {}", labels.join(" ")), age.into_inner());
            }
            _ => {}
        }
    }
}

#[test]
fn metrics_count_messages_by_topic_and_show_how_long_the_oldest_waits() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut counts = BTreeMap::new();
    let story = async {
        let world = World::new(all_succeed()).with_bus().await;
        let process = world.process(world.store.clone(), "node-1").await;
        let batch = waiting_batch(&world).await;
        let bus = world.record_bus(world.store.clone());
        bus.send(&topic("orchestrator-events"), vec![Message::json("bad", "{")]).await.unwrap();
        world.pass(300).await;
        bus_metrics(&snapshotter, &mut counts);
        let age = counts["oldest jobs"];
        assert!((270.0..=330.0).contains(&age), "no worker takes the jobs: {age}");
        let worker = worker(&world, Habit::Once);
        world.until_ended(batch).await;
        world.pass(60).await;
        worker.abort();
        drop(process);
    };
    metrics::with_local_recorder(&recorder, || segno_testkit::run(story));
    bus_metrics(&snapshotter, &mut counts);
    for (name, expected) in [
        ("jobs sent", 2.0),
        ("jobs received", 2.0),
        ("jobs completed", 2.0),
        ("results sent", 2.0),
        ("results received", 2.0),
        ("results completed", 2.0),
        ("orchestrator-events received", 1.0),
        ("orchestrator-events dead_lettered", 1.0),
        ("oldest jobs", 0.0),
        ("oldest results", 0.0),
        ("oldest orchestrator-events", 0.0),
    ] {
        assert_eq!(counts.get(name), Some(&expected), "{name} of {counts:#?}");
    }
}
