//! The commit of a part: rows, consumed messages, started and cancelled calls, under the lease, all
//! or nothing.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno::clock::duration_ms;
use segno::store::{Expect, RecordBatch, RecordWrite};

use super::announcer::Committed;
use super::calls::Sending;
use super::ended_calls;
use super::error::DriveError;
use super::holder::Held;
use super::lease::lost_or;
use super::outbox;
use super::part::{Part, Progress};
use super::place::BatchPlace;
use super::published::BatchSummary;
use super::wakeups::due_ms;
use crate::message::{CallReport, CallSeen, Message, Outcome, WorkReference};
use crate::rows::{Changes, Row, RowKey};
use crate::step::{Dispatch, Effect, Event, LookAfter};
use crate::telemetry;

/// Calls that are prepared or looked after at the same time.
const CALLS_AT_ONCE: usize = 64;

/// Rows that stay in memory between parts; with more, all are read again when they are needed.
const KEPT_ROWS: usize = 20_000;

/// A commit of more bytes makes the next parts of cursor work smaller, one of far fewer makes them
/// larger.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;

/// Least rows that a part of cursor work reads.
const MIN_ROWS_PER_PART: u32 = 16;

/// An effect whose part in the commit is prepared.
enum Prepared {
    /// A job, and what became of it.
    Job(Dispatch, Sending),
    /// A call that was cancelled.
    Cancelled,
    /// Something for after the commit.
    After(Effect),
}

impl Held {
    /// Commits a part. Nothing is committed if nothing has changed.
    pub(super) async fn commit(&mut self, part: Part, now_ms: u64) -> Result<Progress, DriveError> {
        let has_consumed = part.has_consumed();
        let Part { mut commit, effects, ended, late_ms, .. } = part;
        self.add_notices(&effects, &mut commit).await?;
        self.add_announcements(&effects, &mut commit);
        let after = self.add_calls(effects, &mut commit).await?;
        let Changes { rows, states } = self.rows.take_changes();
        for row in &rows {
            self.wakeups.note(row);
            commit.writes.push(row_write(&self.place, row)?);
        }
        drop(rows);
        if commit.writes.is_empty() && commit.orchestrator_items.is_empty() {
            self.after_commit(after).await?;
            return Ok(if has_consumed { Progress::Made } else { Progress::Stuck });
        }
        outbox::keep_last(&mut commit.writes);
        self.add_index_entry(&mut commit);
        if let Some(keep) = self.services.options.keep_invocations.filter(|_| !ended.is_empty()) {
            let due_at_ms = now_ms.saturating_add(duration_ms(keep));
            commit.writes.push(ended_calls::write(&self.place, self.lease.version(), ended, due_at_ms));
        }
        self.fit_parts(&commit);
        let lease = commit.writes.len();
        commit.writes.push(self.lease.renewal(now_ms));
        let versions = self.services.store.commit_records(commit).await.map_err(lost_or)?;
        self.lease.renewed(versions.get(lease).copied().unwrap_or_default(), now_ms);
        self.indexed = self.rows.batch().map(|batch| batch.status);
        if self.rows.loaded() > KEPT_ROWS {
            self.rows.forget_unchanged();
        }
        for late_ms in late_ms {
            metrics::histogram!(telemetry::LATENESS_SECONDS).record(Duration::from_millis(late_ms));
        }
        telemetry::count_states(&states);
        self.dispatched.drain(..).for_each(|job_id| telemetry::count_dispatch(&job_id));
        if !states.is_empty() {
            let status = self.indexed;
            let committed = Committed { runbook: &self.runbook, status, states: &states };
            self.services.announcer.committed(&self.place, &committed);
        }
        self.after_commit(after).await?;
        Ok(Progress::Made)
    }

    /// Adds what people have to know.
    async fn add_notices(&self, effects: &[Effect], commit: &mut RecordBatch) -> Result<(), DriveError> {
        let notices = effects.iter().filter_map(|effect| match effect {
            Effect::Notify(notice) => Some(notice),
            _ => None,
        });
        for (number, notice) in notices.enumerate() {
            self.add_notice(notice, number, commit).await?;
        }
        Ok(())
    }

    /// Adds the starts and cancellations of calls, in the order of the effects. Returns the other
    /// effects.
    async fn add_calls(
        &mut self,
        effects: Vec<Effect>,
        commit: &mut RecordBatch,
    ) -> Result<Vec<Effect>, DriveError> {
        let (calls, place, now_ms) = (&self.calls, &self.place, self.now_ms());
        let prepared = stream::iter(effects).map(|effect| async move {
            let mut own = RecordBatch::default();
            let prepared = match effect {
                Effect::Dispatch(job) => {
                    let sending = calls.send(place, &job, (&mut own, now_ms)).await?;
                    Prepared::Job(job, sending)
                }
                Effect::CancelJob(job) => {
                    calls.cancel(place, &job, &mut own).await?;
                    Prepared::Cancelled
                }
                other => Prepared::After(other),
            };
            Ok::<_, DriveError>((prepared, own))
        });
        let prepared: Vec<(Prepared, RecordBatch)> = prepared.buffered(CALLS_AT_ONCE).try_collect().await?;
        let mut after = Vec::new();
        for (prepared, own) in prepared {
            commit.writes.extend(own.writes);
            commit.orchestrator_items.extend(own.orchestrator_items);
            commit.worker_items.extend(own.worker_items);
            match prepared {
                Prepared::Job(job, Sending::Refused(message)) => {
                    // The step fails in the next part. Should this node die before, the call is
                    // missing when it is looked after, and is refused again.
                    let seen = CallSeen::Ended { outcome: Outcome::failed(message) };
                    self.own.push_back(report(job.job_id, seen)?);
                }
                Prepared::Job(job, Sending::Later) => {
                    let (batch, pool) = (self.place.id(), &job.worker_id);
                    tracing::debug!(%batch, job = %job.job_id, %pool, "the pool takes no jobs yet");
                    // Should this node die before, the job is found not to be sent when it is
                    // looked after.
                    self.own.push_back(report(job.job_id, CallSeen::Unsent)?);
                }
                Prepared::Job(job, Sending::Added) => self.dispatched.push(job.job_id),
                Prepared::Cancelled => {}
                Prepared::After(effect) => after.push(effect),
            }
        }
        Ok(after)
    }

    /// Adds the messages of the topic `orchestrator-events`, if the batch's tenant has a bus. They are
    /// sent after the commit. The lease's version is another one in each commit, so ids differ.
    fn add_announcements(&self, effects: &[Effect], commit: &mut RecordBatch) {
        let Some(bus) = self.services.bus.as_ref().filter(|bus| bus.announces(&self.place.scope)) else {
            return;
        };
        let events = effects.iter().filter_map(|effect| match effect {
            Effect::Announce(Event::Bus(event)) => Some(event),
            _ => None,
        });
        let id = format!("batch-{}-{}", self.place.batch, self.lease.version());
        commit.writes.extend(bus.event_writes(&self.place, &id, events, self.now_ms()));
    }

    /// The entry of the batch in the index of its runbook, when its state has changed.
    fn add_index_entry(&self, commit: &mut RecordBatch) {
        if let Some(batch) = self.rows.batch()
            && self.indexed != Some(batch.status)
        {
            commit.writes.push(BatchSummary::write(&self.place, batch));
        }
    }

    /// Makes the parts of cursor work fit into commits of a bounded size.
    fn fit_parts(&mut self, commit: &RecordBatch) {
        let body = |write: &RecordWrite| match write {
            RecordWrite::Put { body, .. } => body.len(),
            RecordWrite::Delete { .. } => 0,
        };
        let bytes: usize = commit.writes.iter().map(body).sum();
        if bytes > COMMIT_BYTES {
            self.rows_per_part = (self.rows_per_part / 2).max(MIN_ROWS_PER_PART);
        } else if bytes < COMMIT_BYTES / 4 {
            let most = self.services.options.rows_per_part;
            self.rows_per_part = self.rows_per_part.saturating_mul(2).min(most);
        }
    }

    /// What needs no commit: reports about calls become inputs of the next part, announcements go
    /// out.
    async fn after_commit(&mut self, effects: Vec<Effect>) -> Result<(), DriveError> {
        let mut looks = Vec::new();
        for effect in effects {
            match effect {
                Effect::LookAfter(job) => looks.push(job),
                Effect::Announce(event) => self.services.announcer.announce(&self.place, &event),
                Effect::Notify(notice) => self.services.announcer.notify(&self.place, &notice),
                Effect::SlowDown { worker_id } => {
                    if let Err(error) = self.calls.slow_down(&self.place.scope, &worker_id).await {
                        tracing::warn!(pool = %worker_id, %error, "a pool could not be slowed down");
                    }
                }
                Effect::Dispatch(_) | Effect::CancelJob(_) => {}
            }
        }
        self.look_after(looks).await
    }

    /// Looks after calls. What is found becomes inputs of the next part.
    pub(super) async fn look_after(&mut self, looks: Vec<LookAfter>) -> Result<(), DriveError> {
        metrics::counter!(telemetry::CALL_CHECKS).increment(looks.len() as u64);
        let (calls, place, now_ms) = (&self.calls, &self.place, self.now_ms());
        let seen = stream::iter(looks).map(|job: LookAfter| async move {
            let seen = calls.look_after(place, &job, now_ms).await?;
            report(job.job_id, seen)
        });
        let reports: Vec<Message> = seen.buffered(CALLS_AT_ONCE).try_collect().await?;
        self.own.extend(reports);
        Ok(())
    }
}

/// The write of a row's record. The lease in the same commit is what protects it.
pub(super) fn row_write(place: &BatchPlace, row: &Row) -> Result<RecordWrite, DriveError> {
    let unreadable = |key: Option<&RowKey>, problem: String| DriveError::Unreadable {
        kind: key.map_or("rows", |key| key.table().name()),
        id: key.map(ToString::to_string).unwrap_or_default(),
        problem,
    };
    let key = row.key().ok_or_else(|| unreadable(None, "the row has no key".to_owned()))?;
    let body = row.encode().map_err(|error| unreadable(Some(&key), error.to_string()))?;
    Ok(RecordWrite::Put {
        kind: key.table().name().to_owned(),
        id: place.row_id(&key),
        expect: Expect::Anything,
        due_at_ms: due_ms(row),
        time_to_live: None,
        body: body.into(),
    })
}

fn report(job_id: String, seen: CallSeen) -> Result<Message, DriveError> {
    let work = WorkReference::of_job_id(&job_id).ok_or_else(|| DriveError::Unreadable {
        kind: "jobs",
        id: job_id.clone(),
        problem: "the id names no row".to_owned(),
    })?;
    Ok(Message::Call(CallReport { job_id, work, seen }))
}
