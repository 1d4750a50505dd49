//! API keys as records: made, verified, listed, revoked.
//!
//! A key is `segno_<id>_<secret>`. The record has the SHA-256 of the whole key: it is random enough that a slow hash would
//! protect nothing. A verified key is remembered for [`REMEMBER_MS`], which is how long a revoked one may still work.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use lru::LruCache;
use segno::clock::Clock;
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use segno_actions::{Listed, Unreadable};
use segno_api::key::{CreateKey, Grant, Key, KeyList, Role};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

use super::Caller;
use crate::bucket::Bucket;
use crate::problem::{Code, Refusal};
use crate::routes::paging::{self, Chunk, Found, Row};
use crate::scope::check_slug;

/// Kind of the records that hold keys.
const KIND: &str = "segno.key";

/// Kind of the records that hold when a key was last used.
const USE_KIND: &str = "segno.key-use";

/// Kind and id of the record without a body by which nodes agree on who creates the first key.
const FIRST_KIND: &str = "segno.key-first";
const FIRST_ID: &str = "first";

/// How long a verified key is taken for granted, in milliseconds.
pub(super) const REMEMBER_MS: u64 = 3_000;

/// Verified keys that are remembered.
pub(super) const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(4_096).expect("it is not zero");

/// A use is written down at most this often, in milliseconds.
const USE_EVERY_MS: u64 = 60_000;

/// Random bytes of a secret.
pub(super) const SECRET_BYTES: usize = 32;

/// Random bytes of an id.
pub(super) const ID_BYTES: usize = 8;

/// Ids that are tried for a new key until one is not stored where the store is damaged. One damaged
/// block of keys leaves out a part of all ids, those between its first key and its last.
const MAX_IDS_TRIED: usize = 64;

/// A key that may be stored where the store is damaged.
const UNVERIFIED: &str = "the API key cannot be verified: the store is damaged where keys like it are stored";

/// How to go on without it.
const NEW_KEY: &str = "Use another key, or stop the server and make a new one with `segno keys create --store URL`. \
     `segno store check` finds all damage; restore a backup or run `segno store salvage`";

/// Most grants of one key.
const MAX_GRANTS: usize = 64;

/// Longest name of a key in bytes.
const MAX_NAME_BYTES: usize = 128;

/// A key as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredKey {
    name: String,
    /// SHA-256 of the key, in base64.
    hash: String,
    role: Role,
    grants: Vec<Grant>,
    created_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
}

/// A new key with its secret.
pub struct NewKey {
    /// The key itself, shown only once.
    pub secret: String,
    /// All else about it.
    pub key: Key,
}

struct Remembered {
    caller: Caller,
    expires_at_ms: Option<u64>,
    verified_at_ms: u64,
    bucket: Bucket,
}

/// A key that was verified again while a request lasts.
#[derive(Clone)]
pub(super) struct Rechecked {
    caller: Option<Caller>,
    expires_at_ms: Option<u64>,
    read_at_ms: u64,
}

impl Rechecked {
    pub(super) fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.read_at_ms) < REMEMBER_MS
    }

    pub(super) fn caller_at(self, now_ms: u64) -> Option<Caller> {
        self.caller.filter(|_| !is_over(self.expires_at_ms, now_ms))
    }
}

/// The keys of a store.
pub struct KeyStore {
    store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    /// Notified when a key is revoked on this node.
    pub(super) revoked: Notify,
    pub(super) rechecked: Mutex<LruCache<String, Rechecked>>,
    requests_per_second: Option<u32>,
    remembered: Mutex<LruCache<[u8; 32], Remembered>>,
    used: Mutex<LruCache<String, u64>>,
}

impl KeyStore {
    /// Kinds of the records that a list of keys is made of.
    pub const KINDS: [&str; 2] = [KIND, USE_KIND];

    /// The keys in a store, each good for so many requests a second.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, requests_per_second: Option<u32>) -> Self {
        KeyStore {
            store,
            clock,
            revoked: Notify::new(),
            rechecked: Mutex::new(LruCache::new(MAX_REMEMBERED)),
            requests_per_second,
            remembered: Mutex::new(LruCache::new(MAX_REMEMBERED)),
            used: Mutex::new(LruCache::new(MAX_REMEMBERED)),
        }
    }

    /// Who holds this key.
    ///
    /// # Errors
    /// `unauthorized` when it does not work, `rate-limited` when it is used too often,
    /// `store-damaged` when what is stored of it cannot be read, so that it is not known whether it
    /// works.
    pub async fn verify(&self, token: &str) -> Result<Caller, Refusal> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let now_ms = self.clock.now_ms();
        if let Some(known) = self.recall(&digest, now_ms) {
            return known;
        }
        let refused = || {
            Refusal::new(
                Code::Unauthorized,
                "the API key is unknown, revoked or expired; ask an administrator for a new one",
            )
        };
        let id = key_id(token).ok_or_else(refused)?;
        let record = self.record(id).await?.ok_or_else(refused)?;
        let key = decode(&record)?;
        let stored = URL_SAFE_NO_PAD.decode(&key.hash).unwrap_or_default();
        if !bool::from(stored.ct_eq(&digest)) || is_over(key.expires_at_ms, now_ms) {
            return Err(refused());
        }
        let caller = Caller::with_key(id, key.role, &key.grants);
        let (again, expires_at_ms) = (Some(caller.clone()), key.expires_at_ms);
        let again = Rechecked { caller: again, expires_at_ms, read_at_ms: now_ms };
        self.rechecked.lock().unwrap_or_else(PoisonError::into_inner).put(id.to_owned(), again);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = match remembered.pop(&digest) {
            Some(known) => known.bucket,
            None => Bucket::full(self.requests_per_second, now_ms),
        };
        let entry = Remembered { caller, expires_at_ms: key.expires_at_ms, verified_at_ms: now_ms, bucket };
        remembered.put(digest, entry);
        drop(remembered);
        self.note_use(id, now_ms);
        self.recall(&digest, now_ms).unwrap_or_else(|| Err(refused()))
    }

    /// The record of a key.
    async fn record(&self, id: &str) -> Result<Option<Record>, Refusal> {
        self.store.get_record(KIND, id).await.map_err(|error| match (error.kind(), error.condition()) {
            (ErrorKind::Corrupt, Some(what)) => {
                tracing::error!(%error, "an API key cannot be verified");
                Refusal::new(Code::StoreDamaged, format!("{UNVERIFIED} ({what}). {NEW_KEY}"))
            }
            _ => error.into(),
        })
    }

    /// What is remembered of a key; `None` when it must be read again.
    fn recall(&self, digest: &[u8; 32], now_ms: u64) -> Option<Result<Caller, Refusal>> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered.get_mut(digest)?;
        if now_ms.saturating_sub(known.verified_at_ms) > REMEMBER_MS || is_over(known.expires_at_ms, now_ms) {
            return None;
        }
        Some(if known.bucket.take(self.requests_per_second, now_ms) {
            Ok(known.caller.clone())
        } else {
            Err(Refusal::new(Code::RateLimited, "this key sends more requests than it may; slow down"))
        })
    }

    /// Writes down that a key was used, now and then, without making the caller wait.
    fn note_use(&self, id: &str, now_ms: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.get(id).is_some_and(|last| now_ms.saturating_sub(*last) < USE_EVERY_MS) {
            return;
        }
        used.put(id.to_owned(), now_ms);
        drop(used);
        let (store, id) = (self.store.clone(), id.to_owned());
        tokio::spawn(async move {
            let write = RecordWrite::Put {
                kind: USE_KIND.to_owned(),
                id,
                expect: Expect::Anything,
                due_at_ms: None,
                time_to_live: None,
                body: now_ms.to_string().into(),
            };
            if let Err(error) =
                store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await
            {
                tracing::debug!(%error, "the use of a key could not be written down");
            }
        });
    }

    /// Makes a key.
    ///
    /// # Errors
    /// `invalid-request` when a field is wrong.
    pub async fn create(&self, request: CreateKey) -> Result<NewKey, Refusal> {
        let created = self.create_with(request, None).await?;
        created.ok_or_else(id_is_taken)
    }

    /// Makes a key whose id comes from its request. If an earlier try of the same request has stored it, whose answer was lost with the
    /// only copy of the secret, the key gets a new secret.
    ///
    /// # Errors
    /// `invalid-request` when a field is wrong.
    pub async fn create_repeatably(&self, request: CreateKey, from: uuid::Uuid) -> Result<NewKey, Refusal> {
        let (mut stored, now_ms) = self.checked(request).await?;
        let id = hex(&from.as_bytes()[..ID_BYTES]);
        let expect = match self.store.get_record(KIND, &id).await {
            Ok(None) => Expect::Absent,
            Ok(Some(record)) => {
                let earlier = decode(&record)?;
                let is_same = (&earlier.name, earlier.role, &earlier.grants, earlier.expires_at_ms)
                    == (&stored.name, stored.role, &stored.grants, stored.expires_at_ms);
                let age_ms = now_ms.saturating_sub(earlier.created_at_ms);
                // The key of another request, whose answer is forgotten.
                if !is_same || u128::from(age_ms) > crate::idempotency::KEEP.as_millis() {
                    return self.make(stored, None).await?.ok_or_else(id_is_taken);
                }
                stored.created_at_ms = earlier.created_at_ms;
                Expect::Version(record.version)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return self.make(stored, None).await?.ok_or_else(id_is_taken);
            }
            Err(error) => return Err(error.into()),
        };
        let secret = secret_of(&id)?;
        stored.hash = hash_of(&secret);
        if !self.add(&id, &stored, expect, None).await? {
            return Err(id_is_taken());
        }
        self.forget_verified();
        Ok(NewKey { secret, key: shown(id, stored, None) })
    }

    /// Creates the first key of a store. Of nodes that start together on a store without keys, one gets it; the
    /// others get `None`, as where there are keys.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create_first(&self, request: CreateKey) -> Result<Option<NewKey>, Refusal> {
        let gate = self.store.get_record(FIRST_KIND, FIRST_ID).await?;
        // Read after the gate: another node changes the gate in the commit that creates its key.
        if !self.is_empty().await? {
            return Ok(None);
        }
        let expect = gate.map_or(Expect::Absent, |gate| Expect::Version(gate.version));
        let gate = RecordWrite::Put {
            kind: FIRST_KIND.to_owned(),
            id: FIRST_ID.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: None,
            body: bytes::Bytes::new(),
        };
        self.create_with(request, Some(gate)).await
    }

    /// Creates a key in one commit with a gate; `None` if another node has changed the gate.
    async fn create_with(
        &self,
        request: CreateKey,
        gate: Option<RecordWrite>,
    ) -> Result<Option<NewKey>, Refusal> {
        let (stored, _) = self.checked(request).await?;
        self.make(stored, gate).await
    }

    /// What is stored of a requested key, without the hash of its secret, and the time.
    async fn checked(&self, request: CreateKey) -> Result<(StoredKey, u64), Refusal> {
        check(&request)?;
        let now_ms = self.store.now_ms().await?;
        let expires_at_ms = request.expires_at.map(|at| u64::try_from(at.as_millisecond()).unwrap_or(0));
        if is_over(expires_at_ms, now_ms) {
            return Err(Refusal::field("expires_at", "lies in the past"));
        }
        let stored = StoredKey {
            name: request.name,
            hash: String::new(),
            role: request.role,
            grants: request.grants,
            created_at_ms: now_ms,
            expires_at_ms,
        };
        Ok((stored, now_ms))
    }

    /// Stores a key under a random id; `None` if another node has changed the gate.
    async fn make(
        &self,
        mut stored: StoredKey,
        gate: Option<RecordWrite>,
    ) -> Result<Option<NewKey>, Refusal> {
        let mut tried = 1;
        loop {
            let id = hex(&random::<ID_BYTES>()?);
            let secret = secret_of(&id)?;
            stored.hash = hash_of(&secret);
            match self.add(&id, &stored, Expect::Absent, gate.clone()).await {
                Ok(true) => return Ok(Some(NewKey { secret, key: shown(id, stored, None) })),
                Ok(false) => return Ok(None),
                // Another id is stored elsewhere.
                Err(refusal) if refusal.damage().is_some() && tried < MAX_IDS_TRIED => tried += 1,
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Stores a key with its gate. Returns whether both were as expected.
    async fn add(
        &self,
        id: &str,
        stored: &StoredKey,
        expect: Expect,
        gate: Option<RecordWrite>,
    ) -> Result<bool, Refusal> {
        let body = serde_json::to_vec(stored).map_err(unreadable)?;
        let key = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: id.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: None,
            body: body.into(),
        };
        let writes = gate.into_iter().chain([key]).collect();
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A page of keys, ascending by id.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn page(&self, after_id: Option<&str>, rows: usize) -> Result<KeyList, Refusal> {
        let read = |after: Option<String>, rows| async move {
            Ok(Chunk::of(self.list(after.as_deref(), rows).await?, rows))
        };
        let show = |row: Listed<Key>| match &row {
            Listed::Readable(key) => Ok(Row::new(key.id.clone(), row)),
            Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
        };
        let Found { rows: keys, unreadable, next_cursor } =
            paging::page(rows, after_id.map(str::to_owned), read, show).await?;
        Ok(KeyList { keys, unreadable, next_cursor })
    }

    async fn list(&self, after_id: Option<&str>, limit: usize) -> Result<Vec<Listed<Key>>, Refusal> {
        let request = ListRecords { kind: KIND, id_prefix: "", after_id, limit };
        let mut keys = Vec::new();
        for record in self.store.list_records(request).await? {
            let used = match self.store.get_record(USE_KIND, &record.id).await {
                // When a key was used last is on a damaged block, which does not hide the key.
                Err(error) if error.kind() == ErrorKind::Corrupt => None,
                used => used?,
            };
            let used = used.and_then(|record| std::str::from_utf8(&record.body).ok()?.parse().ok());
            keys.push(match decode(&record) {
                Ok(stored) => Listed::Readable(shown(record.id, stored, used)),
                Err(_) => Listed::Unreadable(Unreadable {
                    id: record.id,
                    reason: "the stored key cannot be read; revoke it".to_owned(),
                }),
            });
        }
        Ok(keys)
    }

    /// Whether there is any key.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn is_empty(&self) -> Result<bool, Refusal> {
        let request = ListRecords { kind: KIND, id_prefix: "", after_id: None, limit: 1 };
        // One that cannot be read may be a key.
        let read = self.store.list_records_around_damage(request).await?;
        Ok(read.records.is_empty() && read.damaged.is_empty())
    }

    /// Revokes a key. It ceases to work on this node at once, on others within [`REVOKED_WITHIN`].
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn revoke(&self, id: &str) -> Result<(), Refusal> {
        let missing = || Refusal::not_found("key", id);
        let record = self.record(id).await?.ok_or_else(missing)?;
        let delete =
            |kind: &str, expect| RecordWrite::Delete { kind: kind.to_owned(), id: id.to_owned(), expect };
        let writes = vec![delete(KIND, Expect::Version(record.version)), delete(USE_KIND, Expect::Anything)];
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => return Err(missing()),
            Err(error) => return Err(error.into()),
        }
        self.forget_verified();
        self.revoked.notify_waiters();
        Ok(())
    }

    /// The next use of each key is verified with what is stored.
    fn forget_verified(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.rechecked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A key as it is stored now.
    pub(super) async fn read(&self, id: &str) -> Result<Rechecked, Refusal> {
        let read_at_ms = self.clock.now_ms();
        let Some(record) = self.record(id).await? else {
            return Ok(Rechecked { caller: None, expires_at_ms: None, read_at_ms });
        };
        let key = decode(&record)?;
        let caller = Some(Caller::with_key(id, key.role, &key.grants));
        Ok(Rechecked { caller, expires_at_ms: key.expires_at_ms, read_at_ms })
    }
}

impl KeyStore {
    /// When a key expires, if it does.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn expires_at_ms(&self, id: &str) -> Result<Option<u64>, Refusal> {
        Ok(self.read(id).await?.expires_at_ms)
    }
}

/// How long a revoked key may still work on another node.
pub const REVOKED_WITHIN: Duration = Duration::from_millis(REMEMBER_MS);

pub(super) fn is_over(expires_at_ms: Option<u64>, now_ms: u64) -> bool {
    expires_at_ms.is_some_and(|at| at <= now_ms)
}

/// Whether a text has the form of the id of a key.
pub fn is_key_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The id in a key, if it has the form of one.
fn key_id(token: &str) -> Option<&str> {
    let (id, secret) = token.strip_prefix("segno_")?.split_once('_')?;
    (is_key_id(id) && !secret.is_empty()).then_some(id)
}

fn check(request: &CreateKey) -> Result<(), Refusal> {
    if request.name.trim().is_empty()
        || request.name.len() > MAX_NAME_BYTES
        || request.name.chars().any(char::is_control)
    {
        return Err(Refusal::field(
            "name",
            format!("must be printable text of at most {MAX_NAME_BYTES} bytes"),
        ));
    }
    if request.grants.is_empty() || request.grants.len() > MAX_GRANTS {
        return Err(Refusal::field(
            "grants",
            format!("must be 1 to {MAX_GRANTS}; use \"*\" for every namespace or tenant"),
        ));
    }
    for grant in &request.grants {
        for (field, value) in [("grants.namespace", &grant.namespace), ("grants.tenant", &grant.tenant)] {
            if value != "*" {
                check_slug(field, value)?;
            }
        }
    }
    Ok(())
}

fn id_is_taken() -> Refusal {
    Refusal::new(Code::Conflict, "a key with this id exists already")
}

/// A new secret of a key.
fn secret_of(id: &str) -> Result<String, Refusal> {
    Ok(format!("segno_{id}_{}", URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>()?)))
}

fn hash_of(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes()))
}

fn decode(record: &Record) -> Result<StoredKey, Refusal> {
    serde_json::from_slice(&record.body).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Refusal {
    tracing::error!(%error, "a stored key cannot be read or written");
    Refusal::new(Code::Internal, "a stored key cannot be read; the server's log has the reason")
}

fn shown(id: String, stored: StoredKey, used_at_ms: Option<u64>) -> Key {
    Key {
        id,
        name: stored.name,
        role: stored.role,
        grants: stored.grants,
        created_at: timestamp(stored.created_at_ms),
        expires_at: stored.expires_at_ms.map(timestamp),
        last_used_at: used_at_ms.map(timestamp),
    }
}

/// A stored time as it goes over the wire.
pub fn timestamp(unix_ms: u64) -> Timestamp {
    i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gives no random numbers");
        Refusal::new(Code::Internal, "the system gives no random numbers")
    })?;
    Ok(bytes)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_testkit::clock::VirtualClock;

    use super::*;

    #[test]
    fn only_texts_of_the_right_form_are_looked_up() {
        assert_eq!(key_id("segno_0123456789abcdef_se_cret"), Some("0123456789abcdef"));
        for bad in ["", "segno_", "segno_x_y", "segno_0123456789abcdef_", "segno_0123456789abcdeg_x", "key"] {
            assert_eq!(key_id(bad), None, "{bad:?}");
        }
    }

    #[tokio::test]
    async fn nodes_that_start_together_create_one_first_key() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let clock = VirtualClock::new();
        let nodes: Vec<KeyStore> =
            (0..8).map(|_| KeyStore::new(store.clone(), clock.clone(), None)).collect();
        let grant = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
        let request =
            CreateKey { name: "first".to_owned(), role: Role::Admin, grants: vec![grant], expires_at: None };
        for _ in 0..2 {
            let created =
                futures_util::future::join_all(nodes.iter().map(|node| node.create_first(request.clone())))
                    .await;
            let created: Vec<NewKey> = created.into_iter().filter_map(Result::unwrap).collect();
            assert_eq!(created.len(), 1);
            assert!(nodes[0].create_first(request.clone()).await.unwrap().is_none());
            // A store whose keys were all revoked gets a first one again.
            nodes[0].revoke(&created[0].key.id).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_repeated_request_makes_no_second_key() {
        let clock = VirtualClock::new();
        let keys = KeyStore::new(MemoryStore::with_clock(clock.clone()), clock.clone(), None);
        let grant = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
        let request =
            CreateKey { name: "ci".to_owned(), role: Role::Viewer, grants: vec![grant], expires_at: None };
        let from = uuid::Uuid::from_u128(7);
        let lost = keys.create_repeatably(request.clone(), from).await.unwrap();
        assert!(keys.verify(&lost.secret).await.is_ok());
        let again = keys.create_repeatably(request.clone(), from).await.unwrap();
        assert_eq!(again.key, Key { last_used_at: None, ..lost.key.clone() });
        assert!(keys.verify(&lost.secret).await.is_err(), "its answer was lost, and its secret is replaced");
        assert!(keys.verify(&again.secret).await.is_ok());
        // Another key, and the same one when the first answer is forgotten, are no repeats.
        let other = CreateKey { role: Role::Admin, ..request.clone() };
        let other = keys.create_repeatably(other, from).await.unwrap();
        clock.advance(crate::idempotency::KEEP + Duration::from_millis(1));
        let later = keys.create_repeatably(request, from).await.unwrap();
        for made in [&again, &other, &later] {
            assert!(keys.verify(&made.secret).await.is_ok());
        }
        assert_eq!(keys.page(None, 10).await.unwrap().keys.len(), 3);
    }

    #[tokio::test]
    async fn a_key_works_until_it_is_revoked_or_expires_and_its_secret_is_nowhere() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let clock = VirtualClock::new();
        let keys = KeyStore::new(store.clone(), clock, None);
        let grant = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
        let request =
            CreateKey { name: "ci".to_owned(), role: Role::Viewer, grants: vec![grant], expires_at: None };
        let made = keys.create(request).await.unwrap();
        assert!(keys.verify(&made.secret).await.is_ok());
        let mut forged = made.secret.clone();
        forged.pop();
        assert!(keys.verify(&forged).await.is_err());
        let record = store.get_record(KIND, &made.key.id).await.unwrap().unwrap();
        let secret = made.secret.splitn(3, '_').nth(2).unwrap();
        assert!(!String::from_utf8_lossy(&record.body).contains(secret));
        keys.revoke(&made.key.id).await.unwrap();
        assert_eq!(keys.verify(&made.secret).await.unwrap_err().status(), 401);
        assert_eq!(keys.revoke(&made.key.id).await.unwrap_err().status(), 404);
    }
}
