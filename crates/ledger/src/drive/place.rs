//! Where the driver's records are: kinds and ids.

use segno_actions::functions::Scope;
use sha2::{Digest, Sha256};

/// Kind of the events that wait to be appended to the log.
pub const OUTBOX: &str = "ledger_outbox";

/// Kind of the lease records: which node holds a scope, and when it is looked after next.
pub const LEASES: &str = "ledger_leases";

/// Kind of the secrets of tenants, from which ids of runs with a key are derived.
pub const SECRETS: &str = "ledger_secrets";

/// Kind of the records of scopes that have tables.
pub const BEGUN: &str = "ledger_begun";

/// Kind of the reservations of run keys.
pub const RUN_KEYS: &str = "ledger_run_keys";

/// Kind of the receipts of what workers have reported of attempts.
pub const RECEIPTS: &str = "ledger_receipts";

/// Kind of the DAGs by name.
pub const HEADS: &str = "dag_heads";

/// Kind of the versions of DAGs.
pub const VERSIONS: &str = "dag_versions";

/// Kind of the sensors of DAGs, due when they are polled.
pub const SENSORS: &str = "dag_sensors";

/// Kind of the assets whose freshness is watched, due when they are stale.
pub const FRESHNESS: &str = "dag_freshness";

/// Name of the lease record within its scope.
const LEASE: &str = "lease";

/// Longest key that is part of an id as it is; longer ones are hashed.
const MAX_PLAIN_KEY_BYTES: usize = 200;

/// Id of the lease record of a scope.
pub(super) fn lease_id(scope: &Scope) -> String {
    format!("{}{LEASE}", scope.id_prefix())
}

/// The scope of a lease record.
pub(super) fn scope_of_lease(id: &str) -> Option<Scope> {
    let mut parts = id.split('/');
    let (namespace, tenant, name) = (parts.next()?, parts.next()?, parts.next()?);
    if name != LEASE || parts.next().is_some() {
        return None;
    }
    Scope::new(namespace, tenant).ok()
}

/// Id of a record of the scope's outbox with a key. Ids are one folder for each scope, so that what waits in it is found
/// at a cost that does not depend on other scopes.
pub(super) fn outbox_id(scope: &Scope, key: &str) -> String {
    format!("{}{}", scope.id_prefix(), plain(key))
}

/// Key of the record of the outbox with the first events of a run.
pub(super) fn first_events_of(run_id: &str) -> String {
    format!("run:{run_id}")
}

/// Id of the record that a scope has tables.
pub(super) fn begun_id(scope: &Scope) -> String {
    format!("{}begun", scope.id_prefix())
}

/// Id of the secret of a scope.
pub(super) fn secret_id(scope: &Scope) -> String {
    format!("{}secret", scope.id_prefix())
}

/// Id of the reservation of a run key.
pub(super) fn run_key_id(scope: &Scope, run_key: &str) -> String {
    format!("{}{}", scope.id_prefix(), plain(run_key))
}

/// Id of the head of a DAG.
pub(super) fn head_id(scope: &Scope, dag: &str) -> String {
    format!("{}{dag}", scope.id_prefix())
}

/// What the ids of all versions of a DAG begin with.
pub(super) fn version_folder(scope: &Scope, dag: &str) -> String {
    format!("{}{dag}/", scope.id_prefix())
}

/// Id of a version of a DAG.
pub(super) fn version_id(scope: &Scope, dag: &str, version: u32) -> String {
    format!("{}{version:010}", version_folder(scope, dag))
}

/// What the ids of all sensors of a DAG begin with.
pub(super) fn sensor_folder(scope: &Scope, dag: &str) -> String {
    version_folder(scope, dag)
}

/// Id of a sensor of a DAG.
pub(super) fn sensor_id(scope: &Scope, dag: &str, sensor: &str) -> String {
    format!("{}{sensor}", sensor_folder(scope, dag))
}

/// Id of an asset of a DAG whose freshness is watched.
pub(super) fn freshness_id(scope: &Scope, dag: &str, asset: &str) -> String {
    format!("{}{}", version_folder(scope, dag), plain(asset))
}

/// The scope of a record whose id begins with it.
pub(super) fn scope_of(id: &str) -> Option<Scope> {
    let mut parts = id.split('/');
    Scope::new(parts.next()?, parts.next()?).ok()
}

/// A key that can be part of an id: without a slash, and not longer than allowed.
pub(super) fn plain(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:%".contains(&byte);
    if !key.is_empty() && key.len() <= MAX_PLAIN_KEY_BYTES && key.bytes().all(is_plain) {
        return key.to_owned();
    }
    use std::fmt::Write as _;
    Sha256::digest(key.as_bytes()).iter().fold("sha256=".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_lease_gives_the_scope() {
        let scope = Scope::new("eu", "acme").unwrap();
        assert_eq!(lease_id(&scope), "eu/acme/lease");
        assert_eq!(scope_of_lease("eu/acme/lease"), Some(scope));
        for id in ["eu/acme", "eu/acme/other", "eu/acme/lease/x", "lease", ""] {
            assert_eq!(scope_of_lease(id), None, "{id}");
        }
    }

    #[test]
    fn keys_of_any_text_are_ids_of_one_folder_that_differ() {
        let scope = Scope::new("eu", "acme").unwrap();
        let id = outbox_id(&scope, "finished:dispatch:run1:a%3Ab:1");
        assert_eq!(id, "eu/acme/finished:dispatch:run1:a%3Ab:1");
        let long = "k".repeat(MAX_PLAIN_KEY_BYTES + 1);
        let keys = ["", "a/b", "ä", "sha256=", long.as_str()];
        let ids: std::collections::BTreeSet<String> = keys.iter().map(|key| outbox_id(&scope, key)).collect();
        assert_eq!(ids.len(), keys.len());
        assert!(ids.iter().all(|id| segno::store::folder_of(id) == "eu/acme/"), "{ids:?}");
    }
}
