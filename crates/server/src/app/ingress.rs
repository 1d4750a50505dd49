//! What senders of webhooks reach, who have no key: a route that they can name, and what it takes.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno_actions::hooks::{Accepted, HookError, HookName, Incoming, Refused, Route};

use super::App;
use crate::problem::Refusal;
use crate::scope::Scope;

/// The way in for senders of webhooks. Nothing can be read through it.
pub struct Ingress(App);

/// A route of webhooks that was found by its names.
pub struct FoundRoute {
    /// The route.
    pub route: Route,
    scope: Scope,
}

impl FoundRoute {
    /// An error about it, in the words of its tenant.
    pub fn refused(&self, error: &HookError) -> Refusal {
        Refusal::from_hook(error, &self.scope)
    }
}

impl Ingress {
    /// The route of these names; `None` when there is none, also when they are no names.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find(
        &self,
        namespace: &str,
        tenant: &str,
        route: &str,
    ) -> Result<Option<FoundRoute>, Refusal> {
        let (Ok(scope), Ok(name)) = (Scope::new(namespace, tenant), HookName::new(route)) else {
            return Ok(None);
        };
        match self.0.resources.hooks.find(&scope.for_functions(), &name).await {
            Ok(route) => Ok(Some(FoundRoute { route, scope })),
            Err(HookError::Unknown { .. }) => Ok(None),
            Err(error) => Err(Refusal::from_hook(&error, &scope)),
        }
    }

    /// Whether the route takes a body of this size and type.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(
        &self,
        found: &FoundRoute,
        bytes: Option<u64>,
        content_type: Option<&str>,
    ) -> Result<(), Refused> {
        self.0.resources.hooks.admit(&found.route, bytes, content_type)
    }

    /// Takes what came in.
    ///
    /// # Errors
    /// Why it was refused.
    pub async fn receive(&self, found: &FoundRoute, incoming: Incoming) -> Result<Accepted, Refused> {
        self.0.resources.hooks.receive(&found.route, incoming).await
    }
}

impl FromRequestParts<App> for Ingress {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, app: &App) -> Result<Self, Refusal> {
        Ok(Ingress(app.clone()))
    }
}
