//! Connections: accepted up to a limit, with or without TLS, with time limits on what peers send
//! and read, and an end in order.
//!
//! A connection has its turn like any other: after each request that was sent before the answer to
//! the one before it (pipelining) the others come first, and a peer that does not read its answers
//! gets no more than [`MAX_UNSENT_BYTES`] of them worked out in advance.
//!
//! | file | what |
//! |---|---|
//! | `connections` | which connections there are, and which gives way when there are too many |
//! | `activity` | what a connection is doing, and since when it keeps the server waiting |
//! | `arrival`, `answer` | bodies on their way in and out, and the memory that they take |
//! | `linger` | a connection that the server ends while its peer still sends |
//! | `descriptors` | open files |

mod activity;
mod answer;
mod arrival;
mod connections;
mod descriptors;
mod linger;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use segno::clock::{self, Clock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use activity::{Activity, Overdue, Patience, WatchedStream};
use answer::AnswerBody;
use arrival::ArrivingBody;
use connections::{Connections, MaxBytes, Place};
use linger::{LingeringStream, MAX_LINGERING};

use crate::ui;

/// Largest head of a request in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most headers of a request.
const MAX_HEADERS: usize = 100;

/// Most requests at once on one HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;

/// Most bytes of answers that one HTTP/2 stream keeps for a peer that does not read.
const MAX_HTTP2_SEND_BYTES: usize = 256 * 1024;

/// Most streams that a peer has opened and reset before they were looked at; more end the
/// connection.
const MAX_HTTP2_RESETS: usize = 20;

/// Most streams that the server resets because of a peer's errors; more end the connection.
const MAX_HTTP2_OWN_RESETS: usize = 256;

/// Most bytes of answers that the system keeps for a peer that does not read, beside what it has
/// on the way.
const MAX_UNSENT_BYTES: u32 = 128 * 1024;

/// Most bytes of bodies that are on their way in, of all connections, unless single bodies may be so
/// large that [`MIN_ARRIVING_BODIES`] of them take more.
const MAX_ARRIVING_BYTES: usize = 256 * 1024 * 1024;

/// So many bodies of the largest size may be on their way in at once.
const MIN_ARRIVING_BODIES: usize = 16;

/// Most bytes of answers that their peers have not read, of all connections.
pub const MAX_UNREAD_BYTES: usize = 256 * 1024 * 1024;

/// After an accept that failed (too many open files), so long until the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What limits connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most connections at once. A new one takes the place of one without a request.
    pub max_connections: usize,
    /// Within this time the head of a request, and a TLS handshake, must be there; idle connections
    /// end after it.
    pub header_timeout: Duration,
    /// A peer that reads nothing of its answers for this long is disconnected.
    pub write_timeout: Duration,
    /// Largest body of a request.
    pub max_body_bytes: usize,
    /// Most bytes of answers that were not read, of all connections. Beyond it, the connection gives way
    /// that has had such answers for the longest.
    pub max_unread_bytes: usize,
}

impl Limits {
    fn max_arriving_bytes(&self) -> usize {
        MAX_ARRIVING_BYTES.max(self.max_body_bytes.saturating_mul(MIN_ARRIVING_BODIES))
    }
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
    /// The path that it is served under, with a slash at both ends.
    pub base: Arc<str>,
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
        let max = descriptors::connections_within_limit(self.limits.max_connections);
        let bytes =
            MaxBytes { arriving: self.limits.max_arriving_bytes(), unread: self.limits.max_unread_bytes };
        let connections = Connections::new(max, bytes, self.clock.clone());
        let lingering = Arc::new(Semaphore::new(MAX_LINGERING));
        let builder = self.builder();
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                accepted = accept(&listener, &connections, &*self.clock) => accepted,
            };
            let (stream, peer, place) = accepted;
            prepare(&stream);
            let stream = LingeringStream::new(stream, place.activity.clone(), lingering.clone());
            let connection = Connection {
                builder: builder.clone(),
                router: self.router.clone(),
                base: self.base.clone(),
                peer: Peer(peer),
                patience: Patience { quiet: self.limits.header_timeout, write: self.limits.write_timeout },
                stopping: self.stopping.clone(),
                connections: connections.clone(),
            };
            let tls = self.tls.clone();
            tasks.spawn(async move {
                let displaced = place.displaced.clone();
                tokio::select! {
                    biased;
                    () = displaced.cancelled() => tracing::debug!("a quiet connection gives way to a new one"),
                    () = connection.run(stream, tls, &place.activity) => {}
                }
            });
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }

    /// Time limits are those of [`Activity`], for both protocols; hyper has the limits of size and
    /// number.
    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_HTTP2_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            .max_send_buf_size(MAX_HTTP2_SEND_BYTES)
            .max_pending_accept_reset_streams(MAX_HTTP2_RESETS)
            .max_local_error_reset_streams(MAX_HTTP2_OWN_RESETS)
            .keep_alive_interval(Some(self.limits.header_timeout))
            .keep_alive_timeout(self.limits.header_timeout);
        builder
    }
}

/// As an extension of a request: the address that it came from, which may be that of a proxy.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

struct Connection {
    builder: Builder<TokioExecutor>,
    router: Router,
    base: Arc<str>,
    peer: Peer,
    patience: Patience,
    stopping: CancellationToken,
    connections: Arc<Connections>,
}

impl Connection {
    /// Serves a connection to its end, after a TLS handshake if there are certificates.
    async fn run(self, stream: LingeringStream, tls: Option<TlsAcceptor>, activity: &Arc<Activity>) {
        let Some(tls) = tls else { return self.serve(stream, activity).await };
        match activity::within(activity, self.patience, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, activity).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        activity: &Arc<Activity>,
    ) {
        let service = TowerToHyperService::new(self.router);
        let (noted, connections, base) = (activity.clone(), self.connections, self.base);
        let peer = self.peer;
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            use hyper::service::Service as _;
            // Before the router, so that what matches is what is guarded.
            if let Some(inner) = ui::without_base(request.uri(), &base) {
                *request.uri_mut() = inner;
            }
            request.extensions_mut().insert(peer);
            let (is_pipelined, under_way) = (noted.is_pipelined(), noted.begin());
            let arriving = |body| ArrivingBody::new(body, connections.clone(), noted.clone());
            let answer = service.call(request.map(arriving));
            let connections = connections.clone();
            async move {
                if is_pipelined {
                    tokio::task::yield_now().await;
                }
                Ok::<_, Infallible>(answer.await?.map(|body| AnswerBody::new(body, under_way, connections)))
            }
        });
        let stream = TokioIo::new(WatchedStream::new(stream, activity.clone()));
        let mut connection = pin!(self.builder.serve_connection(stream, service));
        let mut is_ending = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended");
                    }
                    return;
                }
                () = self.stopping.cancelled(), if !is_ending => {}
                overdue = activity.overdue(self.patience) => {
                    tracing::debug!(?overdue, "a connection is closed: its peer keeps the server waiting");
                    // An idle peer is told first, so that a request which is on its way is not
                    // lost.
                    if is_ending || overdue == Overdue::NotReading || !activity.give_notice(self.patience) {
                        return;
                    }
                }
            }
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// Sets what the system does with the answers on a connection.
fn prepare(stream: &TcpStream) {
    // Answers are small and must not wait for more.
    let _ = stream.set_nodelay(true);
    // A system that does not have it keeps more.
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
}

/// The next connection, and its place.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
    clock: &dyn Clock,
) -> (TcpStream, IpAddr, Place) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer.ip(), connections.admit(peer.ip()).await),
            Err(error) => {
                // Out of open files, mostly: a quiet connection gives its own back.
                let displaced = connections.displace_one();
                tracing::warn!(%error, displaced, "a connection could not be accepted");
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Bytes of an answer.
    const ANSWER: usize = 8 * 1024 * 1024;

    #[tokio::test]
    async fn answers_that_are_not_read_take_no_more_memory_than_allowed() {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = CancellationToken::new();
        let serving = Serving {
            router: Router::new().fallback(async || vec![b'x'; ANSWER]),
            base: "/".into(),
            tls: None,
            limits: Limits {
                max_connections: 100,
                header_timeout: Duration::from_secs(60),
                write_timeout: Duration::from_secs(60),
                max_body_bytes: 1024,
                max_unread_bytes: 3 * ANSWER,
            },
            clock: segno::clock::SystemClock::shared(),
            stopping: stopping.clone(),
        };
        let served = tokio::spawn(serving.run(listener));
        let mut peers = Vec::new();
        for _ in 0..6 {
            let mut peer = TcpStream::connect(address).await.unwrap();
            peer.write_all(b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").await.unwrap();
            // The answer is under way once its first byte has come.
            assert_eq!(peer.read_u8().await.unwrap(), b'H');
            peers.push(peer);
        }
        let mut read = Vec::new();
        for mut peer in peers {
            let mut bytes = Vec::new();
            // A reset is an end too.
            let _ = peer.read_to_end(&mut bytes).await;
            read.push(bytes.len() >= ANSWER);
        }
        assert_eq!(read, [false, false, false, true, true, true], "the oldest unread answers gave way");
        stopping.cancel();
        served.await.unwrap();
    }

    #[tokio::test]
    async fn the_system_keeps_few_answers_for_a_peer_that_does_not_read() {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        prepare(&stream);
        assert_eq!(socket2::SockRef::from(&stream).tcp_notsent_lowat().unwrap(), MAX_UNSENT_BYTES);
    }
}
