//! Sessions, and who the caller is.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::session::{Me, SessionList};

impl Client {
    /// Who the caller is, and what it may do.
    ///
    /// # Errors
    /// `unauthorized` when the key does not work.
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.get(&["v1", "me"]).await
    }

    /// A page of sessions: those of the caller's key, or all for an administrator of every tenant.
    ///
    /// # Errors
    /// When the cursor is wrong or the server works without keys.
    pub async fn sessions(&self, page: impl Into<PageRequest>) -> Result<SessionList, ClientError> {
        self.get_with(&["v1", "sessions"], &page.into()).await
    }

    /// Ends a session. Its browser has to sign in again.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn end_session(&self, id: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &["v1", "sessions", id], Duration::ZERO);
        self.done(call).await
    }
}
