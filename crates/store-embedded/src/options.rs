//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};

use crate::files::Files;

/// Changes in memory after which a checkpoint is made.
const CHECKPOINT_BYTES: usize = 32 * 1024 * 1024;

/// Changes in memory at which commits wait for a checkpoint that is being made.
const MAX_ACTIVE_BYTES: usize = 3 * CHECKPOINT_BYTES;

/// Length of a batch at which commits wait for the writer.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// How long the writer waits before it tries a full disk again.
const RETRY_FULL_DISK_AFTER: Duration = Duration::from_millis(500);

/// Settings of a store; [`OpenOptions::default`] is right for production.
#[derive(Clone)]
pub struct OpenOptions {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) limits: Limits,
    pub(crate) unfinished_import: UnfinishedImport,
}

/// What opening does with a store whose import was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnfinishedImport {
    Refuse,
    Accept,
}

/// Sizes that trigger or bound something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) checkpoint_bytes: usize,
    pub(crate) max_active_bytes: usize,
    pub(crate) max_batch_bytes: usize,
    pub(crate) retry_full_disk_after: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let limits = Limits {
            checkpoint_bytes: CHECKPOINT_BYTES,
            max_active_bytes: MAX_ACTIVE_BYTES,
            max_batch_bytes: MAX_BATCH_BYTES,
            retry_full_disk_after: RETRY_FULL_DISK_AFTER,
        };
        let unfinished_import = UnfinishedImport::Refuse;
        OpenOptions { clock: SystemClock::shared(), files: None, limits, unfinished_import }
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
    pub fn for_import(mut self) -> Self {
        self.unfinished_import = UnfinishedImport::Accept;
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
        self.limits.checkpoint_bytes = bytes;
        self.limits.max_active_bytes = bytes.saturating_mul(MAX_ACTIVE_BYTES / CHECKPOINT_BYTES);
        self
    }

    /// How long the writer waits before it tries a full disk again.
    #[must_use]
    pub fn retry_full_disk_after(mut self, wait: Duration) -> Self {
        self.limits.retry_full_disk_after = wait;
        self
    }
}
