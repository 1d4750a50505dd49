//! `segno store info`: what a store holds and what it takes on the disk.

use segno_stores::{Counts, Info, Known, StoreInfo, StoreUrl};

use crate::exit::Failure;
use crate::output::{Output, Table, count, size};

/// Does it.
pub async fn run(store: &StoreUrl, output: &Output) -> Result<(), Failure> {
    let info = store.source().await?.info(store.to_string()).await?;
    output.print(&info, table(&info, output))
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
