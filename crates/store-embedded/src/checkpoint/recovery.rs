//! Opening: the state of the last checkpoint, the commits that the log has beyond it, and the queues and the due index
//! built from both.
//!
//! Damage does not keep a store from opening, unless it hides the metadata of the checkpoint or redb's
//! own pages: what is on a damaged block is left out of the queues, and the due index is derived
//! from the records again.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use segno::store::LockLife;
use segno::store::core::orchestrator_queue::OrchestratorQueue;
use segno::store::core::peek_lock::Standing;
use segno::store::core::worker_queue::{ItemLock, WorkerQueue};
use semver::Version;

use crate::checkpoint::stranded::Stranded;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::{OpenError, RowError};
use crate::log::tail::Tail;
use crate::log::{self, AppendError, Log, ReadLog, Wanted};
use crate::options::UnfinishedImport;
use crate::repair::damage::KnownDamage;
use crate::rows::base::Base;
use crate::rows::checkpoint_meta::{ANCHOR, CheckpointMeta, FILLING, TOKENS};
use crate::rows::instance_row::InstanceRow;
use crate::rows::keys::{self, Key, Table};
use crate::rows::layers::Rows;
use crate::rows::overlay::Overlay;
use crate::rows::queue_row::{self, RecordRow};
use crate::rows::stored::Snapshot;
use crate::rows::tables::Tables;
use crate::state::machine::{Restored, RestoredAround, State};
use crate::state::record_index::RecordIndex;

/// Files that were being made when the store was left.
const UNFINISHED: [&str; 2] = ["log.tmp", "state.tmp"];

/// A store that is ready to run.
pub(crate) struct Recovered {
    pub(crate) state: State,
    pub(crate) tail: Tail,
    pub(crate) base: Base,
    pub(crate) log: Log,
    /// Whether an import has not finished.
    pub(crate) is_filling: bool,
    /// What was met while it was read.
    pub(crate) damage: Arc<KnownDamage>,
}

/// Opens or makes a store.
pub(crate) fn recover(
    files: &Arc<dyn Files>,
    full_disk: &Arc<FullDisk>,
    now_ms: u64,
    unfinished: UnfinishedImport,
) -> Result<Recovered, OpenError> {
    let mut base = Base::open(files, full_disk)?;
    let damage = Arc::new(KnownDamage::default());
    base.on_damage(damage.watch());
    let Replayed { mut tables, mut tail, read } =
        replay(files, Arc::new(base.snapshot()?), u64::MAX, now_ms)?;
    let is_filling = tables.rows.get(&keys::meta(FILLING))?.is_some();
    if is_filling && unfinished == UnfinishedImport::Refuse {
        return Err(OpenError::Unfinished { by: None });
    }
    let restored = restore(&tables.rows, &tables.meta, now_ms)?;
    report(&damage, &tables.rows, &restored)?;
    if base.is_refused() {
        // What reads has met damage, which must not keep the rest from being written.
        base = base.again(files, full_disk)?;
        base.on_damage(damage.watch());
        tables.rows.rebase(base.snapshot()?);
    }
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
    Ok(Recovered { state, tail, base, log, is_filling, damage })
}

/// Tells what could not be read, and which instances that may concern.
fn report(damage: &KnownDamage, rows: &Rows, restored: &Restored) -> Result<(), RowError> {
    restored.damage.found.iter().for_each(|what| damage.note(what));
    if restored.damage.is_in_queues {
        let stranded = Stranded::of(rows, restored)?;
        stranded.report();
        damage.note_queues(format!(
            "a part of the queues cannot be read, and {} unended instances have nothing queued (the server's log names them)",
            stranded.count
        ));
    }
    Ok(())
}

fn remove_unfinished(files: &Arc<dyn Files>) -> Result<(), OpenError> {
    let names = files.list()?;
    for name in UNFINISHED.iter().filter(|unfinished| names.iter().any(|name| name == *unfinished)) {
        files.remove(name)?;
    }
    Ok(())
}

/// The state of a checkpoint with the commits that the log has beyond it.
pub(crate) struct Replayed {
    pub(crate) tables: Tables,
    pub(crate) tail: Tail,
    pub(crate) read: ReadLog,
}

/// Makes the commits again that the log has beyond a checkpoint, up to one of them. Writes nothing.
pub(crate) fn replay(
    files: &Arc<dyn Files>,
    base: Arc<Snapshot>,
    up_to: u64,
    now_ms: u64,
) -> Result<Replayed, OpenError> {
    let mut tables = Tables::new(base)?;
    let (covered, logged) = (tables.meta.covered, tables.logged()?);
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
pub(crate) fn restore(rows: &Rows, meta: &CheckpointMeta, now_ms: u64) -> Result<Restored, RowError> {
    let mut reading = RecoveryReader { rows, damage: RestoredAround::default() };
    let messages = reading.standings(Table::OrchestratorStanding)?;
    let items = reading.standings(Table::WorkerStanding)?;
    let tokens = rows.get(&keys::meta(TOKENS))?;
    let tokens_reserved = tokens.and_then(|row| row.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut orchestrations = OrchestratorQueue::after(meta.last_message_id);
    reading.messages(&mut orchestrations, &messages, now_ms)?;
    let mut work = WorkerQueue::after(meta.last_item_id);
    reading.items(&mut work, &items, now_ms)?;
    reading.damage.is_in_queues = !reading.damage.found.is_empty();
    let records = reading.records()?;
    Ok(Restored {
        orchestrations,
        work,
        records,
        stored_messages: messages.into_keys().map(|id| (id, LockLife::Process)).collect(),
        stored_items: items.into_iter().map(|(id, (_, lock))| (id, life(lock))).collect(),
        tokens_reserved,
        damage: reading.damage,
    })
}

/// Entries of a queue that were fetched before, by id.
type Standings = HashMap<u64, (Standing, Option<ItemLock>)>;

fn life(lock: Option<ItemLock>) -> LockLife {
    if lock.is_some() { LockLife::Durable } else { LockLife::Process }
}

/// Rows that are read past damage: what cannot be read is noted, and the rest is restored.
struct RecoveryReader<'a> {
    rows: &'a Rows,
    damage: RestoredAround,
}

impl RecoveryReader<'_> {
    /// Gives every row of a table that can be read to `each`.
    fn each(
        &mut self,
        table: Table,
        mut each: impl FnMut(&Rows, Key, Bytes) -> Result<(), RowError>,
    ) -> Result<(), RowError> {
        let prefix = keys::table(table);
        for row in self.rows.scan_past_damage(&prefix, Bound::Included(&prefix)) {
            match row {
                Ok((key, value)) => each(self.rows, key, value)?,
                Err(RowError::Corrupt(what)) => self.damage.found.push(what),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn standings(&mut self, table: Table) -> Result<Standings, RowError> {
        let mut standings = HashMap::new();
        self.each(table, |_, key, value| {
            if let Some(id) = keys::queued_id(table, &key) {
                standings.insert(id, queue_row::decode_standing(id, &value)?);
            }
            Ok(())
        })?;
        Ok(standings)
    }

    fn messages(
        &mut self,
        queue: &mut OrchestratorQueue,
        standings: &Standings,
        now_ms: u64,
    ) -> Result<(), RowError> {
        let mut held_back = Vec::new();
        self.each(Table::OrchestratorQueue, |rows, key, value| {
            let Some(id) = keys::queued_id(Table::OrchestratorQueue, &key) else { return Ok(()) };
            let message = queue_row::decode_message(&value)?;
            let visible_at_ms = message.visible_at_ms.unwrap_or(now_ms);
            let stored = standings.get(&id).map(|(standing, _)| *standing);
            let standing = stored.unwrap_or(Standing { id, visible_at_ms, attempts: 0 });
            let pin = if queue.knows(&message.instance) { None } else { pin(rows, &message.instance)? };
            // Only a batch that was abandoned with a delay has a later time, and then its
            // whole instance waits.
            if stored.is_some() && standing.visible_at_ms > now_ms {
                held_back.push((message.instance.clone(), standing.visible_at_ms));
            }
            queue.restore(standing, message, now_ms, |_| pin);
            Ok(())
        })?;
        for (instance, until_ms) in held_back {
            queue.hold_back(&instance, until_ms);
        }
        Ok(())
    }

    fn items(&mut self, queue: &mut WorkerQueue, standings: &Standings, now_ms: u64) -> Result<(), RowError> {
        self.each(Table::WorkerQueue, |_, key, value| {
            let Some(id) = keys::queued_id(Table::WorkerQueue, &key) else { return Ok(()) };
            let (message, visible_at_ms) = queue_row::decode_activity(&value)?;
            let unfetched = (Standing { id, visible_at_ms, attempts: 0 }, None);
            let (standing, lock) = standings.get(&id).copied().unwrap_or(unfetched);
            match lock.filter(|lock| lock.until_ms > now_ms) {
                Some(lock) => queue.restore_locked(standing, message, lock),
                None => queue.restore(standing, message, now_ms),
            }
            Ok(())
        })
    }

    fn records(&mut self) -> Result<RecordIndex, RowError> {
        let mut index = RecordIndex::of(self.rows)?;
        let before = self.damage.found.len();
        self.each(Table::ByDue, |_, key, value| {
            let ends_at_ms = value.as_ref().try_into().map_or(u64::MAX, u64::from_le_bytes);
            if let Some((kind, due_at_ms, id)) = keys::due_record(&key) {
                index.add_due(kind, due_at_ms, id, ends_at_ms);
            }
            Ok(())
        })?;
        if self.damage.found.len() > before {
            self.derive_due(&mut index)?;
        }
        Ok(index)
    }

    /// Due times from the records themselves, because the index of them is damaged.
    fn derive_due(&mut self, index: &mut RecordIndex) -> Result<(), RowError> {
        self.each(Table::Records, |_, key, value| {
            let (Some((kind, id)), Ok(row)) = (keys::record_name(&key), RecordRow::decode(&value)) else {
                return Ok(());
            };
            if let Some(due_at_ms) = row.due_at_ms {
                index.add_due(kind, due_at_ms, id, row.expires_at_ms.unwrap_or(u64::MAX));
            }
            Ok(())
        })
    }
}

/// The engine version that an instance is pinned to; none if its row cannot be read, which its turn
/// then reports.
fn pin(rows: &Rows, instance: &str) -> Result<Option<Version>, RowError> {
    match rows.decoded(&keys::instance(instance), InstanceRow::decode) {
        Ok(row) => Ok(row.and_then(|row| row.current.pinned_version)),
        Err(RowError::Corrupt(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::disk::directory::Directory;
    use crate::rows::checkpoint_meta::LOGGED;
    use crate::rows::overlay::Overlay;
    use crate::store::EmbeddedStore;

    #[test]
    fn a_log_that_ends_before_what_a_checkpoint_has_seen_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        EmbeddedStore::open(directory.path()).expect("a new store").close();
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).expect("a directory"));
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).expect("a store that was closed");
        let tables = Tables::new(base.snapshot().expect("rows")).expect("meta");
        let covered = tables.meta.covered;
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
