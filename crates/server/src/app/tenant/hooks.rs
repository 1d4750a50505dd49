//! Webhooks of a tenant.

use bytes::Bytes;
use segno_actions::Listed;
use segno_actions::hooks::{
    Hook, HookError, HookEvent, HookName, Incoming, ListEvents, ListPayloads, Payload, PayloadPage, Refused,
    Route,
};
use uuid::Uuid;

use super::Tenant;

impl Tenant {
    /// Routes by name, after this one.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn hooks(
        &self,
        after: Option<&HookName>,
        limit: usize,
    ) -> Result<Vec<Listed<Route>>, HookError> {
        self.resources().hooks.list(&self.owner(), after, limit).await
    }

    /// One route.
    ///
    /// # Errors
    /// `unknown-hook` when there is none.
    pub async fn hook(&self, name: &HookName) -> Result<Route, HookError> {
        self.resources().hooks.find(&self.owner(), name).await
    }

    /// Whether a route would take a request now.
    ///
    /// # Errors
    /// Why not.
    pub async fn would_take(&self, route: &Route, incoming: &Incoming) -> Result<(), Refused> {
        self.resources().hooks.would_take(route, incoming).await
    }

    /// Stores a new route.
    ///
    /// # Errors
    /// `hook-exists`, and those of a declaration.
    pub async fn create_hook(&self, name: HookName, hook: Hook) -> Result<Route, HookError> {
        let version = self.resources().hooks.create(&self.owner(), &name, &hook).await?;
        Ok(Route { scope: self.owner(), name, version, hook })
    }

    /// Replaces a version of a route.
    ///
    /// # Errors
    /// `hook-changed`, and those of a declaration.
    pub async fn replace_hook(&self, name: HookName, hook: Hook, version: u64) -> Result<Route, HookError> {
        let version = self.resources().hooks.replace(&self.owner(), &name, &hook, version).await?;
        Ok(Route { scope: self.owner(), name, version, hook })
    }

    /// Removes a route, or only this version of it.
    ///
    /// # Errors
    /// `unknown-hook`, `hook-changed`.
    pub async fn delete_hook(&self, name: &HookName, version: Option<u64>) -> Result<(), HookError> {
        self.resources().hooks.delete(&self.owner(), name, version).await
    }

    /// What came in at a route.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn payloads(&self, name: &HookName, request: &ListPayloads) -> Result<PayloadPage, HookError> {
        self.resources().hooks.payloads(&self.owner(), name, request).await
    }

    /// One payload with its body.
    ///
    /// # Errors
    /// `unknown-payload` when there is none.
    pub async fn payload(&self, name: &HookName, id: Uuid) -> Result<(Payload, Bytes), HookError> {
        self.resources().hooks.payload(&self.owner(), name, id).await
    }

    /// Makes a new action of a payload.
    ///
    /// # Errors
    /// `unknown-payload` when there is none, and those of the call.
    pub async fn replay_payload(&self, name: &HookName, id: Uuid, action: Uuid) -> Result<(), HookError> {
        self.resources().hooks.replay(&self.owner(), name, id, action).await.map(drop)
    }

    /// Deletes a payload.
    ///
    /// # Errors
    /// `unknown-payload` when there is none.
    pub async fn delete_payload(&self, name: &HookName, id: Uuid) -> Result<(), HookError> {
        self.resources().hooks.delete_payload(&self.owner(), name, id).await
    }

    /// What became of what came in.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn hook_events(&self, request: &ListEvents<'_>) -> Result<Vec<Listed<HookEvent>>, HookError> {
        self.resources().hooks.events(&self.owner(), request).await
    }
}
