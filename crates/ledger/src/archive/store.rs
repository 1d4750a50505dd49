//! The objects of the archive, the records that go with them, and the health of the last writes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;
use segno::clock::Clock;
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::file::{ArchivedFile, FileName};
use super::index::{FOLDER, IndexName, ListedIndex};
use super::kind::Kind;
use crate::objects::{Listed, Objects, Paths, StorageError};
use crate::telemetry;

/// Kind of the records that change with every write of a scope's archive.
const GENERATION: &str = "segno.archive-generation";

/// The archive. Cheap to clone.
#[derive(Clone)]
pub struct ArchiveStore {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) objects: Objects,
    pub(super) records: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    /// Records of doubt that this process wrote and has not settled.
    pub(super) unsettled: Mutex<Vec<String>>,
    trouble: Mutex<Option<Trouble>>,
}

/// Why writes fail, and since when.
#[derive(Debug, Clone)]
struct Trouble {
    since_ms: u64,
    reason: String,
}

/// Why the archive cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveFault {
    /// The object store, or a file in it.
    #[error("{0}")]
    Objects(#[from] StorageError),
    /// The store, which has the records of the archive.
    #[error("{0}")]
    Store(#[from] ProviderError),
}

impl ArchiveFault {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ArchiveFault::Objects(error) => error.kind(),
            ArchiveFault::Store(error) => error.kind(),
        }
    }
}

impl fmt::Debug for ArchiveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArchiveStore").field(&self.inner.objects).finish()
    }
}

impl ArchiveStore {
    /// An archive on an object store. What nodes have to know of each other is in records of the store.
    pub fn new(objects: Arc<dyn ObjectStore>, records: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let objects = Objects::new(objects, Arc::clone(&clock));
        telemetry::show_archive();
        ArchiveStore {
            inner: Arc::new(Inner {
                objects,
                records,
                clock,
                unsettled: Mutex::default(),
                trouble: Mutex::default(),
            }),
        }
    }

    /// Why the last write of this node failed, and since when writes fail; `None` when it was done.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let now_ms = self.inner.clock.now_ms();
        let seconds = now_ms.saturating_sub(trouble.since_ms) / 1_000;
        Some(format!("writes fail since {seconds} s: {}", trouble.reason))
    }

    /// Takes note of the outcome of a write.
    pub(super) fn note<T>(&self, outcome: &Result<T, ArchiveFault>) {
        let mut trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(_) => *trouble = None,
            Err(error) => {
                let since_ms = trouble.as_ref().map_or_else(|| self.inner.clock.now_ms(), |old| old.since_ms);
                *trouble = Some(Trouble { since_ms, reason: error.to_string() });
            }
        }
        metrics::gauge!(telemetry::ARCHIVE_FAILING).set(f64::from(u8::from(trouble.is_some())));
    }

    /// The files of a kind, those of the latest day first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn files(&self, scope: &Scope, kind: &Kind) -> Result<Vec<ArchivedFile>, ArchiveFault> {
        Ok(self.listed(scope, kind).await?.files)
    }

    /// The files of a kind that may have rows of an id, those of the latest day first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn files_of(
        &self,
        scope: &Scope,
        kind: &Kind,
        id: &str,
    ) -> Result<Vec<ArchivedFile>, ArchiveFault> {
        let ListedKind { files, indexes } = self.listed(scope, kind).await?;
        self.files_with(files, &indexes, id).await
    }

    /// The objects of a kind.
    pub(super) async fn listed(&self, scope: &Scope, kind: &Kind) -> Result<ListedKind, ArchiveFault> {
        let paths = Paths::new(scope.clone());
        let listed = self.inner.objects.list(&paths.archived(kind.name)).await?;
        let indexes = listed.iter().filter_map(index).collect();
        let mut files: Vec<ArchivedFile> = listed.into_iter().filter_map(file).collect();
        files.sort_by(|one, other| other.name.cmp(&one.name));
        Ok(ListedKind { files, indexes })
    }

    /// The scopes that have an archive.
    pub(super) async fn scopes(&self) -> Result<Vec<Scope>, ArchiveFault> {
        let objects = &self.inner.objects;
        let mut scopes = Vec::new();
        for tenant in objects.folders(None).await? {
            for workspace in objects.folders(Some(&tenant)).await? {
                let (tenant, workspace) = (Paths::name_of(&tenant), Paths::name_of(&workspace));
                scopes.extend(Scope::new(workspace, tenant).ok());
            }
        }
        Ok(scopes)
    }

    /// A number that is another one after rows of the scope came into the archive. Rows are deleted from the store only after it
    /// has changed.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn generation(&self, scope: &Scope) -> Result<u64, ArchiveFault> {
        let record = self.inner.records.get_record(GENERATION, &scope.id_prefix()).await?;
        Ok(record.map_or(0, |record| record.version))
    }

    pub(super) async fn raise_generation(&self, scope: &Scope) -> Result<(), ArchiveFault> {
        let write = RecordWrite::Put {
            kind: GENERATION.to_owned(),
            id: scope.id_prefix(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: bytes::Bytes::new(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        self.inner.records.commit_records(batch).await?;
        Ok(())
    }

    /// The path of a file.
    pub(super) fn path(scope: &Scope, kind: &Kind, name: &FileName) -> object_store::path::Path {
        Paths::new(scope.clone()).archived(&format!("{}/{name}", kind.name))
    }
}

/// The objects of a kind.
pub(super) struct ListedKind {
    /// Its files, those of the latest day first.
    pub(super) files: Vec<ArchivedFile>,
    /// Its indexes.
    pub(super) indexes: Vec<ListedIndex>,
}

/// What was listed, if it is an index of the archive.
fn index(Listed { path, bytes, .. }: &Listed) -> Option<ListedIndex> {
    let parts: Vec<_> = path.parts().collect();
    let [.., folder, name] = parts.as_slice() else { return None };
    let name = IndexName::parse(name.as_ref()).filter(|_| folder.as_ref() == FOLDER)?;
    Some(ListedIndex { path: path.clone(), name, bytes: *bytes })
}

/// What was listed, if it is a file of the archive.
fn file(Listed { path, bytes, .. }: Listed) -> Option<ArchivedFile> {
    let parts: Vec<_> = path.parts().collect();
    let [.., day, name] = parts.as_slice() else { return None };
    let name = FileName::parse(day.as_ref(), name.as_ref())?;
    Some(ArchivedFile { path, name, bytes })
}
