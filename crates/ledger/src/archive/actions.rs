//! `actions`: actions that have ended, from their records and back.

use std::sync::Arc;

use async_trait::async_trait;
use segno::store::{ProviderError, Record, Store};
use segno_actions::action::{
    ACTION_KIND, ACTION_RETIRE_KIND, Action, ActionStatus, ActionTrigger, StoredAction,
};
use segno_actions::moment::due_ms;

use super::instances::time;
use super::kind::ACTIONS;
use super::retire::{Moving, Retired, Retiring};
use super::row::{ArchivedRow as _, archived_row};

archived_row! {
    /// An action.
    ActionRow {
        /// What people call it.
        label: Arc<str>,
        /// The function that it calls.
        function: Option<Arc<str>>,
        /// The orchestration that it starts.
        orchestration: Option<Arc<str>>,
        /// What made it due: `scheduled` or `webhook`.
        trigger: Arc<str>,
        /// When it was due.
        due_at: i64,
        /// `completed` or `failed`.
        status: Arc<str>,
        /// Why it failed.
        reason: Option<Arc<str>>,
        /// Seconds after which it was done again.
        recurrence_seconds: Option<i64>,
        /// When it was made.
        created_at: i64,
        /// When it was last changed.
        updated_at: i64,
        /// The instance that ran it, as in the tenant.
        instance: Option<Arc<str>>,
        /// All of it, a JSON object with its input, its result and the body of its webhook.
        data: Arc<str>,
    }
}

impl ActionRow {
    /// The row of an action.
    ///
    /// # Errors
    /// When it has no JSON form.
    pub(super) fn of(stored: &StoredAction) -> Result<Self, serde_json::Error> {
        let (scope, action) = (&stored.scope, &stored.action);
        let prefix = scope.id_prefix();
        let shown = |id: &String| Arc::from(id.strip_prefix(&prefix).unwrap_or(id));
        let (created_at, updated_at) = (time(due_ms(action.created_at)), time(due_ms(action.updated_at)));
        Ok(ActionRow {
            tenant_id: scope.tenant.as_str().into(),
            workspace_id: scope.namespace.as_str().into(),
            id: action.id.to_string().into(),
            incarnation: created_at,
            revision: time(stored.version),
            ended_at: updated_at,
            label: action.label.as_str().into(),
            function: Some(action.tool_name.as_str()).filter(|name| !name.is_empty()).map(Arc::from),
            orchestration: action.orchestration.as_ref().map(|name| name.as_str().into()),
            trigger: match action.trigger {
                ActionTrigger::Scheduled { .. } => "scheduled".into(),
                ActionTrigger::Webhook { .. } => "webhook".into(),
            },
            due_at: time(due_ms(action.trigger.at())),
            status: action.status.name().into(),
            reason: match &action.status {
                ActionStatus::Failed { reason } => Some(reason.as_str().into()),
                _ => None,
            },
            recurrence_seconds: action.recurrence.map(|recurrence| time(recurrence.as_secs())),
            created_at,
            updated_at,
            instance: action.instance.as_ref().map(shown),
            data: serde_json::to_string(action)?.into(),
        })
    }

    /// The action.
    ///
    /// # Errors
    /// When its JSON cannot be read.
    pub fn action(&self) -> Result<Action, serde_json::Error> {
        serde_json::from_str(&self.data)
    }
}

/// Actions whose time is over.
pub struct RetiredActions;

#[async_trait]
impl Retiring for RetiredActions {
    fn due_kind(&self) -> &'static str {
        ACTION_RETIRE_KIND
    }

    async fn retire(&self, store: &dyn Store, due: &Record) -> Result<Retired, ProviderError> {
        let Some(record) = store.get_record(ACTION_KIND, &due.id).await? else { return Ok(Retired::Gone) };
        let stored = match StoredAction::read(&record) {
            Ok(stored) => stored,
            Err(error) => return Ok(Retired::Stays(error.to_string())),
        };
        // It was set back to an earlier state; its end makes another due record.
        if !stored.action.status.is_final() {
            return Ok(Retired::Gone);
        }
        let row = match ActionRow::of(&stored) {
            Ok(row) => row,
            Err(error) => return Ok(Retired::Stays(error.to_string())),
        };
        let removal = stored.removal();
        Ok(Retired::Moves(Moving { scope: stored.scope, rows: vec![(&ACTIONS, row.to_cells())], removal }))
    }
}
