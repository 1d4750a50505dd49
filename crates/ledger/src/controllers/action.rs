//! What controllers want: events to append, work outside the ledger, and reports of what they left
//! undone.

use std::sync::Arc;

use crate::event::{DispatchEnqueued, EventData, RunRequested, TimerEnqueued};
use crate::fold::TaskRef;
use crate::ids::{dispatch_queue_name, timer_queue_name};
use crate::tables::{OutboxRow, TimerRow};

use super::sensors::Poll;

/// One thing that a controller wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Events that go into the log together: a cause and what it requests are never apart.
    Append(Vec<EventData>),
    /// Work outside, which is acknowledged by an event.
    Outside(Outside),
    /// Something that was left undone.
    Report(Report),
}

impl Action {
    /// One event.
    pub(super) fn append(event: impl Into<EventData>) -> Self {
        Action::Append(vec![event.into()])
    }
}

/// Work outside the ledger. Each can be done any number of times.
#[derive(Clone, Debug, PartialEq)]
pub enum Outside {
    /// Start the attempt under its dispatch id; then append [`Enqueue::accepted`], also when it had
    /// been started already.
    Enqueue(Enqueue),
    /// Set the timer under its name; then append [`TimerCreation::accepted`].
    CreateTimer(TimerCreation),
    /// Make the list of a task; then append `TasksAdded` with this attempt.
    Expand {
        /// The task.
        task: TaskRef,
        /// Its attempt.
        attempt: u32,
    },
    /// Plan the run; then append [`bridged`](super::bridged).
    PlanRun(Box<RunRequested>),
    /// Evaluate the sensor; then append `SensorEvaluated` and what it requests, together.
    EvaluateSensor(Poll),
}

/// A dispatch to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueue {
    /// Its row.
    pub dispatch: OutboxRow,
    /// Which repair this is; 0 for the first.
    pub repair: u32,
}

impl Enqueue {
    /// The name of the dispatch in a queue that drops names which it has seen. Starting under the
    /// dispatch id itself needs none.
    pub fn queue_name(&self) -> String {
        dispatch_queue_name(&self.dispatch.dispatch_id)
    }

    /// The acknowledgement.
    pub fn accepted(&self, name: impl Into<Arc<str>>) -> DispatchEnqueued {
        DispatchEnqueued {
            dispatch_id: Arc::clone(&self.dispatch.dispatch_id),
            run_id: Some(Arc::clone(&self.dispatch.run_id)),
            task_key: Some(Arc::clone(&self.dispatch.task_key)),
            attempt: Some(self.dispatch.attempt),
            cloud_task_id: name.into(),
            repair: self.repair,
        }
    }
}

/// A timer to be set.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerCreation {
    /// Its row.
    pub timer: TimerRow,
}

impl TimerCreation {
    /// Its name in a queue.
    pub fn queue_name(&self) -> String {
        timer_queue_name(&self.timer.timer_id)
    }

    /// The acknowledgement.
    pub fn accepted(&self, name: impl Into<Arc<str>>) -> TimerEnqueued {
        TimerEnqueued {
            timer_id: Arc::clone(&self.timer.timer_id),
            run_id: self.timer.run_id.clone(),
            task_key: self.timer.task_key.clone(),
            attempt: self.timer.attempt,
            cloud_task_id: name.into(),
        }
    }
}

/// Something that was left undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The controller did nothing, because the tables are too old.
    Stale {
        /// The controller.
        controller: &'static str,
        /// How far the tables are behind, in milliseconds.
        lag_ms: i64,
    },
    /// One repair was left out, because the tables may miss what makes it wrong.
    Suppressed {
        /// The controller.
        controller: &'static str,
        /// What was left out.
        repair: &'static str,
        /// For which task.
        task: TaskRef,
    },
}

/// Actions by what has to be done about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Execution {
    /// Events to append, in groups that belong together.
    pub events: Vec<Vec<EventData>>,
    /// Work outside.
    pub outside: Vec<Outside>,
    /// What was left undone.
    pub reports: Vec<Report>,
}
