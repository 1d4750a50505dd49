//! The queries of a node: waits for those that are due, and runs a few at once, tenants in turn.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::claim::Claim;
use super::due::DueQueries;
use super::run::run;
use super::turns::{MAX_RUNNING, Turns, folder_of};
use crate::drive::error::DriveError;
use crate::drive::lease::Holder;
use crate::drive::runbooks::Runbooks;
use crate::source::Sources;

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
    /// How long the calls of functions that are data sources are kept; as long as other instances
    /// without it.
    pub keep_invocations: Option<Duration>,
}

/// Runs queries that are due, each on one node at a time.
pub struct Querier {
    services: Arc<QueryServices>,
    node: String,
    turns: Turns,
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
        Querier { services: Arc::new(services), node: node.into(), turns: Turns::default() }
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
        let mut due = DueQueries::new(self.services.runbooks.store.clone());
        loop {
            while running.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.next(&mut due).await {
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

    /// Waits for queries that are due, and takes the first that it can get, by whose turn it is.
    async fn next(&self, due: &mut DueQueries) -> Result<Next, DriveError> {
        let (mut refused, mut nothing) = (None, Next::Nothing);
        let mut due = due.next().await?;
        self.turns.sort(&mut due);
        for record in due {
            if !self.turns.admits(folder_of(&record)) {
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

    fn begin(&self, claim: Claim, place: OwnedSemaphorePermit, running: &mut JoinSet<()>) {
        let services = Arc::clone(&self.services);
        let counted = self.turns.begin(claim.scope.id_prefix());
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
            // The tenant first: the place is given to whose turn it is.
            drop(counted);
            drop(place);
        });
    }
}
