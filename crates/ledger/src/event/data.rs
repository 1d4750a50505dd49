//! All events as one enum, tagged by `type`.

use serde::{Deserialize, Serialize};

use super::{
    BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, DispatchEnqueued, DispatchRequested,
    PlanCreated, PoolDefined, RunCancelRequested, RunPaused, RunRequested, RunResumed, RunTriggered,
    ScheduleDefinitionUpserted, ScheduleTicked, SensorEvaluated, TaskCleared, TaskCompletionRecorded,
    TaskFinished, TaskHeartbeat, TaskMarked, TaskOutputVisibilityChanged, TaskStarted, TasksAdded,
    TimerEnqueued, TimerFired, TimerRequested,
};

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// What an event says.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum EventData { $($(#[$doc])* $name(Box<$name>),)+ }

        impl EventData {
            /// The types of all events, as envelopes name them.
            pub const TYPES: &'static [&'static str] = &[$(stringify!($name),)+];

            /// Its type, as envelopes name it.
            pub const fn event_type(&self) -> &'static str {
                match self { $(EventData::$name(_) => stringify!($name),)+ }
            }
        }

        $(impl From<$name> for EventData {
            fn from(event: $name) -> Self {
                EventData::$name(Box::new(event))
            }
        })+
    };
}

events! {
    /// A run exists.
    RunTriggered,
    /// Its tasks are known.
    PlanCreated,
    /// It is to be cancelled.
    RunCancelRequested,
    /// It dispatches nothing.
    RunPaused,
    /// It dispatches again.
    RunResumed,
    /// A list added tasks.
    TasksAdded,
    /// Tasks run again.
    TaskCleared,
    /// A task's state was set by hand.
    TaskMarked,
    /// An attempt started.
    TaskStarted,
    /// An attempt is alive.
    TaskHeartbeat,
    /// An attempt ended.
    TaskFinished,
    /// An attempt ended, and the visibility of its output is known.
    TaskCompletionRecorded,
    /// The visibility of an output changed.
    TaskOutputVisibilityChanged,
    /// An attempt is to be dispatched.
    DispatchRequested,
    /// A dispatch was accepted.
    DispatchEnqueued,
    /// A timer is wanted.
    TimerRequested,
    /// A timer was accepted.
    TimerEnqueued,
    /// A timer fired.
    TimerFired,
    /// A schedule was defined.
    ScheduleDefinitionUpserted,
    /// A schedule ticked.
    ScheduleTicked,
    /// A sensor was evaluated.
    SensorEvaluated,
    /// A run is requested.
    RunRequested,
    /// A backfill exists.
    BackfillCreated,
    /// A chunk of it was planned.
    BackfillChunkPlanned,
    /// Its state changed.
    BackfillStateChanged,
    /// A pool was defined.
    PoolDefined,
}
