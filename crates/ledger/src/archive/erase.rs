//! Erasure: rows of an id, or of a whole tenant, leave the archive for good.
//!
//! An erasure is first a record, then a rewrite of the files that have the rows. Whatever writes a file, an erasure too, leaves
//! out the rows of all erasures, and reads their records again after its write: one that is new may have listed the files
//! before that one was there, so the writer rewrites what it wrote.

use std::collections::BTreeMap;

use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::file::ArchivedFile;
use super::kind::{ENDED_AT, Group, ID, KINDS, Kind, integer, text};
use super::limits::{ERASURE_LIFE, ERASURES_PER_PAGE};
use super::store::{ArchiveFault, ArchiveStore};
use crate::objects::Paths;
use crate::tables::Cell;

/// Kind of the records of erasures. Their ids have the digest of what is erased, not the id itself.
const ERASURE: &str = "segno.archive-erasure";

/// In the place of a digest: every id of a group, whose name follows.
const EVERYTHING: &str = "all-";

/// What an erasure removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Rows of all kinds.
    pub rows: u64,
    /// Files that were rewritten or removed.
    pub files: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredErasure {
    /// What ended after this time is not erased, in Unix milliseconds.
    erased_at_ms: u64,
}

/// The erasures that hold in a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Erasures {
    /// By digest of the id, until when its rows ended.
    ids: BTreeMap<String, i64>,
    /// Groups that are erased as a whole, with the time until which their rows ended.
    groups: BTreeMap<Group, i64>,
}

impl Erasures {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.groups.is_empty()
    }

    /// Whether a row is erased.
    pub(super) fn covers(&self, kind: &Kind, row: &[Cell]) -> bool {
        let ended_at = integer(row, ENDED_AT);
        let is_within = |until: i64| ended_at <= until;
        self.groups.get(&kind.group).is_some_and(|until| is_within(*until))
            || !self.ids.is_empty()
                && self.ids.get(&kind.group.digest(text(row, ID))).is_some_and(|until| is_within(*until))
    }
}

impl ArchiveStore {
    /// Removes all rows of an id of a group that have ended by now.
    ///
    /// # Errors
    /// Those of the object store and of the store. What is left is removed when the call is repeated, or with the next merge.
    pub async fn erase(&self, scope: &Scope, group: Group, id: &str) -> Result<Erased, ArchiveFault> {
        let digest = group.digest(id);
        let until = self.record_erasures(scope, std::slice::from_ref(&digest)).await?;
        let wanted = Erasures { ids: BTreeMap::from([(digest, until)]), groups: BTreeMap::new() };
        let mut erased = Erased::default();
        for kind in KINDS.into_iter().filter(|kind| kind.group == group) {
            for file in self.files_of(scope, kind, id).await? {
                if self.may_have(kind, &file, id).await? {
                    erased.add(self.rewrite(scope, kind, &file, &wanted).await?);
                }
            }
        }
        Ok(erased)
    }

    /// Removes all files of some groups of a scope.
    ///
    /// # Errors
    /// Those of the object store and of the store.
    pub async fn erase_all(&self, scope: &Scope, groups: &[Group]) -> Result<Erased, ArchiveFault> {
        let names: Vec<String> = groups.iter().map(|group| format!("{EVERYTHING}{}", group.name())).collect();
        self.record_erasures(scope, &names).await?;
        let (mut erased, paths) = (Erased::default(), Paths::new(scope.clone()));
        for kind in KINDS.into_iter().filter(|kind| groups.contains(&kind.group)) {
            for listed in self.inner.objects.list(&paths.archived(kind.name)).await? {
                self.inner.objects.delete(&listed.path).await?;
                erased.files += 1;
            }
        }
        Ok(erased)
    }

    /// Rewrites the files that have rows of these erasures.
    pub(super) async fn apply(&self, scope: &Scope, erasures: &Erasures) -> Result<Erased, ArchiveFault> {
        let mut erased = Erased::default();
        if erasures.is_empty() {
            return Ok(erased);
        }
        for kind in KINDS {
            for file in self.files(scope, kind).await? {
                erased.add(self.rewrite(scope, kind, &file, erasures).await?);
            }
        }
        Ok(erased)
    }

    async fn rewrite(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        file: &ArchivedFile,
        erasures: &Erasures,
    ) -> Result<Erased, ArchiveFault> {
        // One that is gone was merged or rewritten meanwhile: by a node that reads the erasures after its write.
        let Some(mut rows) = self.all_rows(kind, file).await? else { return Ok(Erased::default()) };
        let gone = rows.iter().filter(|row| erasures.covers(kind, row)).count();
        if gone == 0 {
            return Ok(Erased::default());
        }
        rows.retain(|row| !erasures.covers(kind, row));
        let mut path = Some(file.path.clone());
        let mut known = None;
        loop {
            let now = self.erasures(scope).await?;
            if known.as_ref() == Some(&now) {
                return Ok(Erased { rows: gone as u64, files: 1 });
            }
            let before = rows.len();
            rows.retain(|row| !now.covers(kind, row));
            if known.is_none() || rows.len() < before {
                let name = self.put(scope, kind, rows.clone()).await?.pop();
                if let Some(path) = path.take() {
                    self.inner.objects.delete(&path).await?;
                }
                path = name.map(|name| ArchiveStore::path(scope, kind, &name));
            }
            known = Some(now);
        }
    }

    /// The erasures that hold in a scope.
    pub(super) async fn erasures(&self, scope: &Scope) -> Result<Erasures, ArchiveFault> {
        let prefix = scope.id_prefix();
        let mut erasures = Erasures::default();
        let mut after: Option<String> = None;
        loop {
            let request = ListRecords {
                kind: ERASURE,
                id_prefix: &prefix,
                after_id: after.as_deref(),
                limit: ERASURES_PER_PAGE,
            };
            let page = self.inner.records.list_records(request).await?;
            let is_last = page.len() < ERASURES_PER_PAGE;
            for record in &page {
                let Some(name) = record.id.strip_prefix(&prefix) else { continue };
                // One that cannot be read erases everything of its id: nothing comes back by damage.
                let stored: Option<StoredErasure> = serde_json::from_slice(&record.body).ok();
                let until =
                    stored.map_or(i64::MAX, |one| i64::try_from(one.erased_at_ms).unwrap_or(i64::MAX));
                let whole = name.strip_prefix(EVERYTHING);
                let group = whole.and_then(|name| Group::ALL.into_iter().find(|group| group.name() == name));
                match group {
                    Some(group) => erasures.groups.insert(group, until),
                    None => erasures.ids.insert(name.to_owned(), until),
                };
            }
            after = page.last().map(|record| record.id.clone());
            if is_last {
                return Ok(erasures);
            }
        }
    }

    /// Writes the records of erasures. Returns until when rows that they cover ended.
    async fn record_erasures(&self, scope: &Scope, names: &[String]) -> Result<i64, ArchiveFault> {
        let erased_at_ms = self.inner.records.now_ms().await?;
        let write = |name: &String| RecordWrite::Put {
            kind: ERASURE.to_owned(),
            id: format!("{}{name}", scope.id_prefix()),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: Some(ERASURE_LIFE),
            body: serde_json::to_vec(&StoredErasure { erased_at_ms }).unwrap_or_default().into(),
        };
        let writes = names.iter().map(write).collect();
        let batch = RecordBatch { writes, ..RecordBatch::default() };
        self.inner.records.commit_records(batch).await?;
        Ok(i64::try_from(erased_at_ms).unwrap_or(i64::MAX))
    }
}

impl Erased {
    fn add(&mut self, other: Erased) {
        self.rows += other.rows;
        self.files += other.files;
    }
}
