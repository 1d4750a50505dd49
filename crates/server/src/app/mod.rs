//! What routes are made of, and the ways from them to stored data.
//!
//! **Invariant.** A route reaches data through one of the extractors here and in no other way: the fields of [`Resources`] are
//! private to this module.
//!
//! | extractor | for routes that |
//! |---|---|
//! | [`Tenant`] | belong to a namespace and tenant; ids are those of the caller, in and out |
//! | [`System`] | concern all tenants: counts, queues |
//! | [`Keys`] | manage keys |
//! | [`Sessions`] | are about sessions of browsers: those of the caller's key, or all for an administrator |
//! | [`Granted`] | query instances of all tenants that the key may enter |
//! | [`AttemptCaller`] | workers with a task token post to, without a key |
//! | [`Ingress`] | senders of webhooks post to, without a key |

mod callbacks;
mod granted;
mod ingress;
mod keys;
mod recent;
mod sessions;
mod system;
mod tenant;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use segno::Client;
use segno::OrchestrationSchemas;
use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::Store;
use segno::work::WorkQueue;
use segno_actions::functions::Functions;
use segno_actions::hooks::Hooks;
use segno_actions::pools::Pools;
use segno_actions::recurring::RecurringActions;
use segno_api::problems::ProblemReport;
use segno_api::stats::Stats;
use segno_ledger::archive::ArchiveStore;
use segno_ledger::drive::{Ledger, LedgerTrouble, TaskTokens};
use segno_runbook::drive::{Previewer, Runbooks};
use segno_stores::StoreUrl;
use tokio_util::sync::CancellationToken;

use crate::access::{Caller, Credential, KeyStore, Need, SessionStore};
use crate::audit::AuditLog;
use crate::detached::Detached;
use crate::disk::Disk;
use crate::events::Hub;
use crate::idempotency::Idempotency;
use crate::nodes::Answering;
use crate::open_requests::OpenRequests;
use crate::problem::Refusal;
use crate::readiness::{LedgerHealth, Readiness};
use crate::routes::{HookRates, SignInRates};
use crate::scope::Scope;
use crate::settings::{Origin, Settings};
use crate::stats::Collector;
use crate::trace::CurrentTrace;
use crate::views::RunbookViews;
use crate::work::{Exchanges, LeaseSeal, Presence};

use recent::Recent;

pub use callbacks::AttemptCaller;
pub use granted::{Granted, GrantedFilter};
pub use ingress::{FoundRoute, Ingress};
pub use keys::Keys;
pub use sessions::{Door, Sessions};
pub use system::System;
pub use tenant::runbook_rows;
pub use tenant::{
    BackfillRequest, BulkChange, BulkTarget, CallFound, InstanceFilter, Located, NewInstance, OfStore,
    PoolCondition, PoolFetch, Refused, Requester, Restarting, SaveExpected, Sent, Start, StatsRange, Tenant,
    TenantChange, TenantListener, Waits, batch_status, run_state, run_status, task_state, task_status,
};

/// Time series are computed anew after so long.
const STATS_GOOD_FOR_MS: u64 = 2_000;

/// Problems are looked for anew after so long.
const PROBLEMS_GOOD_FOR_MS: u64 = 1_000;

/// Answers that are kept for a moment, of each sort.
const MAX_RECENT: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

/// What every route needs. Cheap to clone.
pub type App = Arc<AppState>;

/// The parts of a server.
pub struct AppState {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn IdSource>,
    /// The settings in force.
    pub settings: Settings,
    /// Every setting with its value and where it came from.
    pub setting_lines: Vec<(String, String, Origin)>,
    /// Name of this node.
    pub node: String,
    /// This node, as nodes are listed.
    pub answering: Arc<Answering>,
    /// Orchestrations that this node knows, with versions.
    pub orchestrations: Vec<(String, String)>,
    /// Schemas that these declare, by name.
    pub schemas: BTreeMap<String, OrchestrationSchemas>,
    /// How often each address may still try to sign in.
    pub sign_ins: SignInRates,
    /// How many requests each route of webhooks may still take.
    pub hook_rates: HookRates,
    /// Whether requests under any host name are taken without keys (`--insecure`).
    pub trusts_any_host: bool,
    /// Answers that are kept for repeated requests.
    pub idempotency: Idempotency,
    /// Requests that end without their callers.
    pub detached: Arc<Detached>,
    /// Who changed what.
    pub audit: AuditLog,
    /// Metrics in Prometheus' format, if they are collected.
    pub metrics: Option<PrometheusHandle>,
    /// Tells the trace context of the current span, if spans are exported.
    pub current_trace: Option<CurrentTrace>,
    /// Places for live streams.
    pub streams: Arc<OpenRequests>,
    /// Places for long polls.
    pub long_polls: Arc<OpenRequests>,
    /// Cancelled when the server stops: streams end and readiness is over.
    pub stopping: CancellationToken,
    /// Stored data of all tenants.
    pub resources: Resources,
}

/// Stored data of all tenants, and all that works on it.
pub struct Resources {
    store: Arc<dyn Store>,
    client: Client,
    functions: Functions,
    pools: Pools,
    hooks: Hooks,
    recurring: RecurringActions,
    runbooks: Runbooks,
    ledger: Option<Ledger>,
    archive: Option<ArchiveStore>,
    previewer: Previewer,
    views: Option<RunbookViews>,
    work: WorkQueue,
    seal: LeaseSeal,
    task_tokens: TaskTokens,
    presence: Arc<Presence>,
    exchanges: Arc<Exchanges>,
    hub: Arc<Hub>,
    keys: Option<KeyStore>,
    sessions: Option<SessionStore>,
    readiness: Readiness,
    ledger_health: LedgerHealth,
    sql: segno_ledger::sql::Engine,
    collector: Arc<Collector>,
    recent_stats: Recent<(String, StatsRange), Stats>,
    recent_problems: Recent<(String, OfStore), ProblemReport>,
}

/// What [`Resources`] are made of.
pub struct ResourceParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// A client on it.
    pub client: Client,
    /// Functions, configured and stored.
    pub functions: Functions,
    /// Pools of workers.
    pub pools: Pools,
    /// Webhooks.
    pub hooks: Hooks,
    /// Recurring actions.
    pub recurring: RecurringActions,
    /// Runbooks and their batches.
    pub runbooks: Runbooks,
    /// DAGs and their runs; `None` on a server without a place for them.
    pub ledger: Option<Ledger>,
    /// What retention has removed from the store; `None` on a server without an archive.
    pub archive: Option<ArchiveStore>,
    /// Previews of their queries.
    pub previewer: Previewer,
    /// Views of their tables, if there are to be any.
    pub views: Option<RunbookViews>,
    /// Work for workers elsewhere.
    pub work: WorkQueue,
    /// Leases as text.
    pub seal: LeaseSeal,
    /// Tokens of attempts of tasks.
    pub task_tokens: TaskTokens,
    /// Which workers there are.
    pub presence: Arc<Presence>,
    /// Answers of exchanges of workers.
    pub exchanges: Arc<Exchanges>,
    /// What happens to instances.
    pub hub: Arc<Hub>,
    /// API keys; `None` on a server without authentication.
    pub keys: Option<KeyStore>,
    /// Sessions of browsers; there are any only with keys.
    pub sessions: Option<SessionStore>,
    /// What runs queries.
    pub sql: segno_ledger::sql::Engine,
    /// What counts for time series.
    pub collector: Arc<Collector>,
}

impl From<ResourceParts> for Resources {
    fn from(parts: ResourceParts) -> Self {
        let ResourceParts {
            store,
            client,
            functions,
            pools,
            hooks,
            recurring,
            runbooks,
            ledger,
            archive,
            previewer,
            views,
            work,
            seal,
            task_tokens,
            presence,
            exchanges,
            hub,
            keys,
            sessions,
            sql,
            collector,
        } = parts;
        let readiness = Readiness::default();
        Resources {
            store,
            client,
            functions,
            pools,
            hooks,
            recurring,
            runbooks,
            ledger,
            archive,
            previewer,
            views,
            work,
            seal,
            task_tokens,
            presence,
            exchanges,
            hub,
            keys,
            sessions,
            readiness,
            ledger_health: LedgerHealth::default(),
            sql,
            collector,
            recent_stats: Recent::new(STATS_GOOD_FOR_MS, MAX_RECENT),
            recent_problems: Recent::new(PROBLEMS_GOOD_FOR_MS, MAX_RECENT),
        }
    }
}

impl Resources {
    /// Waits until a caller may no longer do what it needs, in a tenant if it is in one: its key has lost it, or its session
    /// has ended.
    async fn until_lost(&self, caller: &Caller, need: Need, scope: Option<&Scope>) -> Refusal {
        let (Some(keys), Some(sessions)) = (&self.keys, &self.sessions) else {
            return std::future::pending().await;
        };
        tokio::select! {
            biased;
            refusal = keys.until_lost(caller, need, scope) => refusal,
            refusal = sessions.until_ended(caller) => refusal,
        }
    }
}

impl AppState {
    /// Whether requests need a key.
    pub fn needs_keys(&self) -> bool {
        self.resources.keys.is_some()
    }

    /// The caller who holds a key, or the cookie of a session. On a server without keys that is any caller.
    ///
    /// # Errors
    /// `unauthorized` when it does not work, `rate-limited` when it is used too often.
    pub async fn caller_of(
        &self,
        credential: impl FnOnce() -> Result<Credential, Refusal>,
    ) -> Result<Caller, Refusal> {
        let (Some(keys), Some(sessions)) = (&self.resources.keys, &self.resources.sessions) else {
            return Ok(Caller::anonymous());
        };
        match credential()? {
            Credential::Key(key) => keys.verify(&key).await,
            Credential::Session(secret) => sessions.verify(&secret, keys).await,
        }
    }

    /// Revokes the key that the server made for its first administrator.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn revoke_first_key(&self, key: &str) -> Result<(), Refusal> {
        match (&self.resources.keys, key.split('_').nth(1)) {
            (Some(keys), Some(id)) => keys.revoke(id).await,
            _ => Ok(()),
        }
    }

    /// Waits for something that a caller wants, for as long as the caller may do what it needs. Without keys that is for ever.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden` when its key or session was lost first, `unavailable` when that cannot be verified.
    pub async fn while_allowed<T>(
        &self,
        caller: &Caller,
        need: Need,
        wanted: impl Future<Output = T>,
    ) -> Result<T, Refusal> {
        tokio::select! {
            biased;
            wanted = wanted => Ok(wanted),
            refusal = self.resources.until_lost(caller, need, None) => Err(refusal),
        }
    }

    /// What does not work although the server does: the archive of this node takes no writes, or the ledger cannot be used.
    pub async fn warnings(&self) -> Vec<String> {
        let trouble = self.resources.archive.as_ref().and_then(ArchiveStore::trouble);
        let warning =
            |trouble| format!("the archive cannot be written, so retention deletes nothing; {trouble}");
        let mut warnings: Vec<String> = trouble.map(warning).into_iter().collect();
        warnings.extend(self.ledger_troubles().await.iter().map(LedgerTrouble::summary));
        warnings
    }

    /// What is wrong with the ledger, as of a few seconds ago.
    pub async fn ledger_troubles(&self) -> Vec<LedgerTrouble> {
        match &self.resources.ledger {
            Some(ledger) => self.resources.ledger_health.check(ledger, &*self.clock).await,
            None => Vec::new(),
        }
    }

    /// The disk that the store is on; `None` when the store is not in files of this machine, or the disk does not answer.
    pub async fn disk(&self) -> Option<Disk> {
        match self.settings.store_url() {
            Ok(StoreUrl::Embedded(directory)) => Disk::under(&directory, &*self.clock).await,
            _ => None,
        }
    }

    /// Whether the store takes writes.
    ///
    /// # Errors
    /// `unavailable` when it does not.
    pub async fn check_ready(&self) -> Result<(), Refusal> {
        self.resources.readiness.check(&*self.resources.store, &*self.clock, &self.node).await
    }
}
