//! From a store or a file into a file or a store, verified by reading back.

use std::path::Path;

use segno::store::{ErrorKind, Export, ProviderError, Transfer};

use crate::backup::{BackupReader, BackupWriter, IfThere};
use crate::digest::{ContentDigest, ContentSummary};
use crate::error::Error;

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

/// Writes a backup, makes it durable, gives it its name and reads it again.
///
/// # Errors
/// When the source cannot be read, the file cannot be written, or it does not read as it was written.
pub async fn back_up(
    source: &mut dyn Export,
    path: &Path,
    if_there: IfThere,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<ContentSummary, Error> {
    let mut writer = BackupWriter::create(path, if_there)?;
    loop {
        let items = source.next_items().await?;
        if items.is_empty() {
            break;
        }
        for item in &items {
            writer.put(item)?;
        }
        progress(Progress { phase: Phase::Moving, so_far: writer.so_far() });
    }
    let written = writer.finish()?;
    let read = verify_backup(path, progress)?;
    if read.is_same_content(&written) {
        Ok(written)
    } else {
        Err(Error::Mismatch { target: path.display().to_string() })
    }
}

/// Reads a backup to its end, so that all its checksums are checked.
///
/// # Errors
/// When it is cut or damaged, or cannot be read.
pub fn verify_backup(
    path: &Path,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<ContentSummary, Error> {
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
    Ok(digest.finish())
}

/// Fills an empty store from another store or a backup, reads everything back, and lets it count only when that is the
/// same. `target_name` is for messages.
///
/// # Errors
/// When the store is not empty, the source cannot be read, or the store does not give back what was put into it.
pub async fn fill(
    source: &mut dyn Export,
    target: &(impl Transfer + ?Sized),
    target_name: &str,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<ContentSummary, Error> {
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
    import.finish().await?;
    Ok(given)
}
