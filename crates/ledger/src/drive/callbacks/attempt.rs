//! From a token to the attempt that it is for: verified, and compared with the newest tables.

use segno_actions::functions::Scope;

use super::error::CallbackError;
use super::handle::Callbacks;
use super::report::AttemptName;
use super::token::TaskToken;
use crate::event::{Attempt, Outcome};
use crate::ids::{CallbackTask, dispatch_id};
use crate::tables::{TaskRow, TaskState};

/// An attempt that a valid token is for.
pub(super) struct Admitted {
    pub(super) scope: Scope,
    pub(super) attempt: Attempt,
    pub(super) dispatch_id: String,
}

impl Callbacks {
    /// Verifies a token, and that the report is about its attempt.
    pub(super) fn admit(
        &self,
        token: &TaskToken,
        task_id: &str,
        name: &AttemptName,
    ) -> Result<Admitted, CallbackError> {
        let named: CallbackTask =
            task_id.parse().map_err(|_| CallbackError::UnknownTask(task_id.chars().take(200).collect()))?;
        let scope = token.scope().ok_or(CallbackError::InvalidToken)?;
        if named.run_id != token.run_id || named.task_key != token.task_key {
            return Err(CallbackError::InvalidToken);
        }
        if self.now_ms() >= token.expires_at_ms {
            return Err(CallbackError::Expired);
        }
        if name.attempt != token.attempt {
            return Err(CallbackError::TokenAttempt { reported: name.attempt, token: token.attempt });
        }
        if name.attempt_id != token.attempt_id {
            return Err(CallbackError::AttemptId);
        }
        let attempt = Attempt {
            run_id: token.run_id.as_str().into(),
            task_key: token.task_key.as_str().into(),
            attempt: token.attempt,
            attempt_id: token.attempt_id.as_str().into(),
        };
        let dispatch_id = dispatch_id(&attempt.run_id, &attempt.task_key, attempt.attempt);
        Ok(Admitted { scope, attempt, dispatch_id })
    }

    /// The row of the task of an attempt.
    pub(super) async fn row(&self, admitted: &Admitted) -> Result<TaskRow, CallbackError> {
        let Attempt { run_id, task_key, .. } = &admitted.attempt;
        let row = self.ledger.runs().task_row(&admitted.scope, run_id, task_key).await?;
        row.ok_or_else(|| CallbackError::UnknownTask(task_key.to_string()))
    }
}

/// Whether the attempt is the one that is under way.
pub(super) fn check_under_way(row: &TaskRow, attempt: &Attempt) -> Result<(), CallbackError> {
    if row.state.is_final() {
        return Err(CallbackError::Terminal(row.state.text()));
    }
    if row.attempt != attempt.attempt {
        return Err(CallbackError::Attempt { reported: attempt.attempt, current: row.attempt });
    }
    match row.state {
        TaskState::Dispatched | TaskState::Running
            if row.attempt_id.as_ref() == Some(&attempt.attempt_id) =>
        {
            Ok(())
        }
        TaskState::Dispatched | TaskState::Running => Err(CallbackError::AttemptId),
        // The task was cleared, or its attempt has failed.
        _ => Err(CallbackError::Completed(attempt.attempt)),
    }
}

/// What the tables show of a report of an end.
#[derive(Debug)]
pub(super) enum Shown {
    /// They show it.
    Applied,
    /// The attempt is still under way.
    NotYet,
    /// Something else has ended the attempt before.
    Refused(CallbackError),
}

/// Whether the tables show that an attempt has ended as reported.
pub(super) fn shown(row: &TaskRow, attempt: &Attempt, outcome: Outcome) -> Shown {
    let Err(refused) = check_under_way(row, attempt) else { return Shown::NotYet };
    let is_later = row.attempt > attempt.attempt;
    let is_applied = match (outcome, row.state) {
        (Outcome::Failed, TaskState::RetryWait) => true,
        // A failure is followed by the next attempt.
        (Outcome::Failed, _) if is_later => true,
        (Outcome::Failed, TaskState::Failed) => true,
        (Outcome::Succeeded, TaskState::Succeeded) => !is_later,
        (Outcome::Skipped, TaskState::Skipped) => !is_later,
        (Outcome::Cancelled, TaskState::Cancelled) => !is_later,
        _ => false,
    };
    if is_applied { Shown::Applied } else { Shown::Refused(refused) }
}
