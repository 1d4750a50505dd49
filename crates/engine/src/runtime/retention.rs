//! Retention: finished instances and old executions are removed in the background, a few at a time.
//!
//! One node at a time sweeps: it claims the interval with a record that nobody else can make as long as it lives. Old
//! executions need no sweep: whoever begins the next one of an instance removes those that are too many.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::clock::{self, Clock, duration_ms};
use crate::error::{Code, Error};
use crate::store::{
    ErrorKind, Expect, InstanceFilter, ProviderError, PruneOptions, RecordBatch, RecordWrite, Store,
};
use crate::telemetry;

/// Kind of the record by which a node claims an interval.
const CLAIM_KIND: &str = "segno.retention";

/// Trees that one call removes, so that none holds the store for long.
const TREES_PER_CALL: u32 = 100;

/// Pause between two calls, so that other work comes between.
const PAUSE: Duration = Duration::from_millis(20);

/// Instances that wait to have their executions pruned. Beyond that, one is passed over; its next execution prunes it.
const MAX_WAITING: usize = 1_024;

/// What is kept. Everything, unless it says otherwise.
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
}

/// The two parts: one notes, the other runs, as far as there is anything to do.
pub(super) fn start(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    node_id: &Arc<str>,
    retention: &Retention,
) -> (Begun, Vec<tokio::task::JoinHandle<()>>) {
    let (waiting, to_prune) = mpsc::channel(MAX_WAITING);
    let sweeper = Arc::new(Sweeper {
        store: Arc::clone(store),
        clock: Arc::clone(clock),
        node_id: Arc::clone(node_id),
        retention: retention.clone(),
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
        let options = PruneOptions { keep_last: Some(keep), ..PruneOptions::default() };
        while let Some(instance) = instances.recv().await {
            match self.store.prune_executions(&instance, options).await {
                Ok(pruned) => {
                    metrics::counter!(telemetry::RETENTION_EXECUTIONS).increment(pruned.executions_deleted);
                }
                // It was deleted meanwhile, or the store is away: then the next execution prunes it.
                Err(error) => tracing::debug!(instance, %error, "executions were not pruned"),
            }
        }
    }

    async fn sweep_for_ever(self: Arc<Self>) {
        loop {
            clock::sleep(&*self.clock, self.retention.interval).await;
            let swept = match self.claim().await {
                Ok(true) => self.sweep().await,
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = swept {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                tracing::warn!(%error, "retention was interrupted; it goes on at the next interval");
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

    async fn sweep(&self) -> Result<(), ProviderError> {
        if let Some(age) = self.retention.finished_age {
            let before_ms = self.store.now_ms().await?.saturating_sub(duration_ms(age));
            let filter = InstanceFilter { completed_before_ms: Some(before_ms), ..InstanceFilter::default() };
            while self.delete(&filter, TREES_PER_CALL).await? > 0 {
                clock::sleep(&*self.clock, PAUSE).await;
            }
        }
        let Some(most) = self.retention.finished_count else { return Ok(()) };
        // Trees are deleted, but instances counted: so many at a time that no more go than must, judged by the largest
        // trees so far.
        let mut instances_per_tree = u64::from(TREES_PER_CALL);
        loop {
            let metrics = self.store.get_system_metrics().await?;
            let finished =
                metrics.completed_instances + metrics.failed_instances + metrics.cancelled_instances;
            let Some(excess) = finished.checked_sub(most).filter(|excess| *excess > 0) else { return Ok(()) };
            let trees = (excess / instances_per_tree).clamp(1, u64::from(TREES_PER_CALL));
            let limit = u32::try_from(trees).unwrap_or(TREES_PER_CALL);
            let deleted = self.delete(&InstanceFilter::default(), limit).await?;
            if deleted == 0 {
                return Ok(());
            }
            instances_per_tree = deleted.div_ceil(trees).max(instances_per_tree.div_ceil(2)).max(1);
            clock::sleep(&*self.clock, PAUSE).await;
        }
    }

    async fn delete(&self, filter: &InstanceFilter, limit: u32) -> Result<u64, ProviderError> {
        let filter = InstanceFilter { limit: Some(limit), ..filter.clone() };
        let deleted = self.store.delete_instance_bulk(filter).await?;
        metrics::counter!(telemetry::RETENTION_INSTANCES).increment(deleted.instances_deleted);
        metrics::counter!(telemetry::RETENTION_EXECUTIONS).increment(deleted.executions_deleted);
        Ok(deleted.instances_deleted)
    }
}
