//! Commits: the turn, the finished activity, single messages, events and records.

use std::sync::Arc;

use segno::clock::duration_ms;
use segno::store::memory::peek_lock::Standing;
use segno::store::{
    AckOrchestrationItem, AckWorkItem, ErrorKind, ExecutionMetadata, Expect, Guards, OrchestratorMessage,
    ProviderError, RecordBatch, RecordWrite, StartGuard, StoredEvent, TurnLock, WorkerMessage,
};
use semver::Version;

use crate::error::RowError;
use crate::instance_row::{ExecutionRow, InstanceRow};
use crate::queue_row::RecordRow;
use crate::state::State;
use crate::unsynced::HELD_MS;

/// What a commit changes of an instance.
pub struct InstanceCommit<'a> {
    pub execution_id: u64,
    pub events: &'a [StoredEvent],
    pub metadata: &'a ExecutionMetadata,
    pub now_ms: u64,
}

/// The rows that a commit of an instance starts from.
pub struct Found<R = Arc<InstanceRow>> {
    pub instance: Option<R>,
    /// The execution, if it is not the current one.
    pub earlier: Option<ExecutionRow>,
}

/// What must be known of the instance that a message is for.
#[derive(Default)]
pub struct Target {
    is_named: bool,
    pin: Option<Version>,
}

/// From when on a message can be fetched, its own time aside.
#[derive(Clone, Copy)]
pub enum Showing {
    AtOnce,
    WhenDurable,
}

impl From<Option<&InstanceRow>> for Target {
    fn from(row: Option<&InstanceRow>) -> Self {
        Target {
            is_named: row.is_some_and(|row| row.name.is_some()),
            pin: row.and_then(|row| row.current.pinned_version.clone()),
        }
    }
}

/// Finds the rows that the writes of a batch replace, after checking what they expect.
type OldRecords = Vec<Option<RecordRow>>;

impl State {
    /// Commits a turn.
    pub fn ack_turn(&mut self, turn: &AckOrchestrationItem, now_ms: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "ack_orchestration_item";
        let locked = match turn.lock {
            TurnLock::Instance => self.orchestrations.locked_instance(turn.lock_token),
            TurnLock::Activity { .. } => self.joined_instance(turn, now_ms),
        };
        let instance = Arc::clone(locked.ok_or_else(|| ProviderError::lock_lost(OPERATION))?);
        let found = self.find(OPERATION, &instance, turn.execution_id, &turn.history_delta)?;
        let old_records = self.check_records(OPERATION, &turn.records, now_ms)?;
        let targets = self.targets(OPERATION, &turn.orchestrator_items)?;

        // The messages of the turn go before new ones come, so that a start that this turn consumes does not stand in
        // the way of one that it enqueues.
        match turn.lock {
            TurnLock::Instance => {
                let consumed = self.orchestrations.consume(turn.lock_token, turn.after);
                self.forget_messages(consumed.into_iter().flatten());
            }
            TurnLock::Activity { .. } => {
                let finished = self.work.finish(turn.lock_token, now_ms);
                self.forget_items(finished);
            }
        }
        let commit = InstanceCommit {
            execution_id: turn.execution_id,
            events: &turn.history_delta,
            metadata: &turn.metadata,
            now_ms,
        };
        let row = self.commit_instance(&instance, found, commit);
        for message in &turn.worker_items {
            self.enqueue_work(message.clone(), now_ms);
        }
        for (message, target) in turn.orchestrator_items.iter().zip(targets) {
            let is_own = message.instance == *instance;
            let target = if is_own { Target::from(row.as_deref()) } else { target };
            // A second start is left out, because starting twice is starting once.
            let _left_out = self.enqueue_for(message.clone(), target, Showing::WhenDurable, now_ms);
        }
        // Cancelling comes last, so that it also reaches what the same turn scheduled.
        for activity in &turn.cancelled_activities {
            let cancelled = self.work.cancel(activity);
            self.forget_items(cancelled);
        }
        for &timer in &turn.cancelled_timers {
            let cancelled = self.orchestrations.cancel_timer(&instance, timer);
            self.forget_messages(cancelled);
        }
        self.apply_records(turn.records.clone(), old_records, now_ms);
        Ok(())
    }

    /// The instance of the activity that a turn joins, if it may; see [`TurnLock::Activity`]. Not while something of the instance is on
    /// its way, by the same rule as for messages.
    fn joined_instance(&self, turn: &AckOrchestrationItem, now_ms: u64) -> Option<&Arc<str>> {
        let (instance, attempts) = self.work.locked_activity(turn.lock_token)?;
        let row = self.tables.busy_instance(instance).ok()??;
        let joins = attempts == 1
            && turn.goes_on_from(&row.position(instance))
            && self.orchestrations.is_at_rest(instance, now_ms)
            && !self.unsynced.concerns(instance);
        joins.then_some(instance)
    }

    /// Appends events outside a turn.
    pub fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: Vec<StoredEvent>,
        now_ms: u64,
    ) -> Result<(), ProviderError> {
        let found = self.find("append_with_execution", instance, execution_id, &events)?;
        let metadata = ExecutionMetadata::default();
        let commit = InstanceCommit { execution_id, events: &events, metadata: &metadata, now_ms };
        self.commit_instance(&Arc::from(instance), found, commit);
        Ok(())
    }

    /// The rows that a commit starts from, after checking that its events follow those that are stored.
    fn find(
        &self,
        operation: &'static str,
        instance: &str,
        execution_id: u64,
        events: &[StoredEvent],
    ) -> Result<Found, ProviderError> {
        let failed = |error: RowError| error.at(operation);
        let row = self.tables.busy_instance(instance).map_err(failed)?;
        let earlier = match &row {
            Some(row) if execution_id < row.current.execution_id => {
                self.tables.earlier_execution(instance, execution_id).map_err(failed)?
            }
            _ => None,
        };
        let current =
            row.as_ref().map(|row| &row.current).filter(|current| current.execution_id == execution_id);
        let last_event_id = current.or(earlier.as_ref()).map_or(0, |execution| execution.last_event_id);
        if let Some(event_id) = StoredEvent::first_not_ascending(last_event_id, events) {
            let message = format!(
                "event {event_id} of execution {execution_id} of {instance} comes too late; fetch the item again"
            );
            return Err(ProviderError::new(ErrorKind::Conflict, operation, message));
        }
        Ok(Found { instance: row, earlier })
    }

    /// Changes the rows of an instance. Returns the new row, or `None` when there is none and the commit stores
    /// nothing that would make one: such a commit only consumes messages.
    fn commit_instance(
        &mut self,
        instance: &Arc<str>,
        found: Found,
        commit: InstanceCommit<'_>,
    ) -> Option<Arc<InstanceRow>> {
        let old = found.instance;
        let found = Found { instance: old.as_deref().cloned(), earlier: found.earlier };
        let row = self.change_row(instance, found, commit)?;
        let row = self.tables.put_instance(instance, old.as_deref(), row);
        self.committed(instance, &row);
        Some(row)
    }

    /// Changes all rows of an instance but its own, which the caller puts.
    pub fn change_row(
        &mut self,
        instance: &Arc<str>,
        found: Found<InstanceRow>,
        commit: InstanceCommit<'_>,
    ) -> Option<InstanceRow> {
        let InstanceCommit { execution_id, events, metadata, now_ms } = commit;
        let stores_something = !events.is_empty() || *metadata != ExecutionMetadata::default();
        if found.instance.is_none() && !stores_something {
            return None;
        }
        let mut row = found.instance.unwrap_or_else(|| InstanceRow::new(execution_id, now_ms));
        row.revision += 1;
        row.updated_at_ms = now_ms;
        if stores_something {
            let mut earlier = found.earlier;
            if execution_id > row.current.execution_id {
                let next = ExecutionRow::new(execution_id, now_ms);
                self.tables.put_execution(instance, &std::mem::replace(&mut row.current, next));
                row.execution_count += 1;
            } else if execution_id < row.current.execution_id && earlier.is_none() {
                earlier = Some(ExecutionRow::new(execution_id, now_ms));
                row.execution_count += 1;
            }
            let execution = earlier.as_mut().unwrap_or(&mut row.current);
            execution.event_count += events.len() as u64;
            let newest = events.iter().map(|event| event.event_id).max().unwrap_or(0);
            execution.last_event_id = execution.last_event_id.max(newest);
            execution.apply(metadata, now_ms);
            row.event_count += events.len() as u64;
            self.tables.insert_events(instance, execution_id, events);
            if let Some(earlier) = &earlier {
                self.tables.put_execution(instance, earlier);
            }
            row.apply(metadata);
        }
        Some(row)
    }

    /// Adds a message, or says that its guard forbids it.
    pub fn enqueue(&mut self, message: OrchestratorMessage, now_ms: u64) -> Result<(), ProviderError> {
        let target = self.target("enqueue_for_orchestrator", &message)?;
        let showing = self.earliest_showing(&message.instance);
        self.enqueue_for(message, target, showing, now_ms)
    }

    /// Adds an activity.
    pub fn enqueue_work(&mut self, message: WorkerMessage, now_ms: u64) {
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        let item_id = self.tables.facts.last_item_id + 1;
        self.tables.insert_activity(item_id, &message, visible_at_ms);
        let Some(message) = self.lease_on_arrival(item_id, message, visible_at_ms, now_ms) else { return };
        self.unsynced.filling_mut().items.push((item_id, visible_at_ms));
        let standing = Standing { id: item_id, visible_at_ms: HELD_MS, attempts: 0 };
        self.work.restore(standing, message, now_ms);
    }

    fn targets(
        &self,
        operation: &'static str,
        messages: &[OrchestratorMessage],
    ) -> Result<Vec<Target>, ProviderError> {
        messages.iter().map(|message| self.target(operation, message)).collect()
    }

    fn target(
        &self,
        operation: &'static str,
        message: &OrchestratorMessage,
    ) -> Result<Target, ProviderError> {
        if message.guard == StartGuard::None && self.orchestrations.knows(&message.instance) {
            return Ok(Target::default());
        }
        let row = self.tables.busy_instance(&message.instance).map_err(|error| error.at(operation))?;
        Ok(Target::from(row.as_deref()))
    }

    /// A message from outside may be worked on before it is durable: a turn is pure, and its commit lies behind the message
    /// in the log. Not while something of its instance is on its way: the fetch would have to wait for a commit, and a
    /// message that is held back would be overtaken.
    fn earliest_showing(&self, instance: &str) -> Showing {
        if self.unsynced.concerns(instance) { Showing::WhenDurable } else { Showing::AtOnce }
    }

    /// Fails when a guard forbids one of these messages, each judged after those before it.
    fn check_guards(
        &self,
        messages: &[OrchestratorMessage],
        targets: &[Target],
    ) -> Result<(), ProviderError> {
        let mut started = std::collections::BTreeSet::new();
        for (message, target) in messages.iter().zip(targets) {
            let instance = message.instance.as_str();
            let is_there = || {
                started.contains(instance)
                    || target.is_named
                    || self.orchestrations.has_guarded_start(instance)
            };
            check_guard(message, is_there)?;
            if message.guard == StartGuard::IfAbsent {
                started.insert(instance);
            }
        }
        Ok(())
    }

    pub fn enqueue_for(
        &mut self,
        message: OrchestratorMessage,
        target: Target,
        showing: Showing,
        now_ms: u64,
    ) -> Result<(), ProviderError> {
        let is_there = || target.is_named || self.orchestrations.has_guarded_start(&message.instance);
        check_guard(&message, is_there)?;
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        let message_id = self.tables.facts.last_message_id + 1;
        self.tables.insert_message(message_id, &message, visible_at_ms);
        let visible_at_ms = match showing {
            Showing::AtOnce => visible_at_ms,
            Showing::WhenDurable => {
                self.unsynced.hold_back(&message.instance, message_id, visible_at_ms);
                HELD_MS
            }
        };
        let standing = Standing { id: message_id, visible_at_ms, attempts: 0 };
        self.orchestrations.restore(standing, message, now_ms, |_| target.pin);
        Ok(())
    }

    /// Removes a finished activity and enqueues its completion.
    pub fn ack_work(&mut self, ack: AckWorkItem, now_ms: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "ack_work_item";
        if !self.work.holds(ack.lock_token) {
            return Err(ProviderError::lock_lost(OPERATION));
        }
        let old_records = self.check_records(OPERATION, &ack.records, now_ms)?;
        let target = match &ack.completion {
            Some(completion) => self.target(OPERATION, completion)?,
            None => Target::default(),
        };
        // A turn that brings the process down must reach its limit of deliveries. If it did so again and again before its
        // message is durable, only the activity would be delivered again, without end.
        let is_suspect = self.is_suspect(ack.lock_token);
        let finished = self.work.finish(ack.lock_token, now_ms);
        self.forget_items(finished);
        if let Some(completion) = ack.completion {
            let showing = match is_suspect {
                true => Showing::WhenDurable,
                false => self.earliest_showing(&completion.instance),
            };
            let _left_out = self.enqueue_for(completion, target, showing, now_ms);
        }
        self.apply_records(ack.records, old_records, now_ms);
        Ok(())
    }

    /// Applies a batch of record changes and enqueues its messages.
    pub fn commit_records(&mut self, batch: RecordBatch, now_ms: u64) -> Result<Vec<u64>, ProviderError> {
        const OPERATION: &str = "commit_records";
        let old_records = self.check_records(OPERATION, &batch.writes, now_ms)?;
        let targets = self.targets(OPERATION, &batch.orchestrator_items)?;
        if batch.guards == Guards::Refuse {
            self.check_guards(&batch.orchestrator_items, &targets)?;
        }
        for (message, target) in batch.orchestrator_items.into_iter().zip(targets) {
            let _left_out = self.enqueue_for(message, target, Showing::WhenDurable, now_ms);
        }
        for message in batch.worker_items {
            self.enqueue_work(message, now_ms);
        }
        Ok(self.apply_records(batch.writes, old_records, now_ms))
    }

    /// Fails when a key occurs twice or an expectation does not hold.
    fn check_records(
        &self,
        operation: &'static str,
        writes: &[RecordWrite],
        now_ms: u64,
    ) -> Result<OldRecords, ProviderError> {
        if writes.len() > 1 {
            let mut keys = std::collections::BTreeSet::new();
            if let Some((kind, id)) = writes.iter().map(RecordWrite::key).find(|key| !keys.insert(*key)) {
                let message = format!("the record {kind} {id} occurs twice in a batch; write it once");
                return Err(ProviderError::new(ErrorKind::Invalid, operation, message));
            }
        }
        writes.iter().map(|write| self.check_record(operation, write, now_ms)).collect()
    }

    fn check_record(
        &self,
        operation: &'static str,
        write: &RecordWrite,
        now_ms: u64,
    ) -> Result<Option<RecordRow>, ProviderError> {
        let (RecordWrite::Put { expect, .. } | RecordWrite::Delete { expect, .. }) = write;
        let (kind, id) = write.key();
        let old = self.tables.record(kind, id).map_err(|error| error.at(operation))?;
        let version = old.as_ref().filter(|row| row.lives(now_ms)).map(|row| row.version);
        let holds = match expect {
            Expect::Anything => true,
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(*expected),
        };
        if holds {
            return Ok(old);
        }
        let found = version.map_or("absent".to_owned(), |version| format!("at version {version}"));
        let message = format!("the record {kind} {id} is {found}, expected {expect:?}; read it again");
        Err(ProviderError::new(ErrorKind::Conflict, operation, message))
    }

    /// Applies writes that have been checked; returns the version of each, 0 for a delete.
    fn apply_records(&mut self, writes: Vec<RecordWrite>, old: OldRecords, now_ms: u64) -> Vec<u64> {
        let apply = |(write, old): (RecordWrite, Option<RecordRow>)| {
            let (kind, id, new) = match write {
                RecordWrite::Delete { kind, id, .. } => (kind, id, None),
                RecordWrite::Put { kind, id, due_at_ms, time_to_live, body, .. } => {
                    let expires_at_ms = time_to_live.map(|life| now_ms.saturating_add(duration_ms(life)));
                    let version = self.versions.take();
                    (kind, id, Some(RecordRow { version, due_at_ms, expires_at_ms, body }))
                }
            };
            self.tables.set_record((&kind, &id), old.as_ref(), new.as_ref());
            self.records.change((&kind, &id), old.as_ref(), new.as_ref());
            let version = new.map(|new| new.version);
            if version.is_some() || old.is_some() {
                self.unsynced.filling_mut().note_record(version);
            }
            version.unwrap_or_default()
        };
        writes.into_iter().zip(old).map(apply).collect()
    }
}

/// Fails when the guard of a message forbids it.
fn check_guard(message: &OrchestratorMessage, is_there: impl Fn() -> bool) -> Result<(), ProviderError> {
    const OPERATION: &str = "enqueue_for_orchestrator";
    let instance = &message.instance;
    match message.guard {
        StartGuard::IfAbsent if is_there() => {
            let text = format!("{instance} exists already or is about to start; use another id");
            Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text))
        }
        StartGuard::IfPresent if !is_there() => {
            let text = format!("there is no instance {instance}, and no start for it waits");
            Err(ProviderError::new(ErrorKind::NotFound, OPERATION, text))
        }
        _ => Ok(()),
    }
}
