//! The queries of a node: waits for those that are due, and runs a few at once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::{DueRecords, ProviderError, Record, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::claim::Claim;
use super::run::run;
use crate::drive::error::DriveError;
use crate::drive::lease::Holder;
use crate::drive::place::QUERIES;
use crate::drive::runbooks::Runbooks;
use crate::source::Sources;

/// Most queries that a node runs at once: each may return 256 MiB.
const MAX_RUNNING: usize = 4;

/// Due queries that are read at once.
const PAGE: usize = 16;

/// Longest wait for a query that is due.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store refuses, or a record cannot be read.
const PAUSE: Duration = Duration::from_secs(1);

/// What the queries of a node need.
#[derive(Clone)]
pub struct QueryServices {
    /// Runbooks and batches.
    pub runbooks: Runbooks,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How sources are reached.
    pub sources: Sources,
    /// After how long the queries of a node that died are taken by others.
    pub lease: Duration,
}

/// Runs queries that are due, each on one node at a time.
pub struct Querier {
    services: Arc<QueryServices>,
    node: String,
}

impl Querier {
    /// The queries of a node, whose name appears in leases.
    pub fn new(services: QueryServices, node: impl Into<String>) -> Self {
        Querier { services: Arc::new(services), node: node.into() }
    }

    /// Runs queries until told to stop. Stopping at any moment is safe: a run that was cut off is
    /// made again once its lease has expired.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut running = JoinSet::new();
        tokio::select! {
            biased;
            () = stop => {}
            () = self.watch(&mut running) => {}
        }
        running.shutdown().await;
    }

    async fn watch(&self, running: &mut JoinSet<()>) {
        let places = Arc::new(Semaphore::new(MAX_RUNNING));
        loop {
            while running.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.next().await {
                Ok(Some(claim)) => self.begin(claim, place, running),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "queries of data sources cannot be run; trying again");
                    clock::sleep(&*self.services.clock, PAUSE).await;
                }
            }
        }
    }

    /// Waits for a query that is due, and takes the first that it can get.
    async fn next(&self) -> Result<Option<Claim>, DriveError> {
        let mut refused = None;
        for record in self.due().await? {
            let holder = Holder { node: self.node.clone(), process: None, lease: self.services.lease };
            let store: Arc<dyn Store> = Arc::clone(&self.services.runbooks.store);
            match Claim::take(store, &record, holder).await {
                Ok(None) => {}
                // One that cannot be read does not keep the others waiting.
                Err(error @ DriveError::Unreadable { .. }) => refused = Some(error),
                other => return other,
            }
        }
        refused.map_or(Ok(None), Err)
    }

    async fn due(&self) -> Result<Vec<Record>, ProviderError> {
        let request =
            DueRecords { kind: QUERIES, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        self.services.runbooks.store.due_records(request).await
    }

    fn begin(&self, claim: Claim, place: OwnedSemaphorePermit, running: &mut JoinSet<()>) {
        let services = Arc::clone(&self.services);
        running.spawn(async move {
            let (scope, runbook) = (claim.scope.id_prefix(), claim.row.name.clone());
            match run(&services, claim).await {
                Ok(()) => {}
                Err(DriveError::LeaseLost) => {
                    tracing::info!(%scope, %runbook, "another node has taken the query");
                }
                Err(error) => {
                    tracing::warn!(%scope, %runbook, %error, "a query was cut off; it is run again");
                }
            }
            drop(place);
        });
    }
}
