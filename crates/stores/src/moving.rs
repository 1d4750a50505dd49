//! From a store or a file into a file or a store, verified by reading back.

use std::path::Path;

use segno::store::{ErrorKind, Export, Import, ProviderError, Transfer};

use crate::backup::{BackupReader, BackupWriter, IfThere, LedgerEnd};
use crate::digest::{ContentDigest, ContentSummary};
use crate::error::Error;
use crate::ledger::{FindLedger, LedgerContent, LedgerOrigin};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Content is being moved.
    Moving,
    /// What was written is being read back.
    Verifying,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// What is being done.
    pub phase: Phase,
    /// What has passed in this phase.
    pub so_far: &'a ContentSummary,
}

/// What a backup has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Of the store.
    pub content: ContentSummary,
    /// Of its ledger.
    pub ledger: LedgerContent,
}

/// A store that has everything, and does not count as filled yet.
pub struct Filled<'t> {
    import: Box<dyn Import + 't>,
    content: ContentSummary,
}

/// Writes a backup, makes it durable, gives it its name and reads it again.
///
/// # Errors
/// When the source cannot be read, the file cannot be written, or it does not read as it was written.
pub async fn back_up(
    source: &mut dyn Export,
    path: &Path,
    if_there: IfThere,
    ledger: &mut dyn FindLedger,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Written, Error> {
    let mut writer = BackupWriter::create(path, if_there)?;
    loop {
        let items = source.next_items().await?;
        if items.is_empty() {
            break;
        }
        for item in &items {
            ledger.see(item);
            writer.put(item)?;
        }
        progress(Progress { phase: Phase::Moving, so_far: writer.so_far() });
    }
    let end = match ledger.found().await? {
        LedgerOrigin::None => LedgerEnd::None,
        LedgerOrigin::Elsewhere(place) => LedgerEnd::Elsewhere(place),
        LedgerOrigin::Source(mut source) => {
            source.send(&mut writer).await?;
            LedgerEnd::Included
        }
    };
    let (content, ledger) = writer.finish(end)?;
    let read = verify_backup(path, progress)?;
    if read.content.is_same_content(&content) && read.ledger == ledger {
        Ok(Written { content, ledger })
    } else {
        Err(Error::Mismatch { target: path.display().to_string() })
    }
}

/// Reads a backup to its end, so that all its checksums are checked.
///
/// # Errors
/// When it is cut or damaged, or cannot be read.
pub fn verify_backup(path: &Path, progress: &mut (dyn FnMut(Progress<'_>) + Send)) -> Result<Written, Error> {
    let mut reader = BackupReader::open(path)?;
    let mut digest = ContentDigest::default();
    loop {
        let items = reader.next_block()?;
        if items.is_empty() {
            break;
        }
        items.iter().for_each(|item| digest.add(item));
        progress(Progress { phase: Phase::Verifying, so_far: digest.so_far() });
    }
    while !reader.next_parts()?.is_empty() {}
    let ledger = reader.ledger().cloned().unwrap_or(LedgerContent::Unknown);
    Ok(Written { content: digest.finish(), ledger })
}

/// Fills an empty store from another store or a backup, reads everything back, and lets it count only when that is the
/// same. `target_name` is for messages.
///
/// # Errors
/// As [`fill_unfinished`].
pub async fn fill(
    source: &mut dyn Export,
    target: &(impl Transfer + ?Sized),
    target_name: &str,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<ContentSummary, Error> {
    fill_unfinished(source, target, target_name, progress).await?.finish().await
}

impl Filled<'_> {
    /// Makes the content that of the store.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn finish(self) -> Result<ContentSummary, Error> {
        self.import.finish().await?;
        Ok(self.content)
    }
}

/// The same up to the last step: the store has everything and does not count as filled, so that what belongs to it can
/// be put in place first.
///
/// # Errors
/// When the store is not empty, the source cannot be read, or the store does not give back what was put into it.
pub async fn fill_unfinished<'t>(
    source: &mut dyn Export,
    target: &'t (impl Transfer + ?Sized),
    target_name: &str,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Filled<'t>, Error> {
    let named = |error: ProviderError| match error.kind() {
        // Two stores are at hand: which one is meant is part of the message.
        ErrorKind::Conflict => {
            ProviderError::new(ErrorKind::Conflict, "import", format!("{target_name}: {}", error.message()))
        }
        _ => error,
    };
    let mut import = target.import().await.map_err(named)?;
    let mut digest = ContentDigest::default();
    loop {
        let items = source.next_items().await?;
        if items.is_empty() {
            break;
        }
        items.iter().for_each(|item| digest.add(item));
        import.put(items).await?;
        progress(Progress { phase: Phase::Moving, so_far: digest.so_far() });
    }
    let given = digest.finish();
    let mut export = import.read_back().await?;
    let mut digest = ContentDigest::default();
    loop {
        let items = export.next_items().await?;
        if items.is_empty() {
            break;
        }
        items.iter().for_each(|item| digest.add(item));
        progress(Progress { phase: Phase::Verifying, so_far: digest.so_far() });
    }
    drop(export);
    if !digest.finish().is_same_content(&given) {
        return Err(Error::Mismatch { target: target_name.to_owned() });
    }
    Ok(Filled { import, content: given })
}
