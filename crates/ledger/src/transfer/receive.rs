//! An empty object store, filled from the parts of a copy. Each object is read back and compared before the next one.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use segno::clock::Clock;
use segno::store::ErrorKind;
use sha2::{Digest, Sha256};

use super::{Part, Sink};
use crate::objects::{Objects, Paths, StorageError};

/// Fills an object store.
pub struct Receiver {
    store: Arc<dyn ObjectStore>,
    objects: Objects,
    writing: Option<Writing>,
    received: Received,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Objects that stay.
    pub objects: u64,
    /// Their bytes, those of dropped ones included.
    pub bytes: u64,
}

/// An object that has more than one part.
struct Writing {
    path: Path,
    upload: Box<dyn MultipartUpload>,
    digest: Sha256,
    bytes: u64,
}

impl Receiver {
    /// Fills this store.
    pub fn new(store: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>) -> Self {
        let objects = Objects::new(Arc::clone(&store), clock);
        Receiver { store, objects, writing: None, received: Received::default() }
    }

    /// Fails if there is anything in the store.
    ///
    /// # Errors
    /// `Conflict` if there is, `Unavailable` when it cannot be listed.
    pub async fn check_is_empty(&mut self) -> Result<(), StorageError> {
        let found = self.objects.first().await?;
        match found {
            Some(path) => {
                let problem = "is there already; choose an empty place for the ledger";
                Err(StorageError::new(ErrorKind::Conflict, path, problem))
            }
            None => Ok(()),
        }
    }

    /// What was written, once all parts were taken.
    ///
    /// # Errors
    /// `Corrupt` when an object has no end.
    pub fn finish(self) -> Result<Received, StorageError> {
        match self.writing {
            Some(writing) => Err(StorageError::corrupt(writing.path, "it has no end")),
            None => Ok(self.received),
        }
    }

    async fn put_whole(&mut self, path: Path, bytes: Bytes) -> Result<(), StorageError> {
        let (digest, length) = (Sha256::digest(&bytes), bytes.len() as u64);
        self.objects.put_over(&path, bytes).await?;
        self.verify(&path, digest.as_slice(), length).await
    }

    async fn begin(&mut self, path: Path, bytes: Bytes) -> Result<(), StorageError> {
        let failed = failed(&path);
        let upload = self.store.put_multipart(&path).await.map_err(failed)?;
        self.writing = Some(Writing { path, upload, digest: Sha256::new(), bytes: 0 });
        self.go_on(bytes, false).await
    }

    async fn go_on(&mut self, bytes: Bytes, is_last: bool) -> Result<(), StorageError> {
        let Some(mut writing) = self.writing.take() else { return Ok(()) };
        writing.digest.update(&bytes);
        writing.bytes += bytes.len() as u64;
        let written = writing.upload.put_part(PutPayload::from_bytes(bytes)).await;
        written.map_err(failed(&writing.path))?;
        if !is_last {
            self.writing = Some(writing);
            return Ok(());
        }
        writing.upload.complete().await.map_err(failed(&writing.path))?;
        self.verify(&writing.path, writing.digest.finalize().as_slice(), writing.bytes).await
    }

    /// Reads an object back.
    async fn verify(&mut self, path: &Path, digest: &[u8], length: u64) -> Result<(), StorageError> {
        let result = self.store.get(path).await.map_err(failed(path))?;
        let mut chunks = result.into_stream();
        let mut found = Sha256::new();
        while let Some(chunk) = chunks.try_next().await.map_err(failed(path))? {
            found.update(&chunk);
        }
        if found.finalize().as_slice() != digest {
            return Err(StorageError::corrupt(path, "what was read back is not what was written"));
        }
        self.received.objects += 1;
        self.received.bytes += length;
        Ok(())
    }
}

fn failed(path: &Path) -> impl Fn(object_store::Error) -> StorageError + use<> {
    let path = path.clone();
    move |error| StorageError::new(ErrorKind::Unavailable, &path, error)
}

/// The path of a part, which may come from a file of others.
fn checked(path: &str) -> Result<Path, StorageError> {
    let parsed = Path::parse(path).ok().filter(|parsed| parsed.parts_count() > 2 && parsed.as_ref() == path);
    parsed.filter(|path| !Paths::name_of(path).is_empty()).ok_or_else(|| {
        let path: String = path.chars().take(100).collect();
        StorageError::corrupt(format!("{path:?}"), "is not the path of an object of a ledger")
    })
}

#[async_trait]
impl Sink for Receiver {
    async fn put(&mut self, part: Part) -> Result<(), StorageError> {
        match part {
            Part::Dropped { path } => {
                self.objects.delete(&checked(&path)?).await?;
                self.received.objects = self.received.objects.saturating_sub(1);
                Ok(())
            }
            Part::Bytes { path, offset, is_last, bytes } => {
                let path = checked(&path)?;
                let expected = self.writing.as_ref().map_or(0, |writing| writing.bytes);
                let is_next = self.writing.as_ref().is_none_or(|writing| writing.path == path);
                if !is_next || offset != expected {
                    return Err(StorageError::corrupt(path, "its parts are not in order"));
                }
                match (self.writing.is_some(), is_last) {
                    (true, is_last) => self.go_on(bytes, is_last).await,
                    (false, true) => self.put_whole(path, bytes).await,
                    (false, false) => self.begin(path, bytes).await,
                }
            }
        }
    }
}
