//! Time series and problems.

use super::{Client, ClientError};
use crate::problems::ProblemReport;
use crate::stats::{GetStats, Stats};

impl Client {
    /// What happened in the tenant, by the minute.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn stats(&self, request: &GetStats) -> Result<Stats, ClientError> {
        self.get_with(&["v1", "stats"], request).await
    }

    /// What is wrong in the tenant now.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn problems(&self) -> Result<ProblemReport, ClientError> {
        self.get(&["v1", "problems"]).await
    }
}
