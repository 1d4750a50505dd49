//! The rows of the instances that were used last, decoded. A turn asks for the row of its instance when it is fetched and
//! again when it is committed, and a start, a watch and a first turn ask in vain: all but the first are answered from here.

use std::cell::RefCell;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::instance_row::InstanceRow;

/// Most rows in a generation: a few for each turn that is under way.
const GENERATION: usize = 2_048;

/// Rows that carry more than this are decoded again, so that few bytes are kept for long.
const MAX_CARRIED_BYTES: usize = 2 * 1024;

/// What is known of instances; `None` when there is no such instance. The rows themselves never differ from it.
#[derive(Debug, Default)]
pub struct Recent(RefCell<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Box<str>, Option<Arc<InstanceRow>>>;

impl Recent {
    /// What is known of an instance.
    pub fn get(&self, instance: &str) -> Option<Option<Arc<InstanceRow>>> {
        let mut generations = self.0.borrow_mut();
        if let Some(known) = generations.young.get(instance) {
            return Some(known.clone());
        }
        let (instance, known) = generations.old.remove_entry(instance)?;
        generations.insert(instance, known.clone());
        Some(known)
    }

    /// This is how the instance is stored from now on.
    pub fn set(&self, instance: &str, row: Option<&Arc<InstanceRow>>) {
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
        let recent = Recent::default();
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
        let recent = Recent::default();
        recent.set("a", Some(&row(1, 0)));
        recent.set("a", Some(&row(1, MAX_CARRIED_BYTES + 1)));
        assert_eq!(recent.get("a"), None);
    }
}
