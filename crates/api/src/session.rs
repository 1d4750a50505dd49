//! Sessions of browsers: a key becomes a cookie for a while. And who a caller is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::key::{Grant, Role};
use crate::unreadable::Unreadable;

/// A key that becomes a session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The key itself. It is not kept: the session has a secret of its own.
    #[schema(min_length = 1, max_length = 256)]
    pub key: String,
}

/// A session, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Id of the key that it was made with. It may do what the key may, and ends with the key.
    pub key: String,
    /// When the browser signed in.
    pub created_at: Timestamp,
    /// When it ends. Requests renew it.
    pub expires_at: Timestamp,
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// Ascending by id.
    pub sessions: Vec<Session>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// How callers of a server show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// By API key, or by a session that was made with one.
    Keys,
    /// Not at all: every caller may do everything.
    None,
}

/// What groups of operations need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Reading within a tenant.
    Read,
    /// Changing things within a tenant.
    Operate,
    /// Fetching and answering work.
    Work,
    /// Sending messages of the bus.
    Messages,
    /// Reading what concerns all tenants.
    System,
    /// Keys and the audit log.
    Admin,
}

/// Who a caller is, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// How callers of this server show who they are.
    pub authentication: Authentication,
    /// Id of the key; absent on a server without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the key is for.
    pub role: Role,
    /// What the caller may do, by its role and grants.
    pub may: Vec<Permission>,
    /// Where.
    pub grants: Vec<Grant>,
    /// The namespace that stands for the caller where a request names none: the first of its grants.
    pub namespace: String,
    /// The same of the tenant.
    pub tenant: String,
    /// The session, if the request had its cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Where traces of instances are shown: the setting `server.trace_url`, with `{trace}` and `{instance}` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
}
