//! What a query returns, and what a run would change. Nothing is written into batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use segno::clock::duration_ms;
use segno::store::{ListRecords, RecordBatch};
use segno_actions::functions::Scope;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::apply::BatchStates;
use super::known::{SourceBatch, SourceMember};
use super::row::QueryRow;
use crate::definition::{DataSource, Definition, SourceKind};
use crate::drive::ended_calls;
use crate::drive::error::RunbookError;
use crate::drive::place::{SOURCE_BATCHES, SOURCE_MEMBERS, index_folder};
use crate::drive::runbooks::Runbooks;
use crate::members::{Row, immediate_start};
use crate::problem::Problems;
use crate::rows::normal_key;
use crate::source::{BatchState, ComparedRow, Merge, Query, RowDigest, RowStart, Sources, start_of};
use crate::template::columns_needed;

/// Most rows of a preview.
pub const MAX_PREVIEW_SAMPLES: usize = 100;

/// Most batches of a preview.
pub const MAX_PREVIEW_GROUPS: usize = 100;

/// Longest time of a query for a preview, for which a caller waits.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(25);

/// Known members that are read at once.
const PAGE: usize = 1_000;

/// What a query returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// Rows in all.
    pub rows: usize,
    /// Batches in all.
    pub batches: usize,
    /// The first batches, earliest first.
    pub groups: Vec<PreviewGroup>,
    /// The first rows, in the order of the source.
    pub samples: Vec<PreviewSample>,
    /// Rows without a batch in all.
    pub skipped: usize,
    /// Why the first of them have none.
    pub problems: Vec<String>,
    /// What a run would change now.
    pub changes: PreviewChanges,
}

/// A batch of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewGroup {
    /// Its start.
    pub start: Timestamp,
    /// Rows that belong to it.
    pub rows: usize,
}

/// A row of a preview.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewSample {
    /// Key of the member.
    pub key: String,
    /// Start of its batch; none if its batch time cannot be read.
    pub start: Option<Timestamp>,
    /// Its columns.
    pub data: Map<String, Value>,
}

/// What a run would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreviewChanges {
    /// Members that would be added, or would return.
    pub added: usize,
    /// Members whose data would change.
    pub changed: usize,
    /// Members that would be removed.
    pub removed: usize,
    /// Members whose removal would wait for approval.
    pub held: usize,
    /// Rows that are skipped because the batch of their start has ended.
    pub skipped_ended: usize,
}

/// Makes previews of queries.
#[derive(Clone)]
pub struct Previewer {
    /// Runbooks and batches.
    pub runbooks: Runbooks,
    /// How sources are reached.
    pub sources: Sources,
    /// How long the calls of functions that are data sources are kept; as long as other instances
    /// without it.
    pub keep_invocations: Option<Duration>,
}

/// The call of a preview. It is cancelled if the preview is dropped before its end: its caller has
/// gone away.
struct PreviewCall {
    sources: Sources,
    scope: Scope,
    source: DataSource,
    key: String,
    is_over: bool,
}

impl Drop for PreviewCall {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_over || !self.source.kind.is_called() {
            return;
        }
        let (sources, scope, source) = (self.sources.clone(), self.scope.clone(), self.source.clone());
        let (key, required) = (std::mem::take(&mut self.key), BTreeSet::new());
        runtime.spawn(async move {
            let (scope, source, timeout) = (&scope, &source, PREVIEW_TIMEOUT);
            sources.cancel(Query { scope, source, required: &required, key: &key, timeout }).await;
        });
    }
}

impl Previewer {
    /// Runs the query of a runbook, published or not. The key tells this preview from others: a
    /// function is called under it.
    ///
    /// # Errors
    /// `source-not-queried` for a manual data source, `source-failed`, `invalid-members`,
    /// `stored-data-unreadable`, `store`.
    pub async fn preview(
        &self,
        scope: &Scope,
        definition: &Definition,
        key: &str,
    ) -> Result<Preview, RunbookError> {
        let source = &definition.data_source;
        if source.kind == SourceKind::Manual {
            return Err(RunbookError::NotQueried { name: definition.name.clone() });
        }
        self.sources.check(scope, source)?;
        let mut tally = Tally::new(source);
        let columns = self.rows(scope, definition, format!("preview-{key}"), &mut tally).await?;
        let now = immediate_start(self.runbooks.now().await?);
        if tally.immediate > 0 {
            *tally.groups.entry(now).or_default() += tally.immediate;
        }
        for sample in tally.samples.iter_mut().filter(|(_, start)| *start == RowStart::Now) {
            sample.0.start = Some(now);
        }
        let shown = tally.groups.iter().take(MAX_PREVIEW_GROUPS);
        Ok(Preview {
            columns,
            rows: tally.compared.len(),
            batches: tally.groups.len(),
            groups: shown.map(|(start, rows)| PreviewGroup { start: *start, rows: *rows }).collect(),
            samples: tally.samples.into_iter().map(|(sample, _)| sample).collect(),
            skipped: tally.unreadable.warnings(),
            problems: tally.unreadable.iter().map(ToString::to_string).collect(),
            changes: self.changes(scope, definition, (tally.compared, now)).await?,
        })
    }

    async fn rows(
        &self,
        scope: &Scope,
        definition: &Definition,
        key: String,
        tally: &mut Tally<'_>,
    ) -> Result<Vec<String>, RunbookError> {
        let source = &definition.data_source;
        if let Some(keep) = self.keep_invocations.filter(|_| source.kind.is_called()) {
            let due_at_ms = self.runbooks.store.now_ms().await?.saturating_add(duration_ms(keep));
            let writes = vec![ended_calls::write_job(scope, &key, due_at_ms)];
            let batch = RecordBatch { writes, ..RecordBatch::default() };
            self.runbooks.store.commit_records(batch).await?;
        }
        let required = columns_needed(definition);
        let mut call = PreviewCall {
            sources: self.sources.clone(),
            scope: scope.clone(),
            source: source.clone(),
            key: key.clone(),
            is_over: false,
        };
        let query = Query { scope, source, required: &required, key: &key, timeout: PREVIEW_TIMEOUT };
        let columns = self.sources.rows_into(query, &mut |row| tally.add(row)).await;
        call.is_over = true;
        Ok(columns?)
    }

    async fn changes(
        &self,
        scope: &Scope,
        definition: &Definition,
        (rows, now): (Vec<ComparedRow<RowDigest>>, Timestamp),
    ) -> Result<PreviewChanges, RunbookError> {
        let (name, runbooks) = (&definition.name, &self.runbooks);
        let folder = index_folder(scope, name);
        let mut merge = Merge::of(rows, now);
        let mut states = BatchStates::default();
        let mut after: Option<String> = None;
        loop {
            let after_id = after.as_deref();
            let request = ListRecords { kind: SOURCE_MEMBERS, id_prefix: &folder, after_id, limit: PAGE };
            let page = runbooks.store.list_records(request).await?;
            for record in &page {
                let (key, member) = SourceMember::read(scope, name, record)?;
                let state = states.of(runbooks, scope, member.batch_id).await?;
                merge.known(member.into_known(key), state);
            }
            if page.len() < PAGE {
                break;
            }
            after = page.last().map(|record| record.id.clone());
        }
        let mut difference = merge.finish();
        let row: QueryRow = runbooks.query(scope, name).await?;
        let percent = definition.data_source.max_removed_percent;
        let removals = difference.take_removals(percent, row.decisions());
        let mut new: BTreeMap<Timestamp, usize> =
            difference.new.iter().map(|(start, entries)| (*start, entries.len())).collect();
        for (start, _) in removals.removed.values().flatten().filter_map(|missing| missing.moves_to.as_ref())
        {
            *new.entry(*start).or_default() += 1;
        }
        let skipped_ended = self.of_ended_batches((scope, name), &new, &mut states).await?;
        Ok(PreviewChanges {
            added: difference.returned + new.values().sum::<usize>() - skipped_ended,
            skipped_ended,
            changed: difference.changed_data(),
            removed: removals.removed.values().map(Vec::len).sum(),
            held: removals.held.values().map(Vec::len).sum(),
        })
    }

    /// How many of the rows that are new have a start whose batch has ended.
    async fn of_ended_batches(
        &self,
        (scope, name): (&Scope, &str),
        new: &BTreeMap<Timestamp, usize>,
        states: &mut BatchStates,
    ) -> Result<usize, RunbookError> {
        let folder = index_folder(scope, name);
        let (mut count, mut after) = (0, None::<String>);
        // A runbook has fewer batches than a source may have starts.
        loop {
            let after_id = after.as_deref();
            let request = ListRecords { kind: SOURCE_BATCHES, id_prefix: &folder, after_id, limit: PAGE };
            let page = self.runbooks.store.list_records(request).await?;
            for record in &page {
                let start = record.id.strip_prefix(&folder).and_then(|start| start.parse::<Timestamp>().ok());
                let Some(rows) = start.and_then(|start| new.get(&start)) else { continue };
                let batch = SourceBatch::read(record)?.batch_id;
                if states.of(&self.runbooks, scope, batch).await? == BatchState::Ended {
                    count += rows;
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id.clone()),
                _ => return Ok(count),
            }
        }
    }
}

/// What a preview keeps of rows: counts, samples, and of each row its key and digest. A million rows
/// take some 100 MB, however many columns they have.
struct Tally<'t> {
    source: &'t DataSource,
    /// Rows by the start of their batch.
    groups: BTreeMap<Timestamp, usize>,
    /// Rows whose batch starts now.
    immediate: usize,
    samples: Vec<(PreviewSample, RowStart)>,
    unreadable: Problems,
    compared: Vec<ComparedRow<RowDigest>>,
}

impl<'t> Tally<'t> {
    fn new(source: &'t DataSource) -> Self {
        Tally {
            source,
            groups: BTreeMap::new(),
            immediate: 0,
            samples: Vec::new(),
            unreadable: Problems::default(),
            compared: Vec::new(),
        }
    }

    fn add(&mut self, row: Row) {
        let start = start_of(&row, self.source, &mut self.unreadable);
        let at = match start {
            RowStart::At(at) => {
                *self.groups.entry(at).or_default() += 1;
                Some(at)
            }
            RowStart::Now => {
                self.immediate += 1;
                None
            }
            RowStart::Unreadable => None,
        };
        let (key, entry) = (normal_key(&row.key).into(), RowDigest::of(&row));
        self.compared.push(ComparedRow { key, start, entry });
        if self.samples.len() < MAX_PREVIEW_SAMPLES {
            self.samples.push((PreviewSample { key: row.key, start: at, data: row.columns }, start));
        }
    }
}
