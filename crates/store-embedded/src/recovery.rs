//! Opening: the state of the last checkpoint, the commits that the log has beyond it, and the queues and the due index
//! built from both.

use std::sync::Arc;

use hashbrown::HashMap;
use segno::store::LockLife;
use segno::store::memory::orchestrator_queue::OrchestratorQueue;
use segno::store::memory::peek_lock::Standing;
use segno::store::memory::worker_queue::{ItemLock, WorkerQueue};

use crate::base::Base;
use crate::error::{OpenError, RowError};
use crate::facts::{ANCHOR, FILLING, Facts, TOKENS};
use crate::files::Files;
use crate::full_disk::FullDisk;
use crate::instance_row::InstanceRow;
use crate::keys::{self, Table};
use crate::log::{self, AppendError, Log, ReadLog, Wanted};
use crate::options::UnfinishedImport;
use crate::overlay::Overlay;
use crate::queue_row;
use crate::record_index::RecordIndex;
use crate::rows::Rows;
use crate::state::{Restored, State};
use crate::stored::Snapshot;
use crate::tables::Tables;
use crate::tail::Tail;

/// Files that were being made when the store was left.
const UNFINISHED: [&str; 2] = ["log.tmp", "state.tmp"];

/// A store that is ready to run.
pub struct Recovered {
    pub state: State,
    pub tail: Tail,
    pub base: Base,
    pub log: Log,
    /// Whether an import has not finished.
    pub is_filling: bool,
}

/// Opens or makes a store.
pub fn recover(
    files: &Arc<dyn Files>,
    full_disk: &Arc<FullDisk>,
    now_ms: u64,
    unfinished: UnfinishedImport,
) -> Result<Recovered, OpenError> {
    let base = Base::open(files, full_disk)?;
    let Replayed { tables, mut tail, read } = replay(files, Arc::new(base.snapshot()?), u64::MAX, now_ms)?;
    let is_filling = tables.rows.get(&keys::meta(FILLING))?.is_some();
    if is_filling && unfinished == UnfinishedImport::Refuse {
        return Err(OpenError::Unfinished { by: None });
    }
    let restored = restore(&tables.rows, &tables.facts, now_ms)?;
    // Not before it is known that the store can be used: one that is refused stays as it is.
    remove_unfinished(files)?;
    let (last, anchor) = (read.last, tables.anchor()?);
    let mut log = Log::start(files, read)?;
    if !log.is_linked() && anchor != Some(log.current()) {
        // Before anything in it is acknowledged. From then on it is known that this segment must be there.
        base.write(&Overlay::default(), &[(keys::meta(ANCHOR), log.current().encode())])?;
    }
    let mut state = State::new(tables, restored, last + 2);
    // Lock tokens are reserved before the first one is given out.
    let mut batch = std::mem::take(&mut state.tables.batch);
    log.append(last + 1, batch.record_mut()).map_err(|error| match error {
        AppendError::Full(error) | AppendError::Failed(error) => OpenError::Io(error),
    })?;
    tail.grow(batch.len(), now_ms);
    Ok(Recovered { state, tail, base, log, is_filling })
}

fn remove_unfinished(files: &Arc<dyn Files>) -> Result<(), OpenError> {
    let names = files.list()?;
    for name in UNFINISHED.iter().filter(|unfinished| names.iter().any(|name| name == *unfinished)) {
        files.remove(name)?;
    }
    Ok(())
}

/// The state of a checkpoint with the commits that the log has beyond it.
pub struct Replayed {
    pub tables: Tables,
    pub tail: Tail,
    pub read: ReadLog,
}

/// Makes the commits again that the log has beyond a checkpoint, up to one of them. Writes nothing.
pub fn replay(
    files: &Arc<dyn Files>,
    base: Arc<Snapshot>,
    up_to: u64,
    now_ms: u64,
) -> Result<Replayed, OpenError> {
    let mut tables = Tables::new(base)?;
    let (covered, logged) = (tables.facts.covered, tables.logged()?);
    let mut tail = Tail::default();
    let wanted = Wanted { covered, up_to, anchor: tables.anchor()? };
    let read = log::read(files, wanted, |body| {
        tail.grow(body.len(), now_ms);
        Ok(tables.replay(body)?)
    })?;
    let last = read.last;
    if last < logged.min(up_to) {
        return Err(OpenError::Corrupt(format!(
            "the log ends with commit {last}, but commit {logged} was acknowledged: its newest file was cut short or is gone"
        )));
    }
    Ok(Replayed { tables, tail, read })
}

/// The queues and the due index that follow from the rows.
pub fn restore(rows: &Rows, facts: &Facts, now_ms: u64) -> Result<Restored, RowError> {
    let messages = standings(rows, Table::OrchestratorStanding)?;
    let items = standings(rows, Table::WorkerStanding)?;
    let tokens = rows.get(&keys::meta(TOKENS))?;
    let tokens_reserved = tokens.and_then(|row| row.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut orchestrations = OrchestratorQueue::after(facts.last_message_id);
    restore_messages(&mut orchestrations, rows, &messages, now_ms)?;
    let mut work = WorkerQueue::after(facts.last_item_id);
    restore_items(&mut work, rows, &items, now_ms)?;
    Ok(Restored {
        orchestrations,
        work,
        records: restore_records(rows)?,
        stored_messages: messages.into_keys().map(|id| (id, LockLife::Process)).collect(),
        stored_items: items.into_iter().map(|(id, (_, lock))| (id, life(lock))).collect(),
        tokens_reserved,
    })
}

/// Entries of a queue that were fetched before, by id.
type Standings = HashMap<u64, (Standing, Option<ItemLock>)>;

fn life(lock: Option<ItemLock>) -> LockLife {
    if lock.is_some() { LockLife::Durable } else { LockLife::Process }
}

fn standings(rows: &Rows, table: Table) -> Result<Standings, RowError> {
    let mut standings = HashMap::new();
    for row in rows.scan(&keys::table(table))? {
        let (key, value) = row?;
        if let Some(id) = keys::queued_id(table, &key) {
            standings.insert(id, queue_row::decode_standing(id, &value)?);
        }
    }
    Ok(standings)
}

fn restore_messages(
    queue: &mut OrchestratorQueue,
    rows: &Rows,
    standings: &Standings,
    now_ms: u64,
) -> Result<(), RowError> {
    let mut held_back = Vec::new();
    for row in rows.scan(&keys::table(Table::OrchestratorQueue))? {
        let (key, value) = row?;
        let Some(id) = keys::queued_id(Table::OrchestratorQueue, &key) else { continue };
        let message = queue_row::decode_message(&value)?;
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        let stored = standings.get(&id).map(|(standing, _)| *standing);
        let standing = stored.unwrap_or(Standing { id, visible_at_ms, attempts: 0 });
        let pin = if queue.knows(&message.instance) {
            None
        } else {
            let row = rows.decoded(&keys::instance(&message.instance), InstanceRow::decode)?;
            row.and_then(|row| row.current.pinned_version)
        };
        // Only a batch that was given back with a delay stands at a later time, and then its whole instance waits.
        if stored.is_some() && standing.visible_at_ms > now_ms {
            held_back.push((message.instance.clone(), standing.visible_at_ms));
        }
        queue.restore(standing, message, now_ms, |_| pin);
    }
    for (instance, until_ms) in held_back {
        queue.hold_back(&instance, until_ms);
    }
    Ok(())
}

fn restore_items(
    queue: &mut WorkerQueue,
    rows: &Rows,
    standings: &Standings,
    now_ms: u64,
) -> Result<(), RowError> {
    for row in rows.scan(&keys::table(Table::WorkerQueue))? {
        let (key, value) = row?;
        let Some(id) = keys::queued_id(Table::WorkerQueue, &key) else { continue };
        let (message, visible_at_ms) = queue_row::decode_activity(&value)?;
        let unfetched = (Standing { id, visible_at_ms, attempts: 0 }, None);
        let (standing, lock) = standings.get(&id).copied().unwrap_or(unfetched);
        match lock.filter(|lock| lock.until_ms > now_ms) {
            Some(lock) => queue.restore_locked(standing, message, lock),
            None => queue.restore(standing, message, now_ms),
        }
    }
    Ok(())
}

fn restore_records(rows: &Rows) -> Result<RecordIndex, RowError> {
    let mut index = RecordIndex::of(rows)?;
    for row in rows.scan(&keys::table(Table::ByDue))? {
        let (key, value) = row?;
        let ends_at_ms = value.as_ref().try_into().map_or(u64::MAX, u64::from_le_bytes);
        if let Some((kind, due_at_ms, id)) = keys::due_record(&key) {
            index.add_due(kind, due_at_ms, id, ends_at_ms);
        }
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::directory::Directory;
    use crate::facts::LOGGED;
    use crate::overlay::Overlay;
    use crate::store::EmbeddedStore;

    #[test]
    fn a_log_that_ends_before_what_a_checkpoint_has_seen_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        EmbeddedStore::open(directory.path()).expect("a new store").close();
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).expect("a directory"));
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).expect("a store that was closed");
        let tables = Tables::new(base.snapshot().expect("rows")).expect("facts");
        let covered = tables.facts.covered;
        assert_eq!(tables.logged().expect("a row"), covered, "closing covers the whole log");
        // As if three commits had been acknowledged while the checkpoint was made, and were cut off the log.
        let logged = Bytes::copy_from_slice(&(covered + 3).to_le_bytes());
        base.write(&Overlay::default(), &[(keys::meta(LOGGED), logged)]).expect("a row");
        drop((tables, base));
        let refused = EmbeddedStore::open(directory.path()).expect_err("commits are gone");
        assert!(refused.to_string().contains("was acknowledged"), "{refused}");
        let report = crate::check_files(&files, &mut |_| {}).expect("files that can be read");
        assert!(report.findings.iter().any(|finding| finding.problem.contains("cut short")), "{report:?}");
    }
}
