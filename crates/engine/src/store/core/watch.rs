//! Watches on instances: each is answered by the first commit that fulfils its condition, with the
//! state of that commit.

use std::sync::Arc;

use hashbrown::HashMap;
use tokio::sync::oneshot;

use super::peek_lock::Sequence;
use crate::store::{InstanceInfo, WatchUntil};

/// All watches that have not been answered, by instance.
#[derive(Debug, Default)]
pub struct Watches {
    ids: Sequence,
    /// With their ids, ascending.
    by_instance: HashMap<Arc<str>, Vec<(u64, Watch)>>,
}

#[derive(Debug)]
struct Watch {
    until: WatchUntil,
    answer: oneshot::Sender<InstanceInfo>,
}

impl Watches {
    /// Adds a watch, also on an instance that does not exist. Returns its id and where the answer arrives.
    pub fn add(&mut self, instance: Arc<str>, until: WatchUntil) -> (u64, oneshot::Receiver<InstanceInfo>) {
        let (answer, receiver) = oneshot::channel();
        (self.add_answer(instance, until, answer), receiver)
    }

    /// Adds a watch with an existing channel for its answer. Returns its id.
    pub fn add_answer(
        &mut self,
        instance: Arc<str>,
        until: WatchUntil,
        answer: oneshot::Sender<InstanceInfo>,
    ) -> u64 {
        let id = self.ids.take();
        // Most instances have one watch.
        let watches = self.by_instance.entry(instance).or_insert_with(|| Vec::with_capacity(1));
        watches.push((id, Watch { until, answer }));
        id
    }

    /// Removes a watch, answered or not.
    pub fn remove(&mut self, instance: &str, id: u64) {
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        if let Ok(place) = watches.binary_search_by_key(&id, |(id, _)| *id) {
            watches.remove(place);
        }
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Removes the watches on an instance whose receivers were dropped.
    pub fn remove_closed(&mut self, instance: &str) {
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        watches.retain(|(_, watch)| !watch.answer.is_closed());
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Answers every watch whose condition the new state of the instance fulfils.
    pub fn answer(&mut self, info: &InstanceInfo) {
        self.answer_met(&info.instance_id, self.newest(), |until| until.is_met(info), || info.clone());
    }

    /// The id of the newest watch so far, for [`Watches::answer_met`].
    pub fn newest(&self) -> u64 {
        self.ids.last()
    }

    /// Answers with an earlier state, of when `newest` was the newest watch; later watches may be on
    /// another instance with the same id. `info` is called only if a watch is answered.
    pub fn answer_met(
        &mut self,
        instance: &str,
        newest: u64,
        is_met: impl Fn(WatchUntil) -> bool,
        info: impl Fn() -> InstanceInfo,
    ) {
        if self.by_instance.is_empty() {
            return;
        }
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        for (_, watch) in watches.extract_if(.., |(id, watch)| *id <= newest && is_met(watch.until)) {
            // A receiver that was dropped meanwhile is no error.
            let _ = watch.answer.send(info());
        }
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Whether the instance has a watch that would be answered.
    pub fn has_met(&self, instance: &str, is_met: impl Fn(WatchUntil) -> bool) -> bool {
        !self.by_instance.is_empty()
            && self.by_instance.get(instance).is_some_and(|all| all.iter().any(|(_, one)| is_met(one.until)))
    }

    /// Removes all watches. Their receivers are closed.
    pub fn clear(&mut self) {
        self.by_instance.clear();
    }

    /// The watched instances.
    pub fn watched(&self) -> Vec<Arc<str>> {
        self.by_instance.keys().cloned().collect()
    }

    /// Whether there is no watch.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_instance.is_empty()
    }
}
