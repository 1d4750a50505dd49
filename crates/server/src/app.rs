//! What every route needs.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use segno::Client;
use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::Store;
use segno::work::WorkQueue;
use segno_actions::functions::Functions;
use segno_actions::hooks::Hooks;
use segno_actions::recurring::RecurringActions;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::KeyStore;
use crate::audit::AuditLog;
use crate::events::Hub;
use crate::idempotency::Idempotency;
use crate::readiness::Readiness;
use crate::routes::HookRates;
use crate::settings::Settings;
use crate::trace::CurrentTrace;
use crate::work::{LeaseSeal, Presence};

/// What every route needs. Cheap to clone.
pub type App = Arc<AppState>;

/// The parts of a server.
pub struct AppState {
    /// The store.
    pub store: Arc<dyn Store>,
    /// A client on it.
    pub client: Client,
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
    /// Functions, configured and stored.
    pub functions: Functions,
    /// Webhooks.
    pub hooks: Hooks,
    /// How many requests each route of webhooks may still take.
    pub hook_rates: HookRates,
    /// Recurring actions.
    pub recurring: RecurringActions,
    /// Work for workers elsewhere.
    pub work: WorkQueue,
    /// Leases as text.
    pub seal: LeaseSeal,
    /// Which workers there are.
    pub presence: Arc<Presence>,
    /// API keys; `None` on a server without authentication.
    pub keys: Option<KeyStore>,
    /// Whether requests under any host name are taken without keys (`--insecure`).
    pub trusts_any_host: bool,
    /// Answers that are kept for repeated requests.
    pub idempotency: Idempotency,
    /// Who changed what.
    pub audit: AuditLog,
    /// Whether the store takes writes.
    pub readiness: Readiness,
    /// Metrics in Prometheus' format, if they are collected.
    pub metrics: Option<PrometheusHandle>,
    /// What happens to instances.
    pub hub: Arc<Hub>,
    /// Tells the trace context of the current span, if spans are exported.
    pub current_trace: Option<CurrentTrace>,
    /// Places for live streams.
    pub streams: Arc<Semaphore>,
    /// Cancelled when the server stops: streams end and readiness is over.
    pub stopping: CancellationToken,
}
