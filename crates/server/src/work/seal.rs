//! Leases as text that a caller can keep and show, and cannot make up.
//!
//! The text is `<payload>.<mac>`, both in base64url: the lease with its namespace, tenant and worker as JSON, and its
//! HMAC-SHA256. The key is a record that all nodes of a store share, so that any of them takes the answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Store};
use segno::work::Lease;
use segno_actions::functions::{PoolName, Scope as FunctionScope};
use segno_ledger::drive::TaskTokens;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::problem::Refusal;
use crate::scope::Scope;

/// Kind of the record that holds the key.
const KIND: &str = "segno.server-secret";

/// Id of the record that holds the key.
const ID: &str = "leases";

/// Length of the key in bytes.
const KEY_BYTES: usize = 32;

/// Longest text that is looked at, in bytes: ids and names in a lease are bounded.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// A lease with all that goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLease {
    namespace: String,
    tenant: String,
    /// Who holds it; nobody in particular when it was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The pool that it was fetched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolName>,
    /// The lease itself.
    pub lease: Lease,
}

impl HeldLease {
    /// A lease of a scope.
    pub fn new(scope: &FunctionScope, worker: Option<&str>, lease: Lease) -> Self {
        HeldLease {
            namespace: scope.namespace.to_string(),
            tenant: scope.tenant.to_string(),
            worker: worker.map(str::to_owned),
            pool: None,
            lease,
        }
    }

    /// The same, fetched for a pool.
    #[must_use]
    pub fn of_pool(self, pool: Option<&PoolName>) -> Self {
        HeldLease { pool: pool.cloned(), ..self }
    }

    /// The same with a lease that was extended.
    #[must_use]
    pub fn extended(self, lease: Lease) -> Self {
        HeldLease { lease, ..self }
    }
}

/// Makes and reads the texts. Cheap to clone.
#[derive(Clone)]
pub struct LeaseSeal {
    key: [u8; KEY_BYTES],
}

impl LeaseSeal {
    /// The seal of a store; the first node that starts makes its key.
    ///
    /// # Errors
    /// When the store cannot be used, or the system gives no random numbers.
    pub async fn of(store: &dyn Store) -> Result<Self, ProviderError> {
        let mut fresh = [0; KEY_BYTES];
        getrandom::fill(&mut fresh).map_err(|error| {
            ProviderError::new(ErrorKind::Internal, "lease key", format!("no random numbers: {error}"))
        })?;
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: ID.to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: None,
            body: fresh.to_vec().into(),
        };
        match store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await {
            Ok(_) => return Ok(LeaseSeal { key: fresh }),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // A server without the key can do all else; what was leased before is delivered
                // again.
                tracing::error!(
                    %error,
                    "the key that leases are sealed with cannot be read; a new one holds until the server is stopped, and \
                     workers that hold older leases are refused"
                );
                return Ok(LeaseSeal { key: fresh });
            }
            Err(error) => return Err(error),
        }
        let stored = store.get_record(KIND, ID).await?;
        let key = stored.and_then(|record| <[u8; KEY_BYTES]>::try_from(record.body.as_ref()).ok());
        key.map(|key| LeaseSeal { key }).ok_or_else(|| {
            let reason = format!(
                "the record {KIND}/{ID} is not a key of {KEY_BYTES} bytes; delete it, and a new one is made"
            );
            ProviderError::new(ErrorKind::Corrupt, "lease key", reason)
        })
    }

    /// The tokens of attempts of tasks, whose key is derived from this one.
    pub fn task_tokens(&self) -> TaskTokens {
        TaskTokens::new(&self.key)
    }

    /// A lease as text.
    pub fn seal(&self, held: &HeldLease) -> String {
        let payload = serde_json::to_vec(held).expect("a lease is plain data, which always has a JSON form");
        let mac = self.mac(&payload).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(mac))
    }

    /// The lease that a text stands for, if this server gave it out in this scope. What is wrong with another one is not
    /// told: forged, of another tenant and lost look alike.
    ///
    /// # Errors
    /// `lease-lost`.
    pub fn open(&self, scope: &Scope, text: &str) -> Result<HeldLease, Refusal> {
        let held = self.verified(text);
        held.filter(|held| held.namespace == scope.namespace() && held.tenant == scope.tenant()).ok_or_else(|| {
            Refusal::lease_lost("the lease is none that was given out in this namespace and tenant; fetch work and send the lease as it came")
        })
    }

    fn verified(&self, text: &str) -> Option<HeldLease> {
        let (payload, mac) = text.split_once('.').filter(|_| text.len() <= MAX_TEXT_BYTES)?;
        let (payload, mac) = (URL_SAFE_NO_PAD.decode(payload).ok()?, URL_SAFE_NO_PAD.decode(mac).ok()?);
        // This compares in constant time.
        self.mac(&payload).verify_slice(&mac).ok()?;
        serde_json::from_slice(&payload).ok()
    }

    fn mac(&self, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(payload);
        mac
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;

    use super::*;

    fn held() -> HeldLease {
        let lease = r#"{"lock_token":7,"instance":"shop/eu/i","execution_id":1,"activity_id":2,"name":"function",
            "attempt":1,"idempotency_key":"k","fetched_at_ms":1,"expires_at_ms":2}"#;
        let scope = FunctionScope::new("shop", "eu").unwrap();
        HeldLease::new(&scope, Some("w"), serde_json::from_str(lease).unwrap())
    }

    #[tokio::test]
    async fn nodes_of_a_store_read_each_others_leases_and_no_others() {
        let store = MemoryStore::new();
        let (one, two) = (LeaseSeal::of(&*store).await.unwrap(), LeaseSeal::of(&*store).await.unwrap());
        let (shop, lab) = (Scope::new("shop", "eu").unwrap(), Scope::new("shop", "us").unwrap());
        let text = one.seal(&held());
        assert_eq!(two.open(&shop, &text).unwrap(), held());
        assert_eq!(two.open(&lab, &text).unwrap_err().status(), 409);
        let stranger = LeaseSeal::of(&*MemoryStore::new()).await.unwrap();
        assert!(stranger.open(&shop, &text).is_err());
    }

    #[tokio::test]
    async fn no_changed_byte_gets_through() {
        let seal = LeaseSeal::of(&*MemoryStore::new()).await.unwrap();
        let scope = Scope::new("shop", "eu").unwrap();
        let text = seal.seal(&held());
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character of base64 may have bits that mean nothing; a strict decoder refuses them as well.
            assert!(seal.open(&scope, &changed).is_err(), "{place}");
        }
        for text in ["", ".", "a.b", &text[..text.len() - 1], &format!("{text}="), &"x.".repeat(20_000)] {
            assert!(seal.open(&scope, text).is_err());
        }
    }
}
