//! `segno store restore`: a backup becomes a store, with its ledger if the backup has it.

use std::path::Path;

use segno_stores::{BackupReader, FilledBy, LedgerContent, StoreUrl, fill_unfinished};

use super::Moved;
use super::ledger::{ShownLedger, Target, check_place};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Fills the store and the ledger, reads both back, and tells whether the backup was complete.
pub async fn run(
    file: &Path,
    store: &StoreUrl,
    ledger_url: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    // Before the store is made, so that a wrong name leaves no empty store behind.
    let mut reader = BackupReader::open(file)?.keeping_ledger();
    let ledger = BackupReader::peek_ledger(file)?;
    check_place(&ledger, store, ledger_url)?;
    let target = store.open_for_import(FilledBy::Restore).await?;
    let mut meter = Meter::new(output, None);
    let name = store.to_string();
    let mut progress = |progress: segno_stores::Progress<'_>| meter.transfer(progress);
    let filled = fill_unfinished(&mut reader, &*target, &name, &mut progress).await?;
    // The store does not count as filled before its ledger is in place.
    let ledger = match ledger {
        LedgerContent::Included { objects: 1.., .. } => {
            let mut target = Target::open(store, ledger_url).await?;
            reader.send_ledger(&mut target).await?;
            target.finish()?
        }
        other => {
            while !reader.next_parts()?.is_empty() {}
            other
        }
    };
    let content = filled.finish().await?;
    drop(meter);
    let ledger = ShownLedger::of(ledger);
    ledger.warn("what was restored");
    let moved = Moved { from: file.display().to_string(), to: name, content: content.into(), ledger };
    output.print(&moved, moved.table())
}
