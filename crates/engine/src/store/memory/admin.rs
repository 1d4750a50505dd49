//! The second facet: listing, reading, counting, deleting and pruning.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryStore;
use super::state::Unended;
use crate::store::{
    DeleteInstanceResult, EndedPage, EndedQuery, ErrorKind, ExecutionInfo, ExecutionStatus, HistoryPage,
    HistoryQuery, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceVersion, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueDepths, QueuedActivity, ReadableHistoryPage, StoredEvent,
    SystemMetrics,
};

fn unknown_instance(operation: &'static str, instance: &str) -> ProviderError {
    ProviderError::new(ErrorKind::NotFound, operation, format!("there is no instance {instance}"))
}

fn unknown_execution(operation: &'static str, instance: &str, execution_id: u64) -> ProviderError {
    let message = format!("there is no execution {execution_id} of an instance {instance}");
    ProviderError::new(ErrorKind::NotFound, operation, message)
}

fn owned<'a>(ids: impl IntoIterator<Item = &'a Arc<str>>) -> Vec<String> {
    ids.into_iter().map(|id| id.as_ref().to_owned()).collect()
}

impl MemoryStore {
    fn look_at<T>(
        &self,
        operation: &'static str,
        instance: &str,
        read: impl FnOnce(&InstanceInfo) -> T,
    ) -> Result<T, ProviderError> {
        let found = self.look(|state, _| state.instances.info(instance).map(read));
        found.ok_or_else(|| unknown_instance(operation, instance))
    }
}

#[async_trait]
impl ProviderAdmin for MemoryStore {
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        Ok(self.look(|state, _| state.instances.page(&query)))
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| owned(state.instances.index().newest_first())))
    }

    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| owned(state.instances.index().with_status(status))))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self.look(|state, _| state.instances.execution_ids(instance)))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        let events = self.look(|state, _| {
            state.instances.execution(instance, execution_id).map(|execution| execution.events.clone())
        });
        events.ok_or_else(|| unknown_execution("read_history_with_execution_id", instance, execution_id))
    }

    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError> {
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        let events = self.look(|state, _| {
            state.instances.execution(instance, execution_id).map(|execution| {
                let after = execution.events_after(query.after_event_id);
                after[..after.len().min(query.limit.saturating_add(1))].to_vec()
            })
        });
        let events = events.ok_or_else(|| unknown_execution("read_history_page", instance, execution_id))?;
        Ok(HistoryPage::cut(events, query.limit))
    }

    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError> {
        let page = self.read_history_page(query).await?;
        Ok(ReadableHistoryPage { page, unreadable: Vec::new() })
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        self.look_at("latest_execution_id", instance, |info| info.current_execution_id)
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.look_at("get_instance_info", instance, InstanceInfo::clone)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let info = self.look(|state, _| state.instances.execution_info(instance, execution_id));
        info.ok_or_else(|| unknown_execution("get_execution_info", instance, execution_id))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(self.look(|state, _| state.instances.metrics()))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        // Not a mere look: time must have passed for the counts to be those of this moment.
        Ok(self.change(|state, _| state.queue_depths()))
    }

    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError> {
        Ok(None)
    }

    async fn known_damage(&self) -> Result<Option<String>, ProviderError> {
        // There is no disk that could lose anything.
        Ok(None)
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| owned(&state.instances.index().children(instance))))
    }

    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError> {
        Ok(self.look(|state, now_ms| state.orchestrations.guarded_start_ms(instance, now_ms)))
    }

    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError> {
        // As with the depths, time must have passed.
        Ok(self.change(|state, _| state.work.of_instance(instance)))
    }

    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.change(|state, now_ms| {
            let delayed = state.work.delayed_of(instance);
            for item in &delayed {
                state.work.reschedule(item.id, item.visible_at_ms, now_ms, now_ms);
            }
            delayed.len() as u64
        }))
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        self.look_at("get_parent_id", instance, |info| info.parent_instance_id.clone())
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let unended = if force { Unended::Remove } else { Unended::Refuse };
        self.change(|state, _| {
            state.check_delete(&ids, unended)?;
            let mut deleted = DeleteInstanceResult::default();
            for id in ids {
                state.delete(id, &mut deleted);
            }
            Ok(deleted)
        })
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        Ok(self.change(|state, _| state.delete_bulk(&filter)))
    }

    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError> {
        Ok(self.look(|state, _| state.ended_trees(&query)))
    }

    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError> {
        Ok(self.change(|state, _| state.delete_unchanged(trees)))
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _| {
            if state.instances.info(instance).is_none() {
                return Err(unknown_instance("prune_executions", instance));
            }
            let mut pruned = PruneResult::default();
            state.instances.prune(instance, options, &mut pruned);
            Ok(pruned)
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        Ok(self.change(|state, _| state.prune_bulk(&filter, options)))
    }
}
