//! Finding the newest manifest, and publishing the next one.
//!
//! Numbers have no gaps above the oldest one that is kept, and only the number after the newest one
//! is ever written. So a reader that knows any recent number finds the newest one by trying the
//! following numbers, and a compactor whose epoch was overtaken finds the number taken by a
//! manifest with a higher epoch.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use segno::store::ErrorKind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::catalog::month_of;
use super::limits::{
    MAX_CATALOG_BYTES, MAX_FILES, MAX_MANIFEST_BYTES, MAX_MONTHS, MAX_NUMBER, MAX_PATH_BYTES,
};
use super::{Base, BaseSnapshot, Catalog, FileRef, History, Manifest, Month, MonthRef, Part, SCHEMA_VERSION};
use crate::objects::limits::CONCURRENT_CALLS;
use crate::objects::{Objects, Paths, Put, StorageError};

/// Numbers tried one after another before the folder is listed.
const PROBES: u64 = 16;

/// The outcome of publishing a manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is the newest.
    Published,
    /// Another compactor of the same epoch or a lower one was first; read again and fold again.
    Overtaken,
    /// A compactor of this higher epoch has taken over; stop.
    Fenced(u64),
}

/// The manifests of a scope.
#[derive(Debug, Clone)]
pub struct Manifests {
    objects: Objects,
    paths: Paths,
}

impl Manifests {
    /// The manifests of a scope, in the store of folded state.
    pub fn new(objects: Objects, paths: Paths) -> Self {
        Manifests { objects, paths }
    }

    /// The newest manifest, if there is one; `known` is a number that was the newest at some time,
    /// or 0.
    ///
    /// # Errors
    /// `Unavailable`, or `Corrupt` when it cannot be read.
    pub async fn newest(&self, known: u64) -> Result<Option<Manifest>, StorageError> {
        let mut found = None;
        let mut next = match known {
            0 => self.pointed().await?.unwrap_or(1),
            known => known,
        };
        for _ in 0..PROBES {
            match self.read(next).await? {
                Some(manifest) => found = Some(manifest),
                // The pointer may name one that is deleted already; then the folder has the newest.
                None if found.is_none() => break,
                None => return Ok(found),
            }
            next += 1;
        }
        match self.listed().await?.last() {
            Some(last) if found.as_ref().is_none_or(|found| found.manifest_id < *last) => {
                Box::pin(self.newest(*last)).await
            }
            _ => Ok(found),
        }
    }

    /// The numbers of all manifests that are there, the oldest first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn listed(&self) -> Result<Vec<u64>, StorageError> {
        let listed = self.objects.list(&self.paths.manifests()).await?;
        // An object with another name is no manifest, and cannot be read as the one with its number.
        let number = |path: &Path| {
            let number = Paths::name_of(path).strip_suffix(".json")?.parse::<u64>().ok()?;
            (number <= MAX_NUMBER && *path == self.paths.manifest(number)).then_some(number)
        };
        Ok(listed.iter().filter_map(|listed| number(&listed.path)).collect())
    }

    /// The number that the pointer copy has. It may be older than the newest one.
    async fn pointed(&self) -> Result<Option<u64>, StorageError> {
        let path = self.paths.pointer();
        let Some(bytes) = self.objects.get(&path, MAX_MANIFEST_BYTES).await? else { return Ok(None) };
        // It is a hint: if it cannot be read, the folder is listed.
        let number = parse::<Manifest>(&path, &bytes).ok().map(|manifest| manifest.manifest_id);
        Ok(number.filter(|number| *number <= MAX_NUMBER))
    }

    /// The manifest with a number.
    ///
    /// # Errors
    /// `Unavailable`, or `Corrupt` when it cannot be read.
    pub async fn read(&self, number: u64) -> Result<Option<Manifest>, StorageError> {
        let path = self.paths.manifest(number);
        let Some(bytes) = self.objects.get(&path, MAX_MANIFEST_BYTES).await? else { return Ok(None) };
        let manifest: Manifest = parse(&path, &bytes)?;
        if manifest.manifest_id != number {
            return Err(StorageError::corrupt(&path, format!("it says that it is {}", manifest.manifest_id)));
        }
        if manifest.schema_version > SCHEMA_VERSION {
            let version = manifest.schema_version;
            let problem = format!(
                "it has schema version {version}; this version of Segno reads up to {SCHEMA_VERSION}"
            );
            return Err(StorageError::new(ErrorKind::Invalid, &path, problem));
        }
        Ok(Some(manifest))
    }

    /// A manifest with all its parts.
    ///
    /// # Errors
    /// `NotFound` when a part was deleted, because the manifest is no longer the newest; `Corrupt`,
    /// `Unavailable`.
    pub async fn catalog(&self, manifest: &Manifest) -> Result<Catalog, StorageError> {
        self.catalog_after(manifest, None).await
    }

    /// The same with the parts of an earlier manifest that this one still names: a fold that moves nothing into day partitions
    /// costs a reader the manifest alone, however many partitions there are.
    ///
    /// # Errors
    /// As [`Manifests::catalog`].
    pub async fn catalog_after(
        &self,
        manifest: &Manifest,
        earlier: Option<(&Manifest, &Catalog)>,
    ) -> Result<Catalog, StorageError> {
        let mut catalog = Catalog { deltas: manifest.l0_deltas.clone(), ..Catalog::default() };
        if let Some(base) = &manifest.base_snapshot {
            let known = earlier.filter(|(earlier, _)| earlier.base_snapshot.as_ref() == Some(base));
            catalog.base = match known {
                Some((_, earlier)) => earlier.base.clone(),
                None => self.read_part::<Base>(&base.part).await?,
            };
        }
        if let Some(history) = &manifest.history {
            let known = earlier.filter(|(earlier, _)| earlier.history.as_ref() == Some(history));
            match known {
                Some((_, earlier)) => {
                    catalog.months.clone_from(&earlier.months);
                    catalog.month_parts.clone_from(&earlier.month_parts);
                }
                None => {
                    self.read_months(manifest, history, &mut catalog, earlier.map(|(_, earlier)| earlier))
                        .await?
                }
            }
        }
        check(&self.paths.manifest(manifest.manifest_id), &catalog, earlier.map(|(_, earlier)| earlier))?;
        Ok(catalog)
    }

    /// Reads the lists of day partitions that an earlier catalog does not have.
    async fn read_months(
        &self,
        manifest: &Manifest,
        history: &Part,
        catalog: &mut Catalog,
        earlier: Option<&Catalog>,
    ) -> Result<(), StorageError> {
        let months = self.read_part::<History>(history).await?.months;
        self.check_sizes(manifest, history, &months)?;
        let known = |month: &MonthRef| {
            let earlier =
                earlier.filter(|earlier| earlier.month_parts.get(&month.month) == Some(&month.part))?;
            earlier.months.get(&month.month).cloned()
        };
        // Collected first: a stream of borrowing closures is not known to be `Send`.
        let parts: Vec<_> = months.iter().map(|month| self.month(&month.part, known(month))).collect();
        let parts: Vec<Arc<Month>> = stream::iter(parts).buffered(CONCURRENT_CALLS).try_collect().await?;
        catalog.months = months.iter().map(|month| month.month.clone()).zip(parts).collect();
        catalog.month_parts = months.into_iter().map(|month| (month.month, month.part)).collect();
        Ok(())
    }

    async fn month(&self, part: &Part, known: Option<Arc<Month>>) -> Result<Arc<Month>, StorageError> {
        match known {
            Some(known) => Ok(known),
            None => self.read_part::<Month>(part).await.map(Arc::new),
        }
    }

    /// Parts are kept in memory together, so what they claim is added up before any of them is read.
    fn check_sizes(
        &self,
        manifest: &Manifest,
        history: &Part,
        months: &[MonthRef],
    ) -> Result<(), StorageError> {
        let base = manifest.base_snapshot.as_ref().map_or(0, |base| base.part.bytes);
        let months_bytes = months.iter().map(|month| month.part.bytes);
        let bytes = months_bytes.fold(base.saturating_add(history.bytes), u64::saturating_add);
        if months.len() > MAX_MONTHS || bytes > MAX_CATALOG_BYTES {
            let problem = format!(
                "its parts have {bytes} bytes in {} months; at most {MAX_CATALOG_BYTES} bytes in {MAX_MONTHS} months are read",
                months.len()
            );
            return Err(StorageError::corrupt(self.paths.manifest(manifest.manifest_id), problem));
        }
        Ok(())
    }

    async fn read_part<T: DeserializeOwned>(&self, part: &Part) -> Result<T, StorageError> {
        check_path(&self.paths.parts(), &part.path)?;
        let path = self.paths.part(&part.path);
        let bytes = self.objects.get(&path, part.bytes.min(MAX_MANIFEST_BYTES)).await?;
        let bytes = bytes.ok_or_else(|| StorageError::new(ErrorKind::NotFound, &path, "it was deleted"))?;
        if sha256(&bytes) != part.sha256 {
            return Err(StorageError::corrupt(&path, "its SHA-256 is not the one that its manifest has"));
        }
        parse(&path, &bytes)
    }

    /// Writes the parts of a catalog that changed, and names them in the manifest. The result is
    /// the paths of parts that it no longer names.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn put_parts(
        &self,
        manifest: &mut Manifest,
        catalog: &mut Catalog,
        token: &str,
    ) -> Result<Vec<String>, StorageError> {
        let number = manifest.manifest_id;
        let name = |kind: &str| format!("{number:020}-{kind}-{token}.json");
        let mut superseded = Vec::new();
        if catalog.base_changed {
            let part = self.put_part(name("base"), &catalog.base).await?;
            let (snapshot_id, published_at) = (format!("{number:020}"), manifest.published_at);
            let old = manifest.base_snapshot.replace(BaseSnapshot { snapshot_id, published_at, part });
            superseded.extend(old.map(|old| old.part.path));
        }
        if catalog.months_changed.is_empty() {
            return Ok(superseded);
        }
        for month in &catalog.months_changed {
            let days = catalog.months.get(month).filter(|days| !days.days.is_empty());
            let old = match days {
                Some(days) => {
                    let part = self.put_part(name(month), &**days).await?;
                    catalog.month_parts.insert(month.clone(), part)
                }
                None => catalog.month_parts.remove(month),
            };
            superseded.extend(old.map(|old| old.path));
        }
        let month = |(month, part): (&String, &Part)| MonthRef { month: month.clone(), part: part.clone() };
        let history = History { months: catalog.month_parts.iter().map(month).collect() };
        let old = manifest.history.replace(self.put_part(name("history"), &history).await?);
        superseded.extend(old.map(|old| old.path));
        Ok(superseded)
    }

    async fn put_part<T: Serialize>(&self, path: String, part: &T) -> Result<Part, StorageError> {
        let bytes = encode(part);
        let part = Part { path, sha256: sha256(&bytes), bytes: bytes.len() as u64 };
        let path = self.paths.part(&part.path);
        match self.objects.put_new(&path, bytes).await? {
            Put::Done => Ok(part),
            Put::Taken => Err(StorageError::corrupt(&path, "another object has its name")),
        }
    }
    /// Publishes a manifest: it becomes the newest, or nothing changes.
    ///
    /// A number that was published and deleted since is absent again, and a compactor that stood still
    /// for so long could take it. Manifests are deleted in order, so the number was never published
    /// if the one before it is still there after the put.
    ///
    /// # Errors
    /// `Unavailable` when the outcome is unknown: read the newest manifest again.
    pub async fn publish(&self, manifest: &Manifest) -> Result<Outcome, StorageError> {
        let number = manifest.manifest_id;
        let path = self.paths.manifest(number);
        let put = self.objects.put_new(&path, encode(manifest)).await?;
        if put == Put::Done && self.is_successor(number).await? {
            return Ok(Outcome::Published);
        }
        let known = if put == Put::Done { number.saturating_sub(1) } else { number };
        let winner = self.newest(known).await?;
        match winner.map(|winner| winner.epoch) {
            Some(epoch) if epoch > manifest.epoch => Ok(Outcome::Fenced(epoch)),
            _ => Ok(Outcome::Overtaken),
        }
    }

    /// Whether the manifest before this number is there; for the first, whether no later one is.
    async fn is_successor(&self, number: u64) -> Result<bool, StorageError> {
        match number {
            0 | 1 => Ok(self.listed().await?.iter().all(|other| *other <= number)),
            _ => self.objects.exists(&self.paths.manifest(number - 1)).await,
        }
    }

    /// Copies a manifest to the fixed name. Two compactors may leave an older one there, so readers
    /// take it as a hint.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn point_to(&self, manifest: &Manifest) -> Result<(), StorageError> {
        self.objects.put_over(&self.paths.pointer(), encode(manifest)).await
    }
}

fn encode<T: Serialize>(value: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("manifests have text keys only"))
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &Bytes) -> Result<T, StorageError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StorageError::corrupt(path, format!("not a manifest: {error}")))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A catalog from outside: no path leaves its folder, pieces are in order, deltas are numbered. Months that an earlier catalog
/// has were checked with it.
fn check(manifest: &Path, catalog: &Catalog, earlier: Option<&Catalog>) -> Result<(), StorageError> {
    let is_checked = |month: &str, days: &Arc<Month>| {
        let known = earlier.and_then(|earlier| earlier.months.get(month));
        known.is_some_and(|known| Arc::ptr_eq(known, days))
    };
    let unchecked = catalog.months.iter().filter(|(month, days)| !is_checked(month, days));
    let unchecked = Catalog {
        base: catalog.base.clone(),
        deltas: catalog.deltas.clone(),
        months: unchecked.map(|(month, days)| (month.clone(), Arc::clone(days))).collect(),
        ..Catalog::default()
    };
    let files = catalog.files().count();
    let catalog = &unchecked;
    for (_, file) in catalog.files() {
        check_file(manifest, file)?;
    }
    if files > MAX_FILES {
        return Err(StorageError::corrupt(manifest, format!("it names more than {MAX_FILES} files")));
    }
    let ascends = |mut sequences: Box<dyn Iterator<Item = u64> + '_>| {
        let mut last = None;
        sequences.all(|sequence| last.replace(sequence).is_none_or(|last| last < sequence))
    };
    let deltas = catalog.deltas.iter().map(|delta| delta.delta_id.parse().unwrap_or(0));
    let groups =
        catalog.groups().all(|(_, pieces)| ascends(Box::new(pieces.iter().map(|piece| piece.sequence))));
    let days = catalog.months.iter().all(|(month, days)| days.days.keys().all(|day| month_of(day) == month));
    if !groups || !ascends(Box::new(deltas)) || !days {
        return Err(StorageError::corrupt(manifest, "its pieces are not in order"));
    }
    Ok(())
}

fn check_file(manifest: &Path, file: &FileRef) -> Result<(), StorageError> {
    check_path(manifest, &file.path)
}

fn check_path(named_by: &Path, path: &str) -> Result<(), StorageError> {
    let is_plain = |segment: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=');
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(known)
    };
    if path.len() <= MAX_PATH_BYTES && path.split('/').all(is_plain) {
        return Ok(());
    }
    let path: String = path.chars().take(100).collect();
    Err(StorageError::corrupt(named_by, format!("it names {path:?}, which is not a path below its folder")))
}
