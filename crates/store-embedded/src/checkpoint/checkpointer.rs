//! The checkpoint thread: moves the changes of the log into the base, then frees the log up to there,
//! while the writer continues. When there is nothing to move and much of the base file is unused, it
//! compacts the file.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::checkpoint::compaction::{CompactProgress, CompactReport, Compaction, CompactionError};
use crate::checkpoint::snapshot::StoreSnapshot;
use crate::checkpoint::throttle::CheckpointThrottle;
use crate::commit::refusal::Refusal;
use crate::commit::shared::{Core, Frozen};
use crate::disk::copy_on_write::CopyOnWriteFiles;
use crate::disk::files::Files;
use crate::error::{OpenError, RowError};
use crate::log::Segments;
use crate::rows::base::Base;
use crate::rows::checkpoint_meta::{ANCHOR, CHECKPOINT_META, LOGGED};
use crate::rows::keys::{self, Key};
use crate::rows::tables::Tables;
use crate::rows::view::View;

/// A request to the checkpoint thread.
pub(crate) enum CheckpointerOrder {
    /// Moves changes into the base.
    Checkpoint(Frozen),
    /// Compacts the base now.
    Compact(CompactOrder),
}

/// A compaction with a waiting caller.
pub(crate) struct CompactOrder {
    pub(crate) progress: Box<dyn FnMut(CompactProgress) + Send>,
    pub(crate) answer: oneshot::Sender<Result<CompactReport, String>>,
}

/// Least time between two automatic compactions.
const COMPACTION_PAUSE_MS: u64 = 10 * 60 * 1_000;

/// Bytes of redb for a row beyond those of the row.
const ROW_BYTES: u64 = 8;

/// The checkpointer.
pub(crate) struct Checkpointer {
    pub(crate) core: Arc<Core>,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) base: Base,
    /// Files that a compaction has replaced while they were read, for example by a backup.
    pub(crate) replaced: Vec<Base>,
}

/// A compaction, with its caller if there is one.
struct RunningCompaction {
    compaction: Compaction,
    order: Option<CompactOrder>,
}

/// Reports the end of the checkpoint thread, also after a panic.
struct EndNotifier(Arc<Core>);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        self.0.checkpointer_ended();
    }
}

impl Checkpointer {
    /// Runs until the store is closed or the disk fails.
    pub(crate) fn run(mut self, orders: &Receiver<CheckpointerOrder>) {
        let ended = EndNotifier(Arc::clone(&self.core));
        self.watch_for_damage();
        let mut running: Option<RunningCompaction> = None;
        let mut compacted_at_ms = None;
        let refusal = loop {
            let order = match &running {
                None => orders.recv().map_err(|_| TryRecvError::Disconnected),
                Some(_) => orders.try_recv(),
            };
            let outcome = match order {
                Ok(CheckpointerOrder::Checkpoint(mut frozen)) => {
                    self.checkpoint(&mut frozen, &mut running).and_then(|()| {
                        if running.is_none() && self.should_compact(compacted_at_ms) {
                            running = self.start(None);
                            compacted_at_ms = Some(self.core.clock.now_ms());
                        }
                        // Without this, checkpoints without a pause would starve a compaction.
                        self.continue_compaction(&mut running)
                    })
                }
                Ok(CheckpointerOrder::Compact(order)) => {
                    // An automatic one starts again from the beginning; that is rare and harmless.
                    running.take().into_iter().for_each(|running| running.compaction.abandon());
                    running = self.start(Some(order));
                    Ok(())
                }
                Err(TryRecvError::Empty) => self.continue_compaction(&mut running),
                Err(TryRecvError::Disconnected) => break None,
            };
            if let Err(refusal) = outcome {
                break Some(refusal);
            }
        };
        running.into_iter().for_each(|running| running.compaction.abandon());
        let Some(refusal) = refusal else { return };
        self.core.refuse(refusal);
        drop(ended);
        // Reads continue until the store is closed; nothing is written meanwhile.
        if let Err(error) = self.reopen(&CopyOnWriteFiles::of(&self.files)) {
            tracing::error!(%error, "the state could not be opened again");
        }
        while orders.recv().is_ok() {}
    }

    fn watch_for_damage(&self) {
        // Not the core, which holds snapshots of the file.
        self.base.on_damage(self.core.damage.watch());
    }

    /// Reopens the file, if that is possible.
    fn reopen(&mut self, files: &Arc<dyn Files>) -> Result<(), OpenError> {
        let base = if self.base.has_failed_reads() {
            self.base.again(files, &self.core.full_disk)?
        } else {
            Base::reopen(files, &self.core.full_disk)?
        };
        let snapshot = base.snapshot()?;
        self.core.lock().state.tables.rows.rebase(snapshot);
        self.base = base;
        self.watch_for_damage();
        Ok(())
    }

    fn checkpoint(
        &mut self,
        frozen: &mut Frozen,
        running: &mut Option<RunningCompaction>,
    ) -> Result<(), Refusal> {
        self.replaced.retain(Base::is_read);
        let covered = frozen.meta.covered;
        // The log grows meanwhile. From now on it is known to reach at least to here, so an earlier end
        // is damage.
        let logged = self.core.lock().state.pending.durable().max(covered);
        let mut meta_rows: Vec<(Key, Bytes)> = vec![
            (keys::meta(CHECKPOINT_META), frozen.meta.encode()),
            (keys::meta(LOGGED), Bytes::copy_from_slice(&logged.to_le_bytes())),
        ];
        meta_rows.extend(frozen.anchor.map(|anchor| (keys::meta(ANCHOR), anchor.encode())));
        if let Err(error) = self.write(frozen, &meta_rows) {
            if self.core.lock().is_closing {
                // The log has all changes, so only time is lost.
                tracing::warn!(%error, "the last checkpoint was not made; opening will take longer");
            } else {
                tracing::error!(%error, "a checkpoint failed; the store is read-only until it is reopened");
            }
            return Err(match &error {
                RowError::Corrupt(what) => Refusal::damaged(what),
                _ => Refusal::failed(&format!("checkpoint: {error}")),
            });
        }
        if let Some(mut following) = running.take() {
            match following.compaction.follow(&frozen.changes, &meta_rows) {
                Ok(()) => *running = Some(following),
                Err(failed) => abandon_compaction(following, failed)?,
            }
        }
        if let Err(error) = self.segments.free(covered) {
            // Harmless: the next checkpoint or the next opening frees them.
            tracing::warn!(%error, "log segments could not be freed");
        }
        Ok(())
    }

    fn write(&mut self, frozen: &mut Frozen, meta_rows: &[(Key, Bytes)]) -> Result<(), RowError> {
        self.write_rows(frozen, meta_rows)?;
        for wanted in frozen.snapshots.drain(..) {
            // The receiver may have been dropped meanwhile.
            let view = View::of(Tables::new(self.base.snapshot()?)?);
            let _ = wanted.send(StoreSnapshot { view, at_ms: frozen.at_ms });
        }
        self.core.checkpointed(self.base.snapshot()?);
        self.core.continue_snapshots();
        Ok(())
    }

    /// Writes the rows of a checkpoint. If a reader has met damage, redb refuses the write, so the file is
    /// reopened; from then on readers use another redb. Only damage where the checkpoint itself reads or
    /// writes is an error.
    fn write_rows(&mut self, frozen: &Frozen, meta_rows: &[(Key, Bytes)]) -> Result<(), RowError> {
        let core = Arc::clone(&self.core);
        let attempt = |base: &Base| {
            let mut throttle = CheckpointThrottle::new(|| core.pause_for_burst());
            base.write_piecemeal(&frozen.changes, meta_rows, || throttle.row())
        };
        let written = attempt(&self.base);
        if written.is_ok() || !self.base.is_refused() {
            return written;
        }
        let files = Arc::clone(&self.files);
        self.reopen(&files).map_err(|error| match error {
            OpenError::Corrupt(what) => RowError::Corrupt(what),
            other => RowError::Unreadable(other.to_string()),
        })?;
        attempt(&self.base)
    }

    /// Whether less than half of the file is in use, with the overhead of a B-tree.
    fn should_compact(&self, compacted_at_ms: Option<u64>) -> bool {
        let rests = compacted_at_ms
            .is_some_and(|at_ms| self.core.clock.now_ms().saturating_sub(at_ms) < COMPACTION_PAUSE_MS);
        let size = self.base.size();
        let used = (size.stored_bytes() + size.rows * ROW_BYTES) / 2 * 3;
        let file = self.base.file_bytes();
        !rests && file > self.core.limits.compact_above_bytes && used < file / 2
    }

    fn start(&self, order: Option<CompactOrder>) -> Option<RunningCompaction> {
        match Compaction::start(&self.files, &self.base) {
            Ok(compaction) => Some(RunningCompaction { compaction, order }),
            Err(error) => {
                tracing::warn!(%error, "no compaction was started");
                if let Some(order) = order {
                    let _ = order.answer.send(Err(error.to_string()));
                }
                None
            }
        }
    }

    /// Continues the running compaction, if there is one.
    fn continue_compaction(&mut self, running: &mut Option<RunningCompaction>) -> Result<(), Refusal> {
        if let Some(unfinished) = running.take() {
            *running = self.copy_piece(unfinished)?;
        }
        Ok(())
    }

    /// Copies a piece, or ends the compaction.
    fn copy_piece(&mut self, mut running: RunningCompaction) -> Result<Option<RunningCompaction>, Refusal> {
        let progress = running.compaction.progress(&self.base);
        if let Some(order) = &mut running.order {
            (order.progress)(progress);
        }
        match running.compaction.copy_piece(&self.base) {
            Ok(false) => return Ok(Some(running)),
            Ok(true) => {}
            Err(failed) => {
                abandon_compaction(running, failed)?;
                return Ok(None);
            }
        }
        let RunningCompaction { compaction, order } = running;
        match compaction.finish(&self.core.full_disk) {
            Ok((None, report)) => {
                tracing::info!(
                    bytes = report.bytes_before,
                    "the state takes no less room when it is compacted"
                );
                if let Some(order) = order {
                    let _ = order.answer.send(Ok(report));
                }
                Ok(None)
            }
            Ok((Some(base), report)) => {
                let unreadable = |error: RowError| Refusal::failed(&format!("compaction: {error}"));
                self.core.lock().state.tables.rows.rebase(base.snapshot().map_err(unreadable)?);
                self.replaced.push(std::mem::replace(&mut self.base, base));
                self.watch_for_damage();
                let CompactReport { bytes_before, bytes_after } = report;
                tracing::info!(bytes_before, bytes_after, "the state was compacted");
                if let Some(order) = order {
                    let _ = order.answer.send(Ok(report));
                }
                Ok(None)
            }
            Err(failed) => {
                answer(order, failed)?;
                let _ = self.files.remove(crate::rows::base::NEW_NAME);
                Ok(None)
            }
        }
    }
}

fn abandon_compaction(running: RunningCompaction, failed: CompactionError) -> Result<(), Refusal> {
    let RunningCompaction { compaction, order } = running;
    compaction.abandon();
    answer(order, failed)
}

/// Answers the caller; the store continues if it can.
fn answer(order: Option<CompactOrder>, failed: CompactionError) -> Result<(), Refusal> {
    tracing::warn!(error = %failed, "a compaction was given up");
    if let Some(order) = order {
        let _ = order.answer.send(Err(failed.to_string()));
    }
    match failed {
        CompactionError::Harmless(_) => Ok(()),
        CompactionError::Unknown(error) => Err(Refusal::failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use segno::store::{ErrorKind, Provider, StoredEvent};
    use segno_testkit::clock::VirtualClock;

    use super::*;
    use crate::disk::directory::Directory;
    use crate::disk::full_disk::FullDisk;
    use crate::options::OpenOptions;
    use crate::rows::keys::Table;
    use crate::store::EmbeddedStore;

    fn damage_an_index(path: &Path) {
        let files: Arc<dyn Files> = Arc::new(Directory::new(path).expect("a directory"));
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).expect("a state");
        let rows = base.snapshot().expect("rows").scan(&keys::table(Table::ByAge)).expect("entries");
        let (first, _) = rows.map(|row| row.expect("an entry")).next().expect("an instance");
        base.spoil(&first);
    }

    #[tokio::test]
    async fn a_checkpoint_that_meets_damage_recommends_salvage_and_reads_continue() {
        let directory = tempfile::tempdir().expect("a directory");
        let event = || vec![StoredEvent { event_id: 1, data: Bytes::from_static(b"event") }];
        // At one time, so that all entries of the index are in one row.
        let clock = VirtualClock::new();
        let open = || EmbeddedStore::open_with(directory.path(), OpenOptions::default().clock(clock.clone()));
        let store = open().expect("an empty directory");
        store.append_with_execution("a", 1, event()).await.expect("an instance");
        store.close();
        damage_an_index(directory.path());
        let store = open().expect("what is damaged was not met");
        store.append_with_execution("b", 1, event()).await.expect("the log takes it");
        let refused = store.core().checkpoint().await.expect_err("the damage is met");
        assert!(refused.at("checkpoint").to_string().contains("salvage"));
        let error = store.append_with_execution("c", 1, event()).await.expect_err("nothing is written");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("salvage"), "{error}");
        assert_eq!(store.read("b").await.expect("reads go on"), event());
    }
}
