//! SQL over very many instances: a store that is filled with them, and queries at a server on that store.
//!
//! `segno-bench sql fill --store segno:DIR --instances 1000000`, then `segno serve` on that directory, then
//! `segno-bench sql query --server URL`.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use segno::clock::{Clock, SystemClock};
use segno::store::memory::MemoryStore;
use segno::store::{ContentHeader, ContentItem, ExecutionContent, InstanceContent, Transfer};
use segno::{Context, Failure, Orchestration, Registry, Runtime};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{SqlArguments, SqlFillArguments, SqlQueryArguments, SqlVerb};
use crate::http::Target;
use crate::report::percentile_ms;
use crate::usage::Usage;
use crate::workload::new_histogram;

/// The orchestration of all instances.
const ORDER: Orchestration<u32, String> = Orchestration::new("order");

/// Instances that go into the store at once.
const BATCH: u32 = 1_000;

/// One of so many instances has failed.
const FAILED_OF: u32 = 20;

/// Time between the creation of two instances, in milliseconds: a million are 11 days.
const SPACING_MS: u64 = 1_000;

/// Every instance took so long, in milliseconds, and some more.
const DURATION_MS: u64 = 40;

/// The queries and what they are called. `{id}` is the id of an instance.
const QUERIES: [(&str, &str); 5] = [
    ("point", "SELECT id, status, result FROM instances WHERE id = '{id}'"),
    ("newest", "SELECT id, status FROM instances ORDER BY created_at DESC LIMIT 100"),
    ("count", "SELECT count(*) FROM instances"),
    ("group_by", "SELECT status, count(*) FROM instances GROUP BY status"),
    (
        "group_by_two",
        "SELECT orchestration, failure_code, count(*), avg(duration_ms) FROM instances GROUP BY 1, 2",
    ),
];

/// What was filled.
#[derive(Debug, Serialize)]
struct Filled {
    store: String,
    instances: u32,
    fill_s: f64,
}

/// What a query took. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Measured {
    query: &'static str,
    rounds: u32,
    p50_ms: f64,
    max_ms: f64,
    read_rows: u64,
    /// Processor time of the server for each row that was read, in nanoseconds, if its process is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns_per_row: Option<f64>,
    /// The most memory of the server during the query beyond that before it, in MiB, as far as looks at both tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_mb: Option<f64>,
}

/// Fills or measures.
pub async fn run(arguments: &SqlArguments) -> anyhow::Result<()> {
    match &arguments.verb {
        SqlVerb::Fill(arguments) => fill(arguments).await,
        SqlVerb::Query(arguments) => query(arguments).await,
    }
}

async fn order(_: Context, number: u32) -> Result<String, Failure> {
    match number {
        0 => Ok("the order is paid, and its parcel is on its way".to_owned()),
        _ => Err(Failure::application("the card was declined").code("card-declined")),
    }
}

/// An instance that has ended, with its execution.
type Template = (InstanceContent, ExecutionContent);

/// One instance that completed and one that failed, as the engine stores them.
async fn templates() -> anyhow::Result<[Template; 2]> {
    let store = MemoryStore::new();
    let registry = Registry::builder().orchestration(ORDER, order).build()?;
    let runtime = Runtime::builder(Arc::clone(&store) as _).registry(registry).start().await?;
    let client = runtime.client();
    client.start(ORDER, 0).id("0").result().await?;
    ensure!(client.start(ORDER, 1).id("1").result().await.is_err(), "the failing order completed");
    runtime.shutdown(std::time::Duration::from_secs(5)).await;
    let (mut instances, mut executions) = (Vec::new(), Vec::new());
    let mut export = store.export().await?;
    loop {
        let items = export.next_items().await?;
        if items.is_empty() {
            break;
        }
        for item in items {
            match item {
                ContentItem::Instance(instance) => instances.push(*instance),
                ContentItem::Execution(execution) => executions.push(*execution),
                _ => {}
            }
        }
    }
    let pairs: Vec<Template> = instances.into_iter().zip(executions).collect();
    pairs.try_into().map_err(|_| anyhow::anyhow!("there are not two instances"))
}

async fn fill(arguments: &SqlFillArguments) -> anyhow::Result<()> {
    let [completed, failed] = templates().await?;
    let store = arguments.store.open().await?;
    let began_ms = SystemClock.now_ms();
    let mut import = store.import().await?;
    let header = ContentHeader {
        taken_at_ms: began_ms,
        last_message_id: 0,
        last_work_item_id: 0,
        last_record_version: 0,
    };
    import.put(vec![ContentItem::Header(header)]).await?;
    let mut items = Vec::with_capacity(2 * BATCH as usize);
    for number in 0..arguments.instances {
        let template = if number % FAILED_OF == 0 { &failed } else { &completed };
        let age_ms = u64::from(arguments.instances - number) * SPACING_MS;
        items.extend(instance(template, number, began_ms.saturating_sub(age_ms)));
        if items.len() >= 2 * BATCH as usize || number + 1 == arguments.instances {
            import.put(std::mem::take(&mut items)).await?;
        }
    }
    import.finish().await?;
    let (store, instances) = (arguments.store.to_string(), arguments.instances);
    let filled = Filled { store, instances, fill_s: (SystemClock.now_ms() - began_ms) as f64 / 1e3 };
    println!("{}", if arguments.json { serde_json::to_string(&filled)? } else { format!("{filled:#?}") });
    Ok(())
}

/// The id of an instance in its tenant.
fn id_of(number: u32) -> String {
    format!("order-{number:08}")
}

fn instance(template: &Template, number: u32, created_at_ms: u64) -> [ContentItem; 2] {
    let ended_at_ms = created_at_ms + DURATION_MS + u64::from(number % 17);
    let (instance, execution) = template;
    let instance = InstanceContent {
        instance_id: format!("default/default/{}", id_of(number)),
        created_at_ms,
        updated_at_ms: ended_at_ms,
        ..instance.clone()
    };
    let execution = ExecutionContent {
        started_at_ms: created_at_ms,
        completed_at_ms: Some(ended_at_ms),
        ..execution.clone()
    };
    [ContentItem::Instance(Box::new(instance)), ContentItem::Execution(Box::new(execution))]
}

async fn query(arguments: &SqlQueryArguments) -> anyhow::Result<()> {
    let target = Target::new(&arguments.server, arguments.key.clone())?;
    for (name, text) in QUERIES {
        let text = text.replace("{id}", &id_of(1));
        let body = serde_json::to_string(&serde_json::json!({ "query": text, "timeout_seconds": 30 }))?;
        let request = target.post("/v1/sql", &body);
        let mut latency_us = new_histogram();
        let before = arguments.pid.map(Usage::of).transpose()?;
        let (mut read_rows, mut most_mb) = (0, 0.0_f64);
        for _ in 0..arguments.rounds {
            let began_ns = SystemClock.monotonic_ns();
            let (status, answer) = target.connect().await?.exchange(&request).await?;
            latency_us.record((SystemClock.monotonic_ns() - began_ns) / 1_000)?;
            let answer: Value = serde_json::from_slice(&answer).context("the answer is not JSON")?;
            ensure!(status == 200, "{name}: the server answered with status {status}: {answer}");
            read_rows = answer["fetched"][0]["read_rows"].as_u64().unwrap_or(0);
            if let Some(pid) = arguments.pid {
                most_mb = most_mb.max(Usage::of(pid)?.rss_mb);
            }
        }
        let after = arguments.pid.map(Usage::of).transpose()?;
        let spent = before.zip(after);
        let rows = read_rows.max(1) as f64 * f64::from(arguments.rounds);
        let measured = Measured {
            query: name,
            rounds: arguments.rounds,
            p50_ms: percentile_ms(&latency_us, 50.0),
            max_ms: percentile_ms(&latency_us, 100.0),
            read_rows,
            cpu_ns_per_row: spent.map(|(before, after)| ((after.cpu_s - before.cpu_s) * 1e9 / rows).round()),
            extra_mb: spent.map(|(before, _)| (most_mb - before.rss_mb).max(0.0).round()),
        };
        println!(
            "{}",
            if arguments.json { serde_json::to_string(&measured)? } else { format!("{measured:?}") }
        );
    }
    Ok(())
}
