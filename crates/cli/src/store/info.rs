//! `segno store info`: what a store holds and what it takes on the disk.

use std::collections::BTreeMap;

use jiff::Timestamp;
use segno_stores::{Counts, FileInfo, Info, Known, StoreInfo, StoreUrl};
use serde::Serialize;

use super::time_of_ms;
use crate::exit::Failure;
use crate::output::{Output, Table, count, size};

/// Does it.
pub async fn run(store: &StoreUrl, output: &Output) -> Result<(), Failure> {
    let info = store.source().await?.info(store.to_string()).await?;
    output.print(&Shown::of(&info), table(&info, output))
}

/// What there is to know of a store, as programs read it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    store: &'a str,
    /// Whether another process has it open.
    in_use: bool,
    /// That process.
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<u32>,
    #[serde(flatten)]
    embedded: Option<ShownFiles<'a>>,
    #[serde(flatten)]
    counts: Counts,
}

/// What an embedded store knows beyond counts.
#[derive(Debug, Serialize)]
struct ShownFiles<'a> {
    format_version: u32,
    files: &'a [FileInfo],
    rows: u64,
    row_bytes: u64,
    log_to_replay_bytes: u64,
    records: &'a BTreeMap<String, u64>,
    oldest_created_at: Option<Timestamp>,
    newest_created_at: Option<Timestamp>,
}

impl<'a> Shown<'a> {
    fn of(info: &'a StoreInfo) -> Self {
        let embedded = match &info.known {
            Known::Embedded(embedded) => Some(&**embedded),
            Known::Counts(_) => None,
        };
        Shown {
            store: &info.store,
            in_use: info.in_use,
            process_id: embedded.map(|embedded| embedded.process_id).filter(|_| info.in_use),
            embedded: embedded.map(|embedded| ShownFiles {
                format_version: embedded.format_version,
                files: &embedded.files,
                rows: embedded.rows,
                row_bytes: embedded.row_bytes,
                log_to_replay_bytes: embedded.log_to_replay_bytes,
                records: &embedded.records,
                oldest_created_at: embedded.oldest_created_at_ms.and_then(time_of_ms),
                newest_created_at: embedded.newest_created_at_ms.and_then(time_of_ms),
            }),
            counts: info.known.counts(),
        }
    }
}

fn table(store: &StoreInfo, output: &Output) -> Table {
    let table = Table::default().line("store", &store.store);
    match &store.known {
        Known::Counts(counts) => counted(table, counts),
        Known::Embedded(info) => {
            let open_in =
                if store.in_use { format!("process {}", info.process_id) } else { "nobody else".to_owned() };
            let table = table.line("format", info.format_version.to_string()).line("open in", open_in);
            files(counted(table, &store.known.counts()), info, output)
        }
    }
}

/// What every store can count.
fn counted(table: Table, counts: &Counts) -> Table {
    let Counts { instances, executions, events, queues } = counts;
    table
        .section("instances")
        .line("all", count(instances.total))
        .line("pending", count(instances.pending))
        .line("running", count(instances.running))
        .line("paused", count(instances.paused))
        .line("completed", count(instances.completed))
        .line("failed", count(instances.failed))
        .line("cancelled", count(instances.cancelled))
        .line("executions", count(*executions))
        .line("events", count(*events))
        .section("queues")
        .line("messages", count(queues.orchestrator))
        .line("activities", count(queues.worker))
        .line("delayed", count(queues.delayed))
        .line("locked", count(queues.locked))
}

/// What an embedded store knows beyond that.
fn files(mut table: Table, info: &Info, output: &Output) -> Table {
    if let (Some(oldest_ms), Some(newest_ms)) = (info.oldest_created_at_ms, info.newest_created_at_ms) {
        table = table
            .section("age")
            .line("oldest instance", output.time_of_ms(oldest_ms))
            .line("newest instance", output.time_of_ms(newest_ms));
    }
    table = table.section("records");
    for (kind, number) in &info.records {
        table = table.line(kind, count(*number));
    }
    table = table.section("disk");
    for file in &info.files {
        table = table.line(&file.name, size(file.bytes));
    }
    let state = info.files.iter().find(|file| file.name == "state.redb").map_or(0, |file| file.bytes);
    let all = info.files.iter().map(|file| file.bytes).sum();
    table
        .line("all files", size(all))
        .line("rows", format!("{} in {}", count(info.rows), size(info.row_bytes)))
        .line("not rows", format!("{} of state.redb", size(state.saturating_sub(info.row_bytes))))
        .line("log to replay", size(info.log_to_replay_bytes))
}
