//! Every access to the disk goes through these two traits, so that tests can record, tear and refuse it.
//!
//! Names are plain file names inside the store's one directory.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// The directory of a store.
pub trait Files: Debug + Send + Sync + 'static {
    /// Takes the store's exclusive lock, which holds until the guard is dropped.
    ///
    /// # Errors
    /// `WouldBlock`, with a message that names the holder, when another process has it.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>>;

    /// All file names.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// `NotFound` when it does not.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StoreFile>>;

    /// Makes an empty file, or empties one that exists.
    ///
    /// # Errors
    /// When it cannot be made.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StoreFile>>;

    /// Gives a file another name, over a file of that name if there is one. Durable after [`Files::sync_dir`].
    ///
    /// # Errors
    /// When it cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`Files::sync_dir`].
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// When the directory cannot be synced.
    fn sync_dir(&self) -> io::Result<()>;
}

/// An open file.
#[expect(
    clippy::len_without_is_empty,
    reason = "a length on disk is asked for its number, never for emptiness"
)]
pub trait StoreFile: Debug + Send + Sync + 'static {
    /// Length in bytes.
    ///
    /// # Errors
    /// If it is unknown.
    fn len(&self) -> io::Result<u64>;

    /// Fills the buffer from an offset.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before the buffer is full.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at an offset. Durable after [`StoreFile::sync`].
    ///
    /// # Errors
    /// When not everything could be written; some of it may have been.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    /// When it cannot be done.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// When it cannot be done. What was written since the last sync may or may not be durable then, and a later
    /// sync does not report.
    fn sync(&self) -> io::Result<()>;
}
