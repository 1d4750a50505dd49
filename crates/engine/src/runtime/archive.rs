//! The archive hook: retention passes copies of what it is about to remove, and removes only what is unchanged.

use std::sync::Arc;

use async_trait::async_trait;

use crate::client::Instance;
use crate::event::Event;
use crate::store::{ErrorKind, HistoryQuery, InstanceVersion, ProviderError, Store};
use crate::telemetry;

/// Bytes of stored events after which a batch is passed on.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// Instances and histories after which a batch is passed on.
const BATCH_ROWS: usize = 2_000;

/// Events that are read at once: each of them may be as large as a payload.
const EVENTS_PER_READ: usize = 64;

/// Keeps what retention removes.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Whether there is a place for instances with this id. Trees with an instance that has none stay in the store.
    fn has_place_for(&self, instance: &str) -> bool;

    /// Stores copies, durably when it returns. The same rows come again, in other batches, when a node ends before it has removed
    /// them from the store.
    ///
    /// # Errors
    /// When a copy may not be durable. Nothing of the batch is removed then.
    async fn store(&self, batch: ArchiveBatch) -> Result<(), ArchiveError>;

    /// The content passed since the last call is removed from the store, except these instances, which stay as they were
    /// or changed. A node that ends before this call leaves all of them in doubt.
    ///
    /// # Errors
    /// When that cannot be stored. All of them stay in doubt then.
    async fn settle(&self, kept: Vec<InstanceVersion>) -> Result<(), ArchiveError>;
}

/// Why copies are not stored.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(pub String);

/// Copies of instances and histories. The history of an instance comes before it or together with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArchiveBatch {
    /// Parts of histories.
    pub histories: Vec<ArchivedHistory>,
    /// Instances, all of which have ended.
    pub instances: Vec<Instance>,
}

/// A part of the history of one execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedHistory {
    /// The instance.
    pub instance: String,
    /// When the instance was created, in Unix milliseconds: distinguishes instances with the same id.
    pub created_at_ms: u64,
    /// The execution.
    pub execution_id: u64,
    /// When the instance ended, or the execution if that is removed alone, in Unix milliseconds.
    pub ended_at_ms: u64,
    /// Events, ascending.
    pub events: Vec<Event>,
}

/// Why copying was interrupted.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    #[error("{0}")]
    Store(#[from] ProviderError),
    #[error("the archive did not take what is to be removed: {0}")]
    Archive(#[from] ArchiveError),
}

/// Why a tree is not copied, as a label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// The archive has no place for one of its ids.
    NoPlace,
    /// Something of it cannot be read.
    Unreadable,
    /// It changed since it was listed.
    Changed,
}

impl Kept {
    fn label(self) -> &'static str {
        match self {
            Kept::NoPlace => "no_place",
            Kept::Unreadable => "unreadable",
            Kept::Changed => "changed",
        }
    }
}

/// Collects copies and hands them out, a batch at a time.
pub(super) struct Copier<'a> {
    archive: &'a dyn Archive,
    store: &'a Arc<dyn Store>,
    batch: ArchiveBatch,
    bytes: usize,
    /// All instances that were passed on, or will be.
    instances: Vec<InstanceVersion>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(archive: &'a dyn Archive, store: &'a Arc<dyn Store>) -> Self {
        Copier { archive, store, batch: ArchiveBatch::default(), bytes: 0, instances: Vec::new() }
    }

    /// Copies a tree. `None` when it is to stay, which is counted and logged.
    pub(super) async fn tree(&mut self, tree: &[InstanceVersion]) -> Result<Option<()>, CopyError> {
        // Checked first, so that as little as possible is archived of a tree that stays.
        if !tree.iter().all(|one| self.archive.has_place_for(&one.instance_id)) {
            return Ok(keep(tree, Kept::NoPlace, "the archive has no place for its id"));
        }
        for listed in tree {
            let copied = match self.instance(listed).await {
                Err(CopyError::Store(error)) if error.kind() == ErrorKind::Corrupt => {
                    return Ok(keep(tree, Kept::Unreadable, &error.to_string()));
                }
                Err(CopyError::Store(error)) if error.kind() == ErrorKind::NotFound => Err(Kept::Changed),
                copied => copied?,
            };
            if let Err(why) = copied {
                return Ok(keep(tree, why, &listed.instance_id));
            }
        }
        Ok(Some(()))
    }

    async fn instance(&mut self, listed: &InstanceVersion) -> Result<Result<(), Kept>, CopyError> {
        let id = &listed.instance_id;
        let info = self.store.get_instance_info(id).await?;
        let Some(ended_at_ms) = info.completed_at_ms.filter(|_| info.version() == *listed) else {
            return Ok(Err(Kept::Changed));
        };
        let instance = Instance::from_info(info);
        if instance.unreadable.is_some() {
            return Ok(Err(Kept::Unreadable));
        }
        for execution_id in self.store.list_executions(id).await? {
            self.execution(id, instance.created_at_ms, execution_id, ended_at_ms).await?;
        }
        self.batch.instances.push(instance);
        self.instances.push(listed.clone());
        self.hand_out_full().await?;
        Ok(Ok(()))
    }

    /// Copies the history of one execution.
    pub(super) async fn execution(
        &mut self,
        instance: &str,
        created_at_ms: u64,
        execution_id: u64,
        ended_at_ms: u64,
    ) -> Result<(), CopyError> {
        let mut after_event_id = 0;
        loop {
            let query = HistoryQuery {
                instance_id: instance.to_owned(),
                execution_id,
                after_event_id,
                limit: EVENTS_PER_READ,
            };
            let page = self.store.read_history_page(query).await?;
            self.bytes += page.events.iter().map(|event| event.data.len()).sum::<usize>();
            let events = page.events.iter().map(Event::from_stored).collect::<Result<Vec<_>, _>>();
            let events =
                events.map_err(|error| ProviderError::new(ErrorKind::Corrupt, "read_history_page", error))?;
            let instance = instance.to_owned();
            self.batch.histories.push(ArchivedHistory {
                instance,
                created_at_ms,
                execution_id,
                ended_at_ms,
                events,
            });
            self.hand_out_full().await?;
            match page.next {
                Some(next) => after_event_id = next,
                None => return Ok(()),
            }
        }
    }

    /// Tells the archive what is gone, after so many instances were removed.
    pub(super) async fn settle(self, removed: u64) -> Result<(), CopyError> {
        let mut kept = Vec::new();
        if removed != self.instances.len() as u64 {
            for one in self.instances {
                match self.store.get_instance_info(&one.instance_id).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    info => kept.extend((info?.created_at_ms == one.created_at_ms).then_some(one)),
                }
            }
        }
        Ok(self.archive.settle(kept).await?)
    }

    async fn hand_out_full(&mut self) -> Result<(), CopyError> {
        let rows = self.batch.histories.len() + self.batch.instances.len();
        match self.bytes >= BATCH_BYTES || rows >= BATCH_ROWS {
            true => self.hand_out().await,
            false => Ok(()),
        }
    }

    /// Hands out what is left.
    pub(super) async fn hand_out(&mut self) -> Result<(), CopyError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch != ArchiveBatch::default() {
            let instances = batch.instances.len() as u64;
            self.archive.store(batch).await?;
            metrics::counter!(telemetry::ARCHIVED_INSTANCES).increment(instances);
        }
        Ok(())
    }
}

fn keep(tree: &[InstanceVersion], why: Kept, reason: &str) -> Option<()> {
    metrics::counter!(telemetry::ARCHIVE_KEPT, "reason" => why.label()).increment(1);
    let root = tree.first().map_or("", |root| root.instance_id.as_str());
    match why {
        Kept::Changed => tracing::debug!(root, reason, "a tree changed while it was archived"),
        Kept::NoPlace | Kept::Unreadable => {
            tracing::warn!(root, reason, "a tree cannot be archived, so retention does not delete it");
        }
    }
    None
}
