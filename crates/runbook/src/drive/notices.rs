//! Notices for people, as outgoing webhooks: calls of the function that the runbook names under
//! `notify`. The call is started in the commit that made the notice, so it is made at least once;
//! an `http` function has the address, the hosts that are allowed, the secret, the signature, the
//! idempotency key and the retries. What became of a notice is a record of the batch, written in
//! the commit that ends the call.

use async_trait::async_trait;
use jiff::Timestamp;
use segno::clock::duration_ms;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite};
use segno::{Epilogue, Payload};
use segno_actions::Listed;
use segno_actions::functions::{
    CallEnd, FunctionError, FunctionName, InvokeRequest, Scope, Settle, SettleError, Settler,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ended_calls;
use super::error::{DriveError, RunbookError};
use super::holder::Held;
use super::place::BatchPlace;
use super::post::timestamp;
use super::runbooks::{Runbooks, listed};
use crate::definition::NoticeEvent;
use crate::rows::{BatchId, PhaseId};
use crate::step::Notice;

/// Kind of the records of notices.
pub const NOTICES: &str = "runbook_notices";

/// Kind of calls that deliver notices.
pub const NOTICE_SETTLE_KIND: &str = "runbook-notice";

/// Longest error that is kept of a notice, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// Its call has not ended.
    Sending,
    /// The function has returned.
    Delivered,
    /// The function has failed for good, or could not be called.
    Failed,
}

/// A notice of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeRow {
    /// Job of the call; its instance is `runbook:` and this.
    pub job_id: String,
    /// The batch.
    pub batch_id: BatchId,
    /// What people have to know.
    pub event: NoticeEvent,
    /// The phase.
    pub phase_execution_id: PhaseId,
    /// Its name.
    pub phase_name: String,
    /// The function that is called.
    pub function_name: String,
    /// What became of it.
    pub state: NoticeState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was delivered or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl NoticeRow {
    fn write(&self, scope: &Scope) -> RecordWrite {
        let place = BatchPlace::new(scope.clone(), self.batch_id);
        RecordWrite::Put {
            kind: NOTICES.to_owned(),
            id: format!("{}{}", place.folder(), self.job_id),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: serde_json::to_vec(self).expect("a notice has plain fields").into(),
        }
    }

    fn failed(&mut self, error: &str, at: Timestamp) {
        self.state = NoticeState::Failed;
        self.error_message = Some(error.chars().take(MAX_ERROR_CHARS).collect());
        self.ended_at = Some(at);
    }
}

impl Held {
    /// Adds a notice and the start of its call to a commit, if the runbook wants it.
    pub(super) async fn add_notice(
        &self,
        notice: &Notice,
        number: usize,
        commit: &mut RecordBatch,
    ) -> Result<(), DriveError> {
        let (phase, phase_name, event) = about(notice);
        let (Some(batch), Some(version)) =
            (self.rows.batch(), self.rows.phase(phase).map(|phase| phase.runbook_version))
        else {
            return Ok(());
        };
        let scope = &self.place.scope;
        let definition = self.services.definitions.get(scope, &batch.runbook_name, version).await?;
        let Some(notify) = definition.notify.as_ref().filter(|notify| notify.on.contains(&event)) else {
            return Ok(());
        };
        let now = timestamp(self.now_ms());
        let mut row = NoticeRow {
            // The lease has a higher version in every commit: ids are unique, and in order.
            job_id: format!("notify-{:020}-{number:04}", self.lease.version()),
            batch_id: self.place.batch,
            event,
            phase_execution_id: phase,
            phase_name: phase_name.to_owned(),
            function_name: notify.function.clone(),
            state: NoticeState::Sending,
            error_message: None,
            created_at: now,
            ended_at: None,
        };
        let input = json!({
            "event": event,
            "namespace": scope.namespace,
            "tenant": scope.tenant,
            "batch_id": self.place.batch,
            "runbook_name": batch.runbook_name,
            "runbook_version": version,
            "phase_execution_id": phase,
            "phase_name": phase_name,
            "created_at": now,
            "details": details(notice),
        });
        match self.start_notice(&row, &input, commit).await {
            Ok(()) => {
                if let Some(keep) = self.services.options.keep_invocations {
                    let due_at_ms = self.now_ms().saturating_add(duration_ms(keep));
                    commit.writes.push(ended_calls::write_job(scope, &row.job_id, due_at_ms));
                }
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error.into()),
            Err(error) => {
                let batch = self.place.id();
                tracing::warn!(%batch, %error, "a notice of a batch cannot be sent");
                row.failed(&error.to_string(), now);
            }
        }
        commit.writes.push(row.write(scope));
        Ok(())
    }

    async fn start_notice(
        &self,
        row: &NoticeRow,
        input: &Value,
        commit: &mut RecordBatch,
    ) -> Result<(), FunctionError> {
        let invalid = |problem: String| FunctionError::InvalidInvocation { field: "notify", problem };
        let input = Payload::from_json(input.to_string()).map_err(|error| invalid(error.to_string()))?;
        let request = InvokeRequest::new(FunctionName::new(row.function_name.as_str())?, input);
        let settle = Settle::new(NOTICE_SETTLE_KIND, row.job_id.as_str()).with(row)?;
        self.services
            .calls
            .add_call(commit, &self.place.scope, (&row.job_id, settle), request)
            .await
            .map(drop)
    }
}

fn about(notice: &Notice) -> (PhaseId, &str, NoticeEvent) {
    match notice {
        Notice::ApprovalWanted { phase, phase_name, .. } => (*phase, phase_name, NoticeEvent::ApprovalWanted),
        Notice::PhaseFailed { phase, phase_name, .. } => (*phase, phase_name, NoticeEvent::PhaseFailed),
        Notice::BudgetSpent { phase, phase_name, .. } => (*phase, phase_name, NoticeEvent::BudgetSpent),
    }
}

fn details(notice: &Notice) -> Value {
    match notice {
        Notice::ApprovalWanted { message, deadline, .. } => {
            json!({ "message": message, "deadline": deadline })
        }
        Notice::PhaseFailed { reason, members_failed, .. } => {
            json!({ "reason": reason, "members_failed": members_failed })
        }
        Notice::BudgetSpent { members_failed, .. } => json!({ "members_failed": members_failed }),
    }
}

/// Writes what became of notices.
pub struct NoticeSettler;

#[async_trait]
impl Settler for NoticeSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        let mut row: NoticeRow = end.settle.data()?;
        let now = timestamp(end.now_ms);
        match end.outcome {
            Ok(_) => (row.state, row.ended_at) = (NoticeState::Delivered, Some(now)),
            Err(failure) => row.failed(&failure.message, now),
        }
        Ok(Epilogue { writes: vec![row.write(end.scope)], committed: None })
    }
}

impl Runbooks {
    /// Notices of a batch, oldest first.
    ///
    /// # Errors
    /// `store`.
    pub async fn notices(
        &self,
        scope: &Scope,
        batch: BatchId,
        limit: usize,
    ) -> Result<Vec<Listed<NoticeRow>>, RunbookError> {
        let folder = BatchPlace::new(scope.clone(), batch).folder();
        let request = ListRecords { kind: NOTICES, id_prefix: &folder, after_id: None, limit };
        let page = self.store.list_records(request).await?;
        let row =
            |record: &Record| listed(serde_json::from_slice::<NoticeRow>(&record.body), record, &folder);
        Ok(page.iter().map(row).collect())
    }
}
