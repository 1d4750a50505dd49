//! The queries of a node: waits for those that are due, and runs a few at once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
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

/// Most of them that are of one tenant, so that slow queries of one leave places to others.
const MAX_RUNNING_OF_TENANT: usize = 2;

/// Due queries that are read at once: more than a tenant has overdue, so that those of others are among them.
const PAGE: usize = 1_000;

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
    running: Running,
}

/// How many queries run, by scope.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashMap<String, usize>>>);

impl Running {
    fn is_full(&self, scope: &str) -> bool {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(scope).is_some_and(|count| *count >= MAX_RUNNING_OF_TENANT)
    }

    fn begin(&self, scope: String) -> RunningQuery {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(scope.clone()).or_default() += 1;
        RunningQuery { running: self.clone(), scope }
    }
}

/// A query that is counted until it is dropped.
struct RunningQuery {
    running: Running,
    scope: String,
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        let mut running = self.running.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.scope) {
            *count -= 1;
        }
        running.retain(|_, count| *count > 0);
    }
}

/// What a look at the due queries came to.
enum Next {
    /// One was taken.
    Taken(Box<Claim>),
    /// None is due, or other nodes were first.
    Nothing,
    /// Those that are due are of tenants with as many as they may have.
    Full,
}

impl Querier {
    /// The queries of a node, whose name appears in leases.
    pub fn new(services: QueryServices, node: impl Into<String>) -> Self {
        Querier { services: Arc::new(services), node: node.into(), running: Running::default() }
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
                Ok(Next::Taken(claim)) => self.begin(*claim, place, running),
                Ok(Next::Nothing) => {}
                Ok(Next::Full) => clock::sleep(&*self.services.clock, PAUSE).await,
                Err(error) => {
                    tracing::warn!(%error, "queries of data sources cannot be run; trying again");
                    clock::sleep(&*self.services.clock, PAUSE).await;
                }
            }
        }
    }

    /// Waits for a query that is due, and takes the first that it can get.
    async fn next(&self) -> Result<Next, DriveError> {
        let (mut refused, mut nothing) = (None, Next::Nothing);
        for record in self.due().await? {
            // The name of a runbook has no slash.
            let scope = record.id.rsplit_once('/').map_or("", |(scope, _)| scope);
            if self.running.is_full(scope) {
                nothing = Next::Full;
                continue;
            }
            let holder = Holder { node: self.node.clone(), process: None, lease: self.services.lease };
            let store: Arc<dyn Store> = Arc::clone(&self.services.runbooks.store);
            match Claim::take(store, &record, holder).await {
                Ok(None) => {}
                Ok(Some(claim)) => return Ok(Next::Taken(Box::new(claim))),
                // One that cannot be read does not keep the others waiting.
                Err(error @ DriveError::Unreadable { .. }) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(nothing), Err)
    }

    async fn due(&self) -> Result<Vec<Record>, ProviderError> {
        let request =
            DueRecords { kind: QUERIES, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        self.services.runbooks.store.due_records(request).await
    }

    fn begin(&self, claim: Claim, place: OwnedSemaphorePermit, running: &mut JoinSet<()>) {
        let services = Arc::clone(&self.services);
        let counted = self.running.begin(claim.scope.id_prefix().trim_end_matches('/').to_owned());
        running.spawn(async move {
            let _counted = counted;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_share_until_its_queries_end() {
        let running = Running::default();
        let first = running.begin("eu/acme".to_owned());
        assert!(!running.is_full("eu/acme"));
        let second = running.begin("eu/acme".to_owned());
        assert!(running.is_full("eu/acme") && !running.is_full("eu/other"));
        drop(first);
        assert!(!running.is_full("eu/acme"));
        drop(second);
        assert!(running.0.lock().unwrap().is_empty());
    }
}
