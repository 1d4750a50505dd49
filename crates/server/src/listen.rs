//! Connections: accepted up to a limit, with or without TLS, with time limits on what clients send, and an end in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use segno::clock::{self, Clock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Largest head of a request in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most headers of a request.
const MAX_HEADERS: usize = 100;

/// Most requests at once on one HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;

/// After an accept that failed (too many open files), so long until the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What limits connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections at once; more wait to be accepted.
    pub max_connections: usize,
    /// Within this time the head of a request, and a TLS handshake, must be there.
    pub header_timeout: Duration,
}

/// Why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be used for TLS: {reason}", path.display())]
pub struct TlsError {
    path: PathBuf,
    reason: String,
}

/// Reads certificates and their key.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn tls(certificates: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |error: &dyn std::fmt::Display| TlsError { path: path.clone(), reason: error.to_string() }
    };
    let in_certificates = wrong(certificates);
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| in_certificates(&error))?;
    if chain.is_empty() {
        return Err(in_certificates(&"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key)(&error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| in_certificates(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until `stopping`, then lets open requests end.
pub struct Serving {
    /// What answers.
    pub router: Router,
    /// Certificates, if there are any.
    pub tls: Option<TlsAcceptor>,
    /// Limits.
    pub limits: Limits,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// When cancelled, nothing more is accepted.
    pub stopping: CancellationToken,
}

impl Serving {
    /// Accepts and serves connections until the end; resolves when the last connection is done.
    pub async fn run(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.limits.max_connections));
        let graceful = GracefulShutdown::new();
        let builder = self.builder();
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                accepted = accept(&listener, &places, &*self.clock) => accepted,
            };
            let (stream, place) = accepted;
            // Answers are small and must not wait for more.
            let _ = stream.set_nodelay(true);
            let connection = Connection {
                builder: builder.clone(),
                router: self.router.clone(),
                watcher: graceful.watcher(),
            };
            let (tls, clock, timeout) = (self.tls.clone(), self.clock.clone(), self.limits.header_timeout);
            tokio::spawn(async move {
                let _place = place;
                match tls {
                    None => connection.serve(stream).await,
                    Some(tls) => match clock::timeout(&*clock, timeout, tls.accept(stream)).await {
                        Some(Ok(stream)) => connection.serve(stream).await,
                        Some(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        None => tracing::debug!("a TLS handshake took too long"),
                    },
                }
            });
        }
        drop(listener);
        graceful.shutdown().await;
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_HTTP2_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            .keep_alive_interval(Some(self.limits.header_timeout))
            .keep_alive_timeout(self.limits.header_timeout);
        builder
    }
}

struct Connection {
    builder: Builder<TokioExecutor>,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
}

impl Connection {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = TowerToHyperService::new(self.router);
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            use hyper::service::Service as _;
            service.call(request)
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    clock: &dyn Clock,
) -> (TcpStream, tokio::sync::OwnedSemaphorePermit) {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock::sleep(clock, ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Binds an address, with an error that says what to do.
///
/// # Errors
/// When the address is taken or is not ours.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "{address} is in use by another process; stop it, or choose another address with --listen"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!("this process may not listen on {address}; choose a port above 1023")
        }
        _ => format!("{address} cannot be listened on: {error}"),
    })
}

/// Resolves when a future does, or when it is time to stop.
pub async fn until_stopped<T>(stopping: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stopping.cancelled() => None,
        done = work => Some(done),
    }
}
