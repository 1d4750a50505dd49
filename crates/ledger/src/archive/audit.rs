//! `audit`: entries of the audit log.

use std::sync::Arc;

use super::row::archived_row;

archived_row! {
    /// An entry of the audit log. `incarnation` and `ended_at` are its time.
    AuditRow {
        /// When.
        at: i64,
        /// Id of the key.
        key: Option<Arc<str>>,
        /// Method and route.
        operation: Arc<str>,
        /// The path that was asked for.
        path: Arc<str>,
        /// HTTP status of the answer.
        status: i64,
        /// Id of the request.
        request_id: Arc<str>,
        /// Why, if the caller said so.
        reason: Option<Arc<str>>,
    }
}
