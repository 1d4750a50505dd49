//! API keys: who may do what, and where.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything, keys included.
    Admin,
    /// Reading, and all work with instances, invocations and functions.
    Operator,
    /// Reading.
    Viewer,
    /// Fetching and answering work.
    Worker,
}

/// Where a key is good. `*` stands for every namespace or tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// A namespace or `*`.
    #[schema(pattern = "^([*]|[a-z0-9]([a-z0-9_-]*[a-z0-9])?)$", max_length = 63)]
    pub namespace: String,
    /// A tenant or `*`.
    #[schema(pattern = "^([*]|[a-z0-9]([a-z0-9_-]*[a-z0-9])?)$", max_length = 63)]
    pub tenant: String,
}

/// A new key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// What it is for, for people.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// Where it is good.
    #[schema(min_items = 1)]
    pub grants: Vec<Grant>,
    /// When it ceases to work; never without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    /// Its id, the middle part of the key.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// Where it is good.
    pub grants: Vec<Grant>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ceases to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// What a repeated request for a key gets in place of the secret.
pub const SHOWN_ONCE: &str = "shown once, in the first answer";

/// A new key with its secret, which is shown only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// The key itself: give it as `Authorization: Bearer …`.
    pub secret: String,
    /// All else about it.
    pub key: Key,
}

/// All keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// Ascending by id.
    pub keys: Vec<Key>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
