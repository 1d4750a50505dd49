//! Events: what became of each request, without its body.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limits::MAX_REASON_CHARS;
use crate::functions::{FunctionName, HookName};
use crate::target::OrchestrationName;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It was kept and became an action.
    Routed {
        /// The action.
        action: Uuid,
        /// The function that it calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<FunctionName>,
        /// The orchestration that it starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        orchestration: Option<OrchestrationName>,
    },
    /// It was kept; the route calls nothing.
    Stored,
    /// It was kept; the filter did not hold.
    Filtered,
    /// It has come before and was not kept again.
    Deduplicated {
        /// The payload that came first.
        first: Uuid,
    },
    /// It was kept; no call could be made of it.
    DispatchError {
        /// Why.
        reason: String,
    },
    /// It was called again.
    Replayed {
        /// The new action.
        action: Uuid,
        /// The function that it calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<FunctionName>,
        /// The orchestration that it starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        orchestration: Option<OrchestrationName>,
    },
    /// It was not taken.
    Refused {
        /// Why, in a word.
        reason: String,
        /// How many there were of the same, in about a second.
        count: u64,
    },
}

impl Outcome {
    /// The name, as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Routed { .. } => "routed",
            Outcome::Stored => "stored",
            Outcome::Filtered => "filtered",
            Outcome::Deduplicated { .. } => "deduplicated",
            Outcome::DispatchError { .. } => "dispatch_error",
            Outcome::Replayed { .. } => "replayed",
            Outcome::Refused { .. } => "refused",
        }
    }

    pub(super) fn dispatch_error(reason: &str) -> Self {
        Outcome::DispatchError { reason: reason.chars().take(MAX_REASON_CHARS).collect() }
    }
}

/// What became of a request, as it is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEvent {
    /// Its id.
    pub id: Uuid,
    /// Grows with every event; given by the store.
    pub seq: u64,
    /// When it was.
    pub at: Timestamp,
    /// The route.
    pub route: HookName,
    /// The payload, if there is one.
    pub payload: Option<Uuid>,
    /// What the sender said that the body is.
    pub content_type: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredEvent {
    pub(super) at: Timestamp,
    pub(super) route: HookName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    pub(super) body_bytes: u64,
    pub(super) outcome: Outcome,
}

impl StoredEvent {
    pub(super) fn shown(self, id: Uuid, seq: u64) -> HookEvent {
        HookEvent {
            id,
            seq,
            at: self.at,
            route: self.route,
            payload: self.payload,
            content_type: self.content_type,
            body_bytes: self.body_bytes,
            outcome: self.outcome,
        }
    }
}
