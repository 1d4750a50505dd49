//! A lane: the due records of one kind, handed to the handler of the room that owns the kind, many at once.
//!
//! Every lane waits, reads and handles by itself, with a page and a concurrency of its own, so a long backlog of one
//! kind does not delay the others. The handlers of all lanes share one task: a handler awaits, and never blocks.

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use segno::clock;
use segno::store::{
    DueRecords, ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, folder_of,
};

use super::Scheduler;
use super::backlog::Backlog;
use crate::action::ActionError;
use crate::functions::FunctionError;
use crate::telemetry;

/// Most due records that are read at once.
pub const MAX_LANE_PAGE: usize = 2_048;

/// Pause when the store refuses.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Pause when others were first with everything: they are about to be through with it.
const PAUSE_AFTER_LOSS: Duration = Duration::from_millis(20);

/// When others were first with so many records of a page, they have been where this node is now. What they left is on the next
/// page.
const MAX_LOST: usize = 16;

/// For so long a record that cannot be read is put aside.
const ASIDE: Duration = Duration::from_secs(60 * 60);

/// For so long a record waits that needs something which cannot be read.
const PAUSE_AFTER_CORRUPT: Duration = Duration::from_secs(60);

/// What is due for longer than this and not fired is overdue.
const OVERDUE_MS: u64 = 10_000;

/// What became of a due record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It was committed: the record is gone, or due later.
    Done,
    /// Another node was first.
    Lost,
}

/// Why a due record could not be handled, and so what becomes of it.
///
/// It stays due and is handed out again after a pause. One that cannot be read ([`LaneError::unreadable`]) is put aside for an
/// hour, one that needs something else which cannot be read ([`ErrorKind::Corrupt`]) for a minute, so that they do not stand
/// in the way of others. One of a tenant with too many inputs that wait to be checked (from a [`FunctionError`] or
/// [`ActionError`]) is postponed, with others of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaneError {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The record itself cannot be read.
    UnreadableRecord,
    /// Too many inputs of the tenant wait to be checked.
    Backlog,
    Other,
}

impl LaneError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        LaneError { kind, message: message.into(), cause: Cause::Other }
    }

    /// The due record itself cannot be read.
    pub fn unreadable(reason: impl fmt::Display) -> Self {
        LaneError { cause: Cause::UnreadableRecord, ..LaneError::new(ErrorKind::Corrupt, reason.to_string()) }
    }

    /// What can be done about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<ProviderError> for LaneError {
    fn from(error: ProviderError) -> Self {
        LaneError::new(error.kind(), error.to_string())
    }
}

impl From<FunctionError> for LaneError {
    fn from(error: FunctionError) -> Self {
        let cause = if matches!(error, FunctionError::Busy) { Cause::Backlog } else { Cause::Other };
        LaneError { cause, ..LaneError::new(error.kind(), error.to_string()) }
    }
}

impl From<ActionError> for LaneError {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Function(error) => error.into(),
            error => LaneError::new(error.kind(), error.to_string()),
        }
    }
}

/// What a room does with its due records.
#[async_trait]
pub trait DueHandler: Send + Sync + 'static {
    /// Handles a record that is due at `now_ms`, the store's time. Nodes race for records: the commit that handles one is on
    /// condition that the record is as it was read, and leaves it gone or due later.
    ///
    /// # Errors
    /// When it could not be handled for the moment.
    async fn handle(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError>;
}

/// A kind of records with the handler of the room that owns it: see [`SchedulerBuilder::lane`](super::SchedulerBuilder::lane).
#[derive(Clone)]
pub struct Lane {
    pub(super) limits: LaneLimits,
    pub(super) handler: Arc<dyn DueHandler>,
}

impl Lane {
    /// Due records of this kind. The name is the value of the label `kind` of metrics and in logs.
    pub fn new(kind: &'static str, name: &'static str, handler: impl DueHandler) -> Self {
        Lane { limits: LaneLimits::new(kind, name), handler: Arc::new(handler) }
    }

    /// Reads at most so many due records at once; [`MAX_LANE_PAGE`] without this, and at most that.
    #[must_use]
    pub fn page(mut self, records: usize) -> Self {
        self.limits.page = records.clamp(1, MAX_LANE_PAGE);
        self
    }

    /// Handles at most so many records at once; as many as [`ActionOptions::concurrency`](crate::ActionOptions) says without this.
    #[must_use]
    pub fn concurrency(mut self, records: usize) -> Self {
        self.limits.concurrency = Some(records.max(1));
        self
    }
}

/// What a lane reads, and how much at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneLimits {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    page: usize,
    concurrency: Option<usize>,
    round: RoundOf,
}

/// Which records of a page one round hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundOf {
    Each,
    /// One of each folder: its handler does the whole folder.
    OnePerFolder,
}

impl LaneLimits {
    /// Records of a kind, under a name for metrics and logs.
    pub(super) fn new(kind: &'static str, name: &'static str) -> Self {
        LaneLimits { kind, name, page: MAX_LANE_PAGE, concurrency: None, round: RoundOf::Each }
    }

    /// Hands out one record of each folder at a time, because the handler of one does all of them:
    /// several would only race for the same commit.
    pub(super) fn one_per_folder(self) -> Self {
        LaneLimits { round: RoundOf::OnePerFolder, ..self }
    }
}

/// A lane that this node watches.
struct WatchedLane {
    limits: LaneLimits,
    backlog: Backlog,
}

/// What a round came to.
#[derive(Debug, Default)]
struct Round {
    done: usize,
    lost: usize,
    failed: usize,
}

impl Scheduler {
    /// Hands out due records for ever. A record that cannot be handled for the moment stays due; one that can never be
    /// read is put aside, so that it does not stand in the way of others.
    pub(super) async fn watch<F, Fut>(&self, limits: LaneLimits, handle: F)
    where
        F: Fn(Record, u64) -> Fut,
        Fut: Future<Output = Result<Handled, LaneError>>,
    {
        // A series that begins with its first error hides that error from rates.
        metrics::counter!(telemetry::FIRING_ERRORS, "kind" => limits.name).increment(0);
        let lane = WatchedLane { limits, backlog: Backlog::default() };
        loop {
            let (now_ms, due) = match self.due(limits).await {
                Ok(due) => due,
                Err(error) => {
                    metrics::counter!(telemetry::FIRING_ERRORS, "kind" => limits.name).increment(1);
                    tracing::warn!(kind = limits.name, %error, "what is due cannot be read; trying again");
                    clock::sleep(&*self.clock, PAUSE_AFTER_ERROR).await;
                    continue;
                }
            };
            let overdue = due.iter().filter(|record| is_overdue(record, now_ms)).count();
            #[expect(clippy::cast_precision_loss, reason = "a count of at most a page")]
            metrics::gauge!(telemetry::OVERDUE, "kind" => limits.name).set(overdue as f64);
            lane.backlog.begin_round(now_ms);
            let round = self.round(&lane, &handle, now_ms, due).await;
            // Whatever is still due would be handed out again at once.
            if round.failed > 0 && round.done == 0 {
                clock::sleep(&*self.clock, PAUSE_AFTER_ERROR).await;
            } else if round.lost > 0 && round.done == 0 {
                clock::sleep(&*self.clock, PAUSE_AFTER_LOSS).await;
            }
        }
    }

    /// The records that are due, with the store's time: it alone says what is due.
    async fn due(&self, lane: LaneLimits) -> Result<(u64, Vec<Record>), ProviderError> {
        let poll_timeout = self.options.check_interval;
        let request =
            DueRecords { kind: lane.kind, id_prefix: "", now_ms: None, limit: lane.page, poll_timeout };
        let due = self.store.due_records(request).await?;
        if due.is_empty() {
            return Ok((0, due));
        }
        Ok((self.store.now_ms().await?, due))
    }

    async fn round<F, Fut>(&self, lane: &WatchedLane, handle: &F, now_ms: u64, mut due: Vec<Record>) -> Round
    where
        F: Fn(Record, u64) -> Fut,
        Fut: Future<Output = Result<Handled, LaneError>>,
    {
        // Nodes begin at different places. On one node the order within a round is that of the commits, which are many at
        // once anyway; between rounds it is that of the due times.
        let place = self.place_in(due.len());
        due.rotate_left(place);
        if lane.limits.round == RoundOf::OnePerFolder {
            let mut folders = BTreeSet::new();
            due.retain(|record| folders.insert(folder_of(&record.id).to_owned()));
        }
        let lost = AtomicUsize::new(0);
        let ours = stream::iter(due).take_while(|_| ready(lost.load(Ordering::Relaxed) < MAX_LOST));
        let outcomes = ours.map(|record| async {
            let unchanged = Unchanged::of(&record);
            let Some(_try) = lane.backlog.admit(&unchanged.id, now_ms) else {
                return self.postpone(lane, unchanged, now_ms).await;
            };
            match handle(record, now_ms).await {
                Ok(handled) => Ok(handled),
                Err(error) => self.after_error(lane, unchanged, error, now_ms).await,
            }
        });
        let concurrency = lane.limits.concurrency.unwrap_or(self.options.concurrency).max(1);
        let mut outcomes = outcomes.buffer_unordered(concurrency);
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
                    metrics::counter!(telemetry::FIRING_ERRORS, "kind" => lane.limits.name).increment(1);
                }
            }
        }
        round
    }

    /// What becomes of a record that could not be handled.
    async fn after_error(
        &self,
        lane: &WatchedLane,
        record: Unchanged,
        error: LaneError,
        now_ms: u64,
    ) -> Result<Handled, LaneError> {
        let (kind, id) = (lane.limits.name, &record.id);
        let pause = match (error.cause, error.kind) {
            (Cause::Backlog, _) => {
                lane.backlog.note(id, now_ms);
                return self.postpone(lane, record, now_ms).await;
            }
            (Cause::UnreadableRecord, _) => {
                tracing::error!(kind, id, %error, "a record cannot be read and is put aside for an hour");
                ASIDE
            }
            (Cause::Other, ErrorKind::Corrupt) => {
                tracing::error!(kind, id, %error, "what a record needs cannot be read; trying again in a minute");
                PAUSE_AFTER_CORRUPT
            }
            (Cause::Other, _) => {
                tracing::warn!(kind, id, %error, "not fired for the moment; trying again");
                return Err(error);
            }
        };
        metrics::counter!(telemetry::FIRING_ERRORS, "kind" => kind).increment(1);
        let due_ms = now_ms.saturating_add(clock::duration_ms(pause));
        Ok(self.commit_one(record.due_at(lane.limits, due_ms)).await?)
    }

    /// Fires a record later, because too many inputs of its tenant wait to be checked.
    async fn postpone(
        &self,
        lane: &WatchedLane,
        record: Unchanged,
        now_ms: u64,
    ) -> Result<Handled, LaneError> {
        let (kind, id) = (lane.limits.name, &record.id);
        let due_ms = lane.backlog.postpone(id, now_ms);
        tracing::debug!(kind, id, due_ms, "too many inputs of the tenant wait; postponed");
        let handled = self.commit_one(record.due_at(lane.limits, due_ms)).await?;
        if handled == Handled::Done {
            metrics::counter!(telemetry::POSTPONED, "kind" => kind).increment(1);
        }
        Ok(handled)
    }

    /// Commits one write on condition that the record is as it was read.
    pub(super) async fn commit_one(&self, write: RecordWrite) -> Result<Handled, ProviderError> {
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(Handled::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Handled::Lost),
            Err(error) => Err(error),
        }
    }
}

/// A record that is written again as it was read, for another time.
struct Unchanged {
    id: String,
    version: u64,
    body: Bytes,
}

impl Unchanged {
    fn of(record: &Record) -> Self {
        Unchanged { id: record.id.clone(), version: record.version, body: record.body.clone() }
    }

    fn due_at(self, lane: LaneLimits, due_ms: u64) -> RecordWrite {
        RecordWrite::Put {
            kind: lane.kind.to_owned(),
            id: self.id,
            expect: Expect::Version(self.version),
            due_at_ms: Some(due_ms),
            time_to_live: None,
            body: self.body,
        }
    }
}

fn is_overdue(record: &Record, now_ms: u64) -> bool {
    record.due_at_ms.is_some_and(|due_ms| due_ms.saturating_add(OVERDUE_MS) < now_ms)
}
