//! The node and its store.

use super::{Client, ClientError};
use crate::system::{Health, Queues, System};

impl Client {
    /// The node that answers, and counts over the store.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn system(&self) -> Result<System, ClientError> {
        self.get(&["v1", "system"]).await
    }

    /// Whether the server can work: it is not stopping, and its store takes writes. Needs no key.
    ///
    /// # Errors
    /// `unavailable` when it cannot.
    pub async fn ready(&self) -> Result<Health, ClientError> {
        self.get(&["readyz"]).await
    }

    /// Lengths of the queues.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(&["v1", "queues"]).await
    }
}
