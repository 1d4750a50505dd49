//! Counting what the runtime of this node commits, and writing it down.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{Clock, sleep};
use segno::runtime::{ChangeKind, InstanceChange, Observer};
use segno::store::{Expect, ProviderError, RecordBatch, RecordWrite, Store};
use segno_actions::functions::FUNCTION_LABEL;
use tokio_util::sync::CancellationToken;

use super::minute::MinuteCounts;
use super::{KEPT_MINUTES, KIND, MINUTE_MS, QUEUES_KIND, QueueSample, minute_id};
use crate::listen::until_stopped;
use crate::scope::Scope;

/// Counts are written this often: what a process that is killed has counted since is missing.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// Minutes of tenants that wait to be written. Further ones are not counted.
const MAX_WAITING: usize = 20_000;

/// Records of one commit.
const MAX_BATCH: usize = 256;

/// How long records live.
const LIFE: Duration = Duration::from_secs((KEPT_MINUTES + 1) * 60);

/// What is counted: by the number of the minute, and by what the ids of a tenant begin with.
type Counts = BTreeMap<u64, HashMap<String, Counted>>;

struct Counted {
    counts: MinuteCounts,
    /// Whether something was counted since the last write.
    is_dirty: bool,
}

/// Counts what happens to instances on this node.
pub struct Collector {
    clock: Arc<dyn Clock>,
    /// Tells this process from all others, also from earlier ones of the same node.
    process: String,
    counted: Mutex<Counts>,
}

impl Collector {
    /// A collector of a process.
    pub fn new(clock: Arc<dyn Clock>, process: String) -> Arc<Self> {
        Arc::new(Collector { clock, process, counted: Mutex::default() })
    }

    /// What this process has counted in the minutes that it may still add to, by the ids of their
    /// records.
    pub fn unfinished(&self, prefix: &str) -> HashMap<String, (u64, MinuteCounts)> {
        let counted = self.counted();
        let own = counted.iter().filter_map(|(minute, tenants)| Some((*minute, tenants.get(prefix)?)));
        own.map(|(minute, counted)| (self.record_id(prefix, minute), (minute, counted.counts.clone())))
            .collect()
    }

    /// Writes what is counted until it is time to stop, and once more then. A node that runs
    /// orchestrations also writes down how long the queues are.
    pub async fn run(self: Arc<Self>, store: Arc<dyn Store>, stopping: CancellationToken) {
        let mut last_sample = QueueSample::default();
        while until_stopped(&stopping, sleep(&*self.clock, WRITE_EVERY)).await.is_some() {
            if let Err(error) = self.write(&*store).await {
                tracing::warn!(%error, "the counts of this node could not be written; trying again");
            }
            if let Err(error) = self.write_queues(&*store, &mut last_sample).await {
                tracing::debug!(%error, "the lengths of the queues could not be written");
            }
        }
        if let Err(error) = self.write(&*store).await {
            tracing::warn!(%error, "the last counts of this node could not be written");
        }
    }

    /// Writes what was counted since the last time, and forgets minutes that are over.
    async fn write(&self, store: &dyn Store) -> Result<(), ProviderError> {
        let now = self.clock.now_ms() / MINUTE_MS;
        let dirty = take_dirty(&mut self.counted(), now);
        for (at, batch) in dirty.chunks(MAX_BATCH).enumerate() {
            let writes = batch.iter().map(|(minute, prefix, counts)| RecordWrite::Put {
                kind: KIND.to_owned(),
                id: self.record_id(prefix, *minute),
                expect: Expect::Anything,
                due_at_ms: None,
                time_to_live: Some(LIFE),
                body: serde_json::to_vec(counts).unwrap_or_default().into(),
            });
            let batch = RecordBatch { writes: writes.collect(), ..RecordBatch::default() };
            if let Err(error) = store.commit_records(batch).await {
                let mut counted = self.counted();
                for (minute, prefix, _) in &dirty[at * MAX_BATCH..] {
                    let unwritten = counted.get_mut(minute).and_then(|tenants| tenants.get_mut(prefix));
                    unwritten.into_iter().for_each(|counted| counted.is_dirty = true);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes how long the queues are, unless they were and are empty.
    async fn write_queues(&self, store: &dyn Store, last: &mut QueueSample) -> Result<(), ProviderError> {
        let minute = self.clock.now_ms() / MINUTE_MS;
        if last.minute == minute {
            return Ok(());
        }
        let sample = QueueSample::of(minute, store.get_queue_depths().await?);
        let was_empty = std::mem::replace(last, sample).is_empty();
        if was_empty && sample.is_empty() {
            return Ok(());
        }
        let write = RecordWrite::Put {
            kind: QUEUES_KIND.to_owned(),
            id: minute_id(minute),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(LIFE),
            body: serde_json::to_vec(&sample).unwrap_or_default().into(),
        };
        store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
        Ok(())
    }

    fn record_id(&self, prefix: &str, minute: u64) -> String {
        format!("{prefix}{}/{}", minute_id(minute), self.process)
    }

    fn change(&self, instance: &str, change: impl FnOnce(&mut MinuteCounts)) {
        let minute = self.clock.now_ms() / MINUTE_MS;
        let prefix = Scope::prefix_of(instance);
        let mut counts = self.counted();
        if let Some(counted) = counts.get_mut(&minute).and_then(|tenants| tenants.get_mut(prefix)) {
            counted.is_dirty = true;
            return change(&mut counted.counts);
        }
        if counts.values().map(HashMap::len).sum::<usize>() < MAX_WAITING {
            let mut counted = Counted { counts: MinuteCounts::default(), is_dirty: true };
            change(&mut counted.counts);
            counts.entry(minute).or_default().insert(prefix.to_owned(), counted);
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counts> {
        // Counts are whole after every change.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was counted since the last write, and is to be written. Minutes that are over are forgotten
/// once they are written.
fn take_dirty(counted: &mut Counts, now: u64) -> Vec<(u64, String, MinuteCounts)> {
    for (minute, tenants) in counted.iter_mut() {
        tenants.retain(|_, counted| counted.is_dirty || *minute >= now);
    }
    counted.retain(|_, tenants| !tenants.is_empty());
    let mut dirty = Vec::new();
    for (minute, tenants) in counted {
        for (prefix, counted) in tenants.iter_mut().filter(|(_, counted)| counted.is_dirty) {
            counted.is_dirty = false;
            dirty.push((*minute, prefix.clone(), counted.counts.clone()));
        }
    }
    dirty
}

impl Observer for Collector {
    fn committed(&self, change: InstanceChange<'_>) {
        use ChangeKind::{Cancelled, Completed, Failed, Started};
        if !matches!(change.kind, Started | Completed | Failed | Cancelled) {
            return;
        }
        let prefix = Scope::prefix_of(change.instance);
        let function = change.ended.and_then(|ended| ended.labels.get(FUNCTION_LABEL)?.strip_prefix(prefix));
        self.change(change.instance, |minute| minute.count(change.kind, change.ended, function));
    }

    fn timer_fired(&self, instance: &str, late_ms: u64) {
        self.change(instance, |minute| minute.lateness.record(late_ms));
    }
}
