//! Pools of workers.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::pool::{PausePool, Pool, PoolDetails, PoolList};

impl Client {
    /// A page of pools.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn pools(&self, page: impl Into<PageRequest>) -> Result<PoolList, ClientError> {
        self.get_with(&["v1", "pools"], &page.into()).await
    }

    /// One pool with a page of its workers.
    ///
    /// # Errors
    /// `unknown-pool` when there is none.
    pub async fn pool(&self, name: &str, page: impl Into<PageRequest>) -> Result<PoolDetails, ClientError> {
        self.get_with(&["v1", "pools", name], &page.into()).await
    }

    /// Pauses a pool.
    ///
    /// # Errors
    /// `unknown-pool` when there is none.
    pub async fn pause_pool(&self, name: &str, pause: &PausePool) -> Result<Pool, ClientError> {
        self.post(&["v1", "pools", name, "pause"], pause).await
    }

    /// Resumes a pool.
    ///
    /// # Errors
    /// `unknown-pool` when there is none.
    pub async fn resume_pool(&self, name: &str) -> Result<Pool, ClientError> {
        self.post(&["v1", "pools", name, "resume"], &PausePool::default()).await
    }

    /// Forgets a pool that its workers have announced.
    ///
    /// # Errors
    /// `unknown-pool` when there is none, `invalid-pool` when it is declared in the settings.
    pub async fn delete_pool(&self, name: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &["v1", "pools", name], Duration::ZERO)).await
    }
}
