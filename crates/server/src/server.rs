//! A server: put together, started, stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use metrics_exporter_prometheus::PrometheusHandle;
use segno::clock::{Clock, SystemClock};
use segno::ids::{IdSource, SystemIds};
use segno::store::Store;
use segno::work::WorkQueue;
use segno::{Client, RegistryBuilder, Runtime};
use segno_actions::action::ActionError;
use segno_actions::functions::{FunctionError, Functions, FunctionsBuilder};
use segno_actions::hooks::Hooks;
use segno_actions::pools::{Pools, Room, RoomCalls};
use segno_actions::recurring::RecurringActions;
use segno_actions::schedule::Zones;
use segno_actions::scheduler::Scheduler;
use segno_api::key::{CreateKey, Grant, Role as KeyRole};
use segno_ledger::archive::ArchiveStore;
use segno_ledger::drive as ledger_drive;
use segno_ledger::drive::{Ledger, LedgerOptions, TokenIssuer};
use segno_ledger::objects::Stores;
use segno_ledger::sql::Engine;
use segno_runbook::bus::Brokers;
use segno_runbook::drive::{self, Driver, Previewer, Querier, QueryServices, Runbooks, Services, Upkeep};
use segno_runbook::source::Sources;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::access::{KeyStore, SessionStore};
use crate::app::{App, AppState, ResourceParts};
use crate::archiving;
use crate::audit::AuditLog;
use crate::batch_archive::BatchArchiver;
use crate::bus::NodeBus;
use crate::detached::Detached;
use crate::events::{BatchAnnouncer, Hub, HubAnnouncer, Observers, Relay};
use crate::idempotency::Idempotency;
use crate::incarnation::Incarnation;
use crate::listen::{Limits, MAX_UNREAD_BYTES, Serving, TlsError};
use crate::nodes::NodeRecord;
use crate::objects::ObjectStores;
use crate::open_requests::OpenRequests;
use crate::operation::TrackedStore;
use crate::preflight::{self, Preflight, WithoutKeys};
use crate::routes::{self, HookRates, SignInRates};
use crate::scope::Scope;
use crate::settings::{self, Authentication, Origin, Role, Settings, SettingsError};
use crate::sql::PostgresReader;
use crate::stats::Collector;
use crate::telemetry;
use crate::trace::CurrentTrace;
use crate::views::{RunbookViewError, RunbookViews};
use crate::work::{Exchanges, LeaseSeal, Presence, Pusher};

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Everybody who reaches the address could do everything.
    #[error(
        "{0} can be reached from other machines, and this server has no keys (auth.mode is \"none\"): listen on 127.0.0.1, or use `segno serve` with auth.mode = \"keys\"; `segno serve --insecure` listens there without keys"
    )]
    Open(SocketAddr),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] segno::Error),
    /// A function cannot be used.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The scheduler cannot be set up.
    #[error(transparent)]
    Scheduler(#[from] ActionError),
    /// The message bus cannot be used.
    #[error("bus.url: {0}")]
    Bus(String),
    /// The store refused.
    #[error("the store cannot be used: {0}")]
    Store(String),
    /// The views of runbooks cannot be made.
    #[error("runbooks.views: {0}; or leave the setting out")]
    Views(#[from] RunbookViewError),
    /// The listener is broken.
    #[error("the address of the server cannot be found out: {0}")]
    Listener(std::io::Error),
}

/// Parts of a server.
pub struct ServerBuilder {
    store: Arc<dyn Store>,
    settings: Settings,
    registry: RegistryBuilder,
    functions: FunctionsBuilder,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    metrics: Option<PrometheusHandle>,
    current_trace: Option<CurrentTrace>,
    without_keys: WithoutKeys,
    ledger: Option<Stores>,
    brokers: Option<Arc<dyn Brokers>>,
    setting_lines: Option<Vec<(String, String, Origin)>>,
}

impl ServerBuilder {
    /// Orchestrations and activities to run. What functions need is added to them.
    #[must_use]
    pub fn registry(mut self, registry: RegistryBuilder) -> Self {
        self.registry = registry;
        self
    }

    /// Adds functions that are code of this program, or sets up how functions are run.
    #[must_use]
    pub fn functions(mut self, add: impl FnOnce(FunctionsBuilder) -> FunctionsBuilder) -> Self {
        self.functions = add(self.functions);
        self
    }

    /// The clock of everything that waits, for tests; the store has its own.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where metrics are collected: see [`telemetry::install`](crate::telemetry::install).
    #[must_use]
    pub fn metrics(mut self, metrics: PrometheusHandle) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Tells the trace context of the current span, where spans are exported: instances go on with the trace of the request
    /// that starts them.
    #[must_use]
    pub fn current_trace(mut self, current: CurrentTrace) -> Self {
        self.current_trace = Some(current);
        self
    }

    /// The object stores of the ledger, in the place of those of the settings.
    #[must_use]
    pub fn ledger(mut self, stores: Stores) -> Self {
        self.ledger = Some(stores);
        self
    }

    /// Opens the bus of runbooks at a broker elsewhere, if the settings say so.
    #[must_use]
    pub fn brokers(mut self, brokers: Arc<dyn Brokers>) -> Self {
        self.brokers = Some(brokers);
        self
    }

    /// Where each setting comes from, as [`Effective::lines`](crate::settings::Effective::lines) has it, for administrators.
    #[must_use]
    pub fn setting_lines(mut self, lines: Vec<(String, String, Origin)>) -> Self {
        self.setting_lines = Some(lines);
        self
    }

    /// Lets a server without keys listen beyond this machine.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.without_keys = WithoutKeys::Anywhere;
        self
    }

    /// Starts the server on a listener.
    ///
    /// # Errors
    /// Says what cannot be used and what to do.
    pub async fn start(mut self, listener: TcpListener) -> Result<Server, ServerError> {
        let Preflight { address, tls } = preflight::prepare(&self.settings, &listener, self.without_keys)?;
        // Before the first key is made: a start that is refused would lose it.
        let objects = ObjectStores::open(&self.settings, self.ledger.take())?;
        let unproven = objects.probe(&self.settings, (self.clock.clone(), self.ids.clone())).await?;
        let ObjectStores { ledger: ledger_stores, place: ledger_place, archive } = objects;
        let with_keys = self.settings.auth.mode == Authentication::Keys;
        let zones = Arc::new(Zones::newest());
        let views = RunbookViews::of(&self.settings)?;
        if let Some(views) = &views {
            views.make_all(&*self.store, &zones).await?;
        }
        let tracked: Arc<dyn Store> = TrackedStore::new(self.store.clone());
        let keys = with_keys.then(|| {
            KeyStore::new(tracked.clone(), self.clock.clone(), self.settings.auth.requests_per_second)
        });
        let sessions = with_keys.then(|| {
            let auth = &self.settings.auth;
            SessionStore::new(
                tracked.clone(),
                self.clock.clone(),
                auth.session_life(),
                auth.requests_per_second,
            )
        });
        let first_key = match &keys {
            Some(keys) => first_key(keys).await?,
            None => None,
        };
        let functions = drive::register(self.functions.clock(self.clock.clone()).ids(self.ids.clone()));
        let seal =
            LeaseSeal::of(&*self.store).await.map_err(|error| ServerError::Store(error.to_string()))?;
        let task_tokens = seal.task_tokens();
        let issuer = TokenIssuer {
            tokens: task_tokens.clone(),
            callback_base_url: self.settings.server.callback_base_url(address),
        };
        let functions = ledger_drive::issue(ledger_drive::register(functions), issuer);
        let functions = self.settings.declare_functions(functions).shared_by_tenant().build()?;
        let pools = Pools::with_bus(tracked.clone(), self.settings.pools.clone())?.clock(self.clock.clone());
        let sources = (self.clock.clone(), self.ids.clone());
        let bus =
            NodeBus::open(&self.settings.bus, self.store.clone(), sources, &pools, self.brokers.as_deref())
                .await?;
        let registry = functions.register(self.registry).build()?;
        let names = registry.orchestration_names();
        let schemas = registry.schemas().clone();
        let orchestrations = names.into_iter().map(|(name, version)| (name, version.to_string())).collect();
        let options = self.settings.runtime_options();
        let archive =
            archive.map(|stores| ArchiveStore::new(stores.ledger, tracked.clone(), self.clock.clone()));
        let (hub, recorder) = Hub::new(self.store.clone(), self.clock.clone(), self.ids.clone());
        let collector = Collector::new(self.clock.clone(), self.ids.new_uuid().simple().to_string());
        let observers = Arc::new(Observers { hub: hub.clone(), collector: collector.clone() });
        let works = options.orchestration_concurrency > 0 || options.worker_concurrency > 0;
        let runtime = match works {
            false => None,
            true => {
                // Turns that join calls of workers are part of the requests that answer them.
                let builder = Runtime::builder(tracked.clone()).registry(registry).options(options);
                let builder =
                    builder.clock(self.clock.clone()).ids(self.ids.clone()).observer(observers.clone());
                let builder = match &archive {
                    Some(archive) => builder.archive(Arc::new(archive.clone())),
                    None => builder,
                };
                let builder = match self.settings.node_places() {
                    Some(places) => builder.admission(Arc::new(places)),
                    None => builder,
                };
                Some(builder.start().await?)
            }
        };
        let node = match &runtime {
            Some(runtime) => runtime.node_id().to_owned(),
            None => {
                self.settings.server.node.clone().unwrap_or_else(|| format!("node-{}", self.ids.new_uuid()))
            }
        };
        let stopping = CancellationToken::new();
        let work = WorkQueue::builder(tracked.clone())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .max_deliveries(self.settings.runtime.max_deliveries)
            .dead_letter_prefix(Scope::prefix_of);
        let work = match &runtime {
            Some(runtime) => work.joining(runtime.joiner()).build()?,
            None => work.build()?,
        };
        let presence = Arc::new(Presence::new(self.store.clone(), self.clock.clone(), node.clone()));
        let exchanges = Exchanges::new(self.clock.clone());
        let relay = Relay {
            hub: hub.clone(),
            store: self.store.clone(),
            clock: self.clock.clone(),
            node: node.clone(),
        };
        let mut background = vec![
            tokio::spawn(presence.clone().keep(stopping.clone())),
            tokio::spawn(exchanges.clone().keep(stopping.clone())),
            tokio::spawn(recorder.run(stopping.clone())),
            tokio::spawn(relay.run(stopping.clone())),
        ];
        if works {
            background.push(tokio::spawn(collector.clone().run(self.store.clone(), stopping.clone())));
        }
        if let Some(metrics) = &self.metrics {
            let upkeep = telemetry::keep_up(metrics.clone(), self.clock.clone(), stopping.clone());
            background.push(tokio::spawn(upkeep));
        }
        let sources = (self.clock.clone(), self.ids.clone());
        let hooks =
            Hooks::with_sources(tracked.clone(), functions.clone(), self.settings.for_hooks(), sources);
        background.push(tokio::spawn({
            let (hooks, stopping) = (hooks.clone(), stopping.clone());
            async move { hooks.keep_events(stopping.cancelled()).await }
        }));
        if self.settings.has(Role::Worker) {
            let pusher = Pusher {
                queue: work.clone(),
                functions: functions.clone(),
                seal: seal.clone(),
                clock: self.clock.clone(),
                tags: self.settings.runtime.tags.clone(),
            };
            background.push(tokio::spawn(pusher.run(stopping.clone())));
        }
        let incarnation = self.ids.new_uuid().to_string();
        let record =
            NodeRecord::new(self.store.clone(), self.clock.clone(), &self.settings, (&node, &incarnation));
        let answering = record.answering();
        background.push(tokio::spawn(record.keep(stopping.clone())));
        let place = self.settings.place();
        let incarnation =
            Incarnation::begin(self.store.clone(), self.clock.clone(), incarnation, place).await;
        let incarnation = Arc::new(incarnation.map_err(|error| ServerError::Store(error.to_string()))?);
        background.push(tokio::spawn(incarnation.clone().keep(stopping.clone())));
        let recurring = RecurringActions::new(tracked.clone(), functions.clone(), zones.clone())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .options(self.settings.action_options())
            .current_trace(self.current_trace);
        let runbooks = Runbooks::new(tracked.clone(), zones.clone());
        if ledger_stores.is_some()
            && let Err(error) = ledger_place.note(&*self.store).await
        {
            // A server starts on a full disk, too.
            tracing::warn!(%error, "the place of the ledger is not noted: a backup may not find it");
        }
        // One for the doors and the driver, so that a request sees at once what the driver of this node has published.
        let ledger = ledger_stores.map(|stores| {
            let options =
                LedgerOptions { clock: self.clock.clone(), ids: self.ids.clone(), zones: zones.clone() };
            Ledger::new(tracked.clone(), stores, options)
        });
        if self.settings.has(Role::Orchestrator) {
            let places = (&self.store, &self.clock);
            background.extend(archiving::start(archive.as_ref(), places, &self.settings, &stopping));
            let client = Client::builder(self.store.clone()).ids(self.ids.clone()).build();
            let services = Services {
                store: self.store.clone(),
                clock: self.clock.clone(),
                calls: RoomCalls::new(Room::RUNBOOK, &functions, pools.clone(), client),
                definitions: runbooks.definitions().clone(),
                announcer: Arc::new(BatchAnnouncer(hub.clone())),
                bus: bus.as_ref().map(|bus| bus.outbox.clone()),
                options: self.settings.for_batches(),
            };
            if let Some(bus) = &bus {
                let edge = bus.edge(self.store.clone(), self.clock.clone(), pools.clone());
                background.push(tokio::spawn(edge.run(stopping.clone().cancelled_owned())));
            }
            let upkeep = Upkeep::new(services.clone());
            let upkeep = match archive.clone() {
                Some(archive) => {
                    let runbooks = Runbooks::new(self.store.clone(), zones.clone());
                    upkeep.archive(Arc::new(BatchArchiver { runbooks, archive }))
                }
                None => upkeep,
            };
            background.push(tokio::spawn(upkeep.run(stopping.clone().cancelled_owned())));
            let (clock, lease) = (self.clock.clone(), services.options.lease);
            let queried = Runbooks::new(self.store.clone(), zones.clone());
            let sources = Sources::new(
                functions.clone(),
                services.calls.clone(),
                clock.clone(),
                Arc::new(PostgresReader),
                self.settings.runbooks.csv_directory.clone(),
            );
            let keep_invocations = services.options.keep_invocations;
            let queries = QueryServices { runbooks: queried, clock, sources, lease, keep_invocations };
            let querier = Querier::new(queries, node.clone());
            background.push(tokio::spawn(querier.run(stopping.clone().cancelled_owned())));
            if let Some(ledger) = ledger.clone() {
                let client = Client::builder(self.store.clone()).ids(self.ids.clone()).build();
                let calls = RoomCalls::new(Room::LEDGER, &functions, pools.clone(), client);
                let options = self.settings.ledger_driver();
                let announcer = Arc::new(HubAnnouncer(hub.clone()));
                let services = ledger_drive::Services { ledger: ledger.clone(), calls, announcer, options };
                let driver = ledger_drive::Driver::new(services, node.clone()).processes(incarnation.clone());
                let stopping = stopping.clone();
                background.push(tokio::spawn(async move {
                    if let Some(unproven) = unproven {
                        tokio::select! {
                            () = stopping.cancelled() => return,
                            () = unproven.passed(&ledger) => {}
                        }
                    }
                    driver.run(stopping.cancelled_owned()).await;
                }));
            }
            let driver = Driver::new(services, node.clone()).processes(incarnation.clone());
            background.push(tokio::spawn(driver.run(stopping.clone().cancelled_owned())));
            let scheduler = Scheduler::builder(self.store.clone(), functions.clone())
                .clock(self.clock.clone())
                .ids(self.ids.clone())
                .zones(zones)
                .options(self.settings.action_options())
                .current_trace(self.current_trace)
                .build()?;
            background.push(tokio::spawn(scheduler.run(stopping.clone().cancelled_owned())));
        }
        let keep_audit = self.settings.keep_audit();
        let client = Client::builder(tracked.clone()).ids(self.ids.clone()).build();
        let calls = RoomCalls::new(Room::RUNBOOK, &functions, pools.clone(), client.clone());
        let csv_directory = self.settings.runbooks.csv_directory.clone();
        let sources = Sources::new(
            functions.clone(),
            calls,
            self.clock.clone(),
            Arc::new(PostgresReader),
            csv_directory,
        );
        let keep_invocations = self.settings.for_batches().keep_invocations;
        let previewer = Previewer { runbooks: runbooks.clone(), sources, keep_invocations };
        let resources = ResourceParts {
            store: tracked,
            client: client.clone(),
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
            sql: Engine::new(self.clock.clone()),
            collector,
        };
        let detached = Arc::new(Detached::new(self.settings.server.max_connections));
        let app: App = Arc::new(AppState {
            audit: AuditLog::start(self.store.clone(), self.clock.clone(), self.ids.clone(), keep_audit),
            idempotency: Idempotency::new(self.store, self.clock.clone(), incarnation, detached.clone()),
            detached,
            streams: OpenRequests::streams(&self.settings.server),
            long_polls: OpenRequests::long_polls(&self.settings.server),
            clock: self.clock.clone(),
            ids: self.ids,
            node,
            answering,
            setting_lines: self.setting_lines.unwrap_or_else(|| settings::lines_of(&self.settings)),
            orchestrations,
            schemas,
            sign_ins: SignInRates::default(),
            hook_rates: HookRates::new(self.settings.hooks.requests_per_second),
            trusts_any_host: self.without_keys == WithoutKeys::Anywhere,
            metrics: self.metrics,
            current_trace: self.current_trace,
            stopping: stopping.clone(),
            settings: self.settings,
            resources: resources.into(),
        });
        let (router, _) = routes::router(&app);
        let serving = Serving {
            router,
            base: app.settings.server.base().into(),
            tls,
            limits: Limits {
                max_connections: app.settings.server.max_connections,
                header_timeout: Duration::from_secs(app.settings.server.header_timeout_seconds),
                write_timeout: Duration::from_secs(app.settings.server.write_timeout_seconds),
                max_body_bytes: app.settings.server.max_body_bytes,
                max_unread_bytes: MAX_UNREAD_BYTES,
            },
            clock: self.clock,
            stopping: stopping.clone(),
        };
        let serves = app.settings.has(Role::Api);
        let serving = serves.then(|| tokio::spawn(serving.run(listener)));
        Ok(Server { address, app, client, runtime, serving, background, stopping, first_key })
    }
}

/// A running server. Dropping it stops all work at once, as a crash would; use [`Server::shutdown`] to end in order.
pub struct Server {
    address: SocketAddr,
    app: App,
    client: Client,
    runtime: Option<Runtime>,
    serving: Option<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
    stopping: CancellationToken,
    first_key: Option<String>,
}

impl Server {
    /// Prepares a server on a store.
    pub fn builder(store: Arc<dyn Store>, settings: Settings) -> ServerBuilder {
        let functions = Functions::builder(TrackedStore::new(store.clone()));
        ServerBuilder {
            store,
            settings,
            registry: RegistryBuilder::default(),
            functions,
            clock: SystemClock::shared(),
            ids: SystemIds::shared(),
            metrics: None,
            current_trace: None,
            without_keys: WithoutKeys::default(),
            ledger: None,
            brokers: None,
            setting_lines: None,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client on its store.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The administrator's key that was made because the store had no key at all; to be shown once.
    pub fn take_first_key(&mut self) -> Option<String> {
        self.first_key.take()
    }

    /// Revokes a first key that could not be handed over, so that the next start makes another one.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn revoke_first_key(&self, key: &str) -> Result<(), ServerError> {
        let revoked = self.app.revoke_first_key(key).await;
        revoked.map_err(|refusal| ServerError::Store(refusal.to_string()))
    }

    /// Ends in order: takes no more connections, ends streams, lets requests and running work end within the drain time,
    /// and gives back what has not ended by then.
    pub async fn shutdown(mut self) {
        self.stopping.cancel();
        let drain = self.app.settings.drain();
        let requests = async {
            let serving = &mut self.serving;
            let ended = async {
                if let Some(serving) = serving {
                    let _ = serving.await;
                }
                // Those whose callers have gone.
                self.app.detached.drained().await;
            };
            if segno::clock::timeout(&*self.app.clock, drain, ended).await.is_none() {
                self.serving.iter().for_each(JoinHandle::abort);
                self.app.detached.abort();
            }
        };
        let work = async {
            if let Some(runtime) = self.runtime.take() {
                runtime.shutdown(drain).await;
            }
        };
        let background = async {
            // One deadline for all of them: one after the other would take a drain time each.
            let ended = join_all(&mut self.background);
            if segno::clock::timeout(&*self.app.clock, drain, ended).await.is_none() {
                self.background.iter().for_each(JoinHandle::abort);
            }
        };
        tokio::join!(requests, work, background);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.app.detached.abort();
        for task in self.serving.iter().chain(&self.background) {
            task.abort();
        }
    }
}

/// The first administrator's key of a store that has no key at all.
async fn first_key(keys: &KeyStore) -> Result<Option<String>, ServerError> {
    let store = |refusal: crate::problem::Refusal| ServerError::Store(refusal.to_string());
    let everywhere = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
    let request = CreateKey {
        name: "first administrator".to_owned(),
        role: KeyRole::Admin,
        grants: vec![everywhere],
        expires_at: None,
    };
    Ok(keys.create_first(request).await.map_err(store)?.map(|key| key.secret))
}
