//! The node and its store.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::system::{Health, NodeList, Queues, SettingList, StoreFigures, System};

/// Longest time until a server has told whether it can work: one that takes longer cannot.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    /// The node that answers, and counts over the store.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn system(&self) -> Result<System, ClientError> {
        self.get(&["v1", "system"]).await
    }

    /// Whether the server can work: it is not stopping, and its store takes writes. Needs no key.
    /// Sent once: a refusal is the answer, and a server that does not answer within seconds is not
    /// ready.
    ///
    /// # Errors
    /// `unavailable` when it cannot.
    pub async fn ready(&self) -> Result<Health, ClientError> {
        let call = self.request(Method::GET, &["readyz"], Duration::ZERO).timeout(READY_TIMEOUT);
        self.clone().retry_for(Duration::ZERO).read(call).await
    }

    /// Lengths of the queues.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn queues(&self) -> Result<Queues, ClientError> {
        self.get(&["v1", "queues"]).await
    }

    /// The nodes that were heard of in the last hour.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn nodes(&self) -> Result<NodeList, ClientError> {
        self.get(&["v1", "nodes"]).await
    }

    /// What the store takes on its disk.
    ///
    /// # Errors
    /// `forbidden` with a key that is not good everywhere.
    pub async fn store_figures(&self) -> Result<StoreFigures, ClientError> {
        self.get(&["v1", "store"]).await
    }

    /// The settings of the node that answers, without secrets.
    ///
    /// # Errors
    /// `forbidden` with a key that is not an administrator's for all tenants.
    pub async fn settings(&self) -> Result<SettingList, ClientError> {
        self.get(&["v1", "settings"]).await
    }
}
