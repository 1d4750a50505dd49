//! Information for operators: counts of a store, and its size on disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use segno::store::{ProviderError, QueueDepths, SystemMetrics};
use serde::{Deserialize, Serialize};

use crate::commit::shared::Core;
use crate::disk::files::Files;
use crate::error::RowError;
use crate::operate::fill_marker::is_of_store;
use crate::rows::base::Size;
use crate::rows::keys::{self, AgeIndex, Key, Table};
use crate::rows::view::View;
use crate::store::EmbeddedStore;

const OPERATION: &str = "info";

/// Sizes and counts of a store, in the form in which processes exchange them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Process that has read the store: the one that has it open, or else the caller.
    pub process_id: u32,
    /// Version of the file format.
    pub format_version: u32,
    /// Files of the store, by name.
    pub files: Vec<FileInfo>,
    /// Rows in the state file, entries of indexes included.
    pub rows: u64,
    /// Bytes of the state file that rows use; the rest is index pages and room for more.
    pub row_bytes: u64,
    /// Bytes of the log that would be read again if the process was killed now.
    pub log_to_replay_bytes: u64,
    /// Instances by state.
    pub instances: InstanceCounts,
    /// Executions of all instances.
    pub executions: u64,
    /// Events of all executions.
    pub events: u64,
    /// What is queued.
    pub queues: Queues,
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// When the oldest instance was created, in Unix milliseconds.
    pub oldest_created_at_ms: Option<u64>,
    /// When the newest instance was created, in Unix milliseconds.
    pub newest_created_at_ms: Option<u64>,
}

/// A file of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// Instances by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InstanceCounts {
    /// All of them.
    pub total: u64,
    /// Their start lies ahead.
    pub pending: u64,
    /// Started and not ended.
    pub running: u64,
    /// Held by an operator or by an exhausted activity.
    pub paused: u64,
    /// Ended with a result.
    pub completed: u64,
    /// Ended with a failure.
    pub failed: u64,
    /// Ended because they were cancelled.
    pub cancelled: u64,
}

/// Queue lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queues {
    /// Messages for orchestrations that can be fetched.
    pub orchestrator: u64,
    /// Activities that can be fetched.
    pub worker: u64,
    /// Messages and activities whose time has not come.
    pub delayed: u64,
    /// Locked messages and activities.
    pub locked: u64,
}

impl From<SystemMetrics> for InstanceCounts {
    fn from(metrics: SystemMetrics) -> Self {
        InstanceCounts {
            total: metrics.total_instances,
            pending: metrics.pending_instances,
            running: metrics.running_instances,
            paused: metrics.paused_instances,
            completed: metrics.completed_instances,
            failed: metrics.failed_instances,
            cancelled: metrics.cancelled_instances,
        }
    }
}

impl From<QueueDepths> for Queues {
    fn from(depths: QueueDepths) -> Self {
        Queues {
            orchestrator: depths.orchestrator_queue,
            worker: depths.worker_queue,
            delayed: depths.delayed(),
            locked: depths.locked,
        }
    }
}

impl EmbeddedStore {
    /// Sizes and counts of the store. Records are counted by reading their keys; the store continues meanwhile.
    ///
    /// # Errors
    /// When the store is closed or cannot be read.
    pub async fn info(&self) -> Result<Info, ProviderError> {
        info(self.core(), self.files()).await
    }

    /// Whether there is a store in a directory, whole or not. Nothing is opened or made.
    pub fn is_in(path: impl AsRef<Path>) -> bool {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| is_of_store(&entry.file_name().to_string_lossy()))
    }
}

/// What there is to know of a store.
pub(crate) async fn info(core: &Core, files: &Arc<dyn Files>) -> Result<Info, ProviderError> {
    let (depths, log_to_replay_bytes) = {
        let mut shared = core.lock();
        shared.check_open(OPERATION)?;
        shared.state.advance(core.clock.now_ms());
        (shared.state.queue_depths(), shared.tail.logged_bytes())
    };
    let taken = core.read_snapshot(OPERATION, files).await?;
    let listed = list_files(files).map_err(|error| error.at(OPERATION))?;
    count(&taken.view, listed, log_to_replay_bytes, depths.into()).map_err(|error| error.at(OPERATION))
}

/// The files of a store, by name.
pub(crate) fn list_files(files: &Arc<dyn Files>) -> Result<Vec<FileInfo>, RowError> {
    let unreadable = |error: std::io::Error| RowError::Unreadable(error.to_string());
    let mut listed = Vec::new();
    for name in files.list().map_err(unreadable)? {
        // What is not a plain file, or has gone meanwhile, takes no room.
        if let Ok(bytes) = files.open(&name).and_then(|file| file.len()) {
            listed.push(FileInfo { name, bytes });
        }
    }
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(listed)
}

/// What there is to know of the rows of one moment.
pub(crate) fn count(
    view: &Arc<View>,
    files: Vec<FileInfo>,
    log_to_replay_bytes: u64,
    queues: Queues,
) -> Result<Info, RowError> {
    let metrics = view.meta.counters.metrics();
    let size = Size::of(view.rows.base())?;
    let mut records = BTreeMap::new();
    for row in view.walk(&keys::table(Table::Records)) {
        if let Some((kind, _)) = keys::record_name(&row?.0) {
            match records.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(records.insert(kind.to_owned(), 1)),
            }
        }
    }
    let by_age = AgeIndex::All.prefix();
    let newest = view.walk(&by_age).next().transpose()?.map(|(key, _)| key);
    let oldest = view.last_key(&by_age)?;
    let created = |key: Option<Key>| Some(keys::aged(&key?, by_age.len())?.0);
    Ok(Info {
        process_id: std::process::id(),
        format_version: view.rows.base().format()?,
        files,
        rows: size.rows,
        row_bytes: size.stored_bytes(),
        log_to_replay_bytes,
        instances: metrics.into(),
        executions: metrics.total_executions,
        events: metrics.total_events,
        queues,
        records,
        oldest_created_at_ms: created(oldest),
        newest_created_at_ms: created(newest),
    })
}
