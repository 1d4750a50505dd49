//! The envelope: the input with which the function of a task with callbacks is called. The issuer adds the token when the call is
//! handed out, so that neither the store nor the ledger nor the archive has it.

use jiff::Timestamp;
use segno::Payload;
use segno_actions::functions::{FunctionsBuilder, Issuer, Scope};
use serde_json::{Map, Value, json};

use super::token::{TaskToken, TaskTokens};
use crate::drive::limits::TASK_TOKEN_LIFE;
use crate::drive::settler::SETTLE_KIND;
use crate::ids::CallbackTask;
use crate::tables::{OutboxRow, TaskRow};

/// The envelope of an attempt, without its token.
pub(in crate::drive) fn envelope(
    scope: &Scope,
    task: &TaskRow,
    dispatch: &OutboxRow,
    payload: Value,
) -> Value {
    let id = CallbackTask { run_id: task.run_id.to_string(), task_key: task.task_key.to_string() };
    let mut envelope = json!({
        "tenantId": scope.tenant.as_str(),
        "workspaceId": scope.namespace.as_str(),
        "taskId": id.to_string(),
        "taskKey": &*task.task_key,
        "runId": &*task.run_id,
        "attempt": dispatch.attempt,
        "attemptId": &*dispatch.attempt_id,
        "dispatchId": &*dispatch.dispatch_id,
        "heartbeatTimeoutSec": task.heartbeat_timeout_sec,
        "workerQueue": &*dispatch.worker_queue,
        "payload": payload,
    });
    if let Some(partition) = &task.partition_key {
        envelope["partitionKey"] = (&**partition).into();
    }
    envelope
}

/// Adds tokens to envelopes.
pub struct TokenIssuer {
    /// Signs them.
    pub tokens: TaskTokens,
    /// The URL under which workers reach the server.
    pub callback_base_url: String,
}

/// Registers the issuer with the functions of a node.
#[must_use]
pub fn issue(functions: FunctionsBuilder, issuer: TokenIssuer) -> FunctionsBuilder {
    functions.issuer(SETTLE_KIND, issuer)
}

impl Issuer for TokenIssuer {
    fn complete(&self, scope: &Scope, stored: &Payload, now_ms: u64) -> Result<Payload, String> {
        let mut envelope: Map<String, Value> = stored.decode().map_err(|error| error.to_string())?;
        let text = |name: &str| envelope.get(name).and_then(Value::as_str).map(str::to_owned);
        let attempt =
            envelope.get("attempt").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        let token = || {
            Some(TaskToken {
                tenant: scope.tenant.to_string(),
                workspace: scope.namespace.to_string(),
                run_id: text("runId")?,
                task_key: text("taskKey")?,
                attempt: attempt?,
                attempt_id: text("attemptId")?,
                expires_at_ms: expiry(now_ms),
            })
        };
        let token = token().ok_or("it is no envelope of an attempt")?;
        envelope.insert("callbackBaseUrl".to_owned(), self.callback_base_url.clone().into());
        envelope.insert("taskToken".to_owned(), self.tokens.sign(&token).into());
        envelope.insert("tokenExpiresAt".to_owned(), time(token.expires_at_ms).to_string().into());
        Payload::encode(&envelope).map_err(|error| error.to_string())
    }
}

/// When a token that is signed now expires.
pub(super) fn expiry(now_ms: u64) -> u64 {
    now_ms.saturating_add(segno::clock::duration_ms(TASK_TOKEN_LIFE))
}

pub(super) fn time(at_ms: u64) -> Timestamp {
    crate::drive::ledger::timestamp(at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_added_for_the_scope_of_the_call_whatever_the_stored_input_names() {
        let issuer =
            TokenIssuer { tokens: TaskTokens::new(b"secret"), callback_base_url: "http://x".to_owned() };
        let scope = Scope::new("prod", "acme").unwrap();
        let stored =
            json!({ "tenantId": "other", "runId": "r", "taskKey": "t", "attempt": 3, "attemptId": "a" });
        let stored = Payload::encode(&stored).unwrap();
        let handed_out: Value = issuer.complete(&scope, &stored, 1_000).unwrap().decode().unwrap();
        let token = issuer.tokens.verify(handed_out["taskToken"].as_str().unwrap()).unwrap();
        assert_eq!(token.scope(), Some(scope.clone()));
        assert_eq!((token.run_id.as_str(), token.attempt, token.expires_at_ms), ("r", 3, 3_601_000));
        assert_eq!(handed_out["tokenExpiresAt"], "1970-01-01T01:00:01Z");
        let broken = Payload::encode(&json!({ "runId": "r" })).unwrap();
        assert!(issuer.complete(&scope, &broken, 1_000).is_err());
    }
}
