//! The audit: a slow sweep over all rows that proves that nothing waits without a wake-up. It finds
//! no work and changes nothing. What it finds is a defect: it is logged and counted, and the count
//! must be zero.
//!
//! A part reads some records from where the part before has ended; batches that have ended are
//! passed over as a whole. Rows change while they are read, so a suspect is looked at again, from
//! the store, before it counts.

use std::collections::BTreeMap;
use std::time::Duration;

use segno::clock;
use segno::store::{DueRecords, ListRecords, ProviderError, Record};
use serde::{Deserialize, Serialize};

use super::definitions::LoadedDefinitions;
use super::error::DriveError;
use super::holder::{Services, context};
use super::inbox;
use super::lease;
use super::load::{Loader, decode};
use super::place::{BatchPlace, LEASES};
use super::upkeep::Next;
use super::wakeups::{due_ms, in_memory};
use crate::rows::{Row, RowKey, Rows, Table};
use crate::step::{Releaser, releaser};
use crate::telemetry;

/// Id of the cursor.
pub(super) const ID: &str = "audit";

/// Records that one part reads.
const ROWS_PER_PART: usize = 500;

/// Most batches that one part looks into.
const BATCHES_PER_PART: usize = 50;

/// Between two parts of a sweep.
const PART_PAUSE: Duration = Duration::from_secs(10);

/// Between two sweeps.
const SWEEP_PAUSE: Duration = Duration::from_secs(10 * 60);

/// How often a suspect is looked at before it counts, and how long after the look before. Together
/// they are longer than a node needs to take a batch that is due.
const LOOKS: usize = 3;
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Batches with suspects that one part looks at again; together that takes less than the claim of a
/// part.
const SUSPECTED_PER_PART: usize = 4;

/// Defects of one batch and part that are logged one by one.
const MAX_LOGGED: usize = 10;

/// Loads after which a row is passed over.
const MAX_LOADS: usize = 100;

/// Tables in the order of the sweep.
const TABLES: [Table; 7] = [
    Table::Batches,
    Table::PhaseExecutions,
    Table::InitExecutions,
    Table::BatchMembers,
    Table::StepExecutions,
    Table::RollbackExecutions,
    Table::RemovalExecutions,
];

/// Tables whose rows wake up by the due times of their records.
const DUE_TABLES: [Table; 3] = [Table::StepExecutions, Table::RollbackExecutions, Table::RemovalExecutions];

/// Where the next part begins, and what was found.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    /// Place of the table in the order of the sweep.
    table: usize,
    /// Last record that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    /// Defects of this sweep.
    found: u64,
    /// Defects of the sweep before.
    found_before: u64,
}

impl Cursor {
    /// Defects of the sweep that has just ended.
    #[cfg(test)]
    pub(super) fn found_in_last_sweep(&self) -> Option<u64> {
        (self.table == 0 && self.after.is_none()).then_some(self.found_before)
    }
}

/// A row that waits for nothing, or a batch that nothing wakes.
#[derive(Debug, PartialEq, Eq)]
struct Defect {
    row: RowKey,
    problem: String,
}

/// Checks some rows.
pub(super) async fn part(services: &Services, cursor: Cursor) -> Result<Next<Cursor>, ProviderError> {
    let Some(table) = TABLES.get(cursor.table).copied() else {
        let cursor = Cursor { found_before: cursor.found, ..Cursor::default() };
        return Ok(Next { cursor, after: SWEEP_PAUSE });
    };
    let request = ListRecords {
        kind: table.name(),
        id_prefix: "",
        after_id: cursor.after.as_deref(),
        limit: ROWS_PER_PART,
    };
    let page = services.store.list_records(request).await?;
    let is_last = page.len() < ROWS_PER_PART;
    let (found, end) = check(services, table, &page).await?;
    let found = cursor.found + found;
    metrics::gauge!(telemetry::UNATTENDED_ROWS).set(gauge(found.max(cursor.found_before)));
    let cursor = match end {
        Some(after) => Cursor { after: Some(after), found, ..cursor },
        None if is_last => Cursor { table: cursor.table + 1, after: None, found, ..cursor },
        None => Cursor { after: page.last().map(|record| record.id.clone()), found, ..cursor },
    };
    Ok(Next { cursor, after: PART_PAUSE })
}

#[expect(clippy::cast_precision_loss, reason = "gauges are doubles; the count is zero or small")]
fn gauge(count: u64) -> f64 {
    count as f64
}

/// Checks the rows of a page. Returns how many are defects, and where to go on if not after the
/// page.
async fn check(
    services: &Services,
    table: Table,
    page: &[Record],
) -> Result<(u64, Option<String>), ProviderError> {
    let mut batches: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in page {
        let place = match table {
            Table::Batches => BatchPlace::of_lease(&record.id),
            _ => BatchPlace::of_record(&record.id),
        };
        if let Some(place) = place {
            batches.entry(place.id()).or_default().push(record);
        }
    }
    let (mut found, mut end, mut suspected) = (0, None, 0);
    let mut is_whole = batches.len() <= BATCHES_PER_PART;
    for (id, records) in batches.into_iter().take(BATCHES_PER_PART) {
        if suspected == SUSPECTED_PER_PART {
            is_whole = false;
            break;
        }
        let Some(place) = BatchPlace::of_lease(&id) else { continue };
        end = records.last().map(|record| record.id.clone());
        let audit = Audit { services, place };
        match audit.defects(table, &records).await {
            // The rest of an ended batch is passed over: no id in its folder is higher.
            Ok(Checked::Ended) if table != Table::Batches => end = Some(format!("{id}/~")),
            Ok(Checked::Ended | Checked::Sound) => {}
            Ok(Checked::Suspected(defects)) => {
                log(&id, &defects);
                suspected += 1;
                found += defects.len() as u64;
            }
            Err(DriveError::Store(error)) => return Err(error),
            // Rows that cannot be read are reported by those that need them.
            Err(error) => tracing::debug!(batch = %id, %error, "a batch cannot be audited"),
        }
    }
    let goes_on_there = !is_whole || end.as_ref().is_some_and(|end| end.ends_with('~'));
    Ok((found, end.filter(|_| goes_on_there)))
}

fn log(batch: &str, defects: &[Defect]) {
    for Defect { row, problem } in defects.iter().take(MAX_LOGGED) {
        tracing::error!(batch, %row, %problem, "a row waits without a wake-up; this is a defect");
    }
}

enum Checked {
    /// The batch has ended: nothing of it waits.
    Ended,
    /// Everything that waits has a wake-up.
    Sound,
    /// Rows were looked at again; these wait without a wake-up.
    Suspected(Vec<Defect>),
}

/// Rows and definitions that were read for a look.
struct Seen {
    rows: Rows,
    known: LoadedDefinitions,
}

struct Audit<'a> {
    services: &'a Services,
    place: BatchPlace,
}

impl Audit<'_> {
    async fn defects(&self, table: Table, records: &[&Record]) -> Result<Checked, DriveError> {
        let mut seen = self.seen().await?;
        let Some(batch) = seen.rows.batch() else { return Ok(Checked::Ended) };
        if super::deletion::has_ended(batch) {
            return Ok(Checked::Ended);
        }
        let mut suspects = Vec::new();
        for record in records {
            let Some(key) = self.place.row_key(table, &record.id) else { continue };
            // Rows that have ended wait for nothing; they are the most.
            let Some(row) = decode(table, record).ok().filter(Row::waits) else { continue };
            if self.problem(&mut seen, &key, &row, record.due_at_ms).await?.is_some() {
                suspects.push(key);
            }
        }
        if suspects.is_empty() {
            return Ok(Checked::Sound);
        }
        Ok(Checked::Suspected(self.lasting(suspects).await?))
    }

    async fn seen(&self) -> Result<Seen, DriveError> {
        Ok(Seen { rows: self.loader().begin().await?, known: LoadedDefinitions::new() })
    }

    /// The suspects whose problems are still there after a while, with all rows read again.
    async fn lasting(&self, suspects: Vec<RowKey>) -> Result<Vec<Defect>, DriveError> {
        let store = &*self.services.store;
        let mut defects: Vec<Defect> =
            suspects.into_iter().map(|row| Defect { row, problem: String::new() }).collect();
        for _ in 0..LOOKS {
            clock::sleep(&*self.services.clock, LOOK_PAUSE).await;
            let mut seen = self.seen().await?;
            let mut still = Vec::new();
            for Defect { row: key, .. } in defects {
                let record = store.get_record(key.table().name(), &self.place.row_id(&key)).await?;
                let Some(record) = record else { continue };
                let row = decode(key.table(), &record)?;
                let problem = match row.waits() {
                    true => self.problem(&mut seen, &key, &row, record.due_at_ms).await?,
                    false => None,
                };
                still.extend(problem.map(|problem| Defect { row: key, problem }));
            }
            defects = still;
        }
        Ok(defects)
    }

    /// What is wrong with a row that waits.
    async fn problem(
        &self,
        seen: &mut Seen,
        key: &RowKey,
        row: &Row,
        due_at_ms: Option<u64>,
    ) -> Result<Option<String>, DriveError> {
        if due_at_ms != due_ms(row) {
            let wanted = due_ms(row);
            return Ok(Some(format!("its record is due at {due_at_ms:?}, the row at {wanted:?}")));
        }
        seen.rows.load(row.clone());
        match self.releaser(seen, key).await? {
            Some(Releaser::Nothing) => return Ok(Some("nothing releases it".to_owned())),
            Some(Releaser::Row(other)) if other != *key && has_ended(&seen.rows, &other) => {
                return Ok(Some(format!("it waits for {other}, which has ended")));
            }
            _ => {}
        }
        match key {
            RowKey::Batch => self.problem_of_lease(&seen.rows).await,
            _ => Ok(None),
        }
    }

    async fn releaser(&self, seen: &mut Seen, key: &RowKey) -> Result<Option<Releaser>, DriveError> {
        let services = self.services;
        let runbook = seen.rows.batch().map(|batch| batch.runbook_name.clone()).unwrap_or_default();
        let now_ms = services.store.now_ms().await?;
        for _ in 0..MAX_LOADS {
            let context = context(services, &seen.known, services.options.rows_per_part, now_ms);
            match releaser(&mut seen.rows, key, &context) {
                Ok(releaser) => return Ok(releaser),
                Err(missing) => {
                    self.loader().load(&mut seen.rows, &mut seen.known, &runbook, missing.0).await?;
                }
            }
        }
        Ok(None)
    }

    /// Whether a node has the batch, or takes it in time for its rows and messages.
    async fn problem_of_lease(&self, rows: &Rows) -> Result<Option<String>, DriveError> {
        let store = &*self.services.store;
        let Some(record) = store.get_record(LEASES, &self.place.id()).await? else {
            return Ok(Some("it has no lease record".to_owned()));
        };
        let now_ms = store.now_ms().await?;
        // A due record is taken at once; one that is held is due when the lease ends.
        if lease::is_held(&record, now_ms) || record.due_at_ms.is_some_and(|due_at_ms| due_at_ms <= now_ms) {
            return Ok(record.due_at_ms.is_none().then(|| "its lease is held and has no end".to_owned()));
        }
        if inbox::has_messages(store, &self.place).await? {
            return Ok(Some("messages wait, and no node is woken for them".to_owned()));
        }
        let mut first_ms = in_memory(rows).map(|(_, at_ms)| at_ms).min();
        let folder = self.place.folder();
        for table in DUE_TABLES {
            let request = DueRecords {
                kind: table.name(),
                id_prefix: &folder,
                now_ms: Some(clock::NEVER_MS),
                limit: 1,
                poll_timeout: Duration::ZERO,
            };
            let due = store.due_records(request).await?;
            let at_ms = due.first().and_then(|record| record.due_at_ms);
            first_ms = [first_ms, at_ms].into_iter().flatten().min();
        }
        let Some(first_ms) = first_ms else { return Ok(None) };
        let is_late = record.due_at_ms.is_none_or(|due_at_ms| due_at_ms > first_ms);
        let due = record.due_at_ms;
        Ok(is_late.then(|| format!("a row is due at {first_ms} ms, a node is woken at {due:?}")))
    }

    fn loader(&self) -> Loader<'_> {
        let services = self.services;
        Loader { store: &*services.store, place: &self.place, definitions: &services.definitions }
    }
}

/// Whether a row that decides has ended. Rows of other tables are checked by themselves.
fn has_ended(rows: &Rows, key: &RowKey) -> bool {
    match key {
        RowKey::Batch => rows.batch().is_some_and(|batch| batch.status.is_terminal()),
        RowKey::Phase(id) => rows.phase(*id).is_some_and(|phase| phase.status.is_terminal()),
        _ => false,
    }
}
