//! A look at all recurring actions, now and then: counts those that are enabled, and puts right what would not fire by
//! itself. After a change of the zone database it finds their next times again.

use std::time::Duration;

use segno::clock;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch};

use super::Scheduler;
use super::backlog::MAX_DELAY_MS;
use crate::action::ActionError;
use crate::recurring::record::{RECURRING_KIND, decode};
use crate::telemetry;

/// Shortest time between two looks.
const PAUSE: Duration = Duration::from_secs(60);

/// While it looks, a node spends one part in ten of the time on that, and it rests ten times as long as it looked: of a
/// million definitions that nothing is wrong with, firing notices nothing.
const SHARE: u32 = 10;

/// Records that are read at once.
const PAGE: usize = 500;

impl Scheduler {
    /// Looks at all recurring actions for ever, the less often the more there are.
    pub(super) async fn sweep_for_ever(&self) {
        loop {
            let began_ns = self.clock.monotonic_ns();
            match self.sweep().await {
                #[expect(clippy::cast_precision_loss, reason = "a count for people")]
                Ok(active) => metrics::gauge!(telemetry::RECURRING_ACTIVE).set(active as f64),
                Err(error) => tracing::warn!(%error, "recurring actions cannot be looked at; trying again"),
            }
            let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(began_ns));
            let pause = took.saturating_mul(SHARE).max(PAUSE);
            clock::sleep(&*self.clock, pause).await;
        }
    }

    /// Looks at all of them once, and says how many are enabled.
    async fn sweep(&self) -> Result<u64, ActionError> {
        let mut active = 0;
        let mut after: Option<String> = None;
        loop {
            let request =
                ListRecords { kind: RECURRING_KIND, id_prefix: "", after_id: after.as_deref(), limit: PAGE };
            let (began_ns, mut is_in_order) = (self.clock.monotonic_ns(), true);
            let page = self.store.list_records(request).await?;
            for record in &page {
                let found = self.look_at(record).await?;
                active += u64::from(found.is_enabled);
                is_in_order &= found.was_in_order;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id.clone()),
                _ => return Ok(active),
            }
            tokio::task::yield_now().await;
            // What has to be put right is not kept waiting.
            let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(began_ns));
            if is_in_order && !took.is_zero() {
                clock::sleep(&*self.clock, took * (SHARE - 1)).await;
            }
        }
    }

    /// Puts one right if it needs it.
    async fn look_at(&self, record: &Record) -> Result<Found, ActionError> {
        let in_order = |is_enabled| Found { is_enabled, was_in_order: true };
        let Ok(stored) = decode(record) else { return Ok(in_order(false)) };
        let mut action = stored.action;
        let is_current = action.progress.zones == self.zones.version();
        let is_due_as_it_says = is_due(action.due_at_ms(), record.due_at_ms, self.clock.now_ms());
        if is_current && is_due_as_it_says {
            return Ok(in_order(action.enabled));
        }
        // One whose zone is gone is disabled when it is due.
        let Ok(schedule) = action.schedule.compile(&self.zones) else { return Ok(in_order(action.enabled)) };
        action.refresh(&schedule, self.zones.version());
        let writes = vec![action.write(Expect::Version(stored.version))?];
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => tracing::info!(recurring_id = action.id, "recurring.refreshed"),
            // Whoever was first has done it as well.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Found { is_enabled: action.enabled, was_in_order: false })
    }
}

/// Whether a record is due when its action says, or was postponed a little while ago.
fn is_due(said_ms: Option<u64>, stored_ms: Option<u64>, now_ms: u64) -> bool {
    match (said_ms, stored_ms) {
        (Some(said_ms), Some(stored_ms)) if stored_ms > said_ms => stored_ms <= now_ms + MAX_DELAY_MS,
        _ => said_ms == stored_ms,
    }
}

/// What a look at a recurring action has found.
struct Found {
    is_enabled: bool,
    was_in_order: bool,
}
