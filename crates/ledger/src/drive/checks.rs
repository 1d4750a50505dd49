//! Stored checks: every attempt that was started is checked when its end was not reported for a while. It is found to run, to
//! have ended without a report, or to be missing. Calls that are no longer wanted are cancelled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::clock::duration_ms;
use segno_actions::pools::CallState;

use super::error::DriveError;
use super::holder::{Held, as_time};
use super::limits::{CALLS_AT_ONCE, CHECK_AFTER, CHECKS_PER_PART, HAND_OVER_TIMEOUT};
use super::settler::{self, SEGNO_WORKER};
use crate::controllers::Enqueue;
use crate::event::{Attempt, TaskHeartbeat, TaskStarted};
use crate::fold::State;
use crate::ids::dispatch_id;
use crate::tables::{OutboxRow, TaskRow, TaskState};
use crate::telemetry;

/// The longest pause between two checks of an attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A call that is missing is started again when it was dispatched for so long: its start may still be queued.
const MISSING_AFTER_MS: i64 = 10_000;

/// An attempt that was started.
#[derive(Debug, Clone)]
struct Watched {
    attempt: Attempt,
    pause_ms: u64,
    beat_at_ms: u64,
}

/// Attempts by the time of their next check.
#[derive(Debug, Default)]
pub(super) struct Checks {
    due: BTreeMap<(u64, u64), Watched>,
    next: u64,
}

/// What is done about a check.
enum Verdict {
    /// It has ended, and its end is known.
    Done,
    /// Its call is no longer wanted.
    Cancel(Watched),
    /// Its call is looked at.
    Look(Watched),
}

impl Checks {
    /// Checks an attempt that was just started.
    pub(super) fn watch(&mut self, dispatch: &OutboxRow, now_ms: u64) {
        let attempt = Attempt {
            run_id: Arc::clone(&dispatch.run_id),
            task_key: Arc::clone(&dispatch.task_key),
            attempt: dispatch.attempt,
            attempt_id: Arc::clone(&dispatch.attempt_id),
        };
        self.insert(Watched { attempt, pause_ms: duration_ms(CHECK_AFTER), beat_at_ms: now_ms }, now_ms);
    }

    /// Takes up all attempts of a state that are under way.
    pub(super) fn take_up(&mut self, state: &State, now_ms: u64) {
        for run in state.runs().filter(|run| !run.state.is_final()) {
            for task in state.tasks_of(&run.run_id).filter(|task| is_under_way(task)) {
                let Some(attempt_id) = task.attempt_id.clone() else { continue };
                let attempt = Attempt {
                    run_id: Arc::clone(&task.run_id),
                    task_key: Arc::clone(&task.task_key),
                    attempt: task.attempt,
                    attempt_id,
                };
                let pause_ms = duration_ms(CHECK_AFTER);
                self.insert(Watched { attempt, pause_ms, beat_at_ms: now_ms }, now_ms);
            }
        }
    }

    /// Checks all attempts of a run at once: it was cancelled or corrected.
    pub(super) fn hurry(&mut self, run_id: &str, now_ms: u64) {
        let of_run = |watched: &Watched| *watched.attempt.run_id == *run_id;
        let hurried: Vec<(u64, u64)> =
            self.due.iter().filter(|(_, watched)| of_run(watched)).map(|(key, _)| *key).collect();
        for key in hurried {
            if let Some(mut watched) = self.due.remove(&key) {
                watched.pause_ms = 0;
                self.insert(watched, now_ms);
            }
        }
    }

    /// When the next check is due.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// Whether an attempt is under way that only wakes the holder.
    pub(super) fn has_open(&self, state: &State) -> bool {
        self.due.values().any(|watched| task_of(state, watched).is_some_and(is_under_way))
    }

    fn insert(&mut self, watched: Watched, now_ms: u64) {
        self.next += 1;
        self.due.insert((now_ms.saturating_add(watched.pause_ms), self.next), watched);
    }

    fn take_due(&mut self, state: &State, now_ms: u64) -> Vec<Verdict> {
        let mut taken = Vec::new();
        let mut looks = 0;
        while looks < CHECKS_PER_PART && self.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            let Some((_, watched)) = self.due.pop_first() else { break };
            let verdict = judge(state, watched);
            looks += usize::from(!matches!(verdict, Verdict::Done));
            taken.push(verdict);
        }
        taken
    }
}

fn task_of<'s>(state: &'s State, watched: &Watched) -> Option<&'s TaskRow> {
    let Attempt { run_id, task_key, attempt, .. } = &watched.attempt;
    state.task(run_id, task_key).filter(|task| task.attempt == *attempt)
}

fn is_under_way(task: &TaskRow) -> bool {
    matches!(task.state, TaskState::Dispatched | TaskState::Running)
}

fn judge(state: &State, watched: Watched) -> Verdict {
    let Some(task) = task_of(state, &watched) else {
        // A run that has left the state has ended; a later attempt makes this one superfluous.
        let is_known = state.task(&watched.attempt.run_id, &watched.attempt.task_key).is_some();
        return if is_known { Verdict::Cancel(watched) } else { Verdict::Done };
    };
    let was_reported = matches!(task.state, TaskState::Succeeded | TaskState::Failed | TaskState::Skipped);
    match is_under_way(task) {
        true => Verdict::Look(watched),
        false if was_reported && task.marked_by.is_none() => Verdict::Done,
        false => Verdict::Cancel(watched),
    }
}

impl Held {
    /// Checks attempts that are due.
    pub(super) async fn check(&mut self, now_ms: u64) -> Result<(), DriveError> {
        let mut looks = Vec::new();
        for verdict in self.checks.take_due(self.compactor.state(), now_ms) {
            match verdict {
                Verdict::Done => {}
                Verdict::Cancel(watched) => self.cancel(&watched, "its attempt is no longer wanted")?,
                Verdict::Look(watched) => looks.push(watched),
            }
        }
        if looks.is_empty() {
            return Ok(());
        }
        metrics::counter!(telemetry::CHECKS).increment(looks.len() as u64);
        let (calls, scope) = (&self.services.calls, &self.scope);
        let look = async |watched: Watched| {
            let seen = calls.state(scope, &job_of(&watched.attempt)).await?;
            Ok::<_, DriveError>((watched, seen))
        };
        let looks: Vec<_> = looks.into_iter().map(look).collect();
        let seen: Vec<(Watched, CallState)> =
            stream::iter(looks).buffered(CALLS_AT_ONCE).try_collect().await?;
        for (watched, seen) in seen {
            self.note(watched, seen, now_ms)?;
        }
        Ok(())
    }

    /// What follows from the state of a call.
    fn note(&mut self, mut watched: Watched, seen: CallState, now_ms: u64) -> Result<(), DriveError> {
        let state = self.compactor.state();
        let Some(task) = task_of(state, &watched) else { return Ok(()) };
        let is_cancelled = state.run(&watched.attempt.run_id).is_some_and(|run| run.cancel_requested);
        let (attempt, worker_id) = (watched.attempt.clone(), SEGNO_WORKER.into());
        let has_callbacks = task.has_callbacks();
        match seen {
            // The attempt was handed over; its worker reports how it goes on.
            CallState::Ended(Ok(_)) if has_callbacks => {
                let dispatched_at = task.dispatched_at.unwrap_or(0);
                let waited_ms = as_time(now_ms).saturating_sub(dispatched_at);
                if task.state == TaskState::Dispatched && waited_ms >= as_time(duration_ms(HAND_OVER_TIMEOUT))
                {
                    self.own.push(settler::not_started(attempt).into());
                    return Ok(());
                }
            }
            CallState::Missing if has_callbacks && task.state == TaskState::Running => {}
            CallState::Leased { .. } if has_callbacks => {}
            CallState::Ended(ended) => {
                let instance = self.services.calls.instance_id(&self.scope, &job_of(&attempt));
                let event = settler::finished(attempt, &instance, &ended);
                self.own.push(event.into());
            }
            CallState::Missing => {
                let dispatched_at = task.dispatched_at.unwrap_or(0);
                let dispatch = state.dispatch(&job_of(&attempt)).cloned();
                if as_time(now_ms).saturating_sub(dispatched_at) >= MISSING_AFTER_MS
                    && let Some(dispatch) = dispatch
                {
                    let repair = dispatch.repairs.saturating_add(1);
                    self.dispatches.want(Enqueue { dispatch, repair });
                    return Ok(());
                }
            }
            CallState::Leased { .. } if task.state == TaskState::Dispatched => {
                self.own.push(TaskStarted { attempt, worker_id }.into());
            }
            CallState::Leased { .. } => {
                let every_ms = u64::from(task.heartbeat_timeout_sec) * 1_000 / 3;
                if every_ms > 0 && now_ms.saturating_sub(watched.beat_at_ms) >= every_ms {
                    // The lease of the call is its sign of life.
                    watched.beat_at_ms = now_ms;
                    let heartbeat_at = None;
                    let beat =
                        TaskHeartbeat { attempt, worker_id, heartbeat_at, progress_pct: None, message: None };
                    self.own.push(beat.into());
                }
            }
            CallState::Waiting => {}
        }
        if is_cancelled {
            self.cancel(&watched, "its run was cancelled")?;
        }
        watched.pause_ms = (watched.pause_ms * 2).clamp(duration_ms(CHECK_AFTER), duration_ms(LONGEST_PAUSE));
        self.checks.insert(watched, now_ms);
        Ok(())
    }

    /// Cancels a call with the next commit. One that has ended stays so.
    fn cancel(&mut self, watched: &Watched, reason: &str) -> Result<(), DriveError> {
        let job = job_of(&watched.attempt);
        Ok(self.services.calls.add_cancel(&mut self.commit, &self.scope, &job, reason)?)
    }
}

/// The job of an attempt: its dispatch id.
fn job_of(attempt: &Attempt) -> String {
    dispatch_id(&attempt.run_id, &attempt.task_key, attempt.attempt)
}
