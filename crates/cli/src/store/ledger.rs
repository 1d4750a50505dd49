//! The ledger of a store that is backed up, restored or copied: where it is, and whether it is included.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use segno::clock::SystemClock;
use segno::store::ContentItem;
use segno_ledger::objects::{Location, PROBES, StorageError, Stores};
use segno_ledger::transfer::{self, PLACE, Part, Place, Receiver};
use segno_stores::{
    FindLedger, LedgerContent, LedgerDigest, LedgerOrigin, LedgerPart, LedgerSink, LedgerSource, StoreUrl,
    ledger_failed,
};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{Table, count, size};

/// Folder of the ledger inside the directory of an embedded store.
const FOLDER: &str = "ledger";

/// What a copy has of the ledger, as programs read it.
#[derive(Debug, Serialize)]
pub struct ShownLedger {
    /// Whether nothing that belongs to the store is missing.
    complete: bool,
    ledger: LedgerContent,
}

impl ShownLedger {
    /// What was written or read.
    pub fn of(ledger: LedgerContent) -> Self {
        ShownLedger { complete: ledger.is_complete(), ledger }
    }

    /// The lines of a table.
    pub fn lines(&self, table: Table) -> Table {
        match &self.ledger {
            LedgerContent::None => table.line("ledger", "none"),
            LedgerContent::Included { objects, bytes, .. } => {
                let objects = count(*objects);
                table.line("ledger", format!("{objects} objects, {}", size(*bytes)))
            }
            LedgerContent::Elsewhere { place } => {
                table.line("ledger", format!("NOT INCLUDED: it is at {place}")).line("complete", "no")
            }
            LedgerContent::Unknown => {
                table.line("ledger", "not known: the backup is of format 1").line("complete", "not known")
            }
        }
    }

    /// Warns on stderr of what is missing.
    pub fn warn(&self, done: &str) {
        if let LedgerContent::Elsewhere { place } = &self.ledger {
            eprintln!(
                "warning: {done} is not complete: DAG runs are in the ledger at {place}; copy that place after the \
                 backup was made, and restore both"
            );
        }
    }
}

/// Finds the ledger by the record that servers write, or in the directory of the store.
pub struct Finder {
    directory: Option<PathBuf>,
    noted: Option<Vec<u8>>,
}

impl Finder {
    /// The ledger of this store.
    pub fn new(store: &StoreUrl) -> Self {
        let directory = match store {
            StoreUrl::Embedded(directory) => Some(directory.join(FOLDER)),
            StoreUrl::Memory | StoreUrl::Postgres(_) => None,
        };
        Finder { directory, noted: None }
    }

    /// The stores of the ledger if they are directories; else where they are.
    fn stores(&self, place: &Place) -> Result<Option<Result<Stores, String>>, segno_stores::Error> {
        let log = match &place.url {
            Some(url) => url.clone(),
            None => match self.directory.as_deref().filter(|directory| has_entries(directory)) {
                Some(directory) => format!("file:{}", directory.display()),
                None => return Ok(None),
            },
        };
        let urls: Vec<&str> =
            [Some(log.as_str()), place.state_url.as_deref()].into_iter().flatten().collect();
        let is_there = |url: &&str| url.strip_prefix("file:").is_some_and(|path| Path::new(path).is_dir());
        if !urls.iter().all(is_there) {
            return Ok(Some(Err(urls.join(" and "))));
        }
        let open = |url: &str| Location { url, options: &[] }.open().map_err(of_ledger);
        let ledger = open(&log)?;
        let state = match &place.state_url {
            Some(url) => open(url)?,
            None => Arc::clone(&ledger),
        };
        Ok(Some(Ok(Stores { ledger, state })))
    }
}

/// Whether a directory has anything but what probes leave.
fn has_entries(directory: &Path) -> bool {
    let is_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().as_encoded_bytes() != PROBES.as_bytes())
    };
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.any(is_entry))
}

#[async_trait::async_trait]
impl FindLedger for Finder {
    fn see(&mut self, item: &ContentItem) {
        if let ContentItem::Record(record) = item
            && record.kind == PLACE
        {
            self.noted = Some(record.body.to_vec());
        }
    }

    async fn found(&mut self) -> Result<LedgerOrigin, segno_stores::Error> {
        let place = match &self.noted {
            Some(body) => match Place::of_record(body) {
                Ok(place) => place,
                Err(_) => return Ok(LedgerOrigin::Elsewhere("a place that a newer build noted".to_owned())),
            },
            None => Place { url: None, state_url: None },
        };
        Ok(match self.stores(&place)? {
            None => LedgerOrigin::None,
            Some(Err(elsewhere)) => LedgerOrigin::Elsewhere(elsewhere),
            Some(Ok(stores)) => LedgerOrigin::Source(Box::new(Source(stores))),
        })
    }
}

/// The ledger of the source.
struct Source(Stores);

#[async_trait::async_trait]
impl LedgerSource for Source {
    async fn send(&mut self, sink: &mut dyn LedgerSink) -> Result<(), segno_stores::Error> {
        let mut parts = Parts { sink, failed: None };
        let sent = transfer::send(&self.0, SystemClock::shared(), &mut parts).await;
        match parts.failed {
            // The target failed, not the ledger.
            Some(error) => Err(error),
            None => sent.map_err(of_ledger),
        }
    }
}

/// Hands the parts of a ledger on.
struct Parts<'s> {
    sink: &'s mut dyn LedgerSink,
    failed: Option<segno_stores::Error>,
}

#[async_trait::async_trait]
impl transfer::Sink for Parts<'_> {
    async fn put(&mut self, part: Part) -> Result<(), StorageError> {
        let part = match part {
            Part::Bytes { path, offset, is_last, bytes } => {
                LedgerPart::Bytes { path, offset, is_last, bytes }
            }
            Part::Dropped { path } => LedgerPart::Dropped { path },
        };
        self.sink.put(part).await.map_err(|error| {
            let failed = StorageError::new(error.kind(), "the copy", &error);
            self.failed = Some(error);
            failed
        })
    }
}

/// Where a ledger is put.
pub struct Target {
    receiver: Receiver,
    digest: LedgerDigest,
}

impl Target {
    /// An empty place for the ledger of a new store: where `--ledger` points, or the folder inside the directory of the store.
    ///
    /// # Errors
    /// When there is no such place, or it is not empty.
    pub async fn open(store: &StoreUrl, url: Option<&str>) -> Result<Self, Failure> {
        let place = match (url, store) {
            (Some(url), _) => url.to_owned(),
            (None, StoreUrl::Embedded(directory)) => {
                let folder = directory.join(FOLDER);
                // The store was empty, so this is left over from a command that was interrupted.
                match std::fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        let problem = format!("{}: {error}", folder.display());
                        return Err(ledger_failed(segno::store::ErrorKind::Unavailable, problem).into());
                    }
                    _ => format!("file:{}", folder.display()),
                }
            }
            (None, _) => return Err(Failure::Refused(format!("{store} {NO_PLACE}"))),
        };
        let opened = Location { url: &place, options: &[] }.open().map_err(of_ledger)?;
        let mut receiver = Receiver::new(opened, SystemClock::shared());
        receiver.check_is_empty().await.map_err(of_ledger)?;
        Ok(Target { receiver, digest: LedgerDigest::default() })
    }

    /// What was put.
    ///
    /// # Errors
    /// When the last object has no end.
    pub fn finish(self) -> Result<LedgerContent, Failure> {
        self.receiver.finish().map_err(of_ledger)?;
        Ok(self.digest.finish())
    }
}

const NO_PLACE: &str =
    "has no place for a ledger of its own; pass --ledger with an empty one, as in --ledger file:DIR";

/// Fails early if a ledger would have no place.
///
/// # Errors
/// When a target that has no directory is to get a ledger and no place was given.
pub fn check_place(ledger: &LedgerContent, store: &StoreUrl, url: Option<&str>) -> Result<(), Failure> {
    let needs_place = matches!(ledger, LedgerContent::Included { objects: 1.., .. });
    match (needs_place, url, store) {
        (true, None, StoreUrl::Postgres(_) | StoreUrl::Memory) => {
            Err(Failure::Refused(format!("{store} {NO_PLACE}")))
        }
        _ => Ok(()),
    }
}

#[async_trait::async_trait]
impl LedgerSink for Target {
    async fn put(&mut self, part: LedgerPart) -> Result<(), segno_stores::Error> {
        self.digest.add(&part);
        let part = match part {
            LedgerPart::Bytes { path, offset, is_last, bytes } => {
                Part::Bytes { path, offset, is_last, bytes }
            }
            LedgerPart::Dropped { path } => Part::Dropped { path },
        };
        transfer::Sink::put(&mut self.receiver, part).await.map_err(of_ledger)
    }
}

fn of_ledger(error: StorageError) -> segno_stores::Error {
    ledger_failed(error.kind(), error)
}
