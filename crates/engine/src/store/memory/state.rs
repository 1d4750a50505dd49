//! The whole state as one machine: every operation takes the time and plain data, checks everything, then changes
//! everything. No clock and no waiting in here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::instance_table::{InstanceCommit, InstanceTable};
use super::record_table::RecordTable;
use crate::clock::duration_ms;
use crate::store::core::orchestrator_queue::{FetchedBatch, OrchestratorQueue};
use crate::store::core::peek_lock::Sequence;
use crate::store::core::watch::Watches;
use crate::store::core::worker_queue::{WorkFilter, WorkerQueue};
use crate::store::{
    AckOrchestrationItem, AckWorkItem, DeleteInstanceResult, EndedCursor, EndedPage, EndedQuery, ErrorKind,
    ExecutionMetadata, ExecutionPosition, ExecutionStatus, FetchOrchestrationItems, FetchWorkItems,
    FetchedHistory, Guards, InstanceFilter, InstanceInfo, InstanceVersion, LockedWorkItem, NextExecution,
    OrchestrationItem, OrchestratorMessage, ProviderError, PruneOptions, PruneResult, QueueDepths,
    RecordBatch, ResidentExecutions, StartGuard, StoredEvent, TurnLock,
};

/// The whole state of the store.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Lock tokens of both queues, so that no token is ever given twice.
    tokens: Sequence,
    pub(super) orchestrations: OrchestratorQueue,
    pub(super) work: WorkerQueue,
    pub(super) instances: InstanceTable,
    pub(super) records: RecordTable,
    pub(super) watches: Watches,
}

impl State {
    /// Lets time pass: shows what is due and ends locks that have run out. Comes before every other operation.
    pub(super) fn advance(&mut self, now_ms: u64) {
        self.orchestrations.advance(now_ms);
        self.work.advance(now_ms);
        self.records.sweep(now_ms);
    }

    /// Locks ready instances.
    pub(super) fn fetch_turns(
        &mut self,
        request: &FetchOrchestrationItems<'_>,
        now_ms: u64,
    ) -> Vec<OrchestrationItem> {
        let until_ms = now_ms.saturating_add(duration_ms(request.lock_timeout));
        let mut items = Vec::new();
        while items.len() < request.max_items
            && let Some(batch) = self.orchestrations.take_next(request.filter, until_ms, &mut self.tokens)
        {
            items.push(self.orchestration_item(batch, request.resident, now_ms));
        }
        items
    }

    fn orchestration_item(
        &self,
        batch: FetchedBatch,
        resident: Option<&Arc<dyn ResidentExecutions>>,
        now_ms: u64,
    ) -> OrchestrationItem {
        let info = self.instances.info(&batch.instance);
        let execution = self.instances.current_execution(&batch.instance);
        let execution_id = info.map_or(1, |info| info.current_execution_id);
        let last_event_id = execution.map_or(0, |execution| execution.last_event_id());
        let held = |resident: &Arc<dyn ResidentExecutions>| {
            let incarnation = execution.and_then(|execution| execution.incarnation);
            let instance = &*batch.instance;
            last_event_id > 0
                && resident.holds(&ExecutionPosition { instance, execution_id, incarnation, last_event_id })
        };
        let history = if resident.is_some_and(held) {
            FetchedHistory::Resident
        } else {
            FetchedHistory::Events(execution.map_or_else(Vec::new, |execution| execution.events.clone()))
        };
        OrchestrationItem {
            instance: Arc::clone(&batch.instance),
            orchestration_name: info.and_then(|info| info.orchestration_name.clone()),
            version: info.and_then(|info| info.orchestration_version.clone()),
            execution_id,
            status: info.map(|info| info.status),
            last_event_id,
            history,
            messages: batch.messages,
            lock_token: batch.lock_token,
            attempt_count: batch.attempt_count,
            fetched_at_ms: now_ms,
        }
    }

    /// Commits a turn.
    pub(super) fn ack_turn(&mut self, turn: AckOrchestrationItem, now_ms: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "ack_orchestration_item";
        let locked = match turn.lock {
            TurnLock::Instance => self.orchestrations.locked_instance(turn.lock_token),
            TurnLock::Activity { .. } => self.joined_instance(&turn, now_ms),
        };
        let instance = Arc::clone(locked.ok_or_else(|| ProviderError::lock_lost(OPERATION))?);
        let execution_id = turn.execution_id;
        self.instances.check_new_events(OPERATION, &instance, execution_id, &turn.history_delta)?;
        self.records.check(OPERATION, &turn.records, now_ms)?;

        // The messages of the turn go before new ones come, so that a start that this turn consumes does not stand in
        // the way of one that it enqueues.
        match turn.lock {
            TurnLock::Instance => drop(self.orchestrations.consume(turn.lock_token, turn.after)),
            TurnLock::Activity { .. } => drop(self.work.finish(turn.lock_token, now_ms)),
        }
        self.commit_instance(InstanceCommit {
            instance: &instance,
            execution_id,
            events: turn.history_delta,
            metadata: turn.metadata,
            now_ms,
        });
        for message in turn.worker_items {
            self.work.enqueue(message, now_ms);
        }
        for message in turn.orchestrator_items {
            self.enqueue_unless_started(message, now_ms);
        }
        // Cancelling comes last, so that it also reaches what the same turn scheduled.
        for activity in &turn.cancelled_activities {
            self.work.cancel(activity);
        }
        for timer in turn.cancelled_timers {
            self.orchestrations.cancel_timer(&instance, timer);
        }
        self.records.apply(turn.records, now_ms);
        Ok(())
    }

    /// The instance of the activity that a turn joins, if it may; see [`TurnLock::Activity`].
    fn joined_instance(&self, turn: &AckOrchestrationItem, now_ms: u64) -> Option<&Arc<str>> {
        let (instance, attempts) = self.work.locked_activity(turn.lock_token)?;
        let execution = self.instances.current_execution(instance)?;
        let current = ExecutionPosition {
            instance,
            execution_id: self.instances.info(instance)?.current_execution_id,
            incarnation: execution.incarnation,
            last_event_id: execution.last_event_id(),
        };
        let joins =
            attempts == 1 && turn.goes_on_from(&current) && self.orchestrations.is_at_rest(instance, now_ms);
        joins.then_some(instance)
    }

    /// Appends events outside a turn.
    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: Vec<StoredEvent>,
        now_ms: u64,
    ) -> Result<(), ProviderError> {
        self.instances.check_new_events("append_with_execution", instance, execution_id, &events)?;
        let (instance, metadata) = (&Arc::from(instance), ExecutionMetadata::default());
        self.commit_instance(InstanceCommit { instance, execution_id, events, metadata, now_ms });
        Ok(())
    }

    fn commit_instance(&mut self, commit: InstanceCommit<'_>) {
        let instance = commit.instance;
        if let Some(info) = self.instances.commit(commit) {
            self.orchestrations.set_pin(instance, info.pinned_version.as_ref());
            self.watches.answer(info);
        }
    }

    /// Begins the next execution of an instance.
    pub(super) fn begin_next(&mut self, next: NextExecution, now_ms: u64) -> Result<(), ProviderError> {
        let instance: Arc<str> = Arc::from(next.instance());
        let has_start = self.orchestrations.has_guarded_start(&instance);
        let current =
            self.instances.current_execution(&instance).filter(|_| self.is_named(&instance) || has_start);
        match current {
            Some(current) if current.incarnation == Some(next.incarnation) => return Ok(()),
            Some(current) => next.check(current.execution_id, current.status)?,
            None if has_start => next.check(1, ExecutionStatus::Pending)?,
            None => return Err(next.absent()),
        }
        self.orchestrations.reset(&instance, now_ms);
        self.work.remove_instance(&instance);
        if let Some(info) = self.instances.begin_next(&instance, &next, now_ms) {
            self.orchestrations.set_pin(&instance, info.pinned_version.as_ref());
            self.watches.answer(info);
        }
        self.orchestrations.enqueue(next.start, now_ms, |_| None);
        Ok(())
    }

    fn is_named(&self, instance: &str) -> bool {
        self.instances.info(instance).is_some_and(|info| info.orchestration_name.is_some())
    }

    /// Adds a message. Fails if its guard forbids it.
    pub(super) fn enqueue(&mut self, message: OrchestratorMessage, now_ms: u64) -> Result<(), ProviderError> {
        self.check_guard(&message)?;
        let instances = &self.instances;
        let pin = |instance: &str| instances.info(instance).and_then(|info| info.pinned_version.clone());
        self.orchestrations.enqueue(message, now_ms, pin);
        Ok(())
    }

    /// Adds a message of a larger commit; a second start is left out, because starting twice is starting once.
    fn enqueue_unless_started(&mut self, message: OrchestratorMessage, now_ms: u64) {
        let _left_out = self.enqueue(message, now_ms);
    }

    fn check_guard(&self, message: &OrchestratorMessage) -> Result<(), ProviderError> {
        const OPERATION: &str = "enqueue_for_orchestrator";
        let instance = message.instance.as_str();
        let is_there = || self.is_named(instance) || self.orchestrations.has_guarded_start(instance);
        match message.guard {
            StartGuard::IfAbsent if is_there() => Err(exists(instance)),
            StartGuard::IfPresent if !is_there() => {
                let text = format!("there is no instance {instance}, and no start for it waits");
                Err(ProviderError::new(ErrorKind::NotFound, OPERATION, text))
            }
            _ => Ok(()),
        }
    }

    /// Fails when a guard forbids one of these messages, each judged after those before it.
    fn check_guards(&self, messages: &[OrchestratorMessage]) -> Result<(), ProviderError> {
        let mut started = BTreeSet::new();
        for message in messages {
            let instance = message.instance.as_str();
            match message.guard {
                StartGuard::IfAbsent if started.contains(instance) => return Err(exists(instance)),
                StartGuard::IfPresent if started.contains(instance) => {}
                _ => self.check_guard(message)?,
            }
            if message.guard == StartGuard::IfAbsent {
                started.insert(instance);
            }
        }
        Ok(())
    }

    /// Locks ready activities.
    pub(super) fn fetch_work(&mut self, request: &FetchWorkItems<'_>, now_ms: u64) -> Vec<LockedWorkItem> {
        let until_ms = now_ms.saturating_add(duration_ms(request.lock_timeout));
        let wanted = WorkFilter { tags: request.tag_filter, session: request.session };
        let mut items = Vec::new();
        while items.len() < request.max_items
            && let Some(item) = self.work.take_next(&wanted, until_ms, now_ms, &mut self.tokens)
        {
            items.push(item);
        }
        items
    }

    /// Removes a finished activity and enqueues its completion.
    pub(super) fn ack_work(&mut self, ack: AckWorkItem, now_ms: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "ack_work_item";
        if !self.work.holds(ack.lock_token) {
            return Err(ProviderError::lock_lost(OPERATION));
        }
        self.records.check(OPERATION, &ack.records, now_ms)?;
        self.work.finish(ack.lock_token, now_ms);
        if let Some(completion) = ack.completion {
            self.enqueue_unless_started(completion, now_ms);
        }
        self.records.apply(ack.records, now_ms);
        Ok(())
    }

    /// Applies a batch of record changes and enqueues its messages.
    pub(super) fn commit_records(
        &mut self,
        batch: RecordBatch,
        now_ms: u64,
    ) -> Result<Vec<u64>, ProviderError> {
        self.records.check("commit_records", &batch.writes, now_ms)?;
        if batch.guards == Guards::Refuse {
            self.check_guards(&batch.orchestrator_items)?;
        }
        for message in batch.orchestrator_items {
            self.enqueue_unless_started(message, now_ms);
        }
        for message in batch.worker_items {
            self.work.enqueue(message, now_ms);
        }
        Ok(self.records.apply(batch.writes, now_ms))
    }

    /// Whether nothing is stored and nothing waits.
    pub(super) fn is_empty(&self, now_ms: u64) -> bool {
        let (orchestrations, work) = (self.orchestrations.depths(), self.work.depths());
        let queued =
            [orchestrations, work].into_iter().map(|depths| depths.visible + depths.delayed + depths.locked);
        self.instances.index().ids().next().is_none()
            && queued.sum::<u64>() == 0
            && self.records.is_empty(now_ms)
    }

    /// Queue lengths.
    pub(super) fn queue_depths(&self) -> QueueDepths {
        let (orchestrations, work) = (self.orchestrations.depths(), self.work.depths());
        QueueDepths {
            orchestrator_queue: orchestrations.visible,
            worker_queue: work.visible,
            orchestrator_delayed: orchestrations.delayed,
            worker_delayed: work.delayed,
            locked: orchestrations.locked + work.locked,
        }
    }

    /// Fails when one of the instances has a child outside the set, or has not ended.
    pub(super) fn check_delete(&self, ids: &BTreeSet<&str>, unended: Unended) -> Result<(), ProviderError> {
        let conflict =
            |text: String| Err(ProviderError::new(ErrorKind::Conflict, "delete_instances_atomic", text));
        for id in ids {
            let Some(info) = self.instances.info(id) else { continue };
            if unended == Unended::Refuse && !info.status.is_terminal() {
                return conflict(format!("{id} is {}; cancel it first or force the deletion", info.status));
            }
            if !self.instances.index().all_children(id, |child| ids.contains(child)) {
                return conflict(format!("{id} has a child that would be orphaned; delete the whole tree"));
            }
        }
        Ok(())
    }

    /// Removes an instance with everything that belongs to it, known or not.
    pub(super) fn delete(&mut self, instance: &str, deleted: &mut DeleteInstanceResult) {
        self.instances.remove(instance, deleted);
        let messages = self.orchestrations.remove_instance(instance).len();
        let activities = self.work.remove_instance(instance).len();
        deleted.queue_messages_deleted += (messages + activities) as u64;
    }

    /// Removes ended root instances that match, each with its tree, unless something in the tree has not ended.
    pub(super) fn delete_bulk(&mut self, filter: &InstanceFilter) -> DeleteInstanceResult {
        let trees: Vec<Vec<Arc<str>>> = self
            .instances
            .matching(filter)
            .filter(|info| info.parent_instance_id.is_none())
            .filter_map(|info| self.ended_tree(&info.instance_id))
            .take(limit_of(filter))
            .collect();
        let mut deleted = DeleteInstanceResult::default();
        for instance in trees.iter().flatten() {
            self.delete(instance, &mut deleted);
        }
        deleted
    }

    /// The instance and all its descendants, if all have ended.
    fn ended_tree(&self, root: &str) -> Option<Vec<Arc<str>>> {
        let mut tree: Vec<Arc<str>> = vec![Arc::from(root)];
        let mut next = 0;
        while let Some(instance) = tree.get(next) {
            if !self.instances.info(instance)?.status.is_terminal() {
                return None;
            }
            let children = self.instances.index().children(instance);
            tree.extend(children);
            next += 1;
        }
        Some(tree)
    }

    /// Trees of ended roots, each with the states of its instances.
    pub(super) fn ended_trees(&self, query: &EndedQuery) -> EndedPage {
        let after =
            query.after.as_ref().map(|after| (after.completed_at_ms, Arc::from(after.instance_id.as_str())));
        let before_ms = query.completed_before_ms.unwrap_or(u64::MAX);
        let info = |id: &Arc<str>| self.instances.info(id);
        let place = |info: &InstanceInfo| EndedCursor {
            completed_at_ms: info.completed_at_ms.unwrap_or_default(),
            instance_id: info.instance_id.clone(),
        };
        let ended = self.instances.index().ended_after(after).filter_map(info);
        let in_time = ended.take_while(|info| info.completed_at_ms.is_some_and(|at_ms| at_ms < before_ms));
        let mut roots = in_time.filter(|info| info.parent_instance_id.is_none());
        let considered: Vec<&InstanceInfo> = roots.by_ref().take(query.limit).collect();
        let is_more = query.limit > 0 && roots.next().is_some();
        let versions =
            |tree: Vec<Arc<str>>| tree.iter().filter_map(info).map(InstanceInfo::version).collect();
        let trees = considered.iter().filter_map(|root| self.ended_tree(&root.instance_id)).map(versions);
        EndedPage {
            trees: trees.collect(),
            next: considered.last().filter(|_| is_more).map(|last| place(last)),
        }
    }

    /// Removes trees whose instances are as they were listed.
    pub(super) fn delete_unchanged(&mut self, trees: &[Vec<InstanceVersion>]) -> DeleteInstanceResult {
        let mut deleted = DeleteInstanceResult::default();
        for tree in trees {
            let ids: BTreeSet<&str> = tree.iter().map(|version| version.instance_id.as_str()).collect();
            let is_unchanged = |version: &InstanceVersion| {
                let info = self.instances.info(&version.instance_id);
                info.is_some_and(|info| info.status.is_terminal() && info.version() == *version)
            };
            if !tree.iter().all(is_unchanged) || self.check_delete(&ids, Unended::Refuse).is_err() {
                continue;
            }
            for id in ids {
                self.delete(id, &mut deleted);
            }
        }
        deleted
    }

    /// Prunes every instance that matches.
    pub(super) fn prune_bulk(&mut self, filter: &InstanceFilter, options: PruneOptions) -> PruneResult {
        let matching = self.instances.matching(filter).take(limit_of(filter));
        let instances: Vec<String> = matching.map(|info| info.instance_id.clone()).collect();
        let mut pruned = PruneResult::default();
        for instance in &instances {
            self.instances.prune(instance, options, &mut pruned);
        }
        pruned
    }
}

/// What a deletion does with instances that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unended {
    /// The deletion fails.
    Refuse,
    /// They are removed like the others.
    Remove,
}

fn limit_of(filter: &InstanceFilter) -> usize {
    filter.limit.map_or(usize::MAX, |limit| limit as usize)
}

/// A start of what is there.
fn exists(instance: &str) -> ProviderError {
    let text = format!("{instance} exists already or is about to start; use another id");
    ProviderError::new(ErrorKind::Conflict, "enqueue_for_orchestrator", text)
}
