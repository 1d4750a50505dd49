//! Instance rows, their executions and histories, and the counters over them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use semver::Version;

use super::instance_index::{Age, InstanceIndex, ended_at_ms};
use crate::store::{
    ContentItem, CustomStatusChange, DeleteInstanceResult, ErrorKind, ExecutionContent, ExecutionInfo,
    ExecutionMetadata, ExecutionStatus, InstanceContent, InstanceCursor, InstanceFilter, InstanceInfo,
    InstancePage, InstanceQuery, NextExecution, ProviderError, PruneOptions, PruneResult, StoredEvent,
    SystemMetrics,
};

/// All instances.
#[derive(Debug, Default)]
pub(super) struct InstanceTable {
    /// Boxed, so that growing the table does not copy rows.
    rows: HashMap<Arc<str>, Box<InstanceRow>>,
    index: InstanceIndex,
    execution_count: u64,
    event_count: u64,
}

#[derive(Debug)]
struct InstanceRow {
    age: Age,
    info: InstanceInfo,
    /// Ascending by id. Most instances have one, for which a vector is an eleventh of a map node.
    executions: Vec<Execution>,
}

/// One execution with its history, ascending by event id.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) execution_id: u64,
    pub(super) status: ExecutionStatus,
    output: Option<Bytes>,
    pinned_version: Option<Version>,
    /// The runtime's own mark of the execution.
    pub(super) incarnation: Option<u64>,
    started_at_ms: u64,
    completed_at_ms: Option<u64>,
    /// The history.
    pub(super) events: Vec<StoredEvent>,
}

/// What one commit changes of an instance.
#[derive(Debug)]
pub(super) struct InstanceCommit<'a> {
    /// The instance.
    pub(super) instance: &'a Arc<str>,
    /// Execution that the events belong to.
    pub(super) execution_id: u64,
    /// New events; their ids have been checked.
    pub(super) events: Vec<StoredEvent>,
    /// What to store about the execution.
    pub(super) metadata: ExecutionMetadata,
    /// The store's time.
    pub(super) now_ms: u64,
}

impl InstanceCommit<'_> {
    /// A commit that stores nothing only consumes messages: it creates neither instance nor execution.
    fn stores_something(&self) -> bool {
        !self.events.is_empty() || self.metadata != ExecutionMetadata::default()
    }
}

impl Execution {
    fn new(execution_id: u64, now_ms: u64) -> Self {
        Execution {
            execution_id,
            status: ExecutionStatus::Running,
            output: None,
            pinned_version: None,
            incarnation: None,
            started_at_ms: now_ms,
            completed_at_ms: None,
            events: Vec::new(),
        }
    }

    /// An execution that comes from elsewhere, without its events.
    pub(super) fn restored(content: ExecutionContent) -> Self {
        Execution {
            execution_id: content.execution_id,
            status: content.status,
            output: content.output,
            pinned_version: content.pinned_version,
            incarnation: content.incarnation,
            started_at_ms: content.started_at_ms,
            completed_at_ms: content.completed_at_ms,
            events: Vec::new(),
        }
    }

    /// All of it but its events.
    fn content(&self) -> ExecutionContent {
        ExecutionContent {
            execution_id: self.execution_id,
            status: self.status,
            output: self.output.clone(),
            pinned_version: self.pinned_version.clone(),
            incarnation: self.incarnation,
            started_at_ms: self.started_at_ms,
            completed_at_ms: self.completed_at_ms,
        }
    }

    /// Whether it has ended; one that continued as new has, though its instance has not.
    fn has_ended(&self) -> bool {
        self.status.is_terminal() || self.status == ExecutionStatus::ContinuedAsNew
    }

    /// Id of the last event; 0 when there is none.
    pub(super) fn last_event_id(&self) -> u64 {
        self.events.last().map_or(0, |event| event.event_id)
    }

    fn apply(&mut self, metadata: &mut ExecutionMetadata, now_ms: u64) {
        if let Some(status) = metadata.status {
            self.status = status;
            self.completed_at_ms = self.has_ended().then_some(now_ms);
        }
        if let Some(output) = metadata.output.take() {
            self.output = Some(output);
        }
        if let Some(version) = metadata.pinned_version.take() {
            self.pinned_version = Some(version);
        }
        if metadata.incarnation.is_some() {
            self.incarnation = metadata.incarnation;
        }
    }

    /// The events behind one.
    pub(super) fn events_after(&self, event_id: u64) -> &[StoredEvent] {
        &self.events[self.events.partition_point(|event| event.event_id <= event_id)..]
    }
}

impl InstanceTable {
    /// What is known of an instance.
    pub(super) fn info(&self, instance: &str) -> Option<&InstanceInfo> {
        self.rows.get(instance).map(|row| &row.info)
    }

    /// One execution.
    pub(super) fn execution(&self, instance: &str, execution_id: u64) -> Option<&Execution> {
        self.rows.get(instance)?.execution(execution_id)
    }

    /// The current execution, with its id.
    pub(super) fn current_execution(&self, instance: &str) -> Option<&Execution> {
        let row = self.rows.get(instance)?;
        row.execution(row.info.current_execution_id)
    }

    /// Execution ids, ascending.
    pub(super) fn execution_ids(&self, instance: &str) -> Vec<u64> {
        self.rows.get(instance).map_or_else(Vec::new, |row| {
            row.executions.iter().map(|execution| execution.execution_id).collect()
        })
    }

    /// What is known of an execution.
    pub(super) fn execution_info(&self, instance: &str, execution_id: u64) -> Option<ExecutionInfo> {
        let execution = self.execution(instance, execution_id)?;
        Some(ExecutionInfo {
            execution_id,
            status: execution.status,
            output: execution.output.clone(),
            started_at_ms: execution.started_at_ms,
            completed_at_ms: execution.completed_at_ms,
            event_count: execution.events.len() as u64,
        })
    }

    /// The indexes, for listings.
    pub(super) fn index(&self) -> &InstanceIndex {
        &self.index
    }

    /// Fails when an event id is not above all before it.
    pub(super) fn check_new_events(
        &self,
        operation: &'static str,
        instance: &str,
        execution_id: u64,
        events: &[StoredEvent],
    ) -> Result<(), ProviderError> {
        let last_event_id = self.execution(instance, execution_id).map_or(0, Execution::last_event_id);
        let Some(event_id) = StoredEvent::first_not_ascending(last_event_id, events) else { return Ok(()) };
        let message = format!(
            "event {event_id} of execution {execution_id} of {instance} comes too late; fetch the item again"
        );
        Err(ProviderError::new(ErrorKind::Conflict, operation, message))
    }

    /// Ends the current execution if it has not ended, and makes the next one. Returns the row.
    pub(super) fn begin_next(
        &mut self,
        instance: &Arc<str>,
        next: &NextExecution,
        now_ms: u64,
    ) -> Option<&InstanceInfo> {
        let ended = self.current_execution(instance).is_some_and(Execution::has_ended);
        let ending = next.unended.metadata().filter(|_| !ended);
        let both = [(next.after_execution_id, ending), (next.after_execution_id + 1, Some(next.metadata()))];
        for (execution_id, metadata) in both {
            let Some(metadata) = metadata else { continue };
            self.commit(InstanceCommit { instance, execution_id, events: Vec::new(), metadata, now_ms });
        }
        let row = self.rows.get_mut(instance)?;
        row.info.orchestration_version = next.orchestration_version.clone();
        Some(&row.info)
    }

    /// Applies a commit whose events have been checked. Returns the row, or `None` when there is none and the
    /// commit stores nothing that would make one.
    pub(super) fn commit(&mut self, commit: InstanceCommit<'_>) -> Option<&InstanceInfo> {
        let stores_something = commit.stores_something();
        if stores_something && !self.rows.contains_key(commit.instance) {
            self.create(&commit);
        }
        let row = self.rows.get_mut(commit.instance)?;
        row.info.revision += 1;
        row.info.updated_at_ms = commit.now_ms;
        if stores_something {
            let mut metadata = commit.metadata;
            let place = row.place_of(commit.execution_id).unwrap_or_else(|place| {
                self.execution_count += 1;
                row.executions.insert(place, Execution::new(commit.execution_id, commit.now_ms));
                place
            });
            let execution = &mut row.executions[place];
            self.event_count += commit.events.len() as u64;
            execution.events.extend(commit.events);
            execution.apply(&mut metadata, commit.now_ms);
            if commit.execution_id >= row.info.current_execution_id {
                row.info.current_execution_id = commit.execution_id;
                row.show_current(&mut self.index);
            }
            row.apply(metadata, &mut self.index);
        }
        Some(&row.info)
    }

    /// Makes the row of a first commit.
    fn create(&mut self, commit: &InstanceCommit<'_>) {
        let InstanceCommit { instance, execution_id, now_ms, .. } = *commit;
        let info = InstanceInfo {
            instance_id: instance.as_ref().to_owned(),
            orchestration_name: None,
            orchestration_version: None,
            current_execution_id: execution_id,
            status: ExecutionStatus::Running,
            output: None,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            completed_at_ms: None,
            parent_instance_id: None,
            pinned_version: None,
            custom_status: None,
            custom_status_version: 0,
            labels: BTreeMap::new(),
            revision: 0,
        };
        let age = (Reverse(now_ms), Arc::clone(instance));
        self.index.insert(&age, &info);
        let row = InstanceRow { age, info, executions: Vec::with_capacity(1) };
        self.rows.insert(Arc::clone(instance), Box::new(row));
    }

    /// Everything, in the order of a transfer, without what is between instances and queues.
    pub(super) fn content(&self) -> Vec<ContentItem> {
        let mut items = Vec::with_capacity(self.rows.len() * 2 + self.event_count as usize);
        for id in self.index.ids() {
            let row = self.rows.get(id).expect("the indexes name rows");
            items.push(ContentItem::Instance(Box::new(InstanceContent::from(&row.info))));
            for execution in &row.executions {
                items.push(ContentItem::Execution(Box::new(execution.content())));
                items.extend(execution.events.iter().cloned().map(ContentItem::Event));
            }
        }
        items
    }

    /// Puts a whole instance in, whose executions are ascending and end with the current one.
    pub(super) fn restore(&mut self, instance: &InstanceContent, executions: Vec<Execution>) {
        let Some(current) = executions.last() else { return };
        let info = instance.info(&current.content());
        let id: Arc<str> = Arc::from(info.instance_id.as_str());
        let age = (Reverse(info.created_at_ms), Arc::clone(&id));
        self.index.insert(&age, &info);
        self.execution_count += executions.len() as u64;
        self.event_count += executions.iter().map(|execution| execution.events.len() as u64).sum::<u64>();
        self.rows.insert(id, Box::new(InstanceRow { age, info, executions }));
    }

    /// Removes an instance; adds what was removed to `deleted`.
    pub(super) fn remove(&mut self, instance: &str, deleted: &mut DeleteInstanceResult) {
        let Some(row) = self.rows.remove(instance) else { return };
        self.index.remove(&row.age, &row.info);
        let events: u64 = row.executions.iter().map(|execution| execution.events.len() as u64).sum();
        let executions = row.executions.len() as u64;
        self.event_count -= events;
        self.execution_count -= executions;
        deleted.instances_deleted += 1;
        deleted.executions_deleted += executions;
        deleted.events_deleted += events;
    }

    /// Removes old executions of an instance; adds what was removed to `pruned`.
    pub(super) fn prune(&mut self, instance: &str, options: PruneOptions, pruned: &mut PruneResult) {
        let Some(row) = self.rows.get_mut(instance) else { return };
        pruned.instances_processed += 1;
        let keep = options.keep_last.map_or(1, |keep| keep.max(1) as usize);
        let in_time = |execution: &Execution| match (options.completed_before_ms, execution.completed_at_ms) {
            (Some(before_ms), Some(completed_at_ms)) => completed_at_ms < before_ms,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let current = row.info.current_execution_id;
        let kept_from = row.executions.len().saturating_sub(keep);
        let oldest_kept = row.executions.get(kept_from).map_or(u64::MAX, |execution| execution.execution_id);
        let removed = row.executions.extract_if(.., |execution| {
            let is_old = execution.execution_id < oldest_kept && execution.execution_id != current;
            is_old && execution.has_ended() && in_time(execution)
        });
        for execution in removed {
            let events = execution.events.len() as u64;
            self.event_count -= events;
            self.execution_count -= 1;
            pruned.executions_deleted += 1;
            pruned.events_deleted += events;
        }
    }

    /// Counts over all instances.
    pub(super) fn metrics(&self) -> SystemMetrics {
        let count = |status| self.index.status_count(status);
        SystemMetrics {
            total_instances: self.rows.len() as u64,
            total_executions: self.execution_count,
            pending_instances: count(ExecutionStatus::Pending),
            running_instances: count(ExecutionStatus::Running) + count(ExecutionStatus::ContinuedAsNew),
            paused_instances: count(ExecutionStatus::Paused),
            completed_instances: count(ExecutionStatus::Completed),
            failed_instances: count(ExecutionStatus::Failed),
            cancelled_instances: count(ExecutionStatus::Cancelled),
            total_events: self.event_count,
        }
    }

    /// Instances that match a bulk filter, its limit apart: ended ones by completion, then, unless the filter has a
    /// completion time, the others by age. Named ids are looked up; the whole table is walked only without them.
    pub(super) fn matching<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> Box<dyn Iterator<Item = &'a InstanceInfo> + 'a> {
        let before_ms = filter.completed_before_ms;
        let in_time = move |info: &&InstanceInfo| match (before_ms, ended_at_ms(info)) {
            (Some(before_ms), Some(ended_at_ms)) => ended_at_ms < before_ms,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if let Some(ids) = &filter.instance_ids {
            let unique: BTreeSet<&String> = ids.iter().collect();
            let mut named: Vec<&InstanceInfo> = unique.into_iter().filter_map(|id| self.info(id)).collect();
            named.sort_by_key(|info| (ended_at_ms(info).unwrap_or(u64::MAX), info.created_at_ms));
            return Box::new(named.into_iter().filter(in_time));
        }
        let row = |id: &Arc<str>| &self.rows.get(id).expect("the indexes name rows").info;
        let ended = self.index.ended().map(row).take_while(in_time);
        let oldest_first = self.index.newest_first().rev().map(row);
        let others = oldest_first.filter(move |info| before_ms.is_none() && ended_at_ms(info).is_none());
        Box::new(ended.chain(others))
    }

    /// A page of a listing.
    pub(super) fn page(&self, query: &InstanceQuery) -> InstancePage {
        if query.limit == 0 {
            return InstancePage::default();
        }
        let row = |id: &Arc<str>| &self.rows.get(id).expect("the indexes name rows").info;
        // One more than requested shows whether another page follows.
        let mut found = self.index.select(query, query.limit.saturating_add(1), row);
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let cursor = |last: &&InstanceInfo| InstanceCursor {
            created_at_ms: last.created_at_ms,
            instance_id: last.instance_id.clone(),
        };
        let next = found.last().filter(|_| more).map(cursor);
        InstancePage { instances: found.into_iter().cloned().collect(), next, ..InstancePage::default() }
    }
}

impl InstanceRow {
    /// Where an execution is, or would be inserted.
    fn place_of(&self, execution_id: u64) -> Result<usize, usize> {
        self.executions.binary_search_by_key(&execution_id, |execution| execution.execution_id)
    }

    fn execution(&self, execution_id: u64) -> Option<&Execution> {
        self.place_of(execution_id).ok().and_then(|place| self.executions.get(place))
    }

    /// Copies what the row shows of its current execution.
    fn show_current(&mut self, index: &mut InstanceIndex) {
        let place = self.place_of(self.info.current_execution_id).expect("the current execution exists");
        let current = &self.executions[place];
        if (self.info.status, self.info.completed_at_ms) != (current.status, current.completed_at_ms) {
            index.unlink_status(&self.age, &self.info);
            self.info.status = current.status;
            self.info.completed_at_ms = current.completed_at_ms;
            index.link_status(&self.age, &self.info);
        }
        self.info.output.clone_from(&current.output);
        self.info.pinned_version.clone_from(&current.pinned_version);
    }

    /// Stores what belongs to the instance whatever its execution.
    fn apply(&mut self, metadata: ExecutionMetadata, index: &mut InstanceIndex) {
        let (age, info) = (&self.age, &mut self.info);
        if metadata.orchestration_name.is_some() && metadata.orchestration_name != info.orchestration_name {
            index.unlink_name(age, info);
            info.orchestration_name = metadata.orchestration_name;
            index.link_name(age, info);
        }
        if metadata.orchestration_version.is_some() {
            info.orchestration_version = metadata.orchestration_version;
        }
        if metadata.parent_instance_id.is_some() && metadata.parent_instance_id != info.parent_instance_id {
            index.unlink_parent(age, info);
            info.parent_instance_id = metadata.parent_instance_id;
            index.link_parent(age, info);
        }
        if let Some(labels) = metadata.labels {
            index.unlink_labels(age, info);
            info.labels = labels;
            index.link_labels(age, info);
        }
        if let Some(change) = metadata.custom_status {
            info.custom_status_version += 1;
            info.custom_status = match change {
                CustomStatusChange::Set(status) => Some(status),
                CustomStatusChange::Clear => None,
            };
        }
    }
}

#[cfg(test)]
#[path = "instance_table_tests.rs"]
mod tests;
