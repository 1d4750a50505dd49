//! Calls to an object store whose outcome is known when they return.
//!
//! A put that timed out may have been done, or may still be done. All objects but the pointer copy
//! are immutable and put if absent, so the answer to an unknown outcome is to put again: "exists
//! already" with the same bytes is a success.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use segno::clock::Clock;
use segno::store::ErrorKind;

use super::StorageError;
use super::limits::{ATTEMPTS, FIRST_WAIT_MS};

/// An object that a listing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub path: Path,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written, in Unix milliseconds of the store's clock.
    pub written_at_ms: i64,
}

/// The outcome of a put if absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// The object is there with these bytes, written by this call or an earlier one.
    Done,
    /// An object with other bytes was there first.
    Taken,
}

/// One store, with retries.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Objects").field(&self.store.to_string()).finish()
    }
}

impl Objects {
    /// Calls to this store; waits between tries are on this clock.
    pub fn new(store: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>) -> Self {
        Objects { store, clock }
    }

    /// The bytes of an object; nothing if there is none.
    ///
    /// # Errors
    /// `Unavailable` after retries, `Corrupt` when it is larger than the limit.
    pub async fn get(&self, path: &Path, max_bytes: u64) -> Result<Option<Bytes>, StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            match self.try_get(path, GetOptions::default(), max_bytes).await {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Failed::Store(Error::NotFound { .. })) => return Ok(None),
                Err(error) => tries.wait(error).await?,
            }
        }
    }

    /// A part of an object; nothing if there is no such object.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn get_part(
        &self,
        path: &Path,
        part: GetRange,
        max_bytes: u64,
    ) -> Result<Option<Bytes>, StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            let options = GetOptions { range: Some(part.clone()), ..GetOptions::default() };
            match self.try_get(path, options, max_bytes).await {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Failed::Store(Error::NotFound { .. })) => return Ok(None),
                Err(error) => tries.wait(error).await?,
            }
        }
    }

    async fn try_get(&self, path: &Path, options: GetOptions, max_bytes: u64) -> Result<Bytes, Failed> {
        let result = self.store.get_opts(path, options).await?;
        let expected = result.range.end - result.range.start;
        if expected > max_bytes {
            return Err(Failed::TooLarge(expected, max_bytes));
        }
        let mut chunks = result.into_stream();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = chunks.try_next().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > expected {
                break;
            }
        }
        if bytes.len() as u64 != expected {
            return Err(Failed::Truncated(bytes.len() as u64, expected));
        }
        Ok(bytes.freeze())
    }

    /// Whether there is an object.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            match self.store.head(path).await {
                Ok(_) => return Ok(true),
                Err(Error::NotFound { .. }) => return Ok(false),
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// The size of an object in bytes; nothing if there is none.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn size(&self, path: &Path) -> Result<Option<u64>, StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            match self.store.head(path).await {
                Ok(meta) => return Ok(Some(meta.size)),
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// The folders in a folder, or at the root, in the order of their names.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn folders(&self, folder: Option<&Path>) -> Result<Vec<Path>, StorageError> {
        let root = Path::default();
        let mut tries = Tries::new(self, folder.unwrap_or(&root));
        loop {
            match self.store.list_with_delimiter(folder).await {
                Ok(mut listed) => {
                    listed.common_prefixes.sort();
                    return Ok(listed.common_prefixes);
                }
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// Any object of the store.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn first(&self) -> Result<Option<Path>, StorageError> {
        let root = Path::default();
        let mut tries = Tries::new(self, &root);
        loop {
            match self.store.list(None).try_next().await {
                Ok(found) => return Ok(found.map(|meta| meta.location)),
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// Puts an object if there is none. Putting the same bytes again is a success.
    ///
    /// # Errors
    /// `Unavailable` after retries: the object may still appear.
    pub async fn put_new(&self, path: &Path, bytes: Bytes) -> Result<Put, StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.store.put_opts(path, PutPayload::from_bytes(bytes.clone()), options).await {
                Ok(_) => return Ok(Put::Done),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                    // Some stores answer a conflict of two puts under way so, and have neither.
                    match self.get(path, u64::MAX).await? {
                        Some(there) if there == bytes => return Ok(Put::Done),
                        Some(_) => return Ok(Put::Taken),
                        None => tries.wait(Failed::Conflict).await?,
                    }
                }
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// Puts an object over what is there.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn put_over(&self, path: &Path, bytes: Bytes) -> Result<(), StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            match self.store.put(path, PutPayload::from_bytes(bytes.clone())).await {
                Ok(_) => return Ok(()),
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// Deletes an object; one that is not there is deleted.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn delete(&self, path: &Path) -> Result<(), StorageError> {
        let mut tries = Tries::new(self, path);
        loop {
            match self.store.delete(path).await {
                Ok(()) | Err(Error::NotFound { .. }) => return Ok(()),
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }

    /// Everything below a folder, in the order of the names.
    ///
    /// # Errors
    /// `Unavailable` after retries.
    pub async fn list(&self, folder: &Path) -> Result<Vec<Listed>, StorageError> {
        let mut tries = Tries::new(self, folder);
        loop {
            let listed = self.store.list(Some(folder)).map_ok(|meta| Listed {
                bytes: meta.size,
                written_at_ms: meta.last_modified.timestamp_millis(),
                path: meta.location,
            });
            match listed.collect::<Vec<_>>().await.into_iter().collect::<Result<Vec<Listed>, Error>>() {
                Ok(mut listed) => {
                    listed.sort_by(|a, b| a.path.cmp(&b.path));
                    return Ok(listed);
                }
                // A file that is deleted while its folder is read.
                Err(error) => tries.wait(error.into()).await?,
            }
        }
    }
}

/// How one try failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("{0} of {1} bytes arrived")]
    Truncated(u64, u64),
    #[error("it has {0} bytes; at most {1} are read")]
    TooLarge(u64, u64),
    #[error("another put of it was under way")]
    Conflict,
}

/// The tries of one call.
struct Tries<'a> {
    objects: &'a Objects,
    path: &'a Path,
    made: u32,
}

impl<'a> Tries<'a> {
    fn new(objects: &'a Objects, path: &'a Path) -> Self {
        Tries { objects, path, made: 0 }
    }

    /// Waits before the next try; fails if there is none.
    async fn wait(&mut self, failed: Failed) -> Result<(), StorageError> {
        let kind = match &failed {
            Failed::TooLarge(..) => ErrorKind::Corrupt,
            Failed::Store(
                Error::NotSupported { .. } | Error::NotImplemented { .. } | Error::InvalidPath { .. },
            ) => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        };
        self.made += 1;
        // Credentials that are refused now are refused a moment later, too.
        let is_refused =
            matches!(&failed, Failed::Store(Error::PermissionDenied { .. } | Error::Unauthenticated { .. }));
        if kind != ErrorKind::Unavailable || is_refused || self.made >= ATTEMPTS {
            return Err(StorageError::new(kind, self.path, failed));
        }
        let wait_ms = FIRST_WAIT_MS << (2 * (self.made - 1));
        segno::clock::sleep(self.objects.clock.as_ref(), std::time::Duration::from_millis(wait_ms)).await;
        Ok(())
    }
}
