//! Who changed what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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
    /// Why, if the caller said so: in the body, or in the header `Segno-Reason`, percent-encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which entries of the audit log. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// Only changes by this key, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only these operations: a method (`DELETE`), a word of the route (`cancel`), or both as in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only changes of this: a path (`/v1/instances/order-1`) with all below it, or an id or name in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Only at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// At most this many. A page may have fewer although more follow: one request looks at 10,000 entries at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
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
