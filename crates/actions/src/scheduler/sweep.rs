//! A look at all recurring actions, now and then: counts those that are enabled, and puts right what would not fire by
//! itself. After a change of the zone database it finds their next times again.

use std::time::Duration;

use segno::clock;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch};

use super::{Scheduler, lane};
use crate::action::ActionError;
use crate::recurring::record::{RECURRING_KIND, decode};
use crate::telemetry;

/// Shortest time between two looks.
const PAUSE: Duration = Duration::from_secs(60);

/// A look may take this part of the time: one hundredth.
const SHARE: u64 = 100;

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
            let pause = Duration::from_nanos(
                u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).saturating_mul(SHARE),
            );
            clock::sleep(&*self.clock, pause.max(PAUSE).max(lane::PAUSE_AFTER_ERROR)).await;
        }
    }

    /// Looks at all of them once, and says how many are enabled.
    async fn sweep(&self) -> Result<u64, ActionError> {
        let mut active = 0;
        let mut after: Option<String> = None;
        loop {
            let request =
                ListRecords { kind: RECURRING_KIND, id_prefix: "", after_id: after.as_deref(), limit: PAGE };
            let page = self.store.list_records(request).await?;
            for record in &page {
                active += u64::from(self.look_at(record).await?);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id.clone()),
                _ => return Ok(active),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Puts one right if it needs it, and says whether it is enabled.
    async fn look_at(&self, record: &Record) -> Result<bool, ActionError> {
        let Ok(stored) = decode(record) else { return Ok(false) };
        let mut action = stored.action;
        let is_current = action.progress.zones == self.zones.version();
        let is_due_as_it_says = action.due_at_ms() == record.due_at_ms;
        if is_current && is_due_as_it_says {
            return Ok(action.enabled);
        }
        // One whose zone is gone is disabled when it is due.
        let Ok(schedule) = action.schedule.compile(&self.zones) else { return Ok(action.enabled) };
        action.refresh(&schedule, self.zones.version());
        let writes = vec![action.write(Expect::Version(stored.version))?];
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => tracing::info!(recurring_id = action.id, "recurring.refreshed"),
            // Whoever was first has done it as well.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
        Ok(action.enabled)
    }
}
