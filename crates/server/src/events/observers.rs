//! Who hears of what the runtime has committed.

use std::sync::Arc;

use segno::runtime::{InstanceChange, Observer};

use super::hub::Hub;
use crate::stats::Collector;

/// Passes what a runtime commits on to all that observe it.
pub struct Observers {
    /// Live streams.
    pub hub: Arc<Hub>,
    /// Time series.
    pub collector: Arc<Collector>,
}

impl Observer for Observers {
    fn committed(&self, change: InstanceChange<'_>) {
        self.collector.committed(change);
        self.hub.committed(change);
    }

    fn timer_fired(&self, instance: &str, late_ms: u64) {
        self.collector.timer_fired(instance, late_ms);
    }
}
