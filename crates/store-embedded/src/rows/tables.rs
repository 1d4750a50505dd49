//! All tables: typed reads and changes of rows. Every change goes into the overlay and into the batch for the log;
//! what follows from a row (its index entries, the counters) goes into the overlay only, and is derived again on replay.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use segno::store::core::peek_lock::Standing;
use segno::store::{
    HistoryPage, HistoryQuery, OrchestratorMessage, ReadableHistoryPage, StoredEvent, UnreadableEvents,
    WorkerMessage,
};

use crate::error::RowError;
use crate::log::SegmentId;
use crate::log::batch::{self, Batch, Logged};
use crate::rows::checkpoint_meta::{ANCHOR, CHECKPOINT_META, CheckpointMeta, LOGGED};
use crate::rows::instance_row::{ExecutionRow, IndexKeys, InstanceRow};
use crate::rows::keys::{self, Key, Table};
use crate::rows::layers::{Later, Rows};
use crate::rows::queue_row::{self, RecordRow};
use crate::rows::row_cache::RowCache;
use crate::rows::stored::Snapshot;

/// All tables.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) rows: Rows,
    pub(crate) batch: Batch,
    pub(crate) meta: CheckpointMeta,
    recent: RowCache,
}

/// A history that is still to be read.
#[derive(Debug)]
pub(crate) struct UnreadHistory(Later);

impl UnreadHistory {
    /// All of it, ascending.
    pub(crate) fn read(&self) -> Result<Vec<StoredEvent>, RowError> {
        let mut events = Vec::new();
        for row in self.0.scan()? {
            queue_row::decode_events(&row?.1, &mut events)?;
        }
        Ok(events)
    }
}

impl Tables {
    /// The tables of a checkpoint.
    pub(crate) fn new(base: impl Into<Arc<Snapshot>>) -> Result<Self, RowError> {
        let rows = Rows::new(base);
        let meta = rows.decoded(&keys::meta(CHECKPOINT_META), CheckpointMeta::decode)?.unwrap_or_default();
        Ok(Tables { rows, batch: Batch::default(), meta, recent: RowCache::default() })
    }

    /// Puts a row that was not there and that nothing is derived from.
    pub(crate) fn insert_new(&mut self, key: Key, value: Bytes) {
        self.batch.put(&key, &value);
        self.rows.active_mut().insert_new(key, value);
    }

    /// Puts a row that nothing is derived from.
    pub(crate) fn put(&mut self, key: Key, value: Bytes) {
        self.batch.put(&key, &value);
        self.rows.active_mut().put(key, value);
    }

    /// Deletes a row that nothing is derived from.
    pub(crate) fn delete(&mut self, key: Key) {
        self.batch.delete(&key);
        self.rows.active_mut().delete(key);
    }

    /// The row of an instance.
    pub(crate) fn instance(&self, instance: &str) -> Result<Option<InstanceRow>, RowError> {
        self.rows.decoded(&keys::instance(instance), InstanceRow::decode)
    }

    /// The row of an instance that something happens to.
    pub(crate) fn busy_instance(&self, instance: &str) -> Result<Option<Arc<InstanceRow>>, RowError> {
        if let Some(known) = self.recent.get(instance) {
            return Ok(known);
        }
        let row = self.instance(instance)?.map(Arc::new);
        self.recent.set(instance, row.as_ref());
        Ok(row)
    }

    /// Up to which commit the log was written when the last checkpoint was made.
    pub(crate) fn logged(&self) -> Result<u64, RowError> {
        let row = self.rows.get(&keys::meta(LOGGED))?;
        Ok(row.and_then(|row| row.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes))
    }

    /// A segment of the log that was there when the state was written.
    pub(crate) fn anchor(&self) -> Result<Option<SegmentId>, RowError> {
        let row = self.rows.get(&keys::meta(ANCHOR))?;
        row.map(|row| {
            SegmentId::decode(&row)
                .ok_or_else(|| RowError::Corrupt("the anchor of the log does not decode".to_owned()))
        })
        .transpose()
    }

    /// Replaces the row of an instance, or makes it.
    pub(crate) fn put_instance(
        &mut self,
        instance: &str,
        old: Option<&InstanceRow>,
        new: InstanceRow,
    ) -> Arc<InstanceRow> {
        let (key, value) = (keys::instance(instance), new.encode());
        match old {
            None => self.insert_new(key, value),
            Some(_) => self.put(key, value),
        }
        self.meta.counters.add(&new);
        let (lost, gained) = match old {
            None => (IndexKeys::new(), new.index_keys(instance)),
            Some(old) => {
                self.meta.counters.subtract(old);
                new.index_changes(old, instance)
            }
        };
        let overlay = self.rows.active_mut();
        lost.into_iter().for_each(|key| overlay.delete(key));
        gained.into_iter().for_each(|key| overlay.insert_new(key, Bytes::new()));
        let new = Arc::new(new);
        self.recent.set(instance, Some(&new));
        new
    }

    /// Removes the row of an instance.
    pub(crate) fn delete_instance(&mut self, instance: &str, old: &InstanceRow) {
        self.delete(keys::instance(instance));
        self.recent.set(instance, None);
        self.meta.counters.subtract(old);
        for key in old.index_keys(instance) {
            self.rows.active_mut().delete(key);
        }
    }

    /// The row of an execution that is not the current one.
    pub(crate) fn earlier_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionRow>, RowError> {
        self.rows.decoded(&keys::execution(Table::Executions, instance, execution_id), ExecutionRow::decode)
    }

    /// All executions but the current one, ascending.
    pub(crate) fn earlier_executions(&self, instance: &str) -> Result<Vec<ExecutionRow>, RowError> {
        let prefix = keys::of_instance(Table::Executions, instance);
        self.rows.scan(&prefix)?.map(|row| Ok(ExecutionRow::decode(&row?.1)?)).collect()
    }

    /// The row of any execution.
    pub(crate) fn execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionRow>, RowError> {
        match self.instance(instance)? {
            Some(row) if row.current.execution_id == execution_id => Ok(Some(row.current)),
            Some(_) => self.earlier_execution(instance, execution_id),
            None => Ok(None),
        }
    }

    /// Replaces or makes the row of an execution that is not the current one.
    pub(crate) fn put_execution(&mut self, instance: &str, row: &ExecutionRow) {
        self.put(keys::execution(Table::Executions, instance, row.execution_id), row.encode());
    }

    /// Stores the events of one commit.
    pub(crate) fn insert_events(&mut self, instance: &str, execution_id: u64, events: &[StoredEvent]) {
        let Some(first_event_id) = events.iter().map(|event| event.event_id).min() else { return };
        let key = keys::events(instance, execution_id, first_event_id);
        self.insert_new(key, queue_row::encode_events(events));
    }

    /// The history of an execution at this moment, to be read without the lock.
    pub(crate) fn history(&self, instance: &str, execution_id: u64) -> UnreadHistory {
        UnreadHistory(self.rows.later(keys::execution(Table::Events, instance, execution_id)))
    }

    /// A part of the history of an execution. Rows do not overlap, so only those that hold the page are read.
    pub(crate) fn history_page(&self, query: &HistoryQuery) -> Result<HistoryPage, RowError> {
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        let prefix = keys::execution(Table::Events, instance, execution_id);
        let seen = keys::events(instance, execution_id, query.after_event_id);
        // The row with the last event that was seen may hold the next one too.
        let start = self.rows.last_up_to(&prefix, &seen)?.unwrap_or(seen);
        let mut events = Vec::new();
        for row in self.rows.scan_from(&prefix, Bound::Included(&start))? {
            queue_row::decode_events(&row?.1, &mut events)?;
            events.retain(|event: &StoredEvent| event.event_id > query.after_event_id);
            if events.len() > query.limit {
                break;
            }
        }
        Ok(HistoryPage::cut(events, query.limit))
    }

    /// The same past damage. Which events are missing follows from their numbers, which have no
    /// gaps.
    pub(crate) fn history_around_damage(
        &self,
        query: &HistoryQuery,
    ) -> Result<ReadableHistoryPage, RowError> {
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        let prefix = keys::execution(Table::Events, instance, execution_id);
        let seen = keys::events(instance, execution_id, query.after_event_id);
        let start = match self.rows.last_up_to(&prefix, &seen) {
            Err(RowError::Corrupt(_)) => prefix.clone(),
            start => start?.unwrap_or(seen),
        };
        let (mut events, mut gaps) = (Vec::new(), Vec::new());
        let mut last_id = query.after_event_id;
        for row in self.rows.scan_past_damage(&prefix, Bound::Included(&start)) {
            match row {
                Ok((_, value)) => queue_row::decode_events(&value, &mut events)?,
                Err(RowError::Corrupt(reason)) => gaps.push((last_id, reason)),
                Err(error) => return Err(error),
            }
            events.retain(|event: &StoredEvent| event.event_id > query.after_event_id);
            last_id = events.last().map_or(query.after_event_id, |event| event.event_id);
            if events.len() > query.limit {
                break;
            }
        }
        let page = HistoryPage::cut(events, query.limit);
        let behind = |after| page.events.iter().map(|event| event.event_id).find(|id| *id > after);
        let unreadable = gaps.into_iter().map(|(after_event_id, reason)| UnreadableEvents {
            after_event_id,
            before_event_id: behind(after_event_id),
            reason,
        });
        // A damaged block before the first event that is wanted, or of another instance, hides
        // nothing of the page.
        let unreadable = unreadable
            .filter(|gap| gap.before_event_id.is_none_or(|before| before > gap.after_event_id + 1))
            .collect();
        Ok(ReadableHistoryPage { page, unreadable })
    }

    /// Keys of all rows that start with a prefix.
    pub(crate) fn keys_of(&self, prefix: &[u8]) -> Result<Vec<Key>, RowError> {
        self.rows.scan(prefix)?.map(|row| Ok(row?.0)).collect()
    }

    /// Stores a message of the orchestrator queue.
    pub(crate) fn insert_message(
        &mut self,
        message_id: u64,
        message: &OrchestratorMessage,
        visible_at_ms: u64,
    ) {
        let value = queue_row::encode_message(message, visible_at_ms);
        self.insert_new(keys::queued(Table::OrchestratorQueue, message_id), value);
        self.meta.last_message_id = self.meta.last_message_id.max(message_id);
    }

    /// Stores an activity of the worker queue.
    pub(crate) fn insert_activity(&mut self, item_id: u64, message: &WorkerMessage, visible_at_ms: u64) {
        let value = queue_row::encode_activity(message, visible_at_ms);
        self.insert_new(keys::queued(Table::WorkerQueue, item_id), value);
        self.meta.last_item_id = self.meta.last_item_id.max(item_id);
    }

    /// Stores the state of a queue entry.
    pub(crate) fn put_standing(&mut self, table: Table, standing: Standing) {
        self.put(keys::queued(table, standing.id), queue_row::encode_standing(standing, None));
    }

    /// The row of a record, expired or not.
    pub(crate) fn record(&self, kind: &str, id: &str) -> Result<Option<RecordRow>, RowError> {
        self.rows.decoded(&keys::record(kind, id), RecordRow::decode)
    }

    /// Replaces the row of a record, makes it, or removes it.
    pub(crate) fn set_record(
        &mut self,
        name: (&str, &str),
        old: Option<&RecordRow>,
        new: Option<&RecordRow>,
    ) {
        let (kind, id) = name;
        let key = keys::record(kind, id);
        match (old, new) {
            (None, None) => return,
            (Some(_), None) => self.delete(key),
            (None, Some(new)) => self.insert_new(key, new.encode()),
            (Some(_), Some(new)) => self.put(key, new.encode()),
        }
        let overlay = self.rows.active_mut();
        if let Some(old) = old {
            old.due_at_ms.into_iter().for_each(|at_ms| overlay.delete(keys::due(kind, at_ms, id)));
            old.expires_at_ms.into_iter().for_each(|at_ms| overlay.delete(keys::expiry(at_ms, kind, id)));
        }
        if let Some(new) = new {
            let life = Bytes::copy_from_slice(&new.expires_at_ms.unwrap_or(u64::MAX).to_le_bytes());
            new.due_at_ms
                .into_iter()
                .for_each(|at_ms| overlay.insert_new(keys::due(kind, at_ms, id), life.clone()));
            let expiry = |at_ms| overlay.insert_new(keys::expiry(at_ms, kind, id), Bytes::new());
            new.expires_at_ms.into_iter().for_each(expiry);
            self.meta.last_record_version = self.meta.last_record_version.max(new.version);
        }
    }

    /// Makes the changes of a log record again.
    pub(crate) fn replay(&mut self, body: &[u8]) -> Result<(), RowError> {
        for change in batch::decode(body)? {
            self.replay_change(change)?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Makes one change of a log record again.
    pub(crate) fn replay_change(&mut self, change: Logged) -> Result<(), RowError> {
        match change {
            Logged::Put(key, value) => self.replay_put(key, value),
            Logged::Delete(key) => self.remove_logged(key),
        }
    }

    /// Makes a change of a log record again.
    pub(crate) fn replay_put(&mut self, key: Key, value: Bytes) -> Result<(), RowError> {
        if let Some(instance) = keys::instance_id(&key) {
            match self.instance(instance) {
                Err(RowError::Corrupt(_)) => self.put_instance_over_damage(instance, value)?,
                old => drop(self.put_instance(instance, old?.as_ref(), InstanceRow::decode(&value)?)),
            }
        } else if let Some((kind, id)) = keys::record_name(&key) {
            match self.record(kind, id) {
                Err(RowError::Corrupt(_)) => self.put_record_over_damage((kind, id), value)?,
                old => self.set_record((kind, id), old?.as_ref(), Some(&RecordRow::decode(&value)?)),
            }
        } else if keys::is_malformed(&key) {
            return Err(RowError::Corrupt(format!("{} is no key of a queue", keys::describe(&key))));
        } else {
            let meta = &mut self.meta;
            if let Some(message_id) = keys::queued_id(Table::OrchestratorQueue, &key) {
                meta.last_message_id = meta.last_message_id.max(message_id);
            } else if let Some(item_id) = keys::queued_id(Table::WorkerQueue, &key) {
                meta.last_item_id = meta.last_item_id.max(item_id);
            }
            self.put(key, value);
        }
        Ok(())
    }

    /// Replaces a row that cannot be read by what the log has. Entries of indexes that the old row
    /// had stay: readers of an index compare it with the row. The row was counted already, as far
    /// as that is known.
    fn put_instance_over_damage(&mut self, instance: &str, value: Bytes) -> Result<(), RowError> {
        let new = InstanceRow::decode(&value)?;
        self.put(keys::instance(instance), value);
        let overlay = self.rows.active_mut();
        new.index_keys(instance).into_iter().for_each(|key| overlay.put(key, Bytes::new()));
        self.recent.set(instance, Some(&Arc::new(new)));
        Ok(())
    }

    /// The same for a record.
    fn put_record_over_damage(&mut self, (kind, id): (&str, &str), value: Bytes) -> Result<(), RowError> {
        let new = RecordRow::decode(&value)?;
        self.put(keys::record(kind, id), value);
        let overlay = self.rows.active_mut();
        let life = Bytes::copy_from_slice(&new.expires_at_ms.unwrap_or(u64::MAX).to_le_bytes());
        new.due_at_ms.into_iter().for_each(|at_ms| overlay.put(keys::due(kind, at_ms, id), life.clone()));
        let expiry = |at_ms| overlay.put(keys::expiry(at_ms, kind, id), Bytes::new());
        new.expires_at_ms.into_iter().for_each(expiry);
        self.meta.last_record_version = self.meta.last_record_version.max(new.version);
        Ok(())
    }

    /// Removes a row that is in the log, with what follows from it.
    pub(crate) fn remove_logged(&mut self, key: Key) -> Result<(), RowError> {
        if let Some(instance) = keys::instance_id(&key) {
            match self.instance(instance) {
                Err(RowError::Corrupt(_)) => self.delete(key),
                old => old?.into_iter().for_each(|old| self.delete_instance(instance, &old)),
            }
        } else if let Some((kind, id)) = keys::record_name(&key) {
            match self.record(kind, id) {
                Err(RowError::Corrupt(_)) => self.delete(key),
                old => self.set_record((kind, id), old?.as_ref(), None),
            }
        } else {
            self.delete(key);
        }
        Ok(())
    }
}
