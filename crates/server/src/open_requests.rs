//! Admission control for requests that stay open: live streams, and long polls that hold their connection until
//! something happens. Each kind is limited in all, for one key and for one tenant, so that no caller takes the
//! places of others, whatever its key is good for, and some connections are left for everything else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::{Code, Refusal};
use crate::scope::Scope;
use crate::settings::ServerSettings;

/// Requests of one kind that are open.
pub struct OpenRequests {
    kind: Kind,
    limits: Limits,
    open: Mutex<Open>,
}

/// What stays open.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Stream,
    LongPoll,
}

/// How many may be open.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: usize,
    per_key: usize,
    per_tenant: usize,
}

/// How many are open. No count is 0.
#[derive(Default)]
struct Open {
    all: usize,
    by_key: HashMap<Arc<str>, usize>,
    by_tenant: HashMap<String, usize>,
}

/// A place for a request that stays open; released when dropped.
pub struct OpenPlace {
    requests: Arc<OpenRequests>,
    key: Option<Arc<str>>,
    tenant: String,
}

impl Kind {
    /// Why there is no place, when so many are open.
    fn refusal(self, count: usize, whose: &str, setting: &str) -> Refusal {
        match self {
            Kind::Stream => Refusal::new(
                Code::TooManyStreams,
                format!(
                    "{count} streams {whose} are open, the limit of {setting}; close one, or try again later"
                ),
            ),
            Kind::LongPoll => Refusal::new(
                Code::TooManyWaits,
                format!(
                    "{count} requests {whose} are waiting, as many as {setting} allows; request without wait_ms, or later"
                ),
            ),
        }
    }

    /// The settings that limit all, those of a key and those of a tenant.
    fn settings(self) -> [&'static str; 3] {
        match self {
            Kind::Stream => {
                ["server.max_streams", "server.max_streams_per_key", "server.max_streams_per_tenant"]
            }
            Kind::LongPoll => ["server.max_connections"; 3],
        }
    }
}

impl OpenRequests {
    /// Live streams, as the settings limit them.
    pub fn streams(settings: &ServerSettings) -> Arc<Self> {
        Self::new(
            Kind::Stream,
            Limits {
                all: settings.max_streams,
                per_key: settings.max_streams_per_key,
                per_tenant: settings.max_streams_per_tenant,
            },
        )
    }

    /// Long polls: they take at most three quarters of the connections, those of one key and those of one
    /// tenant at most half.
    pub fn long_polls(settings: &ServerSettings) -> Arc<Self> {
        let connections = settings.max_connections;
        let (all, half) = ((connections / 4 * 3).max(1), (connections / 2).max(1));
        Self::new(Kind::LongPoll, Limits { all, per_key: half, per_tenant: half })
    }

    fn new(kind: Kind, limits: Limits) -> Arc<Self> {
        Arc::new(OpenRequests { kind, limits, open: Mutex::default() })
    }

    /// A place for a request of a key, if the server has keys, in a tenant.
    ///
    /// # Errors
    /// `too-many-streams` or `too-many-waits`, with the setting whose limit is reached.
    pub fn place(self: &Arc<Self>, key: Option<&Arc<str>>, scope: &Scope) -> Result<OpenPlace, Refusal> {
        let (key, tenant) = (key.cloned(), scope.prefix().to_owned());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = key.as_ref().and_then(|key| open.by_key.get(key)).copied().unwrap_or_default();
        let of_tenant = open.by_tenant.get(&tenant).copied().unwrap_or_default();
        let [all, per_key, per_tenant] = self.kind.settings();
        for (count, max, whose, setting) in [
            (of_key, self.limits.per_key, "of this key", per_key),
            (of_tenant, self.limits.per_tenant, "of this tenant", per_tenant),
            (open.all, self.limits.all, "on this server", all),
        ] {
            if count >= max {
                return Err(self.kind.refusal(count, whose, setting));
            }
        }
        open.all += 1;
        *open.by_tenant.entry(tenant.clone()).or_default() += 1;
        if let Some(key) = &key {
            *open.by_key.entry(key.clone()).or_default() += 1;
        }
        Ok(OpenPlace { requests: Arc::clone(self), key, tenant })
    }
}

impl Drop for OpenPlace {
    fn drop(&mut self) {
        let mut open = self.requests.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        count_down(&mut open.by_tenant, self.tenant.as_str());
        if let Some(key) = &self.key {
            count_down(&mut open.by_key, &**key);
        }
    }
}

fn count_down<K, Q>(counts: &mut HashMap<K, usize>, key: &Q)
where
    K: std::borrow::Borrow<Q> + std::hash::Hash + Eq,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes places by (key, tenant, how many), then checks whose limit refuses the next.
    fn check(requests: &Arc<OpenRequests>, steps: &[(&str, &str, usize, &str)]) {
        let place = |key: &str, tenant: &str| {
            let key = (!key.is_empty()).then(|| Arc::from(key));
            requests.place(key.as_ref(), &Scope::new("shop", tenant).unwrap())
        };
        let mut places = Vec::new();
        for (key, tenant, count, refusal) in steps {
            places.extend((0..*count).map(|_| place(key, tenant).unwrap()));
            let refused = place(key, tenant).err().expect("there is no place").to_string();
            assert!(refused.contains(refusal), "{refused}");
        }
        places.clear();
        let open = requests.open.lock().unwrap();
        assert!(open.all == 0 && open.by_key.is_empty() && open.by_tenant.is_empty());
    }

    #[test]
    fn no_key_and_no_tenant_takes_all_places_of_streams() {
        let settings = ServerSettings {
            max_streams: 4,
            max_streams_per_key: 2,
            max_streams_per_tenant: 3,
            ..ServerSettings::default()
        };
        let steps = [
            ("a", "eu", 2, "server.max_streams_per_key"),
            ("b", "eu", 1, "server.max_streams_per_tenant"),
            ("b", "us", 1, "server.max_streams_per_key"),
            ("c", "us", 0, "the limit of server.max_streams;"),
        ];
        check(&OpenRequests::streams(&settings), &steps);
    }

    #[test]
    fn no_key_and_no_tenant_takes_all_places_of_long_polls_and_some_connections_are_left() {
        let settings = ServerSettings { max_connections: 8, ..ServerSettings::default() };
        let polls = OpenRequests::long_polls(&settings);
        check(
            &polls,
            &[("", "eu", 4, "4 requests of this tenant"), ("", "us", 2, "6 requests on this server")],
        );
        let place = |key: &str, tenant: &str| {
            polls.place(Some(&Arc::from(key)), &Scope::new("shop", tenant).unwrap())
        };
        let _taken: Vec<OpenPlace> =
            ["eu", "us", "asia", "eu"].map(|tenant| place("wide", tenant).unwrap()).into();
        let refused = place("wide", "africa").err().expect("the key has taken its share").to_string();
        assert!(refused.contains("4 requests of this key"), "{refused}");
        assert!(place("narrow", "africa").is_ok());
    }
}
