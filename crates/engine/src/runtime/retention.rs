//! Retention: finished instances and old executions are removed in the background, a few at a time.
//!
//! One node at a time sweeps: it claims the interval with a record that no other node can create while it exists. Old
//! executions need no sweep: the node that begins the next one of an instance removes those beyond the limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::clock::{self, Clock, duration_ms};
use crate::error::{Code, Error};
use crate::store::{
    EndedQuery, ErrorKind, Expect, InstanceFilter, ProviderError, PruneOptions, RecordBatch, RecordWrite,
    Store,
};
use crate::telemetry;

use super::archive::{Archive, Copier, CopyError};

/// Kind of the record by which a node claims an interval.
const CLAIM_KIND: &str = "segno.retention";

/// Trees that one call removes, so that none holds the store for long.
const TREES_PER_CALL: u32 = 100;

/// Pause between two calls, so that other work comes between.
const PAUSE: Duration = Duration::from_millis(20);

/// Instances that wait to have their executions pruned. Beyond that, one is passed over; its next execution prunes it.
const MAX_WAITING: usize = 1_024;

/// What is kept; everything by default.
///
/// Instances go as whole trees: a child goes with its root, and a root only when everything below it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Instances that ended longer ago than this are deleted.
    pub finished_age: Option<Duration>,
    /// When more instances than this have ended, those that ended first are deleted. Children count too.
    pub finished_count: Option<u64>,
    /// Executions kept of each instance, the current one included; older ones are pruned.
    pub executions: Option<u32>,
    /// How often it is looked for instances to delete.
    pub interval: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let interval = Duration::from_secs(60);
        Retention { finished_age: None, finished_count: None, executions: None, interval }
    }
}

impl Retention {
    pub(super) fn check(&self) -> Result<(), Error> {
        let least = Duration::from_millis(10);
        let message = if self.interval < least {
            format!("retention.interval is {:?}, but must be at least {least:?}", self.interval)
        } else if self.executions == Some(0) {
            "retention.executions must be at least 1: the current execution always stays".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(Code::InvalidOption, message))
    }
}

/// Takes note of executions that begin.
pub(super) struct Begun {
    keep: Option<u32>,
    waiting: mpsc::Sender<String>,
}

impl Begun {
    /// An execution of an instance has begun.
    pub(super) fn note(&self, instance: &str, execution_id: u64) {
        if self.keep.is_some_and(|keep| execution_id > u64::from(keep)) {
            // With no room for it, the next execution is in time.
            let _ = self.waiting.try_send(instance.to_owned());
        }
    }
}

/// Removes what is not kept.
pub(super) struct Sweeper {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node_id: Arc<str>,
    retention: Retention,
    archive: Option<Arc<dyn Archive>>,
}

/// What one step of a sweep removed.
struct Removed {
    instances: u64,
    is_last: bool,
}

/// The two parts: one notes, the other runs, as far as there is anything to do.
pub(super) fn start(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    node_id: &Arc<str>,
    retention: &Retention,
    archive: Option<Arc<dyn Archive>>,
) -> (Begun, Vec<tokio::task::JoinHandle<()>>) {
    let (waiting, to_prune) = mpsc::channel(MAX_WAITING);
    let sweeper = Arc::new(Sweeper {
        store: Arc::clone(store),
        clock: Arc::clone(clock),
        node_id: Arc::clone(node_id),
        retention: retention.clone(),
        archive,
    });
    let mut tasks = Vec::new();
    if retention.finished_age.is_some() || retention.finished_count.is_some() {
        tasks.push(tokio::spawn(Arc::clone(&sweeper).sweep_for_ever()));
    }
    if let Some(keep) = retention.executions {
        tasks.push(tokio::spawn(sweeper.prune_for_ever(keep, to_prune)));
    }
    (Begun { keep: retention.executions, waiting }, tasks)
}

impl Sweeper {
    async fn prune_for_ever(self: Arc<Self>, keep: u32, mut instances: mpsc::Receiver<String>) {
        while let Some(instance) = instances.recv().await {
            match self.prune(&instance, keep).await {
                Ok(deleted) => metrics::counter!(telemetry::RETENTION_EXECUTIONS).increment(deleted),
                // It was deleted meanwhile, or the store is away: then the next execution prunes it.
                Err(CopyError::Store(error)) => {
                    tracing::debug!(instance, %error, "executions were not pruned");
                }
                Err(error) => {
                    metrics::counter!(telemetry::ARCHIVE_FAILURES).increment(1);
                    tracing::warn!(instance, %error, "executions were not pruned");
                }
            }
        }
    }

    /// Removes executions that are too many; those that an archive gets first.
    async fn prune(&self, instance: &str, keep: u32) -> Result<u64, CopyError> {
        let mut options = PruneOptions { keep_last: Some(keep), ..PruneOptions::default() };
        if let Some(archive) = self.archive.as_deref() {
            let info = self.store.get_instance_info(instance).await?;
            let executions = self.store.list_executions(instance).await?;
            let old = executions.len().saturating_sub(keep as usize);
            let mut copier = Copier::new(archive, &self.store);
            let mut last_ended_ms = None;
            if !archive.has_place_for(instance) {
                return Ok(0);
            }
            for execution_id in &executions[..old] {
                let execution = self.store.get_execution_info(instance, *execution_id).await?;
                let Some(ended_at_ms) = execution.completed_at_ms else { break };
                copier.execution(instance, info.created_at_ms, *execution_id, ended_at_ms).await?;
                last_ended_ms = Some(ended_at_ms);
            }
            copier.hand_out().await?;
            let Some(last_ended_ms) = last_ended_ms else { return Ok(0) };
            // One that ended since is not archived. It ended no earlier than the last of these, which stays until then.
            options.completed_before_ms = Some(last_ended_ms);
        }
        Ok(self.store.prune_executions(instance, options).await?.executions_deleted)
    }

    async fn sweep_for_ever(self: Arc<Self>) {
        loop {
            clock::sleep(&*self.clock, self.retention.interval).await;
            let swept = match self.claim().await {
                Ok(true) => self.sweep().await,
                Ok(false) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = swept {
                match &error {
                    CopyError::Store(error) => {
                        metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation())
                            .increment(1);
                    }
                    CopyError::Archive(_) => metrics::counter!(telemetry::ARCHIVE_FAILURES).increment(1),
                }
                tracing::warn!(%error, "retention was interrupted; it continues at the next interval");
            }
        }
    }

    /// Whether this node has the interval to itself.
    async fn claim(&self) -> Result<bool, ProviderError> {
        let claim = RecordWrite::Put {
            kind: CLAIM_KIND.to_owned(),
            id: "sweep".to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            // A little less, or the same node would find its own claim every other time.
            time_to_live: Some(self.retention.interval / 10 * 9),
            body: Bytes::copy_from_slice(self.node_id.as_bytes()),
        };
        let batch = RecordBatch { writes: vec![claim], ..RecordBatch::default() };
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn sweep(&self) -> Result<(), CopyError> {
        if let Some(age) = self.retention.finished_age {
            let before_ms = self.store.now_ms().await?.saturating_sub(duration_ms(age));
            let mut query = EndedQuery {
                completed_before_ms: Some(before_ms),
                limit: TREES_PER_CALL as usize,
                ..EndedQuery::default()
            };
            while !self.remove(&mut query).await?.is_last {
                clock::sleep(&*self.clock, PAUSE).await;
            }
        }
        let Some(most) = self.retention.finished_count else { return Ok(()) };
        // Trees are deleted, but instances counted: so many at a time that no more go than must, judged by the largest
        // trees so far.
        let mut instances_per_tree = u64::from(TREES_PER_CALL);
        let mut query = EndedQuery::default();
        loop {
            let metrics = self.store.get_system_metrics().await?;
            let finished =
                metrics.completed_instances + metrics.failed_instances + metrics.cancelled_instances;
            let Some(excess) = finished.checked_sub(most).filter(|excess| *excess > 0) else { return Ok(()) };
            let trees = (excess / instances_per_tree).clamp(1, u64::from(TREES_PER_CALL));
            query.limit = usize::try_from(trees).unwrap_or(TREES_PER_CALL as usize);
            let Removed { instances, is_last } = self.remove(&mut query).await?;
            if is_last {
                return Ok(());
            }
            instances_per_tree = instances.div_ceil(trees).max(instances_per_tree.div_ceil(2)).max(1);
            clock::sleep(&*self.clock, PAUSE).await;
        }
    }

    /// Removes some of the trees of a query, after an archive has stored them, and moves the query behind them.
    async fn remove(&self, query: &mut EndedQuery) -> Result<Removed, CopyError> {
        let (deleted, is_last) = match self.archive.as_deref() {
            None => {
                let filter = InstanceFilter {
                    completed_before_ms: query.completed_before_ms,
                    limit: Some(u32::try_from(query.limit).unwrap_or(TREES_PER_CALL)),
                    ..InstanceFilter::default()
                };
                let deleted = self.store.delete_instance_bulk(filter).await?;
                (deleted, deleted.instances_deleted == 0)
            }
            Some(archive) => {
                let page = self.store.ended_trees(query.clone()).await?;
                let mut copier = Copier::new(archive, &self.store);
                let mut copied = Vec::with_capacity(page.trees.len());
                for tree in page.trees {
                    if copier.tree(&tree).await?.is_some() {
                        copied.push(tree);
                    }
                }
                copier.hand_out().await?;
                let deleted = self.store.delete_unchanged(&copied).await?;
                copier.settle(deleted.instances_deleted).await?;
                let is_last = page.next.is_none();
                query.after = page.next;
                (deleted, is_last)
            }
        };
        metrics::counter!(telemetry::RETENTION_INSTANCES).increment(deleted.instances_deleted);
        metrics::counter!(telemetry::RETENTION_EXECUTIONS).increment(deleted.executions_deleted);
        Ok(Removed { instances: deleted.instances_deleted, is_last })
    }
}
