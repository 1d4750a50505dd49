//! The audit log.

use super::{Client, ClientError};
use crate::audit::AuditList;

impl Client {
    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// `forbidden` without an administrator's key.
    pub async fn audit(&self, cursor: Option<&str>) -> Result<AuditList, ClientError> {
        let query: Vec<_> = cursor.map(|cursor| ("cursor", cursor)).into_iter().collect();
        self.get_with(&["v1", "audit"], &query).await
    }
}
