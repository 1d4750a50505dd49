//! Time series and problems.

use std::time::Duration;

use reqwest::Method;

use super::instances::repeated;
use super::{Client, ClientError};
use crate::counts::{CountInstances, InstanceCounts};
use crate::problems::ProblemReport;
use crate::search::{SearchQuery, SearchResult};
use crate::stats::{GetStats, Stats};
use crate::timer::TimerList;

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

    /// How many instances there are, by state, name or failure.
    ///
    /// # Errors
    /// `invalid-request` for a filter that is none.
    pub async fn counts(&self, request: &CountInstances) -> Result<InstanceCounts, ClientError> {
        let call = self.request(Method::GET, &["v1", "counts"], Duration::ZERO).query(request);
        self.read(repeated(call, &request.status, &request.label)).await
    }

    /// Instances, functions, schedules and more, by how their ids and names begin.
    ///
    /// # Errors
    /// `invalid-request` for a text that is empty or too long.
    pub async fn search(&self, request: &SearchQuery) -> Result<SearchResult, ClientError> {
        self.get_with(&["v1", "search"], request).await
    }

    /// What wakes up by itself.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn timers(&self) -> Result<TimerList, ClientError> {
        self.get(&["v1", "timers"]).await
    }
}
