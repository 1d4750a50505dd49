//! What of a tenant is in the archive.

use segno::client::{EventList, ExecutionList, Instance};
use segno::event::EventKind;
use segno::store::{ExecutionInfo, ExecutionStatus, HistoryQuery};
use segno_actions::action::{Action, ActionError};
use segno_api::archive::{ArchiveSummary, ArchivedKind, Erased};
use segno_api::audit::AuditEntry;
use segno_ledger::archive::{
    ArchiveFault, ArchiveStore, ArchivedExecution, ArchivedFile, AuditRow, Doubts, EventsQuery, Group, KINDS,
    Kind,
};
use segno_ledger::tables::Cell;
use uuid::Uuid;

use super::{Rejected, Tenant};
use crate::access::timestamp;
use crate::audit_archive;
use crate::operation::Effect;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// An instance, in the caller's ids, and where it was found.
pub struct Located {
    /// The instance.
    pub instance: Instance,
    /// Whether it is in the archive and no longer in the store.
    pub archived: bool,
}

impl Tenant {
    /// One instance, from the archive if it is no longer in the store.
    ///
    /// # Errors
    /// `not-found` when it is in neither, `archive-unavailable` when it is not in the store and the archive cannot be read.
    pub async fn instance_or_archived(&self, id: &str) -> Result<Located, Refusal> {
        let refusal = match self.instance(id).await {
            Ok(instance) => return Ok(Located { instance, archived: false }),
            Err(refusal) => refusal,
        };
        match self.archived_instance(id, &refusal).await? {
            Some(instance) => Ok(Located { instance, archived: true }),
            None => Err(refusal),
        }
    }

    /// One instance that is in the store.
    ///
    /// # Errors
    /// `not-found`, `instance-archived` when it is in the archive only, `archive-unavailable` when that cannot be read.
    pub async fn instance_in_store(&self, id: &str) -> Result<Instance, Refusal> {
        self.in_store(id, self.instance(id)).await
    }

    /// The outcome of an operation on an instance in the store, which reports an instance that is in the archive only.
    ///
    /// # Errors
    /// Those of the operation; `instance-archived` in place of `not-found`, `archive-unavailable` when the archive cannot be read.
    pub async fn in_store<T>(
        &self,
        id: &str,
        operation: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let refusal = match operation.await {
            Err(refusal) if is_unknown(&refusal) => refusal,
            outcome => return outcome,
        };
        Err(match self.archived_instance(id, &refusal).await? {
            Some(found) => archived(id, found.completed_at_ms.map(timestamp)),
            None => refusal,
        })
    }

    /// The archived instance of an id that the store does not have; `None` when another reason than that led to the refusal.
    async fn archived_instance(&self, id: &str, refusal: &Refusal) -> Result<Option<Instance>, Refusal> {
        match &self.resources().archive {
            Some(archive) if is_unknown(refusal) => {
                archive.instance(&self.owner(), id).await.map_err(|error| self.refused(error))
            }
            _ => Ok(None),
        }
    }

    /// One action, from the archive if it is no longer in the store, and whether it comes from there.
    ///
    /// # Errors
    /// `unknown-action` when it is in neither, `archive-unavailable` when it is not in the store and the archive cannot be read.
    pub async fn action_or_archived(&self, id: Uuid) -> Result<(Action, bool), Refusal> {
        let unknown = match self.actions().get(id).await {
            Ok(action) => return Ok((action, false)),
            Err(error @ ActionError::Unknown { .. }) => self.refused(error),
            Err(error) => return Err(self.refused(error)),
        };
        let Some(archive) = &self.resources().archive else { return Err(unknown) };
        let found =
            archive.action(&self.owner(), &id.to_string()).await.map_err(|error| self.refused(error))?;
        Ok((found.ok_or(unknown)?, true))
    }

    /// An archived entry of the audit log, as callers see it.
    pub fn archived_audit(&self, row: &AuditRow) -> AuditEntry {
        audit_archive::entry(&self.scope, row)
    }

    /// A page of a history, from the archive if it is no longer in the store, and whether it comes from there. `query` has the
    /// caller's id.
    ///
    /// # Errors
    /// `not-found` when it is in neither, `archive-unavailable` when it is not in the store and the archive cannot be read.
    pub async fn history_or_archived(&self, query: HistoryQuery) -> Result<(EventList, bool), Refusal> {
        let refusal = match self.history(query.clone()).await {
            Ok(page) => return Ok((page, false)),
            Err(refusal) => refusal,
        };
        let Some(archive) = self.resources().archive.as_ref().filter(|_| is_unknown(&refusal)) else {
            return Err(refusal);
        };
        // Of an instance that is in the store, old executions may be in the archive.
        let Located { instance, .. } = self.instance_or_archived(&query.instance_id).await?;
        let wanted = EventsQuery {
            id: &query.instance_id,
            created_at_ms: instance.created_at_ms,
            execution: query.execution_id,
            after: query.after_event_id,
            limit: query.limit,
        };
        let found = archive.events(&self.owner(), wanted).await.map_err(|error| self.refused(error))?;
        let (events, is_more) = found;
        if events.is_empty() && query.after_event_id == 0 {
            return Err(refusal);
        }
        let next = events.last().filter(|_| is_more).map(|event| event.event_id);
        Ok((EventList { events, unreadable: Vec::new(), next }, true))
    }

    /// A page of the executions of an archived instance, newest first.
    pub(super) async fn archived_executions(
        &self,
        instance: &Instance,
        before: Option<u64>,
        limit: usize,
    ) -> Result<ExecutionList, Refusal> {
        let archive = self.archive()?;
        let found = archive.executions(&self.owner(), &instance.id, instance.created_at_ms).await;
        let mut found = found.map_err(|error| self.refused(error))?;
        found.retain(|one| before.is_none_or(|before| one.execution < before));
        found.reverse();
        let is_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| is_more).map(|last| last.execution);
        Ok(ExecutionList {
            executions: found.into_iter().map(execution).collect(),
            unreadable: Vec::new(),
            next,
        })
    }

    /// What the archive of the tenant has.
    ///
    /// # Errors
    /// `archive-unavailable`.
    pub async fn archive_summary(&self) -> Result<ArchiveSummary, Refusal> {
        let Some(archive) = &self.resources().archive else {
            return Ok(ArchiveSummary { enabled: false, kinds: Vec::new() });
        };
        let mut kinds = Vec::with_capacity(KINDS.len());
        for kind in KINDS {
            let files = archive.files(&self.owner(), kind).await.map_err(|error| self.refused(error))?;
            kinds.push(ArchivedKind {
                kind: kind.name.to_owned(),
                files: files.len() as u64,
                bytes: files.iter().map(|file| file.bytes).sum(),
                oldest_day: files.last().map(|file| file.name.day.clone()),
                newest_day: files.first().map(|file| file.name.day.clone()),
            });
        }
        kinds.sort_by(|one, other| one.kind.cmp(&other.kind));
        Ok(ArchiveSummary { enabled: true, kinds })
    }

    /// Erases all archived rows of an id.
    ///
    /// # Errors
    /// `archive-unavailable`; `not-found` without an archive.
    pub async fn erase_archived(&self, group: Group, id: &str) -> Result<Erased, Refusal> {
        let erased = self.archive()?.erase(&self.owner(), group, id).await;
        erased.map(shown).map_err(|error| self.not_erased(error))
    }

    /// Erases some groups of the archive of the tenant as a whole.
    ///
    /// # Errors
    /// `archive-unavailable`; `not-found` without an archive.
    pub async fn erase_archive(&self, groups: &[Group]) -> Result<Erased, Refusal> {
        let erased = self.archive()?.erase_all(&self.owner(), groups).await;
        erased.map(shown).map_err(|error| self.not_erased(error))
    }

    /// Why an erasure did not come to its end. It is recorded in the store before files are written anew one by one, so that some of
    /// them may have been.
    fn not_erased(&self, error: ArchiveFault) -> Refusal {
        let reason =
            "the archive could not be read or written; a part of it may have been erased, and stays erased";
        match crate::operation::effect() {
            Effect::Unknown => {
                tracing::warn!(%error, "an erasure in the archive did not come to its end");
                Refusal::unavailable(reason, Effect::Unknown)
            }
            Effect::ReadOnly | Effect::NothingChanged => self.refused(error),
        }
    }

    /// Whether the server has an archive.
    pub fn has_archive(&self) -> bool {
        self.resources().archive.is_some()
    }

    /// The files of a kind, those of the latest day first.
    ///
    /// # Errors
    /// `archive-unavailable`; `not-found` without an archive.
    pub async fn archived_files(&self, kind: &Kind) -> Result<Vec<ArchivedFile>, Refusal> {
        self.archive()?.files(&self.owner(), kind).await.map_err(|error| self.refused(error))
    }

    /// The files of a kind that may have rows of an id, those of the latest day first.
    ///
    /// # Errors
    /// `archive-unavailable`; `not-found` without an archive.
    pub async fn archived_files_of(&self, kind: &Kind, id: &str) -> Result<Vec<ArchivedFile>, Refusal> {
        self.archive()?.files_of(&self.owner(), kind, id).await.map_err(|error| self.refused(error))
    }

    /// Some columns of the rows of a file; `None` when it was merged or erased meanwhile.
    ///
    /// # Errors
    /// `archive-unavailable`; `not-found` without an archive.
    pub async fn archived_rows(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
        columns: &[&str],
        wanted: &[(&str, &str)],
    ) -> Result<Option<Vec<Vec<Cell>>>, Refusal> {
        let rows = self.archive()?.rows(kind, file, columns, wanted).await;
        rows.map_err(|error| self.refused(error))
    }

    /// A number that is another one after rows came into the archive of the tenant.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn archive_generation(&self) -> Result<u64, Refusal> {
        self.archive()?.generation(&self.owner()).await.map_err(|error| self.refused(error))
    }

    /// Instances that may be in the store and in the archive.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn archive_doubts(&self) -> Result<Doubts, Refusal> {
        self.archive()?.doubts(&self.owner()).await.map_err(|error| self.refused(error))
    }

    fn archive(&self) -> Result<&ArchiveStore, Refusal> {
        self.resources()
            .archive
            .as_ref()
            .ok_or_else(|| Refusal::new(Code::NotFound, "this server has no archive; set archive.enabled"))
    }
}

impl Rejected for ArchiveFault {
    fn refusal(&self, _: &Scope) -> Refusal {
        Refusal::from_archive(self)
    }
}

/// The caller wants something of an instance that is in the archive only, since it ended then.
fn archived(id: &str, ended_at: Option<jiff::Timestamp>) -> Refusal {
    let ended = ended_at.map(|at| format!(" ended at {at} and")).unwrap_or_default();
    let detail = format!(
        "instance {id:?}{ended} is archived: retention has moved it out of the store; it is read with GET \
         /v1/instances/{{id}}, its /history and /executions, and queries"
    );
    Refusal::new(Code::InstanceArchived, detail)
}

fn is_unknown(refusal: &Refusal) -> bool {
    refusal.code() == segno::Code::NotFound.as_str()
}

fn shown(erased: segno_ledger::archive::Erased) -> Erased {
    Erased { rows: erased.rows, files: erased.files, kept: Vec::new() }
}

fn execution(found: ArchivedExecution) -> ExecutionInfo {
    let status = match &found.last.kind {
        EventKind::OrchestrationCompleted { .. } => ExecutionStatus::Completed,
        EventKind::OrchestrationContinuedAsNew { .. } => ExecutionStatus::ContinuedAsNew,
        EventKind::OrchestrationFailed { failure } if failure.is_cancelled() => ExecutionStatus::Cancelled,
        _ => ExecutionStatus::Failed,
    };
    ExecutionInfo {
        execution_id: found.execution,
        status,
        output: None,
        started_at_ms: found.started_at_ms,
        completed_at_ms: Some(found.last.at_ms),
        event_count: found.events,
    }
}
