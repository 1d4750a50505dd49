//! One batch of many members through three phases of four steps: steps per second, memory, how late polls are, and how soon
//! a member that comes late begins.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use segno::clock::{self, Clock, SystemClock};
use segno::store::Store;
use segno::{ActivityContext, Client, Failure, Registry, Runtime};
use segno_actions::functions::{Functions, PoolName, Scope};
use segno_actions::pools::{AllowList, Pool, Pools, Room, RoomCalls, Transport};
use segno_actions::schedule::Zones;
use segno_runbook::drive::{
    self, Driver, DriverOptions, NewBatch, PublishOptions, Runbooks, Services, Silent,
};
use segno_runbook::message::MemberEntry;
use segno_runbook::rows::{BatchId, BatchRow, BatchStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::arguments::RunbookArguments;
use crate::report::percentile_ms;
use crate::usage::Usage;
use crate::workload::new_histogram;

/// Name of the runbook.
const RUNBOOK: &str = "bench";

/// Phases of the runbook.
const PHASES: u32 = 3;

/// Steps of each phase.
const STEPS: u32 = 4;

/// Key of the member that is added while the first steps of the others run.
const LATE_MEMBER: &str = "late";

/// How often it is looked whether the batch has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often memory is looked at, in looks.
const MEMORY_EVERY: u64 = 10;

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Measured {
    store: String,
    members: u32,
    create_s: f64,
    run_s: f64,
    steps_per_s: f64,
    cpu_us_per_step: f64,
    /// The most that was seen.
    rss_mb: f64,
    /// How late polls began; nothing was polled if there is none.
    lateness_p99_ms: Option<f64>,
    /// Time from adding a member, while steps of the others wait, to its first call.
    late_member_ms: Option<f64>,
    /// Steps that were not done once.
    errors: u64,
}

/// What the functions have seen.
struct Seen {
    steps: AtomicU64,
    repeated: AtomicU64,
    late_member_ms: AtomicU64,
    polls: Mutex<Polls>,
}

struct Polls {
    /// When the next poll of a step is due at the earliest.
    due_ms: HashMap<String, u64>,
    late_us: Histogram<u64>,
}

/// Measures and prints.
pub async fn run(arguments: &RunbookArguments) -> anyhow::Result<()> {
    let store = arguments.store.open().await?;
    let seen = Arc::new(Seen {
        steps: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
        late_member_ms: AtomicU64::new(0),
        polls: Mutex::new(Polls { due_ms: HashMap::new(), late_us: new_histogram() }),
    });
    let functions = functions(&store, &seen, arguments)?;
    let registry = functions.register(Registry::builder()).build()?;
    let runtime = Runtime::builder(store.clone()).registry(registry).start().await?;
    let runbooks = Runbooks::new(store.clone(), Arc::new(Zones::newest()));
    let driver = Driver::new(services(&store, &functions, &runbooks)?, "bench");
    let driving = tokio::spawn(driver.run(std::future::pending()));
    let measured = measure(&runbooks, &seen, arguments).await;
    driving.abort();
    runtime.shutdown(Duration::from_secs(5)).await;
    let measured = measured?;
    println!("{}", if arguments.json { serde_json::to_string(&measured)? } else { format!("{measured:#?}") });
    anyhow::ensure!(measured.errors == 0, "{} steps were not done once", measured.errors);
    Ok(())
}

async fn measure(runbooks: &Runbooks, seen: &Seen, arguments: &RunbookArguments) -> anyhow::Result<Measured> {
    let scope = Scope::default();
    runbooks.publish(&scope, yaml(arguments).as_bytes(), PublishOptions::default()).await?;
    let began_ms = SystemClock.now_ms();
    let members = (0..arguments.members).map(|number| member(&format!("member-{number:06}"))).collect();
    let start = jiff::Timestamp::from_millisecond(i64::try_from(began_ms)?)?;
    let new = NewBatch {
        runbook: RUNBOOK.to_owned(),
        batch_start_time: Some(start),
        members,
        ..NewBatch::default()
    };
    let batch = runbooks.create_batch(&scope, new).await?;
    let create_s = seconds_since(began_ms);
    let (before, run_ms) = (Usage::now()?, SystemClock.now_ms());
    let (row, rss_mb) = follow(runbooks, batch, seen, arguments).await?;
    let (run_s, cpu_s) = (seconds_since(run_ms), Usage::now()?.cpu_s - before.cpu_s);
    let steps = seen.steps.load(Ordering::Relaxed);
    let expected = u64::from(arguments.members + 1) * u64::from(PHASES * STEPS);
    anyhow::ensure!(
        row.status == BatchStatus::Completed,
        "the batch ended as {:?}: {:?}",
        row.status,
        row.error_message
    );
    let polls = seen.polls.lock().unwrap_or_else(PoisonError::into_inner);
    let late_member_ms = seen.late_member_ms.load(Ordering::Relaxed);
    Ok(Measured {
        store: arguments.store.to_string(),
        members: arguments.members,
        create_s,
        run_s,
        steps_per_s: steps as f64 / run_s,
        cpu_us_per_step: cpu_s * 1e6 / steps as f64,
        rss_mb,
        lateness_p99_ms: (!polls.late_us.is_empty()).then(|| percentile_ms(&polls.late_us, 99.0)),
        late_member_ms: (late_member_ms > 0).then_some(late_member_ms as f64),
        errors: expected.abs_diff(steps) + seen.repeated.load(Ordering::Relaxed),
    })
}

/// Waits for the end of the batch, and adds a member while the first steps of the others wait. Returns the batch and the most
/// memory that was seen.
async fn follow(
    runbooks: &Runbooks,
    batch: BatchId,
    seen: &Seen,
    arguments: &RunbookArguments,
) -> anyhow::Result<(BatchRow, f64)> {
    let scope = Scope::default();
    let give_up_ms = SystemClock.now_ms() + arguments.give_up * 1_000;
    let (mut rss_mb, mut has_late_member) = (0.0_f64, false);
    for look in 0.. {
        let steps = seen.steps.load(Ordering::Relaxed);
        if !has_late_member && steps > 0 {
            has_late_member = true;
            seen.late_member_ms.store(SystemClock.now_ms(), Ordering::Relaxed);
            runbooks.put_members(&scope, batch, vec![member(LATE_MEMBER)], (LATE_MEMBER, None)).await?;
        }
        if look % MEMORY_EVERY == 0 {
            rss_mb = rss_mb.max(Usage::now()?.rss_mb);
        }
        let row = runbooks.batch(&scope, batch).await.context("reading the batch")?;
        if row.status.is_terminal() {
            return Ok((row, rss_mb));
        }
        let waited = SystemClock.now_ms() < give_up_ms;
        anyhow::ensure!(
            waited,
            "{steps} steps were done within {} s; --give-up waits longer",
            arguments.give_up
        );
        clock::sleep(&SystemClock, LOOK_EVERY).await;
    }
    anyhow::bail!("the batch has not ended")
}

/// Two functions: one that is done at once, one that is polled.
fn functions(
    store: &Arc<dyn Store>,
    seen: &Arc<Seen>,
    arguments: &RunbookArguments,
) -> anyhow::Result<Functions> {
    let (polls, every_ms) = (arguments.polls, arguments.poll_every * 1_000);
    let (for_work, for_poll) = (Arc::clone(seen), Arc::clone(seen));
    let work = move |_: ActivityContext, input: Value| {
        for_work.done(&input);
        async { Ok::<Value, Failure>(json!({})) }
    };
    let poll = move |ctx: ActivityContext, input: Value| {
        let job = ctx.instance_id().rsplit(':').next().unwrap_or_default().to_owned();
        let answer = for_poll.polled(&job, &input, polls, every_ms);
        async move { Ok::<Value, Failure>(answer) }
    };
    Ok(drive::register(Functions::builder(store.clone())).rust("work", work).rust("poll", poll).build()?)
}

impl Seen {
    /// A step is done.
    fn done(&self, input: &Value) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.begun(input);
    }

    /// Turns the time at which the late member was added into how long it waited.
    fn begun(&self, input: &Value) {
        if input["Key"] == LATE_MEMBER {
            let _ = self.late_member_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |added_ms| {
                // A time since 1970, and no wait yet.
                (added_ms > 1_000_000_000_000).then(|| SystemClock.now_ms().saturating_sub(added_ms).max(1))
            });
        }
    }

    /// A call or a poll of a step that is complete after so many polls.
    fn polled(&self, job: &str, input: &Value, polls: u32, every_ms: u64) -> Value {
        let (step, number) = match job.split_once("-poll-") {
            Some((step, number)) => (step, number.parse().unwrap_or(0)),
            None => (job, 0_u32),
        };
        let now_ms = SystemClock.now_ms();
        let mut noted = self.polls.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.due_ms.remove(step) {
            Some(due_ms) => {
                noted.late_us.saturating_record(now_ms.saturating_sub(due_ms).max(1) * 1_000);
            }
            None if number > 0 => {
                self.repeated.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
        if number < polls {
            noted.due_ms.insert(step.to_owned(), now_ms + every_ms);
            self.begun(input);
            return json!({"complete": false});
        }
        drop(noted);
        self.done(input);
        json!({"complete": true})
    }
}

fn services(store: &Arc<dyn Store>, functions: &Functions, runbooks: &Runbooks) -> anyhow::Result<Services> {
    let pool = Pool { transport: Transport::Local, ..Pool::new(AllowList::new(["*"])?) };
    let pools = Pools::new(store.clone(), BTreeMap::from([(PoolName::new("here")?, pool)]))?;
    let client = Client::new(store.clone());
    Ok(Services {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        calls: RoomCalls::new(Room::RUNBOOK, functions, pools, client),
        definitions: runbooks.definitions().clone(),
        announcer: Arc::new(Silent),
        bus: None,
        options: DriverOptions::default(),
    })
}

/// The runbook. Its first step is polled if that was asked for.
fn yaml(arguments: &RunbookArguments) -> String {
    let mut text = format!("name: {RUNBOOK}\ndata_source: {{type: manual, primary_key: Key}}\nphases:\n");
    for phase in 0..PHASES {
        let _ = writeln!(text, "  - name: phase-{phase}\n    offset: T-0\n    steps:");
        for step in 0..STEPS {
            let polled = (phase, step) == (0, 0) && arguments.polls > 0;
            let function = if polled { "poll" } else { "work" };
            let _ = writeln!(
                text,
                "      - name: step-{step}\n        worker_id: here\n        function: {function}\n        params: {{Key: \"{{{{Key}}}}\"}}"
            );
            if polled {
                let every = arguments.poll_every;
                let timeout = every * u64::from(arguments.polls + 10);
                let _ = writeln!(text, "        poll: {{interval: {every}s, timeout: {timeout}s}}");
            }
        }
    }
    text
}

fn member(key: &str) -> MemberEntry {
    let data = Map::from_iter([("Key".to_owned(), json!(key))]);
    MemberEntry { key: key.to_owned(), data, digest: String::new() }
}

fn seconds_since(began_ms: u64) -> f64 {
    SystemClock.now_ms().saturating_sub(began_ms) as f64 / 1e3
}
