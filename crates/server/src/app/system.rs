//! What concerns all tenants.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno::store::{QueueDepths, SystemMetrics};

use super::App;
use crate::access::{Caller, Need};
use crate::problem::{Code, Refusal};

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
    Err(Refusal::new(Code::Forbidden, "the key is good, but not for this"))
}
