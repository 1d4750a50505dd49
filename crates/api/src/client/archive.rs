//! The archive.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::archive::{ArchiveSummary, ArchivedGroup, Erased};

impl Client {
    /// What the archive of the tenant has.
    ///
    /// # Errors
    /// `archive-unavailable` on a server without one.
    pub async fn archive(&self) -> Result<ArchiveSummary, ClientError> {
        self.get(&["v1", "archive"]).await
    }

    /// Erases all archived rows of an instance.
    ///
    /// # Errors
    /// `archive-unavailable` on a server without an archive.
    pub async fn erase_instance(&self, id: &str) -> Result<Erased, ClientError> {
        self.erase_archived(ArchivedGroup::Instances, id).await
    }

    /// Erases all archived rows of an id.
    ///
    /// # Errors
    /// `archive-unavailable` on a server without an archive.
    pub async fn erase_archived(&self, of: ArchivedGroup, id: &str) -> Result<Erased, ClientError> {
        let request = self.request(Method::DELETE, &["v1", "archive", of.as_str(), id], Duration::ZERO);
        self.read(request).await
    }

    /// Erases the archive of the tenant.
    ///
    /// # Errors
    /// `archive-unavailable` on a server without an archive.
    pub async fn erase_archive(&self) -> Result<Erased, ClientError> {
        self.read(self.request(Method::DELETE, &["v1", "archive"], Duration::ZERO)).await
    }
}
