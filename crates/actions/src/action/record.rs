//! How actions are stored.
//!
//! | kind | id | due | what |
//! |---|---|---|---|
//! | `segno.action` | `namespace/tenant/uuid` | its time, while it is pending | the action, as JSON |
//! | `segno.action-run` | the same | when somebody should look after it | that the action runs |
//!
//! So the due index has what waits and nothing else, and what runs is found without reading what waits or has ended.

use std::time::Duration;

use segno::store::{Expect, Record, RecordWrite};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::ActionError;
use super::model::{Action, ActionStatus};
use crate::functions::{Namespace, Scope, Tenant};
use crate::moment::due_ms;

/// Kind of the records that are actions.
pub const ACTION_KIND: &str = "segno.action";

/// Kind of the records that say that an action runs.
pub const ACTION_RUN_KIND: &str = "segno.action-run";

/// The form in which actions are stored.
const FORMAT: u32 = 1;

/// Largest stored action in bytes.
const MAX_ACTION_BYTES: usize = 8 * 1024 * 1024;

/// How long after its start an action is looked after for the first time, should its end not have come.
pub(crate) const FIRST_CHECK: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Body {
    format: u32,
    namespace: Namespace,
    tenant: Tenant,
    action: Action,
}

/// An action as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAction {
    /// Whose it is.
    pub scope: Scope,
    /// The version of its record.
    pub version: u64,
    /// The action.
    pub action: Action,
}

/// The id of an action's records.
pub(crate) fn record_id(scope: &Scope, id: Uuid) -> String {
    format!("{}{id}", scope.id_prefix())
}

/// Reads a record.
pub(crate) fn decode(record: &Record) -> Result<StoredAction, ActionError> {
    let unreadable = |reason: String| ActionError::Unreadable {
        what: format!("the stored action {:?}", record.id),
        reason,
    };
    let body: Body = serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))?;
    if body.format != FORMAT {
        return Err(unreadable(format!("its format is {}, this version reads {FORMAT}", body.format)));
    }
    let scope = Scope { namespace: body.namespace, tenant: body.tenant };
    if record.id != record_id(&scope, body.action.id) {
        return Err(unreadable(format!("it is that of action {}{}", scope.id_prefix(), body.action.id)));
    }
    Ok(StoredAction { scope, version: record.version, action: body.action })
}

impl Action {
    /// The write that stores this action as a new one, for a commit that also stores what it belongs to.
    ///
    /// # Errors
    /// `invalid-action` when a field is wrong, or when the action is not pending.
    pub fn insertion(&self, scope: &Scope) -> Result<RecordWrite, ActionError> {
        if self.status != ActionStatus::Pending {
            return Err(ActionError::invalid("status", "a new action must be pending"));
        }
        self.check()?;
        put(scope, self, Expect::Absent, None)
    }

    /// The writes that store this action in whatever state: itself, and whether it runs.
    pub(crate) fn writes(
        &self,
        scope: &Scope,
        expect: Expect,
        keep_finished: Option<Duration>,
    ) -> Result<Vec<RecordWrite>, ActionError> {
        let life = keep_finished.filter(|_| self.status.is_final());
        Ok(vec![put(scope, self, expect, life)?, self.run_write(scope)])
    }

    /// The write that says whether it runs.
    fn run_write(&self, scope: &Scope) -> RecordWrite {
        let id = record_id(scope, self.id);
        if self.status != ActionStatus::Running {
            return RecordWrite::Delete { kind: ACTION_RUN_KIND.to_owned(), id, expect: Expect::Anything };
        }
        let check_ms = due_ms(self.updated_at).saturating_add(segno::clock::duration_ms(FIRST_CHECK));
        check_at(id, Expect::Anything, check_ms)
    }
}

/// The write that has somebody look after a running action at a time.
pub(crate) fn check_at(record_id: String, expect: Expect, at_ms: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: ACTION_RUN_KIND.to_owned(),
        id: record_id,
        expect,
        due_at_ms: Some(at_ms),
        time_to_live: None,
        body: bytes::Bytes::new(),
    }
}

fn put(
    scope: &Scope,
    action: &Action,
    expect: Expect,
    time_to_live: Option<Duration>,
) -> Result<RecordWrite, ActionError> {
    let body = Body {
        format: FORMAT,
        namespace: scope.namespace.clone(),
        tenant: scope.tenant.clone(),
        action: action.clone(),
    };
    let body = serde_json::to_vec(&body)
        .map_err(|error| ActionError::invalid("action", format!("it has no JSON form: {error}")))?;
    if body.len() > MAX_ACTION_BYTES {
        let problem = format!(
            "it has {} bytes, the limit is {MAX_ACTION_BYTES}; store large data elsewhere",
            body.len()
        );
        return Err(ActionError::invalid("tool_input", problem));
    }
    let is_pending = action.status == ActionStatus::Pending;
    Ok(RecordWrite::Put {
        kind: ACTION_KIND.to_owned(),
        id: record_id(scope, action.id),
        expect,
        due_at_ms: is_pending.then(|| due_ms(action.trigger.at())),
        time_to_live,
        body: body.into(),
    })
}
