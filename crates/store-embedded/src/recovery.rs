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
use crate::facts::{FILLING, TOKENS};
use crate::files::Files;
use crate::full_disk::FullDisk;
use crate::keys::{self, Table};
use crate::log::{AppendError, Log};
use crate::options::UnfinishedImport;
use crate::queue_row;
use crate::record_index::RecordIndex;
use crate::state::{Restored, State};
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
    let names = files.list()?;
    for name in UNFINISHED.iter().filter(|unfinished| names.iter().any(|name| name == *unfinished)) {
        files.remove(name)?;
    }
    let base = Base::open(files, full_disk)?;
    let mut tables = Tables::new(base.snapshot()?)?;
    let covered = tables.facts.covered;
    let mut tail = Tail::default();
    let (mut log, last) = Log::open(files, covered, |body| {
        tail.grow(body.len(), now_ms);
        Ok(tables.replay(body)?)
    })?;
    let logged = tables.logged()?;
    if last < logged {
        return Err(OpenError::Corrupt(format!(
            "the log ends with commit {last}, but commit {logged} was acknowledged: its newest file was cut short or is gone"
        )));
    }
    let is_filling = tables.rows.get(&keys::meta(FILLING))?.is_some();
    if is_filling && unfinished == UnfinishedImport::Refuse {
        return Err(OpenError::UnfinishedImport);
    }
    let restored = restore(&tables, now_ms)?;
    let mut state = State::new(tables, restored, last + 2);
    // Lock tokens are reserved before the first one is given out.
    let mut batch = std::mem::take(&mut state.tables.batch);
    log.append(last + 1, batch.record_mut()).map_err(|error| match error {
        AppendError::Full(error) | AppendError::Failed(error) => OpenError::Io(error),
    })?;
    tail.grow(batch.len(), now_ms);
    Ok(Recovered { state, tail, base, log, is_filling })
}

/// The queues and the due index that follow from the tables.
pub fn restore(tables: &Tables, now_ms: u64) -> Result<Restored, RowError> {
    let messages = standings(tables, Table::OrchestratorStanding)?;
    let items = standings(tables, Table::WorkerStanding)?;
    let tokens = tables.rows.get(&keys::meta(TOKENS))?;
    let tokens_reserved = tokens.and_then(|row| row.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes);
    Ok(Restored {
        orchestrations: restore_messages(tables, &messages, now_ms)?,
        work: restore_items(tables, &items, now_ms)?,
        records: restore_records(tables)?,
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

fn standings(tables: &Tables, table: Table) -> Result<Standings, RowError> {
    let mut standings = HashMap::new();
    for row in tables.rows.scan(&keys::table(table))? {
        let (key, value) = row?;
        if let Some(id) = keys::queued_id(table, &key) {
            standings.insert(id, queue_row::decode_standing(id, &value)?);
        }
    }
    Ok(standings)
}

fn restore_messages(
    tables: &Tables,
    standings: &Standings,
    now_ms: u64,
) -> Result<OrchestratorQueue, RowError> {
    let mut queue = OrchestratorQueue::after(tables.facts.last_message_id);
    let mut held_back = Vec::new();
    for row in tables.rows.scan(&keys::table(Table::OrchestratorQueue))? {
        let (key, value) = row?;
        let Some(id) = keys::queued_id(Table::OrchestratorQueue, &key) else { continue };
        let message = queue_row::decode_message(&value)?;
        let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
        let stored = standings.get(&id).map(|(standing, _)| *standing);
        let standing = stored.unwrap_or(Standing { id, visible_at_ms, attempts: 0 });
        let pin = if queue.knows(&message.instance) {
            None
        } else {
            tables.instance(&message.instance)?.and_then(|row| row.current.pinned_version)
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
    Ok(queue)
}

fn restore_items(tables: &Tables, standings: &Standings, now_ms: u64) -> Result<WorkerQueue, RowError> {
    let mut queue = WorkerQueue::after(tables.facts.last_item_id);
    for row in tables.rows.scan(&keys::table(Table::WorkerQueue))? {
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
    Ok(queue)
}

fn restore_records(tables: &Tables) -> Result<RecordIndex, RowError> {
    let mut index = RecordIndex::of(&tables.rows)?;
    for row in tables.rows.scan(&keys::table(Table::ByDue))? {
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
