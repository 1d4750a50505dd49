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
    Ok(Preflight { address, tls: tls(settings)? })
}

/// The certificate and the key of the settings, read.
fn tls(settings: &Settings) -> Result<Option<TlsAcceptor>, ServerError> {
    match (&settings.server.tls_certificates, &settings.server.tls_key) {
        (Some(certificates), Some(key)) => Ok(Some(listen::tls(certificates, key)?)),
        _ => Ok(None),
    }
}

/// Reads what the settings name on this machine. Returns what a server starts without and what then
/// fails: a directory may be mounted later.
///
/// # Errors
/// As [`check_start`], for files that a server does not start without.
pub fn check_paths(settings: &Settings) -> Result<Vec<String>, ServerError> {
    tls(settings)?;
    let directories = [
        (
            "runbooks.csv_directory",
            &settings.runbooks.csv_directory,
            "batches whose members are in a file of it fail until it can be",
        ),
        (
            "stored_functions.secret_directory",
            &settings.stored_functions.secret_directory,
            "functions that use a secret of it fail until it can be",
        ),
    ];
    let unreadable = directories.into_iter().filter_map(|(setting, directory, effect)| {
        let directory = directory.as_ref()?;
        let error = std::fs::read_dir(directory).err()?;
        Some(format!("{setting}: {} cannot be read ({error}); {effect}", directory.display()))
    });
    Ok(unreadable.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refused_and_directories_are_named() {
        let mut settings = Settings::default();
        assert_eq!(check_paths(&settings).unwrap(), Vec::<String>::new());
        let here = std::env::temp_dir();
        settings.runbooks.csv_directory = Some(here);
        settings.stored_functions.secret_directory = Some("/nowhere/secrets".into());
        let warnings = check_paths(&settings).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("stored_functions.secret_directory: /nowhere/secrets"),
            "{warnings:?}"
        );
        settings.server.tls_certificates = Some("/nowhere.pem".into());
        settings.server.tls_key = Some("/nowhere.key".into());
        let error = check_paths(&settings).unwrap_err().to_string();
        assert!(error.contains("/nowhere.pem"), "{error}");
    }
}
