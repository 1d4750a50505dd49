//! The real directory.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{Files, StoreFile};
use crate::permissions::{self, FILE_MODE};

/// Name of the lock file; holds the process id of whoever has the store open.
const LOCK_FILE: &str = "lock";

/// A directory of the machine.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A directory that exists or is made now, with its parents. Other users cannot read what it
    /// has of a store.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        permissions::make_directory(path)?;
        permissions::tighten(path)?;
        Ok(Directory { path: path.to_owned() })
    }

    /// A directory that exists.
    ///
    /// # Errors
    /// `NotFound` when it does not.
    pub fn existing(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if !fs::metadata(path)?.is_dir() {
            let text = format!("{} is not a directory", path.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
        }
        Ok(Directory { path: path.to_owned() })
    }

    fn in_use(&self, mut file: &File) -> io::Error {
        let mut holder = String::new();
        let read = file.read_to_string(&mut holder);
        let holder = holder.trim();
        let holder = if read.is_err() || holder.is_empty() { "unknown" } else { holder };
        let path = self.path.display();
        let text = format!(
            "{path} is open in another process (process id {holder}); stop it first, or use another directory"
        );
        io::Error::new(io::ErrorKind::WouldBlock, text)
    }
}

impl Files for Directory {
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let path = self.path.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.in_use(&file)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(Box::new(file))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE);
        let file = options.open(self.path.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(File);

impl StoreFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
