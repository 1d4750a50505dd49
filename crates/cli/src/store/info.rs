//! `segno store info`: what a store holds and what it takes on the disk.

use segno_stores::{StoreInfo, StoreUrl};

use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Table, count, print, size, time};

/// Does it.
pub async fn run(store: &StoreUrl, format: Format) -> Result<(), Failure> {
    let info = store.source().await?.info(store.to_string()).await?;
    print(format, &info, table(&info))
}

fn table(store: &StoreInfo) -> Table {
    let info = &store.info;
    let open_in =
        if store.in_use { format!("process {}", info.process_id) } else { "nobody else".to_owned() };
    let mut table = Table::default()
        .line("store", &store.store)
        .line("format", info.format_version.to_string())
        .line("open in", open_in)
        .section("instances")
        .line("all", count(info.instances.total))
        .line("pending", count(info.instances.pending))
        .line("running", count(info.instances.running))
        .line("paused", count(info.instances.paused))
        .line("completed", count(info.instances.completed))
        .line("failed", count(info.instances.failed))
        .line("cancelled", count(info.instances.cancelled))
        .line("executions", count(info.executions))
        .line("events", count(info.events));
    if let (Some(oldest_ms), Some(newest_ms)) = (info.oldest_created_at_ms, info.newest_created_at_ms) {
        table = table.line("oldest", time(oldest_ms)).line("newest", time(newest_ms));
    }
    table = table
        .section("queues")
        .line("messages", count(info.queues.orchestrator))
        .line("activities", count(info.queues.worker))
        .line("delayed", count(info.queues.delayed))
        .line("locked", count(info.queues.locked))
        .section("records");
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
