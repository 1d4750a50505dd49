//! An action: when to do something, what to do, and how far it is.

use std::time::Duration;

use jiff::Timestamp;
use segno::Payload;
use segno::limits::MAX_TIMER;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::ActionError;
use crate::functions::FunctionName;
use crate::target::{OrchestrationName, Target};

/// Longest label in bytes.
pub const MAX_LABEL_BYTES: usize = 256;

/// What makes an action due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ActionTrigger {
    /// A time.
    Scheduled {
        /// When it is due.
        next_tick_at: Timestamp,
    },
    /// Something that came in over HTTP; it is due at once.
    Webhook {
        /// The body as it came, byte for byte; base64 in JSON.
        #[serde(with = "base64_text")]
        raw_payload: Vec<u8>,
        /// When it came.
        received_at: Timestamp,
    },
}

impl ActionTrigger {
    /// When the action is due.
    pub fn at(&self) -> Timestamp {
        match self {
            ActionTrigger::Scheduled { next_tick_at } => *next_tick_at,
            ActionTrigger::Webhook { received_at, .. } => *received_at,
        }
    }
}

/// How far an action is: `Pending → Running → Completed | Failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "StoredStatus")]
pub enum ActionStatus {
    /// It waits for its time.
    Pending,
    /// It was started. This is written in the commit that starts it, never after.
    Running,
    /// It is done.
    Completed {
        /// What the function returned.
        result: Payload,
    },
    /// It failed, was cancelled, or was given up.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A status as it is read. A tagged enum is read by way of memory that cannot hold raw JSON, and results are kept raw.
#[derive(Deserialize)]
struct StoredStatus {
    #[serde(rename = "type")]
    name: StatusName,
    #[serde(default)]
    result: Option<Payload>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatusName {
    Pending,
    Running,
    Completed,
    Failed,
}

impl TryFrom<StoredStatus> for ActionStatus {
    type Error = &'static str;

    fn try_from(stored: StoredStatus) -> Result<Self, Self::Error> {
        Ok(match stored.name {
            StatusName::Pending => ActionStatus::Pending,
            StatusName::Running => ActionStatus::Running,
            StatusName::Completed => {
                ActionStatus::Completed { result: stored.result.unwrap_or_else(Payload::null) }
            }
            StatusName::Failed => {
                ActionStatus::Failed { reason: stored.reason.ok_or("a failed action has no reason")? }
            }
        })
    }
}

impl ActionStatus {
    /// Whether it waits for its time.
    pub fn is_pending(&self) -> bool {
        *self == ActionStatus::Pending
    }

    /// The name, as in JSON and in filters.
    pub fn name(&self) -> &'static str {
        match self {
            ActionStatus::Pending => "pending",
            ActionStatus::Running => "running",
            ActionStatus::Completed { .. } => "completed",
            ActionStatus::Failed { .. } => "failed",
        }
    }

    /// Whether nothing more will happen to it.
    pub fn is_final(&self) -> bool {
        matches!(self, ActionStatus::Completed { .. } | ActionStatus::Failed { .. })
    }
}

/// What becomes of an action whose function was running on a node that went down or was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// It is marked as failed, "recovered from restart", and its function is not begun again.
    #[default]
    Fail,
    /// The engine goes on with it.
    Resume,
}

/// Something to do once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Its id.
    #[serde(with = "uuid_text")]
    pub id: Uuid,
    /// What people call it.
    pub label: String,
    /// The function; empty if it starts an orchestration.
    pub tool_name: String,
    /// The orchestration that it starts, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<OrchestrationName>,
    /// Input of the function or orchestration.
    pub tool_input: Payload,
    /// What makes it due.
    pub trigger: ActionTrigger,
    /// How far it is.
    pub status: ActionStatus,
    /// Whether it is to be done again, this long after the time it was due, however it ended. Each run is an action of
    /// its own, so each leaves its trace. Whole seconds in JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "whole_seconds")]
    pub recurrence: Option<Duration>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// What becomes of it when it is running and its process goes down.
    #[serde(default)]
    pub on_restart: OnRestart,
    /// The instance that runs it, or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What is left out of this record, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Action {
    /// A new action that waits for its time.
    pub fn new(id: Uuid, label: &str, tool_name: &str, trigger: ActionTrigger, now: Timestamp) -> Self {
        Action {
            id,
            label: label.to_owned(),
            tool_name: tool_name.to_owned(),
            orchestration: None,
            tool_input: Payload::null(),
            trigger,
            status: ActionStatus::Pending,
            recurrence: None,
            created_at: now,
            updated_at: now,
            on_restart: OnRestart::default(),
            instance: None,
            note: None,
        }
    }

    /// The same action that starts an orchestration. The engine goes on with what ran on a node that went down.
    #[must_use]
    pub fn starting(self, orchestration: OrchestrationName) -> Self {
        let on_restart = OnRestart::Resume;
        Action { tool_name: String::new(), orchestration: Some(orchestration), on_restart, ..self }
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// `invalid-action` or `invalid-function-name`, with the field.
    pub fn check(&self) -> Result<(), ActionError> {
        self.target()?;
        if self.orchestration.is_some() && self.on_restart == OnRestart::Fail {
            let problem = "an orchestration goes on where it stopped; use resume";
            return Err(ActionError::invalid("on_restart", problem));
        }
        let label = &self.label;
        if label.trim().is_empty() || label.len() > MAX_LABEL_BYTES || label.chars().any(char::is_control) {
            let problem = format!("must be 1 to {MAX_LABEL_BYTES} bytes of printable text");
            return Err(ActionError::invalid("label", problem));
        }
        match self.recurrence {
            Some(recurrence) if recurrence.as_secs() == 0 || recurrence.subsec_nanos() != 0 => {
                Err(ActionError::invalid("recurrence_secs", "must be whole seconds, at least one"))
            }
            Some(recurrence) if recurrence > MAX_TIMER => {
                let problem = format!("must be at most {}, which is ten years", MAX_TIMER.as_secs());
                Err(ActionError::invalid("recurrence_secs", problem))
            }
            _ => Ok(()),
        }
    }

    /// Checks the input of a new action. That of one which is stored stays as it is.
    pub(crate) fn check_input(&self) -> Result<(), ActionError> {
        self.tool_input.check().map_err(|error| ActionError::invalid("input", error.to_string()))
    }

    /// What it starts.
    ///
    /// # Errors
    /// `invalid-action` when the name is none, or when there are two.
    pub fn target(&self) -> Result<Target, ActionError> {
        match &self.orchestration {
            Some(_) if !self.tool_name.is_empty() => {
                Err(ActionError::invalid("orchestration", "is named beside a function; name one of them"))
            }
            Some(orchestration) => Ok(Target::Orchestration(orchestration.clone())),
            None => FunctionName::new(self.tool_name.as_str())
                .map(Target::Function)
                .map_err(|error| ActionError::invalid("function", error.to_string())),
        }
    }

    /// The time of the next run after this one: the time that this one was due plus its recurrence, or as many
    /// recurrences more as it takes to lie in the future. Nothing drifts, and nothing piles up.
    pub fn next_run_at(&self, now: Timestamp) -> Option<Timestamp> {
        let step = i64::try_from(self.recurrence?.as_secs()).ok().filter(|step| *step > 0)?;
        let due = self.trigger.at();
        let late = (now.as_second() - due.as_second()).max(0);
        let next = due.as_second().checked_add((late / step).checked_add(1)?.checked_mul(step)?)?;
        Timestamp::new(next, due.subsec_nanosecond()).ok()
    }
}

mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(|duration| duration.as_secs()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn action() -> Action {
        let due = at("2026-02-10T14:00:00Z");
        let trigger = ActionTrigger::Scheduled { next_tick_at: due };
        Action::new(Uuid::from_u128(7), "my-svc", "quality-check", trigger, due)
    }

    #[test]
    fn an_action_is_stored_in_a_form_that_does_not_change() {
        let mut action = action();
        action.recurrence = Some(Duration::from_secs(90));
        action.status = ActionStatus::Completed { result: Payload::encode(&json!({"ok": true})).unwrap() };
        let expected = json!({
            "id": "00000000-0000-0000-0000-000000000007",
            "label": "my-svc",
            "tool_name": "quality-check",
            "tool_input": null,
            "trigger": {"type": "scheduled", "next_tick_at": "2026-02-10T14:00:00Z"},
            "status": {"type": "completed", "result": {"ok": true}},
            "recurrence": 90,
            "created_at": "2026-02-10T14:00:00Z",
            "updated_at": "2026-02-10T14:00:00Z",
            "on_restart": "fail"
        });
        assert_eq!(serde_json::to_value(&action).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Action>(expected).unwrap(), action);
        let hook =
            ActionTrigger::Webhook { raw_payload: vec![0, 255, 10], received_at: at("2026-02-10T14:00:00Z") };
        let expected =
            json!({"type": "webhook", "raw_payload": "AP8K", "received_at": "2026-02-10T14:00:00Z"});
        assert_eq!(serde_json::to_value(&hook).unwrap(), expected);
        assert_eq!(serde_json::from_value::<ActionTrigger>(expected).unwrap(), hook);
        for (status, name) in [
            (ActionStatus::Pending, "pending"),
            (ActionStatus::Running, "running"),
            (ActionStatus::Failed { reason: "x".to_owned() }, "failed"),
        ] {
            assert_eq!(status.name(), name);
            assert_eq!(serde_json::to_value(&status).unwrap()["type"], name);
        }
    }

    #[test]
    fn the_next_run_neither_drifts_nor_piles_up() {
        let mut action = action();
        assert_eq!(action.next_run_at(at("2026-02-10T14:00:00Z")), None);
        action.recurrence = Some(Duration::from_secs(60));
        for (now, next) in [
            ("2026-02-10T13:00:00Z", "2026-02-10T14:01:00Z"),
            ("2026-02-10T14:00:00Z", "2026-02-10T14:01:00Z"),
            ("2026-02-10T14:00:59Z", "2026-02-10T14:01:00Z"),
            ("2026-02-10T14:01:00Z", "2026-02-10T14:02:00Z"),
            ("2026-02-10T14:30:30Z", "2026-02-10T14:31:00Z"),
        ] {
            assert_eq!(action.next_run_at(at(now)), Some(at(next)), "{now}");
        }
    }

    #[test]
    fn bad_fields_are_named() {
        for (change, field) in [
            (Box::new(|a: &mut Action| a.label = " ".to_owned()) as Box<dyn Fn(&mut Action)>, "label"),
            (Box::new(|a| a.label = "x".repeat(300)), "label"),
            (Box::new(|a| a.tool_name = "../x".to_owned()), "function"),
            (Box::new(|a| a.recurrence = Some(Duration::from_millis(1_500))), "recurrence_secs"),
            (Box::new(|a| a.recurrence = Some(Duration::ZERO)), "recurrence_secs"),
            (Box::new(|a| a.recurrence = Some(MAX_TIMER + Duration::from_secs(1))), "recurrence_secs"),
            (Box::new(|a| a.recurrence = Some(Duration::from_secs(u64::MAX))), "recurrence_secs"),
        ] {
            let mut action = action();
            assert_eq!(action.check(), Ok(()));
            change(&mut action);
            let error = action.check().unwrap_err();
            assert_eq!(error.code(), "invalid-action");
            assert!(error.to_string().starts_with(&format!("{field}: ")), "{error}");
        }
    }
}
