//! The second facet: listing, reading, counting, deleting and pruning.

use std::collections::BTreeSet;

use async_trait::async_trait;
use segno::store::{
    DeleteInstanceResult, EndedPage, EndedQuery, ErrorKind, ExecutionInfo, ExecutionStatus, HistoryPage,
    HistoryQuery, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceVersion, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueDepths, QueuedActivity, ReadableHistoryPage, StoredEvent,
    SystemMetrics, UnreadableEvents,
};

use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::AgeIndex;
use crate::state::machine::State;
use crate::state::removal::Unended;
use crate::store::EmbeddedStore;

fn unknown_execution(operation: &'static str, instance: &str, execution_id: u64) -> ProviderError {
    let message = format!("there is no execution {execution_id} of an instance {instance}");
    ProviderError::new(ErrorKind::NotFound, operation, message)
}

impl EmbeddedStore {
    async fn row(&self, operation: &'static str, instance: &str) -> Result<InstanceRow, ProviderError> {
        let row = self.core().look(operation, |state, _| state.instance(instance)).await?;
        let unknown =
            || ProviderError::new(ErrorKind::NotFound, operation, format!("there is no instance {instance}"));
        row.ok_or_else(unknown)
    }
}

#[async_trait]
impl ProviderAdmin for EmbeddedStore {
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        let found = self.core().look("query_instances", |state, _| {
            let page = state.tables.page(&query, &state.quarantine)?;
            // What is not durable yet is not damaged.
            let damaged = page.unreadable.iter().filter(|row| !state.quarantine.has(&row.instance_id));
            let damage: Vec<String> = damaged.map(|row| &row.reason).chain(&page.damaged).cloned().collect();
            Ok((page, damage))
        });
        let (page, damage) = found.await?;
        damage.iter().for_each(|what| self.core().damage.note(what));
        Ok(page)
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.core().look("list_instances", |state, _| state.tables.instances_in(AgeIndex::All)).await
    }

    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError> {
        let index = AgeIndex::Status(status);
        self.core().look("list_instances_by_status", |state, _| state.tables.instances_in(index)).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let found = self.core().look("list_executions", |state, _| {
            let Some(row) = state.instance(instance)? else { return Ok(Vec::new()) };
            let mut ids: Vec<u64> =
                state.tables.earlier_executions(instance)?.iter().map(|row| row.execution_id).collect();
            ids.push(row.current.execution_id);
            Ok(ids)
        });
        found.await
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        const OPERATION: &str = "read_history_with_execution_id";
        let found = self.core().look(OPERATION, |state, _| {
            let exists = state.execution(instance, execution_id)?.is_some();
            Ok(exists.then(|| state.tables.history(instance, execution_id)))
        });
        let history = found.await?.ok_or_else(|| unknown_execution(OPERATION, instance, execution_id))?;
        history.read().map_err(|error| error.at(OPERATION))
    }

    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError> {
        const OPERATION: &str = "read_history_page";
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        let page = self.core().look(OPERATION, |state, _| {
            let exists = state.execution(instance, execution_id)?.is_some();
            exists.then(|| state.tables.history_page(&query)).transpose()
        });
        page.await?.ok_or_else(|| unknown_execution(OPERATION, instance, execution_id))
    }

    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError> {
        const OPERATION: &str = "read_history_around_damage";
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        let page = self.core().look(OPERATION, |state, _| {
            let Some(row) = state.execution(instance, execution_id)? else { return Ok(None) };
            let mut read = state.tables.history_around_damage(&query)?;
            // Events have numbers without gaps, so damage behind the last one hides nothing.
            let is_past_end = |gap: &UnreadableEvents| {
                gap.before_event_id.is_none()
                    && read.page.next.is_none()
                    && gap.after_event_id >= row.last_event_id
            };
            read.unreadable.retain(|gap| !is_past_end(gap));
            Ok(Some(read))
        });
        let read = page.await?.ok_or_else(|| unknown_execution(OPERATION, instance, execution_id))?;
        read.unreadable.iter().for_each(|gap| self.core().damage.note(&gap.reason));
        Ok(read)
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.row("latest_execution_id", instance).await?.current.execution_id)
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        Ok(self.row("get_instance_info", instance).await?.info(instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        const OPERATION: &str = "get_execution_info";
        let row = self.core().look(OPERATION, |state, _| state.execution(instance, execution_id)).await?;
        let row = row.ok_or_else(|| unknown_execution(OPERATION, instance, execution_id))?;
        Ok(row.info())
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.core().look("get_system_metrics", |state, _| Ok(state.tables.meta.counters.metrics())).await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        // What was enqueued shows when it is durable, so that is waited for first. Then not a mere look: time must
        // have passed for the counts to be those of this moment.
        self.core().look("get_queue_depths", |_, _| Ok(())).await?;
        Ok(self.core().change(|state, _| state.queue_depths()))
    }

    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError> {
        // Who owns the directory can look: it may have files of others, as the ledger.
        Ok(None)
    }

    async fn known_damage(&self) -> Result<Option<String>, ProviderError> {
        Ok(self.core().damage.first())
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        let children = self.core().look("list_children", |state, _| {
            state.quarantine.check(instance)?;
            state.tables.children(instance)
        });
        children.await
    }

    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError> {
        let read = |state: &mut State, now_ms| {
            state.quarantine.check(instance)?;
            Ok(state.orchestrations.guarded_start_ms(instance, now_ms))
        };
        self.core().look("queued_start_ms", read).await
    }

    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError> {
        // As with the depths: durable first, and then at this moment.
        const OPERATION: &str = "queued_activities";
        self.core().look(OPERATION, |_, _| Ok(())).await?;
        let found = self.core().change(|state, now_ms| state.queued_activities(instance, now_ms));
        found.map_err(|error| error.at(OPERATION))
    }

    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError> {
        let instance = instance.to_owned();
        let expedite = move |state: &mut State, now_ms| Ok(state.expedite_work(&instance, now_ms));
        self.core().commit("expedite_activities", expedite).await
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.row("get_parent_id", instance).await?.parent)
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let unended = if force { Unended::Remove } else { Unended::Refuse };
        self.core().commit_here("delete_instances_atomic", |state, _| state.delete(&ids, unended)).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instance_bulk";
        let delete = self.core().commit_here(OPERATION, |state, _| {
            state.delete_bulk(&filter).map_err(|error| error.at(OPERATION))
        });
        delete.await
    }

    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError> {
        self.core().look("ended_trees", |state, _| state.ended_trees(&query)).await
    }

    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_unchanged";
        let delete = self.core().commit_here(OPERATION, |state, _| {
            state.delete_unchanged(trees).map_err(|error| error.at(OPERATION))
        });
        delete.await
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.core().commit_here("prune_executions", |state, _| state.prune(instance, options)).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions_bulk";
        let prune = self.core().commit_here(OPERATION, |state, _| {
            state.prune_bulk(&filter, options).map_err(|error| error.at(OPERATION))
        });
        prune.await
    }
}
