//! Runs of a DAG whose functions do nothing: tasks per second, how soon a task starts after the one that it waits for, and how
//! soon its end is in the tables.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use segno::clock::{self, Clock, SystemClock};
use segno::ids::SystemIds;
use segno::store::Store;
use segno::{ActivityContext, Client, Failure, Registry, Runtime};
use segno_actions::functions::{Functions, Scope};
use segno_actions::pools::{Pools, Room, RoomCalls};
use segno_actions::schedule::Zones;
use segno_ledger::drive::{self, Driver, DriverOptions, Ledger, LedgerOptions, RunQuery, Services, StartRun};
use segno_ledger::objects::Stores;
use segno_ledger::snapshot::{Days, Filter};
use segno_ledger::tables::{RunRow, RunState, TaskState};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::arguments::DagArguments;
use crate::report::percentile_ms;
use crate::usage::Usage;
use crate::workload::new_histogram;

/// Name of the DAG.
const DAG: &str = "bench";

/// Runs that are started at the same time.
const STARTS_AT_ONCE: usize = 32;

/// Tasks a second while the runs are made that have ended before the measurement.
const FINISHED_RATE: u32 = 3_000;

/// How often it is looked whether the runs have ended.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often a sampled run is read to see which ends are visible.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Measured {
    store: String,
    ledger: String,
    runs: u32,
    tasks: u32,
    width: u32,
    finished: u32,
    run_s: f64,
    tasks_per_s: f64,
    cpu_us_per_task: f64,
    rss_mb: f64,
    /// From the end of the upstream function to the start of the downstream function.
    latency_p50_ms: f64,
    latency_p99_ms: f64,
    /// From the end of a function to the table that shows it, of sampled runs.
    visibility_p99_ms: Option<f64>,
    /// Tasks that were not done once, and runs that did not succeed.
    errors: u64,
}

/// What the functions have seen.
struct Seen {
    began: AtomicU64,
    repeated: AtomicU64,
    times: Mutex<Times>,
    visible_us: Mutex<Histogram<u64>>,
}

struct Times {
    /// When each function ended, by run and task.
    ended_us: HashMap<(String, u32), u64>,
    latency_us: Histogram<u64>,
}

/// Measures and prints.
pub async fn run(arguments: &DagArguments) -> anyhow::Result<()> {
    let store = arguments.store.open().await?;
    let objects = objects(arguments)?;
    let seen = Arc::new(Seen {
        began: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
        times: Mutex::new(Times { ended_us: HashMap::new(), latency_us: new_histogram() }),
        visible_us: Mutex::new(new_histogram()),
    });
    let functions = functions(&store, &seen, arguments)?;
    let registry = functions.register(Registry::builder()).build()?;
    let runtime = Runtime::builder(store.clone()).registry(registry).start().await?;
    let options = LedgerOptions {
        clock: SystemClock::shared(),
        ids: SystemIds::shared(),
        zones: Arc::new(Zones::newest()),
    };
    let ledger = Ledger::new(store.clone(), objects, options);
    let pools = Pools::new(store.clone(), Default::default())?;
    let services = Services {
        announcer: Arc::new(segno_ledger::drive::Silent),
        ledger: ledger.clone(),
        calls: RoomCalls::new(Room::LEDGER, &functions, pools, Client::new(store.clone())),
        options: DriverOptions::default(),
    };
    let driver = Driver::new(services, "bench");
    let driving = tokio::spawn(driver.run(std::future::pending()));
    let measured = measure(&ledger, &seen, arguments).await;
    driving.abort();
    runtime.shutdown(Duration::from_secs(5)).await;
    let measured = measured?;
    println!("{}", if arguments.json { serde_json::to_string(&measured)? } else { format!("{measured:#?}") });
    anyhow::ensure!(measured.errors == 0, "{} tasks or runs did not come to their end once", measured.errors);
    Ok(())
}

/// `memory:`, or a directory; each call takes longer if that is asked for.
fn objects(arguments: &DagArguments) -> anyhow::Result<Stores> {
    let url = arguments.ledger.as_str();
    let stores = if url == "memory:" {
        Stores::in_memory()
    } else {
        let path = url.strip_prefix("file:").unwrap_or(url);
        Stores::directory(std::path::Path::new(path)).context("opening the directory of the ledger")?
    };
    if arguments.object_delay == 0 {
        return Ok(stores);
    }
    // The store that delays cannot hand out the files of a directory.
    anyhow::ensure!(
        url == "memory:",
        "--object-delay stands for a distant store; use it with --ledger memory:"
    );
    let delay = Duration::from_millis(arguments.object_delay);
    let config = ThrottleConfig {
        wait_delete_per_call: delay,
        wait_get_per_call: delay,
        wait_list_per_call: delay,
        wait_list_with_delimiter_per_call: delay,
        wait_put_per_call: delay,
        ..ThrottleConfig::default()
    };
    Ok(Stores::shared(Arc::new(ThrottledStore::new(stores.state, config))))
}

async fn measure(ledger: &Ledger, seen: &Arc<Seen>, arguments: &DagArguments) -> anyhow::Result<Measured> {
    let scope = Scope::default();
    ledger.dags().publish(&scope, yaml(arguments).as_bytes(), None).await?;
    // The first run makes everything ready and is not measured.
    for runs in [1, arguments.finished] {
        start_all(ledger, &Load { runs, rate: FINISHED_RATE, tasks: arguments.tasks }).await?;
        follow(ledger, arguments).await?;
    }
    if arguments.finished > 0 {
        until_stored(ledger, arguments).await?;
    }
    seen.reset();
    let (before, began_ms) = (Usage::now()?, SystemClock.now_ms());
    let sampler = tokio::spawn(sample(ledger.clone(), Arc::clone(seen)));
    start_all(ledger, &Load::of(arguments)).await?;
    follow(ledger, arguments).await?;
    let run_s = SystemClock.now_ms().saturating_sub(began_ms) as f64 / 1e3;
    sampler.abort();
    let after = Usage::now()?;
    let failed = failed(ledger, began_ms).await?;
    let tasks = seen.began.load(Ordering::Relaxed);
    let expected = u64::from(arguments.runs) * u64::from(arguments.tasks);
    let times = seen.times.lock().unwrap_or_else(PoisonError::into_inner);
    let visible = seen.visible_us.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Measured {
        store: arguments.store.to_string(),
        ledger: arguments.ledger.clone(),
        runs: arguments.runs,
        tasks: arguments.tasks,
        width: arguments.width,
        finished: arguments.finished,
        run_s,
        tasks_per_s: expected as f64 / run_s,
        cpu_us_per_task: (after.cpu_s - before.cpu_s) * 1e6 / expected as f64,
        rss_mb: after.rss_mb,
        latency_p50_ms: percentile_ms(&times.latency_us, 50.0),
        latency_p99_ms: percentile_ms(&times.latency_us, 99.0),
        visibility_p99_ms: (!visible.is_empty()).then(|| percentile_ms(&visible, 99.0)),
        errors: expected.abs_diff(tasks) + seen.repeated.load(Ordering::Relaxed) + failed,
    })
}

/// Runs to start, and how fast.
struct Load {
    runs: u32,
    /// Tasks a second; all runs at once with 0.
    rate: u32,
    tasks: u32,
}

impl Load {
    fn of(arguments: &DagArguments) -> Self {
        Load { runs: arguments.runs, rate: arguments.rate, tasks: arguments.tasks }
    }
}

/// Starts all runs: at once, or so many tasks a second.
async fn start_all(ledger: &Ledger, load: &Load) -> anyhow::Result<()> {
    let scope = Scope::default();
    let began_ms = SystemClock.now_ms();
    let mut starts = JoinSet::new();
    for number in 0..load.runs {
        if load.rate > 0 {
            let due_ms = u64::from(number) * u64::from(load.tasks) * 1_000 / u64::from(load.rate);
            clock::sleep_until(&SystemClock, began_ms + due_ms).await;
        }
        while starts.len() >= STARTS_AT_ONCE {
            starts.join_next().await.transpose()?.transpose()?;
        }
        let (runs, scope) = (ledger.runs(), scope.clone());
        starts.spawn(async move { runs.start(&scope, StartRun::new(DAG)).await.map(drop) });
    }
    while let Some(started) = starts.join_next().await {
        started??;
    }
    Ok(())
}

/// Waits until every run has ended.
async fn follow(ledger: &Ledger, arguments: &DagArguments) -> anyhow::Result<()> {
    let give_up_ms = SystemClock.now_ms() + arguments.give_up * 1_000;
    let unfinished =
        RunQuery { limit: 1, states: vec![RunState::Triggered, RunState::Running], ..RunQuery::default() };
    while let Some(run) = ledger.runs().list(&Scope::default(), &unfinished).await?.runs.first() {
        anyhow::ensure!(
            SystemClock.now_ms() < give_up_ms,
            "run {} has not ended within {} s; --give-up waits longer",
            run.run_id,
            arguments.give_up
        );
        clock::sleep(&SystemClock, LOOK_EVERY).await;
    }
    Ok(())
}

/// Waits until the runs that have ended are in day partitions, as all but the newest ones are on a server.
async fn until_stored(ledger: &Ledger, arguments: &DagArguments) -> anyhow::Result<()> {
    let give_up_ms = SystemClock.now_ms() + arguments.give_up * 1_000;
    let active = Filter { days: Days::None, key: Vec::new() };
    loop {
        let snapshot = ledger.snapshot(&Scope::default()).await?.context("the ledger has no tables")?;
        if !snapshot.rows::<RunRow>(&active).await?.iter().any(|run| run.state.is_final()) {
            return Ok(());
        }
        anyhow::ensure!(
            SystemClock.now_ms() < give_up_ms,
            "finished runs are not in day partitions within {} s; --give-up waits longer",
            arguments.give_up
        );
        clock::sleep(&SystemClock, LOOK_EVERY).await;
    }
}

/// How many runs since that time did not succeed.
async fn failed(ledger: &Ledger, since_ms: u64) -> anyhow::Result<u64> {
    let mut query = RunQuery {
        limit: 1_000,
        states: vec![RunState::Failed, RunState::Cancelled],
        since_ms: Some(i64::try_from(since_ms)?),
        ..RunQuery::default()
    };
    let mut failed = 0;
    loop {
        let page = ledger.runs().list(&Scope::default(), &query).await?;
        failed += page.runs.len() as u64;
        query.after = page.next;
        if query.after.is_none() {
            return Ok(failed);
        }
    }
}

/// Reads runs one after another until each has ended, and notes when the ends of their tasks were first seen.
async fn sample(ledger: Ledger, seen: Arc<Seen>) {
    let scope = Scope::default();
    loop {
        clock::sleep(&SystemClock, SAMPLE_EVERY).await;
        let query = RunQuery {
            limit: 1,
            states: vec![RunState::Running, RunState::Triggered],
            ..RunQuery::default()
        };
        let Ok(page) = ledger.runs().list(&scope, &query).await else { continue };
        let Some(run) = page.runs.first() else { continue };
        let mut known = std::collections::HashSet::new();
        loop {
            let Ok(detail) = ledger.runs().show(&scope, &run.run_id).await else { break };
            let now_us = now_us();
            let done = detail.tasks.iter().filter(|task| task.state == TaskState::Succeeded);
            for task in done {
                let Some(number) = task.task_key.strip_prefix('t').and_then(|number| number.parse().ok())
                else {
                    continue;
                };
                if known.insert(number) {
                    let times = seen.times.lock().unwrap_or_else(PoisonError::into_inner);
                    let ended = times.ended_us.get(&(run.run_id.to_string(), number)).copied();
                    drop(times);
                    if let Some(ended_us) = ended {
                        let mut visible = seen.visible_us.lock().unwrap_or_else(PoisonError::into_inner);
                        visible.saturating_record(now_us.saturating_sub(ended_us).max(1));
                    }
                }
            }
            if detail.run.state.is_final() {
                break;
            }
            clock::sleep(&SystemClock, SAMPLE_EVERY).await;
        }
    }
}

/// One function, which does nothing.
fn functions(
    store: &Arc<dyn Store>,
    seen: &Arc<Seen>,
    arguments: &DagArguments,
) -> anyhow::Result<Functions> {
    let (seen, width) = (Arc::clone(seen), arguments.width);
    let work = move |ctx: ActivityContext, input: Value| {
        seen.done(ctx.instance_id(), &input, width);
        async { Ok::<Value, Failure>(json!({})) }
    };
    Ok(drive::register(Functions::builder(store.clone())).rust("work", work).build()?)
}

impl Seen {
    /// Forgets what the first run has measured.
    fn reset(&self) {
        self.began.store(0, Ordering::Relaxed);
        self.repeated.store(0, Ordering::Relaxed);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.ended_us.clear();
        times.latency_us.reset();
    }

    fn done(&self, instance: &str, input: &Value, width: u32) {
        let started_us = now_us();
        let run = instance.split(':').nth(2).unwrap_or_default().to_owned();
        let number = input["n"].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
        self.began.fetch_add(1, Ordering::Relaxed);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let upstream = number.checked_sub(width).map(|upstream| (run.clone(), upstream));
        if let Some(ended_us) = upstream.and_then(|key| times.ended_us.get(&key).copied()) {
            times.latency_us.saturating_record(started_us.saturating_sub(ended_us).max(1));
        }
        if times.ended_us.insert((run, number), now_us()).is_some() {
            self.repeated.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The DAG: as many chains as it is wide.
fn yaml(arguments: &DagArguments) -> String {
    let mut text = format!("name: {DAG}\ntasks:\n");
    for number in 0..arguments.tasks {
        let _ = write!(text, "  - {{key: t{number}, function: work, input: {{n: {number}}}");
        if let Some(upstream) = number.checked_sub(arguments.width) {
            let _ = write!(text, ", depends_on: [t{upstream}]");
        }
        text.push_str("}\n");
    }
    text
}

fn now_us() -> u64 {
    SystemClock.now_ms() * 1_000
}
