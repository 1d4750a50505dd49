//! A worker that fetches calls and answers them: all that a request of its has to do at once, or
//! each by a request of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::ensure;
use segno::clock::{Clock, SystemClock};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::FUNCTION;
use crate::http::{Connection, Target};

/// Name of the worker.
const WORKER: &str = "bench";

/// Most calls of one request.
const AT_ONCE: usize = 100;

/// Connections that exchange answers for calls.
const EXCHANGING: usize = 4;

/// Connections that fetch, and connections that answer, when each call is answered by a request of
/// its own.
const FETCHING: usize = 2;
const ANSWERING: usize = 32;

/// What the worker reads of an answer.
#[derive(Deserialize)]
struct Leased {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    lease: String,
}

/// Works until it is ended.
pub async fn run(server: &str, single: bool) -> anyhow::Result<()> {
    let target = Target::new(server, None)?;
    let mut connections = JoinSet::new();
    if single {
        let (found, leases) = mpsc::channel(AT_ONCE);
        let leases = Arc::new(Mutex::new(leases));
        for _ in 0..FETCHING {
            connections.spawn(fetch(target.clone(), target.connect().await?, found.clone()));
        }
        for _ in 0..ANSWERING {
            connections.spawn(answer(target.clone(), target.connect().await?, leases.clone()));
        }
    } else {
        // Numbers that no earlier process of this name has used.
        let numbers = Arc::new(AtomicU64::new(SystemClock.now_ms()));
        for _ in 0..EXCHANGING {
            connections.spawn(exchange(target.clone(), target.connect().await?, numbers.clone()));
        }
    }
    while let Some(ended) = connections.join_next().await {
        ended??;
    }
    Ok(())
}

async fn exchange(target: Target, mut connection: Connection, numbers: Arc<AtomicU64>) -> anyhow::Result<()> {
    let mut leases: Vec<String> = Vec::new();
    loop {
        let complete = |lease: &String| json!({ "complete": { "lease": lease, "result": 7 } });
        let answers: Vec<_> = leases.iter().map(complete).collect();
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let body = json!({
            "worker": WORKER, "number": number, "answers": answers,
            "functions": [FUNCTION], "max_items": AT_ONCE, "wait_ms": 30_000,
        });
        leases = post(&target, &mut connection, "exchange", &body.to_string()).await?;
    }
}

async fn fetch(
    target: Target,
    mut connection: Connection,
    found: mpsc::Sender<String>,
) -> anyhow::Result<()> {
    let body = json!({ "worker": WORKER, "functions": [FUNCTION], "max_items": AT_ONCE, "wait_ms": 30_000 });
    let body = body.to_string();
    loop {
        for lease in post(&target, &mut connection, "fetch", &body).await? {
            found.send(lease).await?;
        }
    }
}

async fn answer(
    target: Target,
    mut connection: Connection,
    leases: Arc<Mutex<mpsc::Receiver<String>>>,
) -> anyhow::Result<()> {
    loop {
        let Some(lease) = leases.lock().await.recv().await else { return Ok(()) };
        let body = json!({ "lease": lease, "result": 7 }).to_string();
        let (status, answer) = connection.exchange(&target.post("/v1/work/complete", &body)).await?;
        ensure!(status == 204, "complete: {status} {}", String::from_utf8_lossy(&answer));
    }
}

/// Sends a request that may lease calls; the leases.
async fn post(
    target: &Target,
    connection: &mut Connection,
    verb: &str,
    body: &str,
) -> anyhow::Result<Vec<String>> {
    let (status, answer) = connection.exchange(&target.post(&format!("/v1/work/{verb}"), body)).await?;
    ensure!(status == 200, "{verb}: {status} {}", String::from_utf8_lossy(&answer));
    let leased: Leased = serde_json::from_slice(&answer)?;
    Ok(leased.items.into_iter().map(|item| item.lease).collect())
}
