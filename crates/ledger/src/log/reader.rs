//! What waits in the log. Folded batches are joined and deleted, so the folder is short whatever
//! happened before, and it is listed in full: a batch that arrives late, below the watermark, is
//! found like any other.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use segno::store::ErrorKind;

use super::batch::{Event, decode};
use super::limits::{FOLD_BATCHES, FOLD_BYTES, MAX_BATCH_BYTES};
use crate::ids::Ulid;
use crate::objects::limits::CONCURRENT_CALLS;
use crate::objects::{Listed, Objects, Paths, StorageError};

/// Batches that wait to be folded, by their first ids.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Waiting {
    /// Those that the next fold takes, in the order of their ids.
    pub batches: Vec<Ulid>,
    /// Whether there are more.
    pub has_more: bool,
    /// Objects that are no batches: their names or sizes say so.
    pub foreign: Vec<Path>,
    /// Batches that are folded and still there.
    pub present: BTreeSet<Ulid>,
}

/// Reads the log of a scope.
#[derive(Debug, Clone)]
pub struct LogReader {
    objects: Objects,
    paths: Paths,
}

/// One batch that was fetched.
pub(crate) enum Fetched {
    /// Its events.
    Events(Ulid, Vec<Event>),
    /// It breaks a rule.
    Broken(Path, String),
    /// It is gone: another compactor has joined it.
    Gone,
}

impl LogReader {
    /// A reader of a scope, in the store of the log.
    pub fn new(objects: Objects, paths: Paths) -> Self {
        LogReader { objects, paths }
    }

    /// What waits, given the batches that are folded and may still be in the folder.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn waiting(&self, folded: &BTreeSet<Ulid>) -> Result<Waiting, StorageError> {
        let listed = self.objects.list(&self.paths.log()).await?;
        let (mut waiting, mut bytes) = (Waiting::default(), 0);
        for object in listed {
            match self.first_id(&object) {
                None => waiting.foreign.push(object.path),
                Some(first) if folded.contains(&first) => drop(waiting.present.insert(first)),
                Some(first) => {
                    bytes += object.bytes;
                    let fits = waiting.batches.len() < FOLD_BATCHES && bytes <= FOLD_BYTES;
                    if waiting.has_more || !(fits || waiting.batches.is_empty()) {
                        waiting.has_more = true;
                    } else {
                        waiting.batches.push(first);
                    }
                }
            }
        }
        Ok(waiting)
    }

    /// The id that the name of a batch has, if the object can be one.
    fn first_id(&self, object: &Listed) -> Option<Ulid> {
        let first: Ulid = Paths::name_of(&object.path).strip_suffix(".json")?.parse().ok()?;
        (object.path == self.paths.batch(first) && object.bytes <= MAX_BATCH_BYTES as u64).then_some(first)
    }

    /// Fetches batches, several at a time; the result is in the order of the ids.
    pub(crate) async fn fetch(&self, batches: &[Ulid]) -> Result<Vec<Fetched>, StorageError> {
        // Collected first: a stream of borrowing closures is not known to be `Send`.
        let fetches: Vec<_> = batches.iter().map(|first| self.fetch_one(*first)).collect();
        stream::iter(fetches).buffered(CONCURRENT_CALLS).try_collect().await
    }

    async fn fetch_one(&self, first: Ulid) -> Result<Fetched, StorageError> {
        let path = self.paths.batch(first);
        let Some(bytes) = self.objects.get(&path, MAX_BATCH_BYTES as u64).await? else {
            return Ok(Fetched::Gone);
        };
        Ok(match decode(&self.paths, first, &bytes) {
            Ok(events) => Fetched::Events(first, events),
            Err(problem) => Fetched::Broken(path, problem),
        })
    }

    /// Moves an object that is no batch out of the folder, so that it is not listed again and is
    /// kept for people to look at. A crash between copy and deletion repeats the copy.
    pub(crate) async fn quarantine(&self, path: &Path) -> Result<(), StorageError> {
        let relative = path.as_ref().strip_prefix(self.paths.log().as_ref()).unwrap_or_default();
        let name = relative.trim_start_matches('/').replace('/', "_");
        let target = self.paths.quarantine(&name);
        // One that is too large to copy stays where it is; it is reported at every fold.
        if let Some(bytes) = self.objects.get(path, 4 * MAX_BATCH_BYTES as u64).await? {
            self.objects.put_over(&target, bytes).await?;
        }
        self.objects.delete(path).await
    }

    /// The bytes of a segment.
    pub(crate) async fn segment(&self, name: &str) -> Result<Bytes, StorageError> {
        let path = self.paths.segment(name);
        let bytes = self.objects.get(&path, crate::columnar::limits::MAX_FILE_BYTES).await?;
        bytes.ok_or_else(|| StorageError::new(ErrorKind::NotFound, &path, "it was deleted"))
    }
}
