//! What one namespace and tenant has: the only way from its routes to data.
//!
//! Ids, errors and texts are the caller's here: they are translated on the way in and on the way out, and what belongs to
//! another tenant is not there. One file per resource.

mod archive;
mod archived_batches;
mod assets;
mod audit;
mod automation;
mod backfills;
mod batch_report;
mod bulk;
mod bus;
mod calls;
mod changes;
mod dags;
mod dead_letters;
mod exchange;
mod functions;
mod hooks;
mod instances;
mod known;
mod pools;
mod preview_places;
mod problems;
mod recurring;
mod reserved;
mod run_rows;
mod runbook_pools;
pub mod runbook_rows;
mod runbooks;
mod runs;
mod saved;
mod search;
mod sql;
mod starts;
mod stats;
mod waits;
mod work;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use segno::store::ProviderError;
use segno_actions::action::{ActionDb, ActionError};
use segno_actions::functions::{FunctionError, Scope as Owner};
use segno_actions::hooks::HookError;

use super::{App, Resources};
use crate::access::{Caller, Need};
use crate::open_requests::OpenPlace;
use crate::problem::Refusal;
use crate::scope::Scope;

pub use archive::Located;
pub use backfills::BackfillRequest;
pub use bulk::{BulkChange, BulkTarget};
pub use calls::{CallFound, PoolCondition};
pub use changes::{TenantChange, TenantListener};
pub use instances::{InstanceFilter, Sent};
pub use pools::PoolFetch;
pub use run_rows::{run_state, run_status, task_state, task_status};
pub use runbook_rows::batch_status;
pub use runbooks::Requester;
pub use saved::SaveExpected;
pub use sql::Refused;
pub use starts::{NewInstance, Restarting, Start};
pub use stats::{OfStore, StatsRange};
pub use waits::Waits;

/// A namespace and tenant that the caller may enter. Cheap to clone.
#[derive(Clone)]
pub struct Tenant {
    app: App,
    scope: Scope,
    /// Id of the caller's key, if the server has keys.
    key: Option<Arc<str>>,
}

/// An error that is told in the ids of a tenant.
pub trait Rejected {
    /// The answer.
    fn refusal(&self, scope: &Scope) -> Refusal;
}

impl Tenant {
    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.scope.namespace()
    }

    /// The tenant.
    pub fn name(&self) -> &str {
        self.scope.tenant()
    }

    /// The time by the clock of this node, in Unix milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.app.clock.now_ms()
    }

    /// An error as the caller is told it.
    pub fn refused(&self, error: impl Rejected) -> Refusal {
        error.refusal(&self.scope)
    }

    /// A text with ids in it as the caller knows them.
    pub fn shown_text(&self, text: &str) -> String {
        self.scope.hide_prefix(text)
    }

    /// The address of something that the tenant has, for the header `Location`: without namespace and tenant the path would
    /// lead to what the default tenant has under the same name.
    pub fn location(&self, path: &str) -> [(HeaderName, String); 1] {
        [(LOCATION, format!("{path}?namespace={}&tenant={}", self.namespace(), self.name()))]
    }

    /// The id of an instance as the caller knows it; `None` when it belongs to another tenant.
    pub fn shown_instance(&self, stored: Option<&str>) -> Option<String> {
        stored.and_then(|id| self.scope.shown(id)).map(str::to_owned)
    }

    /// The tenant's actions.
    pub fn actions(&self) -> ActionDb {
        ActionDb::new(self.resources().store.clone())
            .scope(self.owner())
            .clock(self.app.clock.clone())
            .keep_finished(self.app.settings.action_options().finished())
    }

    /// A place for a live stream of the caller, released when dropped.
    ///
    /// # Errors
    /// `too-many-streams`, with the setting whose limit is reached.
    pub fn stream_place(&self) -> Result<OpenPlace, Refusal> {
        self.app.streams.place(self.key.as_ref(), &self.scope)
    }

    /// A place for a request that waits, released when dropped.
    ///
    /// # Errors
    /// `too-many-waits`.
    pub fn wait_place(&self) -> Result<OpenPlace, Refusal> {
        self.app.long_polls.place(self.key.as_ref(), &self.scope)
    }

    /// Waits until a caller may no longer read this tenant, and returns the reason. Without keys that never happens.
    pub async fn until_lost(&self, caller: &Caller) -> Refusal {
        self.resources().until_lost(caller, Need::Read, Some(&self.scope)).await
    }

    fn resources(&self) -> &Resources {
        &self.app.resources
    }

    fn owner(&self) -> Owner {
        self.scope.for_functions()
    }

    fn stored(&self, id: &str) -> String {
        self.scope.stored(id)
    }
}

impl FromRequestParts<App> for Tenant {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let key = parts.extensions.get::<Caller>().and_then(Caller::key_id).map(Arc::from);
        Ok(Tenant { app: app.clone(), scope: Scope::of_request(parts).await?, key })
    }
}

impl Rejected for segno::Error {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_engine(self, scope)
    }
}

impl Rejected for FunctionError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_function(self, scope)
    }
}

impl Rejected for HookError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_hook(self, scope)
    }
}

impl Rejected for ActionError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_action(self, scope)
    }
}

impl Rejected for ProviderError {
    fn refusal(&self, _: &Scope) -> Refusal {
        self.clone().into()
    }
}

impl<E: Rejected> Rejected for &E {
    fn refusal(&self, scope: &Scope) -> Refusal {
        (**self).refusal(scope)
    }
}
