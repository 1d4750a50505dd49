//! The four facets, each method handed on through the gate of its store.

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
    ReadableHistoryPage, ReadableRecords, Record, RecordBatch, Records, StoredEvent, SystemMetrics, Transfer,
    WatchUntil, WorkerMessage, start_then_watch,
};

use super::FaultStore;

#[async_trait]
impl Provider for FaultStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    async fn now_ms(&self) -> Result<u64, ProviderError> {
        self.read("now_ms", self.inner.now_ms()).await
    }

    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError> {
        self.fetch("fetch_orchestration_items", self.inner.fetch_orchestration_items(request)).await
    }

    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError> {
        self.commit("ack_orchestration_item", self.inner.ack_orchestration_item(turn)).await
    }

    fn joins_turns(&self) -> bool {
        self.joins_turns
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.commit(
            "abandon_orchestration_item",
            self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt),
        )
        .await
    }

    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.commit(
            "renew_orchestration_item_lock",
            self.inner.renew_orchestration_item_lock(lock_token, extend_for),
        )
        .await
    }

    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        self.read("read", self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        self.read("read_with_execution", self.inner.read_with_execution(instance, execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError> {
        self.commit(
            "append_with_execution",
            self.inner.append_with_execution(instance, execution_id, new_events),
        )
        .await
    }

    async fn enqueue_for_orchestrator(
        &self,
        message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.commit("enqueue_for_orchestrator", self.inner.enqueue_for_orchestrator(message, delay)).await
    }

    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError> {
        self.commit("begin_next_execution", self.inner.begin_next_execution(next)).await
    }

    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError> {
        self.commit("enqueue_for_worker", self.inner.enqueue_for_worker(message)).await
    }

    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError> {
        self.fetch("fetch_work_items", self.inner.fetch_work_items(request)).await
    }

    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError> {
        self.commit("ack_work_item", self.inner.ack_work_item(ack)).await
    }

    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        life: LockLife,
    ) -> Result<(), ProviderError> {
        let renew = self.inner.renew_work_item_lock(lock_token, extend_for, life);
        self.commit("renew_work_item_lock", renew).await
    }

    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.commit("abandon_work_item", self.inner.abandon_work_item(lock_token, delay, ignore_attempt))
            .await
    }

    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError> {
        self.read("lost_work_items", self.inner.lost_work_items(lock_tokens)).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.commit("renew_session_lock", self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout))
            .await
    }

    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError> {
        self.read("cleanup_orphaned_sessions", self.inner.cleanup_orphaned_sessions()).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError> {
        self.read("get_custom_status", self.inner.get_custom_status(instance, last_seen_version)).await
    }

    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        self.read("watch_instance", self.inner.watch_instance(instance, until, timeout)).await
    }

    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError> {
        // In two steps: the start is a commit point, and waiting for the end is none.
        start_then_watch(self, start).await
    }
}

#[async_trait]
impl ProviderAdmin for FaultStore {
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.read("query_instances", self.inner.query_instances(query)).await
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.read("list_instances", self.inner.list_instances()).await
    }

    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError> {
        self.read("list_instances_by_status", self.inner.list_instances_by_status(status)).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.read("list_executions", self.inner.list_executions(instance)).await
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        self.read(
            "read_history_with_execution_id",
            self.inner.read_history_with_execution_id(instance, execution_id),
        )
        .await
    }

    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError> {
        self.read("read_history_page", self.inner.read_history_page(query)).await
    }

    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError> {
        self.read("read_history_around_damage", self.inner.read_history_around_damage(query)).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        self.read("latest_execution_id", self.inner.latest_execution_id(instance)).await
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.read("get_instance_info", self.inner.get_instance_info(instance)).await
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.read("get_execution_info", self.inner.get_execution_info(instance, execution_id)).await
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.read("get_system_metrics", self.inner.get_system_metrics()).await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.read("get_queue_depths", self.inner.get_queue_depths()).await
    }

    async fn known_damage(&self) -> Result<Option<String>, ProviderError> {
        self.read("known_damage", self.inner.known_damage()).await
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        self.read("list_children", self.inner.list_children(instance)).await
    }

    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError> {
        self.read("queued_start_ms", self.inner.queued_start_ms(instance)).await
    }

    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError> {
        self.read("queued_activities", self.inner.queued_activities(instance)).await
    }

    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError> {
        self.read("size_bytes", self.inner.size_bytes()).await
    }

    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError> {
        self.commit("expedite_activities", self.inner.expedite_activities(instance)).await
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        self.read("get_parent_id", self.inner.get_parent_id(instance)).await
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.commit("delete_instances_atomic", self.inner.delete_instances_atomic(ids, force)).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.commit("delete_instance_bulk", self.inner.delete_instance_bulk(filter)).await
    }

    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError> {
        self.read("ended_trees", self.inner.ended_trees(query)).await
    }

    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.commit("delete_unchanged", self.inner.delete_unchanged(trees)).await
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.commit("prune_executions", self.inner.prune_executions(instance, options)).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.commit("prune_executions_bulk", self.inner.prune_executions_bulk(filter, options)).await
    }
}

#[async_trait]
impl Records for FaultStore {
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        self.read("get_record", self.inner.get_record(kind, id)).await
    }

    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        self.read("list_records", self.inner.list_records(request)).await
    }

    async fn list_records_around_damage(
        &self,
        request: ListRecords<'_>,
    ) -> Result<ReadableRecords, ProviderError> {
        self.read("list_records_around_damage", self.inner.list_records_around_damage(request)).await
    }

    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        match request.now_ms {
            Some(_) => self.read("due_records", self.inner.due_records(request)).await,
            None => self.fetch("due_records", self.inner.due_records(request)).await,
        }
    }

    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError> {
        self.read("next_due_ms", self.inner.next_due_ms(kind)).await
    }

    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError> {
        self.commit("commit_records", self.inner.commit_records(batch)).await
    }
}

#[async_trait]
impl Transfer for FaultStore {
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError> {
        self.read("export", self.inner.export()).await
    }

    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError> {
        self.read("import", self.inner.import()).await
    }
}
