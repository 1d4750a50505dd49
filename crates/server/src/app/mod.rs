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
//! | [`Granted`] | query instances of all tenants that the key may enter |
//! | [`Ingress`] | senders of webhooks post to, without a key |

mod granted;
mod ingress;
mod keys;
mod system;
mod tenant;

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use segno::Client;
use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::Store;
use segno::work::WorkQueue;
use segno_actions::functions::Functions;
use segno_actions::hooks::Hooks;
use segno_actions::pools::Pools;
use segno_actions::recurring::RecurringActions;
use segno_ledger::drive::Ledger;
use segno_runbook::drive::{Previewer, Runbooks};
use tokio_util::sync::CancellationToken;

use crate::access::{Caller, KeyStore, Need};
use crate::audit::AuditLog;
use crate::detached::Detached;
use crate::events::Hub;
use crate::idempotency::Idempotency;
use crate::open_requests::OpenRequests;
use crate::problem::Refusal;
use crate::readiness::Readiness;
use crate::routes::HookRates;
use crate::settings::Settings;
use crate::trace::CurrentTrace;
use crate::views::RunbookViews;
use crate::work::{LeaseSeal, Presence};

pub use granted::{Granted, GrantedFilter};
pub use ingress::{FoundRoute, Ingress};
pub use keys::Keys;
pub use system::System;
pub use tenant::{
    BackfillRequest, BulkChange, CallFound, InstanceFilter, NewInstance, PoolCondition, PoolFetch, Refused,
    Requester, Restarting, Sent, Start, Tenant, TenantChange, TenantListener, batch_status, run_state,
    run_status, task_state, task_status,
};

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
    /// Name of this node.
    pub node: String,
    /// Orchestrations that this node knows, with versions.
    pub orchestrations: Vec<(String, String)>,
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
    previewer: Previewer,
    views: Option<RunbookViews>,
    work: WorkQueue,
    seal: LeaseSeal,
    presence: Arc<Presence>,
    hub: Arc<Hub>,
    keys: Option<KeyStore>,
    readiness: Readiness,
    sql: segno_ledger::sql::Engine,
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
    /// Previews of their queries.
    pub previewer: Previewer,
    /// Views of their tables, if there are to be any.
    pub views: Option<RunbookViews>,
    /// Work for workers elsewhere.
    pub work: WorkQueue,
    /// Leases as text.
    pub seal: LeaseSeal,
    /// Which workers there are.
    pub presence: Arc<Presence>,
    /// What happens to instances.
    pub hub: Arc<Hub>,
    /// API keys; `None` on a server without authentication.
    pub keys: Option<KeyStore>,
    /// What runs queries.
    pub sql: segno_ledger::sql::Engine,
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
            previewer,
            views,
            work,
            seal,
            presence,
            hub,
            keys,
            sql,
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
            previewer,
            views,
            work,
            seal,
            presence,
            hub,
            keys,
            readiness,
            sql,
        }
    }
}

impl AppState {
    /// Whether requests need a key.
    pub fn needs_keys(&self) -> bool {
        self.resources.keys.is_some()
    }

    /// The caller who holds a key. On a server without keys that is anybody.
    ///
    /// # Errors
    /// `unauthorized` when the key does not work, `rate-limited` when it is used too often.
    pub async fn caller_of(
        &self,
        token: impl FnOnce() -> Result<String, Refusal>,
    ) -> Result<Caller, Refusal> {
        match &self.resources.keys {
            None => Ok(Caller::anonymous()),
            Some(keys) => keys.verify(&token()?).await,
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

    /// Waits until a caller may no longer do what it needs, and returns the reason. Without keys that never happens.
    pub async fn until_lost(&self, caller: &Caller, need: Need) -> Refusal {
        match &self.resources.keys {
            None => std::future::pending().await,
            Some(keys) => keys.until_lost(caller, need, None).await,
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
