//! Reading batches: rows of any table in pages, and why a row waits.

use segno::store::{ErrorKind, ListRecords, Record};
use segno_actions::functions::Scope;
use segno_actions::{Listed, Unreadable};

use super::attendance::add_delay;
use super::counter;
use super::definitions::LoadedDefinitions;
use super::error::{DriveError, RunbookError};
use super::load::{Loader, decode};
use super::place::{BATCH_INDEX, BatchPlace, index_folder};
use super::published::BatchSummary;
use super::runbooks::{Runbooks, listed};
use crate::rows::{BatchId, BatchRow, MemberId, PhaseRow, Row, RowKey, StepRow, Table, WorkKey};
use crate::step::limits::{DISPATCH_TIMEOUT_SEC, ROWS_PER_PART};
use crate::step::{Context, Explanation, StepTemplates, explain};

/// Loads after which an explanation is given up, which would be a defect.
const MAX_LOADS: usize = 1_000;

/// Least and most ids that one window of a list of batches spans.
const MIN_WINDOW: u64 = 16;
const MAX_WINDOW: u64 = 4_096;

/// Batches that one read of all of them returns.
const BATCHES_AT_ONCE: usize = 1_000;

impl Runbooks {
    /// Batches of a scope after an id, oldest first.
    ///
    /// # Errors
    /// `store`.
    pub async fn batches(
        &self,
        scope: &Scope,
        after: Option<BatchId>,
        limit: usize,
    ) -> Result<Vec<Listed<BatchRow>>, RunbookError> {
        let page = self.batch_records(scope, after, limit).await?;
        Ok(page.iter().map(|record| batch_row(scope, record)).collect())
    }

    /// Batches before an id, newest first; those of one runbook if it is named.
    ///
    /// # Errors
    /// `store`.
    pub async fn newest_batches(
        &self,
        scope: &Scope,
        runbook: Option<&str>,
        before: Option<BatchId>,
        limit: usize,
    ) -> Result<Vec<Listed<BatchRow>>, RunbookError> {
        let Some(runbook) = runbook else { return self.newest_of_all(scope, before, limit).await };
        let mut found = Vec::new();
        for summary in self.batches_of(scope, runbook, before, limit).await? {
            let batch = match summary {
                Listed::Readable(summary) => summary.batch_id,
                Listed::Unreadable(row) => {
                    found.push(Listed::Unreadable(row));
                    continue;
                }
            };
            match self.row(scope, batch, &RowKey::Batch).await {
                Ok(Some(Row::Batch(row))) => found.push(Listed::Readable(row)),
                // It was deleted since the index was read.
                Ok(_) => {}
                Err(RunbookError::Unreadable { reason, .. }) => {
                    found.push(Listed::Unreadable(Unreadable { id: batch.to_string(), reason }));
                }
                // It is on a damaged block, which hides no other batch.
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let (id, reason) = (batch.to_string(), error.damage());
                    found.push(Listed::Unreadable(Unreadable { id, reason }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Batches of all runbooks. Ids are dense, so they are read in windows from the highest one down.
    async fn newest_of_all(
        &self,
        scope: &Scope,
        before: Option<BatchId>,
        limit: usize,
    ) -> Result<Vec<Listed<BatchRow>>, RunbookError> {
        let next = match counter::next(&*self.store, scope, Table::Batches.name()).await {
            // Without the counter the highest id is found by reading all.
            Err(error) if error.kind() == ErrorKind::Corrupt => self.behind_last_batch(scope).await?,
            next => next?,
        };
        let mut end = before.map_or(next, |before| before.0.min(next));
        let mut window = (limit as u64).max(MIN_WINDOW);
        let mut found = Vec::new();
        while end > 0 && found.len() < limit {
            let start = end.saturating_sub(window);
            let after = start.checked_sub(1).map(BatchId);
            let rows = usize::try_from(end - start).unwrap_or(usize::MAX);
            let place = BatchPlace::new(scope.clone(), BatchId(end)).id();
            let mut page = self.batch_records(scope, after, rows).await?;
            page.retain(|record| record.id < place);
            found.extend(page.iter().rev().map(|record| batch_row(scope, record)));
            end = start;
            // Deleted batches leave gaps.
            window = (window * 2).min(MAX_WINDOW);
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The id behind that of the last batch that can be read.
    async fn behind_last_batch(&self, scope: &Scope) -> Result<u64, RunbookError> {
        let mut last = None;
        loop {
            let page = self.batch_records(scope, last, BATCHES_AT_ONCE).await?;
            let id = page.last().and_then(|record| record.id.rsplit('/').next()?.parse().ok());
            last = id.map(BatchId).or(last);
            if page.len() < BATCHES_AT_ONCE || id.is_none() {
                return Ok(last.map_or(0, |last| last.0.saturating_add(1)));
            }
        }
    }

    async fn batch_records(
        &self,
        scope: &Scope,
        after: Option<BatchId>,
        limit: usize,
    ) -> Result<Vec<Record>, RunbookError> {
        let prefix = scope.id_prefix();
        let after = after.map(|batch| BatchPlace::new(scope.clone(), batch).id());
        let kind = Table::Batches.name();
        let request = ListRecords { kind, id_prefix: &prefix, after_id: after.as_deref(), limit };
        Ok(self.store.list_records(request).await?)
    }

    /// Batches of a runbook before an id, newest first.
    ///
    /// # Errors
    /// `store`.
    pub async fn batches_of(
        &self,
        scope: &Scope,
        runbook: &str,
        before: Option<BatchId>,
        limit: usize,
    ) -> Result<Vec<Listed<BatchSummary>>, RunbookError> {
        let prefix = index_folder(scope, runbook);
        let before = before.map(|batch| BatchPlace::new(scope.clone(), batch).index_id(runbook));
        let request =
            ListRecords { kind: BATCH_INDEX, id_prefix: &prefix, after_id: before.as_deref(), limit };
        let page = self.store.list_records(request).await?;
        let summary = |record| match listed(BatchSummary::read(record), record, &prefix) {
            Listed::Unreadable(row) => Listed::Unreadable(Unreadable { id: batch_of_index(&row.id), ..row }),
            readable @ Listed::Readable(_) => readable,
        };
        Ok(page.iter().map(summary).collect())
    }

    /// A batch.
    ///
    /// # Errors
    /// `unknown-batch`, `stored-data-unreadable`, `store`.
    pub async fn batch(&self, scope: &Scope, batch: BatchId) -> Result<BatchRow, RunbookError> {
        match self.row(scope, batch, &RowKey::Batch).await? {
            Some(Row::Batch(row)) => Ok(row),
            _ => Err(RunbookError::UnknownBatch(batch)),
        }
    }

    /// The phases of a batch, in order.
    ///
    /// # Errors
    /// `unknown-batch`, `stored-data-unreadable`, `store`.
    pub async fn phases(&self, scope: &Scope, batch: BatchId) -> Result<Vec<PhaseRow>, RunbookError> {
        self.batch(scope, batch).await?;
        let place = BatchPlace::new(scope.clone(), batch);
        let rows = self.loader(&place).begin().await?;
        Ok(rows.phases().cloned().collect())
    }

    /// The steps of a member in all phases, in order. One that cannot be read hides no other.
    ///
    /// # Errors
    /// `unknown-batch`, `stored-data-unreadable`, `store`.
    pub async fn steps_of_member(
        &self,
        scope: &Scope,
        batch: BatchId,
        member: MemberId,
    ) -> Result<Vec<Listed<StepRow>>, RunbookError> {
        let Some(ordinal) = self.batch(scope, batch).await?.ordinal(member) else { return Ok(Vec::new()) };
        let mut steps = Vec::new();
        for phase in self.phases(scope, batch).await? {
            for index in 0..phase.steps {
                let Some(id) = phase.step_id(ordinal, index) else { continue };
                match self.row(scope, batch, &WorkKey::Step(id).into()).await {
                    Ok(Some(Row::Step(row))) => steps.push(Listed::Readable(row)),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        let (id, reason) = (id.to_string(), error.damage());
                        steps.push(Listed::Unreadable(Unreadable { id, reason }));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(steps)
    }

    /// A row of a batch; `None` if there is none.
    ///
    /// # Errors
    /// `stored-data-unreadable`, `store`.
    pub async fn row(
        &self,
        scope: &Scope,
        batch: BatchId,
        key: &RowKey,
    ) -> Result<Option<Row>, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let record = self.store.get_record(key.table().name(), &place.row_id(key)).await?;
        Ok(record.map(|record| decode(key.table(), &record)).transpose()?)
    }

    /// Rows of a table of a batch after a row, by id. The last row of a page is the cursor of the
    /// next.
    ///
    /// # Errors
    /// `store`.
    pub async fn rows(
        &self,
        scope: &Scope,
        batch: BatchId,
        table: Table,
        (after, limit): (Option<&RowKey>, usize),
    ) -> Result<Vec<Listed<Row>>, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let (folder, after) = (place.folder(), after.map(|key| place.row_id(key)));
        let request =
            ListRecords { kind: table.name(), id_prefix: &folder, after_id: after.as_deref(), limit };
        let page = self.store.list_records(request).await?;
        Ok(page.iter().map(|record| row_of(table, record, &folder)).collect())
    }

    /// The same past damage, with why others are missing.
    ///
    /// # Errors
    /// `store`.
    pub(super) async fn rows_around_damage(
        &self,
        scope: &Scope,
        batch: BatchId,
        table: Table,
        (after, limit): (Option<&RowKey>, usize),
    ) -> Result<(Vec<Listed<Row>>, Vec<String>), RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let (folder, after) = (place.folder(), after.map(|key| place.row_id(key)));
        let request =
            ListRecords { kind: table.name(), id_prefix: &folder, after_id: after.as_deref(), limit };
        let read = self.store.list_records_around_damage(request).await?;
        Ok((read.records.iter().map(|record| row_of(table, record, &folder)).collect(), read.damaged))
    }

    /// Why a row waits, what will wake it, and when.
    ///
    /// # Errors
    /// `unknown-batch`, `stored-data-unreadable`, `store`.
    pub async fn explain(
        &self,
        scope: &Scope,
        batch: BatchId,
        key: &RowKey,
    ) -> Result<Explanation, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let loader = self.loader(&place);
        let mut rows = loader.begin().await?;
        let Some(row) = rows.batch() else { return Err(RunbookError::UnknownBatch(batch)) };
        let runbook = row.runbook_name.clone();
        let mut known = LoadedDefinitions::new();
        let now = self.now().await?;
        let mut last = Vec::new();
        for _ in 0..MAX_LOADS {
            let context = Context {
                now,
                definitions: &known,
                templates: &StepTemplates,
                zones: self.definitions.zones(),
                rows_per_part: ROWS_PER_PART,
                dispatch_timeout_sec: DISPATCH_TIMEOUT_SEC,
            };
            match explain(&mut rows, key, &context) {
                Ok(explanation) => {
                    let now_ms = u64::try_from(now.as_millisecond()).unwrap_or_default();
                    return Ok(add_delay(&*self.store, &place, explanation, now_ms).await?);
                }
                Err(missing) => {
                    last.clone_from(&missing.0);
                    loader.load(&mut rows, &mut known, &runbook, missing.0).await?;
                }
            }
        }
        Err(DriveError::StillMissing(last).into())
    }

    fn loader<'a>(&'a self, place: &'a BatchPlace) -> Loader<'a> {
        Loader { store: &*self.store, place, definitions: &self.definitions }
    }
}

/// The id of a batch, of the number by which the index has its batches newest first.
fn batch_of_index(place: &str) -> String {
    place.parse().map_or_else(|_| place.to_owned(), |place: u64| (u64::MAX - place).to_string())
}

/// A row whose id is a number, without the zeros by which records are in order.
pub(super) fn numbered<T>(row: Listed<T>) -> Listed<T> {
    match row {
        Listed::Unreadable(Unreadable { id, reason }) => {
            Listed::Unreadable(Unreadable { id: id.trim_start_matches('0').to_owned(), reason })
        }
        readable @ Listed::Readable(_) => readable,
    }
}

fn row_of(table: Table, record: &Record, folder: &str) -> Listed<Row> {
    match (table, listed(decode(table, record), record, folder)) {
        // Its ids are keys of members.
        (Table::MemberKeys, row) => row,
        (_, row) => numbered(row),
    }
}

fn batch_row(scope: &Scope, record: &Record) -> Listed<BatchRow> {
    let batch = decode(Table::Batches, record).and_then(|row| match row {
        Row::Batch(row) => Ok(row),
        other => Err(DriveError::Unreadable {
            kind: Table::Batches.name(),
            id: record.id.clone(),
            problem: format!("it is a row of another table: {:?}", other.key()),
        }),
    });
    numbered(listed(batch, record, &scope.id_prefix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_index_that_cannot_be_read_has_the_id_of_its_batch() {
        let scope = Scope::new("eu", "acme").unwrap();
        let entry = BatchPlace::new(scope.clone(), BatchId(42)).index_id("wave");
        let place = entry.strip_prefix(&index_folder(&scope, "wave")).unwrap();
        assert_eq!(batch_of_index(place), "42");
        assert_eq!(batch_of_index("x"), "x");
    }
}
