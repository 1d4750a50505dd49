//! The control socket: other processes query a store that is in use, by a socket in its directory, for
//! its owner only.
//!
//! The client sends one line, `SEGNO 1 info` or `SEGNO 1 export`. The answer is frames: a byte for their kind, four bytes
//! length, and that much content; `docs/embedded-format.md` has the kinds. One asker at a time, on one thread. An asker that does not
//! read for a while is cut off.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use segno::store::{ContentItem, ErrorKind, Export, ProviderError, decode_item, encode_item};

use crate::commit::shared::Core;
use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::operate::export::SnapshotExport;
use crate::operate::info::{Info, info};

/// Name of the socket.
const SOCKET: &str = "control.sock";

/// The socket while it is being made.
const NEW_SOCKET: &str = "control.tmp";

/// What a request starts with: name and version of the protocol.
const GREETING: &str = "SEGNO 1 ";

/// Longest request.
const MAX_REQUEST_BYTES: u64 = 64;

/// How long the store waits for an asker that neither sends nor reads.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an asker waits for a connection. The system makes it, so that only a queue of askers is
/// in the way.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long an asker waits while the store sends nothing. Every byte counts as life.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// Longest frame that an asker takes.
const MAX_FRAME_BYTES: usize = 1 << 30;

// Kinds of frames. Numbers are never reused.
const ITEMS: u8 = 1;
const END: u8 = 2;
const FAILED: u8 = 3;
const INFO: u8 = 4;
const DAMAGED: u8 = 5;

/// A short path into a directory, whatever the length of its own: the name of a socket has 108 bytes at most.
struct ShortPath {
    directory: File,
    long: PathBuf,
}

impl ShortPath {
    fn new(directory: &Path) -> io::Result<Self> {
        Ok(ShortPath { directory: File::open(directory)?, long: directory.to_owned() })
    }

    fn to(&self, name: &str) -> PathBuf {
        if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()))
        } else {
            self.long.join(name)
        }
    }
}

/// Answers askers until it is stopped.
pub(crate) struct ControlServer {
    directory: PathBuf,
    shared: Arc<ServerShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ServerShared {
    is_closing: AtomicBool,
    /// The client that is being answered.
    asker: Mutex<Option<UnixStream>>,
}

impl ControlServer {
    /// Listens in a directory whose lock the caller holds, so what lies there is left over.
    pub(crate) fn start(directory: &Path, core: Arc<Core>, files: Arc<dyn Files>) -> io::Result<Self> {
        let short = ShortPath::new(directory)?;
        let _left_over = fs::remove_file(directory.join(NEW_SOCKET));
        let listener = UnixListener::bind(short.to(NEW_SOCKET))?;
        // It gets its name when no other user can use it.
        fs::set_permissions(directory.join(NEW_SOCKET), Permissions::from_mode(0o600))?;
        fs::rename(directory.join(NEW_SOCKET), directory.join(SOCKET))?;
        let shared = Arc::new(ServerShared::default());
        let serving = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("segno-control".to_owned())
            .spawn(move || serve(&listener, &serving, &core, &files))?;
        Ok(ControlServer { directory: directory.to_owned(), shared, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        if let Some(asker) = &*self.shared.asker.lock().unwrap_or_else(PoisonError::into_inner) {
            // Gone already is as good.
            let _ = asker.shutdown(std::net::Shutdown::Both);
        }
        // A last asker wakes the thread, which then sees that it is over.
        let woken = ShortPath::new(&self.directory).and_then(|short| UnixStream::connect(short.to(SOCKET)));
        let _ = fs::remove_file(self.directory.join(SOCKET));
        match (woken, self.thread.take()) {
            (Ok(_), Some(thread)) => drop(thread.join()),
            // The socket was removed: the thread waits in vain until the process ends.
            (Err(error), _) => tracing::warn!(%error, "the control socket could not be closed"),
            (Ok(_), None) => {}
        }
    }
}

fn serve(listener: &UnixListener, shared: &ServerShared, core: &Core, files: &Arc<dyn Files>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!(%error, "the control socket cannot be served"),
    };
    for asker in listener.incoming() {
        if shared.is_closing.load(Ordering::SeqCst) {
            return;
        }
        let Ok(asker) = asker else { continue };
        let known = asker.try_clone().ok();
        *shared.asker.lock().unwrap_or_else(PoisonError::into_inner) = known;
        // A close looks for a client after it has set its flag, and this checks the flag after it has stored
        // the client.
        if shared.is_closing.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = runtime.block_on(answer(asker, core, files)) {
            tracing::debug!(%error, "an asker on the control socket went away");
        }
        *shared.asker.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

async fn answer(mut asker: UnixStream, core: &Core, files: &Arc<dyn Files>) -> io::Result<()> {
    asker.set_read_timeout(Some(PATIENCE))?;
    asker.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    BufReader::new(asker.try_clone()?.take(MAX_REQUEST_BYTES)).read_line(&mut request)?;
    let outcome = match request.trim_end().strip_prefix(GREETING) {
        Some("info") => send_info(&mut asker, core, files).await?,
        Some("export") => send_export(&mut asker, core, files).await?,
        _ => {
            let text = "this store understands \"SEGNO 1 info\" and \"SEGNO 1 export\"; use the same version of segno";
            Err(ProviderError::new(ErrorKind::Invalid, "control", text))
        }
    };
    match outcome {
        Ok(()) => frame(&mut asker, END, &[]),
        Err(error) => {
            let kind = if error.kind() == ErrorKind::Corrupt { DAMAGED } else { FAILED };
            frame(&mut asker, kind, error.message().as_bytes())
        }
    }
}

async fn send_info(
    asker: &mut UnixStream,
    core: &Core,
    files: &Arc<dyn Files>,
) -> io::Result<Result<(), ProviderError>> {
    match info(core, files).await {
        Ok(info) => {
            let json = serde_json::to_vec(&info)?;
            frame(asker, INFO, &json).map(Ok)
        }
        Err(error) => Ok(Err(error)),
    }
}

async fn send_export(
    asker: &mut UnixStream,
    core: &Core,
    files: &Arc<dyn Files>,
) -> io::Result<Result<(), ProviderError>> {
    let taken = match core.read_snapshot("export", files).await {
        Ok(taken) => taken,
        Err(error) => return Ok(Err(error)),
    };
    let failed = |error: crate::error::RowError| error.at("export");
    let mut export = match SnapshotExport::new(taken) {
        Ok(export) => export,
        Err(error) => return Ok(Err(failed(error))),
    };
    let mut content = Vec::new();
    loop {
        let items = match export.next_batch() {
            Ok(items) if items.is_empty() => return Ok(Ok(())),
            Ok(items) => items,
            Err(error) => return Ok(Err(failed(error))),
        };
        content.clear();
        for item in &items {
            let start = content.len();
            content.extend_from_slice(&[0; 4]);
            encode_item(item, &mut content);
            let len = u32::try_from(content.len() - start - 4).expect("no item has 4 GiB");
            content[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        frame(asker, ITEMS, &content)?;
    }
}

fn frame(asker: &mut UnixStream, kind: u8, content: &[u8]) -> io::Result<()> {
    let len = u32::try_from(content.len()).expect("a frame is far below 4 GiB");
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&len.to_le_bytes());
    asker.write_all(&head)?;
    asker.write_all(content)
}

/// A store that another process has open.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    /// The process that has it open, if that is known.
    holder: Option<u32>,
}

impl Control {
    /// Connects to the process that has the store in a directory open.
    ///
    /// # Errors
    /// When no process answers there, or not within a few seconds.
    pub fn connect(directory: impl AsRef<Path>) -> Result<Self, ProviderError> {
        let directory = directory.as_ref();
        let holder = Directory::holder(directory);
        let connect = || -> io::Result<UnixStream> {
            let stream = connect_within(CONNECT_LIMIT, ShortPath::new(directory)?)?;
            stream.set_read_timeout(Some(SILENCE_LIMIT))?;
            stream.set_write_timeout(Some(SILENCE_LIMIT))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error| away(holder, CONNECT_LIMIT, &error))?;
        Ok(Control { stream, holder })
    }

    /// What there is to know of the store.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub fn info(mut self) -> Result<Info, ProviderError> {
        self.ask("info")?;
        match self.next_frame()? {
            (INFO, json) => serde_json::from_slice(&json).map_err(|error| strange(&error.to_string())),
            (kind, _) => Err(strange(&format!("a frame of kind {kind}"))),
        }
    }

    /// Everything that the store holds.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn export(mut self) -> Result<impl Export, ProviderError> {
        self.ask("export")?;
        Ok(ControlExport { control: self, has_ended: false })
    }

    fn ask(&mut self, request: &str) -> Result<(), ProviderError> {
        let request = format!("{GREETING}{request}\n");
        self.stream.write_all(request.as_bytes()).map_err(|error| self.silent(&error))
    }

    /// The error of a store that does not answer.
    fn silent(&self, error: &io::Error) -> ProviderError {
        away(self.holder, SILENCE_LIMIT, error)
    }

    fn next_frame(&mut self) -> Result<(u8, Vec<u8>), ProviderError> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).map_err(|error| self.silent(&error))?;
        let [kind, len @ ..] = head;
        let len = u32::from_le_bytes(len) as usize;
        if len > MAX_FRAME_BYTES {
            return Err(strange("a frame that is too long"));
        }
        let mut content = vec![0; len];
        self.stream.read_exact(&mut content).map_err(|error| self.silent(&error))?;
        let text = || String::from_utf8_lossy(&content).into_owned();
        match kind {
            FAILED => Err(ProviderError::unavailable("control", text())),
            DAMAGED => Err(ProviderError::new(ErrorKind::Corrupt, "control", text())),
            _ => Ok(()),
        }?;
        Ok((kind, content))
    }
}

/// Connects in a thread of its own, because the call itself has no time limit.
fn connect_within(limit: Duration, short: ShortPath) -> io::Result<UnixStream> {
    let (connected, outcome) = mpsc::sync_channel(1);
    // The path needs its directory until the connection is there.
    let connect = move || drop(connected.send(UnixStream::connect(short.to(SOCKET))));
    thread::Builder::new().name("segno-connect".to_owned()).spawn(connect)?;
    outcome.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The error of a process that has the store open and does not answer.
fn away(holder: Option<u32>, limit: Duration, error: &io::Error) -> ProviderError {
    let process = match holder {
        Some(id) => format!("process {id}, which has the store open,"),
        None => "the process that has the store open".to_owned(),
    };
    let reason = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("not a byte within {} seconds", limit.as_secs())
        }
        _ => error.to_string(),
    };
    let text = format!(
        "{process} does not answer ({reason}); check that it runs and is not suspended, then try again"
    );
    ProviderError::unavailable("control", text)
}

fn strange(what: &str) -> ProviderError {
    let text =
        format!("the process that has the store open sent {what}; use the same version of segno as it does");
    ProviderError::new(ErrorKind::Invalid, "control", text)
}

struct ControlExport {
    control: Control,
    has_ended: bool,
}

#[async_trait]
impl Export for ControlExport {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        if self.has_ended {
            return Ok(Vec::new());
        }
        match self.control.next_frame()? {
            (ITEMS, content) => decode_items(&content),
            (END, _) => {
                self.has_ended = true;
                Ok(Vec::new())
            }
            (kind, _) => Err(strange(&format!("a frame of kind {kind}"))),
        }
    }
}

fn decode_items(content: &[u8]) -> Result<Vec<ContentItem>, ProviderError> {
    let cut = || strange("an item that is cut");
    let mut items = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk().ok_or_else(cut)?;
        let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(cut)?;
        items.push(decode_item(bytes)?);
        rest = after;
    }
    Ok(items)
}
