//! What can be known to be wrong before a server touches its store, so that a start that is refused leaves no new store
//! behind.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::listen;
use crate::server::ServerError;
use crate::settings::{Authentication, Settings};

/// Where a server without keys may listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithoutKeys {
    /// On addresses that only this machine reaches.
    #[default]
    ThisMachine,
    /// On every address (`--insecure`).
    Anywhere,
}

/// What a start needs and has been checked.
pub(crate) struct Preflight {
    pub address: SocketAddr,
    pub tls: Option<TlsAcceptor>,
}

/// Checks what [`ServerBuilder::start`](crate::ServerBuilder::start) checks before it uses the store.
///
/// # Errors
/// Says what cannot be used and what to do.
pub fn check_start(
    settings: &Settings,
    listener: &TcpListener,
    without_keys: WithoutKeys,
) -> Result<(), ServerError> {
    prepare(settings, listener, without_keys).map(drop)
}

pub(crate) fn prepare(
    settings: &Settings,
    listener: &TcpListener,
    without_keys: WithoutKeys,
) -> Result<Preflight, ServerError> {
    settings.check()?;
    let address = listener.local_addr().map_err(ServerError::Listener)?;
    let has_keys = settings.auth.mode == Authentication::Keys;
    if !has_keys && !address.ip().is_loopback() && without_keys == WithoutKeys::ThisMachine {
        return Err(ServerError::Open(address));
    }
    let tls = match (&settings.server.tls_certificates, &settings.server.tls_key) {
        (Some(certificates), Some(key)) => Some(listen::tls(certificates, key)?),
        _ => None,
    };
    Ok(Preflight { address, tls })
}
