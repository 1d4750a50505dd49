//! Connections: how they are made, driven and encrypted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{StreamExt, poll_fn};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use segno::clock::{SystemClock, timeout};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::Host;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::OpenError;
use crate::options::{DEFAULT_PORT, Pooler, PostgresOptions};

/// How many times `connect_timeout` a host has in all, until it has answered that it takes writes. The time-out itself is
/// that of reaching one address.
const CONNECT_TIMEOUTS: u32 = 3;

/// What a connection does with a notification: the payload is the argument.
pub(crate) type OnNotification = Arc<dyn Fn(&str) + Send + Sync>;

/// A connection to the database. Ends when it is dropped.
pub(crate) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
}

impl Connection {
    /// For statements.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until the connection is gone.
    pub(crate) async fn closed(&mut self) {
        // How it ended does not matter: gone is gone.
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A statement under way is given up; whoever waits for it is told so.
        self.driver.abort();
    }
}

/// Cancels the statement of a connection.
pub(crate) struct Canceller {
    token: CancelToken,
    tls: Option<MakeRustlsConnect>,
}

impl Canceller {
    /// Requests it. The database does not tell whether there was anything to cancel.
    pub(crate) async fn cancel(self) {
        let requested = match self.tls {
            Some(tls) => self.token.cancel_query(tls).await,
            None => self.token.cancel_query(NoTls).await,
        };
        if let Err(error) = requested {
            tracing::debug!(%error, "a query cannot be cancelled; it ends by its time limit");
        }
    }
}

/// Makes connections.
pub(crate) struct Connector {
    servers: Vec<Config>,
    /// The server that took writes last, by its place: the first to be tried, so that one that is away is not waited for
    /// at every connection.
    last: AtomicUsize,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// For the statements of a store.
    pub(crate) fn for_statements(options: &PostgresOptions) -> Result<Self, OpenError> {
        Self::new(options, &options.servers)
    }

    /// For listening; `None` when nobody can.
    pub(crate) fn for_listening(options: &PostgresOptions) -> Result<Option<Self>, OpenError> {
        options.listen_servers().map(|servers| Self::new(options, servers)).transpose()
    }

    fn new(options: &PostgresOptions, servers: &[Config]) -> Result<Self, OpenError> {
        let mut servers = servers.to_vec();
        for config in &mut servers {
            if options.pooler == Pooler::Session && config.get_options().is_none() {
                let timeout_ms = options.statement_timeout.as_millis();
                config.options(format!(
                    "-c statement_timeout={timeout_ms} -c idle_in_transaction_session_timeout={timeout_ms}"
                ));
            }
        }
        let tls = options.may_encrypt().then(|| tls(options)).transpose()?;
        Ok(Connector { servers, last: AtomicUsize::new(0), tls })
    }

    /// Makes a connection to the first server that takes writes.
    pub(crate) async fn connect(&self, notified: Option<OnNotification>) -> Result<Connection, OpenError> {
        let mut errors = Vec::new();
        let first = self.last.load(Ordering::Relaxed);
        for place in (first..self.servers.len()).chain(0..first) {
            let server = &self.servers[place];
            match self.connect_to(server, notified.clone()).await {
                Ok(connection) => {
                    self.last.store(place, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) => errors.push((server, error)),
            }
        }
        Err(of_all(errors))
    }

    /// Cancels the statement that a connection runs, also after the connection was dropped.
    pub(crate) fn canceller(&self, connection: &Connection) -> Canceller {
        Canceller { token: connection.client.cancel_token(), tls: self.tls.clone() }
    }

    async fn connect_to(
        &self,
        server: &Config,
        notified: Option<OnNotification>,
    ) -> Result<Connection, OpenError> {
        let limit = server.get_connect_timeout().copied().unwrap_or_default() * CONNECT_TIMEOUTS;
        let made = timeout(&SystemClock, limit, async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = server.connect(tls.clone()).await?;
                    Ok(Connection { client, driver: drive(connection, notified) })
                }
                None => {
                    let (client, connection) = server.connect(NoTls).await?;
                    Ok(Connection { client, driver: drive(connection, notified) })
                }
            }
        });
        match made.await {
            Some(made) => made.map_err(explain_tls),
            None => Err(OpenError::Unavailable(format!("no answer while connecting within {limit:?}"))),
        }
    }
}

/// Why none of the servers can be used. One that is away may come back, so that counts most.
fn of_all(mut errors: Vec<(&Config, OpenError)>) -> OpenError {
    if errors.len() > 1 && errors.iter().any(|(_, error)| matches!(error, OpenError::Unavailable(_))) {
        let texts = errors.iter().map(|(server, error)| {
            let text = match error {
                OpenError::Unavailable(text) => text.clone(),
                other => other.to_string(),
            };
            format!("{}: {text}", place(server))
        });
        return OpenError::Unavailable(texts.collect::<Vec<_>>().join("; "));
    }
    match errors.pop() {
        Some((server, OpenError::Unavailable(text))) => {
            OpenError::Unavailable(format!("{}: {text}", place(server)))
        }
        Some((server, OpenError::Refused(text))) => OpenError::Refused(format!("{}: {text}", place(server))),
        Some((_, error)) => error,
        None => OpenError::Invalid("the URL of the database names no host".to_owned()),
    }
}

/// Where a server is and which database of it is meant, for messages. Nothing of the user or the password.
fn place(server: &Config) -> String {
    let port = server.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
    let database = server.get_dbname().or(server.get_user()).unwrap_or("of the user");
    format!("{}, port {port}, database {database}", host(server))
}

/// The host of a server, for messages.
fn host(server: &Config) -> String {
    match server.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "no host".to_owned(),
    }
}

/// Moves bytes between a client and the server until one of them is gone.
fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    notified: Option<OnNotification>,
) -> JoinHandle<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        let mut messages = poll_fn(move |context| connection.poll_message(context));
        while let Some(message) = messages.next().await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    if let Some(notified) = &notified {
                        notified(notification.payload());
                    }
                }
                Ok(AsyncMessage::Notice(notice)) => tracing::debug!(%notice, "the database says"),
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "a connection to the database ended");
                    return;
                }
            }
        }
    })
}

fn tls(options: &PostgresOptions) -> Result<MakeRustlsConnect, OpenError> {
    let mut roots = rustls::RootCertStore::empty();
    match &options.root_certificates {
        Some(path) => {
            let bad = |error: rustls::pki_types::pem::Error| {
                OpenError::Tls(format!("the certificates in {} cannot be read: {error}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(bad)? {
                roots.add(certificate.map_err(bad)?).map_err(|error| {
                    OpenError::Tls(format!("a certificate in {}: {error}", path.display()))
                })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError::Tls(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Says what to do about a certificate that was not accepted.
fn explain_tls(error: tokio_postgres::Error) -> OpenError {
    let text = crate::error::describe(&error);
    if text.contains("certificate") {
        return OpenError::Tls(format!(
            "{text}; give the authority that signed it with sslrootcert=FILE, or do without encryption with \
             sslmode=disable"
        ));
    }
    OpenError::from(error)
}
