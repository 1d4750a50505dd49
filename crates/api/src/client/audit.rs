//! The audit log.

use super::{Client, ClientError};
use crate::audit::{AuditList, ListAudit};

impl Client {
    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// `forbidden` without an administrator's key.
    pub async fn audit(&self, filter: &ListAudit) -> Result<AuditList, ClientError> {
        self.get_with(&["v1", "audit"], filter).await
    }
}
