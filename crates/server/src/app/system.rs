//! What concerns all tenants.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno::client::DeadLetterQuery;
use segno::store::{QueueDepths, SystemMetrics};
use segno_api::system::{Node, StoreFigures};

use super::App;
use crate::access::{Caller, Need};
use crate::problem::{Code, Refusal};
use crate::scope::Scope;
use crate::telemetry::MAX_COUNTED_LETTERS;
use crate::{nodes, operation};

/// Counts over the whole store, for callers with a grant for every namespace and tenant.
pub struct System(App);

impl System {
    /// How many instances there are, by state.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn counts(&self) -> Result<SystemMetrics, Refusal> {
        Ok(self.0.resources.store.get_system_metrics().await?)
    }

    /// Lengths of the queues.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn queue_depths(&self) -> Result<QueueDepths, Refusal> {
        Ok(self.0.resources.store.get_queue_depths().await?)
    }

    /// How many dead letters there are, up to a bound.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn dead_letters(&self) -> Result<usize, Refusal> {
        let query = DeadLetterQuery { limit: MAX_COUNTED_LETTERS, ..DeadLetterQuery::default() };
        match self.0.resources.client.dead_letters(query).await {
            Ok(page) => Ok(page.letters.len()),
            Err(error) => {
                tracing::warn!(%error, "the dead letters could not be counted");
                Err(Refusal::unavailable("the store is not available at the moment", operation::effect()))
            }
        }
    }

    /// For how long the oldest event of DAG runs has waited to be folded; nothing on a server without a ledger.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn fold_lag(&self) -> Result<Option<Duration>, Refusal> {
        let Some(ledger) = &self.0.resources.ledger else { return Ok(None) };
        let lag = ledger.fold_lag().await;
        lag.map(Some).map_err(|error| Refusal::from_ledger(&error, &Scope::default()))
    }

    /// The nodes that were heard of in the last hour.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn nodes(&self) -> Result<Vec<Node>, Refusal> {
        Ok(nodes::list(&*self.0.resources.store, &self.0.answering).await?)
    }

    /// What the store takes on its disk.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn figures(&self) -> Result<StoreFigures, Refusal> {
        let store = &self.0.resources.store;
        let disk = self.0.disk().await;
        let bytes = match &disk {
            Some(disk) => Some(disk.bytes),
            None => store.size_bytes().await?,
        };
        Ok(StoreFigures {
            store: store.name().to_owned(),
            place: self.0.settings.store_url().map(|url| url.to_string()).unwrap_or_default(),
            bytes,
            log_bytes: disk.map(|disk| disk.log_bytes),
            disk_bytes: disk.map(|disk| disk.total_bytes),
            disk_free_bytes: disk.map(|disk| disk.free_bytes),
            damage: store.known_damage().await?,
        })
    }

    /// What the store is called.
    pub fn store_name(&self) -> &str {
        self.0.resources.store.name()
    }
}

impl FromRequestParts<App> for System {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        may(parts, Need::System)?;
        Ok(System(app.clone()))
    }
}

/// Refuses a caller who may not do what an extractor is for, whatever the group of the route says.
pub(super) fn may(parts: &Parts, need: Need) -> Result<(), Refusal> {
    if parts.extensions.get::<Caller>().is_some_and(|caller| caller.may(need)) {
        return Ok(());
    }
    Err(Refusal::new(Code::Forbidden, "the key is valid, but does not allow this"))
}
