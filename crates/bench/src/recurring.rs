//! Very many recurring actions, of which many are due in the same second: how late are they, and what does a lookup cost?

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use jiff::Timestamp;
use segno::clock::{self, Clock, SystemClock};
use segno::ids::SystemIds;
use segno::store::{Expect, RecordBatch, RecordWrite, Store};
use segno::{ActivityContext, Failure, Registry, Runtime};
use segno_actions::functions::{Functions, HumanDuration, Scope};
use segno_actions::recurring::{
    NewRecurringAction, RECURRING_KIND, RecurringAction, RecurringActionTemplate, RecurringActions,
};
use segno_actions::schedule::{ScheduleSpec, Zones};
use segno_actions::scheduler::Scheduler;
use serde::Serialize;

use crate::arguments::RecurringArguments;
use crate::report::percentile_ms;
use crate::usage::Usage;
use crate::workload::new_histogram;

/// Definitions of one commit while the store is filled.
const BATCH: usize = 500;

/// Time between the end of the filling and the second in question.
const LEAD_MS: u64 = 4_000;

/// When to give up.
const GIVE_UP: Duration = Duration::from_secs(60);

/// How often the next due time is asked for.
const LOOKUPS: u32 = 200;

/// How long it is looked what an idle node costs.
const IDLE: Duration = Duration::from_secs(2);

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Measured {
    store: String,
    definitions: u32,
    due: u32,
    fill_s: f64,
    lookup_us: f64,
    idle_cpu_percent: f64,
    late_p50_ms: f64,
    late_p99_ms: f64,
    late_max_ms: f64,
    early: u64,
    started: u64,
    all_started_s: f64,
}

#[derive(Default)]
struct Seen {
    at_ms: Vec<u64>,
}

/// Measures and prints.
pub async fn run(arguments: &RecurringArguments) -> anyhow::Result<()> {
    let store = arguments.store.open().await?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let noted = seen.clone();
    let note = move |_: ActivityContext, (): ()| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).at_ms.push(SystemClock.now_ms());
        async { Ok::<(), Failure>(()) }
    };
    let functions = Functions::builder(store.clone()).rust("note", note).build()?;
    let sample = sample(&store, &functions).await?;
    let began_ms = SystemClock.now_ms();
    fill(&store, &sample, arguments.definitions, far_away()).await?;
    let fill_s = seconds_since(began_ms);
    let lookup_us = lookup(&store).await?;
    let registry = functions.register(Registry::builder()).build()?;
    let runtime = Runtime::builder(store.clone()).registry(registry).start().await?;
    let scheduler = Scheduler::builder(store.clone(), functions).build()?;
    let scheduling = tokio::spawn(scheduler.run(std::future::pending()));
    clock::sleep(&SystemClock, IDLE).await;
    let before = Usage::now()?;
    clock::sleep(&SystemClock, IDLE).await;
    let idle_cpu_percent = (Usage::now()?.cpu_s - before.cpu_s) / IDLE.as_secs_f64() * 100.0;
    let due_ms = (SystemClock.now_ms() + LEAD_MS) / 1_000 * 1_000;
    fill(&store, &sample, arguments.due, timestamp(due_ms)?).await?;
    let all = wait(&seen, arguments.due, due_ms).await;
    let (late_us, early, last_ms) = lateness(&seen, due_ms);
    scheduling.abort();
    runtime.shutdown(Duration::from_secs(5)).await;
    let measured = Measured {
        store: arguments.store.to_string(),
        definitions: arguments.definitions,
        due: arguments.due,
        fill_s,
        lookup_us,
        idle_cpu_percent,
        late_p50_ms: percentile_ms(&late_us, 50.0),
        late_p99_ms: percentile_ms(&late_us, 99.0),
        late_max_ms: percentile_ms(&late_us, 100.0),
        early,
        started: late_us.len() + early,
        all_started_s: last_ms.saturating_sub(due_ms) as f64 / 1e3,
    };
    println!("{}", if arguments.json { serde_json::to_string(&measured)? } else { format!("{measured:#?}") });
    anyhow::ensure!(all, "not all were started within {GIVE_UP:?}");
    Ok(())
}

/// A definition that is checked like any other, to make many of.
async fn sample(store: &Arc<dyn Store>, functions: &Functions) -> anyhow::Result<RecurringAction> {
    let template = RecurringActionTemplate {
        provider: "note".to_owned(),
        orchestration: None,
        action_type: String::new(),
        payload: segno::Payload::null(),
        metadata: BTreeMap::new(),
        dedup_key: None,
    };
    let hourly = ScheduleSpec::every(HumanDuration::from_secs(60 * 60));
    let book = RecurringActions::new(store.clone(), functions.clone(), Arc::new(Zones::newest()));
    let new = NewRecurringAction { enabled: false, ..NewRecurringAction::new(hourly, template) };
    Ok(book.create(&Scope::default(), new).await?)
}

/// Stores so many definitions that are due at a time.
async fn fill(
    store: &Arc<dyn Store>,
    sample: &RecurringAction,
    count: u32,
    due: Timestamp,
) -> anyhow::Result<()> {
    let ids = SystemIds::shared();
    let mut writes: Vec<RecordWrite> = Vec::with_capacity(BATCH);
    for number in 1..=count {
        let mut action = sample.clone();
        action.id = ids.new_uuid().to_string();
        action.enabled = true;
        action.paused_at = None;
        action.next_execution_at = Some(due);
        writes.push(action.write(Expect::Absent)?);
        if writes.len() == BATCH || number == count {
            let batch = RecordBatch { writes: std::mem::take(&mut writes), ..RecordBatch::default() };
            store.commit_records(batch).await?;
        }
    }
    Ok(())
}

/// Microseconds that the next due time takes to be found.
async fn lookup(store: &Arc<dyn Store>) -> anyhow::Result<f64> {
    let began_ns = SystemClock.monotonic_ns();
    for _ in 0..LOOKUPS {
        store.next_due_ms(RECURRING_KIND).await?;
    }
    Ok((SystemClock.monotonic_ns() - began_ns) as f64 / 1e3 / f64::from(LOOKUPS))
}

/// Waits until so many calls have begun; false if that takes too long.
async fn wait(seen: &Mutex<Seen>, count: u32, due_ms: u64) -> bool {
    let give_up_ms = due_ms + clock::duration_ms(GIVE_UP);
    while SystemClock.now_ms() < give_up_ms {
        if seen.lock().unwrap_or_else(PoisonError::into_inner).at_ms.len() >= count as usize {
            return true;
        }
        clock::sleep(&SystemClock, Duration::from_millis(10)).await;
    }
    false
}

fn lateness(seen: &Mutex<Seen>, due_ms: u64) -> (Histogram<u64>, u64, u64) {
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let mut late_us = new_histogram();
    let (on_time, early): (Vec<u64>, Vec<u64>) = seen.at_ms.iter().partition(|at_ms| **at_ms >= due_ms);
    on_time.iter().for_each(|at_ms| late_us.saturating_record((at_ms - due_ms).max(1) * 1_000));
    (late_us, early.len() as u64, seen.at_ms.iter().copied().max().unwrap_or(due_ms))
}

fn far_away() -> Timestamp {
    Timestamp::MAX
}

fn timestamp(ms: u64) -> anyhow::Result<Timestamp> {
    Ok(Timestamp::from_millisecond(i64::try_from(ms)?)?)
}

fn seconds_since(began_ms: u64) -> f64 {
    SystemClock.now_ms().saturating_sub(began_ms) as f64 / 1e3
}
