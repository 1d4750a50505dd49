//! An action whose time has come: one commit says that it runs and starts its call.

use segno::store::{OrchestratorMessage, Record, RecordBatch};

use super::lane::LaneError;
use super::{Handled, Scheduler, lateness_seconds};
use crate::action::record::decode;
use crate::action::settle::settle;
use crate::action::{ActionError, ActionStatus, ActionTrigger, OnRestart, StoredAction};
use crate::ended::Ended;
use crate::functions::Trigger;
use crate::moment::{due_ms, timestamp};
use crate::recurring::dispatch::is_for_ever;
use crate::target::WantedStart;
use crate::telemetry;

/// Label of the instances of actions.
const ACTION_LABEL: &str = "action";

impl Scheduler {
    /// Starts the call of an action. One whose call cannot be made at all has failed.
    pub(super) async fn fire_action(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError> {
        let mut stored = decode(&record).map_err(LaneError::unreadable)?;
        if stored.action.status != ActionStatus::Pending {
            // Nothing writes this; it is put right rather than met again and again.
            return Ok(self.replace(&stored, RecordBatch::default()).await?);
        }
        let now = timestamp(now_ms);
        let start = match self.start_of(&stored).await {
            Ok(start) => start,
            Err(error) if is_for_ever(&error) => {
                tracing::warn!(action = %stored.action.id, %error, "action.dispatch_error");
                return Ok(self.finish(stored, Ended::Failed(error.to_string()), now).await?);
            }
            Err(error) => return Err(error.into()),
        };
        let action = &mut stored.action;
        action.status = ActionStatus::Running;
        action.updated_at = now;
        action.instance = Some(start.instance.clone());
        let batch = RecordBatch { orchestrator_items: vec![start], ..RecordBatch::default() };
        let fired = self.replace(&stored, batch).await?;
        if fired == Handled::Done {
            metrics::counter!(telemetry::ACTIONS_DISPATCHED).increment(1);
            // A replayed payload came long ago, and its action has been due since it was made.
            let due = match stored.action.trigger {
                ActionTrigger::Scheduled { next_tick_at } => next_tick_at,
                ActionTrigger::Webhook { .. } => stored.action.created_at,
            };
            metrics::histogram!(telemetry::LATENESS_SECONDS, "kind" => "action")
                .record(lateness_seconds(due_ms(due), now_ms));
            tracing::debug!(action = %stored.action.id, instance = stored.action.instance, "action.dispatch");
        }
        Ok(fired)
    }

    /// The message that starts the call of an action, under an id that follows from the action and its time.
    async fn start_of(&self, stored: &StoredAction) -> Result<OrchestratorMessage, ActionError> {
        let (scope, action) = (&stored.scope, &stored.action);

        let wanted = WantedStart {
            scope,
            target: action.target()?,
            input: action.tool_input.clone(),
            key: format!("action:{}:{}", action.id, action.trigger.at()),
            trigger: match action.trigger {
                ActionTrigger::Scheduled { .. } => Trigger::Action,
                ActionTrigger::Webhook { .. } => Trigger::Hook,
            },
            gives_up_when_lost: action.on_restart == OnRestart::Fail,
            settle: settle(action.id, self.options.finished())?,
        };
        let mut start = wanted.start(&self.client, &self.functions).await?;
        // Nobody waits for it: it is the beginning of a trace.
        let span =
            tracing::debug_span!(parent: None, "segno.action", action_id = %action.id, label = action.label);
        if let Some(traceparent) = telemetry::trace_of(&span, self.current_trace) {
            start = start.traceparent(traceparent);
        }
        Ok(start.label(ACTION_LABEL, action.id.to_string()).message().await?)
    }
}
