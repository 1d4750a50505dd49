//! The checkpointer: moves what the log has into the state behind it, then frees the log up to there. The writer goes
//! on meanwhile.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bytes::Bytes;

use crate::base::Base;
use crate::error::RowError;
use crate::facts::FACTS;
use crate::keys::{self, Key};
use crate::log::Segments;
use crate::shared::{Core, Frozen, Refusal};
use crate::snapshot::Taken;

/// Runs until the writer has ended.
pub fn run(core: &Arc<Core>, base: &Base, segments: &Arc<Segments>, checkpoints: &Receiver<Frozen>) {
    while let Ok(frozen) = checkpoints.recv() {
        let covered = frozen.facts.covered;
        if let Err(error) = checkpoint(core, base, frozen) {
            tracing::error!(%error, "a checkpoint failed; the store is read-only until it is reopened");
            return core.refuse(Refusal::failed(&format!("checkpoint: {error}")));
        }
        core.room.notify_waiters();
        core.go_on_with_snapshots();
        if let Err(error) = segments.free(covered) {
            // Harmless: the next checkpoint or the next opening frees them.
            tracing::warn!(%error, "log segments could not be freed");
        }
    }
}

fn checkpoint(core: &Core, base: &Base, frozen: Frozen) -> Result<(), RowError> {
    let facts: [(Key, Bytes); 1] = [(keys::meta(FACTS), frozen.facts.encode())];
    base.write(&frozen.changes, &facts)?;
    for wanted in frozen.snapshots {
        // Whoever asked may have gone away meanwhile.
        let _ = wanted.send(Taken { rows: base.snapshot()?, at_ms: frozen.at_ms });
    }
    let snapshot = base.snapshot()?;
    core.lock().state.tables.rows.thaw(snapshot);
    Ok(())
}
