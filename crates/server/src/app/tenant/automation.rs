//! Queries of a tenant's runbooks: the switch, decisions about removals, previews.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno_actions::Listed;
use segno_api::automation::{
    Automation, HeldMember, PendingRemoval, PreviewGroup, PreviewRunbook, PreviewSample, QueryError,
    QueryResult, RemovalDecided, RunbookPreview,
};
use segno_api::runbook::Runbook;
use segno_runbook::definition::Definition;
use segno_runbook::drive::{Preview, QueryRow, RemovalDecision, RunbookError, RunbookHead};

use super::preview_places::PREVIEW_PLACES;
use super::{Tenant, runbook_rows as rows};
use crate::problem::Refusal;

/// Queries that are read at once for a list.
const READ_AT_ONCE: usize = 16;

impl Tenant {
    /// A runbook with its query.
    pub(super) async fn with_automation(&self, head: RunbookHead) -> Result<Runbook, Refusal> {
        let automation = self.automation_of(&head).await?;
        Ok(rows::runbook(head, automation))
    }

    /// Runbooks of a list with their queries.
    pub(super) async fn with_automations(
        &self,
        heads: Vec<Listed<RunbookHead>>,
    ) -> Result<Vec<Listed<Runbook>>, Refusal> {
        let read = stream::iter(heads).map(|head| async move {
            Ok(match head {
                Listed::Readable(head) => Listed::Readable(self.with_automation(head).await?),
                Listed::Unreadable(row) => Listed::Unreadable(row),
            })
        });
        read.buffered(READ_AT_ONCE).try_collect().await
    }

    async fn automation_of(&self, head: &RunbookHead) -> Result<Automation, Refusal> {
        let row = self.resources().runbooks.query(&self.owner(), &head.name).await;
        let row = match row.map_err(|error| self.refused(error)) {
            Ok(row) => row,
            // It hides neither its runbook nor others.
            Err(refusal) => match refusal.damage() {
                Some(damage) => {
                    let unreadable = Some(format!("what is known of its query cannot be read: {damage}"));
                    return Ok(Automation {
                        enabled: head.is_automation_enabled,
                        unreadable,
                        ..Automation::default()
                    });
                }
                None => return Err(refusal),
            },
        };
        Ok(automation(head.is_automation_enabled, row, self.app.clock.now_ms()))
    }

    /// The query of a runbook.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn automation(&self, name: &str) -> Result<Automation, Refusal> {
        let head = self.resources().runbooks.head(&self.owner(), name).await;
        self.automation_of(&head.map_err(|error| self.refused(error))?).await
    }

    /// Has the data source of a runbook queried every interval.
    ///
    /// # Errors
    /// `unknown-runbook`, `source-not-queried`, `source-failed`.
    pub async fn enable_automation(&self, name: &str) -> Result<Automation, Refusal> {
        let resources = self.resources();
        let definition = self.active_definition(name).await?;
        let checked = resources.previewer.sources.check(&self.owner(), &definition.data_source);
        checked.map_err(|error| self.refused(RunbookError::from(error)))?;
        let head = resources.runbooks.enable_automation(&self.owner(), name).await;
        self.automation_of(&head.map_err(|error| self.refused(error))?).await
    }

    /// No longer has it queried.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn disable_automation(&self, name: &str) -> Result<Automation, Refusal> {
        let head = self.resources().runbooks.disable_automation(&self.owner(), name).await;
        self.automation_of(&head.map_err(|error| self.refused(error))?).await
    }

    /// Decides about members whose removal waits for approval.
    ///
    /// # Errors
    /// `unknown-runbook`, `removal-not-pending`.
    pub async fn decide_removal(
        &self,
        name: &str,
        set: u64,
        decision: (RemovalDecision, Option<&str>),
    ) -> Result<Automation, Refusal> {
        let decided = self.resources().runbooks.decide_removal(&self.owner(), name, set, decision).await;
        decided.map_err(|error| self.refused(error))?;
        self.automation(name).await
    }

    /// Runs a query and changes nothing.
    ///
    /// # Errors
    /// `unknown-runbook`, `invalid-runbook`, `source-not-queried`, `source-failed`,
    /// `invalid-members`.
    pub async fn preview_runbook(
        &self,
        name: &str,
        request: PreviewRunbook,
    ) -> Result<RunbookPreview, Refusal> {
        let definition = match request.yaml_content {
            Some(text) => self.unpublished(name, text).await?,
            None => self.active_definition(name).await?,
        };
        let _place = PREVIEW_PLACES.take(self.owner().id_prefix(), &*self.app.clock).await?;
        let key = self.app.ids.new_uuid().to_string();
        let made = self.resources().previewer.preview(&self.owner(), &definition, &key).await;
        Ok(preview(made.map_err(|error| self.refused(error))?))
    }

    /// A runbook that is not published, off the threads that serve.
    async fn unpublished(&self, name: &str, text: String) -> Result<Arc<Definition>, Refusal> {
        let zones = self.resources().runbooks.definitions().zones().clone();
        let check = move || segno_runbook::yaml::parse(text.as_bytes(), &zones);
        let parsed = self.check_document(check).await?;
        let definition = parsed.map_err(|error| self.refused(RunbookError::from(error)))?.definition;
        if definition.name != name {
            let problem = format!("is of the runbook {:?}, not of {name:?}", definition.name);
            return Err(Refusal::field("yaml_content", problem));
        }
        Ok(Arc::new(definition))
    }

    async fn active_definition(&self, name: &str) -> Result<Arc<Definition>, Refusal> {
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let head = runbooks.head(&owner, name).await.map_err(|error| self.refused(error))?;
        let definition = runbooks.definitions().get(&owner, name, head.active_version).await;
        definition.map_err(|error| self.refused(RunbookError::from(error)))
    }
}

fn automation(enabled: bool, row: QueryRow, now_ms: u64) -> Automation {
    Automation {
        enabled,
        running: row.is_running(now_ms),
        next_run_at: row.next_run_at,
        last_run_at: row.last_run_at,
        last_error: row.last_error.map(|error| QueryError {
            code: error.code,
            message: error.message,
            at: error.at,
        }),
        last_result: row.counts.map(|counts| QueryResult {
            rows: counts.rows,
            batches: counts.batches,
            created: counts.created,
            added: counts.added,
            changed: counts.changed,
            removed: counts.removed,
            skipped: counts.skipped,
            skipped_ended: counts.skipped_ended,
        }),
        pending_removal: row.pending_removal.map(|pending| PendingRemoval {
            set: pending.set,
            count: pending.count,
            of: pending.of,
            batches: pending.batches,
            sample: pending
                .sample
                .into_iter()
                .map(|held| HeldMember { batch_id: held.batch_id.0, member_key: held.key })
                .collect(),
            at: pending.at,
            approved: pending.is_approved,
        }),
        last_decision: row.last_decision.map(|decided| RemovalDecided {
            set: decided.set,
            approved: decided.decision == RemovalDecision::Approve,
            count: decided.count,
            at: decided.at,
            by: decided.by,
        }),
        unreadable: None,
    }
}

fn preview(made: Preview) -> RunbookPreview {
    let group = |group: segno_runbook::drive::PreviewGroup| PreviewGroup {
        batch_start_time: group.start,
        rows: group.rows as u64,
    };
    let sample = |sample: segno_runbook::drive::PreviewSample| PreviewSample {
        member_key: sample.key,
        batch_start_time: sample.start,
        data: sample.data,
    };
    RunbookPreview {
        columns: made.columns,
        rows: made.rows as u64,
        batches: made.batches as u64,
        groups: made.groups.into_iter().map(group).collect(),
        samples: made.samples.into_iter().map(sample).collect(),
        skipped: made.skipped as u64,
        problems: made.problems,
        added: made.changes.added as u64,
        skipped_ended: made.changes.skipped_ended as u64,
        changed: made.changes.changed as u64,
        removed: made.changes.removed as u64,
        held: made.changes.held as u64,
    }
}
