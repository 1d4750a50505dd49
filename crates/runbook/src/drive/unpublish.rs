//! Deleting runbooks and versions that no batch uses.
//!
//! The head of a runbook is the record that decides: creating a batch and deleting a version both
//! commit on condition of its version, so neither happens between the other's look and its commit.
//! Versions that were deleted leave a counter behind: a runbook of the same name goes on counting,
//! because a version never changes.

use std::collections::BTreeSet;

use segno::store::{Expect, ListRecords, RecordWrite};
use segno_actions::functions::Scope;

use super::counter;
use super::error::RunbookError;
use super::load::Loader;
use super::place::{
    BATCH_INDEX, BatchPlace, HEADS, QUERIES, RUNBOOKS, SOURCE_BATCHES, SOURCE_MEMBERS, head_id, index_folder,
    version_id,
};
use super::published::{BatchSummary, RunbookHead};
use super::runbooks::{PAGE, Runbooks, Stored, unknown, unreadable};
use crate::rows::BatchId;

/// Most batches that a refusal names.
const MAX_NAMED: usize = 5;

/// Name of the counter of a runbook's versions.
pub(super) fn version_counter(name: &str) -> String {
    format!("versions/{name}")
}

impl Runbooks {
    /// Deletes a version that is not the active one and that no batch uses.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use`, `stored-data-unreadable`, `store`.
    pub async fn delete_version(&self, scope: &Scope, name: &str, version: u32) -> Result<(), RunbookError> {
        loop {
            let Stored { value: head, version: head_version } =
                self.find_head(scope, name).await?.ok_or_else(|| unknown(name, None))?;
            self.find_version(scope, name, version).await?;
            if head.active_version == version {
                let reason = format!(
                    "version {version} is the active one; publish another version first, or delete the runbook"
                );
                return Err(RunbookError::in_use(name, reason));
            }
            let users = self.users_of(scope, name, Some(version)).await?;
            self.refuse_users(name, &format!("version {version}"), &users)?;
            let writes = vec![
                delete(RUNBOOKS, version_id(scope, name, version)),
                head.write(scope, Expect::Version(head_version)),
            ];
            if self.commit(writes).await? {
                return Ok(());
            }
        }
    }

    /// Deletes a runbook with all its versions, and what its queries have remembered. It must have
    /// no batches, and its automation must be disabled.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use`, `stored-data-unreadable`, `store`.
    pub async fn delete_runbook(&self, scope: &Scope, name: &str) -> Result<(), RunbookError> {
        loop {
            let Stored { value: head, version: head_version } =
                self.find_head(scope, name).await?.ok_or_else(|| unknown(name, None))?;
            let query = self.query_to_delete(scope, &head).await?;
            let users = self.users_of(scope, name, None).await?;
            self.refuse_users(name, "the runbook", &users)?;
            // What is left is small; a node that dies here leaves a runbook that can be deleted
            // again.
            let folder = index_folder(scope, name);
            self.delete_all(SOURCE_MEMBERS, &folder, None).await?;
            self.delete_all(SOURCE_BATCHES, &folder, None).await?;
            let active = version_id(scope, name, head.active_version);
            self.delete_all(RUNBOOKS, &folder, Some(&active)).await?;
            let next = u64::from(head.active_version) + 1;
            let mut writes = vec![
                RecordWrite::Delete {
                    kind: HEADS.to_owned(),
                    id: head_id(scope, name),
                    expect: Expect::Version(head_version),
                },
                delete(RUNBOOKS, active),
                counter::write(scope, &version_counter(name), next),
            ];
            writes.extend(query);
            if self.commit(writes).await? {
                return Ok(());
            }
        }
    }

    /// The deletion of the record of a runbook's query, which must not run.
    async fn query_to_delete(
        &self,
        scope: &Scope,
        head: &RunbookHead,
    ) -> Result<Option<RecordWrite>, RunbookError> {
        let name = &head.name;
        if head.is_automation_enabled {
            let reason =
                format!("its automation is enabled; disable it first with `segno runbook disable {name}`");
            return Err(RunbookError::in_use(name, reason));
        }
        let id = head_id(scope, name);
        let Some(record) = self.store.get_record(QUERIES, &id).await? else { return Ok(None) };
        if self.query(scope, name).await?.is_running(self.store.now_ms().await?) {
            return Err(RunbookError::in_use(name, "its query is running; try again when it has ended"));
        }
        let expect = Expect::Version(record.version);
        Ok(Some(RecordWrite::Delete { kind: QUERIES.to_owned(), id, expect }))
    }

    /// The batches that use a version, or any: the first of them and how many there are.
    async fn users_of(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u32>,
    ) -> Result<Vec<BatchId>, RunbookError> {
        let folder = index_folder(scope, name);
        let (mut after, mut users): (Option<String>, Vec<BatchId>) = (None, Vec::new());
        loop {
            let after_id = after.as_deref();
            let request = ListRecords { kind: BATCH_INDEX, id_prefix: &folder, after_id, limit: PAGE };
            let page = self.store.list_records(request).await?;
            for record in &page {
                let summary =
                    BatchSummary::read(record).map_err(|error| unreadable(BATCH_INDEX, record, &error))?;
                let uses = match version {
                    None => true,
                    Some(version) => self.versions_of(scope, summary.batch_id).await?.contains(&version),
                };
                if uses {
                    users.push(summary.batch_id);
                }
            }
            if page.len() < PAGE {
                return Ok(users);
            }
            after = page.last().map(|record| record.id.clone());
        }
    }

    /// The versions that a batch follows, and those that its phases and init steps are from. A
    /// batch that has ended counts too: its failed members can be retried.
    async fn versions_of(&self, scope: &Scope, batch: BatchId) -> Result<BTreeSet<u32>, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let loader = Loader { store: &*self.store, place: &place, definitions: &self.definitions };
        let rows = loader.begin().await?;
        let phases = rows.phases().map(|phase| phase.runbook_version);
        let inits = rows.inits().map(|init| init.runbook_version);
        Ok(phases.chain(inits).chain(rows.batch().map(|batch| batch.runbook_version)).collect())
    }

    fn refuse_users(&self, name: &str, what: &str, users: &[BatchId]) -> Result<(), RunbookError> {
        if users.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = users.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        let more = users.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (noun, verb) = if users.len() == 1 { ("batch", "uses") } else { ("batches", "use") };
        let reason = format!(
            "{noun} {}{more} {verb} {what}; delete them first with `segno batch delete {}`",
            named.join(", "),
            named[0],
        );
        Err(RunbookError::in_use(name, reason))
    }

    /// Deletes the records of a folder, part by part, but for one.
    async fn delete_all(&self, kind: &str, folder: &str, but: Option<&str>) -> Result<(), RunbookError> {
        let mut after: Option<String> = None;
        loop {
            let after_id = after.as_deref();
            let request = ListRecords { kind, id_prefix: folder, after_id, limit: PAGE };
            let page = self.store.list_records(request).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|record| record.id.clone());
            let ids = page.into_iter().map(|record| record.id).filter(|id| Some(id.as_str()) != but);
            let writes: Vec<RecordWrite> = ids.map(|id| delete(kind, id)).collect();
            if !writes.is_empty() {
                self.commit(writes).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

fn delete(kind: &str, id: String) -> RecordWrite {
    RecordWrite::Delete { kind: kind.to_owned(), id, expect: Expect::Anything }
}
