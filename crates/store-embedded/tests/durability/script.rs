//! Random operations that follow from a seed. Each step is at most one durable commit and leaves no
//! lock behind but such as outlive the process, so after a crash a store must show what it showed
//! after the last acknowledged step, or after the one in flight.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::store::*;
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

/// Longer than every delay and life of a script.
const LONG: Duration = Duration::from_secs(100_000);
const LOCK: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);
const KINDS: [&str; 2] = ["claim", "a/b:c"];

/// One step: its own random numbers, so that a store that answers differently does not change what follows.
#[derive(Clone)]
pub struct Step(Random);

pub fn script(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    (0..steps).map(|_| Step(random.fork())).collect()
}

fn instance(random: &mut Random) -> String {
    ["a", "a/b", "a:b", "ab", "é"][random.below(5) as usize].to_owned()
}

fn body(random: &mut Random) -> Bytes {
    let len = if random.chance(1, 20) { random.below(3_000) } else { random.below(40) };
    (0..len).map(|_| random.below(256) as u8).collect()
}

fn message(random: &mut Random, now_ms: u64) -> OrchestratorMessage {
    let guard = match random.below(6) {
        0 => StartGuard::IfAbsent,
        1 => StartGuard::IfPresent,
        _ => StartGuard::None,
    };
    let timer = random.chance(1, 3).then(|| TimerIdentifier { execution_id: 1, timer_id: random.below(3) });
    let visible_at_ms = random.chance(1, 3).then(|| now_ms + random.below(200));
    OrchestratorMessage { instance: instance(random), visible_at_ms, timer, guard, body: body(random) }
}

fn activity(random: &mut Random, instance: &str, now_ms: u64) -> WorkerMessage {
    WorkerMessage {
        activity: ScheduledActivityIdentifier {
            instance: instance.to_owned(),
            execution_id: 1,
            activity_id: random.below(4),
        },
        session_id: random.chance(1, 4).then(|| "session".to_owned()),
        tag: random.chance(1, 4).then(|| "tag".to_owned()),
        visible_at_ms: random.chance(1, 4).then(|| now_ms + random.below(200)),
        body: body(random),
    }
}

fn write(random: &mut Random) -> RecordWrite {
    let (kind, id) = (KINDS[random.below(2) as usize].to_owned(), format!("r{}", random.below(4)));
    let expect = match random.below(5) {
        0 => Expect::Absent,
        1 => Expect::Version(random.below(20)),
        _ => Expect::Anything,
    };
    if random.chance(1, 4) {
        return RecordWrite::Delete { kind, id, expect };
    }
    let due_at_ms = random.chance(1, 2).then(|| random.below(1_000));
    let time_to_live = random.chance(1, 4).then(|| Duration::from_millis(random.below(300)));
    RecordWrite::Put { kind, id, expect, due_at_ms, time_to_live, body: body(random) }
}

fn metadata(random: &mut Random) -> ExecutionMetadata {
    let mut metadata = ExecutionMetadata::default();
    if random.chance(1, 2) {
        metadata.status = Some(ExecutionStatus::ALL[random.below(7) as usize]);
        metadata.output = random.chance(1, 2).then(|| body(random));
    }
    if random.chance(1, 2) {
        metadata.orchestration_name = Some(format!("Flow{}", random.below(2)).into());
        metadata.pinned_version = Some(semver::Version::new(1, random.below(2), 0));
    }
    metadata.incarnation = random.chance(4, 5).then(|| incarnation(random));
    if random.chance(1, 4) {
        metadata.parent_instance_id = Some(instance(random));
    }
    if random.chance(1, 4) {
        metadata.labels = Some(BTreeMap::from([("team/x".to_owned(), format!("{}", random.below(2)))]));
    }
    if random.chance(1, 4) {
        metadata.custom_status = Some(match random.below(2) {
            0 => CustomStatusChange::Clear,
            _ => CustomStatusChange::Set(body(random)),
        });
    }
    metadata
}

/// Mostly the same one, so that a turn that guesses it can join an activity.
fn incarnation(random: &mut Random) -> u64 {
    u64::from(random.chance(1, 8))
}

fn turn(random: &mut Random, item: &OrchestrationItem, now_ms: u64) -> AckOrchestrationItem {
    let next = item.last_event_id > 0 && random.chance(1, 5);
    let execution_id = item.execution_id + u64::from(next);
    let first = if next { 1 } else { item.last_event_id + 1 };
    let ack = AckOrchestrationItem::empty(item.lock_token, execution_id);
    fill(random, ack, &item.instance, first, now_ms)
}

/// Puts something random into every part of a turn whose first event has this id.
fn fill(
    random: &mut Random,
    turn: AckOrchestrationItem,
    instance: &str,
    first: u64,
    now_ms: u64,
) -> AckOrchestrationItem {
    let events =
        (first..first + random.below(4)).map(|event_id| StoredEvent { event_id, data: body(random) });
    AckOrchestrationItem {
        history_delta: events.collect(),
        worker_items: (0..random.below(3)).map(|_| activity(random, instance, now_ms)).collect(),
        orchestrator_items: (0..random.below(3)).map(|_| message(random, now_ms)).collect(),
        metadata: metadata(random),
        cancelled_activities: (0..random.below(2)).map(|_| activity(random, instance, 0).activity).collect(),
        cancelled_timers: vec![TimerIdentifier { execution_id: 1, timer_id: random.below(3) }],
        records: if random.chance(1, 3) { vec![write(random)] } else { Vec::new() },
        ..turn
    }
}

/// The kind of an error, so that texts may differ.
fn said<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn session() -> SessionFetchConfig {
    SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK, claims: SessionClaims::Allowed }
}

/// Runs a step; returns what the store said.
pub async fn run(step: &Step, store: &dyn Store, clock: &Arc<VirtualClock>) -> String {
    clock.advance(STEP);
    let random = &mut step.0.clone();
    let now_ms = store.now_ms().await.unwrap();
    match random.below(17) {
        0..=2 => said(store.enqueue_for_orchestrator(message(random, now_ms), None).await),
        3..=7 => run_turn(random, store, now_ms).await,
        8..=10 => run_work(random, store, now_ms).await,
        11 | 12 => {
            let batch = RecordBatch {
                writes: (0..=random.below(2)).map(|_| write(random)).collect(),
                orchestrator_items: vec![message(random, now_ms)],
                worker_items: vec![activity(random, "ab", now_ms)],
                ..RecordBatch::default()
            };
            said(store.commit_records(batch).await)
        }
        13 => {
            let ids = [instance(random), instance(random)];
            said(store.delete_instances_atomic(&ids, random.chance(1, 2)).await)
        }
        14 => {
            let options = PruneOptions { keep_last: Some(random.below(3) as u32), completed_before_ms: None };
            said(store.prune_executions(&instance(random), options).await)
        }
        15 => lease(random, store).await,
        _ => {
            let event_id = 1 + random.below(6);
            let events = vec![StoredEvent { event_id, data: body(random) }];
            said(store.append_with_execution(&instance(random), 1 + random.below(2), events).await)
        }
    }
}

async fn run_turn(random: &mut Random, store: &dyn Store, now_ms: u64) -> String {
    let item = match store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await {
        Ok(Some(item)) => item,
        Ok(None) => return "nothing".to_owned(),
        Err(error) => return format!("{:?}", error.kind()),
    };
    let token = item.lock_token;
    let outcome = if random.chance(1, 5) {
        let delay = random.chance(1, 2).then(|| Duration::from_millis(random.below(100)));
        store.abandon_orchestration_item(token, delay, random.chance(1, 2)).await
    } else {
        let outcome = store.ack_orchestration_item(Arc::new(turn(random, &item, now_ms))).await;
        if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            let _ = store.abandon_orchestration_item(token, None, false).await;
        }
        outcome
    };
    format!("{:?} {}", OrchestrationItem { lock_token: LockToken(0), ..item }, said(outcome))
}

async fn run_work(random: &mut Random, store: &dyn Store, now_ms: u64) -> String {
    let fetched = store.fetch_work_item(LOCK, Duration::ZERO, Some(&session()), &TagFilter::Any).await;
    let item = match fetched {
        Ok(Some(item)) => item,
        Ok(None) => return "nothing".to_owned(),
        Err(error) => return format!("{:?}", error.kind()),
    };
    let lock_token = item.lock_token;
    if random.chance(1, 2) {
        match join(&mut random.fork(), store, &item, now_ms).await {
            Ok(()) => return format!("{:?} joined", LockedWorkItem { lock_token: LockToken(0), ..item }),
            Err(error) if error.kind() == ErrorKind::Unavailable => return said::<()>(Err(error)),
            // It is ended by itself.
            Err(_) => {}
        }
    }
    let outcome = if random.chance(1, 5) {
        store.abandon_work_item(lock_token, None, random.chance(1, 2)).await
    } else {
        let instance = item.message.activity.instance.clone();
        let completion = Some(OrchestratorMessage::new(instance, body(random)));
        store.ack_work_item(AckWorkItem { lock_token, completion, records: Vec::new() }).await
    };
    format!("{:?} {}", LockedWorkItem { lock_token: LockToken(0), ..item }, said(outcome))
}

/// Locks an activity for a worker elsewhere, which keeps it: such a lock outlives the process.
async fn lease(random: &mut Random, store: &dyn Store) -> String {
    let request = FetchWorkItems {
        max_items: 1 + random.below(2) as usize,
        lock_timeout: if random.chance(1, 2) { LOCK } else { STEP * 7 },
        poll_timeout: Duration::ZERO,
        session: None,
        tag_filter: &TagFilter::Any,
        life: LockLife::Durable,
    };
    let items = store.fetch_work_items(request).await;
    said(items.map(|items| {
        items.into_iter().map(|item| LockedWorkItem { lock_token: LockToken(0), ..item }).collect::<Vec<_>>()
    }))
}

/// Ends an activity with a turn of its instance.
async fn join(
    random: &mut Random,
    store: &dyn Store,
    item: &LockedWorkItem,
    now_ms: u64,
) -> Result<(), ProviderError> {
    let instance = &item.message.activity.instance;
    let current = store.get_instance_info(instance).await?.current_execution_id;
    let last_event_id = store.read(instance).await?.last().map_or(0, |event| event.event_id);
    let lock = TurnLock::Activity { incarnation: incarnation(random) };
    let empty = AckOrchestrationItem::empty(item.lock_token, current);
    let turn = AckOrchestrationItem { lock, ..empty };
    let turn = fill(random, turn, instance, last_event_id + 1, now_ms);
    store.ack_orchestration_item(Arc::new(turn)).await
}

/// Everything that a store shows, without changing it.
pub async fn show(store: &dyn Store) -> String {
    let mut text = String::new();
    let query = |query: InstanceQuery| InstanceQuery { limit: 100, ..query };
    let some = InstanceQuery::default;
    for query in [
        query(some()),
        query(InstanceQuery { id_prefix: Some("a".to_owned()), ..some() }),
        query(InstanceQuery { statuses: [ExecutionStatus::Completed].into(), ..some() }),
        query(InstanceQuery { orchestration_name: Some("Flow1".to_owned()), ..some() }),
        query(InstanceQuery { labels: [("team/x".to_owned(), "1".to_owned())].into(), ..some() }),
        query(InstanceQuery { parent_instance_id: Some("a".to_owned()), ..some() }),
    ] {
        writeln!(text, "{}", shown_page(store.query_instances(query).await)).unwrap();
    }
    let instances = store.list_instances().await;
    if let Err(error) = &instances {
        writeln!(text, "{:?}", error.kind()).unwrap();
    }
    for instance in instances.unwrap_or_default() {
        let executions = store.list_executions(&instance).await;
        if let Err(error) = &executions {
            writeln!(text, "{:?}", error.kind()).unwrap();
        }
        for execution_id in executions.unwrap_or_default() {
            let info = said(store.get_execution_info(&instance, execution_id).await);
            let history = said(store.read_history_with_execution_id(&instance, execution_id).await);
            writeln!(text, "{instance} {execution_id} {info} {history}").unwrap();
        }
    }
    for kind in KINDS {
        let listed = store.list_records(ListRecords { kind, limit: 100, ..ListRecords::default() }).await;
        let due = DueRecords {
            kind,
            id_prefix: "",
            now_ms: Some(u64::MAX),
            limit: 100,
            poll_timeout: Duration::ZERO,
        };
        let due = store.due_records(due).await;
        writeln!(text, "{kind} {} {}", said(listed), said(due)).unwrap();
    }
    writeln!(text, "{}", said(store.get_system_metrics().await)).unwrap();
    writeln!(text, "{}", shown_depths(store.get_queue_depths().await)).unwrap();
    text
}

/// A page as the recorded stores show it: they have no damage, and what is damaged says so.
fn shown_page(page: Result<InstancePage, ProviderError>) -> String {
    let Ok(page) = page else { return said(page) };
    let InstancePage { instances, unreadable, damaged, next } = page;
    if !unreadable.is_empty() || damaged.is_some() {
        return format!("Corrupt {unreadable:?} {damaged:?}");
    }
    format!("InstancePage {{ instances: {instances:?}, next: {next:?} }}")
}

/// Queue lengths as the recorded stores show them: what is delayed in both queues together.
fn shown_depths(depths: Result<QueueDepths, ProviderError>) -> String {
    let Ok(depths) = depths else { return said(depths) };
    let QueueDepths { orchestrator_queue, worker_queue, locked, .. } = depths;
    let delayed = depths.delayed();
    format!(
        "QueueDepths {{ orchestrator_queue: {orchestrator_queue}, worker_queue: {worker_queue}, delayed: {delayed}, locked: {locked} }}"
    )
}

/// Everything that a store shows and everything that is in its queues, after a long time. Takes the queues apart.
pub async fn show_all(store: &dyn Store, clock: &Arc<VirtualClock>, end_ms: u64) -> String {
    clock.advance_to_ms(end_ms);
    let mut text = show(store).await;
    let request = FetchOrchestrationItems { max_items: 1_000, ..FetchOrchestrationItems::one(LONG) };
    let items = store.fetch_orchestration_items(request).await;
    if let Err(error) = &items {
        writeln!(text, "{:?}", error.kind()).unwrap();
    }
    for item in items.unwrap_or_default() {
        writeln!(text, "{} {:?}", item.instance, item.messages).unwrap();
    }
    loop {
        match store.fetch_work_item(LONG, Duration::ZERO, Some(&session()), &TagFilter::Any).await {
            Ok(Some(item)) => writeln!(text, "{:?}", item.message).unwrap(),
            Ok(None) => return text,
            Err(error) => {
                writeln!(text, "{:?}", error.kind()).unwrap();
                return text;
            }
        }
    }
}

/// When every delay and life of a script is over.
pub fn end_ms() -> u64 {
    segno_testkit::clock::VIRTUAL_EPOCH_MS + 50_000_000
}
