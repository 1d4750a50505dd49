//! A consistent copy of a ledger while its compactors work: for each scope the newest manifest, the files that it names,
//! and every batch of the log that it has not joined.
//!
//! Batches are deleted as soon as a manifest names the segment that they were joined into, so the log is listed between
//! two looks at the newest manifest, until no segment was added in between. Files are kept for the grace period after a
//! newer manifest replaces them. If one is gone, the copy begins again with the newest manifest and sends only what it
//! has not sent; what the last manifest does not name is dropped at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::GetRange;
use object_store::path::Path;
use segno::clock::Clock;
use segno::store::ErrorKind;
use segno_actions::functions::Scope;

use super::{PART_BYTES, Part, Sink};
use crate::log::EVENTS;
use crate::manifest::limits::MAX_MANIFEST_BYTES;
use crate::manifest::{Catalog, Manifest, Manifests};
use crate::objects::{Listed, Objects, Paths, StorageError, Stores};

/// Tries of one scope. Each sends what the one before has not sent, so they become short quickly.
const TRIES: u32 = 200;

/// Sends a consistent copy of all scopes.
///
/// # Errors
/// `Unavailable` or `Corrupt` when something cannot be read, and those of the sink.
pub async fn send(stores: &Stores, clock: Arc<dyn Clock>, sink: &mut dyn Sink) -> Result<(), StorageError> {
    let objects = |store: &Arc<dyn object_store::ObjectStore>| Objects::new(Arc::clone(store), clock.clone());
    let (ledger, state) = (objects(&stores.ledger), objects(&stores.state));
    let mut scopes = scopes(&ledger).await?;
    let is_shared = Arc::ptr_eq(&stores.ledger, &stores.state);
    if !is_shared {
        scopes.extend(self::scopes(&state).await?);
    }
    for scope in scopes {
        let paths = Paths::new(scope);
        let manifests = Manifests::new(state.clone(), paths.clone());
        let mut copy = ScopeCopy {
            ledger: ledger.clone(),
            state: state.clone(),
            is_shared,
            paths,
            manifests,
            sent: BTreeSet::new(),
            published: None,
        };
        copy.send(sink).await?;
    }
    Ok(())
}

/// The scopes that have objects, by their folders. Folders that are no scopes are none of ours.
async fn scopes(objects: &Objects) -> Result<BTreeSet<Scope>, StorageError> {
    let mut scopes = BTreeSet::new();
    for tenant in objects.folders(None).await? {
        for namespace in objects.folders(Some(&tenant)).await? {
            let name = |path: &Path| Paths::name_of(path).to_owned();
            scopes.extend(Scope::new(&name(&namespace), &name(&tenant)).ok());
        }
    }
    Ok(scopes)
}

struct ScopeCopy {
    ledger: Objects,
    state: Objects,
    is_shared: bool,
    paths: Paths,
    manifests: Manifests,
    sent: BTreeSet<Path>,
    /// The manifest of the last try.
    published: Option<u64>,
}

/// What a copy has to have.
type Named = BTreeSet<Path>;

impl ScopeCopy {
    async fn send(&mut self, sink: &mut dyn Sink) -> Result<(), StorageError> {
        let mut tries = 0;
        let named = loop {
            tries += 1;
            match self.try_send(sink).await {
                Ok(Some(named)) => break named,
                Ok(None) if tries < TRIES => {}
                Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES => {}
                Ok(None) => {
                    let problem = format!("it changed {TRIES} times while it was copied; try again");
                    return Err(StorageError::new(ErrorKind::Unavailable, self.paths.manifests(), problem));
                }
                Err(error) => return Err(error),
            }
        };
        for path in self.sent.difference(&named) {
            sink.put(Part::Dropped { path: path.to_string() }).await?;
        }
        match self.published {
            Some(number) => self.point_to(number, sink).await,
            None => Ok(()),
        }
    }

    /// The copy of the newest manifest at its fixed name is made of the one that was sent: the one that is stored may be
    /// newer.
    async fn point_to(&self, number: u64, sink: &mut dyn Sink) -> Result<(), StorageError> {
        let path = self.paths.manifest(number);
        let Some(bytes) = self.state.get(&path, MAX_MANIFEST_BYTES).await? else {
            // It was deleted since; readers find the newest one without its copy, and the next fold writes it.
            return Ok(());
        };
        let path = self.paths.pointer().to_string();
        sink.put(Part::Bytes { path, offset: 0, is_last: true, bytes }).await
    }

    /// One try: everything that the copy has, or nothing if compactors were faster.
    async fn try_send(&mut self, sink: &mut dyn Sink) -> Result<Option<Named>, StorageError> {
        let manifest = self.manifests.newest(0).await?;
        let batches = self.ledger.list(&self.paths.log()).await?;
        let after = self.manifests.newest(manifest.as_ref().map_or(0, |one| one.manifest_id)).await?;
        let segments = |manifest: &Option<Manifest>| manifest.as_ref().map(|one| one.history.clone());
        if segments(&manifest) != segments(&after) {
            return Ok(None);
        }
        let mut named = Named::new();
        for batch in batches {
            self.send_object(&self.ledger.clone(), batch.path.clone(), sink).await?;
            named.insert(batch.path);
        }
        if let Some(published) = &manifest {
            let catalog = self.manifests.catalog(published).await?;
            let files = self.files_of(published, &catalog);
            for (objects, path) in files {
                self.send_object(&objects, path.clone(), sink).await?;
                named.insert(path);
            }
            // The manifest last: what it names is there.
            let path = self.paths.manifest(published.manifest_id);
            self.send_object(&self.state.clone(), path.clone(), sink).await?;
            named.insert(path);
        }
        self.published = manifest.map(|manifest| manifest.manifest_id);
        named.extend(self.send_others(sink).await?);
        Ok(Some(named))
    }

    /// The files and parts that a manifest names.
    fn files_of(&self, manifest: &Manifest, catalog: &Catalog) -> Vec<(Objects, Path)> {
        let files = catalog.files().map(|(table, file)| match table {
            EVENTS => (self.ledger.clone(), self.paths.segment(&file.path)),
            _ => (self.state.clone(), self.paths.state_file(&file.path)),
        });
        let base = manifest.base_snapshot.as_ref().map(|base| &base.part);
        let parts = base.into_iter().chain(&manifest.history).chain(catalog.month_parts.values());
        files.chain(parts.map(|part| (self.state.clone(), self.paths.part(&part.path)))).collect()
    }

    /// Objects that no manifest names: what was moved out of the log, and the archive.
    async fn send_others(&mut self, sink: &mut dyn Sink) -> Result<Named, StorageError> {
        let mut named = Named::new();
        let stores = match self.is_shared {
            true => vec![self.ledger.clone()],
            false => vec![self.ledger.clone(), self.state.clone()],
        };
        let ours = [self.paths.log(), self.paths.segments(), self.paths.state(), self.paths.manifests()];
        let ours = [ours.as_slice(), &[self.paths.parts()]].concat();
        for objects in stores {
            for Listed { path, .. } in objects.list(&self.paths.root()).await? {
                if path == self.paths.pointer() || ours.iter().any(|folder| path.prefix_matches(folder)) {
                    continue;
                }
                self.send_object(&objects, path.clone(), sink).await?;
                named.insert(path);
            }
        }
        Ok(named)
    }

    /// Sends an object, unless it was sent before: objects never change.
    async fn send_object(
        &mut self,
        objects: &Objects,
        path: Path,
        sink: &mut dyn Sink,
    ) -> Result<(), StorageError> {
        if self.sent.contains(&path) {
            return Ok(());
        }
        let gone = || StorageError::new(ErrorKind::NotFound, &path, "it was deleted");
        let size = objects.size(&path).await?.ok_or_else(gone)?;
        let mut offset = 0;
        loop {
            let end = size.min(offset + PART_BYTES);
            let range = GetRange::Bounded(offset..end);
            let bytes = match offset < end {
                true => objects.get_part(&path, range, PART_BYTES).await?.ok_or_else(gone)?,
                false => bytes::Bytes::new(),
            };
            let is_last = end == size;
            sink.put(Part::Bytes { path: path.to_string(), offset, is_last, bytes }).await?;
            if is_last {
                break;
            }
            offset = end;
        }
        self.sent.insert(path);
        Ok(())
    }
}
