//! `segno store restore`: a backup becomes a store.

use std::path::Path;

use segno_stores::{BackupReader, FilledBy, StoreUrl, fill};

use super::Moved;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Meter;

/// Does it.
pub async fn run(file: &Path, store: &StoreUrl, output: &Output) -> Result<(), Failure> {
    // Before the store is made, so that a wrong name leaves no empty store behind.
    let mut reader = BackupReader::open(file)?;
    let target = store.open_for_import(FilledBy::Restore).await?;
    let mut meter = Meter::new(output, None);
    let name = store.to_string();
    let content = fill(&mut reader, &*target, &name, &mut |progress| meter.transfer(progress)).await?;
    drop(meter);
    let moved = Moved { from: file.display().to_string(), to: name, content: content.into() };
    output.print(&moved, moved.table())
}
