//! Jobs that could not be sent, because their pool was unknown or paused. The batch row names these
//! pools, so that the next holder knows of them. The holder looks at the pools often, and when one
//! takes jobs, it looks after all open calls of the pool: those that are missing are sent.

use std::collections::VecDeque;
use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::ListRecords;

use super::error::DriveError;
use super::holder::Held;
use super::load::decode;
use crate::message::{Message, PoolReport};
use crate::rows::{Row, RowKey, Table, Work, WorkKey};
use crate::step::LookAfter;

/// How often a pool is looked at while jobs wait for it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Rows that are read at once.
const PAGE: usize = 1_000;

/// Tables with calls.
const TABLES: [Table; 4] =
    [Table::InitExecutions, Table::StepExecutions, Table::RollbackExecutions, Table::RemovalExecutions];

/// What a holder has to do for jobs that could not be sent.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// When the pools are looked at next, in Unix milliseconds.
    next_ms: u64,
    /// Pools that take jobs again, and how far their calls were looked after.
    sweeps: VecDeque<Sweep>,
}

/// The open calls of a pool, table by table.
#[derive(Debug)]
struct Sweep {
    worker_id: String,
    tables: VecDeque<Table>,
    /// The row after which the next page begins.
    after: Option<String>,
}

impl Held {
    /// How long until the pools that jobs wait for are looked at.
    pub(super) fn time_to_pools(&self, now_ms: u64) -> Duration {
        let has_unsent = self.rows.batch().is_some_and(|batch| !batch.unsent_pools.is_empty());
        match (self.unsent.sweeps.is_empty(), has_unsent) {
            (false, _) => Duration::ZERO,
            (true, true) => Duration::from_millis(self.unsent.next_ms.saturating_sub(now_ms)),
            (true, false) => Duration::MAX,
        }
    }

    /// Looks at the pools that jobs wait for, and after a page of the calls of one that takes jobs.
    pub(super) async fn look_at_pools(&mut self) -> Result<(), DriveError> {
        let now_ms = self.now_ms();
        if !self.own.is_empty() || !self.time_to_pools(now_ms).is_zero() {
            return Ok(());
        }
        if self.unsent.sweeps.is_empty() {
            self.unsent.next_ms = now_ms.saturating_add(duration_ms(LOOK_EVERY));
            self.find_pools().await?;
        }
        while let Some(mut sweep) = self.unsent.sweeps.pop_front() {
            let looks = self.next_calls(&mut sweep).await?;
            if !sweep.tables.is_empty() {
                self.unsent.sweeps.push_front(sweep);
            }
            if !looks.is_empty() {
                return self.look_after(looks).await;
            }
        }
        Ok(())
    }

    async fn find_pools(&mut self) -> Result<(), DriveError> {
        let pools = self.rows.batch().map(|batch| batch.unsent_pools.clone()).unwrap_or_default();
        for worker_id in pools {
            if self.calls.takes_jobs(&self.place.scope, &worker_id).await? {
                self.own.push_back(Message::Pool(PoolReport { worker_id: worker_id.clone() }));
                let tables = VecDeque::from(TABLES);
                self.unsent.sweeps.push_back(Sweep { worker_id, tables, after: None });
            }
        }
        Ok(())
    }

    /// The open calls of a page.
    async fn next_calls(&self, sweep: &mut Sweep) -> Result<Vec<LookAfter>, DriveError> {
        let Some(table) = sweep.tables.front().copied() else { return Ok(Vec::new()) };
        let folder = self.place.folder();
        let after_id = sweep.after.as_deref();
        let request = ListRecords { kind: table.name(), id_prefix: &folder, after_id, limit: PAGE };
        let page = self.services.store.list_records(request).await?;
        let mut looks = Vec::new();
        for record in &page {
            looks.extend(look_after(&decode(table, record)?, &sweep.worker_id));
        }
        sweep.after = page.last().map(|record| record.id.clone());
        if page.len() < PAGE {
            sweep.tables.pop_front();
            sweep.after = None;
        }
        Ok(looks)
    }
}

/// The look at the call of a row, if it has one in a pool.
fn look_after(row: &Row, worker_id: &str) -> Option<LookAfter> {
    let Some(RowKey::Work(work)) = row.key() else { return None };
    let of_row: &Work = match (row, work) {
        (Row::Step(row), WorkKey::Step(_)) => &row.work,
        (Row::Init(row), WorkKey::Init(_)) => &row.work,
        (Row::Rollback(row), WorkKey::Rollback(..)) => &row.work,
        (Row::Removal(row), WorkKey::Removal(..)) => &row.work,
        _ => return None,
    };
    let is_wanted = of_row.is_called() && of_row.worker_id == worker_id;
    let job_id = of_row.job_id.clone().filter(|_| is_wanted)?;
    Some(LookAfter { work, job_id, worker_id: worker_id.to_owned() })
}
