//! The one place that knows every room of this crate: what each registers with the functions.

use std::sync::Arc;

use jiff::Timestamp;
use segno::store::Store;

use crate::functions::{Functions, FunctionsBuilder, Settle, Trigger};
use crate::{action, recurring};

impl Functions {
    /// Starts a catalogue on a store. The ends of calls that actions and recurring actions have made are settled; further
    /// rooms register settlers of their own.
    pub fn builder(store: Arc<dyn Store>) -> FunctionsBuilder {
        FunctionsBuilder::new(store)
            .settler(action::settle::SETTLE_KIND, action::settle::ActionSettler)
            .settler(recurring::settle::SETTLE_KIND, recurring::settle::OccurrenceSettler)
    }
}

/// What a call was made for, by what its end settles. Calls have it in their labels too, unless they are older than those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFor {
    /// What made the call.
    pub trigger: Trigger,
    /// Which action, or other thing that waits for the outcome.
    pub id: String,
    /// The scheduled time of an occurrence.
    pub time: Option<Timestamp>,
}

impl MadeFor {
    /// What settles with this was made for.
    pub fn of(settle: &Settle) -> Self {
        let (trigger, time) = match settle.kind() {
            action::settle::SETTLE_KIND => (Trigger::Action, None),
            recurring::settle::SETTLE_KIND => (Trigger::Schedule, recurring::settle::time_of(settle)),
            _ => (Trigger::Call, None),
        };
        MadeFor { trigger, id: settle.id().to_owned(), time }
    }
}
