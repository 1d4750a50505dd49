//! Reading what a decision needs: rows, ranges of rows, ids and definitions.

use std::ops::Range;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::store::{ListRecords, Record, Store};

use super::counter;
use super::definitions::{Definitions, LoadedDefinitions};
use super::error::DriveError;
use super::place::BatchPlace;
use crate::rows::{BatchRow, InitRow, MemberId, PhaseRow, Row, RowKey, Rows, StepId, Table, Want, WorkKey};

/// Reads that are made at the same time.
const READS_AT_ONCE: usize = 64;

/// Records in a page of a listing.
const PAGE: usize = 1_000;

/// Rows of a table whose ids differ by at most this much are read as one range.
const MAX_GAP: u64 = 4;

/// Most ids in a range that was made of single rows.
const MAX_RANGE: u64 = 1_000;

/// Reads records of one batch.
pub(super) struct Loader<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) place: &'a BatchPlace,
    pub(super) definitions: &'a Definitions,
}

/// What was read for a [`Want`].
enum Answer {
    Row(RowKey, Option<Box<Row>>),
    Range(Table, Range<u64>, Vec<Row>),
}

impl Loader<'_> {
    /// The rows that are always in memory: the batch, its phases and its init steps.
    pub(super) async fn begin(&self) -> Result<Rows, DriveError> {
        let batch = self.row(&RowKey::Batch).await?.and_then(|row| match row {
            Row::Batch(row) => Some::<BatchRow>(row),
            _ => None,
        });
        let mut phases: Vec<PhaseRow> = Vec::new();
        let mut inits: Vec<InitRow> = Vec::new();
        for table in [Table::PhaseExecutions, Table::InitExecutions] {
            for row in self.range(table, 0, u64::MAX).await? {
                match row {
                    Row::Phase(row) => phases.push(row),
                    Row::Init(row) => inits.push(row),
                    _ => {}
                }
            }
        }
        Ok(Rows::new(batch, phases, inits))
    }

    /// Loads everything that is wanted. Definitions are of the named runbook.
    pub(super) async fn load(
        &self,
        rows: &mut Rows,
        known: &mut LoadedDefinitions,
        runbook: &str,
        wants: Vec<Want>,
    ) -> Result<(), DriveError> {
        let mut reads = Vec::new();
        for want in wants {
            match want {
                Want::Ids { table, count } => {
                    let scope = &self.place.scope;
                    rows.ids().grant(table, counter::reserve(self.store, scope, table.name(), count).await?);
                }
                Want::Definition(version) => {
                    let definition = self.definitions.get(&self.place.scope, runbook, version).await?;
                    known.insert(version, definition);
                }
                read => reads.push(read),
            }
        }
        let reads = stream::iter(together(reads)).map(|want| self.read(want)).buffer_unordered(READS_AT_ONCE);
        let mut reads = std::pin::pin!(reads);
        while let Some(answer) = reads.try_next().await? {
            match answer {
                Answer::Row(_, Some(row)) => rows.load(*row),
                Answer::Row(key, None) => rows.load_absent(&key),
                Answer::Range(table, ids, found) => {
                    found.into_iter().for_each(|row| rows.load(row));
                    rows.load_absent_range(table, ids);
                }
            }
        }
        Ok(())
    }

    async fn read(&self, want: Want) -> Result<Answer, DriveError> {
        match want {
            Want::Row(key) => {
                let row = self.row(&key).await?;
                Ok(Answer::Row(key, row.map(Box::new)))
            }
            Want::Range { table, from, to } => {
                let found = self.range(table, from, to).await?;
                Ok(Answer::Range(table, from..to, found))
            }
            other => Err(DriveError::StillMissing(vec![other])),
        }
    }

    async fn row(&self, key: &RowKey) -> Result<Option<Row>, DriveError> {
        let record = self.store.get_record(key.table().name(), &self.place.row_id(key)).await?;
        record.map(|record| decode(key.table(), &record)).transpose()
    }

    /// Rows of a table of numbered rows, by id.
    async fn range(&self, table: Table, from: u64, to: u64) -> Result<Vec<Row>, DriveError> {
        let folder = self.place.folder();
        let last = format!("{folder}{:020}", to.saturating_sub(1));
        let mut after = (from > 0).then(|| format!("{folder}{:020}", from - 1));
        let limit = usize::try_from(to - from).unwrap_or(PAGE).clamp(1, PAGE);
        let mut rows = Vec::new();
        loop {
            let request =
                ListRecords { kind: table.name(), id_prefix: &folder, after_id: after.as_deref(), limit };
            let page = self.store.list_records(request).await?;
            let is_last = page.len() < limit || page.last().is_some_and(|record| record.id >= last);
            for record in page.iter().filter(|record| record.id <= last) {
                rows.push(decode(table, record)?);
            }
            if is_last {
                return Ok(rows);
            }
            after = page.last().map(|record| record.id.clone());
        }
    }
}

/// Reads single rows with neighbouring ids as ranges: a thousand results of one phase are a few
/// reads.
fn together(mut wants: Vec<Want>) -> Vec<Want> {
    wants.sort_unstable();
    wants.dedup();
    let mut reads: Vec<Want> = Vec::new();
    let mut run: Option<(Table, Range<u64>)> = None;
    for want in wants {
        let Some((table, id)) = numbered(&want) else {
            reads.push(want);
            continue;
        };
        match &mut run {
            Some((of, ids)) if *of == table && id <= ids.end + MAX_GAP && id - ids.start < MAX_RANGE => {
                ids.end = id + 1;
            }
            _ => {
                reads.extend(run.take().map(read_of_run));
                run = Some((table, id..id + 1));
            }
        }
    }
    reads.extend(run.map(read_of_run));
    reads
}

/// Table and id of a row that can be read in a range.
fn numbered(want: &Want) -> Option<(Table, u64)> {
    match want {
        Want::Row(RowKey::Member(MemberId(id))) => Some((Table::BatchMembers, *id)),
        Want::Row(RowKey::Work(WorkKey::Step(StepId(id)))) => Some((Table::StepExecutions, *id)),
        _ => None,
    }
}

fn read_of_run((table, ids): (Table, Range<u64>)) -> Want {
    if ids.end - ids.start > 1 {
        return Want::Range { table, from: ids.start, to: ids.end };
    }
    Want::Row(match table {
        Table::BatchMembers => RowKey::Member(MemberId(ids.start)),
        _ => WorkKey::Step(StepId(ids.start)).into(),
    })
}

pub(super) fn decode(table: Table, record: &Record) -> Result<Row, DriveError> {
    Row::decode(table, &record.body).map_err(|error| DriveError::Unreadable {
        kind: table.name(),
        id: record.id.clone(),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_rows_are_read_as_ranges() {
        let step = |id| Want::Row(WorkKey::Step(StepId(id)).into());
        let member = |id| Want::Row(RowKey::Member(MemberId(id)));
        let key = Want::Row(RowKey::MemberKey("a".to_owned()));
        let read = together(vec![step(7), member(1), step(3), step(100), step(7), key.clone(), member(2)]);
        let range = |table, from, to| Want::Range { table, from, to };
        let expected = [key, range(Table::BatchMembers, 1, 3), range(Table::StepExecutions, 3, 8), step(100)];
        assert_eq!(read, expected);
        let all = together((0..5_000).map(step).collect());
        assert_eq!(all.len(), 5);
        assert_eq!(all[0], range(Table::StepExecutions, 0, MAX_RANGE));
    }
}
