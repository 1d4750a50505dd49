//! Actions: functions that are called once, at a time or because a webhook came in.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::unreadable::Unreadable;

/// What makes an action due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ActionTrigger {
    /// A time.
    Scheduled {
        /// When it is due.
        next_tick_at: Timestamp,
    },
    /// Something that came in over HTTP.
    Webhook {
        /// The body as it came, in base64. It may have secrets of the sender in it: only one action that is asked for by its
        /// id has it, and only for callers that may change it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_payload: Option<String>,
        /// When it came.
        received_at: Timestamp,
    },
}

/// How far an action is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "ReadStatus")]
pub enum ActionStatus {
    /// It waits for its time.
    Pending,
    /// It was started.
    Running,
    /// It is done.
    Completed {
        /// What the function returned.
        result: Json,
    },
    /// It failed, was cancelled, or was given up.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A status as it is read. A tagged enum is read by way of memory that cannot hold raw JSON, and results are kept raw.
#[derive(Deserialize)]
struct ReadStatus {
    #[serde(rename = "type")]
    name: ActionStatusName,
    #[serde(default)]
    result: Option<Json>,
    #[serde(default)]
    reason: Option<String>,
}

impl TryFrom<ReadStatus> for ActionStatus {
    type Error = &'static str;

    fn try_from(read: ReadStatus) -> Result<Self, Self::Error> {
        Ok(match read.name {
            ActionStatusName::Pending => ActionStatus::Pending,
            ActionStatusName::Running => ActionStatus::Running,
            ActionStatusName::Completed => {
                ActionStatus::Completed { result: read.result.unwrap_or_else(Json::null) }
            }
            ActionStatusName::Failed => {
                ActionStatus::Failed { reason: read.reason.ok_or("a failed action has no reason")? }
            }
        })
    }
}

/// The name of a status, for filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatusName {
    /// It waits for its time.
    Pending,
    /// It was started.
    Running,
    /// It is done.
    Completed,
    /// It failed, was cancelled, or was given up.
    Failed,
}

/// What becomes of an action whose function is running on a node that goes down or is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// It is marked as failed, and its function is not begun again.
    Fail,
    /// The engine goes on with it.
    #[default]
    Resume,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Action {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// The function.
    pub tool_name: String,
    /// The orchestration that it starts; `tool_name` is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Input of the function.
    pub tool_input: Json,
    /// What makes it due.
    pub trigger: ActionTrigger,
    /// How far it is.
    pub status: ActionStatus,
    /// Whether it is done again, this many seconds after the time that it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<u64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// What becomes of it when it is running and its process goes down.
    pub on_restart: OnRestart,
    /// The instance that runs it, or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What is left out here and why: a result that does not fit into the record of an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it is in the archive: its time in the store is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// An action to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAction {
    /// Namespace, if it is not in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Tenant, if it is not in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What people call it; the name of the function or orchestration without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The function. Give either this or `orchestration`.
    #[serde(default, alias = "function", skip_serializing_if = "Option::is_none")]
    #[schema(example = "echo")]
    pub tool_name: Option<String>,
    /// The orchestration to start, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Input of the function or orchestration; `null` without it.
    #[serde(default, alias = "input", skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Json>,
    /// When it is due; at once without it.
    #[serde(default, alias = "at", skip_serializing_if = "Option::is_none")]
    pub next_tick_at: Option<Timestamp>,
    /// Whether it is done again, this many seconds after the time that it was due.
    #[serde(default, alias = "recurrence", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub recurrence_secs: Option<u64>,
    /// What becomes of it when it is running and its process goes down.
    #[serde(default)]
    pub on_restart: OnRestart,
}

/// A page of actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionList {
    /// The actions, newest first.
    pub actions: Vec<Action>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Changes of an action. What is left out stays; `null` clears.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchAction {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it is done again; `null` for no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub recurrence_secs: Option<u64>,
    /// When it is due; only while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tick_at: Option<Timestamp>,
}
