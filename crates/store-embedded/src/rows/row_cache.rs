//! A cache of decoded rows of recently used instances. A turn reads the row of its instance at its
//! fetch and at its commit; a start, a watch and a first turn look for a row that does not exist. All
//! reads but the first are answered by the cache.

use std::cell::RefCell;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::rows::instance_row::InstanceRow;

/// Most rows in a generation: a few for each turn that is under way.
const GENERATION: usize = 2_048;

/// Rows that carry more than this are decoded again, so that few bytes are kept for long.
const MAX_CARRIED_BYTES: usize = 2 * 1024;

/// What is known of instances; `None` when there is no such instance. The rows themselves never differ from it.
#[derive(Debug, Default)]
pub(crate) struct RowCache(RefCell<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Box<str>, Option<Arc<InstanceRow>>>;

impl RowCache {
    /// What is known of an instance.
    pub(crate) fn get(&self, instance: &str) -> Option<Option<Arc<InstanceRow>>> {
        let mut generations = self.0.borrow_mut();
        if let Some(known) = generations.young.get(instance) {
            return Some(known.clone());
        }
        let (instance, known) = generations.old.remove_entry(instance)?;
        generations.insert(instance, known.clone());
        Some(known)
    }

    /// This is how the instance is stored from now on.
    pub(crate) fn set(&self, instance: &str, row: Option<&Arc<InstanceRow>>) {
        let mut generations = self.0.borrow_mut();
        let is_short = row.is_none_or(|row| row.carried_bytes() <= MAX_CARRIED_BYTES);
        if !is_short {
            generations.young.remove(instance);
            generations.old.remove(instance);
        } else if let Some(known) = generations.young.get_mut(instance) {
            *known = row.cloned();
        } else {
            generations.old.remove(instance);
            generations.insert(Box::from(instance), row.cloned());
        }
    }
}

impl Generations {
    fn insert(&mut self, instance: Box<str>, row: Option<Arc<InstanceRow>>) {
        if self.young.len() >= GENERATION {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(instance, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn row(created_at_ms: u64, output_bytes: usize) -> Arc<InstanceRow> {
        let mut row = InstanceRow::new(1, created_at_ms);
        row.current.output = Some(Bytes::from(vec![0; output_bytes]));
        Arc::new(row)
    }

    #[test]
    fn what_was_set_last_is_known_until_many_others_were() {
        let recent = RowCache::default();
        assert_eq!(recent.get("a"), None);
        recent.set("a", None);
        assert_eq!(recent.get("a"), Some(None));
        recent.set("a", Some(&row(1, 0)));
        for number in 0..GENERATION {
            recent.set(&number.to_string(), None);
        }
        assert_eq!(recent.get("a"), Some(Some(row(1, 0))), "the generation before is known too");
        recent.set("a", Some(&row(2, 0)));
        assert_eq!(recent.get("a"), Some(Some(row(2, 0))));
        for number in 0..3 * GENERATION {
            recent.set(&number.to_string(), None);
        }
        assert_eq!(recent.get("a"), None);
    }

    #[test]
    fn a_long_row_is_not_kept_and_nothing_older_in_its_place() {
        let recent = RowCache::default();
        recent.set("a", Some(&row(1, 0)));
        recent.set("a", Some(&row(1, MAX_CARRIED_BYTES + 1)));
        assert_eq!(recent.get("a"), None);
    }
}
