//! Instances that may be in the store and in the archive. A query that has conditions reads only a part of the store, so it
//! cannot see that an archived row has a newer state there; the records of doubt name the few ids for which it has to look.
//!
//! A record is written before the file of its instances, and removed when they are gone from the store. What a node left behind
//! that ended in between is settled by the upkeep.

use std::collections::{BTreeMap, HashSet};
use std::sync::PoisonError;

use segno::store::{ErrorKind, Expect, InstanceVersion, ListRecords, RecordBatch, RecordWrite};
use segno_actions::functions::Scope;

use super::limits::DOUBTS_PER_PAGE;
use super::store::{ArchiveFault, ArchiveStore};
use super::write::scope_of;
use crate::manifest::sha256;

/// Kind of the records. Their bodies are lists of ids in their scope, with the times at which they were created.
const DOUBT: &str = "segno.archive-doubt";

/// Ids in a scope with the times at which they were created, in Unix milliseconds.
pub type Doubts = HashSet<(String, u64)>;

impl ArchiveStore {
    /// Instances of a scope that may be in the store and in the archive.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn doubts(&self, scope: &Scope) -> Result<Doubts, ArchiveFault> {
        let records = self.doubt_records(scope).await?;
        Ok(records.into_iter().flat_map(|(_, listed)| listed).collect())
    }

    async fn doubt_records(&self, scope: &Scope) -> Result<Vec<(String, Vec<(String, u64)>)>, ArchiveFault> {
        let prefix = scope.id_prefix();
        let mut found: Vec<(String, Vec<(String, u64)>)> = Vec::new();
        loop {
            let after = found.last().map(|(id, _)| id.clone());
            let request = ListRecords {
                kind: DOUBT,
                id_prefix: &prefix,
                after_id: after.as_deref(),
                limit: DOUBTS_PER_PAGE,
            };
            let page = self.inner.records.list_records(request).await?;
            let is_last = page.len() < DOUBTS_PER_PAGE;
            let listed = |body: &[u8]| serde_json::from_slice(body).unwrap_or_default();
            found.extend(page.into_iter().map(|record| (record.id.clone(), listed(&record.body))));
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Puts instances of a scope in doubt.
    pub(super) async fn doubt(&self, scope: &Scope, ids: &[(String, u64)]) -> Result<(), ArchiveFault> {
        if ids.is_empty() {
            return Ok(());
        }
        let body = serde_json::to_vec(ids).unwrap_or_default();
        let id = format!("{}{}", scope.id_prefix(), sha256(&body));
        let write = RecordWrite::Put {
            kind: DOUBT.to_owned(),
            id: id.clone(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: body.into(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        self.inner.records.commit_records(batch).await?;
        self.inner.unsettled.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        Ok(())
    }

    /// Instances that this process put in doubt are gone, but for these.
    pub(super) async fn settle_doubts(&self, kept: Vec<InstanceVersion>) -> Result<(), ArchiveFault> {
        let settled =
            std::mem::take(&mut *self.inner.unsettled.lock().unwrap_or_else(PoisonError::into_inner));
        // Those that are kept first: at no moment are they without a record.
        let mut by_scope: BTreeMap<Scope, Vec<(String, u64)>> = BTreeMap::new();
        for one in kept {
            if let Some((scope, id)) = scope_of(&one.instance_id) {
                by_scope.entry(scope).or_default().push((id.to_owned(), one.created_at_ms));
            }
        }
        for (scope, ids) in &by_scope {
            self.doubt(scope, ids).await?;
        }
        // What is kept now is settled by the upkeep, when it is gone.
        let kept = std::mem::take(&mut *self.inner.unsettled.lock().unwrap_or_else(PoisonError::into_inner));
        self.remove_doubts(settled.into_iter().filter(|id| !kept.contains(id))).await
    }

    /// Removes records of doubt whose instances are gone from the store.
    pub(super) async fn settle_old_doubts(&self, scope: &Scope) -> Result<(), ArchiveFault> {
        let mut gone = Vec::new();
        for (record, ids) in self.doubt_records(scope).await? {
            let mut is_there = false;
            for (id, created_at_ms) in ids {
                let stored = format!("{}{id}", scope.id_prefix());
                match self.inner.records.get_instance_info(&stored).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    info => is_there |= info?.created_at_ms == created_at_ms,
                }
                if is_there {
                    break;
                }
            }
            gone.extend((!is_there).then_some(record));
        }
        self.remove_doubts(gone).await
    }

    async fn remove_doubts(&self, ids: impl IntoIterator<Item = String>) -> Result<(), ArchiveFault> {
        let delete = |id| RecordWrite::Delete { kind: DOUBT.to_owned(), id, expect: Expect::Anything };
        let writes: Vec<RecordWrite> = ids.into_iter().map(delete).collect();
        for writes in writes.chunks(DOUBTS_PER_PAGE) {
            let batch = RecordBatch { writes: writes.to_vec(), ..RecordBatch::default() };
            self.inner.records.commit_records(batch).await?;
        }
        Ok(())
    }
}
