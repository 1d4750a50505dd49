//! Three nodes on one PostgreSQL database, killed and started again while many recurring actions fire every second: each
//! occurrence is fired once, and none is lost.
//!
//! `SEGNO_RECURRING_ACTIONS=10000 SEGNO_RECURRING_SECONDS=60 scripts/with-postgres.sh cargo nextest run --release
//! -p segno-cli --test recurring_nodes --no-capture` is the long run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod process;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use process::Process;
use segno::clock::{self, SystemClock};
use segno::store::{ExecutionStatus, InstanceQuery};
use segno_api::recurring::{MissedPolicy, PauseRecurring, RecurringFields};
use segno_api::{Client, Json};
use segno_stores::StoreUrl;
use tempfile::TempDir;

/// Recurring actions of the normal run.
const ACTIONS: usize = 20;

/// How long they fire in the normal run.
const SECONDS: u64 = 12;

/// How long a node lives before it is killed.
const LIFE: Duration = Duration::from_secs(3);

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(240);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A function that every node has, and room for many recurring actions.
const SETTINGS: &str = "[auth]\nmode = \"none\"\n[actions]\nmax_recurring_per_tenant = 100000\n\
                        [functions.ring]\nexecutor = \"process\"\ncommand = [\"/bin/cat\"]\n";

fn start(settings: &Path, url: &str) -> Process {
    let settings = settings.to_str().unwrap();
    Process::start(&["serve", "--config", settings, "--listen", "127.0.0.1:0", "--store", url])
}

fn every_second() -> RecurringFields {
    RecurringFields {
        every: Some("1s".to_owned()),
        function: Some("ring".to_owned()),
        input: Some(Json::from_text("{}".to_owned()).unwrap()),
        missed: Some(MissedPolicy::All),
        catch_up_limit: Some(1_000),
        ..RecurringFields::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_occurrence_is_fired_once_however_nodes_are_killed() {
    let Ok(server) = std::env::var("SEGNO_TEST_POSTGRES") else {
        panic!("SEGNO_TEST_POSTGRES is not set; run this by scripts/with-postgres.sh")
    };
    let actions = usize::try_from(setting("SEGNO_RECURRING_ACTIONS", ACTIONS as u64)).unwrap();
    let seconds = setting("SEGNO_RECURRING_SECONDS", SECONDS);
    let separator = if server.contains('?') { '&' } else { '?' };
    let url = format!("{server}{separator}schema=rings_{:x}", segno::ids::SystemIds::shared().new_seed());
    let directory = TempDir::new().unwrap();
    let settings = directory.path().join("segno.toml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let mut nodes: Vec<Process> = (0..3).map(|_| start(&settings, &url)).collect();
    let client = Client::new(&nodes[0].address).unwrap();
    let mut ids = Vec::new();
    for _ in 0..actions {
        ids.push(client.create_recurring(&every_second()).await.unwrap().recurring_id);
    }
    let rounds = seconds.div_ceil(LIFE.as_secs());
    for round in 0..usize::try_from(rounds).unwrap() {
        clock::sleep(&SystemClock, LIFE).await;
        let victim = round % nodes.len();
        nodes[victim].kill();
        nodes[victim] = start(&settings, &url);
    }
    let client = Client::new(&nodes[0].address).unwrap();
    for id in &ids {
        // Pausing twice is pausing once, so a node that is too busy to answer in time is asked again.
        while let Err(error) = client.pause_recurring(id, &PauseRecurring::default()).await {
            assert_eq!(error.status(), None, "{error}");
        }
    }
    let store = url.parse::<StoreUrl>().unwrap().open().await.unwrap();
    let engine = segno::Client::new(store);
    clock::timeout(&SystemClock, PATIENCE, all_ended(&engine)).await.expect("the calls do not end");
    let mut fired = 0;
    for id in &ids {
        fired += check(&client, id).await;
    }
    println!("{actions} actions, {rounds} kills: {fired} occurrences fired, each once, none lost");
    assert!(fired > actions);
}

/// Waits until no call runs.
async fn all_ended(engine: &segno::Client) {
    loop {
        let mut running = 0;
        for status in [ExecutionStatus::Running, ExecutionStatus::Pending] {
            let query = InstanceQuery { status: Some(status), limit: 1, ..InstanceQuery::default() };
            running += engine.list(query).await.unwrap().instances.len();
        }
        if running == 0 && engine.queue_depths().await.unwrap().orchestrator_queue == 0 {
            return;
        }
        clock::sleep(&SystemClock, Duration::from_millis(100)).await;
    }
}

/// Every second from the first to the last is there, fired, completed, and counted once.
async fn check(client: &Client, id: &str) -> usize {
    let mut entries = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.recurring_history(id, 500, cursor.as_deref()).await.unwrap();
        entries.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let times: BTreeSet<i64> = entries.iter().map(|entry| entry.time.as_second()).collect();
    let (first, last) = (*times.first().unwrap(), *times.last().unwrap());
    assert_eq!(times.len(), usize::try_from(last - first + 1).unwrap(), "{id}: a second is missing");
    for entry in &entries {
        assert_eq!(
            (entry.decision.as_str(), entry.outcome.as_deref()),
            ("fired", Some("completed")),
            "{id}: {entry:?}"
        );
    }
    let action = client.recurring(id).await.unwrap();
    assert_eq!(action.execution_count, entries.len() as u64, "{id}: an occurrence was counted twice");
    entries.len()
}
