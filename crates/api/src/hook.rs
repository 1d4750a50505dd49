//! Webhooks: routes, what came in, and what became of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::unreadable::Unreadable;

/// A route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Hook {
    /// Its name.
    #[schema(example = "github")]
    pub name: String,
    /// Where senders post to, on the server's address.
    #[schema(example = "/v1/hooks/default/github")]
    pub path: String,
    /// Changes with every write; also the `ETag`.
    pub version: u64,
    /// The declaration, as the guide's page "webhooks" describes it. Secrets in it are references.
    pub declaration: Json,
}

/// A page of routes, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HookList {
    /// The routes.
    pub hooks: Vec<Hook>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The answer to a sender: what it sent is on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// Id of the payload; of the first one if it has come before.
    pub id: String,
    /// What became of it: `routed`, `stored`, `filtered`, `deduplicated` or `dispatch_error`.
    pub outcome: String,
}

/// What became of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookOutcome {
    /// `routed`, `stored`, `filtered`, `deduplicated`, `dispatch_error`, `replayed` or `refused`.
    pub kind: String,
    /// The action that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The function that the action calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The orchestration that the action starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The payload that came first, if it has come before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Why it was refused, or no call could be made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many were refused for the same reason in about a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What is kept of a request, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookPayload {
    /// Its id.
    pub id: String,
    /// The route.
    pub route: String,
    /// When it came.
    pub received_at: Timestamp,
    /// What the sender said that the body is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// What became of it at first.
    pub outcome: HookOutcome,
}

/// A page of payloads, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookPayloadList {
    /// The payloads.
    pub payloads: Vec<HookPayload>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// All of a payload, and what became of the actions that were made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HookPayloadDetail {
    /// What is also in the listing.
    pub payload: HookPayload,
    /// The headers that the route keeps.
    pub headers: BTreeMap<String, String>,
    /// Query parameters.
    pub params: BTreeMap<String, String>,
    /// The body, byte for byte, in base64.
    pub body_base64: String,
    /// The first action and the last replays.
    pub actions: Vec<HookAction>,
}

/// An action that was made of a payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HookAction {
    /// Its id.
    pub id: String,
    /// `pending`, `running`, `completed` or `failed`; `unknown` when it is kept no longer.
    pub status: String,
    /// The instance that runs it, or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What the function returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A payload that is called again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replayed {
    /// The payload.
    pub id: String,
    /// The new action.
    pub action: String,
}

/// What became of a request, as it is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookEvent {
    /// Its id.
    pub id: String,
    /// Grows with every event.
    pub seq: u64,
    /// When it was.
    pub at: Timestamp,
    /// The route.
    pub route: String,
    /// The payload, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// What the sender said that the body is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// What became of it.
    pub outcome: HookOutcome,
}

/// A page of events, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookEventList {
    /// The events.
    pub events: Vec<HookEvent>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A request as a sender would make it, to find out whether the route would take it. Nothing is received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestHook {
    /// Its headers, with the signature.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Its body as text.
    #[serde(default)]
    pub body: String,
}

/// Whether a route would take a request, and how to make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookTested {
    /// Whether it would be taken now.
    pub accepted: bool,
    /// Why not, in a word, as in the events of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people. It says nothing about secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A command for a shell that sends this body, signed as the route wants it. It takes the secret from the variable `SECRET`.
    pub curl: String,
}
