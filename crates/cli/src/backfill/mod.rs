//! `segno backfill …`: runs of a DAG over a range of partitions.

pub mod arguments;

use segno_api::Client;
use segno_api::backfill::{Backfill, BackfillChanged, CreateBackfill, CreatedBackfill};
use serde_json::json;

use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};
use crate::remote::start::pairs;
use crate::run::parameter;
use arguments::{BackfillArguments, BackfillVerb, Create};

/// Runs a verb.
pub async fn run(arguments: BackfillArguments, output: &Output) -> Result<(), Failure> {
    let client = &arguments.connection.client(output)?;
    match arguments.verb {
        BackfillVerb::Create(arguments) => create(client, arguments, output).await,
        BackfillVerb::List { paging } => list(client, &paging, output).await,
        BackfillVerb::Show { id, paging } => show(client, &id, &paging, output).await,
        BackfillVerb::Pause { id } => shown(&client.pause_backfill(&id).await?, "pause", output),
        BackfillVerb::Resume { id } => shown(&client.resume_backfill(&id).await?, "resume", output),
        BackfillVerb::Retry { id } => created(&client.retry_backfill(&id).await?, output),
        BackfillVerb::Cancel { id } => shown(&client.cancel_backfill(&id).await?, "cancel", output),
    }
}

async fn create(client: &Client, arguments: Create, output: &Output) -> Result<(), Failure> {
    let request = CreateBackfill {
        dag: arguments.dag,
        partitions: arguments.partitions,
        params: pairs("--param", &arguments.params)?.into_iter().map(parameter).collect(),
        chunk_size: arguments.chunk_size,
        max_concurrent_runs: arguments.max_concurrent_runs,
    };
    created(&client.create_backfill(&request).await?, output)
}

fn created(created: &CreatedBackfill, output: &Output) -> Result<(), Failure> {
    let table = Table::default()
        .line("backfill", &created.id)
        .line("partitions", created.total_partitions.to_string());
    output.print(created, table)
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.backfills(request).await?;
        Ok(Page::of(page.backfills, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["backfill", "dag", "partitions", "status", "chunks", "failed", "created"]);
    for backfill in &page.items {
        rows.add([
            backfill.id.clone(),
            backfill.dag.clone(),
            partitions(backfill),
            backfill.status.to_string(),
            format!("{}/{}", ended(backfill), chunks(backfill)),
            backfill.failed_chunks.to_string(),
            output.time(backfill.created_at),
        ]);
    }
    output.list(&page, &rows)
}

async fn show(client: &Client, id: &str, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let backfill = client.backfill(id).await?;
    let page = paging.gather(|request| async move {
        let page = client.backfill_chunks(id, request).await?;
        Ok(Page::of(page.chunks, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut table = Table::default()
        .line("backfill", &backfill.id)
        .line("dag", &backfill.dag)
        .line("status", backfill.status.to_string())
        .line("partitions", partitions(&backfill))
        .line("chunks", format!("{} of {} have ended", ended(&backfill), chunks(&backfill)));
    if backfill.failed_chunks > 0 {
        table = table.line("failed chunks", backfill.failed_chunks.to_string());
    }
    table = table
        .line("at a time", backfill.max_concurrent_runs.to_string())
        .line("created", output.time(backfill.created_at));
    if let Some(parent) = &backfill.parent_backfill {
        table = table.line("repeats", parent);
    }
    let mut rows = Rows::new(["chunk", "partitions", "status", "run"]);
    for chunk in &page.items {
        let partitions = match chunk.partitions.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            only => only.join(""),
        };
        rows.add([
            chunk.index.to_string(),
            partitions,
            chunk.status.to_string(),
            chunk.run.clone().unwrap_or_default(),
        ]);
    }
    let text = format!("{}\n{}", table.to_text(output.colours), rows.to_text(output.colours));
    output.text(&json!({ "backfill": backfill, "chunks": page.items }), &text)?;
    output.more(page.next_cursor.as_deref());
    Ok(())
}

fn shown(changed: &BackfillChanged, request: &str, output: &Output) -> Result<(), Failure> {
    let state = if changed.is_visible { "applied" } else { "stored; it will be applied" };
    let table = Table::default().line("backfill", &changed.id).line("request", request).line("state", state);
    output.print(changed, table)
}

/// How many partitions, and which.
fn partitions(backfill: &Backfill) -> String {
    match (&backfill.first_partition, &backfill.last_partition) {
        (Some(from), Some(to)) => format!("{}: {from} to {to}", backfill.total_partitions),
        _ => backfill.total_partitions.to_string(),
    }
}

/// Chunks in all.
fn chunks(backfill: &Backfill) -> u32 {
    backfill.total_partitions.div_ceil(backfill.chunk_size.max(1))
}

/// Chunks that have ended.
fn ended(backfill: &Backfill) -> u32 {
    backfill.completed_chunks.saturating_add(backfill.failed_chunks)
}
