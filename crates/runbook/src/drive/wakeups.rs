//! When the rows of a held batch are due. Batch, phases and init steps are in memory; the other
//! tables are asked only when a wake-up that this holder knows of has come.

use std::time::Duration;

use segno::clock::NEVER_MS;
use segno::store::{DueRecords, Record, Store};

use super::error::DriveError;
use super::load::decode;
use super::place::BatchPlace;
use crate::rows::{Row, RowKey, Rows, Table, WorkKey};

/// Most due rows of one table that are taken into a part.
const DUE_ROWS: usize = 1_000;

/// Tables whose due rows are not all in memory.
const STORED: [Table; 3] = [Table::StepExecutions, Table::RollbackExecutions, Table::RemovalExecutions];

/// The wake-ups of a batch.
#[derive(Debug)]
pub(super) struct Wakeups {
    /// No stored row is due before this time, in Unix milliseconds.
    stored_ms: u64,
}

impl Wakeups {
    /// Nothing is known: the tables are asked first.
    pub(super) fn unknown() -> Self {
        Wakeups { stored_ms: 0 }
    }

    /// Notes a row that is about to be committed.
    pub(super) fn note(&mut self, row: &Row) {
        if let (true, Some(at_ms)) = (is_stored(row), due_ms(row)) {
            self.stored_ms = self.stored_ms.min(at_ms);
        }
    }

    /// Rows that are due, each with the time, in the order of their tables. They are loaded: their records were
    /// read anyway.
    pub(super) async fn due(
        &mut self,
        store: &dyn Store,
        place: &BatchPlace,
        rows: &mut Rows,
        now_ms: u64,
    ) -> Result<Vec<(RowKey, u64)>, DriveError> {
        let mut keys: Vec<(RowKey, u64)> = in_memory(rows).filter(|(_, at_ms)| *at_ms <= now_ms).collect();
        if self.stored_ms > now_ms {
            return Ok(keys);
        }
        let before = keys.len();
        for table in STORED {
            for record in read(store, place, table, now_ms, DUE_ROWS).await? {
                let Some(key) = place.row_key(table, &record.id) else { continue };
                rows.load(decode(table, &record)?);
                keys.push((key, record.due_at_ms.unwrap_or_default()));
            }
        }
        if keys.len() == before {
            self.stored_ms = next_stored(store, place).await?;
        }
        Ok(keys)
    }

    /// The earliest wake-up, which may be too early for stored rows, and is never too late.
    pub(super) fn next_ms(&self, rows: &Rows) -> u64 {
        in_memory(rows).map(|(_, at_ms)| at_ms).min().unwrap_or(NEVER_MS).min(self.stored_ms)
    }

    /// The earliest wake-up of all rows.
    pub(super) async fn exact_ms(
        &self,
        store: &dyn Store,
        place: &BatchPlace,
        rows: &Rows,
    ) -> Result<Option<u64>, DriveError> {
        let stored_ms = next_stored(store, place).await?;
        let at_ms = in_memory(rows).map(|(_, at_ms)| at_ms).min().unwrap_or(NEVER_MS).min(stored_ms);
        Ok((at_ms != NEVER_MS).then_some(at_ms))
    }
}

fn is_stored(row: &Row) -> bool {
    matches!(row, Row::Step(_) | Row::Rollback(_) | Row::Removal(_))
}

/// When a row is due, in Unix milliseconds, rounded up: nothing is early.
pub(super) fn due_ms(row: &Row) -> Option<u64> {
    row.due_at().map(milliseconds)
}

fn milliseconds(at: jiff::Timestamp) -> u64 {
    let floor = at.as_millisecond();
    let rounded = if at.subsec_nanosecond() % 1_000_000 == 0 { floor } else { floor.saturating_add(1) };
    u64::try_from(rounded).unwrap_or_default()
}

/// The wake-ups of rows that are always loaded.
pub(super) fn in_memory(rows: &Rows) -> impl Iterator<Item = (RowKey, u64)> {
    let batch = rows.batch().and_then(|batch| Some((RowKey::Batch, batch.due_at()?)));
    let phases = rows.phases().filter_map(|phase| Some((RowKey::Phase(phase.id), phase.wakes_at()?)));
    let inits = rows.inits().filter_map(|init| Some((WorkKey::Init(init.id).into(), init.due_at()?)));
    batch.into_iter().chain(phases).chain(inits).map(|(key, at)| (key, milliseconds(at)))
}

async fn next_stored(store: &dyn Store, place: &BatchPlace) -> Result<u64, DriveError> {
    let mut earliest_ms = NEVER_MS;
    for table in STORED {
        let first = read(store, place, table, NEVER_MS, 1).await?;
        let at_ms = first.first().and_then(|record| record.due_at_ms);
        earliest_ms = earliest_ms.min(at_ms.unwrap_or(NEVER_MS));
    }
    Ok(earliest_ms)
}

async fn read(
    store: &dyn Store,
    place: &BatchPlace,
    table: Table,
    by_ms: u64,
    limit: usize,
) -> Result<Vec<Record>, DriveError> {
    let folder = place.folder();
    let request = DueRecords {
        kind: table.name(),
        id_prefix: &folder,
        now_ms: Some(by_ms),
        limit,
        poll_timeout: Duration::ZERO,
    };
    Ok(store.due_records(request).await?)
}
