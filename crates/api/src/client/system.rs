//! The node and its store.

use super::{Client, ClientError};
use crate::system::{Queues, System};

impl Client {
    /// The node that answers, and counts over the store.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn system(&self) -> Result<System, ClientError> {
        self.get(&["v1", "system"]).await
    }

    /// Lengths of the queues.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(&["v1", "queues"]).await
    }
}
