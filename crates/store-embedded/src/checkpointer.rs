//! The checkpointer: moves what the log has into the state behind it, then frees the log up to there. The writer goes
//! on meanwhile. When there is nothing to move and much of the state's file is unused, it makes a smaller one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::base::Base;
use crate::compaction::{CompactProgress, CompactReport, Compaction, Failed};
use crate::error::{OpenError, RowError};
use crate::facts::{ANCHOR, FACTS, LOGGED};
use crate::files::Files;
use crate::giving_way::GivingWay;
use crate::keys::{self, Key};
use crate::log::Segments;
use crate::refusal::Refusal;
use crate::shared::{Core, Frozen};
use crate::snapshot::Taken;
use crate::tables::Tables;
use crate::untouched::Untouched;
use crate::view::View;

/// What the checkpointer is asked to do.
pub enum Order {
    /// Moves changes into the state.
    Checkpoint(Frozen),
    /// Gives space back now.
    Compact(CompactOrder),
}

/// A compaction that somebody waits for.
pub struct CompactOrder {
    pub progress: Box<dyn FnMut(CompactProgress) + Send>,
    pub answer: oneshot::Sender<Result<CompactReport, String>>,
}

/// Between compactions that nobody asked for.
const COMPACTION_PAUSE_MS: u64 = 10 * 60 * 1_000;

/// What redb needs for a row beyond its bytes.
const ROW_BYTES: u64 = 8;

/// The checkpointer.
pub struct Checkpointer {
    pub core: Arc<Core>,
    pub files: Arc<dyn Files>,
    pub segments: Arc<Segments>,
    pub base: Base,
    /// Files that a compaction has replaced while something was read from them, such as a backup.
    pub replaced: Vec<Base>,
}

/// A compaction and who waits for it.
struct Running {
    compaction: Compaction,
    order: Option<CompactOrder>,
}

/// Says that the checkpointer has ended, however it did.
struct Ended(Arc<Core>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.checkpointer_ended();
    }
}

impl Checkpointer {
    /// Runs until the store is closed or the disk fails.
    pub fn run(mut self, orders: &Receiver<Order>) {
        let ended = Ended(Arc::clone(&self.core));
        self.watch_for_damage();
        let mut running: Option<Running> = None;
        let mut compacted_at_ms = None;
        let refusal = loop {
            let order = match &running {
                None => orders.recv().map_err(|_| TryRecvError::Disconnected),
                Some(_) => orders.try_recv(),
            };
            let outcome = match order {
                Ok(Order::Checkpoint(mut frozen)) => {
                    self.checkpoint(&mut frozen, &mut running).and_then(|()| {
                        if running.is_none() && self.should_compact(compacted_at_ms) {
                            running = self.start(None);
                            compacted_at_ms = Some(self.core.clock.now_ms());
                        }
                        // Checkpoints that follow each other at once must not keep a compaction from its end.
                        self.go_on(&mut running)
                    })
                }
                Ok(Order::Compact(order)) => {
                    // One that nobody waits for starts again from the beginning; that is rare and harmless.
                    running.take().into_iter().for_each(|running| running.compaction.abandon());
                    running = self.start(Some(order));
                    Ok(())
                }
                Err(TryRecvError::Empty) => self.go_on(&mut running),
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
        // Reads go on until the store is closed, and nothing is written meanwhile.
        if let Err(error) = self.reopen(&Untouched::of(&self.files)) {
            tracing::error!(%error, "the state could not be opened again");
        }
        while orders.recv().is_ok() {}
    }

    fn watch_for_damage(&self) {
        // Not the core, which holds snapshots of the file.
        self.base.on_damage(self.core.damage.watch());
    }

    /// Reads from the file anew, if that can be opened.
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

    fn checkpoint(&mut self, frozen: &mut Frozen, running: &mut Option<Running>) -> Result<(), Refusal> {
        self.replaced.retain(Base::is_read);
        let covered = frozen.facts.covered;
        // The log goes on meanwhile. From now on it is known to reach at least this far, so an end before it is damage.
        let logged = self.core.lock().state.unsynced.durable().max(covered);
        let mut facts: Vec<(Key, Bytes)> = vec![
            (keys::meta(FACTS), frozen.facts.encode()),
            (keys::meta(LOGGED), Bytes::copy_from_slice(&logged.to_le_bytes())),
        ];
        facts.extend(frozen.anchor.map(|anchor| (keys::meta(ANCHOR), anchor.encode())));
        if let Err(error) = self.write(frozen, &facts) {
            if self.core.lock().is_closing {
                // The log has everything, so nothing but time is lost.
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
            match following.compaction.follow(&frozen.changes, &facts) {
                Ok(()) => *running = Some(following),
                Err(failed) => given_up(following, failed)?,
            }
        }
        if let Err(error) = self.segments.free(covered) {
            // Harmless: the next checkpoint or the next opening frees them.
            tracing::warn!(%error, "log segments could not be freed");
        }
        Ok(())
    }

    fn write(&mut self, frozen: &mut Frozen, facts: &[(Key, Bytes)]) -> Result<(), RowError> {
        self.write_rows(frozen, facts)?;
        for wanted in frozen.snapshots.drain(..) {
            // Whoever asked may have gone away meanwhile.
            let view = View::of(Tables::new(self.base.snapshot()?)?);
            let _ = wanted.send(Taken { view, at_ms: frozen.at_ms });
        }
        self.core.checkpointed(self.base.snapshot()?);
        self.core.go_on_with_snapshots();
        Ok(())
    }

    /// Writes the rows of a checkpoint. If a reader has met damage, redb refuses that, so the file is opened anew; from then on
    /// readers leave it to this. Only damage where the checkpoint itself has to read or write is an error.
    fn write_rows(&mut self, frozen: &Frozen, facts: &[(Key, Bytes)]) -> Result<(), RowError> {
        let core = Arc::clone(&self.core);
        let attempt = |base: &Base| {
            let mut giving_way = GivingWay::new(|| core.rest_for_a_crowd());
            base.write_piecemeal(&frozen.changes, facts, || giving_way.row())
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

    /// Whether less than half of the file is in use, with what a tree of pages wastes.
    fn should_compact(&self, compacted_at_ms: Option<u64>) -> bool {
        let rests = compacted_at_ms
            .is_some_and(|at_ms| self.core.clock.now_ms().saturating_sub(at_ms) < COMPACTION_PAUSE_MS);
        let size = self.base.size();
        let used = (size.stored_bytes() + size.rows * ROW_BYTES) / 2 * 3;
        let file = self.base.file_bytes();
        !rests && file > self.core.limits.compact_above_bytes && used < file / 2
    }

    fn start(&self, order: Option<CompactOrder>) -> Option<Running> {
        match Compaction::start(&self.files, &self.base) {
            Ok(compaction) => Some(Running { compaction, order }),
            Err(error) => {
                tracing::warn!(%error, "no compaction was started");
                if let Some(order) = order {
                    let _ = order.answer.send(Err(error.to_string()));
                }
                None
            }
        }
    }

    /// Goes on with the compaction that is running, if there is one.
    fn go_on(&mut self, running: &mut Option<Running>) -> Result<(), Refusal> {
        if let Some(unfinished) = running.take() {
            *running = self.copy_piece(unfinished)?;
        }
        Ok(())
    }

    /// Copies a piece, or ends the compaction.
    fn copy_piece(&mut self, mut running: Running) -> Result<Option<Running>, Refusal> {
        let progress = running.compaction.progress(&self.base);
        if let Some(order) = &mut running.order {
            (order.progress)(progress);
        }
        match running.compaction.copy_piece(&self.base) {
            Ok(false) => return Ok(Some(running)),
            Ok(true) => {}
            Err(failed) => {
                given_up(running, failed)?;
                return Ok(None);
            }
        }
        let Running { compaction, order } = running;
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
                let _ = self.files.remove(crate::base::NEW_NAME);
                Ok(None)
            }
        }
    }
}

fn given_up(running: Running, failed: Failed) -> Result<(), Refusal> {
    let Running { compaction, order } = running;
    compaction.abandon();
    answer(order, failed)
}

/// Tells whoever waits; the store itself goes on if it can.
fn answer(order: Option<CompactOrder>, failed: Failed) -> Result<(), Refusal> {
    tracing::warn!(error = %failed, "a compaction was given up");
    if let Some(order) = order {
        let _ = order.answer.send(Err(failed.to_string()));
    }
    match failed {
        Failed::Harmless(_) => Ok(()),
        Failed::Unknown(error) => Err(Refusal::failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use segno::store::{ErrorKind, Provider, StoredEvent};
    use segno_testkit::clock::VirtualClock;

    use super::*;
    use crate::directory::Directory;
    use crate::full_disk::FullDisk;
    use crate::keys::Table;
    use crate::options::OpenOptions;
    use crate::store::EmbeddedStore;

    fn damage_an_index(path: &Path) {
        let files: Arc<dyn Files> = Arc::new(Directory::new(path).expect("a directory"));
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).expect("a state");
        let rows = base.snapshot().expect("rows").scan(&keys::table(Table::ByAge)).expect("entries");
        let (first, _) = rows.map(|row| row.expect("an entry")).next().expect("an instance");
        base.spoil(&first);
    }

    #[tokio::test]
    async fn a_checkpoint_that_meets_damage_says_to_salvage_and_reads_go_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let event = || vec![StoredEvent { event_id: 1, data: Bytes::from_static(b"event") }];
        // At the same time, so that all entries of the index are in one row.
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
