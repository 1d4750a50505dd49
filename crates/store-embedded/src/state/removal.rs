//! Deleting instances and pruning executions.

use std::collections::BTreeSet;
use std::ops::Bound;

use segno::store::{
    DeleteInstanceResult, EndedCursor, EndedPage, EndedQuery, ErrorKind, ExecutionStatus, InstanceFilter,
    InstanceVersion, ProviderError, PruneOptions, PruneResult,
};

use crate::error::RowError;
use crate::rows::instance_row::{ExecutionRow, InstanceRow};
use crate::rows::keys::{self, AgeIndex, Generation, Key, Table};
use crate::state::machine::State;

/// What a deletion does with instances that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unended {
    /// The deletion fails.
    Refuse,
    /// They are removed like the others.
    Remove,
}

/// States of instances that have not ended.
const UNENDED: [ExecutionStatus; 4] = [
    ExecutionStatus::Pending,
    ExecutionStatus::Running,
    ExecutionStatus::Paused,
    ExecutionStatus::ContinuedAsNew,
];

/// An instance that is about to be deleted, with the keys of everything that belongs to it.
struct PlannedRemoval {
    instance: String,
    row: Option<InstanceRow>,
    keys: Vec<Key>,
}

impl State {
    /// Removes instances with everything that belongs to them, known or not.
    pub(crate) fn delete(
        &mut self,
        ids: &BTreeSet<&str>,
        unended: Unended,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instances_atomic";
        let conflict = |text: String| Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text));
        let mut doomed = Vec::with_capacity(ids.len());
        for id in ids {
            let found = self.doomed(id).map_err(|error| error.at(OPERATION))?;
            if let Some(row) = &found.row {
                let status = row.current.status;
                if unended == Unended::Refuse && !status.is_terminal() {
                    return conflict(format!("{id} is {status}; cancel it first or force the deletion"));
                }
                let children = self.tables.children(id).map_err(|error| error.at(OPERATION))?;
                if !children.iter().all(|child| ids.contains(child.as_str())) {
                    return conflict(format!(
                        "{id} has a child that would be orphaned; delete the whole tree"
                    ));
                }
            }
            doomed.push(found);
        }
        Ok(self.remove(doomed))
    }

    fn doomed(&self, instance: &str) -> Result<PlannedRemoval, RowError> {
        let row = self.tables.instance(instance)?;
        let mut keys = Vec::new();
        if row.is_some() {
            keys = self.tables.keys_of(&keys::of_instance(Table::Events, instance))?;
            keys.extend(self.tables.keys_of(&keys::of_instance(Table::Executions, instance))?);
        }
        Ok(PlannedRemoval { instance: instance.to_owned(), row, keys })
    }

    fn remove(&mut self, doomed: Vec<PlannedRemoval>) -> DeleteInstanceResult {
        let mut deleted = DeleteInstanceResult::default();
        for PlannedRemoval { instance, row, keys } in doomed {
            if let Some(row) = row {
                self.tables.delete_instance(&instance, &row);
                deleted.instances_deleted += 1;
                deleted.executions_deleted += row.execution_count;
                deleted.events_deleted += row.event_count;
            }
            for key in keys {
                self.tables.delete(key);
            }
            let messages = self.orchestrations.remove_instance(&instance);
            let items = self.work.remove_instance(&instance);
            deleted.queue_messages_deleted += (messages.len() + items.len()) as u64;
            self.forget_messages(messages);
            self.forget_items(items);
        }
        deleted
    }

    /// Removes ended root instances that match, each with its tree, unless something in the tree has not ended.
    /// Reads no more than it removes, and the trees that it passes over.
    pub(crate) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<DeleteInstanceResult, RowError> {
        let mut trees = Vec::new();
        let most = limit_of(filter);
        let mut add = |root: &str| -> Result<bool, RowError> {
            trees.extend(past_damage(self.doomed_tree(root))?.flatten());
            Ok(trees.len() < most)
        };
        if most == 0 {
            return Ok(DeleteInstanceResult::default());
        }
        if filter.instance_ids.is_some() {
            let listed = self.ended_of_list(filter)?;
            for (instance, _) in listed.iter().filter(|(_, row)| row.parent.is_none()) {
                if !add(instance)? {
                    break;
                }
            }
        } else {
            self.each_ended(filter, Generation::Root, &mut add)?;
        }
        Ok(self.remove(trees.into_iter().flatten().collect()))
    }

    /// What there is of an instance and all its descendants, if all have ended.
    fn doomed_tree(&self, root: &str) -> Result<Option<Vec<PlannedRemoval>>, RowError> {
        let Some(tree) = self.ended_tree(root.to_owned())? else { return Ok(None) };
        tree.iter().map(|instance| self.doomed(instance)).collect::<Result<_, _>>().map(Some)
    }

    /// The instance and all its descendants, if all have ended.
    fn ended_tree(&self, root: String) -> Result<Option<Vec<String>>, RowError> {
        let mut tree = vec![root];
        let mut next = 0;
        while let Some(instance) = tree.get(next) {
            let row = self.tables.instance(instance)?;
            if row.is_none_or(|row| !row.current.status.is_terminal()) {
                return Ok(None);
            }
            let children = self.tables.children(instance)?;
            tree.extend(children);
            next += 1;
        }
        Ok(Some(tree))
    }

    /// Trees of ended roots, each with the states of its instances. What is damaged is left out.
    pub(crate) fn ended_trees(&self, query: &EndedQuery) -> Result<EndedPage, RowError> {
        let mut page = EndedPage::default();
        let before_ms = query.completed_before_ms.unwrap_or(u64::MAX);
        let prefix = keys::ended_ones(Generation::Root);
        let start = match &query.after {
            Some(after) => {
                Bound::Excluded(keys::ended(Generation::Root, after.completed_at_ms, &after.instance_id))
            }
            None => Bound::Included(prefix.clone()),
        };
        let (mut considered, mut last) = (0, None);
        for entry in self.tables.rows.scan_past_damage(&prefix, start.as_ref().map(|key| &**key)) {
            let Some((key, _)) = past_damage(entry)? else { continue };
            let Some((completed_at_ms, id)) = keys::ended_instance(&key) else { continue };
            if completed_at_ms >= before_ms || query.limit == 0 {
                break;
            }
            if considered == query.limit {
                page.next = last;
                break;
            }
            considered += 1;
            // Nor is a tree listed whose end may be lost.
            let tree = past_damage(self.ended_versions(id))?.flatten();
            page.trees.extend(
                tree.filter(|tree| !tree.iter().any(|found| self.quarantine.has(&found.instance_id))),
            );
            last = Some(EndedCursor { completed_at_ms, instance_id: id.to_owned() });
        }
        Ok(page)
    }

    /// The states of an instance and all its descendants, if all have ended.
    fn ended_versions(&self, root: &str) -> Result<Option<Vec<InstanceVersion>>, RowError> {
        let Some(tree) = self.ended_tree(root.to_owned())? else { return Ok(None) };
        let version = |id: String| Ok(self.tables.instance(&id)?.map(|row| version(id, &row)));
        tree.into_iter().map(version).collect()
    }

    /// Removes trees whose instances are as they were listed.
    pub(crate) fn delete_unchanged(
        &mut self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, RowError> {
        let mut doomed = Vec::new();
        for tree in trees {
            if self.is_unchanged(tree)? {
                for instance in tree {
                    doomed.push(self.doomed(&instance.instance_id)?);
                }
            }
        }
        Ok(self.remove(doomed))
    }

    fn is_unchanged(&self, tree: &[InstanceVersion]) -> Result<bool, RowError> {
        let ids: BTreeSet<&str> = tree.iter().map(|listed| listed.instance_id.as_str()).collect();
        for listed in tree {
            let id = &listed.instance_id;
            let row = self.tables.instance(id)?.filter(|row| row.current.status.is_terminal());
            if row.is_none_or(|row| version(id.clone(), &row) != *listed) {
                return Ok(false);
            }
            if !self.tables.children(id)?.iter().all(|child| ids.contains(child.as_str())) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Instances of a filter that have ended in its time, oldest completion first.
    fn ended(&self, filter: &InstanceFilter) -> Result<Vec<(String, InstanceRow)>, RowError> {
        if filter.instance_ids.is_some() {
            return self.ended_of_list(filter);
        }
        let mut found = Vec::new();
        for generation in [Generation::Root, Generation::Child] {
            let mut count = 0;
            self.each_ended(filter, generation, &mut |id| {
                let row = past_damage(self.tables.instance(id))?.flatten();
                found.extend(row.map(|row| (id.to_owned(), row)));
                count += 1;
                Ok(count < limit_of(filter))
            })?;
        }
        found.sort_by(|(one, row), (other, other_row)| {
            (row.ended_at_ms(), one).cmp(&(other_row.ended_at_ms(), other))
        });
        Ok(found)
    }

    fn ended_of_list(&self, filter: &InstanceFilter) -> Result<Vec<(String, InstanceRow)>, RowError> {
        let before_ms = filter.completed_before_ms.unwrap_or(u64::MAX);
        let mut found = Vec::new();
        for id in filter.instance_ids.iter().flatten().collect::<BTreeSet<_>>() {
            let row = past_damage(self.tables.instance(id))?.flatten();
            found.extend(row.filter(|row| row.ended_at_ms().is_some()).map(|row| (id.clone(), row)));
        }
        found.retain(|(_, row)| row.ended_at_ms().is_some_and(|ended_at_ms| ended_at_ms < before_ms));
        found.sort_by_key(|(_, row)| (row.ended_at_ms(), row.created_at_ms));
        Ok(found)
    }

    /// Visits instances that have ended in the time of a filter, oldest completion first, until `each` stops it.
    fn each_ended(
        &self,
        filter: &InstanceFilter,
        generation: Generation,
        each: &mut dyn FnMut(&str) -> Result<bool, RowError>,
    ) -> Result<(), RowError> {
        let before_ms = filter.completed_before_ms.unwrap_or(u64::MAX);
        let prefix = keys::ended_ones(generation);
        for entry in self.tables.rows.scan_past_damage(&prefix, Bound::Included(&prefix)) {
            let Some((key, _)) = past_damage(entry)? else { continue };
            let Some((ended_at_ms, id)) = keys::ended_instance(&key) else { continue };
            if ended_at_ms >= before_ms || !each(id)? {
                break;
            }
        }
        Ok(())
    }

    /// Instances of a filter that have not ended, oldest first; none if the filter has a completion time.
    fn unended(&self, filter: &InstanceFilter) -> Result<Vec<(String, InstanceRow)>, RowError> {
        let mut found = Vec::new();
        if filter.completed_before_ms.is_some() {
            return Ok(found);
        }
        let ids = match &filter.instance_ids {
            Some(ids) => ids.iter().cloned().collect::<BTreeSet<String>>().into_iter().collect(),
            None => {
                let mut ids = Vec::new();
                for status in UNENDED {
                    ids.extend(self.tables.instances_in(AgeIndex::Status(status))?);
                }
                ids
            }
        };
        for id in ids {
            let row = past_damage(self.tables.instance(&id))?.flatten();
            let row = row.filter(|row| row.ended_at_ms().is_none());
            found.extend(row.map(|row| (id, row)));
        }
        found.sort_by_key(|(_, row)| row.created_at_ms);
        Ok(found)
    }

    /// Prunes one instance.
    pub(crate) fn prune(
        &mut self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions";
        let mut pruned = PruneResult::default();
        let row = self.tables.instance(instance).map_err(|error| error.at(OPERATION))?.ok_or_else(|| {
            ProviderError::new(ErrorKind::NotFound, OPERATION, format!("there is no instance {instance}"))
        })?;
        self.prune_row(instance, &row, options, &mut pruned).map_err(|error| error.at(OPERATION))?;
        Ok(pruned)
    }

    /// Prunes every instance that matches.
    pub(crate) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, RowError> {
        let mut instances = self.ended(filter)?;
        instances.extend(self.unended(filter)?);
        instances.truncate(limit_of(filter));
        let mut pruned = PruneResult::default();
        for (instance, row) in &instances {
            past_damage(self.prune_row(instance, row, options, &mut pruned))?;
        }
        Ok(pruned)
    }

    fn prune_row(
        &mut self,
        instance: &str,
        row: &InstanceRow,
        options: PruneOptions,
        pruned: &mut PruneResult,
    ) -> Result<(), RowError> {
        let earlier = self.tables.earlier_executions(instance)?;
        // The current execution is one of those that are kept.
        let keep = options.keep_last.map_or(1, |keep| keep.max(1) as usize) - 1;
        let old = &earlier[..earlier.len().saturating_sub(keep)];
        let in_time =
            |execution: &ExecutionRow| match (options.completed_before_ms, execution.completed_at_ms) {
                (Some(before_ms), Some(completed_at_ms)) => completed_at_ms < before_ms,
                (None, _) => true,
                (Some(_), None) => false,
            };
        let mut keys = Vec::new();
        let mut kept = row.clone();
        for execution in old.iter().filter(|execution| execution.has_ended() && in_time(execution)) {
            let execution_id = execution.execution_id;
            keys.push(keys::execution(Table::Executions, instance, execution_id));
            keys.extend(self.tables.keys_of(&keys::execution(Table::Events, instance, execution_id))?);
            kept.execution_count -= 1;
            kept.event_count -= execution.event_count;
        }
        pruned.instances_processed += 1;
        pruned.executions_deleted += row.execution_count - kept.execution_count;
        pruned.events_deleted += row.event_count - kept.event_count;
        if kept != *row {
            self.tables.put_instance(instance, Some(row), kept);
        }
        for key in keys {
            self.tables.delete(key);
        }
        Ok(())
    }
}

fn version(instance_id: String, row: &InstanceRow) -> InstanceVersion {
    InstanceVersion { instance_id, created_at_ms: row.created_at_ms, revision: row.revision }
}

/// What was read, unless it is damaged: a bulk call passes over that, as over all that it cannot
/// remove.
fn past_damage<T>(read: Result<T, RowError>) -> Result<Option<T>, RowError> {
    match read {
        Err(RowError::Corrupt(_)) => Ok(None),
        read => read.map(Some),
    }
}

fn limit_of(filter: &InstanceFilter) -> usize {
    filter.limit.map_or(usize::MAX, |limit| limit as usize)
}
