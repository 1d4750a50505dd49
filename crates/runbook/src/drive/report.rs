//! Reading a report of a batch in parts. A part has some members with all their steps: ids are
//! arithmetic, so the steps of neighbouring members are ranges, and memory is bounded whatever the
//! size of the batch.

use std::collections::BTreeMap;

use segno_actions::functions::Scope;
use segno_actions::{Listed, Unreadable};

use super::error::RunbookError;
use super::runbooks::Runbooks;
use crate::report::{REPORT_HEADER, member_line, step_line, unreadable_line};
use crate::rows::{
    BatchId, BatchRow, MemberId, MemberRow, Ordinal, PhaseRow, Row, RowKey, StepId, StepRow, Table, WorkKey,
    block_end,
};

/// Most steps that a part has in memory.
const STEPS_PER_PART: u32 = 4_096;

/// Most phases of a batch that are reported: those of a hundred versions.
const MAX_PHASES: usize = 10_000;

/// Most members in a part.
const MEMBERS_PER_PART: u32 = 64;

/// A report that is being read.
#[derive(Debug)]
pub struct Report {
    batch: BatchRow,
    phases: Vec<PhaseRow>,
    /// First member that is not reported yet.
    next: Ordinal,
    has_header: bool,
    /// Why phases are missing.
    damaged: Vec<String>,
}

/// Rows of some members, ids of a table by ordinal.
struct Found<R> {
    rows: BTreeMap<u64, Result<R, String>>,
    /// Why others are missing; empty if none is.
    damaged: String,
}

impl<R> Found<R> {
    /// A row, or why it cannot be read; `None` when it is not stored.
    fn row(&self, id: u64) -> Option<Result<&R, &str>> {
        match self.rows.get(&id) {
            Some(row) => Some(row.as_ref().map_err(String::as_str)),
            None if self.damaged.is_empty() => None,
            None => Some(Err(&self.damaged)),
        }
    }
}

impl Runbooks {
    /// Begins a report of a batch. Members that are added later are not in it. What cannot be read
    /// has a line of its own.
    ///
    /// # Errors
    /// `unknown-batch`, `stored-data-unreadable`, `store`.
    pub async fn report(&self, scope: &Scope, batch: BatchId) -> Result<Report, RunbookError> {
        let row = self.batch(scope, batch).await?;
        let of_phases = (None, MAX_PHASES);
        let (rows, damaged) =
            self.rows_around_damage(scope, batch, Table::PhaseExecutions, of_phases).await?;
        let (rows, unreadable) = Listed::split(rows);
        let of_phase = |row: &Unreadable| format!("phase {}: {}", row.id, row.reason);
        let damaged = damaged.iter().map(|reason| format!("a phase with its steps: {reason}"));
        let damaged = damaged.chain(unreadable.iter().map(of_phase)).collect();
        let phases = rows.into_iter().filter_map(|row| match row {
            Row::Phase(row) => Some(row),
            _ => None,
        });
        Ok(Report { batch: row, phases: phases.collect(), next: 0, has_header: false, damaged })
    }

    /// The next part of a report as lines of CSV; `None` when all members are reported.
    ///
    /// # Errors
    /// `unknown-batch` if the batch was deleted meanwhile, `store`.
    pub async fn report_part(
        &self,
        scope: &Scope,
        report: &mut Report,
    ) -> Result<Option<String>, RunbookError> {
        let mut text = String::new();
        if !report.has_header {
            report.has_header = true;
            text.push_str(REPORT_HEADER);
            for reason in &report.damaged {
                unreadable_line(&mut text, None, "", reason);
            }
        }
        let members = report.next..report.part_end();
        if members.is_empty() {
            // A batch whose rows were deleted meanwhile has no members either.
            self.batch(scope, report.batch.id).await?;
            return Ok((!text.is_empty()).then_some(text));
        }
        let id = |ordinal| report.batch.member_id(ordinal).map(|id| id.0);
        let found = self.found::<MemberRow>(scope, report, (members.start, members.end), id).await?;
        let mut steps = Vec::new();
        for phase in &report.phases {
            for index in 0..phase.steps {
                let id = |ordinal| phase.step_id(ordinal, index).map(|id| id.0);
                let rows = self.found::<StepRow>(scope, report, (members.start, members.end), id);
                steps.push((phase, index, rows.await?));
            }
        }
        for ordinal in members.clone() {
            let Some(member_id) = report.batch.member_id(ordinal) else { continue };
            let member = match found.row(member_id.0) {
                Some(Ok(member)) => member,
                Some(Err(reason)) => {
                    unreadable_line(&mut text, None, &member_id.to_string(), reason);
                    continue;
                }
                None => continue,
            };
            let before = text.len();
            for (phase, index, rows) in &steps {
                // The others are not made yet.
                let id = phase.step_id(ordinal, *index).filter(|_| ordinal < phase.created);
                let Some(id) = id else { continue };
                match rows.row(id.0) {
                    Some(Ok(step)) => step_line(&mut text, member, phase, step),
                    Some(Err(reason)) => unreadable_line(&mut text, Some(member), &id.to_string(), reason),
                    None => {}
                }
            }
            if text.len() == before {
                member_line(&mut text, member);
            }
        }
        report.next = members.end;
        Ok(Some(text))
    }

    /// The rows of some neighbouring members, by id.
    async fn found<R: Reported>(
        &self,
        scope: &Scope,
        report: &Report,
        (first, end): (Ordinal, Ordinal),
        id: impl Fn(Ordinal) -> Option<u64>,
    ) -> Result<Found<R>, RunbookError> {
        let mut found = Found { rows: BTreeMap::new(), damaged: String::new() };
        let (Some(from), Some(last)) = (id(first), id(end - 1)) else { return Ok(found) };
        let after = from.checked_sub(1).map(R::key);
        let limit = usize::try_from(last - from + 1).unwrap_or(usize::MAX);
        let (rows, damaged) =
            self.rows_around_damage(scope, report.batch.id, R::TABLE, (after.as_ref(), limit)).await?;
        found.damaged = damaged.join("; ");
        for row in rows {
            match row {
                Listed::Readable(row) => {
                    let Some(row) = R::of(row) else { continue };
                    found.rows.insert(row.id(), Ok(row.slim()));
                }
                Listed::Unreadable(Unreadable { id, reason }) => {
                    let Ok(id) = id.parse() else { continue };
                    found.rows.insert(id, Err(reason));
                }
            }
        }
        Ok(found)
    }
}

impl Report {
    /// First member after the next part: all members of a part are in one block of ids.
    fn part_end(&self) -> Ordinal {
        let steps: u32 = self.phases.iter().map(|phase| phase.steps).sum();
        let members = (STEPS_PER_PART / steps.max(1)).clamp(1, MEMBERS_PER_PART);
        self.next.saturating_add(members).min(block_end(self.next)).min(self.batch.members)
    }
}

/// A row that is in reports.
trait Reported: Sized {
    const TABLE: Table;
    fn key(id: u64) -> RowKey;
    fn of(row: Row) -> Option<Self>;
    fn id(&self) -> u64;
    /// The row without the columns that may be large and are not reported.
    fn slim(self) -> Self;
}

impl Reported for MemberRow {
    const TABLE: Table = Table::BatchMembers;

    fn key(id: u64) -> RowKey {
        RowKey::Member(MemberId(id))
    }

    fn of(row: Row) -> Option<Self> {
        if let Row::Member(row) = row { Some(row) } else { None }
    }

    fn id(&self) -> u64 {
        self.id.0
    }

    fn slim(mut self) -> Self {
        self.data.clear();
        self.worker_data.clear();
        self
    }
}

impl Reported for StepRow {
    const TABLE: Table = Table::StepExecutions;

    fn key(id: u64) -> RowKey {
        WorkKey::Step(StepId(id)).into()
    }

    fn of(row: Row) -> Option<Self> {
        if let Row::Step(row) = row { Some(row) } else { None }
    }

    fn id(&self) -> u64 {
        self.id.0
    }

    fn slim(mut self) -> Self {
        self.work.params_json = String::new();
        self.work.result_json = None;
        self
    }
}
