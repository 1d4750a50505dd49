//! All events as one enum, tagged by `type`.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

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
        #[derive(Clone, Debug, PartialEq, Serialize)]
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

        /// The type of an event, as its data names it.
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Type { $($name,)+ }

        impl EventData {
            /// Reads an event. The JSON is read as it is: from a buffer, as derived code would take it for an enum with a tag,
            /// texts of JSON inside could not be taken, and numbers lose digits.
            ///
            /// # Errors
            /// When it is no event of this version.
            pub(super) fn read(json: &str) -> Result<Self, serde_json::Error> {
                Ok(match serde_json::from_str::<Tag>(json)?.of {
                    $(Type::$name => EventData::$name(serde_json::from_str(json)?),)+
                })
            }
        }

        $(impl From<$name> for EventData {
            fn from(event: $name) -> Self {
                EventData::$name(Box::new(event))
            }
        })+
    };
}

/// The tag of an event.
#[derive(Deserialize)]
struct Tag {
    #[serde(rename = "type")]
    of: Type,
}

impl<'de> Deserialize<'de> for EventData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        EventData::read(json.get()).map_err(de::Error::custom)
    }
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
