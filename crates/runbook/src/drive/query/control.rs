//! The switch of a runbook's query, decisions about removals, and what is shown of it.

use segno::store::Expect;
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::row::{DecidedRemoval, QueryRow};
use crate::definition::SourceKind;
use crate::drive::error::RunbookError;
use crate::drive::place::{QUERIES, head_id};
use crate::drive::post::timestamp;
use crate::drive::published::RunbookHead;
use crate::drive::runbooks::{Runbooks, Stored, unknown, unreadable};

/// What people decide about members whose removal waits for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalDecision {
    /// They are removed, unless the query has them again.
    Approve,
    /// They stay, until the query has had them again.
    Reject,
}

impl Runbooks {
    /// Has the data source of a runbook queried, at once and then every interval.
    ///
    /// # Errors
    /// `unknown-runbook`, `source-not-queried` for a manual data source, `stored-data-unreadable`,
    /// `store`.
    pub async fn enable_automation(&self, scope: &Scope, name: &str) -> Result<RunbookHead, RunbookError> {
        loop {
            let Stored { value: mut head, version } =
                self.find_head(scope, name).await?.ok_or_else(|| unknown(name, None))?;
            if head.is_automation_enabled {
                return Ok(head);
            }
            let definition = self.definitions.get(scope, name, head.active_version).await?;
            if definition.data_source.kind == SourceKind::Manual {
                return Err(RunbookError::NotQueried { name: name.to_owned() });
            }
            let now_ms = self.store.now_ms().await?;
            head.is_automation_enabled = true;
            head.updated_at = timestamp(now_ms);
            let (mut row, expect) = self.find_query(scope, name).await?;
            row.make_due(now_ms);
            let writes = vec![head.write(scope, Expect::Version(version)), row.write(scope, expect)];
            if self.commit(writes).await? {
                return Ok(head);
            }
        }
    }

    /// No longer has the data source of a runbook queried. Its batches go on.
    ///
    /// # Errors
    /// `unknown-runbook`, `stored-data-unreadable`, `store`.
    pub async fn disable_automation(&self, scope: &Scope, name: &str) -> Result<RunbookHead, RunbookError> {
        loop {
            let Stored { value: mut head, version } =
                self.find_head(scope, name).await?.ok_or_else(|| unknown(name, None))?;
            if !head.is_automation_enabled {
                return Ok(head);
            }
            let now_ms = self.store.now_ms().await?;
            head.is_automation_enabled = false;
            head.updated_at = timestamp(now_ms);
            let (mut row, expect) = self.find_query(scope, name).await?;
            if !row.is_running(now_ms) {
                (row.node, row.until_ms, row.next_run_at) = (None, None, None);
            }
            // A run that is at it sees the new version of its record, and looks at the switch
            // again.
            let writes = vec![head.write(scope, Expect::Version(version)), row.write(scope, expect)];
            if self.commit(writes).await? {
                return Ok(head);
            }
        }
    }

    /// The query of a runbook: its next run, and what came of the last one.
    ///
    /// # Errors
    /// `stored-data-unreadable`, `store`.
    pub async fn query(&self, scope: &Scope, name: &str) -> Result<QueryRow, RunbookError> {
        Ok(self.find_query(scope, name).await?.0)
    }

    /// Decides about the members whose removal waits for approval: exactly those that were shown
    /// under the name of the set. The next run, which is made at once, does what was decided.
    ///
    /// # Errors
    /// `unknown-runbook`, `removal-not-pending` when the set is another one now,
    /// `stored-data-unreadable`, `store`.
    pub async fn decide_removal(
        &self,
        scope: &Scope,
        name: &str,
        set: u64,
        (decision, by): (RemovalDecision, Option<&str>),
    ) -> Result<QueryRow, RunbookError> {
        let head = self.head(scope, name).await?;
        loop {
            let (mut row, expect) = self.find_query(scope, name).await?;
            let pending = row.pending_removal.as_mut().filter(|pending| pending.set == set);
            let Some(pending) = pending else {
                let pending = row.pending_removal.map(|pending| pending.set);
                return Err(RunbookError::RemovalNotPending { name: name.to_owned(), set, pending });
            };
            let count = pending.count;
            match decision {
                RemovalDecision::Approve if pending.is_approved => return Ok(row),
                RemovalDecision::Approve => {
                    pending.is_approved = true;
                    row.approved_run = set;
                }
                RemovalDecision::Reject => {
                    row.pending_removal = None;
                    row.rejected_run = set;
                }
            }
            let now_ms = self.store.now_ms().await?;
            let (at, by) = (timestamp(now_ms), by.map(str::to_owned));
            row.last_decision = Some(DecidedRemoval { set, decision, count, at, by });
            if head.is_automation_enabled {
                row.make_due(now_ms);
            }
            if self.commit(vec![row.write(scope, expect)]).await? {
                return Ok(row);
            }
        }
    }

    async fn find_query(&self, scope: &Scope, name: &str) -> Result<(QueryRow, Expect), RunbookError> {
        match self.store.get_record(QUERIES, &head_id(scope, name)).await? {
            None => Ok((QueryRow::new(name), Expect::Absent)),
            Some(record) => {
                let row = QueryRow::read(&record).map_err(|error| unreadable(QUERIES, &record, &error))?;
                Ok((row, Expect::Version(record.version)))
            }
        }
    }
}
