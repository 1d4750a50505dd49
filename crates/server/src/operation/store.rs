//! The store as requests use it: every method is delegated, and every write marks the operation
//! that makes it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, AckWorkItem, DeleteInstanceResult, DueRecords, EndedPage, EndedQuery,
    ExecutionInfo, ExecutionStatus, Export, FetchOrchestrationItems, FetchWorkItems, HistoryPage,
    HistoryQuery, Import, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceVersion,
    ListRecords, LockLife, LockToken, LockedWorkItem, NextExecution, OrchestrationItem, OrchestratorMessage,
    Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, QueuedActivity,
    ReadableHistoryPage, ReadableRecords, Record, RecordBatch, Records, Store, StoredEvent, SystemMetrics,
    Transfer, WatchUntil, WorkerMessage, WriteOutcome,
};

use super::{CURRENT, damage};

/// A store that marks the current operation when it writes.
pub struct TrackedStore {
    inner: Arc<dyn Store>,
}

impl TrackedStore {
    /// Tracks the writes to a store.
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(TrackedStore { inner })
    }
}

/// Marks the operation for as long as the write may have an effect: from before it begins, and for
/// good unless the store reports that nothing was changed. A write of a closed operation does not
/// begin.
async fn tracked<T>(write: impl Future<Output = Result<T, ProviderError>>) -> Result<T, ProviderError> {
    if !CURRENT.try_with(|operation| operation.begin_write()).unwrap_or(true) {
        let late = "the deadline of the request has passed";
        return Err(ProviderError::unavailable("write", late).nothing_changed());
    }
    let done = write.await;
    if done.as_ref().is_err_and(|error| error.outcome() == WriteOutcome::NothingChanged) {
        let _outside = CURRENT.try_with(|operation| operation.undo_write());
    }
    done
}

/// A read of several rows. A store in this process answers without a pause, so a request that makes
/// one read after another would keep a thread of the server from all others to its end.
async fn giving_way<T>(read: impl Future<Output = T>) -> T {
    let found = read.await;
    tokio::task::yield_now().await;
    found
}

#[async_trait]
impl Provider for TrackedStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    async fn now_ms(&self) -> Result<u64, ProviderError> {
        self.inner.now_ms().await
    }

    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError> {
        self.inner.fetch_orchestration_items(request).await
    }

    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError> {
        tracked(self.inner.ack_orchestration_item(turn)).await
    }

    fn joins_turns(&self) -> bool {
        self.inner.joins_turns()
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt)).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.renew_orchestration_item_lock(lock_token, extend_for)).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        giving_way(self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        giving_way(self.inner.read_with_execution(instance, execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.append_with_execution(instance, execution_id, new_events)).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.enqueue_for_orchestrator(message, delay)).await
    }

    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError> {
        tracked(self.inner.enqueue_for_worker(message)).await
    }

    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError> {
        tracked(self.inner.begin_next_execution(next)).await
    }

    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError> {
        tracked(self.inner.start_and_watch(start)).await
    }

    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError> {
        self.inner.fetch_work_items(request).await
    }

    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError> {
        tracked(self.inner.ack_work_item(ack)).await
    }

    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        life: LockLife,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.renew_work_item_lock(lock_token, extend_for, life)).await
    }

    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        tracked(self.inner.abandon_work_item(lock_token, delay, ignore_attempt)).await
    }

    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError> {
        self.inner.lost_work_items(lock_tokens).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        tracked(self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout)).await
    }

    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError> {
        self.inner.cleanup_orphaned_sessions().await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError> {
        self.inner.get_custom_status(instance, last_seen_version).await
    }

    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        self.inner.watch_instance(instance, until, timeout).await
    }
}

#[async_trait]
impl ProviderAdmin for TrackedStore {
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        giving_way(self.inner.query_instances(query)).await
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        giving_way(self.inner.list_instances()).await
    }

    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError> {
        giving_way(self.inner.list_instances_by_status(status)).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        giving_way(self.inner.list_executions(instance)).await
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        giving_way(self.inner.read_history_with_execution_id(instance, execution_id)).await
    }

    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError> {
        giving_way(self.inner.read_history_page(query)).await
    }

    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError> {
        giving_way(self.inner.read_history_around_damage(query)).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        self.inner.latest_execution_id(instance).await
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.inner.get_instance_info(instance).await
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.inner.get_execution_info(instance, execution_id).await
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.inner.get_system_metrics().await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.inner.get_queue_depths().await
    }

    async fn known_damage(&self) -> Result<Option<String>, ProviderError> {
        self.inner.known_damage().await
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        giving_way(self.inner.list_children(instance)).await
    }

    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError> {
        self.inner.queued_start_ms(instance).await
    }

    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError> {
        giving_way(self.inner.queued_activities(instance)).await
    }

    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError> {
        self.inner.size_bytes().await
    }

    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError> {
        tracked(self.inner.expedite_activities(instance)).await
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        self.inner.get_parent_id(instance).await
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        tracked(self.inner.delete_instances_atomic(ids, force)).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        tracked(self.inner.delete_instance_bulk(filter)).await
    }

    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError> {
        self.inner.ended_trees(query).await
    }

    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError> {
        tracked(self.inner.delete_unchanged(trees)).await
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        tracked(self.inner.prune_executions(instance, options)).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        tracked(self.inner.prune_executions_bulk(filter, options)).await
    }
}

#[async_trait]
impl Records for TrackedStore {
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        self.inner.get_record(kind, id).await
    }

    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        // A listing shows what it can, and reports the rest; all else is done with whole data or
        // not at all.
        match damage::is_shown_around() {
            true => {
                let read = giving_way(self.inner.list_records_around_damage(request)).await?;
                read.damaged.into_iter().for_each(damage::note);
                Ok(read.records)
            }
            false => giving_way(self.inner.list_records(request)).await,
        }
    }

    async fn list_records_around_damage(
        &self,
        request: ListRecords<'_>,
    ) -> Result<ReadableRecords, ProviderError> {
        giving_way(self.inner.list_records_around_damage(request)).await
    }

    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        giving_way(self.inner.due_records(request)).await
    }

    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError> {
        self.inner.next_due_ms(kind).await
    }

    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError> {
        tracked(self.inner.commit_records(batch)).await
    }
}

#[async_trait]
impl Transfer for TrackedStore {
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError> {
        self.inner.export().await
    }

    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError> {
        self.inner.import().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use segno::store::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_request_that_reads_on_and_on_gives_way_to_others() {
        let store = TrackedStore::new(MemoryStore::new());
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..50 {
            let request = || ListRecords { kind: "kind", id_prefix: "", after_id: None, limit: 64 };
            store.list_records(request()).await.unwrap();
            store.list_records_around_damage(request()).await.unwrap();
        }
        other.abort();
        assert!(turns.load(Ordering::Relaxed) >= 100, "{turns:?}");
    }
}
