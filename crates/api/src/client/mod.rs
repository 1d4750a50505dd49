//! A client that speaks the API. One method per route, one file per resource.

mod actions;
mod archive;
mod audit;
mod automation;
mod backfills;
mod bus;
mod certificate;
mod dags;
mod dead_letters;
mod download;
mod error;
mod functions;
mod hooks;
mod instances;
mod invocations;
mod keys;
mod page;
mod pools;
mod recurring;
mod retry;
mod runbooks;
mod runs;
mod saved;
mod sessions;
mod sql;
mod stats;
mod stream;
mod system;
mod work;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use dags::LineageOf;
pub use download::Download;
pub use error::ClientError;
pub use functions::Expected;
pub use hooks::ListPayloads;
pub use page::PageRequest;
pub use runbooks::{ListBatches, ListMembers};
pub use runs::{ListRuns, ListTasks};
pub use stream::{EventStream, StreamEvent};

use retry::OnRetry;

/// Longest time until an answer begins, beyond what a call waits for by itself: longer than the 35 seconds within which a
/// server answers, so that its answer is heard.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// How long a call is repeated while the server cannot be reached, unless set otherwise.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// Longest time until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that name a proxy for plain HTTP, which may itself be reached by TLS.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

fn may_need_certificates(base: &Url) -> bool {
    base.scheme() != "http" || PROXIES.iter().any(|name| std::env::var_os(name).is_some())
}

/// Talks to a server, in one namespace and tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<String>,
    namespace: String,
    tenant: String,
    retry_for: Duration,
    on_retry: Option<OnRetry>,
}

impl Client {
    /// A client of the server at this address, as in `http://127.0.0.1:7070`.
    ///
    /// # Errors
    /// When the address is none.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let base: Url = address.parse().map_err(|error| {
            ClientError::Address(format!(
                "{address:?} is not the address of a server, as in http://127.0.0.1:7070: {error}"
            ))
        })?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            let text = format!("{address:?} is not the address of a server, as in http://127.0.0.1:7070");
            return Err(ClientError::Address(text));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        // Reading the certificates of the machine takes longer than a call does.
        let http = if may_need_certificates(&base) { http } else { http.tls_certs_only([]) };
        let http = http.build().map_err(ClientError::Unreachable)?;
        let (namespace, tenant) = ("default".to_owned(), "default".to_owned());
        Ok(Client { http, base, key: None, namespace, tenant, retry_for: RETRY_FOR, on_retry: None })
    }

    /// The same client with an API key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same client in another namespace and tenant.
    #[must_use]
    pub fn scope(mut self, namespace: impl Into<String>, tenant: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self.tenant = tenant.into();
        self
    }

    /// The same client, but a call is repeated for this long while the server cannot be reached or is busy, counted from the first
    /// try that failed; 30 seconds by default. A call is repeated only if that has one effect: every POST gets an
    /// `Idempotency-Key` for it, which costs the server a record. Zero sends each call once, without a key.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = time;
        self
    }

    /// The same client, but when the first repetition of a call has failed as well, and the call is
    /// repeated on, this is called with the failure: for telling users why they wait. At most once
    /// for each call.
    #[must_use]
    pub fn on_retry(mut self, notify: impl Fn(&ClientError) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(OnRetry::new(notify));
        self
    }

    /// Address of the server.
    pub fn address(&self) -> &str {
        self.base.as_str()
    }

    fn request(&self, method: Method, path: &[&str], wait: Duration) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if path.iter().any(|segment| matches!(*segment, "." | "..") || segment.contains(retry::DROPPED)) {
            url.set_fragment(Some(retry::LOST_SEGMENT));
        }
        url.query_pairs_mut().append_pair("namespace", &self.namespace).append_pair("tenant", &self.tenant);
        let mut request = self.http.request(method, url).timeout(ANSWER_TIMEOUT + wait);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if !wait.is_zero() {
            request = request.query(&[("wait_ms", wait.as_millis().to_string())]);
        }
        request
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ClientError> {
        self.read(self.request(Method::GET, path, Duration::ZERO)).await
    }

    async fn get_with<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.read(self.request(Method::GET, path, Duration::ZERO).query(query)).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.read(self.request(Method::POST, path, Duration::ZERO).json(body)).await
    }

    /// Sends a call and reads what it answers.
    async fn read<T: DeserializeOwned>(&self, call: RequestBuilder) -> Result<T, ClientError> {
        let (status, body) = self.call(call).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::Unreadable { status, reason: error.to_string() })
    }

    /// Sends a call whose answer says nothing but that it was done.
    async fn done(&self, call: RequestBuilder) -> Result<(), ClientError> {
        self.call(call).await.map(|_| ())
    }
}
