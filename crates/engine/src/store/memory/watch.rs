//! Watches on instances: each is answered by the first commit that meets it, with the state of that commit.

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

    /// The same for whoever has somewhere to be answered. Returns its id.
    pub fn add_answer(
        &mut self,
        instance: Arc<str>,
        until: WatchUntil,
        answer: oneshot::Sender<InstanceInfo>,
    ) -> u64 {
        let id = self.ids.take();
        // Most are watched by one.
        let watches = self.by_instance.entry(instance).or_insert_with(|| Vec::with_capacity(1));
        watches.push((id, Watch { until, answer }));
        id
    }

    /// Forgets a watch, answered or not.
    pub fn remove(&mut self, instance: &str, id: u64) {
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        if let Ok(place) = watches.binary_search_by_key(&id, |(id, _)| *id) {
            watches.remove(place);
        }
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Forgets the watches on an instance whose answers nobody waits for any more.
    pub fn remove_unheard(&mut self, instance: &str) {
        let Some(watches) = self.by_instance.get_mut(instance) else { return };
        watches.retain(|(_, watch)| !watch.answer.is_closed());
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Answers every watch on the instance that its new state meets.
    pub fn answer(&mut self, info: &InstanceInfo) {
        self.answer_met(&info.instance_id, self.newest(), |until| until.is_met(info), || info.clone());
    }

    /// The id of the newest watch so far, for [`Watches::answer_met`].
    pub fn newest(&self) -> u64 {
        self.ids.last()
    }

    /// The same for a state of some time ago, when `newest` was the newest watch, that is put into words only if somebody wants to
    /// hear it. Later watches may be on another instance of the same id.
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
            // A watcher that has gone away meanwhile is no error.
            let _ = watch.answer.send(info());
        }
        if watches.is_empty() {
            self.by_instance.remove(instance);
        }
    }

    /// Whether somebody watches the instance who would be answered.
    pub fn has_met(&self, instance: &str, is_met: impl Fn(WatchUntil) -> bool) -> bool {
        !self.by_instance.is_empty()
            && self.by_instance.get(instance).is_some_and(|all| all.iter().any(|(_, one)| is_met(one.until)))
    }

    /// Gives up all watches; whoever waits hears that no answer comes.
    pub fn clear(&mut self) {
        self.by_instance.clear();
    }

    /// The instances that somebody watches.
    pub fn watched(&self) -> Vec<Arc<str>> {
        self.by_instance.keys().cloned().collect()
    }

    /// Whether nobody watches.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_instance.is_empty()
    }
}
