//! Connections: how they are made, driven and encrypted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{StreamExt, poll_fn};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use segno::clock::{SystemClock, timeout};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::OpenError;
use crate::options::{Pooler, PostgresOptions};

/// Longest that making a connection may take in all, whatever the settings of the single steps say.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// What a connection does with a notification: the payload is the argument.
pub(crate) type OnNotification = Box<dyn Fn(&str) + Send + Sync>;

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

/// Makes connections.
pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// For the statements of a store.
    pub(crate) fn for_statements(options: &PostgresOptions) -> Result<Self, OpenError> {
        Self::new(options, options.config.clone())
    }

    /// For listening; `None` when nobody can.
    pub(crate) fn for_listening(options: &PostgresOptions) -> Result<Option<Self>, OpenError> {
        options.listen_config().map(|config| Self::new(options, config.clone())).transpose()
    }

    fn new(options: &PostgresOptions, mut config: Config) -> Result<Self, OpenError> {
        if options.pooler == Pooler::Session && config.get_options().is_none() {
            let timeout_ms = options.statement_timeout.as_millis();
            config.options(format!(
                "-c statement_timeout={timeout_ms} -c idle_in_transaction_session_timeout={timeout_ms}"
            ));
        }
        let tls = options.may_encrypt().then(|| tls(options)).transpose()?;
        Ok(Connector { config, tls })
    }

    /// Makes a connection.
    pub(crate) async fn connect(&self, notified: Option<OnNotification>) -> Result<Connection, OpenError> {
        let made = timeout(&SystemClock, CONNECT_LIMIT, async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Ok(Connection { client, driver: drive(connection, notified) })
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Ok(Connection { client, driver: drive(connection, notified) })
                }
            }
        });
        match made.await {
            Some(made) => made.map_err(explain_tls),
            None => Err(OpenError::Unavailable("no answer while connecting".to_owned())),
        }
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
