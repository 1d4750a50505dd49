//! Live streams that are open: so many in all, for one key and for one tenant, so that no caller
//! takes the places of others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::Caller;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;
use crate::settings::ServerSettings;

/// Places for live streams.
pub struct Streams {
    max: usize,
    max_per_key: usize,
    max_per_tenant: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_key: HashMap<String, usize>,
    by_tenant: HashMap<String, usize>,
}

/// A place for a stream; given back when dropped.
pub struct StreamPlace {
    streams: Arc<Streams>,
    key: Option<String>,
    tenant: String,
}

impl Streams {
    /// Places by the settings.
    pub fn new(settings: &ServerSettings) -> Arc<Self> {
        Arc::new(Streams {
            max: settings.max_streams,
            max_per_key: settings.max_streams_per_key,
            max_per_tenant: settings.max_streams_per_tenant,
            open: Mutex::default(),
        })
    }

    /// A place for a stream of a caller in a tenant.
    ///
    /// # Errors
    /// `too-many-streams`, with the setting whose limit is reached.
    pub fn place(self: &Arc<Self>, caller: &Caller, scope: &Scope) -> Result<StreamPlace, Refusal> {
        let key = caller.key_id().map(str::to_owned);
        let tenant = scope.prefix().to_owned();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = key.as_ref().and_then(|key| open.by_key.get(key)).copied().unwrap_or_default();
        let of_tenant = open.by_tenant.get(&tenant).copied().unwrap_or_default();
        for (count, max, whose, setting) in [
            (of_key, self.max_per_key, "of this key", "server.max_streams_per_key"),
            (of_tenant, self.max_per_tenant, "of this tenant", "server.max_streams_per_tenant"),
            (open.all, self.max, "on this server", "server.max_streams"),
        ] {
            if count >= max {
                let detail = format!(
                    "{count} streams {whose} are open, the limit of {setting}; close one, or try again later"
                );
                return Err(Refusal::new(Code::TooManyStreams, detail));
            }
        }
        open.all += 1;
        *open.by_tenant.entry(tenant.clone()).or_default() += 1;
        if let Some(key) = &key {
            *open.by_key.entry(key.clone()).or_default() += 1;
        }
        Ok(StreamPlace { streams: Arc::clone(self), key, tenant })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        give_back(&mut open.by_tenant, &self.tenant);
        if let Some(key) = &self.key {
            give_back(&mut open.by_key, key);
        }
    }
}

fn give_back<K: Hash + Eq + Clone>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use segno_api::key::Role;

    use super::*;

    #[test]
    fn no_key_and_no_tenant_takes_all_places() {
        let settings = ServerSettings {
            max_streams: 4,
            max_streams_per_key: 2,
            max_streams_per_tenant: 3,
            ..ServerSettings::default()
        };
        let streams = Streams::new(&settings);
        let caller = |id: &str| Caller::with_key(id, Role::Viewer, &[]);
        let scope = |tenant: &str| Scope::new("shop", tenant).unwrap();
        let refusal = |id: &str, tenant: &str| {
            streams.place(&caller(id), &scope(tenant)).err().expect("there is no place").to_string()
        };
        let mut places = vec![
            streams.place(&caller("a"), &scope("eu")).unwrap(),
            streams.place(&caller("a"), &scope("eu")).unwrap(),
        ];
        assert!(refusal("a", "us").contains("server.max_streams_per_key"));
        places.push(streams.place(&caller("b"), &scope("eu")).unwrap());
        assert!(refusal("c", "eu").contains("server.max_streams_per_tenant"));
        places.push(streams.place(&caller("b"), &scope("us")).unwrap());
        assert!(refusal("c", "us").contains("the limit of server.max_streams;"));
        places.clear();
        let open = streams.open.lock().unwrap();
        assert!(open.all == 0 && open.by_key.is_empty() && open.by_tenant.is_empty());
    }
}
