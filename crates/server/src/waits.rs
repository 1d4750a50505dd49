//! Admission control for long polls: requests that hold their connection until something happens. They are
//! limited in all and for each tenant, so that some connections are left for everything else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::{Code, Refusal};
use crate::scope::Scope;
use crate::settings::ServerSettings;

/// Long polls that are open.
pub struct Waits {
    max: usize,
    max_per_tenant: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_tenant: HashMap<String, usize>,
}

/// The place of a long poll; released when dropped.
pub struct WaitPlace {
    waits: Arc<Waits>,
    tenant: String,
}

impl Waits {
    /// Long polls take at most three quarters of the connections, those of one tenant at most half.
    pub fn new(settings: &ServerSettings) -> Arc<Self> {
        let connections = settings.max_connections;
        let max = (connections / 4 * 3).max(1);
        Arc::new(Waits { max, max_per_tenant: (connections / 2).max(1), open: Mutex::default() })
    }

    /// A place for a long poll of a tenant.
    ///
    /// # Errors
    /// `too-many-waits`.
    pub fn place(self: &Arc<Self>, scope: &Scope) -> Result<WaitPlace, Refusal> {
        let tenant = scope.prefix().to_owned();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = open.by_tenant.get(&tenant).copied().unwrap_or_default();
        for (count, max, whose) in
            [(of_tenant, self.max_per_tenant, "of this tenant"), (open.all, self.max, "on this server")]
        {
            if count >= max {
                let detail = format!(
                    "{count} requests {whose} are waiting, as many as server.max_connections allows; request without wait_ms, or later"
                );
                return Err(Refusal::new(Code::TooManyWaits, detail));
            }
        }
        open.all += 1;
        *open.by_tenant.entry(tenant.clone()).or_default() += 1;
        Ok(WaitPlace { waits: Arc::clone(self), tenant })
    }
}

impl Drop for WaitPlace {
    fn drop(&mut self) {
        let mut open = self.waits.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(count) = open.by_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                open.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_takes_all_places_and_some_connections_are_left() {
        let waits = Waits::new(&ServerSettings { max_connections: 8, ..ServerSettings::default() });
        let scope = |tenant: &str| Scope::new("shop", tenant).unwrap();
        let refusal = |tenant: &str| waits.place(&scope(tenant)).err().expect("no place").to_string();
        let mut places: Vec<WaitPlace> = (0..4).map(|_| waits.place(&scope("eu")).unwrap()).collect();
        assert!(refusal("eu").contains("4 requests of this tenant"));
        places.extend((0..2).map(|_| waits.place(&scope("us")).unwrap()));
        assert!(refusal("us").contains("6 requests on this server"));
        places.clear();
        let open = waits.open.lock().unwrap();
        assert!(open.all == 0 && open.by_tenant.is_empty());
    }
}
