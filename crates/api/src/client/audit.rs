//! The audit log.

use super::{Client, ClientError, PageRequest};
use crate::audit::AuditList;

impl Client {
    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// `forbidden` without an administrator's key.
    pub async fn audit(&self, page: impl Into<PageRequest>) -> Result<AuditList, ClientError> {
        self.get_with(&["v1", "audit"], &page.into()).await
    }
}
