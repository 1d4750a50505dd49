//! Waiting for the records of one kind to become due, and handing them out, many at once.

use std::future::{Future, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use segno::clock;
use segno::store::{DueRecords, ErrorKind, Expect, Record, RecordBatch, RecordWrite};

use super::{Handled, Scheduler};
use crate::action::ActionError;
use crate::telemetry;

/// Most due records that are read at once.
const PAGE: usize = 2_048;

/// Pause when the store refuses.
pub(super) const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Pause when others were first with everything: they are about to be through with it.
const PAUSE_AFTER_LOSS: Duration = Duration::from_millis(20);

/// When others were first with so many records of a page, they have been where this node is now. What they left is on the next
/// page.
const MAX_LOST: usize = 16;

/// For so long a record that cannot be read is put aside.
const ASIDE: Duration = Duration::from_secs(60 * 60);

/// What is due for longer than this and not fired is overdue.
const OVERDUE_MS: u64 = 10_000;

/// The records of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    kind: &'static str,
    name: &'static str,
}

/// What a round came to.
#[derive(Debug, Default)]
struct Round {
    done: usize,
    lost: usize,
    failed: usize,
}

impl Lane {
    /// Records of a kind, under a name for metrics and logs.
    pub(super) fn new(kind: &'static str, name: &'static str) -> Self {
        Lane { kind, name }
    }
}

impl Scheduler {
    /// Hands out due records for ever. A record that cannot be handled for the moment stays due; one that can never be
    /// read is put aside, so that it does not stand in the way of others.
    pub(super) async fn watch<F, Fut>(&self, lane: Lane, handle: F)
    where
        F: Fn(Record, u64) -> Fut,
        Fut: Future<Output = Result<Handled, ActionError>>,
    {
        loop {
            let (now_ms, due) = match self.due(lane).await {
                Ok(due) => due,
                Err(error) => {
                    metrics::counter!(telemetry::FIRING_ERRORS, "kind" => lane.name).increment(1);
                    tracing::warn!(kind = lane.name, %error, "what is due cannot be read; trying again");
                    clock::sleep(&*self.clock, PAUSE_AFTER_ERROR).await;
                    continue;
                }
            };
            let overdue = due.iter().filter(|record| is_overdue(record, now_ms)).count();
            #[expect(clippy::cast_precision_loss, reason = "a count of at most a page")]
            metrics::gauge!(telemetry::OVERDUE, "kind" => lane.name).set(overdue as f64);
            let round = self.round(lane, &handle, now_ms, due).await;
            // Whatever is still due would be handed out again at once.
            if round.failed > 0 && round.done == 0 {
                clock::sleep(&*self.clock, PAUSE_AFTER_ERROR).await;
            } else if round.lost > 0 && round.done == 0 {
                clock::sleep(&*self.clock, PAUSE_AFTER_LOSS).await;
            }
        }
    }

    /// The records that are due, with the store's time: it alone says what is due.
    async fn due(&self, lane: Lane) -> Result<(u64, Vec<Record>), ActionError> {
        let poll_timeout = self.options.check_interval;
        let request = DueRecords { kind: lane.kind, now_ms: None, limit: PAGE, poll_timeout };
        let due = self.store.due_records(request).await?;
        if due.is_empty() {
            return Ok((0, due));
        }
        Ok((self.store.now_ms().await?, due))
    }

    async fn round<F, Fut>(&self, lane: Lane, handle: &F, now_ms: u64, mut due: Vec<Record>) -> Round
    where
        F: Fn(Record, u64) -> Fut,
        Fut: Future<Output = Result<Handled, ActionError>>,
    {
        // Nodes begin at different places. On one node the order within a round is that of the commits, which are many at
        // once anyway; between rounds it is that of the due times.
        let place = self.place_in(due.len());
        due.rotate_left(place);
        let lost = AtomicUsize::new(0);
        let ours = stream::iter(due).take_while(|_| ready(lost.load(Ordering::Relaxed) < MAX_LOST));
        let outcomes = ours.map(|record| async {
            let (id, version, body) = (record.id.clone(), record.version, record.body.clone());
            match handle(record, now_ms).await {
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    tracing::error!(kind = lane.name, id, %error, "a record cannot be read and is put aside");
                    let due_at_ms = Some(now_ms.saturating_add(clock::duration_ms(ASIDE)));
                    let expect = Expect::Version(version);
                    let kind = lane.kind.to_owned();
                    let aside = RecordWrite::Put { kind, id, expect, due_at_ms, time_to_live: None, body };
                    let batch = RecordBatch { writes: vec![aside], ..RecordBatch::default() };
                    match self.store.commit_records(batch).await {
                        Ok(_) => Ok(Handled::Done),
                        Err(error) if error.kind() == ErrorKind::Conflict => Ok(Handled::Lost),
                        Err(error) => Err(error.into()),
                    }
                }
                outcome => {
                    if let Err(error) = &outcome {
                        tracing::warn!(kind = lane.name, id, %error, "not fired for the moment; trying again");
                    }
                    outcome
                }
            }
        });
        let mut outcomes = outcomes.buffer_unordered(self.options.concurrency.max(1));
        let mut round = Round::default();
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(Handled::Done) => round.done += 1,
                Ok(Handled::Lost) => {
                    round.lost += 1;
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    round.failed += 1;
                    metrics::counter!(telemetry::FIRING_ERRORS, "kind" => lane.name).increment(1);
                }
            }
        }
        round
    }
}

fn is_overdue(record: &Record, now_ms: u64) -> bool {
    record.due_at_ms.is_some_and(|due_ms| due_ms.saturating_add(OVERDUE_MS) < now_ms)
}
