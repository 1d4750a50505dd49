//! A server on a free port, and callers.

use std::sync::Arc;
use std::time::Duration;

use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno_api::Json;
use segno_api::instance::{OnConflict, StartInstance};
use segno_api::key::{CreateKey, Grant, Role};
use segno_server::settings::{Authentication, Settings};
use segno_server::{Server, bind, samples};
use tokio::net::TcpListener;

/// Longer than anything here takes, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server and what is needed to talk to it.
pub struct Stand {
    /// The server.
    pub server: Server,
    /// The first administrator's key; empty without authentication.
    pub admin_key: String,
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
    /// A server without authentication on a store in memory.
    pub async fn open() -> Self {
        Self::with(settings(Authentication::None), MemoryStore::new()).await
    }

    /// A server with keys on a store in memory.
    pub async fn with_keys() -> Self {
        Self::with(settings(Authentication::Keys), MemoryStore::new()).await
    }

    /// A server of one's own.
    pub async fn with(settings: Settings, store: Arc<dyn Store>) -> Self {
        let builder =
            Server::builder(store, settings).registry(samples::registry()).functions(samples::functions);
        let mut server = builder.start(listener().await).await.unwrap();
        let admin_key = server.take_first_key().unwrap_or_default();
        Stand { server, admin_key }
    }

    /// An address on the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// The typed client, as administrator.
    pub fn client(&self) -> segno_api::Client {
        let client = segno_api::Client::new(&self.url("")).unwrap();
        if self.admin_key.is_empty() { client } else { client.key(self.admin_key.clone()) }
    }

    /// A client with a new key.
    pub async fn client_with(&self, role: Role, namespace: &str, tenant: &str) -> segno_api::Client {
        segno_api::Client::new(&self.url("")).unwrap().key(self.key(role, namespace, tenant).await)
    }

    /// A new key.
    pub async fn key(&self, role: Role, namespace: &str, tenant: &str) -> String {
        let grant = Grant { namespace: namespace.to_owned(), tenant: tenant.to_owned() };
        let request = CreateKey { name: format!("{role:?}"), role, grants: vec![grant], expires_at: None };
        self.client().create_key(&request).await.unwrap().secret
    }
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
