//! Events that arrive late: with an id below one of their run that is folded already. Such a run is rebuilt; all others are folded in the order of
//! ids, because runs do not depend on the order of events of other runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::limits::REMEMBERED_RUNS;
use crate::ids::Ulid;

/// The newest folded event of each run.
#[derive(Debug, Default)]
pub(super) struct NewestByRun {
    /// Runs that are not remembered may have any event up to this one.
    floor: Option<Ulid>,
    newest: HashMap<Arc<str>, Ulid>,
}

impl NewestByRun {
    /// All runs may have events up to the watermark.
    pub(super) fn from_watermark(watermark: Option<Ulid>) -> Self {
        NewestByRun { floor: watermark, newest: HashMap::new() }
    }

    /// Whether an event does not come after all folded events of its run.
    pub(super) fn is_late(&self, run_id: &str, event: Ulid) -> bool {
        self.newest.get(run_id).copied().or(self.floor).is_some_and(|newest| event <= newest)
    }

    /// Remembers an event.
    pub(super) fn note(&mut self, run_id: &Arc<str>, event: Ulid) {
        let newest = self.newest.entry(Arc::clone(run_id)).or_insert(event);
        *newest = event.max(*newest);
        if self.newest.len() > REMEMBERED_RUNS {
            self.floor = self.floor.max(self.newest.values().max().copied());
            self.newest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_late_if_its_run_has_a_newer_one() {
        let id = |low| Ulid::at(1, low);
        let mut newest = NewestByRun::from_watermark(Some(id(10)));
        assert!(newest.is_late("a", id(10)), "what was folded before is not known");
        assert!(!newest.is_late("a", id(11)));
        newest.note(&"a".into(), id(20));
        newest.note(&"a".into(), id(15));
        assert!(newest.is_late("a", id(19)) && newest.is_late("a", id(20)));
        assert!(!newest.is_late("a", id(21)));
        assert!(!newest.is_late("b", id(12)), "another run has no event after it");
        assert!(!NewestByRun::from_watermark(None).is_late("a", Ulid::MIN));
    }
}
