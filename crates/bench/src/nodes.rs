//! The nodes that a workload runs on, each with a store and a runtime of its own, and what they cost.

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use segno::store::Store;
use segno::{Client, Registry, Runtime, RuntimeOptions};
use segno_postgres::PostgresStore;
use segno_stores::StoreUrl;

use crate::usage::Usage;

/// How long a node may take to end after a workload.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(10);

/// Nodes that share a store.
pub struct Nodes {
    runtimes: Vec<Runtime>,
    /// Their connections to the database, if the store is one.
    databases: Vec<Arc<PostgresStore>>,
}

impl Nodes {
    /// Starts so many nodes, each with a slot for every client. More than one only on a store that nodes can share.
    pub async fn start(
        url: &StoreUrl,
        count: usize,
        clients: u32,
        registry: &Registry,
    ) -> anyhow::Result<Nodes> {
        let slots = RuntimeOptions::default().worker_concurrency.max(clients as usize);
        // A fetch takes no more activities than it may claim sessions.
        let options =
            RuntimeOptions { worker_concurrency: slots, max_sessions: slots, ..RuntimeOptions::default() };
        let mut nodes = Nodes { runtimes: Vec::new(), databases: Vec::new() };
        if count > 1 && !matches!(url, StoreUrl::Postgres(_)) {
            bail!("{url} cannot be shared by {count} nodes; use --nodes 1, or a store at postgres://…");
        }
        for _ in 0..count {
            let store: Arc<dyn Store> = match url {
                StoreUrl::Postgres(url) => {
                    let store = PostgresStore::open(url).await?;
                    nodes.databases.push(Arc::clone(&store));
                    store
                }
                StoreUrl::Memory | StoreUrl::Embedded(_) => url.open().await?,
            };
            let runtime = Runtime::builder(store).registry(registry.clone()).options(options.clone());
            nodes.runtimes.push(runtime.start().await?);
        }
        Ok(nodes)
    }

    /// A client of one of the nodes, each in its turn.
    pub fn client(&self, number: u32) -> Client {
        self.runtimes[number as usize % self.runtimes.len()].client().clone()
    }

    /// Begins to measure what is spent.
    pub fn meter(&self) -> anyhow::Result<Meter<'_>> {
        Ok(Meter { nodes: self, cpu_s: Usage::now()?.cpu_s, traffic: self.traffic() })
    }

    /// Ends the nodes.
    pub async fn shut_down(self) {
        for runtime in self.runtimes {
            runtime.shutdown(SHUTDOWN_DEADLINE).await;
        }
    }

    fn traffic(&self) -> Traffic {
        let one = |store: &Arc<PostgresStore>| {
            let statistics = store.statistics();
            Traffic {
                commits: statistics.commits,
                round_trips: statistics.exchanges + statistics.reads,
                bytes: statistics.bytes_out + statistics.bytes_in,
            }
        };
        self.databases.iter().map(one).fold(Traffic::default(), Traffic::add)
    }
}

/// What went between nodes and a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Transactions that changed something.
    pub commits: u64,
    /// Statements and their answers.
    pub round_trips: u64,
    /// Bodies of events, messages and activities, both ways.
    pub bytes: u64,
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            commits: self.commits + other.commits,
            round_trips: self.round_trips + other.round_trips,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Sub for Traffic {
    type Output = Traffic;

    fn sub(self, before: Traffic) -> Traffic {
        Traffic {
            commits: self.commits - before.commits,
            round_trips: self.round_trips - before.round_trips,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// What has been spent since a moment.
pub struct Meter<'a> {
    nodes: &'a Nodes,
    cpu_s: f64,
    traffic: Traffic,
}

/// What a workload has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Processor time of the whole process, clients included.
    pub cpu_s: f64,
    /// Traffic with a database, if the store is one.
    pub traffic: Option<Traffic>,
}

impl Meter<'_> {
    /// What has been spent so far.
    pub fn read(&self) -> anyhow::Result<Spent> {
        let traffic = (!self.nodes.databases.is_empty()).then(|| self.nodes.traffic() - self.traffic);
        Ok(Spent { cpu_s: Usage::now()?.cpu_s - self.cpu_s, traffic })
    }
}
