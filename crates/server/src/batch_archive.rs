//! Batches of runbooks in the archive: how their rows get there.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use segno::store::ErrorKind;
use segno_actions::Listed;
use segno_actions::functions::Scope as Owner;
use segno_actions::moment::due_ms;
use segno_ledger::archive::{
    ArchiveFault, ArchiveStore, ArchivedRow as _, BATCHES, BatchRow, Kind, MEMBERS, MemberRow, PHASES,
    PhaseRow, STEPS, StepRow,
};
use segno_ledger::tables::Cell;
use segno_runbook::drive::{BatchArchive, BatchArchiveError, ExpiredBatch, RunbookError, Runbooks};
use segno_runbook::rows::{Row, RowKey, Table};
use serde::Serialize;

use crate::app::runbook_rows as rows;

/// Rows that are read and written at once.
const ROWS_PER_PART: usize = 2_000;

/// The tables of a batch that are archived. The batch itself comes last: what is shown of it is
/// there before it.
const TABLES: [Table; 4] =
    [Table::PhaseExecutions, Table::InitExecutions, Table::BatchMembers, Table::StepExecutions];

/// Writes batches to the archive.
pub struct BatchArchiver {
    /// The batches.
    pub runbooks: Runbooks,
    /// The archive.
    pub archive: ArchiveStore,
}

/// What all rows of a batch have.
struct Common {
    owner: Owner,
    id: Arc<str>,
    incarnation: i64,
    revision: i64,
    ended_at: i64,
}

#[async_trait]
impl BatchArchive for BatchArchiver {
    async fn store(&self, batch: ExpiredBatch<'_>) -> Result<(), BatchArchiveError> {
        let row = batch.row;
        let ended_at = row.completed_at.unwrap_or(row.detected_at);
        let common = Common {
            owner: batch.scope.clone(),
            id: row.id.to_string().into(),
            incarnation: number(due_ms(row.detected_at)),
            revision: number(batch.revision),
            ended_at: number(due_ms(ended_at)),
        };
        let last_query = self.last_query(&batch).await?;
        for table in TABLES {
            let mut after: Option<RowKey> = None;
            loop {
                let part = (after.as_ref(), ROWS_PER_PART);
                let page = self.runbooks.rows(batch.scope, row.id, table, part).await;
                let page = page.map_err(fault)?;
                let is_last = page.len() < ROWS_PER_PART;
                let mut cells = Vec::with_capacity(page.len());
                for row in page {
                    let row = match row {
                        Listed::Readable(row) => row,
                        Listed::Unreadable(row) => {
                            return Err(BatchArchiveError::Unreadable(format!("{}: {}", row.id, row.reason)));
                        }
                    };
                    after = row.key();
                    let made = common.row(row, last_query);
                    cells.extend(made.map_err(|error| BatchArchiveError::Unreadable(error.to_string()))?);
                }
                self.archive.keep(batch.scope, cells).await.map_err(away)?;
                if is_last {
                    break;
                }
            }
        }
        let made = common.batch(row).map_err(|error| BatchArchiveError::Unreadable(error.to_string()))?;
        self.archive.keep(batch.scope, vec![(&BATCHES, made.to_cells())]).await.map_err(away)
    }
}

impl BatchArchiver {
    /// When the source of a batch's members was queried last; none for a batch that was made by hand,
    /// or if that cannot be read.
    async fn last_query(&self, batch: &ExpiredBatch<'_>) -> Result<Option<Timestamp>, BatchArchiveError> {
        if batch.row.is_manual {
            return Ok(None);
        }
        match self.runbooks.query(batch.scope, &batch.row.runbook_name).await {
            Ok(query) => Ok(query.last_run_at),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(fault(error)),
        }
    }
}

/// What cannot be read keeps the one batch in the store; anything else, all of them.
fn fault(error: RunbookError) -> BatchArchiveError {
    match error.kind() {
        ErrorKind::Corrupt => BatchArchiveError::Unreadable(error.to_string()),
        _ => BatchArchiveError::Unavailable(error.to_string()),
    }
}

fn away(error: ArchiveFault) -> BatchArchiveError {
    BatchArchiveError::Unavailable(error.to_string())
}

impl Common {
    fn batch(&self, row: &segno_runbook::rows::BatchRow) -> Result<BatchRow, serde_json::Error> {
        let shown = rows::batch(row);
        Ok(BatchRow {
            tenant_id: self.owner.tenant.as_str().into(),
            workspace_id: self.owner.namespace.as_str().into(),
            id: self.id.clone(),
            incarnation: self.incarnation,
            revision: self.revision,
            ended_at: self.ended_at,
            runbook: row.runbook_name.as_str().into(),
            status: name(&shown.status)?,
            detected_at: self.incarnation,
            completed_at: self.ended_at,
            data: json(&shown)?,
        })
    }

    /// The row of a table; none for what is not shown.
    fn row(
        &self,
        row: Row,
        last_query: Option<Timestamp>,
    ) -> Result<Option<(&'static Kind, Vec<Cell>)>, serde_json::Error> {
        Ok(Some(match row {
            Row::Phase(row) => (&PHASES, self.phase(row)?.to_cells()),
            Row::Member(row) => (&MEMBERS, self.member(rows::member(row, last_query))?.to_cells()),
            Row::Step(row) => (&STEPS, self.step("step", rows::step(row))?.to_cells()),
            Row::Init(row) => (&STEPS, self.step("init", rows::init(row))?.to_cells()),
            _ => return Ok(None),
        }))
    }

    fn phase(&self, row: segno_runbook::rows::PhaseRow) -> Result<PhaseRow, serde_json::Error> {
        let shown = rows::phase(row);
        Ok(PhaseRow {
            tenant_id: self.owner.tenant.as_str().into(),
            workspace_id: self.owner.namespace.as_str().into(),
            id: self.id.clone(),
            incarnation: self.incarnation,
            revision: self.revision,
            ended_at: self.ended_at,
            phase: number(shown.id),
            name: shown.phase_name.as_str().into(),
            status: name(&shown.status)?,
            data: json(&shown)?,
        })
    }

    fn member(&self, shown: segno_api::batch::Member) -> Result<MemberRow, serde_json::Error> {
        Ok(MemberRow {
            tenant_id: self.owner.tenant.as_str().into(),
            workspace_id: self.owner.namespace.as_str().into(),
            id: self.id.clone(),
            incarnation: self.incarnation,
            revision: self.revision,
            ended_at: self.ended_at,
            member: number(shown.id),
            key: shown.member_key.as_str().into(),
            status: name(&shown.status)?,
            data: json(&shown)?,
        })
    }

    fn step(&self, kind: &str, shown: segno_api::batch::Step) -> Result<StepRow, serde_json::Error> {
        Ok(StepRow {
            tenant_id: self.owner.tenant.as_str().into(),
            workspace_id: self.owner.namespace.as_str().into(),
            id: self.id.clone(),
            incarnation: self.incarnation,
            revision: self.revision,
            ended_at: self.ended_at,
            kind: kind.into(),
            step: number(shown.id),
            member: shown.batch_member_id.map(number),
            phase: shown.phase_execution_id.map(number),
            name: shown.step_name.as_str().into(),
            function: shown.function_name.as_str().into(),
            status: name(&shown.status)?,
            data: json(&shown)?,
        })
    }
}

fn json(value: &impl Serialize) -> Result<Arc<str>, serde_json::Error> {
    Ok(serde_json::to_string(value)?.into())
}

/// The name of a state, as in JSON.
fn name(value: &impl Serialize) -> Result<Arc<str>, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    Ok(value.as_str().unwrap_or_default().into())
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
