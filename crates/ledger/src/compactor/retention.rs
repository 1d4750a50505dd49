//! Retention of finished runs: a day partition whose runs have all ended long enough ago is removed from the tables. Its files are
//! deleted after the grace period, as other files that no manifest names.
//!
//! The events of the log stay: they also define what has no end, such as schedules and pools.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::background::Doomed;
use super::compactor::Compactor;
use super::projection::Projection;
use crate::log::EVENTS;
use crate::manifest::{Group, Place, month_of};
use crate::objects::StorageError;
use crate::snapshot::{TableFile, Tables};
use crate::tables::{Cell, Row, RunRow};

/// Days that one fold removes.
const DAYS_PER_FOLD: usize = 4;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl<P: Projection> Compactor<P> {
    /// When the next day partition may be removed.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.catalog.days().filter_map(|day| self.expiry_ms(day)).min()
    }

    /// When a partition may be removed: it has tables of runs, and its retention is over for all that is known of its runs.
    fn expiry_ms(&self, day: &str) -> Option<u64> {
        let retention_ms = self.context.options.run_retention_ms?;
        let tables = self.catalog.months.get(month_of(day))?.days.get(day)?;
        if tables.keys().all(|table| table == EVENTS) {
            return None;
        }
        let ended_ms = self.last_ends.get(day).copied().unwrap_or(0).max(end_of(day)?);
        Some(ended_ms.saturating_add(retention_ms))
    }

    /// Takes partitions whose retention is over out of the catalog. Their files are deleted once a manifest without them is
    /// published.
    pub(super) async fn expire_days(&mut self, now_ms: u64) -> Result<(), StorageError> {
        let due = |day: &&String| self.expiry_ms(day).is_some_and(|due_ms| due_ms <= now_ms);
        let days: Vec<String> = self.catalog.days().filter(due).take(DAYS_PER_FOLD).cloned().collect();
        for day in days {
            // A run that was triggered on a day may have ended long after it.
            let last_end_ms = self.last_end_of(&day).await?;
            self.last_ends.insert(day.clone(), last_end_ms);
            if self.expiry_ms(&day).is_some_and(|due_ms| due_ms <= now_ms) {
                self.remove_day(&day, now_ms);
            }
        }
        Ok(())
    }

    /// When the last run of a partition has ended.
    async fn last_end_of(&self, day: &str) -> Result<u64, StorageError> {
        let group = Group { table: RunRow::TABLE.to_owned(), place: Place::Day(day.to_owned()) };
        let column =
            Tables::find(RunRow::TABLE).and_then(|spec| Some((spec, spec.rows.position("completed_at")?)));
        let Some((spec, column)) = column else { return Ok(0) };
        let shelves = &self.context.shelves;
        let mut last = 0;
        for file in self.catalog.pieces(&group).iter().filter_map(|piece| piece.rows.as_ref()) {
            let path = shelves.paths.state_file(&file.path);
            let file = TableFile::open(&shelves.state, path, file, &spec.rows).await?;
            for group in 0..file.groups() {
                for cell in file.column(group, column).await? {
                    if let Cell::Integer(at) = cell {
                        last = last.max(u64::try_from(at).unwrap_or(0));
                    }
                }
            }
        }
        Ok(last)
    }

    fn remove_day(&mut self, day: &str, now_ms: u64) {
        let month = month_of(day);
        let Some(partitions) = self.catalog.months.get_mut(month) else { return };
        let days = &mut Arc::make_mut(partitions).days;
        let Some(tables) = days.get_mut(day) else { return };
        let events = tables.remove(EVENTS);
        let removed: BTreeMap<_, _> = std::mem::take(tables);
        match events {
            Some(events) => drop(tables.insert(EVENTS.to_owned(), events)),
            None => drop(days.remove(day)),
        }
        self.catalog.months_changed.insert(month.to_owned());
        let due_ms = now_ms.saturating_add(self.context.options.grace_ms);
        for (table, pieces) in removed {
            for file in pieces.iter().flat_map(crate::manifest::Piece::files) {
                let (objects, path) = self.context.shelves.of(&table, &file.path);
                self.replaced.push(Doomed { due_ms, objects: objects.clone(), path });
            }
        }
        self.last_ends.remove(day);
        // Runs of it are not put back any more.
        self.archived = None;
        let newest = self.expired_through.take().filter(|known| known.as_str() > day);
        self.expired_through = Some(newest.unwrap_or_else(|| day.to_owned()));
    }
}

/// The end of a day (UTC), in Unix milliseconds.
fn end_of(day: &str) -> Option<u64> {
    let begin: Timestamp = format!("{day}T00:00:00Z").parse().ok()?;
    Some(u64::try_from(begin.as_millisecond()).ok()?.saturating_add(DAY_MS))
}
