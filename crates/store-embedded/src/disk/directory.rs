//! The real directory.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::files::{Files, StoreFile};
use crate::disk::permissions::{self, FILE_MODE};

/// Name of the lock file; contains the id of the process that has the store open.
const LOCK_FILE: &str = "lock";

/// A directory of the machine. Every error names the file that it is about.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    /// Nothing is made or changed, so the file system may be full or read-only.
    ReadOnly,
}

/// The same error with the file that it is about.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// An error about a file in the directory.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
struct FileError {
    path: PathBuf,
    error: io::Error,
}

/// The same for a file of the store.
fn of_file(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), FileError { path: path.to_owned(), error })
}

/// The text of an error for callers without access to the machine: the name of the file, and no path.
pub(crate) fn without_path(error: &io::Error) -> String {
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(FileError { path, error }) => {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            format!("{name}: {error}")
        }
        None => error.to_string(),
    }
}

impl Directory {
    /// A directory that exists or is made now, with its parents. Other users cannot read what it
    /// has of a store.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        permissions::make_directory(path).map_err(named(path))?;
        permissions::tighten(path).map_err(named(path))?;
        Ok(Directory { path: path.to_owned(), access: Access::ReadWrite })
    }

    /// A directory that exists, for reading. Others may read it meanwhile, and none can change it.
    ///
    /// # Errors
    /// `NotFound` when it does not.
    pub fn existing(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if !fs::metadata(path).map_err(named(path))?.is_dir() {
            return Err(named(path)(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory")));
        }
        Ok(Directory { path: path.to_owned(), access: Access::ReadOnly })
    }

    /// The process that has the store in a directory open, according to its lock file.
    pub fn holder(path: &Path) -> Option<u32> {
        let holder = fs::read_to_string(path.join(LOCK_FILE)).ok()?;
        let holder = holder.trim();
        is_running(holder).then(|| holder.parse().ok()).flatten()
    }

    fn in_use(&self, mut file: &File) -> io::Error {
        let mut holder = String::new();
        let read = file.read_to_string(&mut holder);
        let holder = holder.trim();
        let holder = match read {
            Ok(_) if is_running(holder) => format!("process id {holder}"),
            // One that only reads leaves no trace.
            Ok(_) if !holder.is_empty() => format!(
                "process id {holder}; if none such is running here, one of another container, or a command that reads the store"
            ),
            _ => "a command that reads the store".to_owned(),
        };
        let path = self.path.display();
        let text =
            format!("{path} is open in another process ({holder}); stop it first, or use another directory");
        io::Error::new(io::ErrorKind::WouldBlock, text)
    }

    /// Keeps every other process from opening the store.
    fn lock_alone(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = options.open(path).map_err(of_file(path))?;
        self.locked(&file, file.try_lock()).map_err(named_unless_busy(path))?;
        // Who has it is for messages only. A full disk must not keep a store from being opened for want of that.
        let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        Ok(file)
    }

    /// Keeps every other process from opening the store but such as only read it.
    fn lock_shared(&self, path: &Path) -> io::Result<Option<File>> {
        let file = match File::open(path) {
            // Every process that opens the store makes this file first, so none has.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(of_file(path))?,
        };
        self.locked(&file, file.try_lock_shared()).map_err(named_unless_busy(path))?;
        Ok(Some(file))
    }

    fn locked(&self, file: &File, outcome: Result<(), TryLockError>) -> io::Result<()> {
        match outcome {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(self.in_use(file)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The text about the process that has the store open already contains its directory.
fn named_unless_busy(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| if error.kind() == io::ErrorKind::WouldBlock { error } else { of_file(path)(error) }
}

/// Whether there is a process with this id, as far as that is known.
fn is_running(process_id: &str) -> bool {
    let is_number = process_id.parse::<u32>().is_ok();
    is_number && (!cfg!(target_os = "linux") || Path::new("/proc").join(process_id).exists())
}

impl Files for Directory {
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let path = self.path.join(LOCK_FILE);
        match self.access {
            Access::ReadWrite => Ok(Box::new(self.lock_alone(&path)?)),
            Access::ReadOnly => Ok(Box::new(self.lock_shared(&path)?)),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(named(&self.path))? {
            names.extend(entry.map_err(named(&self.path))?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let path = self.path.join(name);
        let is_written = self.access == Access::ReadWrite;
        let file = OpenOptions::new().read(true).write(is_written).open(&path).map_err(of_file(&path))?;
        Ok(Arc::new(RealFile { file, path }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE);
        let file = options.open(&path).map_err(of_file(&path))?;
        Ok(Arc::new(RealFile { file, path }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let from = self.path.join(from);
        fs::rename(&from, self.path.join(to)).map_err(of_file(&from))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        fs::remove_file(&path).map_err(of_file(&path))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.path).and_then(|directory| directory.sync_all()).map_err(named(&self.path))
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    /// Where it was opened, for messages; it may have another name by now.
    path: PathBuf,
}

impl StoreFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata().map_err(of_file(&self.path))?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(of_file(&self.path))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset).map_err(of_file(&self.path))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len).map_err(of_file(&self.path))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(of_file(&self.path))
    }
}
