//! Watches on instances: each is answered by the first commit that meets it, with the state of that commit.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use tokio::sync::oneshot;

use super::peek_lock::Sequence;
use crate::store::{InstanceInfo, WatchUntil};

/// All watches that have not been answered, by instance.
#[derive(Debug, Default)]
pub struct Watches {
    ids: Sequence,
    by_instance: HashMap<String, BTreeMap<u64, Watch>>,
}

#[derive(Debug)]
struct Watch {
    until: WatchUntil,
    answer: oneshot::Sender<InstanceInfo>,
}

impl Watches {
    /// Adds a watch, also on an instance that does not exist. Returns its id and where the answer arrives.
    pub fn add(&mut self, instance: &str, until: WatchUntil) -> (u64, oneshot::Receiver<InstanceInfo>) {
        let (answer, receiver) = oneshot::channel();
        let id = self.ids.take();
        self.by_instance.entry(instance.to_owned()).or_default().insert(id, Watch { until, answer });
        (id, receiver)
    }

    /// Forgets a watch, answered or not.
    pub fn remove(&mut self, instance: &str, id: u64) {
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        watches.remove(&id);
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Answers every watch on the instance that its new state meets.
    pub fn answer(&mut self, info: &InstanceInfo) {
        if self.by_instance.is_empty() {
            return;
        }
        let Some(watches) = self.by_instance.get_mut(&info.instance_id) else { return };
        let met: Vec<u64> =
            watches.iter().filter(|(_, watch)| watch.until.is_met(info)).map(|(&id, _)| id).collect();
        for watch in met.iter().filter_map(|id| watches.remove(id)) {
            // A watcher that has gone away meanwhile is no error.
            let _ = watch.answer.send(info.clone());
        }
        if watches.is_empty() {
            self.by_instance.remove(&info.instance_id);
        }
    }

    /// The instances that somebody watches.
    pub fn watched(&self) -> Vec<String> {
        self.by_instance.keys().cloned().collect()
    }

    /// Whether somebody watches the instance.
    pub fn has(&self, instance: &str) -> bool {
        !self.by_instance.is_empty() && self.by_instance.contains_key(instance)
    }

    /// Whether nobody watches.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_instance.is_empty()
    }
}
