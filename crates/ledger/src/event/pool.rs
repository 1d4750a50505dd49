//! Concurrency pools: defined.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A pool has this many slots from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolDefined {
    /// The pool.
    pub pool: Arc<str>,
    /// Its slots; 0 lets nothing through.
    pub slots: u32,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Who.
    pub requested_by: Arc<str>,
}
