//! Calls of a function that runs in another process. The server (the program `segno`), the worker
//! and the clients are processes of their own, so that the processor time of each is known; the
//! same work in one process is measured right after it.
//!
//! | file | what |
//! |---|---|
//! | `child` | processes, and the lines that they print |
//! | `clients` | calls in a closed loop |
//! | `pulling` | a worker that fetches calls |
//! | `serving` | a worker that calls are sent to |

mod child;
mod clients;
mod pulling;
mod serving;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use segno::Registry;
use segno_stores::StoreUrl;
use serde::Serialize;

use crate::arguments::{RemoteArguments, RemoteMode, RemotePart};
use crate::nodes::Nodes;
use crate::usage::Usage;
use crate::workload::{Bench, Hello, Workload};

use child::Child;
use clients::Counted;

/// The function that is called. It does nothing.
const FUNCTION: &str = "bench";

/// What precedes the address of a process in its output.
const ADDRESS_MARK: &str = "http://127.0.0.1:";

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Measured {
    mode: &'static str,
    store: String,
    clients: u32,
    runs_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Processor time of the server for a call.
    server_cpu_us: f64,
    /// Processor time of the worker for a call.
    worker_cpu_us: f64,
    /// Processor time of the clients for a call.
    client_cpu_us: f64,
    /// Processor time of `hello` in one process, its clients included, measured right after.
    in_process_cpu_us: f64,
    /// Resident memory of the server at the end.
    server_rss_mb: f64,
    errors: u64,
}

/// Measures and prints, or is a part of a measurement.
pub async fn run(arguments: &RemoteArguments) -> anyhow::Result<()> {
    match (arguments.part, arguments.peer.as_deref()) {
        (Some(RemotePart::Clients), Some(server)) => clients::run(arguments, server).await,
        (Some(RemotePart::Worker), Some(server)) => match arguments.mode {
            RemoteMode::Pull => pulling::run(server, arguments.single).await,
            RemoteMode::Push | RemoteMode::Http => serving::run().await,
        },
        _ => measure_all(arguments).await,
    }
}

async fn measure_all(arguments: &RemoteArguments) -> anyhow::Result<()> {
    let measured = measure(arguments).await?;
    if arguments.json {
        println!("{}", serde_json::to_string(&measured)?);
        return Ok(());
    }
    let Measured { mode, clients, runs_per_s, p50_ms, p99_ms, errors, .. } = measured;
    println!(
        "{mode}: {clients} clients, {runs_per_s} calls/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, {errors} errors"
    );
    println!(
        "processor time of a call: server {} us, worker {} us, clients {} us; `hello` in one process {} us",
        measured.server_cpu_us, measured.worker_cpu_us, measured.client_cpu_us, measured.in_process_cpu_us
    );
    Ok(())
}

async fn measure(arguments: &RemoteArguments) -> anyhow::Result<Measured> {
    let (server, worker) = start(arguments)?;
    let address = server.address.as_deref().unwrap_or_default();
    let clients = Child::part(RemotePart::Clients, address)?;
    eprintln!("server {}, worker {}, clients {} ...", server.id(), worker.id(), clients.id());
    let usage = || -> anyhow::Result<[Usage; 3]> {
        Ok([Usage::of(server.id())?, Usage::of(worker.id())?, Usage::of(clients.id())?])
    };
    clients.wait_for(clients::BEGIN)?;
    let before = usage()?;
    clients.wait_for(clients::END)?;
    let after = usage()?;
    let counted: Counted = serde_json::from_str(&clients.next_line()?)?;
    drop((clients, worker));
    server.stop()?;
    ensure!(counted.runs > 0, "no call ended in time; {} failed", counted.errors);

    let cpu_us = |part: usize| (after[part].cpu_s - before[part].cpu_s) * 1e6 / counted.runs as f64;
    Ok(Measured {
        mode: arguments.mode.name(),
        store: arguments.store.to_string(),
        clients: arguments.clients,
        runs_per_s: (counted.runs as f64 / arguments.seconds as f64).round(),
        p50_ms: counted.p50_ms,
        p99_ms: counted.p99_ms,
        server_cpu_us: cpu_us(0).round(),
        worker_cpu_us: cpu_us(1).round(),
        client_cpu_us: cpu_us(2).round(),
        in_process_cpu_us: in_process_cpu_us(arguments).await?.round(),
        server_rss_mb: after[0].rss_mb.round(),
        errors: counted.errors,
    })
}

/// The server and the worker. A worker that fetches needs the address of the server, and a server
/// that sends needs that of the worker.
fn start(arguments: &RemoteArguments) -> anyhow::Result<(Child, Child)> {
    let function = |declaration: String| format!("functions.{FUNCTION}={declaration}");
    if arguments.mode == RemoteMode::Pull {
        let server = serve(arguments, &function(r#"{executor="remote"}"#.to_owned()))?;
        let worker = Child::part(RemotePart::Worker, server.address.as_deref().unwrap_or_default())?;
        return Ok((server, worker));
    }
    let mut worker = Child::part(RemotePart::Worker, "none")?;
    let url = worker.wait_for_address()?;
    let declaration = match arguments.mode {
        RemoteMode::Push => {
            format!(
                r#"{{executor="remote",push={{url="{url}",secret={{env="SEGNO_BENCH_SECRET"}},allow_private=true}}}}"#
            )
        }
        RemoteMode::Pull | RemoteMode::Http => {
            format!(r#"{{executor="http",url="{url}",allow_private=true}}"#)
        }
    };
    Ok((serve(arguments, &function(declaration))?, worker))
}

/// Starts a server that has the function.
fn serve(arguments: &RemoteArguments, function: &str) -> anyhow::Result<Child> {
    let beside = || -> anyhow::Result<PathBuf> { Ok(std::env::current_exe()?.with_file_name("segno")) };
    let program = arguments.program.clone().map_or_else(beside, Ok)?;
    let slots = format!("runtime.functions={}", arguments.clients.max(64));
    // Not on the command line, which every user of the machine can read: it may have a password in
    // it.
    let store = match &arguments.store {
        StoreUrl::Postgres(url) => url.clone(),
        other => other.to_string(),
    };
    let line =
        ["serve", "--listen", "127.0.0.1:0", "--set", "auth.mode=none", "--set", function, "--set", &slots];
    let mut server = Child::server(&program, &line, &store).with_context(|| {
        format!("{} cannot be started; name the server with --program", program.display())
    })?;
    server.wait_for_address()?;
    Ok(server)
}

/// Processor time of `hello` in this process, on the same store.
async fn in_process_cpu_us(arguments: &RemoteArguments) -> anyhow::Result<f64> {
    let registry = Hello.register(Registry::builder()).build()?;
    let bench = Bench {
        nodes: Nodes::start(&arguments.store, 1, arguments.clients, &registry).await?,
        concurrency: arguments.clients,
        duration: Duration::from_secs(arguments.seconds),
        timers: 0,
        spread_ms: 0,
    };
    let measured = Hello.measure(&bench).await?;
    bench.nodes.shut_down().await;
    ensure!(measured.runs > 0 && measured.errors == 0, "`hello` in one process failed");
    Ok(measured.spent.cpu_s * 1e6 / measured.runs as f64)
}
