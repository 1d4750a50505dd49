//! From events to rows: the order, the keys, and which rule handles which event.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::live_run::LiveRun;
use super::moment::Moment;
use super::run_slots::dag_of_pool;
use super::runs::Paused;
use super::shared::{Name, Shared};
use super::state::State;
use crate::event::{Envelope, EventData};
use crate::ids::{DispatchName, TimerName};

/// What a fold did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldReport {
    /// Events that changed something.
    pub applied: usize,
    /// Events that changed nothing: repeated, too late, or of another scope.
    pub ignored: usize,
    /// Events that this version cannot read.
    pub unread: usize,
    /// Runs with events at or below the watermark. They were not applied: each run has to be
    /// rebuilt from all of its events by [`rebuild_run`](super::rebuild_run).
    pub stragglers: BTreeSet<Arc<str>>,
}

/// Folds events into the state, in the order of their ids. Any split of an id-ordered log into
/// batches gives the same state.
pub fn fold(state: &mut State, events: &[Envelope]) -> FoldReport {
    let mut report = FoldReport::default();
    let mut order: Vec<&Envelope> = events.iter().collect();
    order.sort_by_key(|envelope| envelope.event_id);
    order.dedup_by_key(|envelope| envelope.event_id);
    for envelope in order {
        if state.watermark().is_some_and(|watermark| envelope.event_id <= watermark) {
            if let Some(run_id) = envelope.event().and_then(run_of) {
                report.stragglers.insert(run_id);
                continue;
            }
            // What does not belong to a run takes events in any order.
        } else {
            state.advance(envelope.event_id);
        }
        match envelope.event() {
            None => report.unread += 1,
            Some(event) if apply(state, envelope, event, Admission::BySlots) => report.applied += 1,
            Some(_) => report.ignored += 1,
        }
    }
    report
}

/// Whether dispatches are held to the slots of their pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    BySlots,
    /// While a run is rebuilt: what the other runs held at that time is not known.
    Always,
}

/// Applies one event; false if it changed nothing.
pub(super) fn apply(state: &mut State, envelope: &Envelope, event: &EventData, admission: Admission) -> bool {
    let at = Moment::of(envelope.event_id);
    let is_ours = envelope.tenant_id == state.shared.scope.tenant_id
        && envelope.workspace_id == state.shared.scope.workspace_id;
    let has_key = !event.is_bound_to_attempt();
    if !is_ours || (has_key && state.shared.keys.get(&envelope.idempotency_key).is_some()) {
        return false;
    }
    let run_id = run_of(event);
    let is_applied = match &run_id {
        Some(run_id) => apply_to_run(state, run_id, event, admission, at),
        None => apply_to_shared(&mut state.shared, event, at),
    };
    if is_applied && let EventData::BackfillChunkPlanned(event) = event {
        state.let_chunk_follow(&event.run_key, at);
    }
    if is_applied
        && let EventData::PoolDefined(event) = event
        && let Some(dag) = dag_of_pool(&event.pool)
    {
        state.admit_runs(&dag.into());
    }
    // A key is taken by an event that counted, and not by one that was refused: its successor may
    // be right.
    if is_applied && has_key {
        let (key, event_type) = (&envelope.idempotency_key, &envelope.event_type);
        state.shared.record_key(key, event_type, run_id.as_ref(), at);
    }
    is_applied
}

/// The run that an event belongs to; from the id of a dispatch or timer if the event does not name
/// it.
pub(crate) fn run_of(event: &EventData) -> Option<Name> {
    let timer_run = |timer_id: &Name| match timer_id.parse().ok()? {
        TimerName::Attempt { run_id, .. } => Some(run_id.into()),
        TimerName::Cron { .. } => None,
    };
    match event {
        EventData::DispatchEnqueued(event) => {
            let by_id = || event.dispatch_id.parse::<DispatchName>().ok().map(|name| name.run_id.into());
            event.run_id.clone().or_else(by_id)
        }
        EventData::TimerRequested(event) => event.run_id.clone().or_else(|| timer_run(&event.timer_id)),
        EventData::TimerEnqueued(event) => event.run_id.clone().or_else(|| timer_run(&event.timer_id)),
        EventData::TimerFired(event) => event.run_id.clone().or_else(|| timer_run(&event.timer_id)),
        event => event.run_id().cloned(),
    }
}

fn apply_to_run(
    state: &mut State,
    run_id: &Name,
    event: &EventData,
    admission: Admission,
    at: Moment,
) -> bool {
    let State { runs, shared, touched, .. } = state;
    let begins = matches!(event, EventData::RunTriggered(_) | EventData::PlanCreated(_));
    let mut fresh = None;
    let run = match runs.get_mut(run_id) {
        Some(run) => run,
        None if begins => fresh.insert(LiveRun::new(Arc::clone(run_id))),
        None => return false,
    };
    if !change_run(run, event, admission, shared, at) {
        return false;
    }
    run.settle(at);
    let moved = shared.follow_slot(run);
    run.settle_places(shared);
    shared.follow_state(run, at);
    if !std::mem::replace(&mut run.is_listed, true) {
        touched.push(Arc::clone(run_id));
    }
    if let Some(run) = fresh {
        runs.insert(Arc::clone(run_id), run);
    }
    if let Some(dag) = moved {
        state.admit_runs(&dag);
    }
    true
}

fn change_run(
    run: &mut LiveRun,
    event: &EventData,
    admission: Admission,
    shared: &mut Shared,
    at: Moment,
) -> bool {
    match event {
        EventData::RunTriggered(event) => {
            let is_new = run.trigger(event, &shared.scope, at);
            if is_new {
                shared.note_triggered(event, at);
            }
            is_new
        }
        EventData::PlanCreated(event) => run.plan(event, shared, at),
        EventData::RunCancelRequested(event) => run.cancel(event, shared, at),
        EventData::RunPaused(_) => run.set_paused(Paused::Yes, at),
        EventData::RunResumed(_) => run.set_paused(Paused::No, at),
        EventData::TasksAdded(event) => run.expand(event, shared, at),
        EventData::TaskCleared(event) => run.clear(event, shared, at),
        EventData::TaskMarked(event) => run.mark_task(event, shared, at),
        EventData::TaskStarted(event) => run.start(event, shared, at),
        EventData::TaskHeartbeat(event) => run.beat(event, at),
        EventData::TaskFinished(event) => run.finish(event, shared, at),
        EventData::TaskCompletionRecorded(event) => run.complete(event, shared, at),
        EventData::TaskOutputVisibilityChanged(event) => run.show_output(event, shared, at),
        EventData::DispatchRequested(event) => {
            let pool = run.number(&event.task_key).and_then(|number| run.task(number).row.pool.as_ref());
            let has_slot = admission == Admission::Always || (!run.is_held && shared.free_slots(pool) > 0);
            run.request_dispatch(event, has_slot, shared, at)
        }
        EventData::DispatchEnqueued(event) => match event.dispatch_id.parse() {
            Ok(name) => run.accept_dispatch(event, &name, shared, at),
            Err(_) => false,
        },
        event => change_timer(run, event, shared, at),
    }
}

/// Timers of attempts.
fn change_timer(run: &mut LiveRun, event: &EventData, shared: &mut Shared, at: Moment) -> bool {
    let parts = |timer_id: &Name| match timer_id.parse() {
        Ok(TimerName::Attempt { task_key, attempt, .. }) => Some((task_key, attempt)),
        _ => None,
    };
    match event {
        EventData::TimerRequested(event) if !shared.has_fired(&event.timer_id) => {
            match parts(&event.timer_id) {
                Some((task_key, attempt)) => run.request_timer(event, &task_key, attempt, shared, at),
                None => false,
            }
        }
        EventData::TimerEnqueued(event) if !shared.has_fired(&event.timer_id) => {
            match event.timer_id.parse() {
                Ok(name) => run.accept_timer(event, &name, shared, at),
                Err(_) => false,
            }
        }
        EventData::TimerFired(event) => match parts(&event.timer_id) {
            Some((task_key, _)) => run.fire_timer(event, &task_key, shared),
            None => false,
        },
        _ => false,
    }
}

fn apply_to_shared(shared: &mut Shared, event: &EventData, at: Moment) -> bool {
    match event {
        EventData::ScheduleDefinitionUpserted(event) => shared.define_schedule(event, at),
        EventData::ScheduleTicked(event) => shared.tick_schedule(event, at),
        EventData::SensorEvaluated(event) => shared.evaluate_sensor(event, at),
        EventData::RunRequested(event) => shared.request_run(event, at),
        EventData::BackfillCreated(event) => shared.create_backfill(event, at),
        EventData::BackfillChunkPlanned(event) => shared.plan_chunk(event, at),
        EventData::BackfillStateChanged(event) => shared.change_backfill(event, at),
        EventData::PoolDefined(event) => shared.define_pool(event, at),
        EventData::TimerRequested(event) if !shared.has_fired(&event.timer_id) => {
            shared.request_timer(event, at)
        }
        EventData::TimerEnqueued(event) if !shared.has_fired(&event.timer_id) => {
            match event.timer_id.parse() {
                Ok(name @ TimerName::Cron { .. }) => shared.accept_timer(event, &name, at),
                _ => false,
            }
        }
        EventData::TimerFired(event) => {
            shared.remove_timer(&event.timer_id);
            true
        }
        _ => false,
    }
}
