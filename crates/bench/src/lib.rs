//! Workloads that measure Segno, the same on every store: `segno-bench run WORKLOAD --store URL`, or `segno bench run …`.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be said on the command line |
//! | `workload` | one file per workload, and the trait that they share |
//! | `closed_loop` | clients that start an instance, wait for its result, and start the next |
//! | `floor` | the physical limit of a disk: `segno-bench floor --store segno:DIR` |
//! | `http` | load on a server's API: `segno-bench http get --server URL` |
//! | `recurring` | recurring actions, many of them due at once: `segno-bench recurring --store URL` |
//! | `runbook` | a batch of many members: `segno-bench runbook --store URL` |
//! | `dag` | runs of a DAG: `segno-bench dag --store URL --ledger URL` |
//! | `remote` | calls of a function in another process: `segno-bench remote --mode pull --store URL` |
//! | `sql` | SQL over very many instances: `segno-bench sql fill --store URL`, `segno-bench sql query --server URL` |
//! | `nodes` | the nodes that a workload runs on, and what they cost |
//! | `usage` | processor time and memory of this process |
//! | `report` | what is printed, as a table or as JSON |
//!
//! Figures go to stdout, everything else to stderr.

mod arguments;
mod closed_loop;
mod dag;
mod floor;
mod http;
mod nodes;
mod recurring;
mod remote;
mod report;
mod runbook;
mod sql;
mod usage;
mod workload;

use std::time::Duration;

use segno::Registry;

use nodes::Nodes;
use report::Report;
use usage::Usage;
use workload::{Bench, Workload};

pub use arguments::{
    Arguments, Command, DagArguments, FloorArguments, HttpArguments, HttpLoad, RecurringArguments,
    RemoteArguments, RemoteMode, RemotePart, RunArguments, RunbookArguments, SqlArguments, SqlFillArguments,
    SqlQueryArguments, SqlVerb, WorkloadName,
};

/// Does what was asked for and prints what was measured.
///
/// # Errors
/// When the store or the server cannot be used.
pub async fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Run(arguments) => run_all(arguments).await,
        Command::Floor(arguments) => floor::run(arguments).await,
        Command::Http(arguments) => http::run(arguments).await,
        Command::Recurring(arguments) => recurring::run(arguments).await,
        Command::Runbook(arguments) => runbook::run(arguments).await,
        Command::Dag(arguments) => dag::run(arguments).await,
        Command::Sql(arguments) => sql::run(arguments).await,
        Command::Remote(arguments) => remote::run(arguments).await,
    }
}

async fn run_all(arguments: &RunArguments) -> anyhow::Result<()> {
    if !arguments.json {
        println!("{}", report::table_header());
    }
    for workload in arguments.workload.list() {
        let report = run_one(&*workload, arguments).await?;
        println!("{}", if arguments.json { report.to_json() } else { report.to_table_row() });
    }
    Ok(())
}

/// Runs one workload on nodes of its own.
async fn run_one(workload: &dyn Workload, arguments: &RunArguments) -> anyhow::Result<Report> {
    eprintln!("{}: {} ...", workload.name(), workload.about());
    let registry = workload.register(Registry::builder()).build()?;
    let bench = Bench {
        nodes: Nodes::start(&arguments.store, arguments.nodes.into(), arguments.concurrency, &registry)
            .await?,
        concurrency: arguments.concurrency,
        duration: Duration::from_secs(arguments.seconds),
        timers: arguments.timers,
        spread_ms: arguments.spread_ms,
    };
    let measured = workload.measure(&bench).await?;
    let rss_mb = Usage::now()?.rss_mb;
    bench.nodes.shut_down().await;
    Ok(Report::new(workload.name(), arguments.store.to_string(), measured, rss_mb))
}
