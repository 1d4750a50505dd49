//! Recorded events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::instance::Status;
use crate::unreadable::Unreadable;

/// One recorded fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEvent {
    /// Place in the history, from 1, without gaps.
    pub id: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What happened; the kinds and their fields are listed in the guide, page "history format".
    #[schema(example = "ActivityScheduled")]
    pub kind: String,
    /// The fields of the kind.
    pub data: Json,
}

/// Events of one execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The execution.
    pub execution: u64,
    /// Its events, ascending.
    pub events: Vec<HistoryEvent>,
    /// Events that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableEvents>,
    /// Whether the events are in the archive: retention has removed them from the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Give this as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

/// Events that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableEvents {
    /// The last event before them that can be read; 0 if there is none.
    pub after: u64,
    /// The first event behind them that can be read; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Why they cannot be read.
    pub reason: String,
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// Its number, from 1.
    pub execution: u64,
    /// Its state.
    pub status: Status,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// How many events it has.
    pub events: u64,
}

/// A page of the executions of an instance, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionList {
    /// Descending by number.
    pub executions: Vec<Execution>,
    /// Executions whose rows cannot be read, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
