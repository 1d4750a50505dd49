//! One turn: from a locked batch of messages to its commit.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::batch::Batch;
use super::begin::Begin;
use super::observer::Span;
use super::options::OnNondeterminism;
use super::resident::Confirmation;
use super::{Shared, commit, steps, unstarted};
use crate::epilogue::MakeEpilogue;
use crate::event::{Event, EventKind, ParentLink};
use crate::failure::{Category, Failure};
use crate::payload::Payload;
use crate::replay::{Execution, ExecutionId, Nondeterminism, OrchestrationHandler, find_started};
use crate::store::{
    AckOrchestrationItem, ErrorKind, ExecutionStatus, FetchedHistory, LockToken, OrchestrationItem,
    OrchestratorMessage, ProviderError, RecordWrite, StoredEvent, TimerIdentifier, TurnLock,
};
use crate::telemetry;
use crate::work_item::{ContinueAsNew, StartOrchestration, WorkItem};

/// How a turn that was not committed goes on.
pub(super) enum Stop {
    /// The lock is gone, or the store says that somebody else was first: drop everything.
    Lost(ProviderError),
    /// Give the batch back and look at it again later; the delivery counts.
    Abandon { delay: Duration, reason: String },
    /// Give the batch back because this node cannot do it; the delivery does not count.
    NotHere { delay: Duration, reason: String },
    /// The store did not answer: nothing is wrong with the turn, so the delivery does not count.
    Unanswered(ProviderError),
}

impl From<ProviderError> for Stop {
    fn from(error: ProviderError) -> Self {
        match error.kind() {
            ErrorKind::LockLost => Stop::Lost(error),
            ErrorKind::Unavailable => Stop::Unanswered(error),
            _ => Stop::Abandon { delay: Duration::from_secs(1), reason: error.to_string() },
        }
    }
}

/// Runs one turn to its end. Whatever happens, the lock is released, given back or left to expire.
pub(super) async fn process(shared: &Shared, item: Box<OrchestrationItem>) {
    let _held = shared.leases.hold_turn(item.lock_token);
    let (token, instance) = (item.lock_token, item.instance.clone());
    let turn = Turn::new(shared, token, &instance, item.fetched_at_ms);
    let span = turn.span(item.messages.len());
    match turn.run(item).instrument(span).await {
        Ok(()) => turn.note_duration(),
        Err(Stop::Lost(error)) => {
            shared.resident.remove(&instance);
            tracing::debug!(instance = &*instance, %error, "the turn was lost to another holder");
        }
        Err(Stop::Abandon { delay, reason }) => {
            shared.resident.remove(&instance);
            tracing::warn!(instance = &*instance, reason, ?delay, "the turn is given back");
            Box::pin(commit::abandon(shared, token, delay, false)).await;
        }
        Err(Stop::NotHere { delay, reason }) => {
            tracing::warn!(instance = &*instance, reason, ?delay, "the turn is left to another node");
            Box::pin(commit::abandon(shared, token, delay, true)).await;
        }
        Err(Stop::Unanswered(error)) => {
            tracing::warn!(instance = &*instance, %error, "the turn is left to another node");
            Box::pin(commit::abandon(shared, token, Duration::ZERO, true)).await;
        }
    }
}

/// What becomes of an execution that is to begin.
enum Beginning {
    Begun(Box<Execution>),
    /// It is to start later.
    TooEarly(Box<StartOrchestration>),
    /// Its code is not here.
    Unregistered(Box<Begin>),
}

/// Why the current execution, if there is one, does not go on.
enum Obstacle {
    Ended,
    TooManyDeliveries,
    /// It continued as new.
    Continued,
}

pub(super) struct Turn<'a> {
    pub(super) shared: &'a Shared,
    pub(super) token: LockToken,
    pub(super) instance: &'a str,
    started_ns: u64,
    fetched_at_ms: u64,
}

impl<'a> Turn<'a> {
    pub(super) fn new(shared: &'a Shared, token: LockToken, instance: &'a str, fetched_at_ms: u64) -> Self {
        Turn { shared, token, instance, started_ns: shared.clock.monotonic_ns(), fetched_at_ms }
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

    /// Adds a turn that was committed to the metrics.
    pub(super) fn note_duration(&self) {
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

    /// Most turns go on with an execution that is in memory, or begin one. The other ways are boxed: the future of a turn
    /// is written as a whole when it is spawned, so it is kept small.
    async fn run(&self, item: Box<OrchestrationItem>) -> Result<(), Stop> {
        let obstacle = self.obstacle(&item);
        let resident = match item.history {
            FetchedHistory::Resident if obstacle.is_none() => {
                self.shared.resident.take(&item.instance, item.execution_id, item.last_event_id).await
            }
            _ => None,
        };
        let mut batch = self.read(&item);
        let execution = match resident {
            Some(execution) => {
                metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "resident").increment(1);
                Some(execution)
            }
            None if obstacle.is_none() => self.begin_at_once(&item, &mut batch),
            None => None,
        };
        let Some(execution) = execution else {
            return Box::pin(self.run_otherwise(item, obstacle, batch)).await;
        };
        drop(item);
        self.go_on(execution, batch).await
    }

    fn obstacle(&self, item: &OrchestrationItem) -> Option<Obstacle> {
        match item.status {
            // First of all: whatever else is the matter, an end is never followed by another one.
            Some(status) if status.is_terminal() => Some(Obstacle::Ended),
            _ if item.attempt_count > self.shared.options.max_attempts => Some(Obstacle::TooManyDeliveries),
            Some(ExecutionStatus::ContinuedAsNew) => Some(Obstacle::Continued),
            _ => None,
        }
    }

    /// The first execution of an instance that nothing has come to before its start.
    fn begin_at_once(&self, item: &OrchestrationItem, batch: &mut Batch) -> Option<Box<Execution>> {
        let is_new = matches!(&item.history, FetchedHistory::Events(events) if events.is_empty());
        let fits = |start: &&StartOrchestration| {
            is_new
                && start.execution_id.is_none()
                && unstarted::begins(item, start)
                && !self.is_too_early(start)
        };
        let start = batch.start.as_deref().filter(fits)?;
        let code = self.shared.registry.orchestration(&start.orchestration, start.version.as_deref())?;
        let begin = Begin::first(*batch.start.take()?, item.execution_id, self.shared.ids.new_seed());
        Some(self.begin_with(item, &[], begin, code))
    }

    async fn run_otherwise(
        &self,
        item: Box<OrchestrationItem>,
        obstacle: Option<Obstacle>,
        mut batch: Batch,
    ) -> Result<(), Stop> {
        match obstacle {
            Some(Obstacle::Ended) => return Box::pin(self.after_end(&item, batch)).await,
            Some(Obstacle::TooManyDeliveries) => return Box::pin(self.poison(*item, batch)).await,
            Some(Obstacle::Continued) => return Box::pin(self.next_execution(&item, batch)).await,
            None => {}
        }
        let history = self.history(&item).await?;
        let Some((_, started)) = find_started(&history) else {
            let start = batch.take_start(|start| unstarted::begins(&item, start));
            return match (start, batch.continuation.take()) {
                (Some(start), _) => {
                    if start.follows_another {
                        batch.owed = self.owed_by_execution_before(&item).await?;
                    }
                    let beginning = self.begin_first(&item, &history, start);
                    Box::pin(self.go_on_with(&item, &history, beginning, batch)).await
                }
                (None, Some(next)) => Box::pin(self.begin_next(&item, &history, *next, batch)).await,
                (None, None) => Box::pin(self.keep_early(&item, &history, batch)).await,
            };
        };
        let Some((_, handler)) = self.shared.registry.orchestration(&started.name, Some(&started.version))
        else {
            return Box::pin(self.unregistered(&item, &history, started, batch)).await;
        };
        metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "replayed").increment(1);
        let id = ExecutionId { instance: item.instance.clone(), execution_id: item.execution_id };
        match Execution::replay(id, history, handler) {
            Ok(execution) => self.go_on(Box::new(execution), batch).await,
            Err(error) => {
                // Replay has used the history up. This is rare, so it is read once more.
                let history = self.history(&item).await?;
                Box::pin(self.nondeterministic(&item, &history, &error, batch)).await
            }
        }
    }

    async fn history(&self, item: &OrchestrationItem) -> Result<Vec<Event>, Stop> {
        let loaded;
        let stored: &[StoredEvent] = match &item.history {
            FetchedHistory::Events(events) => events,
            FetchedHistory::Resident => {
                // It was resident at the fetch and has been pushed out since.
                loaded = self.shared.store.read_with_execution(&item.instance, item.execution_id).await?;
                &loaded
            }
            FetchedHistory::Unreadable(reason) => return Err(self.unreadable(item, reason)),
        };
        let events: Result<Vec<Event>, String> = stored.iter().map(Event::from_stored).collect();
        events.map_err(|reason| self.unreadable(item, &reason))
    }

    fn begin_first(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        start: Box<StartOrchestration>,
    ) -> Beginning {
        if self.is_too_early(&start) {
            return Beginning::TooEarly(start);
        }
        self.begin(item, early, Begin::first(*start, item.execution_id, self.shared.ids.new_seed()))
    }

    fn is_too_early(&self, start: &StartOrchestration) -> bool {
        start.start_at_ms.is_some_and(|at_ms| at_ms > self.now_ms())
    }

    pub(super) async fn begin_next(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        next: ContinueAsNew,
        batch: Batch,
    ) -> Result<(), Stop> {
        let beginning = self.begin(item, early, Begin::next(next, self.shared.ids.new_seed()));
        self.go_on_with(item, early, beginning, batch).await
    }

    /// Begins an execution of an instance that has ended.
    pub(super) async fn begin_after_end(
        &self,
        item: &OrchestrationItem,
        begin: Begin,
        batch: Batch,
    ) -> Result<(), Stop> {
        let beginning = self.begin(item, &[], begin);
        self.go_on_with(item, &[], beginning, batch).await
    }

    fn begin(&self, item: &OrchestrationItem, early: &[Event], begin: Begin) -> Beginning {
        match self.shared.registry.orchestration(&begin.started.name, begin.version.as_deref()) {
            Some(code) => Beginning::Begun(self.begin_with(item, early, begin, code)),
            None => Beginning::Unregistered(Box::new(begin)),
        }
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

    async fn go_on_with(
        &self,
        item: &OrchestrationItem,
        early: &[Event],
        beginning: Beginning,
        batch: Batch,
    ) -> Result<(), Stop> {
        match beginning {
            Beginning::Begun(execution) => self.go_on(execution, batch).await,
            Beginning::TooEarly(start) => self.postpone(item, early, *start, batch).await,
            Beginning::Unregistered(begin) => self.unregistered_start(item, early, *begin, batch).await,
        }
    }

    /// Feeds the messages to the execution, runs inline steps, and commits. What can be decided at once is, before there is
    /// a future that would have room for all of it.
    pub(super) fn go_on(
        &self,
        mut execution: Box<Execution>,
        batch: Batch,
    ) -> impl Future<Output = Result<(), Stop>> {
        let mut extras = self.feed(&mut execution, batch);
        let concluded = match (execution.has_runnable_steps(), extras.lock) {
            (false, _) => Ok(self.conclude(execution, extras)),
            (true, TurnLock::Instance) => Err(Box::pin(self.go_on_with_steps(execution, extras))),
            // Steps run under a lock on the instance, and there is none. The next turn has it.
            (true, TurnLock::Activity { .. }) => {
                extras.orchestrator_items.push(steps::wake_up(&execution));
                Ok(self.conclude(execution, extras))
            }
        };
        async move {
            match concluded {
                Ok(conclusion) => self.commit_conclusion(conclusion).await,
                Err(goes_on) => goes_on.await,
            }
        }
    }

    fn feed(&self, execution: &mut Execution, batch: Batch) -> Extras {
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
        Extras { lock, records, orchestrator_items: replies, cancelled_timers: Vec::new() }
    }

    async fn go_on_with_steps(&self, mut execution: Box<Execution>, mut extras: Extras) -> Result<(), Stop> {
        self.run_steps(&mut execution, &mut extras).await?;
        let conclusion = self.conclude(execution, extras);
        self.commit_conclusion(conclusion).await
    }

    /// What is left to do for an execution that rests or has ended: the commit.
    fn conclude(&self, mut execution: Box<Execution>, mut extras: Extras) -> Conclusion {
        let now_ms = self.now_ms();
        execution.settle(now_ms);
        let turn = Arc::new(self.next_ack(&mut execution, &mut extras, now_ms));
        if execution.has_ended() {
            let epilogue = execution.epilogue(self.shared.registry.settler()).map(Box::new);
            let (started, started_at_ms) = execution.began();
            let span = Some(Box::new(Span { started, started_at_ms, ended_at_ms: now_ms }));
            return Conclusion { turn, confirmation: None, epilogue, span };
        }
        let confirmation = Some(self.shared.resident.put(execution));
        Conclusion { turn, confirmation, epilogue: None, span: None }
    }

    async fn commit_conclusion(&self, conclusion: Conclusion) -> Result<(), Stop> {
        let Conclusion { turn, confirmation, epilogue, span } = conclusion;
        if let Some(epilogue) = epilogue {
            return Box::pin(self.commit_with_epilogue(turn, *epilogue, span)).await;
        }
        self.commit(turn, span.as_deref()).await?;
        confirmation.into_iter().for_each(Confirmation::confirm);
        Ok(())
    }

    pub(super) async fn commit(
        &self,
        turn: Arc<AckOrchestrationItem>,
        span: Option<&Span>,
    ) -> Result<(), ProviderError> {
        let begins = turn.metadata.pinned_version.is_some().then_some(turn.execution_id);
        commit::ack(self.shared, self.instance, turn, span).await?;
        if let Some(execution_id) = begins {
            self.shared.begun.note(self.instance, execution_id);
        }
        Ok(())
    }

    pub(super) fn next_ack(
        &self,
        execution: &mut Execution,
        extras: &mut Extras,
        now_ms: u64,
    ) -> AckOrchestrationItem {
        let plan = execution.take_plan();
        let mut turn = commit::to_ack(self.shared, execution, plan, self.token, now_ms);
        turn.lock = std::mem::take(&mut extras.lock);
        turn.records.append(&mut extras.records);
        turn.orchestrator_items.append(&mut extras.orchestrator_items);
        turn.cancelled_timers.append(&mut extras.cancelled_timers);
        turn
    }

    /// The code does not fit its history.
    async fn nondeterministic(
        &self,
        item: &OrchestrationItem,
        history: &[Event],
        error: &Nondeterminism,
        batch: Batch,
    ) -> Result<(), Stop> {
        tracing::error!(instance = &*item.instance, %error, "code and history part");
        match self.shared.options.on_nondeterminism {
            OnNondeterminism::Fail => {
                let failure = Failure::configuration("nondeterminism", error.to_string());
                self.fail_existing(item, history, failure, batch).await
            }
            OnNondeterminism::Pause => self.pause_existing(item, history, error.to_string(), batch).await,
        }
    }

    /// Too many deliveries: the instance fails, whatever the reason was.
    async fn poison(&self, item: OrchestrationItem, mut batch: Batch) -> Result<(), Stop> {
        metrics::counter!(telemetry::POISONED, "what" => "turn").increment(1);
        let mut reason = format!(
            "the turn was given up after {} deliveries without a commit",
            item.attempt_count.saturating_sub(1)
        );
        if let FetchedHistory::Events(stored) = &item.history {
            let unread = stored.iter().find_map(|event| Event::from_stored(event).err());
            reason.extend(unread.map(|error| format!("; {error}")));
        }
        if let FetchedHistory::Unreadable(error) = &item.history {
            reason.push_str(&format!("; the history cannot be read: {error}"));
        }
        let deliveries = item.attempt_count.saturating_sub(1);
        let letter = self.shared.letters().turn(&item.instance, deliveries, reason.clone(), self.now_ms());
        let failure = Failure::new(Category::Poison, reason).code("too-many-deliveries");
        if item.status == Some(ExecutionStatus::ContinuedAsNew) {
            // The execution before has ended; the failure belongs to the next one.
            return match batch.continuation.take() {
                Some(next) => {
                    batch.records.extend(letter.of_execution(next.execution_id).writes(None));
                    self.fail_unstarted(&item, &[], Begin::next(*next, 0), failure, batch).await
                }
                None => self.after_end(&item, batch).await,
            };
        }
        batch.records.extend(letter.of_execution(item.execution_id).writes(None));
        let history = self.readable_history(&item).await;
        self.fail_existing(&item, &history, failure, batch).await
    }
}

/// How a turn ends.
struct Conclusion {
    turn: Arc<AckOrchestrationItem>,
    /// Of an execution that stays in memory.
    confirmation: Option<Confirmation>,
    epilogue: Option<Box<(MakeEpilogue, Result<Payload, Failure>)>>,
    /// Of an execution that ends.
    span: Option<Box<Span>>,
}

/// What goes into the first commit of a turn beside the plan of its execution.
pub(super) struct Extras {
    lock: TurnLock,
    records: Vec<RecordWrite>,
    pub(super) orchestrator_items: Vec<OrchestratorMessage>,
    pub(super) cancelled_timers: Vec<TimerIdentifier>,
}

/// The parent that a history names, if its start can be read.
pub(super) fn parent_of(history: &[Event]) -> Option<ParentLink> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted(started) => started.parent.clone(),
        _ => None,
    })
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
