//! Keys.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::key::{CreateKey, CreatedKey, KeyList};

impl Client {
    /// A page of keys.
    ///
    /// # Errors
    /// `forbidden` without an administrator's key.
    pub async fn keys(&self, page: impl Into<PageRequest>) -> Result<KeyList, ClientError> {
        self.get_with(&["v1", "keys"], &page.into()).await
    }

    /// Makes a key.
    ///
    /// # Errors
    /// `invalid-request` when a field is wrong.
    pub async fn create_key(&self, request: &CreateKey) -> Result<CreatedKey, ClientError> {
        self.post(&["v1", "keys"], request).await
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn revoke_key(&self, id: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &["v1", "keys", id], Duration::ZERO);
        self.done(call).await
    }
}
