//! `segno store backup`: everything of this moment in one file, with the ledger where that is in directories.

use std::path::Path;

use segno_stores::{IfThere, StoreUrl, back_up};

use super::Moved;
use super::ledger::{Finder, ShownLedger};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Writes the file, reads it again, and tells whether it is complete.
pub async fn run(store: &StoreUrl, file: &Path, if_there: IfThere, output: &Output) -> Result<(), Failure> {
    if store.has_inside(file) {
        let file = file.display();
        let problem = format!("{file} is inside the store; choose a file outside of its directory");
        return Err(Failure::Refused(problem));
    }
    let source = store.source().await?;
    let mut meter = Meter::new(output, Some(source.instance_count().await?));
    let mut export = source.export().await?;
    let mut finder = Finder::new(store);
    let mut progress = |progress: segno_stores::Progress<'_>| meter.transfer(progress);
    let written = back_up(&mut *export, file, if_there, &mut finder, &mut progress).await?;
    drop(meter);
    let ledger = ShownLedger::of(written.ledger);
    ledger.warn("the backup");
    let (from, to) = (store.to_string(), file.display().to_string());
    let moved = Moved { from, to, content: written.content.into(), ledger };
    output.print(&moved, moved.table())
}
