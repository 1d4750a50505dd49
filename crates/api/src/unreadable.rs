//! Stored rows that the server cannot read: listed by their ids, so that they can be deleted.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stored row that cannot be read. It can be deleted by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unreadable {
    /// Its id or name.
    pub id: String,
    /// Why it cannot be read.
    pub reason: String,
}
