//! Views and queries that a tenant keeps under a name and shares.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// What is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SavedKind {
    /// The filter of a list, as the address of its page has it.
    View,
    /// A query in SQL.
    Query,
}

/// A view or query with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Saved {
    /// Its name, unique in the tenant.
    pub name: String,
    /// What it is.
    pub kind: SavedKind,
    /// The page that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The filter or query.
    pub text: String,
    /// When it was last saved.
    pub saved_at: Timestamp,
    /// Id of the key that saved it; absent on a server without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<String>,
    /// Grows with every change; also the `ETag`.
    pub version: u64,
}

/// A view or query to save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// What it is.
    pub kind: SavedKind,
    /// The page that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub page: Option<String>,
    /// The filter or query.
    #[schema(max_length = 8192)]
    pub text: String,
}

/// A page of views and queries, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedList {
    /// The views and queries.
    pub saved: Vec<Saved>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
