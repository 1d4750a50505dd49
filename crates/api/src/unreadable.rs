//! Stored rows that the server cannot read: listed by their ids, so that they can be deleted.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stored row that cannot be read. One that does not decode can be deleted by its id; one on a
/// damaged block of the store cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unreadable {
    /// Its id or name. Empty for a damaged range of rows whose ids cannot be read either; how many
    /// there are is not known.
    pub id: String,
    /// Why it cannot be read.
    pub reason: String,
}
