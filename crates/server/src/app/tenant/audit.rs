//! Who changed what of a tenant.

use segno_actions::Listed;
use segno_api::audit::AuditEntry;

use super::Tenant;
use crate::audit;
use crate::problem::Refusal;

impl Tenant {
    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn audit(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed<AuditEntry>>, Refusal> {
        audit::list(&*self.resources().store, &self.scope, after, limit).await
    }
}
