//! Which page of a listing.

use serde::Serialize;

/// A page of a listing: how many rows, and after which ones. A cursor alone, or `None`, is a page of
/// as many rows as the server gives by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PageRequest {
    /// At most this many rows, 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl From<Option<&str>> for PageRequest {
    fn from(cursor: Option<&str>) -> Self {
        PageRequest { limit: None, cursor: cursor.map(str::to_owned) }
    }
}
