//! Instances of all tenants that a caller may enter, for queries over several of them.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno::client::Instance;
use segno::store::{ExecutionStatus, InstanceCursor, InstanceQuery};

use super::App;
use crate::access::Caller;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// What the grants of a caller open. Cheap to clone.
#[derive(Clone)]
pub struct Granted {
    app: App,
    caller: Caller,
}

/// Which instances, of all that are granted.
#[derive(Clone, Default)]
pub struct GrantedFilter {
    /// In this state.
    pub status: Option<ExecutionStatus>,
    /// Of this orchestration.
    pub orchestration: Option<String>,
    /// Not created before this time.
    pub created_from_ms: Option<u64>,
    /// Created before this time.
    pub created_before_ms: Option<u64>,
    /// After this place, as the page before gave it.
    pub cursor: Option<InstanceCursor>,
    /// At most this many, before those of other tenants are left out.
    pub limit: usize,
}

/// A page of instances, each with its tenant and the id that it has there.
pub struct GrantedPage {
    /// The instances.
    pub instances: Vec<(Scope, Instance)>,
    /// Where the next page begins.
    pub next: Option<InstanceCursor>,
}

impl Granted {
    /// What the stored ids of the granted instances begin with: prefixes that do not overlap. A grant for one tenant of
    /// every namespace has to look at all.
    pub fn prefixes(&self) -> Vec<String> {
        let mut prefixes = BTreeSet::new();
        for grant in self.caller.grants() {
            prefixes.insert(match (grant.namespace.as_str(), grant.tenant.as_str()) {
                ("*", _) => String::new(),
                (namespace, "*") => format!("{namespace}/"),
                (namespace, tenant) => format!("{namespace}/{tenant}/"),
            });
        }
        let is_covered = |prefix: &String| {
            let shorter = |other: &String| other.len() < prefix.len() && prefix.starts_with(other.as_str());
            prefixes.iter().any(shorter)
        };
        prefixes.iter().filter(|prefix| !is_covered(prefix)).cloned().collect()
    }

    /// A page of the instances whose stored ids begin so, newest first. Those of tenants that the caller may not enter are
    /// left out.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn instances(&self, prefix: &str, filter: GrantedFilter) -> Result<GrantedPage, Refusal> {
        let query = InstanceQuery {
            id_prefix: Some(prefix.to_owned()),
            statuses: filter.status.into_iter().collect(),
            orchestration_name: filter.orchestration,
            created_from_ms: filter.created_from_ms,
            created_before_ms: filter.created_before_ms,
            cursor: filter.cursor,
            limit: filter.limit,
            ..InstanceQuery::default()
        };
        let page = self.app.resources.client.list(query).await;
        let page = page.map_err(|error| Refusal::from_engine(&error, &Scope::default()))?;
        let instances = page.instances.into_iter().filter_map(|found| self.shown(found)).collect();
        Ok(GrantedPage { instances, next: page.next })
    }

    /// An instance with its tenant; `None` where the caller may not enter.
    fn shown(&self, found: Instance) -> Option<(Scope, Instance)> {
        let mut parts = found.id.splitn(3, '/');
        let scope = Scope::new(parts.next()?, parts.next()?).ok()?;
        if !self.caller.may_enter(&scope) {
            return None;
        }
        let id = scope.shown(&found.id)?.to_owned();
        let parent = found.parent.as_deref().and_then(|parent| scope.shown(parent)).map(str::to_owned);
        Some((scope, Instance { id, parent, ..found }))
    }
}

impl FromRequestParts<App> for Granted {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Refusal::new(Code::Unauthorized, "a key is needed"))?;
        Ok(Granted { app: app.clone(), caller })
    }
}
