//! Everything that a run of a tool has started, and the end of it.
//!
//! A tool leads a process group of its own, and signals go to the whole group. A descendant that leaves the group
//! (`setsid`, a double fork) still has the variable [`MARKER`] in its environment, by which it is found in `/proc` and killed.
//! Only one that leaves the group *and* clears its environment gets away; so does everything on systems without `/proc`.
//! Whatever happens to the run, dropping the group kills it.

use std::fs::{self, File};
use std::io;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::process::{ChildStderr, ChildStdout, Command};

/// The variable that is different for every run and the same in all that the run starts.
pub(super) const MARKER: &str = "SEGNO_RUN";

/// How often `/proc` is looked through: a process may fork while it is being looked for.
const MAX_SEARCHES: usize = 8;

/// A running tool with all that it has started.
pub(super) struct Group {
    child: Box<dyn ChildWrapper>,
    marker: String,
    stopped: bool,
}

/// The ends of the pipes that a tool writes to.
pub(super) struct Pipes {
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Group {
    /// Starts a tool in a group of its own. Its input is a file and not a pipe: it is there as a whole before the tool is, so a
    /// tool whose node dies never takes a part of its input, or nothing, for all of it.
    pub(super) fn start(mut command: Command, input: File, marker: String) -> io::Result<(Self, Pipes)> {
        command.env(MARKER, &marker);
        command.stdin(Stdio::from(input)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut wrapped = CommandWrap::from(command);
        let mut child = wrapped.wrap(KillOnDrop).wrap(ProcessGroup::leader()).spawn()?;
        let (Some(stdout), Some(stderr)) = (child.stdout().take(), child.stderr().take()) else {
            return Err(io::Error::other("a pipe to the tool is missing"));
        };
        Ok((Group { child, marker, stopped: false }, Pipes { stdout, stderr }))
    }

    /// Waits until the tool itself has ended; what it started may live on.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks the whole group to end.
    pub(super) fn terminate(&self) {
        // Nobody left to ask is fine.
        let _ = self.child.signal(Signal::SIGTERM as i32);
    }

    /// Kills what is left of the group after the tool itself has ended. What has left the group is left alone: a tool may
    /// mean to start a service.
    pub(super) fn sweep(&mut self) {
        let _ = self.child.start_kill();
        self.stopped = true;
    }

    /// Kills the group and what has left it, and waits for the tool's end.
    pub(super) async fn kill(&mut self) {
        let _ = self.child.start_kill();
        let marker = self.marker.clone();
        let _ = tokio::task::spawn_blocking(move || kill_marked(&marker)).await;
        self.stopped = true;
        let _ = self.child.wait().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.child.start_kill();
            kill_marked(&self.marker);
        }
    }
}

/// Kills every process that has the marker in its environment, until there is none.
fn kill_marked(marker: &str) {
    let entry = format!("{MARKER}={marker}");
    for _ in 0..MAX_SEARCHES {
        let found = marked(&entry);
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = kill(process, Signal::SIGKILL);
        }
    }
    tracing::warn!(marker, "a tool keeps starting processes while it is being killed; some may be left");
}

/// Processes of ours with this entry in their environment. One that has ended has none any more.
fn marked(entry: &str) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let has_entry = |id: &i32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    };
    ids.filter(has_entry).map(Pid::from_raw).collect()
}
