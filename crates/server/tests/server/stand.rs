//! A server on a free port, and callers.
//!
//! The store is an embedded one in a directory of its own, or what `SEGNO_TEST_STORE` says: `memory`, or `postgres` in a
//! schema of its own of the server that `scripts/with-postgres.sh` starts. The gate runs every test on the two stores
//! that people run a server on; the one in memory serves tests on a clock of their own.

use std::sync::Arc;
use std::time::Duration;

use segno::RegistryBuilder;
use segno::clock::{self, Clock, SystemClock};
use segno::store::memory::MemoryStore;
use segno::store::{Expect, OrchestratorMessage, RecordBatch, RecordWrite, Store};
use segno_api::Json;
use segno_api::dead_letter::{DeadLetter, ListDeadLetters};
use segno_api::instance::{OnConflict, StartInstance};
use segno_api::key::{CreateKey, Grant, Role};
use segno_api::session::{Session, SignIn};
use segno_ledger::objects::Stores;
use segno_server::settings::{Authentication, Settings};
use segno_server::{Server, ServerBuilder, bind, samples};
use segno_stores::StoreUrl;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The pause before a test looks again over HTTP for what it waits for: a test that does not pause takes the
/// processor from the server that it watches.
pub async fn look_again() {
    clock::sleep(&SystemClock, Duration::from_millis(5)).await;
}

/// Longer than anything here takes, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An empty store, and where it is.
#[derive(Clone)]
pub struct Ground {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The log and the tables of DAG runs, the same for all servers on this store.
    pub ledger: Stores,
    url: StoreUrl,
    _directory: Option<Arc<TempDir>>,
}

impl Ground {
    /// A store of the kind that this run is about.
    pub async fn new() -> Self {
        let kind = std::env::var("SEGNO_TEST_STORE").unwrap_or_else(|_| "embedded".to_owned());
        let directory = (kind == "embedded").then(|| Arc::new(tempfile::tempdir().unwrap()));
        let url: StoreUrl = match (kind.as_str(), &directory) {
            ("embedded", Some(directory)) => StoreUrl::Embedded(directory.path().to_owned()),
            ("postgres", _) => own_schema().parse().unwrap(),
            ("memory", _) => StoreUrl::Memory,
            (other, _) => panic!("SEGNO_TEST_STORE is {other}; use memory, embedded or postgres"),
        };
        Ground { store: url.open().await.unwrap(), ledger: Stores::in_memory(), url, _directory: directory }
    }

    /// A store in memory on a clock of one's own.
    pub fn on_clock(clock: Arc<dyn Clock>) -> Self {
        let store = MemoryStore::with_clock(clock);
        Ground { store, ledger: Stores::in_memory(), url: StoreUrl::Memory, _directory: None }
    }

    /// An embedded store, whatever this run is about.
    pub async fn embedded() -> Self {
        Self::in_directory(tempfile::tempdir().unwrap()).await
    }

    /// A store in PostgreSQL with its URL, whatever this run is about; none where no server runs.
    pub async fn in_postgres() -> Option<(Self, String)> {
        std::env::var_os("SEGNO_TEST_POSTGRES")?;
        let address = own_schema();
        let url: StoreUrl = address.parse().unwrap();
        let store = url.open().await.unwrap();
        Some((Ground { store, ledger: Stores::in_memory(), url, _directory: None }, address))
    }

    async fn in_directory(directory: TempDir) -> Self {
        Self::opened(directory).await.unwrap()
    }

    /// The embedded store in a directory, if it can be opened.
    pub async fn opened(directory: TempDir) -> Result<Self, segno_stores::Error> {
        let url = StoreUrl::Embedded(directory.path().to_owned());
        let store = url.open().await?;
        Ok(Ground { store, ledger: Stores::in_memory(), url, _directory: Some(Arc::new(directory)) })
    }

    /// The files of an embedded store, each with its content, once nothing has it open any more.
    pub async fn closed(self) -> Vec<(String, Vec<u8>)> {
        let directory = self._directory.clone().unwrap();
        let url = self.url.clone();
        drop(self);
        let reopened = async {
            // The last handle closes it.
            while url.open().await.is_err() {
                look_again().await;
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, reopened).await.expect("the store is not closed");
        let files = std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap);
        let files = files.filter(|file| file.file_type().unwrap().is_file());
        files
            .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
            .collect()
    }

    /// An embedded store as the next process would find it if this one were killed now. The log is
    /// only ever appended to, so a copy of the files is what a crash leaves.
    pub async fn after_a_crash(&self) -> Self {
        let StoreUrl::Embedded(from) = &self.url else { panic!("only an embedded store is in files") };
        let to = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "lock" && entry.file_name() != "control.sock" {
                std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
            }
        }
        Ground { ledger: self.ledger.clone(), ..Self::in_directory(to).await }
    }

    /// The same data as another node has it: in a database, over connections of its own.
    pub async fn of_another_node(&self) -> Self {
        let store = match &self.url {
            StoreUrl::Postgres(_) => self.url.open().await.unwrap(),
            StoreUrl::Memory | StoreUrl::Embedded(_) => self.store.clone(),
        };
        Ground { store, ..self.clone() }
    }
}

/// The URL of a schema that no other test uses.
fn own_schema() -> String {
    let server = std::env::var("SEGNO_TEST_POSTGRES");
    let server = server.expect("SEGNO_TEST_POSTGRES is not set; run this by scripts/with-postgres.sh");
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}schema=server_{:x}", segno::ids::SystemIds::shared().new_seed())
}

/// A server and what is needed to talk to it.
pub struct Stand {
    /// The server.
    pub server: Server,
    _ground: Ground,
    /// The first administrator's key; empty without authentication.
    pub admin_key: String,
}

/// A client that is not ours. It does not read the certificates of the machine, which takes longer than most requests.
pub fn http() -> reqwest::Client {
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

/// Settings for tests.
pub fn settings(mode: Authentication) -> Settings {
    let mut settings = Settings::default();
    settings.store.url = "memory:".to_owned();
    settings.auth.mode = mode;
    settings
}

/// A listener on a free port.
pub async fn listener() -> TcpListener {
    bind(([127, 0, 0, 1], 0).into()).await.unwrap()
}

impl Stand {
    /// A server without authentication on an empty store.
    pub async fn open() -> Self {
        Self::with(settings(Authentication::None)).await
    }

    /// A server with keys on an empty store.
    pub async fn with_keys() -> Self {
        Self::with(settings(Authentication::Keys)).await
    }

    /// A server with settings of one's own on an empty store.
    pub async fn with(settings: Settings) -> Self {
        Self::on(settings, &Ground::new().await).await
    }

    /// A server of one's own.
    pub async fn on(settings: Settings, ground: &Ground) -> Self {
        Self::by(Server::builder(Arc::clone(&ground.store), settings), ground).await
    }

    /// The same on a clock of one's own.
    pub async fn on_clock(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let ground = Ground::on_clock(Arc::clone(&clock));
        Self::by(Server::builder(Arc::clone(&ground.store), settings).clock(clock), &ground).await
    }

    /// The same with orchestrations of one's own.
    pub async fn with_registry(settings: Settings, registry: RegistryBuilder) -> Self {
        let ground = Ground::new().await;
        let builder = Server::builder(Arc::clone(&ground.store), settings);
        Self::begun(builder.registry(registry).functions(samples::functions), &ground).await
    }

    async fn by(builder: ServerBuilder, ground: &Ground) -> Self {
        Self::begun(builder.registry(samples::registry()).functions(samples::functions), ground).await
    }

    /// The server of a builder that has its orchestrations and functions.
    pub async fn begun(builder: ServerBuilder, ground: &Ground) -> Self {
        let builder = builder.ledger(ground.ledger.clone());
        let mut server = builder.start(listener().await).await.unwrap();
        let admin_key = server.take_first_key().unwrap_or_default();
        Stand { server, _ground: ground.clone(), admin_key }
    }

    /// Ends the server in order, and leaves its store.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }

    /// An address on the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// The typed client, as administrator.
    pub fn client(&self) -> segno_api::Client {
        let client = segno_api::Client::new(&self.url("")).unwrap().retry_for(Duration::ZERO);
        if self.admin_key.is_empty() { client } else { client.key(self.admin_key.clone()) }
    }

    /// A client with a new key.
    pub async fn client_with(&self, role: Role, namespace: &str, tenant: &str) -> segno_api::Client {
        segno_api::Client::new(&self.url(""))
            .unwrap()
            .retry_for(Duration::ZERO)
            .key(self.key(role, namespace, tenant).await)
    }

    /// Sends a message that nothing can read to an instance, by its stored id.
    pub async fn send_junk(&self, instance: &str, junk: &str) {
        let message = OrchestratorMessage::new(instance, format!("\u{ff}{junk}"));
        self.server.client().store().enqueue_for_orchestrator(message, None).await.unwrap();
    }

    /// Keeps the log of one attempt of a call of an instance.
    pub async fn keep_log(&self, instance: &str, attempt: u32) {
        let instance = format!("default/default/{instance}");
        let key = serde_json::json!({ "instance": instance, "call": "call", "attempt": attempt });
        let log = serde_json::json!({ "key": key, "total_bytes": 2, "is_cut": false, "text": "ow" });
        self.put_record("segno.function-log", format!("{instance}/call/{attempt}"), &log).await;
    }

    /// Has a removal of a runbook's members wait for approval.
    pub async fn hold_removal(&self, runbook: &str, set: u64) {
        let removal = serde_json::json!({
            "set": set, "count": 1, "of": 1, "batches": 1, "sample": [], "at": "2026-01-01T00:00:00Z",
        });
        let query = serde_json::json!({ "name": runbook, "pending_removal": removal });
        self.put_record("runbook_queries", format!("default/default/{runbook}"), &query).await;
    }

    async fn put_record(&self, kind: &str, id: String, body: &serde_json::Value) {
        let write = RecordWrite::Put {
            kind: kind.to_owned(),
            id,
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: None,
            body: body.to_string().into(),
        };
        let commit = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        self.server.client().store().commit_records(commit).await.unwrap();
    }

    /// Waits until there are so many dead letters, newest first.
    pub async fn until_dead_letters(&self, client: &segno_api::Client, count: usize) -> Vec<DeadLetter> {
        let listed = async {
            loop {
                let page = client.dead_letters(&ListDeadLetters::default()).await.unwrap();
                if page.dead_letters.len() >= count {
                    return page.dead_letters;
                }
                look_again().await;
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("nothing is given up")
    }

    /// A new key.
    pub async fn key(&self, role: Role, namespace: &str, tenant: &str) -> String {
        let grant = Grant { namespace: namespace.to_owned(), tenant: tenant.to_owned() };
        let request = CreateKey { name: format!("{role:?}"), role, grants: vec![grant], expires_at: None };
        self.client().create_key(&request).await.unwrap().secret
    }
}

impl Stand {
    /// Where pages of this server come from.
    pub fn origin(&self) -> String {
        self.url("")
    }

    /// Signs a browser in; returns the value of its `Cookie` header, and the session.
    pub async fn sign_in(&self, key: &str) -> (String, Session) {
        let call = http().post(self.url("/v1/sessions")).header("origin", self.origin());
        let answer = call.json(&SignIn { key: key.to_owned() }).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        (cookie.split(';').next().unwrap().to_owned(), answer.json().await.unwrap())
    }
}

/// Whether a PUT creates something only on the condition that there is none yet.
pub fn creates_on_condition(method: &reqwest::Method, path: &str) -> bool {
    let kinds = ["/v1/functions/", "/v1/hooks/", "/v1/saved/"];
    *method == reqwest::Method::PUT && kinds.iter().any(|kind| path.starts_with(kind))
}

/// A start of the sample.
pub fn greet(id: &str, input: &str) -> StartInstance {
    StartInstance {
        orchestration: "greet".to_owned(),
        version: None,
        id: Some(id.to_owned()),
        input: Json::from_text(input.to_owned()).unwrap(),
        labels: [("team".to_owned(), "eu".to_owned())].into(),
        start_at: None,
        on_conflict: OnConflict::Reject,
    }
}

/// The JSON of a value.
pub fn json_of(value: &(impl serde::Serialize + ?Sized)) -> Json {
    Json::of(value).unwrap()
}
