//! Indexes by id: which files may have an id, so that a lookup opens those and no others.
//!
//! An index is an object beside the files of a kind. It names files by their digests and has an
//! entry for each id of each of them: the beginning of the SHA-256 of the id, and the number of the
//! file. Entries are sorted, so a lookup in a large index reads its head and one stretch of
//! entries. A file that no index names is opened: an index saves reads and decides nothing.
//!
//! ```text
//! "SEGNOIX1" | files: u32 | stretches: u32 | entries: u64            integers are big-endian
//! files     × digest of the file: 16 bytes
//! stretches × smallest hash: u64 | beginning of the SHA-256 of the stretch: 8 bytes
//! beginning of the SHA-256 of all of that: 8 bytes
//! entries   × hash of the id: u64 | number of the file: u32
//! ```

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::GetRange;
use object_store::path::Path;
use segno_actions::functions::Scope;
use sha2::{Digest, Sha256};

use super::file::ArchivedFile;
use super::kind::{Kind, text};
use super::limits::{CONCURRENT_FILES, MAX_INDEX_ENTRIES, STRETCH_ENTRIES, WHOLE_INDEX_BYTES};
use super::store::{ArchiveFault, ArchiveStore};
use crate::manifest::sha256;
use crate::objects::{Paths, Put, StorageError};

const MAGIC: &[u8; 8] = b"SEGNOIX1";
const COUNTS_BYTES: usize = 24;
const DIGEST_BYTES: usize = 16;
const FENCE_BYTES: usize = 16;
const CHECK_BYTES: usize = 8;
const ENTRY_BYTES: usize = 12;

/// The folder of the indexes of a kind, below that of the kind.
pub(super) const FOLDER: &str = "index";

/// The name of an index: how large its parts are, so that one read has the head, and the digest of
/// its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexName {
    files: usize,
    entries: usize,
    digest: String,
}

impl IndexName {
    /// The name of an object in the folder of indexes; `None` for what is no index.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".index")?.split('-');
        let (files, entries) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let digest = parts.next().filter(|digest| parts.next().is_none() && raw_digest(digest).is_some())?;
        (entries <= MAX_INDEX_ENTRIES && files <= MAX_INDEX_ENTRIES).then(|| IndexName {
            files,
            entries,
            digest: digest.to_owned(),
        })
    }

    fn stretches(&self) -> usize {
        self.entries.div_ceil(STRETCH_ENTRIES)
    }

    fn head_bytes(&self) -> usize {
        COUNTS_BYTES + self.files * DIGEST_BYTES + self.stretches() * FENCE_BYTES + CHECK_BYTES
    }

    fn bytes(&self) -> usize {
        self.head_bytes() + self.entries * ENTRY_BYTES
    }
}

impl fmt::Display for IndexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}.index", self.files, self.entries, self.digest)
    }
}

/// An index that was listed.
#[derive(Debug, Clone)]
pub(super) struct ListedIndex {
    pub(super) path: Path,
    pub(super) name: IndexName,
    /// Its size.
    pub(super) bytes: u64,
}

impl ListedIndex {
    fn is_whole(&self) -> bool {
        self.bytes == self.name.bytes() as u64
    }
}

/// The beginning of an index.
struct Head {
    /// Digests of the files, in hexadecimal, by number.
    files: Vec<String>,
    /// The smallest hash of each stretch, and the beginning of its digest.
    fences: Vec<(u64, u64)>,
}

/// What an index has about an id.
struct Answer {
    covered: HashSet<String>,
    hits: HashSet<String>,
}

/// An index as a whole.
#[derive(Debug, Default, PartialEq)]
struct Entries {
    files: Vec<String>,
    entries: Vec<(u64, u32)>,
}

impl Entries {
    /// Adds the ids of a file, each of them once.
    fn add(&mut self, digest: &str, hashes: impl IntoIterator<Item = u64>) {
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(digest.to_owned());
        self.entries.extend(hashes.into_iter().map(|hash| (hash, number)));
    }

    /// Adds what another index has about files that are still there.
    fn join(&mut self, other: Entries, is_there: impl Fn(&str) -> bool) {
        let mut numbers = Vec::with_capacity(other.files.len());
        for file in other.files {
            let is_new = is_there(&file) && !self.files.contains(&file);
            numbers.push(is_new.then(|| u32::try_from(self.files.len()).unwrap_or(u32::MAX)));
            if is_new {
                self.files.push(file);
            }
        }
        let number = |old: u32| numbers.get(old as usize).copied().flatten();
        self.entries.extend(other.entries.into_iter().filter_map(|(hash, old)| Some((hash, number(old)?))));
    }

    fn encode(mut self) -> (IndexName, Bytes) {
        self.entries.sort_unstable();
        self.entries.dedup();
        let mut stretches = BytesMut::with_capacity(self.entries.len() * ENTRY_BYTES);
        let mut fences = Vec::new();
        for stretch in self.entries.chunks(STRETCH_ENTRIES) {
            let start = stretches.len();
            for (hash, file) in stretch {
                stretches.put_u64(*hash);
                stretches.put_u32(*file);
            }
            let smallest = stretch.first().map_or(0, |(hash, _)| *hash);
            fences.push((smallest, beginning(&stretches[start..])));
        }
        let mut bytes = BytesMut::new();
        bytes.put_slice(MAGIC);
        bytes.put_u32(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        bytes.put_u32(u32::try_from(fences.len()).unwrap_or(u32::MAX));
        bytes.put_u64(self.entries.len() as u64);
        for file in &self.files {
            bytes.put_u128(raw_digest(file).unwrap_or_default());
        }
        for (smallest, check) in fences {
            bytes.put_u64(smallest);
            bytes.put_u64(check);
        }
        let check = beginning(&bytes);
        bytes.put_u64(check);
        bytes.put_slice(&stretches);
        let bytes = bytes.freeze();
        let mut digest = sha256(&bytes);
        digest.truncate(2 * DIGEST_BYTES);
        (IndexName { files: self.files.len(), entries: self.entries.len(), digest }, bytes)
    }

    fn decode(name: &IndexName, bytes: &Bytes) -> Option<Self> {
        let head = Head::decode(name, bytes.get(..name.head_bytes())?)?;
        let entries = decode_stretches(&head, 0..head.fences.len(), bytes.get(name.head_bytes()..)?)?;
        (entries.len() == name.entries).then_some(Entries { files: head.files, entries })
    }
}

impl Head {
    /// `None` when the bytes are not those of the head of an index of this name.
    fn decode(name: &IndexName, bytes: &[u8]) -> Option<Self> {
        let (head, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
        let counts = head.get(..COUNTS_BYTES)?;
        let is_intact = bytes.len() == name.head_bytes()
            && counts.starts_with(MAGIC)
            && u64_at(check, 0)? == beginning(head)
            && u32_at(counts, 8)? as usize == name.files
            && u32_at(counts, 12)? as usize == name.stretches()
            && u64_at(counts, 16)? == name.entries as u64;
        if !is_intact {
            return None;
        }
        let (files, fences) = head.get(COUNTS_BYTES..)?.split_at_checked(name.files * DIGEST_BYTES)?;
        let file = |raw: &[u8]| Some(format!("{:032x}", u128::from_be_bytes(raw.try_into().ok()?)));
        let fence = |raw: &[u8]| Some((u64_at(raw, 0)?, u64_at(raw, 8)?));
        Some(Head {
            files: files.chunks_exact(DIGEST_BYTES).map(file).collect::<Option<_>>()?,
            fences: fences.chunks_exact(FENCE_BYTES).map(fence).collect::<Option<_>>()?,
        })
    }

    /// The stretches that may have a hash.
    fn stretches_of(&self, hash: u64) -> Range<usize> {
        let first = self.fences.partition_point(|(smallest, _)| *smallest < hash).saturating_sub(1);
        let end = self.fences.partition_point(|(smallest, _)| *smallest <= hash);
        first.min(end)..end
    }

    fn answer(self, entries: &[(u64, u32)], hash: u64) -> Answer {
        let hits = entries.iter().filter(|(found, _)| *found == hash);
        let hits = hits.filter_map(|(_, file)| self.files.get(*file as usize).cloned()).collect();
        Answer { covered: self.files.into_iter().collect(), hits }
    }
}

/// The entries of some stretches, from their bytes; `None` when they are damaged.
fn decode_stretches(head: &Head, stretches: Range<usize>, bytes: &[u8]) -> Option<Vec<(u64, u32)>> {
    let mut entries = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
    let mut parts = bytes.chunks(STRETCH_ENTRIES * ENTRY_BYTES);
    for (_, check) in head.fences.get(stretches)? {
        let part = parts.next().filter(|part| beginning(part) == *check)?;
        for raw in part.chunks_exact(ENTRY_BYTES) {
            entries.push((u64_at(raw, 0)?, u32_at(raw, 8)?));
        }
    }
    parts.next().is_none().then_some(entries)
}

impl ArchiveStore {
    /// Of files of a kind, those that may have rows of an id.
    pub(super) async fn files_with(
        &self,
        files: Vec<ArchivedFile>,
        indexes: &[ListedIndex],
        id: &str,
    ) -> Result<Vec<ArchivedFile>, ArchiveFault> {
        if files.len() < 2 {
            return Ok(files);
        }
        let hash = hash_of(id);
        let reads: Vec<_> = indexes.iter().map(|index| self.ask(index, hash)).collect();
        let answers: Vec<Option<Answer>> =
            stream::iter(reads).buffered(CONCURRENT_FILES).try_collect().await?;
        let (mut covered, mut hits) = (HashSet::new(), HashSet::new());
        for answer in answers.into_iter().flatten() {
            covered.extend(answer.covered);
            hits.extend(answer.hits);
        }
        let may_have = |file: &ArchivedFile| {
            let digest = &file.name.digest;
            hits.contains(digest) || !covered.contains(digest)
        };
        Ok(files.into_iter().filter(may_have).collect())
    }

    /// What an index has about a hash; nothing when it was joined with others meanwhile, or is
    /// damaged, which is logged.
    async fn ask(&self, index: &ListedIndex, hash: u64) -> Result<Option<Answer>, ArchiveFault> {
        let name = &index.name;
        let answer = if !index.is_whole() {
            None
        } else if name.bytes() <= WHOLE_INDEX_BYTES {
            let Some(bytes) = self.part(index, 0..name.bytes()).await? else { return Ok(None) };
            Entries::decode(name, &bytes).map(|all| {
                let head = Head { files: all.files, fences: Vec::new() };
                head.answer(&all.entries, hash)
            })
        } else {
            let Some(bytes) = self.part(index, 0..name.head_bytes()).await? else { return Ok(None) };
            match Head::decode(name, &bytes) {
                None => None,
                Some(head) => {
                    let stretches = head.stretches_of(hash);
                    let at = |stretch: usize| {
                        name.head_bytes() + (stretch * STRETCH_ENTRIES).min(name.entries) * ENTRY_BYTES
                    };
                    let range = at(stretches.start)..at(stretches.end);
                    let bytes = match range.is_empty() {
                        true => Some(Bytes::new()),
                        false => self.part(index, range).await?,
                    };
                    let Some(bytes) = bytes else { return Ok(None) };
                    let entries = decode_stretches(&head, stretches, &bytes);
                    entries.map(|entries| head.answer(&entries, hash))
                }
            }
        };
        if answer.is_none() {
            damaged(index);
        }
        Ok(answer)
    }

    async fn part(&self, index: &ListedIndex, range: Range<usize>) -> Result<Option<Bytes>, ArchiveFault> {
        let range = range.start as u64..range.end as u64;
        let bytes = range.end - range.start;
        Ok(self.inner.objects.get_part(&index.path, GetRange::Bounded(range), bytes).await?)
    }

    /// Indexes the files of a kind that no index names, and joins small indexes with the new one.
    pub(super) async fn index(&self, scope: &Scope, kind: &'static Kind) -> Result<(), ArchiveFault> {
        let listed = self.listed(scope, kind).await?;
        let there: BTreeSet<&str> = listed.files.iter().map(|file| file.name.digest.as_str()).collect();
        let (mut indexes, mut useless, mut covered) = (Vec::new(), Vec::new(), HashSet::new());
        for index in listed.indexes {
            let head = match index.is_whole() {
                false => None,
                true => {
                    let bytes = self.part(&index, 0..index.name.head_bytes()).await?;
                    let Some(bytes) = bytes else { continue };
                    Head::decode(&index.name, &bytes)
                }
            };
            let Some(head) = head else {
                damaged(&index);
                // At once: the one that is made in its place may have its name.
                self.inner.objects.delete(&index.path).await?;
                continue;
            };
            let named = head.files.len();
            let left: Vec<String> =
                head.files.into_iter().filter(|file| there.contains(file.as_str())).collect();
            match left.len() {
                0 => useless.push(index),
                left_count => {
                    indexes.push((index, left_count * 2 < named));
                    covered.extend(left);
                }
            }
        }
        indexes.sort_by_key(|(index, _)| index.name.entries);
        let mut made = Entries::default();
        for file in listed.files.iter().filter(|file| !covered.contains(&file.name.digest)) {
            // One that is gone was merged by another node, which indexes it.
            let Some(rows) = self.rows(kind, file, &["id"], &[]).await? else { continue };
            let hashes: BTreeSet<u64> = rows.iter().map(|row| hash_of(text(row, 0))).collect();
            if !made.entries.is_empty() && made.entries.len() + hashes.len() > MAX_INDEX_ENTRIES {
                self.put_index(scope, kind, std::mem::take(&mut made)).await?;
            }
            made.add(&file.name.digest, hashes);
        }
        for (index, is_sparse) in indexes {
            let (entries, made_entries) = (index.name.entries, made.entries.len());
            // An index is written again when it grows to three halves: each entry a logarithmic
            // number of times.
            let is_small = !made.files.is_empty() && entries <= made_entries * 2;
            if !(is_small || is_sparse) || made_entries + entries > MAX_INDEX_ENTRIES {
                continue;
            }
            let Some(bytes) = self.part(&index, 0..index.name.bytes()).await? else { continue };
            match Entries::decode(&index.name, &bytes) {
                Some(old) => made.join(old, |file| there.contains(file)),
                None => damaged(&index),
            }
            useless.push(index);
        }
        if !made.files.is_empty() {
            let name = self.put_index(scope, kind, made).await?;
            useless.retain(|index| index.name != name);
        }
        for index in useless {
            self.inner.objects.delete(&index.path).await?;
        }
        Ok(())
    }

    async fn put_index(
        &self,
        scope: &Scope,
        kind: &Kind,
        entries: Entries,
    ) -> Result<IndexName, ArchiveFault> {
        let (name, bytes) = entries.encode();
        let path = Paths::new(scope.clone()).archived(&format!("{}/{FOLDER}/{name}", kind.name));
        match self.inner.objects.put_new(&path, bytes).await? {
            Put::Done => Ok(name),
            Put::Taken => {
                let problem = "another object is there, whose name is not that of its bytes";
                Err(StorageError::corrupt(&path, problem).into())
            }
        }
    }
}

fn damaged(index: &ListedIndex) {
    tracing::warn!(index = %index.path, "an index of the archive is damaged and not used; upkeep makes another");
}

/// The hash of an id.
fn hash_of(id: &str) -> u64 {
    beginning(id.as_bytes())
}

/// The beginning of a SHA-256.
fn beginning(bytes: &[u8]) -> u64 {
    u64_at(&Sha256::digest(bytes), 0).unwrap_or_default()
}

fn raw_digest(text: &str) -> Option<u128> {
    let is_plain = text.len() == 2 * DIGEST_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_plain)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(files: u32, ids: u64) -> Entries {
        let mut entries = Entries::default();
        for file in 0..files {
            let digest = format!("{file:032x}");
            entries.add(&digest, (0..ids).map(|id| hash_of(&format!("{file}/{id}"))));
        }
        entries
    }

    #[test]
    fn an_index_is_read_as_a_whole_and_by_stretches_and_not_when_it_is_damaged() {
        let ids = STRETCH_ENTRIES as u64;
        let (name, bytes) = entries(3, ids).encode();
        assert_eq!(IndexName::parse(&name.to_string()), Some(name.clone()));
        assert_eq!((name.entries, bytes.len()), (3 * STRETCH_ENTRIES, name.bytes()));
        let whole = Entries::decode(&name, &bytes).unwrap();
        let head = Head::decode(&name, &bytes[..name.head_bytes()]).unwrap();
        for (hash, file) in whole.entries.iter().step_by(1_000) {
            let stretches = head.stretches_of(*hash);
            assert!(stretches.len() <= 2);
            let size = STRETCH_ENTRIES * ENTRY_BYTES;
            let part = &bytes[name.head_bytes()..][stretches.start * size..stretches.end * size];
            let found = decode_stretches(&head, stretches.clone(), part).unwrap();
            assert!(found.contains(&(*hash, *file)));
            let mut broken = part.to_vec();
            broken[5] ^= 1;
            assert_eq!(decode_stretches(&head, stretches, &broken), None);
        }
        for at in [0, 9, COUNTS_BYTES, COUNTS_BYTES + 3 * DIGEST_BYTES, name.head_bytes() + 1] {
            let mut broken = bytes.to_vec();
            broken[at] ^= 1;
            assert_eq!(Entries::decode(&name, &broken.into()), None, "{at}");
        }
        assert_eq!(Entries::decode(&name, &bytes.slice(..bytes.len() - ENTRY_BYTES)), None);
        for name in ["x", "1-1-x.index", "1-99999999999-00000000000000000000000000000000.index"] {
            assert_eq!(IndexName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn joined_indexes_have_the_entries_of_files_that_are_left() {
        let mut joined = entries(1, 10);
        let mut other = Entries::default();
        other.add(&format!("{:032x}", 7), [1, 2]);
        other.add(&format!("{:032x}", 8), [2, 3]);
        joined.join(other, |file| file.ends_with('8'));
        let (name, bytes) = joined.encode();
        let joined = Entries::decode(&name, &bytes).unwrap();
        assert_eq!((joined.files.len(), joined.entries.len()), (2, 12));
        assert_eq!(joined.entries[..2], [(2, 1), (3, 1)]);
    }
}
