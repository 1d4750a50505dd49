//! Finished runs: out of the active rows into the partition of the day on which they were
//! triggered, and back when an event about one arrives.
//!
//! The day is that of the trigger because it never changes: a run that is reopened returns to the
//! same partition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::change::Entries;
use super::compactor::Compactor;
use super::projection::Projection;
use crate::log::day_of;
use crate::manifest::{Group, Place};
use crate::objects::StorageError;
use crate::snapshot::{TableFile, Tables, live_rows, rows_of};
use crate::tables::{Cell, Row, RunRow};

/// Which runs are in which day partition.
#[derive(Debug, Default)]
pub(super) struct ArchivedRuns {
    days: HashMap<Arc<str>, Arc<str>>,
}

/// A run that was put back for a fold, with the rows that its partition has.
pub(super) struct PagedRun {
    day: Arc<str>,
    rows: Entries,
}

/// What a fold moves between the active rows and the partitions.
#[derive(Default)]
pub(super) struct Moves {
    /// Changes of partitions, by day.
    pub(super) days: BTreeMap<Arc<str>, Entries>,
}

impl<P: Projection> Compactor<P> {
    /// Puts archived runs back.
    pub(super) async fn page_in(
        &mut self,
        wanted: BTreeSet<Arc<str>>,
        paged: &mut HashMap<Arc<str>, PagedRun>,
    ) -> Result<(), StorageError> {
        for run_id in wanted {
            if self.projection.has_run(&run_id) {
                continue;
            }
            let Some(day) = self.archived_day(&run_id).await? else { continue };
            let mut rows = self.archived_rows(&run_id, &day).await?;
            if rows.count() > 0 {
                let entries = Entries::of_rows(&mut rows);
                self.projection.restore_run(rows);
                paged.insert(run_id, PagedRun { day, rows: entries });
            }
        }
        Ok(())
    }

    async fn archived_day(&mut self, run_id: &str) -> Result<Option<Arc<str>>, StorageError> {
        if self.archived.is_none() {
            self.archived = Some(self.read_archived().await?);
        }
        Ok(self.archived.as_ref().and_then(|archived| archived.days.get(run_id)).cloned())
    }

    /// Reads the run ids of all partitions: one column.
    async fn read_archived(&self) -> Result<ArchivedRuns, StorageError> {
        let mut archived = ArchivedRuns::default();
        let Some((spec, column)) =
            Tables::find(RunRow::TABLE).and_then(|spec| Some((spec, spec.run_column?)))
        else {
            return Ok(archived);
        };
        let shelves = &self.context.shelves;
        for day in self.catalog.days() {
            let day: Arc<str> = day.as_str().into();
            let group = Group { table: RunRow::TABLE.to_owned(), place: Place::Day(day.to_string()) };
            for file in self.catalog.pieces(&group).iter().filter_map(|piece| piece.rows.as_ref()) {
                let path = shelves.paths.state_file(&file.path);
                let file = TableFile::open(&shelves.state, path, file, &spec.rows).await?;
                for group in 0..file.groups() {
                    for cell in file.column(group, column).await? {
                        if let Cell::Text(run_id) = cell {
                            archived.days.insert(run_id, Arc::clone(&day));
                        }
                    }
                }
            }
        }
        Ok(archived)
    }

    async fn archived_rows(&self, run_id: &str, day: &str) -> Result<crate::tables::Rows, StorageError> {
        let shelves = &self.context.shelves;
        let mut rows = BTreeMap::new();
        for (table, spec) in Tables::all() {
            let Some(column) = spec.run_column else { continue };
            let group = Group { table: table.to_owned(), place: Place::Day(day.to_owned()) };
            let pieces = self.catalog.pieces(&group);
            let live = live_rows(&shelves.state, &shelves.paths, spec, pieces, &[(column, run_id)]).await?;
            rows.insert(table, live.into_values().collect());
        }
        rows_of(rows)
    }

    /// After a fold: runs that were put back and did not change leave again; those that changed are
    /// active from now on.
    pub(super) fn page_out(
        &mut self,
        paged: HashMap<Arc<str>, PagedRun>,
        delta: &mut Entries,
        moves: &mut Moves,
    ) {
        let changed = delta.runs();
        let mut unchanged = Entries::default();
        for (run_id, paged) in paged {
            if !changed.contains(&run_id) {
                self.projection.retire_run(&run_id);
                unchanged.fill(paged.rows);
                continue;
            }
            moves.days.entry(paged.day).or_default().bury(&paged.rows);
            delta.fill(paged.rows);
            if let Some(archived) = &mut self.archived {
                archived.days.remove(&run_id);
            }
        }
        if !unchanged.is_empty() {
            // Active files do not have these rows, so there is nothing to bury.
            let mut buried = Entries::of_changes(&self.projection.take_changes());
            buried.remove(&unchanged);
            delta.extend(&buried);
        }
    }

    /// Whether finished runs should leave the active rows.
    pub(super) fn is_archive_due(&mut self, now_ms: u64) -> bool {
        let finished = self.projection.finished_count();
        if finished == 0 {
            self.finished_since_ms = None;
            return false;
        }
        let since_ms = *self.finished_since_ms.get_or_insert(now_ms);
        let options = &self.context.options;
        finished >= options.archive_runs || now_ms >= since_ms.saturating_add(options.archive_age_ms)
    }

    /// Moves finished runs to the partitions of their days, as many as one fold moves: the next fold
    /// moves the rest. Their tombstones are among the next changes of the projection.
    pub(super) fn archive(&mut self, paged: &HashMap<Arc<str>, PagedRun>, moves: &mut Moves) {
        let mut moved = 0;
        self.finished_since_ms = None;
        for run_id in self.projection.finished_runs() {
            if paged.contains_key(&run_id) {
                continue;
            }
            if moved >= self.context.options.archive_rows {
                // The rest is due since ever.
                self.finished_since_ms = Some(0);
                return;
            }
            let Some(mut rows) = self.projection.retire_run(&run_id) else { continue };
            let triggered_at = rows.runs.first().map_or(0, |run| run.triggered_at);
            let day: Arc<str> = day_of(triggered_at).into();
            let entries = Entries::of_rows(&mut rows);
            moved += entries.count();
            moves.days.entry(Arc::clone(&day)).or_default().fill(entries);
            if let Some(archived) = &mut self.archived {
                archived.days.insert(run_id, day);
            }
        }
    }
}
