//! Who changed what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// One change that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Ids ascend with time.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Id of the key; absent on a server without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Method and route, as in `POST /v1/instances/{id}/cancel`.
    pub operation: String,
    /// The path that was asked for.
    pub path: String,
    /// Namespace of the request.
    pub namespace: String,
    /// Tenant of the request.
    pub tenant: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// Id of the request.
    pub request_id: String,
}

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
