//! Three nodes on one PostgreSQL database, killed and started again while many recurring actions fire in the same seconds:
//! each occurrence is fired once, its function is called once, and none is lost or early.
//!
//! `SEGNO_RECURRING_ACTIONS=10000 SEGNO_RECURRING_BURSTS=8 SEGNO_RECURRING_EVERY_SECONDS=10 scripts/with-postgres.sh cargo
//! nextest run --release -p segno-cli --test cli recurring_nodes --no-capture` is the long run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::bell::{Bell, Call, Occurrence};
use crate::process::Process;
use jiff::Timestamp;
use segno::clock::{self, Clock, SystemClock};
use segno::ids::SystemIds;
use segno::store::{
    DueRecords, ExecutionStatus, Expect, InstanceQuery, ListRecords, Record, RecordBatch, RecordWrite, Store,
};
use segno_api::recurring::{MissedPolicy, RecurringFields};
use segno_api::{Client, Json};
use segno_stores::StoreUrl;
use serde_json::Value;
use tempfile::TempDir;

/// Kinds of the records that recurring actions and their histories are.
const RECURRING: &str = "segno.recurring";
const HISTORY: &str = "segno.recurring-history";

/// Nodes at once.
const NODES: usize = 3;

/// Actions that are also looked at through the API.
const LOOKED_AT: usize = 10;

/// Records that are written or read at once.
const PAGE: usize = 500;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
struct Size {
    actions: usize,
    bursts: usize,
    every_s: i64,
}

impl Size {
    fn of_this_run() -> Self {
        let setting =
            |name: &str, default: usize| std::env::var(name).map_or(default, |text| text.parse().unwrap());
        Size {
            actions: setting("SEGNO_RECURRING_ACTIONS", 300),
            bursts: setting("SEGNO_RECURRING_BURSTS", 4),
            every_s: i64::try_from(setting("SEGNO_RECURRING_EVERY_SECONDS", 1)).unwrap(),
        }
    }

    /// The second of each burst.
    fn seconds(self, first: i64) -> Vec<i64> {
        (first..).step_by(usize::try_from(self.every_s).unwrap()).take(self.bursts).collect()
    }
}

/// The nodes, each in the slot of the one that it followed.
struct Nodes {
    bell: Bell,
    directory: TempDir,
    url: String,
    slots: Vec<Process>,
    /// The number of the node in each slot. A node that is started again has another one.
    numbers: Vec<usize>,
    killed: BTreeSet<usize>,
}

impl Nodes {
    async fn start(url: &str) -> Self {
        let (bell, directory) = (Bell::start().await, TempDir::new().unwrap());
        let mut nodes = Nodes {
            bell,
            directory,
            url: url.to_owned(),
            slots: Vec::new(),
            numbers: (0..NODES).collect(),
            killed: BTreeSet::new(),
        };
        nodes.slots = (0..NODES).map(|number| nodes.start_node(number)).collect();
        nodes
    }

    fn start_node(&self, number: usize) -> Process {
        let path: PathBuf = self.directory.path().join(format!("{number}.toml"));
        std::fs::write(&path, format!("[auth]\nmode = \"none\"\n{}", self.bell.settings(number))).unwrap();
        let config = path.to_str().unwrap();
        Process::start(&["serve", "--config", config, "--listen", "127.0.0.1:0", "--store", &self.url])
    }

    /// Kills the node in a slot, and starts another one.
    fn replace(&mut self, slot: usize) {
        self.slots[slot].kill();
        self.killed.insert(self.numbers[slot]);
        self.numbers[slot] = NODES + self.killed.len() - 1;
        self.slots[slot] = self.start_node(self.numbers[slot]);
    }

    fn client(&self) -> Client {
        Client::new(&self.slots[0].address).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_occurrence_is_fired_once_however_nodes_are_killed() {
    let Ok(server) = std::env::var("SEGNO_TEST_POSTGRES") else {
        panic!("SEGNO_TEST_POSTGRES is not set; run this by scripts/with-postgres.sh")
    };
    let (size, ids) = (Size::of_this_run(), SystemIds::shared());
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}schema=rings_{:x}", ids.new_seed());
    let mut nodes = Nodes::start(&url).await;
    let store = url.parse::<StoreUrl>().unwrap().open().await.unwrap();
    let seconds = size.seconds(first_second(size.actions));
    let made = create(&nodes, &*store, size, &seconds).await;
    // Nobody is killed in the first burst, which shows what one takes, nor in the last.
    for second in &seconds[1..size.bursts - 1] {
        let draw = usize::try_from(ids.new_seed() % 1_000_000).unwrap();
        let called = 1 + draw % (size.actions / 2);
        let heard = clock::timeout(&SystemClock, PATIENCE, nodes.bell.wait_for(*second, called)).await;
        heard.unwrap_or_else(|| panic!("the burst of {second} does not come"));
        nodes.replace(draw % NODES);
        let due = waiting(&*store, *second, size.actions).await;
        println!("killed a node when {called} functions of a burst were called; {due} actions were due then");
    }
    for second in &seconds {
        let heard = clock::timeout(&SystemClock, PATIENCE, nodes.bell.wait_for(*second, size.actions)).await;
        heard.unwrap_or_else(|| panic!("the burst of {second} does not end"));
    }
    let engine = segno::Client::new(store.clone());
    clock::timeout(&SystemClock, PATIENCE, all_ended(&engine)).await.expect("the calls do not end");
    let decided = check_histories(&*store, &made, &seconds).await;
    for id in made.iter().take(LOOKED_AT) {
        check_answers(&nodes.client(), id, &seconds).await;
    }
    let calls = nodes.bell.calls();
    assert!(calls.keys().eq(decided.keys()), "what was called is not what was fired");
    let repeated = check_calls(&calls, &nodes.killed);
    report(size, &calls, &decided);
    println!(
        "{repeated} calls were under way when their node was killed, and were made again under the same key"
    );
}

/// A second that leaves time to store so many actions before.
fn first_second(actions: usize) -> i64 {
    let lead = Duration::from_secs(3) + Duration::from_millis(1) * u32::try_from(actions).unwrap();
    i64::try_from((SystemClock.now_ms() + clock::duration_ms(lead)) / 1_000).unwrap()
}

fn fields(size: Size, seconds: &[i64]) -> RecurringFields {
    let at = |second: i64| Some(Timestamp::from_second(second).unwrap());
    RecurringFields {
        every: Some(format!("{}s", size.every_s)),
        anchor: at(seconds[0]),
        starts_at: at(seconds[0]),
        ends_at: at(seconds[size.bursts - 1]),
        provider: Some("ring".to_owned()),
        action_type: Some("ring".to_owned()),
        payload: Some(Json::from_text("{}".to_owned()).unwrap()),
        missed: Some(MissedPolicy::All),
        catch_up_limit: Some(1_000),
        ..RecurringFields::default()
    }
}

/// Makes one action as everybody does, and stores copies of it under other ids: many requests would take longer than the
/// test. Returns the ids.
async fn create(nodes: &Nodes, store: &dyn Store, size: Size, seconds: &[i64]) -> BTreeSet<String> {
    let first = nodes.client().create_recurring(&fields(size, seconds)).await.unwrap().recurring_id;
    let request = ListRecords { kind: RECURRING, id_prefix: "", after_id: None, limit: 2 };
    let [stored]: [Record; 1] = store.list_records(request).await.unwrap().try_into().unwrap();
    let body = String::from_utf8(stored.body.to_vec()).unwrap();
    let ids = SystemIds::shared();
    let copies: BTreeSet<String> = (1..size.actions).map(|_| ids.new_uuid().to_string()).collect();
    let mut writes = copies.iter().map(|id| RecordWrite::Put {
        kind: RECURRING.to_owned(),
        id: stored.id.replace(&first, id),
        expect: Expect::Absent,
        due_at_ms: stored.due_at_ms,
        time_to_live: None,
        body: body.replace(&first, id).into(),
    });
    loop {
        let page: Vec<RecordWrite> = writes.by_ref().take(PAGE).collect();
        if page.is_empty() {
            break;
        }
        store.commit_records(RecordBatch { writes: page, ..RecordBatch::default() }).await.unwrap();
    }
    copies.iter().cloned().chain([first]).collect()
}

/// How many actions are due that were to fire in a second.
async fn waiting(store: &dyn Store, second: i64, actions: usize) -> usize {
    let (kind, now_ms) = (RECURRING, Some(u64::try_from(second).unwrap() * 1_000));
    let request = DueRecords { kind, id_prefix: "", now_ms, limit: actions, poll_timeout: Duration::ZERO };
    store.due_records(request).await.unwrap().len()
}

/// Waits until no call runs.
async fn all_ended(engine: &segno::Client) {
    loop {
        let mut running = 0;
        for status in [ExecutionStatus::Running, ExecutionStatus::Pending] {
            let query = InstanceQuery { statuses: [status].into(), limit: 1, ..InstanceQuery::default() };
            running += engine.list(query).await.unwrap().instances.len();
        }
        if running == 0 && engine.queue_depths().await.unwrap().orchestrator_queue == 0 {
            return;
        }
        clock::sleep(&SystemClock, Duration::from_millis(100)).await;
    }
}

/// The stored documents of a kind, by what stands behind the tenant in their ids.
async fn documents(store: &dyn Store, kind: &str) -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let request = ListRecords { kind, id_prefix: "", after_id: after.as_deref(), limit: PAGE };
        let page = store.list_records(request).await.unwrap();
        let Some(last) = page.last() else { return documents };
        after = Some(last.id.clone());
        for record in page {
            let id = record.id.strip_prefix("default/default/").unwrap().to_owned();
            let mut document: Value = serde_json::from_slice(&record.body).unwrap();
            documents.insert(id, document["value"].take());
        }
    }
}

/// Every action has one entry for each of its occurrences, in which it was fired and completed, and no other but that it is
/// over. Returns when each occurrence was fired.
async fn check_histories(
    store: &dyn Store,
    ids: &BTreeSet<String>,
    seconds: &[i64],
) -> BTreeMap<Occurrence, Timestamp> {
    let (mut fired, mut ended) = (BTreeMap::new(), BTreeSet::new());
    for (key, entry) in documents(store, HISTORY).await {
        let id = key.split('/').next().unwrap().to_owned();
        if entry["decision"] == "disabled" {
            assert!(ended.insert(id), "{entry}");
            continue;
        }
        assert_eq!(
            (&entry["decision"], &entry["outcome"]),
            (&"fired".into(), &"completed".into()),
            "{entry}"
        );
        let time = |name: &str| entry[name].as_str().unwrap().parse::<Timestamp>().unwrap();
        assert!(time("decided_at") >= time("time"), "{entry}");
        assert_eq!(fired.insert((time("time").as_second(), id), time("decided_at")), None, "{entry}");
    }
    let expected = seconds.iter().flat_map(|second| ids.iter().map(|id| (*second, id.clone())));
    assert!(fired.keys().cloned().eq(expected), "an occurrence is missing, or there is one too many");
    assert_eq!(&ended, ids);
    for (id, action) in documents(store, RECURRING).await {
        assert_eq!(
            (&action["execution_count"], &action["enabled"]),
            (&seconds.len().into(), &false.into()),
            "{id}"
        );
    }
    fired
}

/// The API says the same.
async fn check_answers(client: &Client, id: &str, seconds: &[i64]) {
    let history = client.recurring_history(id, 500, None).await.unwrap();
    let fired = history.entries.iter().filter(|entry| entry.decision == "fired");
    assert!(fired.map(|entry| entry.time.as_second()).rev().eq(seconds.iter().copied()), "{history:?}");
    let action = client.recurring(id).await.unwrap();
    assert_eq!((action.execution_count, action.enabled), (seconds.len() as u64, false));
}

/// No call is early, and none is made a second time unless the node of the first one was killed: then under the same key.
/// Returns how many were.
fn check_calls(calls: &BTreeMap<Occurrence, Vec<Call>>, killed: &BTreeSet<usize>) -> usize {
    let mut repeated = 0;
    for (occurrence, calls) in calls {
        let [earlier @ .., last] = &calls[..] else { panic!("{occurrence:?} has no call") };
        for call in earlier {
            assert!(killed.contains(&call.node), "{occurrence:?} was called twice: {calls:?}");
            assert_eq!(call.idempotency_key, last.idempotency_key, "{occurrence:?}");
        }
        let due_ms = u64::try_from(occurrence.0).unwrap() * 1_000;
        assert!(calls.iter().all(|call| call.at_ms >= due_ms), "{occurrence:?} is early: {calls:?}");
        repeated += earlier.len();
    }
    repeated
}

/// Says for each burst how late its occurrences were.
fn report(size: Size, calls: &BTreeMap<Occurrence, Vec<Call>>, decided: &BTreeMap<Occurrence, Timestamp>) {
    let mut bursts: BTreeMap<i64, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for (occurrence, calls) in calls {
        let due_ms = u64::try_from(occurrence.0).unwrap() * 1_000;
        let decided_ms = u64::try_from(decided[occurrence].as_millisecond()).unwrap();
        let (fired, called) = bursts.entry(occurrence.0).or_default();
        fired.push(decided_ms - due_ms);
        called.push(calls[0].at_ms - due_ms);
    }
    println!("{size:?}: {} occurrences, each fired once, none lost, none early", calls.len());
    println!("milliseconds after the second: fired p50, p99, last; function called p50, p99, last");
    for (fired, called) in bursts.values_mut() {
        println!("  {:?} {:?}", percentiles(fired), percentiles(called));
    }
}

fn percentiles(late_ms: &mut [u64]) -> [u64; 3] {
    late_ms.sort_unstable();
    [late_ms.len() / 2, late_ms.len() * 99 / 100, late_ms.len() - 1].map(|place| late_ms[place])
}
