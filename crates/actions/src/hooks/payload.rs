//! A payload: what is kept of a request. The body is a record of its own, so that listings do not read bodies.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event::Outcome;
use super::incoming::Seen;
use super::limits::MAX_REMEMBERED_ACTIONS;
use crate::functions::{HookName, Scope};
use crate::moment::due_ms;

/// What is kept of a request, besides its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Its id, which is also that of its first action.
    pub id: Uuid,
    /// The route.
    pub route: HookName,
    /// When it came.
    pub received_at: Timestamp,
    /// What the sender said that the body is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// The headers that the route keeps.
    pub headers: BTreeMap<String, String>,
    /// Query parameters.
    pub params: BTreeMap<String, String>,
    /// What became of it at first.
    pub outcome: Outcome,
    /// The actions that were made of it: the first, and the last replays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Uuid>,
}

impl Payload {
    /// What templates see of it.
    pub(super) fn seen<'a>(&'a self, scope: &'a Scope, body: &'a [u8]) -> Seen<'a> {
        Seen {
            scope,
            route: &self.route,
            id: self.id,
            received_at_ms: due_ms(self.received_at),
            content_type: self.content_type.as_deref(),
            headers: &self.headers,
            params: &self.params,
            body,
        }
    }

    /// Notes an action that was made of it.
    pub(super) fn remember(&mut self, action: Uuid) {
        self.actions.push(action);
        if self.actions.len() > MAX_REMEMBERED_ACTIONS {
            self.actions.remove(1);
        }
    }
}
