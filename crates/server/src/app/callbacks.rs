//! What workers with task tokens reach, who have no key: the one attempt that the token is for.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use segno_ledger::drive::{
    Acknowledged, Alive, CallbackError, Callbacks, CompletedReport, HeartbeatReport, StartedReport, TaskToken,
};

use super::App;
use crate::access;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// The attempt of a verified task token. Its scope is that of the token, and nothing else can be reached through it.
pub struct AttemptCaller {
    callbacks: Callbacks,
    token: TaskToken,
    scope: Scope,
}

impl AttemptCaller {
    /// Reports a start.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn started(&self, task: &str, report: StartedReport) -> Result<Acknowledged, Refusal> {
        let done = self.callbacks.started(&self.token, task, report).await;
        done.map_err(|error| refusal(&error, &self.scope))
    }

    /// Reports a heartbeat.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn heartbeat(&self, task: &str, report: HeartbeatReport) -> Result<Alive, Refusal> {
        let done = self.callbacks.heartbeat(&self.token, task, report).await;
        done.map_err(|error| refusal(&error, &self.scope))
    }

    /// Reports an end.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn completed(&self, task: &str, report: CompletedReport) -> Result<Acknowledged, Refusal> {
        let done = self.callbacks.completed(&self.token, task, report).await;
        done.map_err(|error| refusal(&error, &self.scope))
    }
}

impl FromRequestParts<App> for AttemptCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let invalid = || refusal(&CallbackError::InvalidToken, &Scope::default());
        let text = access::bearer(&parts.headers).map_err(|_| invalid())?;
        let Some(ledger) = &app.resources.ledger else {
            let detail = "this server has no ledger; set ledger.url, which a store on PostgreSQL needs";
            return Err(Refusal::new(Code::LedgerUnavailable, detail));
        };
        let callbacks = ledger.callbacks(app.resources.task_tokens.clone());
        let token = callbacks.token(text).map_err(|_| invalid())?;
        let scope = Scope::new(&token.workspace, &token.tenant).map_err(|_| invalid())?;
        Ok(AttemptCaller { callbacks, token, scope })
    }
}

fn refusal(error: &CallbackError, scope: &Scope) -> Refusal {
    let status = match error {
        CallbackError::Ledger(error) => return Refusal::from_ledger(error, scope),
        CallbackError::Invalid { field, problem } => return Refusal::field(&**field, problem.clone()),
        CallbackError::InvalidToken => StatusCode::UNAUTHORIZED,
        CallbackError::Expired => StatusCode::GONE,
        CallbackError::UnknownTask(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::CONFLICT,
    };
    Refusal::told(status, error.code(), scope.hide_prefix(&error.to_string()))
}
