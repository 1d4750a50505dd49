//! Indexes over instances: every listing walks the smallest one that covers a criterion, newest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::store::{ExecutionStatus, InstanceInfo, InstanceQuery};

/// Sorts instances newest first and those of equal age ascending by id.
pub(super) type Age = (Reverse<u64>, Arc<str>);

type ByAge = BTreeSet<Age>;

/// All indexes, kept up to date by the instance table.
#[derive(Debug, Default)]
pub(super) struct InstanceIndex {
    all: ByAge,
    ids: BTreeSet<Arc<str>>,
    by_status: BTreeMap<ExecutionStatus, ByAge>,
    by_name: BTreeMap<Arc<str>, ByAge>,
    by_label: BTreeMap<(String, String), ByAge>,
    by_parent: BTreeMap<String, ByAge>,
    /// Instances that have ended, by completion time.
    ended: BTreeSet<(u64, Arc<str>)>,
}

fn unlink<K: Ord>(index: &mut BTreeMap<K, ByAge>, key: &K, age: &Age) {
    let Some(entries) = index.get_mut(key) else { return };
    entries.remove(age);
    if entries.is_empty() {
        index.remove(key);
    }
}

impl InstanceIndex {
    /// Adds an instance with all that is known of it.
    pub(super) fn insert(&mut self, age: &Age, info: &InstanceInfo) {
        self.all.insert(age.clone());
        self.ids.insert(Arc::clone(&age.1));
        self.link_status(age, info);
        self.link_name(age, info);
        self.link_labels(age, info);
        self.link_parent(age, info);
    }

    /// Removes an instance.
    pub(super) fn remove(&mut self, age: &Age, info: &InstanceInfo) {
        self.all.remove(age);
        self.ids.remove(&age.1);
        self.unlink_status(age, info);
        self.unlink_name(age, info);
        self.unlink_labels(age, info);
        self.unlink_parent(age, info);
    }

    /// Adds the state, and the completion time of an instance that has ended.
    pub(super) fn link_status(&mut self, age: &Age, info: &InstanceInfo) {
        self.by_status.entry(info.status).or_default().insert(age.clone());
        if let Some(ended_at_ms) = ended_at_ms(info) {
            self.ended.insert((ended_at_ms, Arc::clone(&age.1)));
        }
    }

    /// Undoes [`Self::link_status`].
    pub(super) fn unlink_status(&mut self, age: &Age, info: &InstanceInfo) {
        unlink(&mut self.by_status, &info.status, age);
        if let Some(ended_at_ms) = ended_at_ms(info) {
            self.ended.remove(&(ended_at_ms, Arc::clone(&age.1)));
        }
    }

    /// Adds the orchestration name.
    pub(super) fn link_name(&mut self, age: &Age, info: &InstanceInfo) {
        if let Some(name) = &info.orchestration_name {
            self.by_name.entry(name.clone()).or_default().insert(age.clone());
        }
    }

    /// Undoes [`Self::link_name`].
    pub(super) fn unlink_name(&mut self, age: &Age, info: &InstanceInfo) {
        if let Some(name) = &info.orchestration_name {
            unlink(&mut self.by_name, name, age);
        }
    }

    /// Adds the labels.
    pub(super) fn link_labels(&mut self, age: &Age, info: &InstanceInfo) {
        for (label, value) in &info.labels {
            self.by_label.entry((label.clone(), value.clone())).or_default().insert(age.clone());
        }
    }

    /// Undoes [`Self::link_labels`].
    pub(super) fn unlink_labels(&mut self, age: &Age, info: &InstanceInfo) {
        for (label, value) in &info.labels {
            unlink(&mut self.by_label, &(label.clone(), value.clone()), age);
        }
    }

    /// Adds the parent.
    pub(super) fn link_parent(&mut self, age: &Age, info: &InstanceInfo) {
        if let Some(parent) = &info.parent_instance_id {
            self.by_parent.entry(parent.clone()).or_default().insert(age.clone());
        }
    }

    /// Undoes [`Self::link_parent`].
    pub(super) fn unlink_parent(&mut self, age: &Age, info: &InstanceInfo) {
        if let Some(parent) = &info.parent_instance_id {
            unlink(&mut self.by_parent, parent, age);
        }
    }

    /// All instances, newest first.
    pub(super) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> {
        self.all.iter().map(|(_, id)| id)
    }

    /// All ids, ascending.
    pub(super) fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ids.iter()
    }

    /// All instances in a state, newest first.
    pub(super) fn with_status(&self, status: ExecutionStatus) -> impl Iterator<Item = &Arc<str>> {
        self.by_status.get(&status).into_iter().flatten().map(|(_, id)| id)
    }

    /// How many instances are in a state.
    pub(super) fn status_count(&self, status: ExecutionStatus) -> u64 {
        self.by_status.get(&status).map_or(0, |entries| entries.len() as u64)
    }

    /// Children of an instance, oldest first.
    pub(super) fn children(&self, parent: &str) -> Vec<Arc<str>> {
        let mut children: Vec<(u64, &Arc<str>)> =
            self.by_parent.get(parent).into_iter().flatten().map(|(age, id)| (age.0, id)).collect();
        children.sort_unstable();
        children.into_iter().map(|(_, id)| Arc::clone(id)).collect()
    }

    /// Whether every child of an instance passes the test.
    pub(super) fn all_children(&self, parent: &str, passes: impl Fn(&str) -> bool) -> bool {
        self.by_parent.get(parent).into_iter().flatten().all(|(_, id)| passes(id))
    }

    /// Instances that have ended behind a place, oldest completion first.
    pub(super) fn ended_after(&self, after: Option<(u64, Arc<str>)>) -> impl Iterator<Item = &Arc<str>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.ended.range((start, Bound::Unbounded)).map(|(_, id)| id)
    }

    /// Instances that have ended, oldest completion first.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ended.iter().map(|(_, id)| id)
    }

    /// The first `most` instances that match, in listing order. `row` finds the row of an id in the indexes.
    pub(super) fn select<'a>(
        &'a self,
        query: &InstanceQuery,
        most: usize,
        row: impl Fn(&Arc<str>) -> &'a InstanceInfo,
    ) -> Vec<&'a InstanceInfo> {
        let (Some(walk), Some(start)) = (self.smallest(query), start_of(query)) else { return Vec::new() };
        let from_ms = query.created_from_ms.unwrap_or(0);
        let in_time = merged(&walk, &start).take_while(|(created, _)| created.0 >= from_ms);
        let mut by_age = in_time.map(|(_, id)| row(id));
        let Some(prefix) = query.id_prefix.as_deref() else {
            return by_age.filter(|info| matches(query, info)).take(most).collect();
        };
        // Neither order is always right for a prefix: ids of a sparse one are found by id and sorted, a dense one by
        // walking from new to old. Both are walked in step, and whichever ends first answers, so the cost is
        // at most twice that of the better one.
        let from_prefix = (Bound::Included(prefix), Bound::Unbounded);
        let mut by_id = self.ids.range::<str, _>(from_prefix).take_while(|id| id.starts_with(prefix));
        let (mut newest, mut named) = (Vec::new(), Vec::new());
        loop {
            match by_age.next() {
                Some(info) if matches(query, info) => newest.push(info),
                Some(_) => {}
                None => return newest,
            }
            if newest.len() == most {
                return newest;
            }
            match by_id.next() {
                Some(id) => named.push(row(id)),
                None => return sorted(named, query, most),
            }
        }
    }

    /// Whether nothing is left in any index.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let by_age = self.all.is_empty() && self.by_status.is_empty() && self.by_name.is_empty();
        let by_text = self.ids.is_empty() && self.by_label.is_empty() && self.by_parent.is_empty();
        by_age && by_text && self.ended.is_empty()
    }

    /// The smallest part of the indexes by age that contains every match: one entry of an index, or several that share
    /// no instance. `None` when nothing can match.
    fn smallest(&self, query: &InstanceQuery) -> Option<Vec<&ByAge>> {
        let mut candidates: Vec<Option<&ByAge>> = Vec::with_capacity(4);
        candidates.extend(query.orchestration_name.as_ref().map(|name| self.by_name.get(name.as_str())));
        candidates.extend(query.labels.iter().map(|label| self.by_label.get(label)));
        candidates.extend(query.parent_instance_id.as_ref().map(|parent| self.by_parent.get(parent)));
        let mut smallest = vec![&self.all];
        if !query.statuses.is_empty() {
            smallest = query.statuses.iter().filter_map(|status| self.by_status.get(status)).collect();
        }
        for candidate in candidates {
            let candidate = candidate?;
            if candidate.len() < smallest.iter().map(|entry| entry.len()).sum() {
                smallest = vec![candidate];
            }
        }
        Some(smallest)
    }
}

/// Entries of an index from a place on, newest first over all of them.
fn merged<'a>(entries: &[&'a ByAge], start: &Bound<Age>) -> impl Iterator<Item = &'a Age> {
    let from_start = |entry: &&'a ByAge| entry.range((start.clone(), Bound::Unbounded)).peekable();
    let mut walks: Vec<_> = entries.iter().map(from_start).collect();
    std::iter::from_fn(move || {
        let heads = walks.iter_mut().enumerate().filter_map(|(place, walk)| Some((*walk.peek()?, place)));
        let (_, newest) = heads.min()?;
        walks[newest].next()
    })
}

/// When an instance ended for good; an execution that continued as new is followed by another.
pub(super) fn ended_at_ms(info: &InstanceInfo) -> Option<u64> {
    info.completed_at_ms.filter(|_| info.status.is_terminal())
}

/// Where a listing starts; `None` when no creation time is early enough.
fn start_of(query: &InstanceQuery) -> Option<Bound<Age>> {
    let after_cursor = query.cursor.as_ref().map(|cursor| age(cursor.created_at_ms, &cursor.instance_id));
    let newest = match query.created_before_ms {
        Some(before_ms) => Some(age(before_ms.checked_sub(1)?, "")),
        None => None,
    };
    Some(match (after_cursor, newest) {
        (Some(cursor), Some(newest)) if cursor < newest => Bound::Included(newest),
        (Some(cursor), _) => Bound::Excluded(cursor),
        (None, Some(newest)) => Bound::Included(newest),
        (None, None) => Bound::Unbounded,
    })
}

fn age(created_at_ms: u64, id: &str) -> Age {
    (Reverse(created_at_ms), Arc::from(id))
}

/// Whether a row meets all criteria but the place where the page starts.
pub(super) fn matches(query: &InstanceQuery, info: &InstanceInfo) -> bool {
    query.id_prefix.as_ref().is_none_or(|prefix| info.instance_id.starts_with(prefix.as_str()))
        && (query.statuses.is_empty() || query.statuses.contains(&info.status))
        && query
            .orchestration_name
            .as_deref()
            .is_none_or(|name| info.orchestration_name.as_deref() == Some(name))
        && query.labels.iter().all(|(label, value)| info.labels.get(label) == Some(value))
        && query.parent_instance_id.as_ref().is_none_or(|id| info.parent_instance_id.as_ref() == Some(id))
        && query.created_from_ms.is_none_or(|from_ms| info.created_at_ms >= from_ms)
        && query.created_before_ms.is_none_or(|before_ms| info.created_at_ms < before_ms)
}

/// The first `most` matches of rows that come in id order, put in listing order.
fn sorted<'a>(rows: Vec<&'a InstanceInfo>, query: &InstanceQuery, most: usize) -> Vec<&'a InstanceInfo> {
    let place = |info: &'a InstanceInfo| (Reverse(info.created_at_ms), info.instance_id.as_str());
    let cursor = query.cursor.as_ref().map(|at| (Reverse(at.created_at_ms), at.instance_id.as_str()));
    let mut rows: Vec<&InstanceInfo> = rows
        .into_iter()
        .filter(|info| matches(query, info) && cursor.is_none_or(|cursor| place(info) > cursor))
        .collect();
    rows.sort_unstable_by_key(|info| place(info));
    rows.truncate(most);
    rows
}
