//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};

use crate::disk::files::Files;
use crate::log::tail::{Tail, TailLimits};
use crate::operate::fill_marker::FilledBy;
use crate::rows::overlay::Overlay;

/// Changes in memory after which a checkpoint is made.
const CHECKPOINT_BYTES: usize = 64 * 1024 * 1024;

/// Changed rows after which a checkpoint is made.
const CHECKPOINT_ROWS: usize = 400_000;

/// Length of the log after which a checkpoint is made.
const CHECKPOINT_LOG_BYTES: u64 = 96 * 1024 * 1024;

/// Age of the oldest change at which a checkpoint is made.
const CHECKPOINT_AGE: Duration = Duration::from_secs(60);

/// When a checkpoint is being made, commits wait at this many times the bounds that make one due.
const MAX_ACTIVE: usize = 2;

/// Length of a batch at which commits wait for the writer.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// A state file that takes no more room than this is never compacted.
const COMPACT_ABOVE_BYTES: u64 = 16 * 1024 * 1024;

/// How long a full disk is left alone before it is tried again.
const RETRY_FULL_DISK_AFTER: Duration = Duration::from_millis(500);

/// Settings of a store; [`OpenOptions::default`] is right for production.
#[derive(Clone)]
pub struct OpenOptions {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) limits: Limits,
    pub(crate) unfinished_import: UnfinishedImport,
    pub(crate) control_socket: ControlSocket,
}

/// Whether other processes can query an open store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlSocket {
    Listen,
    None,
}

/// What opening does with a store whose import was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnfinishedImport {
    Refuse,
    /// Fills it again.
    Accept(FilledBy),
}

/// Sizes that trigger or bound something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) tail: TailLimits,
    pub(crate) max_batch_bytes: usize,
    pub(crate) compact_above_bytes: u64,
    pub(crate) retry_full_disk_after: Duration,
}

impl Limits {
    /// Whether there is so much beyond the checkpoint that is being made that commits must wait for it.
    pub(crate) fn is_overloaded(&self, changes: &Overlay, tail: &Tail) -> bool {
        changes.bytes() > self.tail.bytes.saturating_mul(MAX_ACTIVE)
            || changes.len() > self.tail.rows.saturating_mul(MAX_ACTIVE)
            || tail.logged_bytes() > self.tail.logged_bytes.saturating_mul(MAX_ACTIVE as u64)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        let tail = TailLimits {
            bytes: CHECKPOINT_BYTES,
            rows: CHECKPOINT_ROWS,
            logged_bytes: CHECKPOINT_LOG_BYTES,
            age: CHECKPOINT_AGE,
        };
        let limits = Limits {
            tail,
            max_batch_bytes: MAX_BATCH_BYTES,
            compact_above_bytes: COMPACT_ABOVE_BYTES,
            retry_full_disk_after: RETRY_FULL_DISK_AFTER,
        };
        let (unfinished_import, control_socket) = (UnfinishedImport::Refuse, ControlSocket::Listen);
        OpenOptions { clock: SystemClock::shared(), files: None, limits, unfinished_import, control_socket }
    }
}

impl OpenOptions {
    /// The clock that alone decides visibility and expiry.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the store in order to fill it. A store whose import was interrupted is opened too; it refuses everything
    /// but another import, which begins again from nothing.
    #[must_use]
    pub fn for_import(self) -> Self {
        self.to_be_filled(FilledBy::Import)
    }

    /// The same, for a command. A new directory is marked until the import has finished, and only the same command can fill it again.
    #[must_use]
    pub fn to_be_filled(mut self, by: FilledBy) -> Self {
        self.unfinished_import = UnfinishedImport::Accept(by);
        self
    }

    /// No socket in the directory. Other processes then get no backup and no information while the store is open.
    #[must_use]
    pub fn without_control_socket(mut self) -> Self {
        self.control_socket = ControlSocket::None;
        self
    }

    /// Where the files are, instead of in a real directory; for tests.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = Some(files);
        self
    }

    /// Changes in memory after which a checkpoint is made. Less makes opening after a crash quicker and writes more.
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: usize) -> Self {
        self.limits.tail.bytes = bytes;
        self
    }

    /// Age of the oldest change at which a checkpoint is made, however little changed. Nothing happens while nothing
    /// changes.
    #[must_use]
    pub fn checkpoint_age(mut self, age: Duration) -> Self {
        self.limits.tail.age = age;
        self
    }

    /// Size of the base file from which on it is compacted when less than half of it is in use.
    #[must_use]
    pub fn compact_above(mut self, bytes: u64) -> Self {
        self.limits.compact_above_bytes = bytes;
        self
    }

    /// How long a full disk is left alone before it is tried again.
    #[must_use]
    pub fn retry_full_disk_after(mut self, wait: Duration) -> Self {
        self.limits.retry_full_disk_after = wait;
        self
    }
}
