//! The three reports of a worker: `started`, `heartbeat`, `completed`.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::clock;
use segno::store::ErrorKind;
use tokio::sync::oneshot;

use super::attempt::{Admitted, Shown, check_under_way, shown};
use super::envelope::{expiry, time};
use super::error::CallbackError;
use super::receipt::Receipt;
use super::report::{CompletedReport, HeartbeatReport, StartedReport, message};
use super::token::{TaskToken, TaskTokens};
use crate::drive::error::LedgerError;
use crate::drive::ledger::Ledger;
use crate::drive::limits::READ_AFTER_WRITE;
use crate::drive::place::outbox_id;
use crate::drive::post::{Posting, post};
use crate::event::{Outcome, TaskHeartbeat, TaskStarted};
use crate::ids::fingerprint;
use crate::tables::{TaskRow, TaskState};

/// Pause between two looks for the end of an attempt.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Shortest time between two heartbeats that are stored.
const HEARTBEATS_APART_MS: u64 = 1_000;

/// Reports of workers. Cheap to clone.
#[derive(Clone)]
pub struct Callbacks {
    pub(super) ledger: Ledger,
    pub(super) tokens: TaskTokens,
}

/// A report that was accepted: it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// The time of the server.
    pub at: Timestamp,
    /// Whether the tables show it. They do so a moment later otherwise.
    pub visible: bool,
}

/// A heartbeat that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alive {
    /// The time of the server.
    pub at: Timestamp,
    /// Whether the run was cancelled, so that the worker ends the attempt as cancelled.
    pub should_cancel: bool,
    /// Why.
    pub cancel_reason: Option<String>,
    /// A token that is valid for longer.
    pub token: String,
    /// Until when.
    pub token_expires_at: Timestamp,
}

impl Ledger {
    /// What workers report with tokens.
    pub fn callbacks(&self, tokens: TaskTokens) -> Callbacks {
        Callbacks { ledger: self.clone(), tokens }
    }
}

impl Callbacks {
    /// What a token is for.
    ///
    /// # Errors
    /// `invalid-task-token`.
    pub fn token(&self, text: &str) -> Result<TaskToken, CallbackError> {
        self.tokens.verify(text).map_err(|_| CallbackError::InvalidToken)
    }

    /// A worker has started the attempt. The same worker may report it again; another one is refused.
    ///
    /// # Errors
    /// Why the attempt is not the worker's, each with its code; those of the ledger.
    pub async fn started(
        &self,
        token: &TaskToken,
        task_id: &str,
        report: StartedReport,
    ) -> Result<Acknowledged, CallbackError> {
        report.name.check()?;
        let admitted = self.admit(token, task_id, &report.name)?;
        let row = self.row(&admitted).await?;
        check_under_way(&row, &admitted.attempt)?;
        let worker = report.name.worker_id;
        let key = format!("started:{}", admitted.dispatch_id);
        let event = TaskStarted { attempt: admitted.attempt.clone(), worker_id: worker.as_str().into() };
        let receipt = Receipt { fingerprint: fingerprint(&worker), worker };
        let writes = vec![receipt.write(&admitted.scope, &key)];
        let posting = Posting { key: key.clone(), events: vec![event.into()], writes };
        if self.posted(&admitted, posting).await? == Posted::Before {
            self.same_report(&admitted, &key, &receipt).await?;
        }
        Ok(Acknowledged { at: time(self.now_ms()), visible: row.state == TaskState::Running })
    }

    /// The attempt is alive.
    ///
    /// # Errors
    /// As [`Callbacks::started`].
    pub async fn heartbeat(
        &self,
        token: &TaskToken,
        task_id: &str,
        report: HeartbeatReport,
    ) -> Result<Alive, CallbackError> {
        report.check()?;
        let admitted = self.admit(token, task_id, &report.name)?;
        let row = self.row(&admitted).await?;
        check_under_way(&row, &admitted.attempt)?;
        if is_news(&row, &report, self.now_ms()) {
            self.post_heartbeat(&admitted, &row, report).await?;
        }
        let run = self.ledger.runs().run_row(&admitted.scope, &row.run_id).await?;
        let renewed = TaskToken { expires_at_ms: expiry(self.now_ms()), ..token.clone() };
        Ok(Alive {
            at: time(self.now_ms()),
            should_cancel: run.cancel_requested,
            cancel_reason: run.reason.filter(|_| run.cancel_requested).map(|reason| reason.to_string()),
            token: self.tokens.sign(&renewed),
            token_expires_at: time(renewed.expires_at_ms),
        })
    }

    /// The attempt has ended. The same report again is acknowledged again; another one about the same attempt is refused.
    ///
    /// # Errors
    /// As [`Callbacks::started`]. Also when something else has ended the attempt before the report was applied.
    pub async fn completed(
        &self,
        token: &TaskToken,
        task_id: &str,
        report: CompletedReport,
    ) -> Result<Acknowledged, CallbackError> {
        report.check()?;
        let admitted = self.admit(token, task_id, &report.name)?;
        let (key, outcome) = (format!("completed:{}", admitted.dispatch_id), report.outcome);
        let event = report.clone().event(admitted.attempt.clone());
        let body = serde_json::to_string(&event).expect("events are JSON with text keys");
        let receipt = Receipt { worker: report.name.worker_id, fingerprint: fingerprint(&body) };
        let row = self.row(&admitted).await?;
        if let Err(refused) = check_under_way(&row, &admitted.attempt) {
            // It may be the end that this report has brought about.
            return match Receipt::read(&self.ledger, &admitted.scope, &key).await? {
                Some(earlier) if earlier == receipt => self.visible(&admitted, outcome, None).await,
                _ => Err(refused),
            };
        }
        let published = self.ledger.wait_published(outbox_id(&admitted.scope, &key));
        let writes = vec![receipt.write(&admitted.scope, &key)];
        let posting = Posting { key: key.clone(), events: vec![event.into()], writes };
        if self.posted(&admitted, posting).await? == Posted::Before {
            let earlier = Receipt::read(&self.ledger, &admitted.scope, &key).await?;
            if earlier.as_ref() != Some(&receipt) {
                return Err(CallbackError::Completed(admitted.attempt.attempt));
            }
            return self.visible(&admitted, outcome, None).await;
        }
        self.visible(&admitted, outcome, Some(published)).await
    }

    /// Stores a heartbeat. It replaces one that was not appended yet. A worker that reports no start has started with its first
    /// heartbeat.
    async fn post_heartbeat(
        &self,
        admitted: &Admitted,
        row: &TaskRow,
        report: HeartbeatReport,
    ) -> Result<(), CallbackError> {
        let worker_id: Arc<str> = report.name.worker_id.into();
        let mut events = Vec::new();
        if row.state == TaskState::Dispatched {
            let (attempt, worker_id) = (admitted.attempt.clone(), Arc::clone(&worker_id));
            events.push(TaskStarted { attempt, worker_id }.into());
        }
        // Without a time of its own it counts from its receipt.
        let beat = TaskHeartbeat {
            attempt: admitted.attempt.clone(),
            worker_id,
            heartbeat_at: None,
            progress_pct: report.progress_pct,
            message: message(report.message),
        };
        events.push(beat.into());
        let key = format!("heartbeat:{}", admitted.dispatch_id);
        self.posted(admitted, Posting { key, events, writes: Vec::new() }).await.map(drop)
    }

    async fn posted(&self, admitted: &Admitted, posting: Posting) -> Result<Posted, CallbackError> {
        match post(self.ledger.store(), &admitted.scope, posting).await {
            Ok(()) => Ok(Posted::Now),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Posted::Before),
            Err(error) => Err(LedgerError::from(error).into()),
        }
    }

    /// Whether an earlier start was reported by the same worker.
    async fn same_report(
        &self,
        admitted: &Admitted,
        key: &str,
        receipt: &Receipt,
    ) -> Result<(), CallbackError> {
        match Receipt::read(&self.ledger, &admitted.scope, key).await? {
            Some(earlier) if earlier != *receipt => Err(CallbackError::OtherWorker(earlier.worker)),
            _ => Ok(()),
        }
    }

    /// Waits until the tables show the end of an attempt, for at most [`READ_AFTER_WRITE`].
    async fn visible(
        &self,
        admitted: &Admitted,
        outcome: Outcome,
        published: Option<oneshot::Receiver<()>>,
    ) -> Result<Acknowledged, CallbackError> {
        let clock = self.ledger.clock();
        let deadline_ms = clock::deadline_ms(clock, READ_AFTER_WRITE);
        if let Some(published) = published {
            let _ = clock::timeout(clock, LOOK_AGAIN, published).await;
        }
        loop {
            // The report is durable, so tables that cannot be read now are no failure of it.
            match self.row(admitted).await.map(|row| shown(&row, &admitted.attempt, outcome)) {
                Ok(Shown::Applied) => return Ok(Acknowledged { at: time(self.now_ms()), visible: true }),
                Ok(Shown::Refused(refused)) => return Err(refused),
                Ok(Shown::NotYet) | Err(_) => {}
            }
            if clock.now_ms() >= deadline_ms {
                return Ok(Acknowledged { at: time(self.now_ms()), visible: false });
            }
            clock::sleep(clock, LOOK_AGAIN).await;
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.ledger.clock().now_ms()
    }
}

/// Whether a report was stored by this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Posted {
    Now,
    Before,
}

/// Whether a heartbeat tells anything that the tables do not show: they need one only now and then.
fn is_news(row: &TaskRow, report: &HeartbeatReport, now_ms: u64) -> bool {
    let since = row.last_heartbeat_at.or(row.started_at).and_then(|at| u64::try_from(at).ok());
    let apart_ms = (u64::from(row.heartbeat_timeout_sec) * 100).max(HEARTBEATS_APART_MS);
    let is_early = since.is_some_and(|since| now_ms < since.saturating_add(apart_ms));
    let is_further = report.progress_pct.is_some() && report.progress_pct != row.progress_pct;
    row.state == TaskState::Dispatched || !is_early || is_further
}
