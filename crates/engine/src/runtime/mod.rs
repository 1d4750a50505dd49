//! The runtime: dispatchers that fetch work from a store, run code, and commit what it decided.
//!
//! Every loop is fetch, decide, commit. The orchestrator's middle part is the `replay` module; the
//! worker's is user code.
//!
//! | file | concept |
//! |---|---|
//! | `dispatcher.rs` | the fetch loop |
//! | `orchestrator.rs`, `worker.rs`, `admission.rs` | its workloads: turns, activities |
//! | `turn.rs` | one turn, from its lock to its commit |
//! | `batch.rs` | the messages of a turn |
//! | `begin.rs` | a new execution |
//! | `steps.rs` | inline steps |
//! | `commit.rs`, `end.rs` | the commit of a turn; that of an end, with its epilogue |
//! | `codeless.rs` | turns that run no code |
//! | `early.rs`, `postponed.rs` | … before the start |
//! | `unrunnable.rs`, `unregistered.rs` | … whose code cannot be run |
//! | `after_end.rs` | … after the end |
//! | `attempt.rs` | one attempt of an activity |
//! | `join.rs` | the end of an activity, committed together with a turn |
//! | `leases.rs`, `sessions.rs` | renew locks |
//! | `resident.rs` | executions in memory |
//! | `retention.rs`, `archive.rs` | delete and archive expired data |
//! | `observer.rs` | reports commits |
//! | `options.rs`, `backoff.rs` | settings and delays |

mod admission;
mod after_end;
mod archive;
mod attempt;
mod backoff;
mod batch;
mod begin;
mod codeless;
mod commit;
mod dispatcher;
mod early;
mod end;
pub(crate) mod join;
mod leases;
mod observer;
mod options;
mod orchestrator;
mod postponed;
mod resident;
mod retention;
mod sessions;
mod steps;
mod turn;
mod unregistered;
mod unrunnable;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::clock::{self, Clock, SystemClock};
use crate::dead_letter::Letterbox;
use crate::error::Error;
use crate::ids::{IdSource, SystemIds};
use crate::names;
use crate::published::Publisher;
use crate::registry::Registry;
use crate::store::{ProviderError, Store};
use crate::telemetry;

pub(crate) use after_end::REPLACED;

pub use admission::{ActivityAdmission, ActivityPlace, AdmittedFetch};
pub use archive::{Archive, ArchiveBatch, ArchiveError, ArchivedHistory};
pub use join::TurnJoiner;
pub use observer::{ChangeKind, EndedExecution, InstanceChange, Observer};
pub use options::{OnNondeterminism, RuntimeOptions};
pub use retention::Retention;

/// After the deadline of a shutdown: time for the store to release the locks on unfinished work.
pub const RELEASE_TIME: Duration = Duration::from_secs(5);

/// How far a shutdown has come. Each stage includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// Nothing new is fetched.
    Draining,
    /// Running activities and steps are dropped and abandoned.
    Releasing,
}

/// What all parts of a runtime share.
struct Shared {
    store: Arc<dyn Store>,
    registry: Registry,
    options: RuntimeOptions,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    node_id: Arc<str>,
    client: Client,
    resident: Arc<resident::Resident>,
    leases: Arc<leases::Leases>,
    sessions: Arc<sessions::Sessions>,
    unregistered: unregistered::Unregistered,
    begun: retention::Begun,
    observer: Option<Arc<dyn Observer>>,
    stage: watch::Receiver<Stage>,
}

/// A running node. Dropping it stops all work at once, as a crash would; [`Runtime::shutdown`] ends
/// in order.
pub struct Runtime {
    client: Client,
    clock: Arc<dyn Clock>,
    node_id: Arc<str>,
    joiner: TurnJoiner,
    stage: watch::Sender<Stage>,
    dispatchers: Vec<JoinHandle<()>>,
    helpers: Vec<JoinHandle<()>>,
}

impl Runtime {
    /// Prepares a runtime on a store.
    pub fn builder(store: Arc<dyn Store>) -> RuntimeBuilder {
        RuntimeBuilder {
            store,
            registry: Registry::default(),
            options: RuntimeOptions::default(),
            clock: SystemClock::shared(),
            ids: SystemIds::shared(),
            observer: None,
            admission: None,
            archive: None,
        }
    }

    /// A client on the same store.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Name of this node.
    pub fn node_id(&self) -> &str {
        &self.node_id
    }

    /// Lets turns of this node join activities that workers outside of it have run.
    pub fn joiner(&self) -> TurnJoiner {
        self.joiner.clone()
    }

    /// Shuts down in order: fetches nothing more, lets turns and activities end, and after
    /// `deadline` drops the activities and steps that still run and abandons their locks, so that
    /// another node takes them at once. If the store does not answer within [`RELEASE_TIME`], they
    /// stay locked until their locks expire.
    pub async fn shutdown(mut self, deadline: Duration) {
        self.stage.send_replace(Stage::Draining);
        // Borrowed: if this future is dropped, the work stops together with the renewal of its
        // locks.
        let mut ended = Box::pin(futures_util::future::join_all(&mut self.dispatchers));
        if clock::timeout(&*self.clock, deadline, &mut ended).await.is_none() {
            self.stage.send_replace(Stage::Releasing);
            if clock::timeout(&*self.clock, RELEASE_TIME, &mut ended).await.is_none() {
                tracing::warn!(
                    node = %self.node_id,
                    "the store did not take back all work within {} s; the rest is dropped, and other nodes take it when \
                     its locks expire",
                    RELEASE_TIME.as_secs()
                );
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for task in self.dispatchers.iter().chain(&self.helpers) {
            task.abort();
        }
    }
}

/// Settings and parts of a runtime.
pub struct RuntimeBuilder {
    store: Arc<dyn Store>,
    registry: Registry,
    options: RuntimeOptions,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    observer: Option<Arc<dyn Observer>>,
    admission: Option<Arc<dyn ActivityAdmission>>,
    archive: Option<Arc<dyn Archive>>,
}

impl RuntimeBuilder {
    /// The code to run.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Settings.
    #[must_use]
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Another source of ids, for tests.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Reports what the turns of this node have changed.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Also runs activities that an admission control lets through.
    #[must_use]
    pub fn admission(mut self, admission: Arc<dyn ActivityAdmission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Keeps copies of what retention removes: nothing is removed before its copy is stored.
    #[must_use]
    pub fn archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.archive = Some(archive);
        self
    }

    /// Starts the dispatchers on the current tokio runtime.
    ///
    /// # Errors
    /// `invalid-option` when a setting is out of range.
    pub async fn start(self) -> Result<Runtime, Error> {
        self.options.check()?;
        let node_id = match &self.options.node_id {
            Some(node_id) => {
                names::check_name("node id", node_id)?;
                node_id.clone()
            }
            None => format!("node-{}", self.ids.new_uuid()),
        };
        let node_id: Arc<str> = node_id.into();
        let client = Client::builder(self.store.clone()).ids(self.ids.clone()).build();
        let (stage, stage_receiver) = watch::channel(Stage::Running);
        let leases = leases::Leases::new(self.store.clone(), self.clock.clone(), &self.options);
        let sessions =
            sessions::Sessions::new(self.store.clone(), self.clock.clone(), node_id.clone(), &self.options);
        let (begun, sweepers) =
            retention::start(&self.store, &self.clock, &node_id, &self.options.retention, self.archive);
        let shared = Arc::new(Shared {
            begun,
            observer: self.observer,
            resident: Arc::new(resident::Resident::new(self.options.resident_executions)),
            unregistered: unregistered::Unregistered::new(self.options.unregistered_timeout),
            store: self.store,
            registry: self.registry,
            options: self.options,
            clock: self.clock.clone(),
            ids: self.ids,
            node_id: node_id.clone(),
            client: client.clone(),
            leases: leases.clone(),
            sessions: sessions.clone(),
            stage: stage_receiver,
        });
        let mut helpers = vec![tokio::spawn(leases.run()), tokio::spawn(sessions.run())];
        helpers.extend(sweepers);
        if let Some(every) =
            shared.options.publish_names_every.filter(|_| shared.options.orchestration_concurrency > 0)
        {
            let (store, clock) = (shared.store.clone(), shared.clock.clone());
            helpers.push(tokio::spawn(Publisher::new(store, clock, &shared.registry, every).run()));
        }
        let mut dispatchers = Vec::new();
        if shared.options.orchestration_concurrency > 0 {
            dispatchers.push(dispatch(&shared, orchestrator::Turns::new(shared.clone())));
        }
        if shared.options.worker_concurrency > 0 {
            dispatchers.push(dispatch(&shared, worker::Activities::new(shared.clone())));
        }
        if let Some(admission) = self.admission {
            let admitted = worker::AdmittedActivities::new(shared.clone(), admission);
            dispatchers.push(dispatch(&shared, admitted));
        }
        tracing::info!(node = %node_id, store = shared.store.name(), "runtime started");
        let joiner = TurnJoiner::new(&shared);
        Ok(Runtime { client, clock: self.clock, node_id, joiner, stage, dispatchers, helpers })
    }
}

fn dispatch(shared: &Arc<Shared>, workload: impl dispatcher::Workload) -> JoinHandle<()> {
    tokio::spawn(dispatcher::run(shared.clone(), workload))
}

impl Shared {
    /// Makes the dead letters of this node.
    fn letters(&self) -> Letterbox<'_> {
        Letterbox { ids: &*self.ids, prefix: self.options.dead_letter_prefix }
    }

    /// Repeats a call to the store until the outcome is known, or the node shuts down. The call
    /// gets the number of earlier tries; `what` is the log message of a failure.
    async fn insist<F>(&self, what: &str, mut call: impl FnMut(u32) -> F) -> Result<(), ProviderError>
    where
        F: Future<Output = Result<(), ProviderError>>,
    {
        let mut tries = 0;
        loop {
            match call(tries).await {
                // Boxed, because it is rare, and every turn would need room for it.
                Err(error) if error.is_retryable() => Box::pin(self.pause(what, tries, error)).await?,
                answer => return answer,
            }
            tries += 1;
        }
    }

    /// Waits before the next try. Returns the error when the node shuts down.
    async fn pause(&self, what: &str, tries: u32, error: ProviderError) -> Result<(), ProviderError> {
        metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
        if tries == 0 {
            tracing::warn!(%error, "{what}; trying again while the lock holds");
        }
        tokio::select! {
            biased;
            () = self.reached(Stage::Releasing) => Err(error),
            () = clock::sleep(&*self.clock, backoff::store_retry(tries)) => Ok(()),
        }
    }

    /// Whether the shutdown has come to this stage.
    fn is_at(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Resolves when the shutdown has come to this stage.
    async fn reached(&self, stage: Stage) {
        let mut receiver = self.stage.clone();
        if receiver.wait_for(|now| *now >= stage).await.is_err() {
            // The runtime was dropped: its tasks are being aborted.
            std::future::pending::<()>().await;
        }
    }
}

/// The memory that the future of a function takes.
#[cfg(test)]
fn future_bytes<A, B, Fut>(_: impl FnOnce(A, B) -> Fut) -> usize {
    size_of::<Fut>()
}
