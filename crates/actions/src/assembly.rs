//! The one place that knows every room of this crate: what each registers with the functions.

use std::sync::Arc;

use segno::store::Store;

use crate::functions::{Functions, FunctionsBuilder};
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
