//! What happens to instances, batches and runs of a tenant, as it happens.

use std::sync::Arc;

use super::Tenant;
use crate::events::{Heard, Known, Listener, Position};

/// Hears of changes of one tenant.
pub struct TenantListener {
    tenant: Tenant,
    listener: Listener,
}

/// A change of something that the tenant has.
pub struct TenantChange {
    /// Its place.
    pub place: Position,
    /// The instance, by the caller's id; empty for a batch or a run.
    pub id: String,
    /// What happened.
    pub known: Arc<Known>,
}

impl Tenant {
    /// Listens from now on, or after a place.
    pub fn changes(&self, after: Option<Position>) -> TenantListener {
        TenantListener { tenant: self.clone(), listener: self.resources().hub.listen(after) }
    }
}

impl TenantListener {
    /// Where it is.
    pub fn place(&self) -> &Position {
        self.listener.place()
    }

    /// Waits for changes; an error is the place after some that are gone.
    pub async fn hear(&mut self) -> Result<Vec<TenantChange>, Position> {
        match self.listener.hear().await {
            Heard::Lagged(place) => Err(place),
            Heard::Changes(changes) => {
                let ours = changes.into_iter().filter_map(|(place, known)| {
                    let id = match &*known {
                        Known::Instance(change) => self.tenant.shown_instance(Some(&change.instance))?,
                        Known::Batch(change) => {
                            (change.scope == self.tenant.owner().id_prefix()).then(String::new)?
                        }
                        Known::Run(change) => {
                            (change.scope == self.tenant.owner().id_prefix()).then(String::new)?
                        }
                    };
                    Some(TenantChange { place, id, known })
                });
                Ok(ours.collect())
            }
        }
    }
}
