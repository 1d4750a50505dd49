//! The path of a retry, driven by the fold and the controllers alone: a failed attempt is followed by another one, whether the
//! controller of retries runs or the anti-entropy sweep finds it, and not before its time.

use super::decisions::World;
use crate::controllers::{AntiEntropy, OrchestrationController, ReadyDispatch, Retry};
use crate::event::{Outcome, PlannedTask};
use crate::tables::{OutboxStatus, TaskState};

/// The delay before the second attempt.
const BACKOFF_MS: i64 = 30_000;

/// How long the sweep leaves a retry to its own controller.
const SWEEP_MS: i64 = 5 * 60_000;

fn failed_once(max_attempts: u32) -> World {
    let mut world = World::with(vec![PlannedTask { max_attempts, ..PlannedTask::new("extract") }]);
    assert_eq!(world.apply(&ReadyDispatch), 1);
    world.start("extract", 1);
    world.finish("extract", 1, Outcome::Failed);
    world
}

#[test]
fn retry_convergence_first_task_failure_yields_a_dispatched_retry_attempt() {
    let found_by: [(&dyn OrchestrationController, i64); 2] =
        [(&Retry, BACKOFF_MS), (&AntiEntropy, BACKOFF_MS + SWEEP_MS)];
    for (controller, after_ms) in found_by {
        let mut world = failed_once(3);
        let task = world.state.task("run1", "extract").unwrap();
        let deadline = world.now + BACKOFF_MS;
        assert_eq!((task.state, task.retry_not_before), (TaskState::RetryWait, Some(deadline)));
        world.now += after_ms;
        assert_eq!(world.apply(controller), 1, "{}", controller.name());
        let task = world.state.task("run1", "extract").unwrap();
        assert_eq!((task.state, task.attempt), (TaskState::Dispatched, 2));
        assert_eq!(task.retry_not_before, None, "the deadline is over");
        let row = world.state.dispatch("dispatch:run1:extract:2").unwrap();
        assert_eq!((row.attempt, row.status), (2, OutboxStatus::Pending));
        // The other controller, and the same one again, add nothing to it.
        assert_eq!(world.apply(&Retry) + world.apply(&AntiEntropy) + world.apply(&ReadyDispatch), 0);
    }
}

#[test]
fn retry_convergence_is_not_bootstrapped_before_the_backoff_deadline() {
    let mut world = failed_once(3);
    world.now += BACKOFF_MS - 1;
    assert_eq!(world.apply(&Retry) + world.apply(&AntiEntropy), 0);
    assert_eq!(world.state_of("extract"), TaskState::RetryWait);
    world.now += 1;
    assert_eq!(world.apply(&AntiEntropy), 0, "its own controller comes first");
    assert_eq!(world.apply(&Retry), 1);
}

#[test]
fn retry_convergence_exhausted_attempts_fail_terminally_without_retry_deadline() {
    let mut world = failed_once(1);
    let task = world.state.task("run1", "extract").unwrap();
    assert_eq!((task.state, task.retry_not_before), (TaskState::Failed, None));
    let run = world.state.run("run1").unwrap();
    assert_eq!((run.tasks_failed, run.tasks_completed), (1, 1));
    world.now += BACKOFF_MS + 2 * SWEEP_MS;
    assert_eq!(world.apply(&Retry) + world.apply(&AntiEntropy), 0);
}
