//! Settings of a server: what can be set, and its defaults.
//!
//! | file | what |
//! |---|---|
//! | `actions` | actions and recurring actions |
//! | `archive` | where retention puts what it removes |
//! | `bus` | the message bus of runbooks |
//! | `functions` | functions, and what stored ones may do |
//! | `hooks` | webhooks |
//! | `ledger` | where the log and the tables of DAG runs are |
//! | `pools` | pools of workers |
//! | `public_url` | under which address people reach it |
//! | `redacted` | settings without their secrets |
//! | `runbooks` | runbooks: CSV files, what is kept of batches |
//! | `trace_url` | where traces of instances are shown |
//! | `layers` | where values come from: defaults, file, environment, flags; later ones win |
//!
//! `docs/guide/server.md` lists every setting.

mod actions;
mod archive;
mod bus;
mod functions;
mod hooks;
mod layers;
mod ledger;
mod pools;
mod public_url;
mod redacted;
mod runbooks;
mod trace_url;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use segno::store::TagFilter;
use segno::{Retention, RuntimeOptions};
use segno_actions::functions::{Function, FunctionName, PoolName};
use segno_actions::pools::Pool;
use segno_stores::StoreUrl;
use serde::{Deserialize, Serialize};

use crate::incarnation::Place;
use crate::scope::Scope;
use crate::work::NodePlaces;

pub use actions::ActionSettings;
pub use archive::ArchiveSettings;
pub use bus::{BUILT_IN, BusSettings};
pub use functions::StoredFunctionSettings;
pub use hooks::HookSettings;
pub(crate) use layers::lines_of;
pub use layers::{Effective, Layers, Origin, SettingsError};
pub use ledger::LedgerSettings;
pub use public_url::PublicUrl;
pub(crate) use redacted::redacted;
pub use runbooks::RunbookSettings;

/// Functions that a node runs at once by default. One tenant alone gets two thirds of them.
const FUNCTIONS: usize = 192;

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Answers HTTP requests.
    Api,
    /// Runs orchestrations.
    Orchestrator,
    /// Runs functions.
    Worker,
}

impl Role {
    /// The name, as in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Api => "api",
            Role::Orchestrator => "orchestrator",
            Role::Worker => "worker",
        }
    }
}

/// How callers show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// By API key.
    Keys,
    /// Not at all: everybody who reaches the server may do everything.
    None,
}

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The store.
    pub store: StoreSettings,
    /// The HTTP server.
    pub server: ServerSettings,
    /// Who may do what.
    pub auth: AuthSettings,
    /// The engine.
    pub runtime: RuntimeSettings,
    /// What is kept of what has ended.
    pub retention: RetentionSettings,
    /// Actions and recurring actions.
    pub actions: ActionSettings,
    /// Webhooks.
    pub hooks: HookSettings,
    /// Runbooks.
    pub runbooks: RunbookSettings,
    /// The ledger of DAG runs.
    pub ledger: LedgerSettings,
    /// The archive of what retention removes.
    pub archive: ArchiveSettings,
    /// Where traces go.
    pub telemetry: TelemetrySettings,
    /// Functions of the configuration, which every namespace and tenant sees.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<FunctionName, Function>,
    /// Pools of workers, which every namespace and tenant has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<PoolName, Pool>,
    /// The message bus over which runbooks reach workers.
    pub bus: BusSettings,
    /// What functions may do that came in through the API.
    pub stored_functions: StoredFunctionSettings,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// `segno:DIR`, `postgres://…` or `memory:`.
    pub url: String,
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// Whether the web UI is served.
    pub ui: bool,
    /// Where people reach the server, if that is not the address it listens on.
    pub public_url: Option<String>,
    /// Where the UI links to for the trace of an instance; `{trace}` and `{instance}` stand for its ids.
    pub trace_url: Option<String>,
    /// Address to listen on; port 0 takes a free one.
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    /// What this node does.
    pub roles: BTreeSet<Role>,
    /// Name of this node; a random one without it.
    pub node: Option<String>,
    /// How long running work may take to end when the server stops.
    pub drain_seconds: u64,
    /// Largest body of a request.
    pub max_body_bytes: usize,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most live streams at once.
    pub max_streams: usize,
    /// Most live streams at once of one key.
    pub max_streams_per_key: usize,
    /// Most live streams at once in one tenant.
    pub max_streams_per_tenant: usize,
    /// Within this time the headers of a request must be there.
    pub header_timeout_seconds: u64,
    /// A caller that reads nothing of its answers for this long is disconnected.
    pub write_timeout_seconds: u64,
    /// Within this time a request must have arrived as a whole.
    pub body_timeout_seconds: u64,
    /// File with the TLS certificates, PEM.
    pub tls_certificates: Option<PathBuf>,
    /// File with the key of the TLS certificate, PEM.
    pub tls_key: Option<PathBuf>,
}

/// Reads an address to listen on. `localhost` is 127.0.0.1; no other name is resolved, so that a
/// node does not depend on a name server to start.
fn listen_address<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.clone(),
    };
    numeric.parse().map_err(|_| {
        let problem =
            if numeric.parse::<std::net::IpAddr>().is_ok() { "has no port" } else { "is no address" };
        serde::de::Error::custom(format!(
            "{text:?} {problem}; use IP:PORT, as in 127.0.0.1:7070, [::1]:7070 or 0.0.0.0:7070"
        ))
    })
}

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// How callers show who they are.
    pub mode: Authentication,
    /// Most requests per second of one key; no limit without it.
    pub requests_per_second: Option<u32>,
    /// How long the audit log is kept.
    pub audit_days: u32,
    /// A session of a browser ends after so long without a request.
    pub session_minutes: u32,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeSettings {
    /// Turns at once.
    pub orchestrations: usize,
    /// Functions at once.
    pub functions: usize,
    /// Executions kept in memory between turns.
    pub resident_executions: usize,
    /// Also take work with one of these tags.
    pub tags: BTreeSet<String>,
    /// Deliveries of a turn or a piece of work before it is given up.
    pub max_deliveries: u32,
}

/// What is kept of what has ended. Everything without them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSettings {
    /// Instances that ended longer ago than this are deleted.
    pub finished_hours: Option<u64>,
    /// Of instances that have ended, only so many are kept.
    pub finished_count: Option<u64>,
    /// Of each instance, only so many executions are kept.
    pub executions: Option<u32>,
}

/// Where traces go. Nowhere without it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Base URL of a collector that takes OTLP over HTTP.
    pub otlp_endpoint: Option<String>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        StoreSettings { url: "segno:.segno".to_owned() }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            ui: true,
            public_url: None,
            trace_url: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            roles: [Role::Api, Role::Orchestrator, Role::Worker].into(),
            node: None,
            drain_seconds: 20,
            max_body_bytes: 1024 * 1024,
            max_connections: 4_096,
            max_streams: 512,
            max_streams_per_key: 64,
            max_streams_per_tenant: 256,
            header_timeout_seconds: 10,
            write_timeout_seconds: 30,
            body_timeout_seconds: 30,
            tls_certificates: None,
            tls_key: None,
        }
    }
}

impl ServerSettings {
    /// Where people reach the server, as the settings have it; settings are checked before they are used.
    pub fn public_url(&self) -> Option<PublicUrl> {
        self.public_url.as_deref().and_then(|url| PublicUrl::parse(url).ok())
    }

    /// Where workers with task tokens reach the server: its public URL, or the address that it listens on.
    pub fn callback_base_url(&self, address: SocketAddr) -> String {
        if let Some(url) = self.public_url() {
            return format!("{}{}", url.origin, url.base.trim_end_matches('/'));
        }
        let scheme = if self.tls_certificates.is_some() { "https" } else { "http" };
        let host = match address.ip() {
            ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            ip => ip,
        };
        format!("{scheme}://{}", SocketAddr::new(host, address.port()))
    }

    /// The path that the server is served under, with a slash at both ends.
    pub fn base(&self) -> String {
        self.public_url().map_or_else(|| "/".to_owned(), |url| url.base)
    }
}

impl Default for AuthSettings {
    fn default() -> Self {
        AuthSettings {
            mode: Authentication::Keys,
            requests_per_second: None,
            audit_days: 90,
            session_minutes: 60,
        }
    }
}

impl AuthSettings {
    /// How long a session lasts without a request.
    pub fn session_life(&self) -> Duration {
        Duration::from_secs(u64::from(self.session_minutes) * 60)
    }
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        let options = RuntimeOptions::default();
        RuntimeSettings {
            orchestrations: options.orchestration_concurrency,
            functions: FUNCTIONS,
            resident_executions: options.resident_executions,
            tags: BTreeSet::new(),
            max_deliveries: options.max_attempts,
        }
    }
}

impl Settings {
    /// Which store.
    ///
    /// # Errors
    /// When the URL is none.
    pub fn store_url(&self) -> Result<StoreUrl, SettingsError> {
        self.store.url.parse().map_err(|error| SettingsError::value("store.url", format!("{error}")))
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// Names the setting, what is wrong with it, and what to do.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.store_url()?;
        self.check_functions()?;
        self.check_pools()?;
        self.check_runbooks()?;
        self.check_ledger()?;
        self.check_archive()?;
        self.check_bus()?;
        self.check_actions()?;
        self.check_hooks()?;
        self.telemetry.check()?;
        let server = &self.server;
        if let Some(url) = &server.public_url {
            PublicUrl::parse(url)?;
        }
        if let Some(url) = &server.trace_url {
            trace_url::check(url)?;
        }
        if server.roles.is_empty() {
            return Err(SettingsError::value(
                "server.roles",
                "is empty; name at least one of api, orchestrator, worker",
            ));
        }
        for (name, value) in [
            ("server.max_body_bytes", server.max_body_bytes),
            ("server.max_connections", server.max_connections),
            ("server.max_streams_per_key", server.max_streams_per_key),
            ("server.max_streams_per_tenant", server.max_streams_per_tenant),
            ("server.write_timeout_seconds", usize::try_from(server.write_timeout_seconds).unwrap_or(1)),
            ("server.header_timeout_seconds", usize::try_from(server.header_timeout_seconds).unwrap_or(1)),
            ("server.body_timeout_seconds", usize::try_from(server.body_timeout_seconds).unwrap_or(1)),
            ("runtime.orchestrations", self.runtime.orchestrations),
            ("runtime.functions", self.runtime.functions),
            ("runtime.max_deliveries", self.runtime.max_deliveries as usize),
            ("auth.audit_days", self.auth.audit_days as usize),
            ("auth.session_minutes", self.auth.session_minutes as usize),
        ] {
            if value == 0 {
                return Err(SettingsError::value(name, "must be at least 1"));
            }
        }
        if self.auth.requests_per_second == Some(0) {
            return Err(SettingsError::value(
                "auth.requests_per_second",
                "must be at least 1; leave it out for no limit",
            ));
        }
        if self.runtime.tags.len() > segno::limits::MAX_WORKER_TAGS {
            let most = segno::limits::MAX_WORKER_TAGS;
            return Err(SettingsError::value("runtime.tags", format!("has more than {most} tags")));
        }
        match (&server.tls_certificates, &server.tls_key) {
            (Some(_), None) => {
                Err(SettingsError::value("server.tls_key", "is missing; tls_certificates needs it"))
            }
            (None, Some(_)) => {
                Err(SettingsError::value("server.tls_certificates", "is missing; tls_key needs it"))
            }
            _ => Ok(()),
        }
    }

    /// Whether this node does it.
    pub fn has(&self, role: Role) -> bool {
        self.server.roles.contains(&role)
    }

    /// What the engine is told.
    pub fn runtime_options(&self) -> RuntimeOptions {
        let runtime = &self.runtime;
        RuntimeOptions {
            orchestration_concurrency: if self.has(Role::Orchestrator) { runtime.orchestrations } else { 0 },
            worker_concurrency: if self.has(Role::Worker) { runtime.functions } else { 0 },
            resident_executions: runtime.resident_executions,
            max_attempts: runtime.max_deliveries,
            tag_filter: match runtime.tags.is_empty() {
                true => TagFilter::DefaultOnly,
                false => TagFilter::DefaultAnd(runtime.tags.clone()),
            },
            node_id: self.server.node.clone(),
            retention: self.retention.for_engine(),
            dead_letter_prefix: Scope::prefix_of,
            ..RuntimeOptions::default()
        }
    }

    /// The places of functions that the node runs; `None` when it runs none.
    pub(crate) fn node_places(&self) -> Option<NodePlaces> {
        let places = self.runtime_options().worker_concurrency;
        (places > 0).then(|| NodePlaces::new(places, &self.runtime.tags))
    }

    /// Where the process runs: what tells whether one that ran before can still be alive.
    pub(crate) fn place(&self) -> Place {
        match (self.store.url.parse(), &self.server.node) {
            (Ok(StoreUrl::Memory | StoreUrl::Embedded(_)), _) => Place::TheOnlyOne,
            (_, Some(name)) => Place::Named(name.clone()),
            (_, None) => Place::Unnamed,
        }
    }

    /// How long running work may take to end.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.server.drain_seconds)
    }
}

impl TelemetrySettings {
    fn check(&self) -> Result<(), SettingsError> {
        let is_http = |endpoint: &String| {
            endpoint.parse::<Uri>().is_ok_and(|url| matches!(url.scheme_str(), Some("http" | "https")))
        };
        match &self.otlp_endpoint {
            Some(endpoint) if !is_http(endpoint) => {
                let reason =
                    format!("is {endpoint:?}; write the URL of a collector, such as http://localhost:4318");
                Err(SettingsError::value("telemetry.otlp_endpoint", reason))
            }
            _ => Ok(()),
        }
    }
}

impl RetentionSettings {
    fn for_engine(&self) -> Retention {
        Retention {
            finished_age: self.finished_hours.map(|hours| Duration::from_secs(hours.saturating_mul(60 * 60))),
            finished_count: self.finished_count,
            executions: self.executions,
            ..Retention::default()
        }
    }
}
