//! Saving what can be read of a damaged store into a new directory. The damaged one is not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::{OpenError, RowError};
use crate::log::batch::{self, Logged};
use crate::log::{self, Scanned, SegmentId, scan};
use crate::operate::fill_marker::{self, FilledBy};
use crate::repair::check::{CheckProgress, Finding, Notebook, describe};
use crate::repair::consistency::{history_problems, unknown_instances};
use crate::repair::salvage_reader::SalvageReader;
use crate::rows::base::Base;
use crate::rows::checkpoint_meta::{ANCHOR, CHECKPOINT_META, CheckpointMeta, TOKENS};
use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::{self, Key, Table};
use crate::rows::queue_row;
use crate::rows::tables::Tables;

/// Changes in memory after which they are written.
const FLUSH_BYTES: usize = 16 * 1024 * 1024;

/// What a salvage has saved and what not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Instances in the new store.
    pub instances: u64,
    /// Records in the new store.
    pub records: u64,
    /// Messages and activities in its queues.
    pub queued: u64,
    /// What was left out, and why.
    pub left_out: Vec<Finding>,
    /// How much more was left out than is listed.
    pub more_left_out: u64,
}

/// Writes everything that can be read and is consistent from a store that is not open, and may be damaged in any way,
/// into a new directory. An instance whose history is not whole is left out. The old directory is not changed. The new one
/// is marked as unfinished until everything is in it; a salvage into one that an earlier salvage has left begins again.
///
/// # Errors
/// When the first directory is not there, in use or of an unknown format, when the second one is
/// not empty, or when the disk refuses.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut progress: impl FnMut(CheckProgress),
) -> Result<SalvageReport, OpenError> {
    let (path, to) = (from.as_ref(), to.as_ref());
    let from = || -> Result<_, OpenError> {
        let from: Arc<dyn Files> = Arc::new(Directory::existing(path)?);
        // Before anything is made, so that a store in use leaves no directory behind.
        let lock = from.lock().map_err(OpenError::of_lock)?;
        // A store that a newer build wrote would lose what this one cannot read.
        log::refuse_unknown_format(&from)?;
        if let Err(error @ OpenError::UnknownFormat { .. }) = SalvageReader::new(&from).open() {
            return Err(error);
        }
        Ok((from, lock))
    };
    let (from, _lock) = from().map_err(|error| error.in_directory(path))?;
    let files: Arc<dyn Files> = Arc::new(Directory::new(to)?);
    salvage_files(&from, &files, &mut progress).map_err(|error| match error {
        error @ OpenError::NotEmpty { .. } => error.in_directory(to),
        other => other,
    })
}

/// The same from any directory to any other; for tests.
#[doc(hidden)]
pub fn salvage_files(
    from: &Arc<dyn Files>,
    to: &Arc<dyn Files>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<SalvageReport, OpenError> {
    // Before its lock, which is a file in a directory that may be of others.
    fill_marker::target(&**to, FilledBy::Salvage)?;
    let _locks = (from.lock().map_err(OpenError::of_lock)?, to.lock().map_err(OpenError::of_lock)?);
    let mut marker = fill_marker::begin(to, FilledBy::Salvage)?;
    let base = Base::create(to, &FullDisk::new(Duration::ZERO))?;
    let mut saved = Saved { tables: Tables::new(base.snapshot()?)?, base };
    let mut notes = Notebook::new(progress);
    let OldCheckpoint { meta, anchor } = saved.take_rows(from, &mut notes)?;
    saved.take_log(from, meta.covered, anchor, &mut notes)?;
    saved.leave_out_what_is_not_whole(&mut notes)?;
    let own = saved.tables.meta;
    saved.tables.meta = CheckpointMeta {
        covered: 0,
        last_message_id: own.last_message_id.max(meta.last_message_id),
        last_item_id: own.last_item_id.max(meta.last_item_id),
        last_record_version: own.last_record_version.max(meta.last_record_version),
        counters: own.counters,
    };
    saved.flush()?;
    let count =
        |table| -> Result<u64, RowError> { Ok(saved.tables.rows.scan(&keys::table(table))?.count() as u64) };
    let report = SalvageReport {
        instances: count(Table::Instances)?,
        records: count(Table::Records)?,
        queued: count(Table::OrchestratorQueue)? + count(Table::WorkerQueue)?,
        left_out: notes.report.findings,
        more_left_out: notes.report.more_findings,
    };
    drop(saved);
    Base::prepare(to)?;
    Base::publish(to)?;
    marker.remove()?;
    Ok(report)
}

/// What the old store knows of itself, as far as that can be read.
#[derive(Default)]
struct OldCheckpoint {
    meta: CheckpointMeta,
    /// A segment of the log that should be there.
    anchor: Option<SegmentId>,
}

/// The new store while it is being made.
struct Saved {
    tables: Tables,
    base: Base,
}

impl Saved {
    /// Takes every row that is not derived.
    fn take_rows(
        &mut self,
        from: &Arc<dyn Files>,
        notes: &mut Notebook<'_>,
    ) -> Result<OldCheckpoint, OpenError> {
        let readable = SalvageReader::new(from);
        match readable.open() {
            Ok(base) => notes.expect_rows(base.size().rows),
            Err(error @ (OpenError::Corrupt(_) | OpenError::Io(_))) => {
                notes.note("state.redb", "all of it", error.to_string());
                return Ok(OldCheckpoint::default());
            }
            Err(error) => return Err(error),
        }
        let mut old = OldCheckpoint::default();
        let mut outcome = Ok(());
        let mut refused = Vec::new();
        let unreadable = readable.rows(&mut |key, value| {
            crate::repair::consistency::FindingSink::row_done(notes);
            if outcome.is_err() {
            } else if key == keys::meta(CHECKPOINT_META) {
                old.meta = CheckpointMeta::decode(&value).unwrap_or_default();
            } else if key == keys::meta(ANCHOR) {
                old.anchor = SegmentId::decode(&value);
            } else if is_taken(&key)
                && let Err(error) = self.take(key.clone(), value)
            {
                match error {
                    RowError::Corrupt(why) => refused.push((key, why)),
                    unreadable => outcome = Err(unreadable),
                }
            }
        })?;
        outcome?;
        for (key, why) in refused {
            notes.note("state.redb", keys::describe(&key), why);
        }
        for place in &unreadable {
            let (key, why) = describe(place);
            notes.note("state.redb", key, why);
        }
        Ok(old)
    }

    fn take(&mut self, key: Key, value: Bytes) -> Result<(), RowError> {
        self.tables.replay_put(key, value)?;
        self.tables.batch.clear();
        if self.tables.rows.active().bytes() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is in memory.
    fn flush(&mut self) -> Result<(), RowError> {
        let changes = self.tables.rows.freeze();
        self.base.write(&changes, &[(keys::meta(CHECKPOINT_META), self.tables.meta.encode())])?;
        self.tables.rows.thaw(self.base.snapshot()?);
        Ok(())
    }

    /// Makes the changes of every record that can be read.
    fn take_log(
        &mut self,
        from: &Arc<dyn Files>,
        covered: u64,
        anchor: Option<SegmentId>,
        notes: &mut Notebook<'_>,
    ) -> Result<(), OpenError> {
        let mut last = covered;
        let mut outcome = Ok(());
        scan(from, anchor, &mut |scanned| match scanned {
            Scanned::Damage { file, what } => notes.note(file, "record", what),
            Scanned::Missing { file, first_sequence, what } => {
                notes.note(file, format!("commits from {first_sequence} on"), what);
            }
            Scanned::Record { sequence, body } if sequence > last && outcome.is_ok() => {
                if last > 0 && sequence != last + 1 {
                    let missing = format!("commits {} to {}", last + 1, sequence - 1);
                    notes.note("log", missing, "they cannot be read");
                }
                last = sequence;
                match self.take_record(body) {
                    Err(RowError::Corrupt(why)) => notes.note("log", format!("commit {sequence}"), why),
                    other => outcome = other,
                }
                if outcome.is_ok() && self.tables.rows.active().bytes() >= FLUSH_BYTES {
                    outcome = self.flush();
                }
            }
            Scanned::Record { .. } => {}
        })?;
        Ok(outcome?)
    }

    /// Makes the changes of a record. When the metadata is lost, it is not known which records the rows have already, and a row of
    /// events may have what several of them put and remove.
    fn take_record(&mut self, body: &[u8]) -> Result<(), RowError> {
        for change in batch::decode(body)? {
            match change {
                Logged::Put(key, value) if self.has_events(&key, &value)? => {}
                Logged::Delete(key) if keys::execution_prefix(&key).is_some() => self.remove_events(&key)?,
                other => self.tables.replay_change(other)?,
            }
            self.tables.batch.clear();
        }
        Ok(())
    }

    /// Whether these are events that a row has already.
    fn has_events(&self, key: &Key, row: &Bytes) -> Result<bool, RowError> {
        let Some(execution) = keys::execution_prefix(key) else { return Ok(false) };
        let Some(before) = self.tables.rows.last_up_to(execution, key)? else { return Ok(false) };
        let last_event_id = |row: &Bytes| -> Result<u64, RowError> {
            let mut events = Vec::new();
            queue_row::decode_events(row, &mut events)?;
            Ok(events.iter().map(|event| event.event_id).max().unwrap_or(0))
        };
        let known = self.tables.rows.get(&before)?.as_ref().map_or(Ok(0), last_event_id)?;
        Ok(last_event_id(row)? <= known)
    }

    /// Removes events of an execution from a row on: they are always removed together.
    fn remove_events(&mut self, first: &Key) -> Result<(), RowError> {
        let execution = keys::execution_prefix(first).unwrap_or_default();
        let rows = self.tables.rows.scan_from(execution, Bound::Included(first))?;
        let keys = rows.map(|row| Ok(row?.0)).collect::<Result<Vec<Key>, RowError>>()?;
        keys.into_iter().for_each(|key| self.tables.delete(key));
        Ok(())
    }

    /// Removes instances whose history is not whole, with everything that belongs to them, and what belongs to none.
    fn leave_out_what_is_not_whole(&mut self, notes: &mut Notebook<'_>) -> Result<(), OpenError> {
        let mut broken: BTreeMap<String, (Option<InstanceRow>, String)> = BTreeMap::new();
        for entry in self.tables.rows.scan(&keys::table(Table::Instances))? {
            let (key, value) = entry?;
            let Some(instance) = keys::instance_id(&key) else { continue };
            let row = InstanceRow::decode(&value).map_err(RowError::from)?;
            let problems = history_problems(&self.tables, instance, &row)?;
            if !problems.is_empty() {
                broken.insert(instance.to_owned(), (Some(row), problems.join("; ")));
            }
        }
        for table in [Table::Executions, Table::Events] {
            for instance in unknown_instances(&self.tables, table, notes)? {
                let why = "it has a history, but the instance itself cannot be read".to_owned();
                broken.entry(instance).or_insert((None, why));
            }
        }
        let instances: BTreeSet<&str> = broken.keys().map(String::as_str).collect();
        for key in self.queued_for(&instances)? {
            self.remove(key)?;
        }
        // Also of entries that have just gone.
        for key in self.standings_without_entry()? {
            self.remove(key)?;
        }
        for (instance, (row, why)) in broken {
            for table in [Table::Executions, Table::Events] {
                for key in self.tables.keys_of(&keys::of_instance(table, &instance))? {
                    self.remove(key)?;
                }
            }
            if let Some(row) = &row {
                self.tables.delete_instance(&instance, row);
                self.tables.batch.clear();
            }
            notes.note("instances", instance, why);
        }
        Ok(())
    }

    fn remove(&mut self, key: Key) -> Result<(), RowError> {
        self.tables.delete(key);
        self.tables.batch.clear();
        if self.tables.rows.active().bytes() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn queued_for(&self, instances: &BTreeSet<&str>) -> Result<Vec<Key>, RowError> {
        let mut found = Vec::new();
        for entry in self.tables.rows.scan(&keys::table(Table::OrchestratorQueue))? {
            let (key, value) = entry?;
            if instances.contains(queue_row::decode_message(&value)?.instance.as_str()) {
                found.push(key);
            }
        }
        for entry in self.tables.rows.scan(&keys::table(Table::WorkerQueue))? {
            let (key, value) = entry?;
            if instances.contains(queue_row::decode_activity(&value)?.0.activity.instance.as_str()) {
                found.push(key);
            }
        }
        Ok(found)
    }

    fn standings_without_entry(&self) -> Result<Vec<Key>, RowError> {
        let mut found = Vec::new();
        for (queue, standings) in [
            (Table::OrchestratorQueue, Table::OrchestratorStanding),
            (Table::WorkerQueue, Table::WorkerStanding),
        ] {
            for key in self.tables.keys_of(&keys::table(standings))? {
                let id = keys::queued_id(standings, &key);
                let entry =
                    id.map(|id| self.tables.rows.get(&keys::queued(queue, id))).transpose()?.flatten();
                if entry.is_none() {
                    found.push(key);
                }
            }
        }
        Ok(found)
    }
}

/// Whether a row is one that others follow from. Those that follow are made again.
fn is_taken(key: &[u8]) -> bool {
    match Table::of_key(key) {
        Some(Table::Meta) => key == keys::meta(TOKENS).as_slice(),
        Some(table) => table < Table::ByAge,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use segno::store::StoredEvent;

    use super::*;
    use crate::log::RECORD_HEADER_BYTES;
    use crate::log::batch::Batch;

    fn row(events: &[u64]) -> Bytes {
        let event = |&event_id| StoredEvent { event_id, data: Bytes::from_static(b"e") };
        queue_row::encode_events(&events.iter().map(event).collect::<Vec<_>>())
    }

    /// What is there of one execution after the log is taken: first event ids and events of each row.
    fn taken(rows: &[(u64, &[u64])], log: &[(u64, Option<&[u64]>)]) -> Vec<(Key, Bytes)> {
        let directory = tempfile::tempdir().expect("a directory");
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).expect("an empty directory"));
        let base = Base::create(&files, &FullDisk::new(Duration::ZERO)).expect("a state");
        let tables = Tables::new(base.snapshot().expect("rows")).expect("no rows");
        let mut saved = Saved { tables, base };
        for (first, events) in rows {
            saved.take(keys::events("a", 1, *first), row(events)).expect("a row");
        }
        for (first, events) in log {
            let (mut batch, key) = (Batch::default(), keys::events("a", 1, *first));
            match events {
                Some(events) => batch.put(&key, &row(events)),
                None => batch.delete(&key),
            }
            saved.take_record(&batch.record_mut()[RECORD_HEADER_BYTES..]).expect("a record");
        }
        let prefix = keys::execution(Table::Events, "a", 1);
        let rows = saved.tables.rows.scan(&prefix).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    }

    #[test]
    fn records_that_a_checkpoint_has_joined_change_nothing() {
        let joined: &[(u64, &[u64])] = &[(1, &[1, 3, 4])];
        let whole = vec![(keys::events("a", 1, 1), row(&[1, 3, 4]))];
        let records: [(u64, Option<&[u64]>); 3] = [(1, Some(&[1])), (3, Some(&[3])), (4, Some(&[4]))];
        for log in [&records[..], &records[1..], &records[..1]] {
            assert_eq!(taken(joined, log), whole, "{log:?}");
        }
        let more = taken(joined, &[(4, Some(&[4])), (5, Some(&[5, 6]))]);
        assert_eq!(more, [whole[0].clone(), (keys::events("a", 1, 5), row(&[5, 6]))]);
    }

    #[test]
    fn the_end_of_a_joined_row_is_the_end_of_all_that_is_in_it() {
        let log: &[(u64, Option<&[u64]>)] =
            &[(1, Some(&[1])), (3, Some(&[3])), (1, None), (1, Some(&[1, 2]))];
        assert_eq!(taken(&[], log), [(keys::events("a", 1, 1), row(&[1, 2]))]);
    }
}
