//! Inline steps: code that runs within a turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Aborted, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::Stage;
use super::turn::{CommitExtras, Turn, TurnError};
use crate::failure::{self, Failure};
use crate::replay::{Execution, ExecutionId, RecordedStep, RunnableStep};
use crate::store::{AfterAck, OrchestratorMessage};
use crate::telemetry;
use crate::work_item::{WorkItem, steps_left};

/// Most inline steps of one turn.
const MAX_STEPS_PER_TURN: usize = 1_000;
/// How long a turn starts inline steps.
const MAX_TURN_OF_STEPS: Duration = Duration::from_millis(500);

/// Runs the steps that the code requests until it requests no more. Everything before a step is
/// committed before the step runs, so a result that a step may depend on is never made anew.
///
/// A turn that has run its share of steps ends and wakes the instance again, so that a
/// cancellation, a pause or a message reaches code that only ever runs steps. The same message is
/// queued from the first commit on, which consumes the messages of the turn: without it, nothing
/// would resume the steps after a crash.
pub(super) async fn run(
    turn: &Turn<'_>,
    execution: &mut Execution,
    extras: &mut CommitExtras,
) -> Result<(), TurnError> {
    let mut running = FuturesUnordered::new();
    let mut stops = BTreeMap::new();
    let execution_id = execution.id().execution_id;
    let wake_up = wake_up(execution);
    let (mut steps_run, mut wake_up_queued) = (0, false);
    loop {
        let share_used =
            steps_run >= MAX_STEPS_PER_TURN || (steps_run > 0 && turn.age() >= MAX_TURN_OF_STEPS);
        let steps = if share_used { Vec::new() } else { execution.take_steps() };
        if !steps.is_empty() {
            steps_run += steps.len();
            if execution.has_uncommitted_events() {
                let mut ack = turn.next_ack(execution, extras, turn.now_ms());
                ack.after = AfterAck::KeepLock;
                if !wake_up_queued {
                    ack.orchestrator_items.push(wake_up.clone());
                    wake_up_queued = true;
                }
                turn.commit(Arc::new(ack), None).await?;
            }
            for step in steps {
                let number = step.step;
                let (work, stop) = abortable(run_step(step));
                stops.insert(number, stop);
                running.push(work);
            }
        }
        let finished = tokio::select! {
            biased;
            finished = running.next() => finished,
            () = turn.shared().reached(Stage::Releasing), if !running.is_empty() => {
                let reason = "the node shuts down while a step runs".to_owned();
                return Err(TurnError::Release { delay: Duration::ZERO, reason });
            }
        };
        match finished {
            Some(Ok(step)) => {
                stops.remove(&step.step);
                execution.finish_step(step, turn.now_ms());
                execution.enforce_history_limits(turn.now_ms());
                // Steps that have lost a race delay nothing.
                for dropped in execution.take_dropped_steps() {
                    stops.remove(&dropped).iter().for_each(AbortHandle::abort);
                }
                if execution.has_ended() {
                    running.clear();
                }
            }
            Some(Err(Aborted)) => {}
            None => {
                match (execution.has_runnable_steps(), wake_up_queued) {
                    (true, false) => extras.send(wake_up),
                    (false, true) => extras.cancel_timer(steps_left(execution_id)),
                    (true, true) | (false, false) => {}
                }
                return Ok(());
            }
        }
    }
}

/// The message that makes an instance resume its steps.
pub(super) fn wake_up(execution: &Execution) -> OrchestratorMessage {
    let ExecutionId { instance, execution_id } = execution.id();
    WorkItem::StepsLeft { execution_id: *execution_id }.for_orchestrator(&**instance)
}

async fn run_step(step: RunnableStep) -> RecordedStep {
    metrics::counter!(telemetry::STEPS_RUN).increment(1);
    let RunnableStep { step, name, run } = step;
    let result = std::panic::AssertUnwindSafe(run).catch_unwind().await;
    let result = result
        .unwrap_or_else(|panic| Err(failure::from_panic(&format!("step {name:?}"), &*panic)))
        .map_err(Failure::bounded);
    RecordedStep { step, name, result }
}
