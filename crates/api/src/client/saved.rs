//! Saved views and queries.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, Expected, PageRequest};
use crate::saved::{Save, Saved, SavedList};

impl Client {
    /// A page of saved views and queries, by name.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn saved(&self, page: impl Into<PageRequest>) -> Result<SavedList, ClientError> {
        self.get_with(&["v1", "saved"], &page.into()).await
    }

    /// One view or query.
    ///
    /// # Errors
    /// `not-found` when nothing is saved under this name.
    pub async fn saved_one(&self, name: &str) -> Result<Saved, ClientError> {
        self.get(&["v1", "saved", name]).await
    }

    /// Saves a view or query under a name. Without an expectation it replaces what is there.
    ///
    /// # Errors
    /// `precondition-failed` when it is not as expected, `too-many-saved` when the tenant has as
    /// many as it may have.
    pub async fn save(
        &self,
        name: &str,
        save: &Save,
        expected: Option<Expected>,
    ) -> Result<Saved, ClientError> {
        let call = self.request(Method::PUT, &["v1", "saved", name], Duration::ZERO).json(save);
        let call = match expected {
            None => call,
            Some(Expected::Absent) => call.header("if-none-match", "*"),
            Some(Expected::Version(version)) => call.header("if-match", format!("\"{version}\"")),
        };
        self.read(call).await
    }

    /// Deletes a saved view or query, of a known version if one is given.
    ///
    /// # Errors
    /// `not-found` when nothing is saved under this name, `precondition-failed` when it has another version.
    pub async fn delete_saved(&self, name: &str, version: Option<u64>) -> Result<(), ClientError> {
        let mut call = self.request(Method::DELETE, &["v1", "saved", name], Duration::ZERO);
        if let Some(version) = version {
            call = call.header("if-match", format!("\"{version}\""));
        }
        self.done(call).await
    }
}
