//! The due index of one kind of records: by time, and by folder and time once a caller has requested
//! an id prefix.
//!
//! The [folder](folder_of) of an id is the text up to and including its last slash. A prefix covers
//! whole folders and at most a part of one, so a listing under a prefix is a k-way merge of a few
//! ordered sets: its cost grows with the folders under the prefix and with the result, never with
//! records elsewhere or records that are due later.
//!
//! Folders are indexed only for kinds that were queried by prefix; others would waste the memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::sync::Arc;

use crate::store::folder_of;

/// The expiry of a record that never expires.
pub const FOREVER_MS: u64 = u64::MAX;

/// Due time and id of records, with the expiry of each.
type ByTime = BTreeMap<(u64, Arc<str>), u64>;

/// Records of one kind that have a due time.
#[derive(Debug, Default)]
pub struct DueIndex {
    all: ByTime,
    folders: Option<BTreeMap<Arc<str>, ByTime>>,
}

impl DueIndex {
    /// Adds a due time.
    pub fn insert(&mut self, due_at_ms: u64, id: &Arc<str>, ends_at_ms: u64) {
        self.all.insert((due_at_ms, Arc::clone(id)), ends_at_ms);
        if let Some(folders) = &mut self.folders {
            add(folders, due_at_ms, id, ends_at_ms);
        }
    }

    /// Removes a due time.
    pub fn remove(&mut self, due_at_ms: u64, id: &Arc<str>) {
        let key = (due_at_ms, Arc::clone(id));
        self.all.remove(&key);
        let Some(folders) = &mut self.folders else { return };
        if let Some(records) = folders.get_mut(folder_of(id)) {
            records.remove(&key);
            if records.is_empty() {
                folders.remove(folder_of(id));
            }
        }
    }

    /// Whether it can be dropped: it has no records, and no query by prefix was made.
    pub fn is_unused(&self) -> bool {
        self.all.is_empty() && self.folders.is_none()
    }

    /// Indexes folders from now on, unless the prefix is empty. Without this, a query by prefix scans
    /// all records.
    pub fn prepare(&mut self, id_prefix: &str) {
        if id_prefix.is_empty() || self.folders.is_some() {
            return;
        }
        let mut folders = BTreeMap::new();
        for ((due_at_ms, id), ends_at_ms) in &self.all {
            add(&mut folders, *due_at_ms, id, *ends_at_ms);
        }
        self.folders = Some(folders);
    }

    /// Due times and ids of living records under a prefix, earliest first.
    pub fn by_due_time<'a>(
        &'a self,
        id_prefix: &'a str,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, &'a Arc<str>)> {
        let parts = match &self.folders {
            Some(folders) if !id_prefix.is_empty() => Merge::of(under(folders, id_prefix)),
            _ => Merge::of(std::iter::once(&self.all)),
        };
        parts
            .filter(move |(_, id, ends_at_ms)| *ends_at_ms > now_ms && id.starts_with(id_prefix))
            .map(|(due_at_ms, id, _)| (due_at_ms, id))
    }

    /// The earliest due time of a living record under a prefix.
    pub fn next_due_ms(&self, id_prefix: &str, now_ms: u64) -> Option<u64> {
        let first = |records: &ByTime| {
            let living = records
                .iter()
                .find(|((_, id), ends_at_ms)| **ends_at_ms > now_ms && id.starts_with(id_prefix));
            living.map(|((due_at_ms, _), _)| *due_at_ms)
        };
        match &self.folders {
            Some(folders) if !id_prefix.is_empty() => under(folders, id_prefix).filter_map(first).min(),
            _ => first(&self.all),
        }
    }
}

fn add(folders: &mut BTreeMap<Arc<str>, ByTime>, due_at_ms: u64, id: &Arc<str>, ends_at_ms: u64) {
    let records = match folders.get_mut(folder_of(id)) {
        Some(records) => records,
        None => folders.entry(Arc::from(folder_of(id))).or_default(),
    };
    records.insert((due_at_ms, Arc::clone(id)), ends_at_ms);
}

/// The folders that may have ids with a prefix: those that begin with it, and the one that the prefix
/// ends in.
fn under<'a>(
    folders: &'a BTreeMap<Arc<str>, ByTime>,
    id_prefix: &'a str,
) -> impl Iterator<Item = &'a ByTime> {
    let within = folders.range::<str, _>((Bound::Included(id_prefix), Bound::Unbounded));
    let within = within.take_while(move |(folder, _)| folder.starts_with(id_prefix));
    let own = folder_of(id_prefix);
    let last = (own != id_prefix).then(|| folders.get(own)).flatten();
    last.into_iter().chain(within.map(|(_, records)| records))
}

/// The next record of a set: due time, id, expiry, and the number of the set.
type Head<'a> = (u64, &'a Arc<str>, u64, usize);

/// A k-way merge of ordered sets.
struct Merge<'a> {
    parts: Vec<std::collections::btree_map::Iter<'a, (u64, Arc<str>), u64>>,
    heads: BinaryHeap<Reverse<Head<'a>>>,
}

impl<'a> Merge<'a> {
    fn of(sets: impl Iterator<Item = &'a ByTime>) -> Self {
        let mut merge = Merge { parts: sets.map(BTreeMap::iter).collect(), heads: BinaryHeap::new() };
        (0..merge.parts.len()).for_each(|part| merge.draw(part));
        merge
    }

    fn draw(&mut self, part: usize) {
        if let Some(((due_at_ms, id), ends_at_ms)) = self.parts[part].next() {
            self.heads.push(Reverse((*due_at_ms, id, *ends_at_ms, part)));
        }
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = (u64, &'a Arc<str>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((due_at_ms, id, ends_at_ms, part)) = self.heads.pop()?;
        self.draw(part);
        Some((due_at_ms, id, ends_at_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 9] = ["", "a", "a/", "a/b", "a/b/c", "a/bc", "a0", "b/x", "é/日"];

    fn found(index: &DueIndex, prefix: &str, now_ms: u64) -> Vec<(u64, String)> {
        index.by_due_time(prefix, now_ms).map(|(at_ms, id)| (at_ms, id.to_string())).collect()
    }

    #[test]
    fn folders_change_the_cost_and_nothing_else() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (mut plain, mut foldered) = (DueIndex::default(), DueIndex::default());
        foldered.prepare("x");
        let mut known: BTreeMap<&str, u64> = BTreeMap::new();
        for _ in 0..2_000 {
            let id = IDS[usize::try_from(random(IDS.len() as u64)).unwrap()];
            let shared: Arc<str> = Arc::from(id);
            if let Some(at_ms) = known.remove(id) {
                plain.remove(at_ms, &shared);
                foldered.remove(at_ms, &shared);
            }
            if random(4) > 0 {
                let (at_ms, ends_at_ms) = (random(5), 5 + random(10));
                plain.insert(at_ms, &shared, ends_at_ms);
                foldered.insert(at_ms, &shared, ends_at_ms);
                known.insert(id, at_ms);
            }
            let mut late = DueIndex::default();
            plain.all.iter().for_each(|((at_ms, id), ends_at_ms)| late.insert(*at_ms, id, *ends_at_ms));
            late.prepare("x");
            for prefix in ["", "a", "a/", "a/b", "a/b/", "b", "c/", "é"] {
                for now_ms in [0, 8] {
                    let expected = found(&plain, prefix, now_ms);
                    assert!(expected.is_sorted());
                    assert_eq!(found(&foldered, prefix, now_ms), expected, "{prefix:?}");
                    assert_eq!(found(&late, prefix, now_ms), expected, "{prefix:?}");
                }
            }
        }
    }

    #[test]
    fn other_folders_are_not_read() {
        let mut index = DueIndex::default();
        for number in 0..1_000 {
            index.insert(1, &Arc::from(format!("other-{number}/x")), FOREVER_MS);
            index.insert(9, &Arc::from(format!("own/{number}")), FOREVER_MS);
        }
        index.prepare("own/");
        let parts = under(index.folders.as_ref().unwrap(), "own/");
        assert_eq!(parts.map(BTreeMap::len).sum::<usize>(), 1_000);
        assert_eq!(index.next_due_ms("own/", 0), Some(9));
        assert_eq!(under(index.folders.as_ref().unwrap(), "own/1").count(), 1);
    }

    #[test]
    fn an_index_is_kept_while_it_has_records_or_folders() {
        let (mut index, id) = (DueIndex::default(), Arc::from("a/b"));
        assert!(index.is_unused());
        index.insert(1, &id, FOREVER_MS);
        assert!(!index.is_unused());
        index.remove(1, &id);
        assert!(index.is_unused());
        index.prepare("");
        assert!(index.is_unused());
        index.prepare("a/");
        assert!(!index.is_unused());
    }
}
