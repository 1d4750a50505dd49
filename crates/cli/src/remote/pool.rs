//! `segno pool …`: pools of workers.

use std::sync::{Mutex, PoisonError};

use segno_api::Client;
use segno_api::pool::{PausePool, Pool, PoolDetails, PoolOrigin, PoolTransport};

use super::arguments::{Pools, PoolsVerb};
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};

/// Does what was asked.
pub async fn run(arguments: Pools, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        PoolsVerb::List { paging } => list(&client, &paging, output).await,
        PoolsVerb::Show { name, paging } => show(&client, &name, &paging, output).await,
        PoolsVerb::Pause { name, reason } => {
            let pool = client.pause_pool(&name, &PausePool { reason }).await?;
            output.print(&pool, Table::default().line(&pool.name, state(&pool, output)))
        }
        PoolsVerb::Resume { name } => {
            let pool = client.resume_pool(&name).await?;
            output.print(&pool, Table::default().line(&pool.name, state(&pool, output)))
        }
        PoolsVerb::Delete { name } => {
            client.delete_pool(&name).await?;
            output.print(&serde_json::json!({ "deleted": name }), Table::default().line(&name, "deleted"))
        }
    }
}

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.pools(request).await?;
        Ok(Page::of(page.pools, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["pool", "transport", "declared", "workers", "in flight", "last seen", "state"]);
    for pool in &page.items {
        rows.add([
            pool.name.clone(),
            transport(pool).to_owned(),
            declared(pool).to_owned(),
            pool.worker_count.to_string(),
            pool.in_flight.to_string(),
            output.time_or_none(pool.last_seen_at),
            state(pool, output),
        ]);
    }
    output.list(&page, &rows)
}

async fn show(client: &Client, name: &str, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let shown = Mutex::new(None);
    let workers = paging.gather(|request| async {
        let page = client.pool(name, request).await?;
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(page.pool);
        Ok(Page::of(page.workers, page.unreadable, page.next_cursor))
    });
    let workers = workers.await?;
    let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    let pool = shown.expect("a list is gathered by one request at least");
    let Page { items, unreadable, next_cursor } = workers;
    let details = PoolDetails { pool, workers: items, unreadable, next_cursor };
    let pool = &details.pool;
    let mut table = Table::default()
        .line("pool", &pool.name)
        .line("state", state(pool, output))
        .line("transport", transport(pool))
        .line("declared", declared(pool))
        .line("functions", pool.functions.join(" "));
    if let Some(rate) = pool.calls_per_second {
        table = table.line("calls per second", rate.to_string());
    }
    if let Some(timeout) = &pool.timeout {
        table = table.line("timeout", timeout);
    }
    let mut rows = Rows::new(["worker", "in flight", "last seen", "node"]);
    for worker in &details.workers {
        rows.add([
            worker.worker.clone(),
            worker.in_flight.to_string(),
            output.time(worker.last_seen_at),
            worker.node.clone(),
        ]);
    }
    let mut text = table.to_text(output.colours);
    if !details.workers.is_empty() {
        text.push('\n');
        text.push_str(&rows.to_text(output.colours));
    }
    output.text(&details, &text)?;
    output.missing(&details.unreadable);
    output.more(details.next_cursor.as_deref());
    Ok(())
}

/// What it does, in a few words.
fn state(pool: &Pool, output: &Output) -> String {
    if let Some(reason) = &pool.unreadable {
        return format!("unknown: {reason}");
    }
    match (&pool.paused, pool.throttled_until) {
        (Some(pause), _) => {
            let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("paused since {}{reason}", output.time(pause.at))
        }
        (None, Some(until)) => format!("throttled until {}", output.time(until)),
        (None, None) if pool.transport == PoolTransport::Queue && pool.worker_count == 0 => {
            "no workers".to_owned()
        }
        (None, None) => "active".to_owned(),
    }
}

fn transport(pool: &Pool) -> &'static str {
    match pool.transport {
        PoolTransport::Queue => "queue",
        PoolTransport::Local => "local",
        PoolTransport::Bus => "bus",
    }
}

fn declared(pool: &Pool) -> &'static str {
    match pool.origin {
        PoolOrigin::Settings => "in the server",
        PoolOrigin::Announced => "by its workers",
    }
}
