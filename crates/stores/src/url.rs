//! Which store, read from its URL. The one place that knows the schemes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use segno::clock::SystemClock;
use segno::store::memory::MemoryStore;
use segno::store::{Expect, ProviderError, Record, RecordBatch, RecordWrite, Records, Store};
use segno_embedded::{
    CheckProgress, CheckReport, ClosedStore, CompactProgress, CompactReport, Control, EmbeddedStore,
    ExposedFile, FilledBy, OpenError, OpenOptions, SalvageReport,
};

use segno_postgres::{Migration, PostgresOptions, PostgresStore};

use crate::error::Error;
use crate::source::Source;

/// A store to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`, gone with the process.
    Memory,
    /// `segno:DIR` or a plain path, the embedded store in a directory.
    Embedded(PathBuf),
    /// `postgres://…`, the store in a database.
    Postgres(String),
}

impl StoreUrl {
    /// Whether a path is in the directory of the store, or is that directory, whatever way it is written. What is written there would
    /// replace files of the store.
    pub fn has_inside(&self, path: &Path) -> bool {
        let StoreUrl::Embedded(directory) = self else { return false };
        let Ok(directory) = directory.canonicalize() else { return false };
        // The path itself may not exist; its nearest ancestor that does is the same place.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        absolute
            .ancestors()
            .find_map(|above| above.canonicalize().ok())
            .is_some_and(|above| above.starts_with(directory))
    }

    /// Opens the store, or makes it, and upgrades one of an older build: for servers.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open(&self) -> Result<Arc<dyn Store>, Error> {
        match self {
            StoreUrl::Memory => Ok(MemoryStore::new()),
            StoreUrl::Embedded(directory) => Ok(EmbeddedStore::open(directory)?),
            StoreUrl::Postgres(url) => Ok(open_postgres(url, Migration::CreateOrUpgrade).await?),
        }
    }

    /// Opens the store, or makes it, for a command. One of an older build in a database is refused:
    /// its servers may be of that build.
    ///
    /// # Errors
    /// When it cannot be opened, or would have to be upgraded.
    pub async fn open_or_create(&self) -> Result<Arc<dyn Store>, Error> {
        match self {
            StoreUrl::Postgres(url) => Ok(open_postgres(url, Migration::Create).await?),
            StoreUrl::Memory | StoreUrl::Embedded(_) => self.open().await,
        }
    }

    /// Opens a store that is there. Nothing is made, and nothing is upgraded in a database.
    ///
    /// # Errors
    /// When there is none, or it cannot be opened.
    pub async fn open_existing(&self) -> Result<Arc<dyn Store>, Error> {
        self.check_is_there()?;
        match self {
            StoreUrl::Postgres(url) => Ok(open_postgres(url, Migration::Never).await?),
            StoreUrl::Memory | StoreUrl::Embedded(_) => self.open().await,
        }
    }

    /// A store that is there, to read from it. One that another process has open is asked through its socket; one that
    /// none has open is not changed, so its disk may be full or read-only.
    ///
    /// # Errors
    /// When there is none, or it can neither be opened nor asked.
    pub async fn source(&self) -> Result<Source, Error> {
        match self {
            StoreUrl::Memory => Ok(Source::Open(MemoryStore::new())),
            StoreUrl::Postgres(url) => Ok(Source::Open(open_postgres(url, Migration::Never).await?)),
            StoreUrl::Embedded(directory) => {
                self.check_is_there()?;
                match ClosedStore::open(directory, &SystemClock) {
                    Ok(store) => Ok(Source::Closed(store)),
                    Err(OpenError::InUse(holder)) => match Control::connect(directory) {
                        Ok(_) => Ok(Source::InUse(directory.clone())),
                        Err(_) => Err(Error::Open(OpenError::InUse(holder))),
                    },
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Records of some kinds, copied into a store in memory. An embedded store is not changed, so its disk may be full or
    /// read-only.
    ///
    /// # Errors
    /// When there is no store, or it cannot be read.
    pub async fn read_records(&self, kinds: &[&str]) -> Result<Arc<dyn Store>, Error> {
        let StoreUrl::Embedded(directory) = self else { return self.open_existing().await };
        self.check_is_there()?;
        let closed = ClosedStore::open(directory, &SystemClock)?;
        let memory = MemoryStore::new();
        for kind in kinds {
            for Record { kind, id, body, .. } in closed.records(kind)? {
                let (expect, due_at_ms, time_to_live) = (Expect::Absent, None, None);
                let write = RecordWrite::Put { kind, id, expect, due_at_ms, time_to_live, body };
                memory.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
            }
        }
        Ok(memory)
    }

    /// Gives unused disk space of a store back that nobody has open. One that would not become smaller stays as it is.
    ///
    /// # Errors
    /// When there is none, it is in use or damaged, or there is too little room for the copy that is made.
    pub fn compact(&self, progress: impl FnMut(CompactProgress)) -> Result<CompactReport, Error> {
        match self {
            StoreUrl::Memory => Err(Error::Url("a store in memory takes no room on a disk".to_owned())),
            StoreUrl::Postgres(_) => Err(Error::Url("PostgreSQL vacuums its tables by itself".to_owned())),
            StoreUrl::Embedded(directory) => {
                self.check_is_there()?;
                Ok(segno_embedded::compact(directory, progress)?)
            }
        }
    }

    /// Reads everything of a store that nobody has open, and compares. Changes nothing.
    ///
    /// # Errors
    /// When there is none, or it is in use. Damage is no error, but a finding.
    pub fn check(&self, progress: impl FnMut(CheckProgress)) -> Result<CheckReport, Error> {
        let directory = self.directory()?;
        self.check_is_there()?;
        Ok(segno_embedded::check(directory, progress)?)
    }

    /// Files of a store that other users of the machine may read or change.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn exposed_files(&self) -> Result<Vec<ExposedFile>, Error> {
        let directory = self.directory()?;
        segno_embedded::exposed_files(directory).map_err(Error::file(directory))
    }

    /// Saves what can be saved of a damaged store that nobody has open, into a new one. The damaged one is not changed.
    ///
    /// # Errors
    /// When there is none, it is in use, or the new one is there already.
    pub fn salvage(
        &self,
        to: &StoreUrl,
        progress: impl FnMut(CheckProgress),
    ) -> Result<SalvageReport, Error> {
        let (from, to) = (self.directory()?, to.directory()?);
        self.check_is_there()?;
        Ok(segno_embedded::salvage(from, to, progress)?)
    }

    fn directory(&self) -> Result<&PathBuf, Error> {
        match self {
            StoreUrl::Memory => Err(Error::Url("a store in memory has no files; use segno:DIR".to_owned())),
            StoreUrl::Postgres(_) => Err(Error::Url(
                "this command is for the files of an embedded store (segno:DIR); a store in PostgreSQL is checked with \
                 pg_amcheck and repaired from its own backups"
                    .to_owned(),
            )),
            StoreUrl::Embedded(directory) => Ok(directory),
        }
    }

    fn check_is_there(&self) -> Result<(), Error> {
        match self {
            StoreUrl::Embedded(directory) if !EmbeddedStore::is_in(directory) => {
                match std::fs::read_dir(directory) {
                    // There may be one.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                        Err(OpenError::denied(directory, &error).into())
                    }
                    _ => Err(Error::NotFound(no_store_in(directory))),
                }
            }
            _ => Ok(()),
        }
    }

    /// Opens the store in order to fill it. One that the same command has not finished to fill is opened too.
    ///
    /// # Errors
    /// When it cannot be opened, or its directory has files of others.
    pub async fn open_for_import(&self, by: FilledBy) -> Result<Arc<dyn Store>, Error> {
        match self {
            StoreUrl::Memory => Ok(MemoryStore::new()),
            StoreUrl::Embedded(directory) => {
                Ok(EmbeddedStore::open_with(directory, OpenOptions::default().to_be_filled(by))?)
            }
            StoreUrl::Postgres(url) => Ok(open_postgres(url, Migration::Create).await?),
        }
    }
}

/// Why there is no store, and what to do.
fn no_store_in(directory: &Path) -> String {
    let path = directory.display();
    let next = "name the directory that the server has in its store.url, as in segno:DIR";
    match std::fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => format!("there is no store in {path}: it is empty; {next}"),
        Ok(false) => format!("there is no store in {path}: it has no file state.redb; {next}"),
        Err(error) => format!("there is no store in {path}: {error}; {next}"),
    }
}

async fn open_postgres(url: &str, migration: Migration) -> Result<Arc<PostgresStore>, Error> {
    let opened =
        async { PostgresStore::open_with(PostgresOptions::from_url(url)?.migration(migration)).await };
    opened.await.map_err(|error| Error::Store(ProviderError::new(error.kind(), "open", error.to_string())))
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let refused = |text: String| Err(Error::Url(text));
        let Some((scheme, rest)) = url.split_once(':') else {
            return match url {
                "" => refused("the store has no name; use segno:DIR".to_owned()),
                "memory" | "segno" => refused(format!("{url:?} is not a store; did you mean \"{url}:\"?")),
                path => Ok(StoreUrl::Embedded(PathBuf::from(path))),
            };
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(StoreUrl::Memory),
            "memory" => refused(format!("{url:?} has too much; the store in memory is just \"memory:\"")),
            "segno" if rest.is_empty() => refused(format!("{url:?} names no directory; use segno:DIR")),
            "segno" => Ok(StoreUrl::Embedded(PathBuf::from(rest))),
            "postgres" | "postgresql" => {
                PostgresOptions::from_url(url).map_err(|error| Error::Url(error.to_string()))?;
                Ok(StoreUrl::Postgres(url.to_owned()))
            }
            // The rest of the URL may have a password.
            _ => refused(format!(
                "there is no store of the kind {scheme:?}; use segno:DIR, postgres://USER@HOST/DATABASE or memory:"
            )),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Embedded(directory) => write!(f, "segno:{}", directory.display()),
            // Host, database and schema; the user and the password do not belong into a report.
            StoreUrl::Postgres(url) => match PostgresOptions::from_url(url) {
                Ok(options) => f.write_str(&options.address()),
                Err(_) => f.write_str("postgres:"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_a_reason() {
        assert_eq!("memory:".parse::<StoreUrl>().unwrap(), StoreUrl::Memory);
        assert_eq!(StoreUrl::Memory.to_string(), "memory:");
        for url in ["segno:/tmp/x", "/tmp/x"] {
            let embedded = url.parse::<StoreUrl>().unwrap();
            assert_eq!(embedded, StoreUrl::Embedded(PathBuf::from("/tmp/x")));
            assert_eq!(embedded.to_string(), "segno:/tmp/x");
        }
        let database = "postgres://me:secret@db/shop?schema=mine".parse::<StoreUrl>().unwrap();
        assert_eq!(database.to_string(), "postgres://db:5432/shop?schema=mine");
        assert_eq!("data".parse::<StoreUrl>().unwrap(), StoreUrl::Embedded(PathBuf::from("data")));
        for (url, reason) in [
            ("", "no name"),
            ("memory", "did you mean \"memory:\""),
            ("memory:x", "just \"memory:\""),
            ("segno", "did you mean \"segno:\""),
            ("segno:", "names no directory"),
            ("postgres://localhost/segno?schema=A", "cannot be a schema"),
            ("mysql://localhost", "postgres://USER@HOST/DATABASE or memory:"),
        ] {
            let error = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
