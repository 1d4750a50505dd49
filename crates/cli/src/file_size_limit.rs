//! A process whose files may not grow any more (`ulimit -f`, `LimitFSIZE=` of systemd) is ended by
//! `SIGXFSZ` without a line, unless it handles the signal: then the write fails as on a full disk,
//! and the store refuses writes until there is room.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Lets writes beyond the limit fail instead of ending the process. The handler stays for the life
/// of the process.
pub fn fail_writes() {
    // Without a handler the process works as long as it stays below the limit.
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        eprintln!("the limit of file sizes ends this process when it is reached: {error}");
    }
}
