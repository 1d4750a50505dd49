//! How long messages wait, for the metric. Messages that nothing receives become dead letters when
//! their time is over.

use std::time::Duration;

use jiff::Timestamp;
use segno::clock::duration_ms;
use segno::store::DueRecords;
use segno_actions::functions::PoolName;

use super::BusEdge;
use crate::bus::{BusError, JOBS, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, SubscriptionName};
use crate::drive::{OUTBOX, OutboxRow, events_folder, jobs_folder};
use crate::telemetry::BUS_OLDEST_SECONDS;

/// How often the bus is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Rows of the outbox that are looked at for the oldest: rows that were released are due in any
/// order.
const ROWS: usize = 16;

/// How far ahead rows are looked for: a claim makes them due later.
const AHEAD: Duration = Duration::from_mins(10);

impl BusEdge {
    /// Looks at the bus from time to time.
    pub(super) async fn watch(&self, pools: &[PoolName]) {
        loop {
            if let Err(error) = self.look(pools).await {
                tracing::debug!(%error, "the bus cannot be looked at; trying again");
            }
            match self.bus.expire().await {
                Ok(0) => {}
                Ok(expired) => tracing::warn!(expired, "messages have expired and became dead letters"),
                Err(error) => tracing::debug!(%error, "messages cannot be looked at; trying again"),
            }
            self.sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&self, pools: &[PoolName]) -> Result<(), BusError> {
        let now_ms = self.store.now_ms().await?;
        let mut jobs = Oldest::default();
        for pool in pools {
            jobs.add(self.oldest_row(&jobs_folder(&self.scope, pool.as_str()), now_ms).await?);
            jobs.add(self.oldest_message(JOBS, pool.as_str()).await?);
        }
        let mut events = Oldest::default();
        events.add(self.oldest_row(&events_folder(&self.scope), now_ms).await?);
        events.add(self.oldest_message(ORCHESTRATOR_EVENTS, ORCHESTRATOR).await?);
        let mut results = Oldest::default();
        results.add(self.oldest_message(RESULTS, ORCHESTRATOR).await?);
        for (topic, oldest) in [(JOBS, jobs), (ORCHESTRATOR_EVENTS, events), (RESULTS, results)] {
            metrics::gauge!(BUS_OLDEST_SECONDS, "topic" => topic).set(oldest.age(now_ms).as_secs_f64());
        }
        Ok(())
    }

    async fn oldest_message(&self, topic: &str, name: &str) -> Result<Option<Timestamp>, BusError> {
        match self.bus.oldest(&SubscriptionName::new(topic, name)?).await {
            Err(BusError::UnknownSubscription(_)) => Ok(None),
            found => found,
        }
    }

    async fn oldest_row(&self, folder: &str, now_ms: u64) -> Result<Option<Timestamp>, BusError> {
        let until_ms = now_ms.saturating_add(duration_ms(AHEAD));
        let request = DueRecords {
            kind: OUTBOX,
            id_prefix: folder,
            now_ms: Some(until_ms),
            limit: ROWS,
            poll_timeout: Duration::ZERO,
        };
        let rows = self.store.due_records(request).await?;
        Ok(rows.iter().filter_map(|record| OutboxRow::read(record).ok()).map(|row| row.queued_at).min())
    }
}

/// The oldest of several times.
#[derive(Debug, Default)]
struct Oldest(Option<Timestamp>);

impl Oldest {
    fn add(&mut self, other: Option<Timestamp>) {
        self.0 = match (self.0, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn age(&self, now_ms: u64) -> Duration {
        let at_ms = self.0.and_then(|at| u64::try_from(at.as_millisecond()).ok());
        Duration::from_millis(at_ms.map_or(0, |at_ms| now_ms.saturating_sub(at_ms)))
    }
}
