//! Tells the service manager how a server is: the protocol of `sd_notify`, which is one datagram to the socket that
//! `NOTIFY_SOCKET` names. With `Type=notify` systemd takes a service for started once it has said so.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What a service manager is told.
#[derive(Debug, Clone, Copy)]
pub enum State {
    /// The server answers.
    Ready,
    /// The server has begun to stop.
    Stopping,
}

impl State {
    fn message(self) -> &'static [u8] {
        match self {
            State::Ready => b"READY=1",
            State::Stopping => b"STOPPING=1",
        }
    }
}

/// Tells the service manager, if there is one. What cannot be told is logged: the server runs all the same.
pub fn tell(state: State) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, ?socket, ?state, "the service manager could not be notified");
    }
}

fn send(socket: &OsString, state: State) -> std::io::Result<()> {
    let address = address(socket)?;
    UnixDatagram::unbound()?.send_to_addr(state.message(), &address).map(drop)
}

/// A path, or a name that is in no directory if it begins with `@`.
fn address(socket: &OsStr) -> std::io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(OsStr::from_bytes(socket.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_name_in_no_directory_are_both_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify").into_os_string();
        let name = OsString::from(format!("@segno-notify-{}", std::process::id()));
        for (socket, state, told) in
            [(path, State::Ready, &b"READY=1"[..]), (name, State::Stopping, b"STOPPING=1")]
        {
            let manager = UnixDatagram::bind_addr(&address(&socket).unwrap()).unwrap();
            send(&socket, state).unwrap();
            let mut buffer = [0; 64];
            let length = manager.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], told);
        }
    }
}
