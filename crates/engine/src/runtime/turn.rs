//! One turn, from a locked batch of messages to its commit.
//!
//! The file follows the path of a turn:
//! 1. [`process`] runs the turn, and releases or abandons the lock if it was not committed;
//! 2. [`Turn::run`] takes the execution from memory or begins it at once: the path of most turns;
//! 3. [`Turn::run_routed`] takes all other paths: a replay, or a commit without running code
//!    (`early.rs`, `postponed.rs`, `unrunnable.rs`, `after_end.rs`);
//! 4. [`Turn::execute`] gives the messages to the execution and runs its inline steps (`steps.rs`);
//! 5. [`Turn::conclude`] makes the commit (`commit.rs`), with an epilogue if the instance ends
//!    (`end.rs`).

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::batch::Batch;
use super::begin::Begin;
use super::codeless::{CodelessCommit, CodelessTurn};
use super::observer::ExecutionSpan;
use super::options::OnNondeterminism;
use super::resident::Confirmation;
use super::{Shared, after_end, backoff, commit, early, end, postponed, steps, unrunnable};
use crate::epilogue::MakeEpilogue;
use crate::event::Event;
use crate::failure::{Category, Failure};
use crate::payload::Payload;
use crate::replay::{Execution, ExecutionId, Nondeterminism, OrchestrationHandler, find_started};
use crate::store::{
    AckOrchestrationItem, ErrorKind, ExecutionStatus, FetchedHistory, LockToken, OrchestrationItem,
    OrchestratorMessage, ProviderError, RecordWrite, StoredEvent, TimerIdentifier, TurnLock,
};
use crate::telemetry;
use crate::work_item::{StartOrchestration, WorkItem};

/// Why a turn was not committed.
pub(super) enum TurnError {
    /// The lock expired, or another node has committed: drop everything.
    LockLost(ProviderError),
    /// Abandon the lock; the messages are redelivered after the delay, and the delivery counts.
    Abandon { delay: Duration, reason: String },
    /// This node cannot run the turn: release the lock for another node; the delivery does not
    /// count.
    Release { delay: Duration, reason: String },
    /// The store did not answer: nothing is wrong with the turn, so the delivery does not count.
    Unavailable(ProviderError),
}

impl From<ProviderError> for TurnError {
    fn from(error: ProviderError) -> Self {
        match error.kind() {
            ErrorKind::LockLost => TurnError::LockLost(error),
            ErrorKind::Unavailable => TurnError::Unavailable(error),
            _ => TurnError::Abandon { delay: Duration::from_secs(1), reason: error.to_string() },
        }
    }
}

/// Runs one turn to its end. In every case the lock is released, abandoned, or left to expire.
pub(super) async fn process(shared: &Shared, item: Box<OrchestrationItem>) {
    let _lease = shared.leases.hold_turn(item.lock_token);
    let (token, instance) = (item.lock_token, item.instance.clone());
    let turn = Turn::new(shared, token, &instance, item.fetched_at_ms);
    let span = turn.span(item.messages.len());
    match turn.run(item).instrument(span).await {
        Ok(()) => turn.record_duration(),
        Err(TurnError::LockLost(error)) => {
            shared.resident.remove(&instance);
            tracing::debug!(instance = &*instance, %error, "the lock on the turn was lost");
        }
        Err(TurnError::Abandon { delay, reason }) => {
            shared.resident.remove(&instance);
            tracing::warn!(
                instance = &*instance,
                reason,
                ?delay,
                "the turn is abandoned and will be redelivered"
            );
            Box::pin(commit::abandon(shared, token, delay, false)).await;
        }
        Err(TurnError::Release { delay, reason }) => {
            tracing::warn!(instance = &*instance, reason, ?delay, "the turn is left to another node");
            Box::pin(commit::abandon(shared, token, delay, true)).await;
        }
        Err(TurnError::Unavailable(error)) => {
            tracing::warn!(instance = &*instance, %error, "the turn is left to another node");
            Box::pin(commit::abandon(shared, token, Duration::ZERO, true)).await;
        }
    }
}

/// A turn: the lock on an instance, and the time.
pub(super) struct Turn<'a> {
    shared: &'a Shared,
    token: LockToken,
    instance: &'a str,
    started_ns: u64,
    fetched_at_ms: u64,
}

/// Why the current execution, if there is one, does not continue.
enum Obstacle {
    Ended,
    TooManyDeliveries,
    ContinuedAsNew,
}

/// How a turn continues once it is known what it is for.
enum Route {
    /// The code runs.
    Execute(Box<Execution>, Batch),
    /// No code runs.
    Commit(Box<CodelessCommit>),
}

impl From<CodelessCommit> for Route {
    fn from(commit: CodelessCommit) -> Self {
        Route::Commit(Box::new(commit))
    }
}

/// The commit of a turn that has run code.
struct Conclusion {
    ack: Arc<AckOrchestrationItem>,
    /// Of an execution that stays in memory.
    confirmation: Option<Confirmation>,
    epilogue: Option<Box<(MakeEpilogue, Result<Payload, Failure>)>>,
    /// Of an execution that ends.
    span: Option<Box<ExecutionSpan>>,
}

/// What the first commit of a turn contains beside the plan of the execution.
pub(super) struct CommitExtras {
    lock: TurnLock,
    records: Vec<RecordWrite>,
    orchestrator_items: Vec<OrchestratorMessage>,
    cancelled_timers: Vec<TimerIdentifier>,
}

impl CommitExtras {
    pub(super) fn send(&mut self, message: OrchestratorMessage) {
        self.orchestrator_items.push(message);
    }

    pub(super) fn cancel_timer(&mut self, timer: TimerIdentifier) {
        self.cancelled_timers.push(timer);
    }
}

impl<'a> Turn<'a> {
    pub(super) fn new(shared: &'a Shared, token: LockToken, instance: &'a str, fetched_at_ms: u64) -> Self {
        Turn { shared, token, instance, started_ns: shared.clock.monotonic_ns(), fetched_at_ms }
    }

    /// Most turns continue an execution that is in memory, or begin one. The other paths are boxed:
    /// spawning a turn writes its whole future, so that is kept small.
    async fn run(&self, item: Box<OrchestrationItem>) -> Result<(), TurnError> {
        let obstacle = self.obstacle(&item);
        let resident = match item.history {
            FetchedHistory::Resident if obstacle.is_none() => {
                self.shared.resident.take(&item.instance, item.execution_id, item.last_event_id).await
            }
            _ => None,
        };
        let mut batch = Batch::decode(&item, self);
        let execution = match resident {
            Some(execution) => {
                metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "resident").increment(1);
                Some(execution)
            }
            None if obstacle.is_none() => self.begin_at_once(&item, &mut batch),
            None => None,
        };
        let Some(execution) = execution else {
            return Box::pin(self.run_routed(item, obstacle, batch)).await;
        };
        drop(item);
        self.execute(execution, batch).await
    }

    fn obstacle(&self, item: &OrchestrationItem) -> Option<Obstacle> {
        match item.status {
            // Checked first: an end is never followed by another one.
            Some(status) if status.is_terminal() => Some(Obstacle::Ended),
            _ if item.attempt_count > self.shared.options.max_attempts => Some(Obstacle::TooManyDeliveries),
            Some(ExecutionStatus::ContinuedAsNew) => Some(Obstacle::ContinuedAsNew),
            _ => None,
        }
    }

    /// Begins the first execution of an instance that has received nothing before its start.
    fn begin_at_once(&self, item: &OrchestrationItem, batch: &mut Batch) -> Option<Box<Execution>> {
        let is_new = matches!(&item.history, FetchedHistory::Events(events) if events.is_empty());
        let begins_now = |start: &&StartOrchestration| {
            is_new && start.execution_id.is_none() && early::begins(item, start) && !self.is_scheduled(start)
        };
        let start = batch.start.as_deref().filter(begins_now)?;
        let code = self.shared.registry.orchestration(&start.orchestration, start.version.as_deref())?;
        let begin = Begin::first(*batch.start.take()?, item.execution_id, self.shared.ids.new_seed());
        Some(self.begin_with(item, &[], begin, code))
    }

    /// Whether a start is for a later time.
    fn is_scheduled(&self, start: &StartOrchestration) -> bool {
        start.start_at_ms.is_some_and(|at_ms| at_ms > self.now_ms())
    }

    fn begin_with(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        mut begin: Begin,
        (version, handler): (&str, &OrchestrationHandler),
    ) -> Box<Execution> {
        begin.started.version = version.to_owned();
        let id = ExecutionId { instance: item.instance.clone(), execution_id: begin.execution_id };
        Box::new(Execution::begin(id, early, begin.started, handler, self.now_ms()))
    }

    async fn run_routed(
        &self,
        item: Box<OrchestrationItem>,
        obstacle: Option<Obstacle>,
        batch: Batch,
    ) -> Result<(), TurnError> {
        let route = match obstacle {
            Some(Obstacle::Ended) => self.route_after_end(&item, batch).await?,
            Some(Obstacle::TooManyDeliveries) => self.route_poison(&item, batch).await?,
            Some(Obstacle::ContinuedAsNew) => self.route_next_execution(&item, batch)?,
            None => self.route_current_execution(&item, batch).await?,
        };
        drop(item);
        match route {
            Route::Execute(execution, batch) => self.execute(execution, batch).await,
            Route::Commit(commit) => {
                let CodelessCommit { ack, span } = *commit;
                Ok(commit::ack(self.shared, self.instance, Arc::new(ack), span.as_ref()).await?)
            }
        }
    }

    /// The instance has ended. Only a later execution of its parent can begin it again.
    async fn route_after_end(&self, item: &OrchestrationItem, mut batch: Batch) -> Result<Route, TurnError> {
        let end = after_end::receive(self, item, &mut batch).await;
        match end.restart {
            Some(begin) => self.route_begin(item, &[], begin, batch),
            None => {
                let codeless = CodelessTurn::new(self, item, &[]);
                Ok(codeless.consume(batch, end.own_parent.as_ref()).into())
            }
        }
    }

    /// The current execution continued as new: the next one begins, or its early messages are kept
    /// for it.
    fn route_next_execution(&self, item: &OrchestrationItem, mut batch: Batch) -> Result<Route, TurnError> {
        match batch.continuation.take() {
            Some(next) if next.execution_id > item.execution_id => {
                self.route_begin(item, &[], Begin::next(*next, self.shared.ids.new_seed()), batch)
            }
            _ => {
                let next = OrchestrationItem {
                    execution_id: item.execution_id + 1,
                    last_event_id: 0,
                    ..item.clone()
                };
                Ok(early::keep(&CodelessTurn::new(self, &next, &[]), batch).into())
            }
        }
    }

    /// The current execution is replayed, or has not started.
    async fn route_current_execution(
        &self,
        item: &OrchestrationItem,
        batch: Batch,
    ) -> Result<Route, TurnError> {
        let history = self.history(item).await?;
        let Some((_, started)) = find_started(&history) else {
            return self.route_before_start(item, &history, batch).await;
        };
        let version = Some(started.version.as_str());
        let Some((_, handler)) = self.shared.registry.orchestration(&started.name, version) else {
            let codeless = CodelessTurn::new(self, item, &history);
            let what = format!("{:?} {}", started.name, started.version);
            let failure = unrunnable::judge_unregistered(&codeless, &what, &batch)?;
            return Ok(unrunnable::fail(&codeless, failure, batch).await?.into());
        };
        metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "replayed").increment(1);
        let id = ExecutionId { instance: item.instance.clone(), execution_id: item.execution_id };
        match Execution::replay(id, history, handler) {
            Ok(execution) => Ok(Route::Execute(Box::new(execution), batch)),
            Err(error) => {
                // Replay has consumed the history. This is rare, so it is read once more.
                let history = self.history(item).await?;
                self.route_nondeterminism(&CodelessTurn::new(self, item, &history), &error, batch).await
            }
        }
    }

    async fn history(&self, item: &OrchestrationItem) -> Result<Vec<Event>, TurnError> {
        let loaded;
        let stored: &[StoredEvent] = match &item.history {
            FetchedHistory::Events(events) => events,
            FetchedHistory::Resident => {
                // It was resident at the fetch and has been evicted since.
                loaded = self.shared.store.read_with_execution(&item.instance, item.execution_id).await?;
                &loaded
            }
            FetchedHistory::Unreadable(reason) => return Err(unreadable(item, reason)),
        };
        let events: Result<Vec<Event>, String> = stored.iter().map(Event::from_stored).collect();
        events.map_err(|reason| unreadable(item, &reason))
    }

    /// The current execution has not started: its start begins it, or early messages are kept.
    async fn route_before_start(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        mut batch: Batch,
    ) -> Result<Route, TurnError> {
        let codeless = CodelessTurn::new(self, item, early);
        let start = batch.take_start(|start| early::begins(item, start));
        match (start, batch.continuation.take()) {
            (Some(start), _) => {
                if start.follows_another {
                    batch.owed = after_end::owed_by_previous_execution(self, item).await?;
                }
                if self.is_scheduled(&start) {
                    let at_ms = start.start_at_ms.unwrap_or_else(|| self.now_ms());
                    return Ok(postponed::until(&codeless, *start, at_ms, batch).into());
                }
                let begin = Begin::first(*start, item.execution_id, self.shared.ids.new_seed());
                self.route_begin(item, early, begin, batch)
            }
            (None, Some(next)) => {
                self.route_begin(item, early, Begin::next(*next, self.shared.ids.new_seed()), batch)
            }
            (None, None) => Ok(early::keep(&codeless, batch).into()),
        }
    }

    fn route_begin(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        begin: Begin,
        batch: Batch,
    ) -> Result<Route, TurnError> {
        match self.shared.registry.orchestration(&begin.started.name, begin.version.as_deref()) {
            Some(code) => Ok(Route::Execute(self.begin_with(item, early, begin, code), batch)),
            None => {
                let codeless = CodelessTurn::new(self, item, early);
                Ok(unrunnable::begin_unregistered(&codeless, begin, batch)?.into())
            }
        }
    }

    /// The code has diverged from the recorded history.
    async fn route_nondeterminism(
        &self,
        codeless: &CodelessTurn<'_>,
        error: &Nondeterminism,
        batch: Batch,
    ) -> Result<Route, TurnError> {
        tracing::error!(instance = self.instance, %error, "replay diverged from the recorded history");
        let commit = match self.shared.options.on_nondeterminism {
            OnNondeterminism::Fail => {
                let failure = Failure::configuration("nondeterminism", error.to_string());
                unrunnable::fail(codeless, failure, batch).await?
            }
            OnNondeterminism::Pause => unrunnable::pause(codeless, error.to_string(), batch).await?,
        };
        Ok(commit.into())
    }

    /// Too many deliveries: the instance fails, whatever the reason was.
    async fn route_poison(&self, item: &OrchestrationItem, mut batch: Batch) -> Result<Route, TurnError> {
        metrics::counter!(telemetry::POISONED, "what" => "turn").increment(1);
        let deliveries = item.attempt_count.saturating_sub(1);
        let reason = unrunnable::poison_reason(item, deliveries);
        let letter = self.shared.letters().turn(&item.instance, deliveries, reason.clone(), self.now_ms());
        let failure = Failure::new(Category::Poison, reason).code("too-many-deliveries");
        if item.status == Some(ExecutionStatus::ContinuedAsNew) {
            // The execution before has ended; the failure belongs to the next one.
            return match batch.continuation.take() {
                Some(next) => {
                    batch.records.extend(letter.of_execution(next.execution_id).writes(None));
                    let codeless = CodelessTurn::new(self, item, &[]);
                    Ok(unrunnable::fail_unstarted(&codeless, Begin::next(*next, 0), failure, batch).into())
                }
                None => self.route_after_end(item, batch).await,
            };
        }
        batch.records.extend(letter.of_execution(item.execution_id).writes(None));
        let history = self.readable_history(item).await;
        Ok(unrunnable::fail(&CodelessTurn::new(self, item, &history), failure, batch).await?.into())
    }

    /// Gives the messages to the execution, runs inline steps, and commits. What needs no waiting
    /// is done before there is a future, which would need room for all of it.
    pub(super) fn execute(
        &self,
        mut execution: Box<Execution>,
        batch: Batch,
    ) -> impl Future<Output = Result<(), TurnError>> {
        let mut extras = self.handle_messages(&mut execution, batch);
        let concluded = match (execution.has_runnable_steps(), extras.lock) {
            (false, _) => Ok(self.conclude(execution, extras)),
            (true, TurnLock::Instance) => Err(Box::pin(self.execute_steps(execution, extras))),
            // Steps run under a lock on the instance, and there is none. The next turn has it.
            (true, TurnLock::Activity { .. }) => {
                extras.send(steps::wake_up(&execution));
                Ok(self.conclude(execution, extras))
            }
        };
        async move {
            match concluded {
                Ok(conclusion) => self.commit_conclusion(conclusion).await,
                Err(with_steps) => with_steps.await,
            }
        }
    }

    fn handle_messages(&self, execution: &mut Execution, batch: Batch) -> CommitExtras {
        let started = execution.started();
        tracing::Span::current()
            .record("orchestration", &started.name)
            .record("traceparent", started.traceparent.as_deref());
        let replies = batch.answer_starts(self.instance, started.parent.as_ref());
        for message in batch.others {
            let now_ms = self.now_ms();
            if let WorkItem::TimerFired { fire_at_ms, .. } = &message {
                let late_ms = now_ms.saturating_sub(*fire_at_ms);
                metrics::histogram!(telemetry::TIMER_LATENESS_SECONDS).record(late_ms as f64 / 1e3);
                if let Some(observer) = &self.shared.observer {
                    observer.timer_fired(self.instance, late_ms);
                }
            }
            execution.handle(message, now_ms);
            execution.enforce_history_limits(now_ms);
        }
        let Batch { records, lock, .. } = batch;
        CommitExtras { lock, records, orchestrator_items: replies, cancelled_timers: Vec::new() }
    }

    async fn execute_steps(
        &self,
        mut execution: Box<Execution>,
        mut extras: CommitExtras,
    ) -> Result<(), TurnError> {
        steps::run(self, &mut execution, &mut extras).await?;
        let conclusion = self.conclude(execution, extras);
        self.commit_conclusion(conclusion).await
    }

    /// Makes the commit of an execution that waits or has ended.
    fn conclude(&self, mut execution: Box<Execution>, mut extras: CommitExtras) -> Conclusion {
        let now_ms = self.now_ms();
        execution.settle(now_ms);
        let ack = Arc::new(self.next_ack(&mut execution, &mut extras, now_ms));
        if execution.has_ended() {
            let epilogue = execution.epilogue(self.shared.registry.settler()).map(Box::new);
            let (started, started_at_ms) = execution.began();
            let span = Some(Box::new(ExecutionSpan { started, started_at_ms, ended_at_ms: now_ms }));
            return Conclusion { ack, confirmation: None, epilogue, span };
        }
        let confirmation = Some(self.shared.resident.put(execution));
        Conclusion { ack, confirmation, epilogue: None, span: None }
    }

    /// The commit of everything that was decided since the last one.
    pub(super) fn next_ack(
        &self,
        execution: &mut Execution,
        extras: &mut CommitExtras,
        now_ms: u64,
    ) -> AckOrchestrationItem {
        let plan = execution.take_plan();
        let mut ack = commit::to_ack(self.shared, execution, plan, self.token, now_ms);
        ack.lock = std::mem::take(&mut extras.lock);
        ack.records.append(&mut extras.records);
        ack.orchestrator_items.append(&mut extras.orchestrator_items);
        ack.cancelled_timers.append(&mut extras.cancelled_timers);
        ack
    }

    async fn commit_conclusion(&self, conclusion: Conclusion) -> Result<(), TurnError> {
        let Conclusion { ack, confirmation, epilogue, span } = conclusion;
        if let Some(epilogue) = epilogue {
            return Box::pin(end::commit(self, ack, *epilogue, span)).await;
        }
        self.commit(ack, span.as_deref()).await?;
        confirmation.into_iter().for_each(Confirmation::confirm);
        Ok(())
    }

    /// Commits a turn, or the part of it before inline steps.
    pub(super) async fn commit(
        &self,
        ack: Arc<AckOrchestrationItem>,
        span: Option<&ExecutionSpan>,
    ) -> Result<(), ProviderError> {
        let begun = ack.metadata.pinned_version.is_some().then_some(ack.execution_id);
        commit::ack(self.shared, self.instance, ack, span).await?;
        if let Some(execution_id) = begun {
            self.shared.begun.note(self.instance, execution_id);
        }
        Ok(())
    }
}

/// Parts of a turn that other files use.
impl Turn<'_> {
    pub(super) fn shared(&self) -> &Shared {
        self.shared
    }

    pub(super) fn instance(&self) -> &str {
        self.instance
    }

    pub(super) fn span(&self, messages: usize) -> tracing::Span {
        tracing::debug_span!(
            "segno.turn",
            instance = self.instance,
            messages,
            orchestration = tracing::field::Empty,
            traceparent = tracing::field::Empty,
        )
    }

    /// Adds the duration of a committed turn to the metrics.
    pub(super) fn record_duration(&self) {
        metrics::histogram!(telemetry::TURN_SECONDS).record(self.age().as_secs_f64());
    }

    /// Time of this turn: the store's clock at the fetch, moved on by what has passed here since.
    pub(super) fn now_ms(&self) -> u64 {
        let passed_ns = self.shared.clock.monotonic_ns().saturating_sub(self.started_ns);
        self.fetched_at_ms + passed_ns / 1_000_000
    }

    pub(super) fn age(&self) -> Duration {
        Duration::from_nanos(self.shared.clock.monotonic_ns().saturating_sub(self.started_ns))
    }

    /// A commit that only consumes the fetched messages.
    pub(super) fn empty_ack(&self, execution_id: u64) -> AckOrchestrationItem {
        AckOrchestrationItem::empty(self.token, execution_id)
    }

    /// Parks a message as a dead letter.
    pub(super) fn park(&self, message: &WorkItem, reason: impl Into<String>) -> Vec<RecordWrite> {
        let body = message.for_orchestrator(self.instance).body;
        let letters = self.shared.letters();
        let letter = letters.message(self.instance, commit::DELIVERED_ONCE, reason.into(), self.now_ms());
        letter.writes(Some(body))
    }

    /// As much of the history as can be read.
    pub(super) async fn readable_history(&self, item: &OrchestrationItem) -> Vec<Event> {
        let loaded;
        let stored = match &item.history {
            FetchedHistory::Events(events) => events,
            FetchedHistory::Resident => {
                let read = self.shared.store.read_with_execution(&item.instance, item.execution_id);
                loaded = read.await.unwrap_or_default();
                &loaded
            }
            FetchedHistory::Unreadable(_) => return Vec::new(),
        };
        stored.iter().filter_map(|event| Event::from_stored(event).ok()).collect()
    }
}

fn unreadable(item: &OrchestrationItem, reason: &str) -> TurnError {
    TurnError::Abandon {
        delay: backoff::redelivery(item.attempt_count),
        reason: format!("the history cannot be read: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::future_bytes;

    #[test]
    fn a_turn_takes_little_memory() {
        let bytes = future_bytes::<&'static Shared, Box<OrchestrationItem>, _>(process);
        assert!(bytes <= 1024, "{bytes} bytes");
    }
}
