//! Sessions of browsers as records: a key becomes a cookie for a while.
//!
//! The cookie is `<session>.<secret>`, and a session's id begins with that of its key, so that the sessions of a key are one
//! prefix. The record has the SHA-256 of the cookie, as that of a key has it of the key. A session may do what its key may at
//! the time of the request, and is of no use without it.
//!
//! | a session | |
//! |---|---|
//! | is used | it lasts for the life of the settings from then on, written down at most ten times in that life |
//! | is not used for that long, or is older than [`MAX_AGE`] | it has ended; the store forgets the record by itself |
//! | is ended by a request | at once on the node that took it, within [`REVOKED_WITHIN`](super::REVOKED_WITHIN) on others |
//! | is the 33rd of a key | it takes the place of the key's oldest |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lru::LruCache;
use segno::clock::{self, Clock};
use segno::store::{ErrorKind, Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use segno_actions::{Listed, Unreadable};
use segno_api::session::{Session, SessionList};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

use super::keys::{
    ID_BYTES, KeyStore, MAX_REMEMBERED, REMEMBER_MS, SECRET_BYTES, hex, is_key_id, is_over, random,
};
use super::{Caller, timestamp};
use crate::bucket::Bucket;
use crate::problem::{Code, Refusal};
use crate::routes::paging::{self, Chunk, Found, Row};

/// Kind of the records.
const KIND: &str = "segno.session";

/// Name of the cookie.
pub const COOKIE: &str = "segno_session";

/// A session ends at this age, however much it is used.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Most sessions of one key.
const MAX_PER_KEY: usize = 32;

/// A session is written down as used so many times in its life at most.
const RENEWALS: u64 = 10;

/// A session as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredSession {
    /// SHA-256 of the cookie's value, in base64.
    hash: String,
    key: String,
    created_at_ms: u64,
    expires_at_ms: u64,
    /// The end of the key, if it has one: no session outlives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_expires_at_ms: Option<u64>,
}

impl StoredSession {
    /// When it ends if its last request is now.
    fn end_ms(&self, now_ms: u64, life: Duration) -> u64 {
        let of_life = now_ms.saturating_add(clock::duration_ms(life));
        let of_age = self.created_at_ms.saturating_add(clock::duration_ms(MAX_AGE));
        of_life.min(of_age).min(self.key_expires_at_ms.unwrap_or(u64::MAX))
    }
}

/// A new session with the value of its cookie.
pub struct NewSession {
    /// The value, which is in the first answer and nowhere else.
    pub secret: String,
    /// All else about it.
    pub session: Session,
}

/// A session that was read a moment ago.
#[derive(Clone)]
struct Remembered {
    digest: [u8; 32],
    stored: StoredSession,
    read_at_ms: u64,
}

/// The sessions of a store.
pub struct SessionStore {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    life: Duration,
    requests_per_second: Option<u32>,
    remembered: Mutex<LruCache<String, Remembered>>,
    buckets: Mutex<LruCache<String, Bucket>>,
    /// Notified when a session is ended on this node.
    ended: Notify,
}

impl SessionStore {
    /// The sessions in a store. Each ends after a life without requests, and is good for so many of them a second.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        life: Duration,
        requests_per_second: Option<u32>,
    ) -> Self {
        SessionStore {
            store,
            clock,
            life,
            requests_per_second,
            remembered: Mutex::new(LruCache::new(MAX_REMEMBERED)),
            buckets: Mutex::new(LruCache::new(MAX_REMEMBERED)),
            ended: Notify::new(),
        }
    }

    /// Makes a session for the holder of a key, in one commit with the writes of others. The oldest of the key make room.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn create(
        &self,
        (key, key_expires_at_ms): (&str, Option<u64>),
        mut writes: Vec<RecordWrite>,
    ) -> Result<NewSession, Refusal> {
        let now_ms = self.store.now_ms().await?;
        let id = format!("{key}-{}", hex(&random::<ID_BYTES>()?));
        let secret = format!("{id}.{}", URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>()?));
        let mut stored = StoredSession {
            hash: URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes())),
            key: key.to_owned(),
            created_at_ms: now_ms,
            expires_at_ms: 0,
            key_expires_at_ms,
        };
        stored.expires_at_ms = stored.end_ms(now_ms, self.life);
        let mut by_age = BTreeMap::new();
        for record in self.of_key(key).await? {
            let created_at_ms = decode(&record).map_or(0, |stored| stored.created_at_ms);
            by_age.insert((created_at_ms, record.id.clone()), record.id);
        }
        let surplus = (by_age.len() + 1).saturating_sub(MAX_PER_KEY);
        writes.extend(by_age.into_values().take(surplus).map(|id| delete(id, Expect::Anything)));
        writes.push(self.write(&id, &stored, Expect::Absent, self.life)?);
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        if surplus > 0 {
            self.forget();
        }
        Ok(NewSession { secret, session: shown(id, &stored) })
    }

    /// The caller behind a cookie.
    ///
    /// # Errors
    /// `unauthorized` when the session or its key does not work any more, `rate-limited` when it is used too often.
    pub async fn verify(&self, secret: &str, keys: &KeyStore) -> Result<Caller, Refusal> {
        let over = || {
            Refusal::new(Code::Unauthorized, "the session has ended, or its key was revoked; sign in again")
        };
        let digest: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let id = session_id(secret).ok_or_else(over)?;
        let known = self.known(id).await?.ok_or_else(over)?;
        let now_ms = self.clock.now_ms();
        if !bool::from(known.digest[..].ct_eq(&digest[..])) {
            return Err(over());
        }
        let caller = keys.current(&known.stored.key).await?.ok_or_else(over)?;
        if !self.take(id, now_ms) {
            return Err(Refusal::new(
                Code::RateLimited,
                "this session sends more requests than its key may; slow down",
            ));
        }
        self.renew(id, &known.stored, now_ms);
        Ok(caller.in_session(id))
    }

    /// A session, while it lasts.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn get(&self, id: &str) -> Result<Option<Session>, Refusal> {
        Ok(self.known(id).await?.map(|known| shown(id.to_owned(), &known.stored)))
    }

    /// A page of sessions, ascending by id: of a key, or of all.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn page(
        &self,
        key: Option<&str>,
        after: Option<&str>,
        rows: usize,
    ) -> Result<SessionList, Refusal> {
        let prefix = key.map(|key| format!("{key}-")).unwrap_or_default();
        let prefix = prefix.as_str();
        let read = |after: Option<String>, rows| async move {
            let request =
                ListRecords { kind: KIND, id_prefix: prefix, after_id: after.as_deref(), limit: rows };
            Ok(Chunk::of(self.store.list_records(request).await?, rows))
        };
        let show = |record: Record| {
            let id = record.id.clone();
            Ok(Row::new(
                id.clone(),
                match decode(&record) {
                    Ok(stored) => Listed::Readable(shown(id, &stored)),
                    Err(_) => {
                        let reason = "the stored session cannot be read; end it".to_owned();
                        Listed::Unreadable(Unreadable { id, reason })
                    }
                },
            ))
        };
        let Found { rows: sessions, unreadable, next_cursor } =
            paging::page(rows, after.map(str::to_owned), read, show).await?;
        Ok(SessionList { sessions, unreadable, next_cursor })
    }

    /// Ends a session.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn end(&self, id: &str) -> Result<(), Refusal> {
        let missing = || Refusal::not_found("session", id);
        let record = self.store.get_record(KIND, id).await?.ok_or_else(missing)?;
        let writes = vec![delete(id.to_owned(), Expect::Version(record.version))];
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => {}
            // It was used meanwhile, so that its record has another version.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let writes = vec![delete(id.to_owned(), Expect::Anything)];
                self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
            }
            Err(error) => return Err(error.into()),
        }
        self.forget();
        Ok(())
    }

    /// Ends all sessions of a key.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn end_all(&self, key: &str) -> Result<(), Refusal> {
        let ended = self.of_key(key).await?;
        let writes: Vec<_> = ended.into_iter().map(|record| delete(record.id, Expect::Anything)).collect();
        if !writes.is_empty() {
            self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        }
        self.forget();
        Ok(())
    }

    /// Resolves when the session of a caller has ended. A store that is away ends none: the key's check decides about that.
    pub async fn until_ended(&self, caller: &Caller) -> Refusal {
        let Some(id) = caller.session() else { return std::future::pending().await };
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if let Ok(None) = self.known(id).await {
                return Refusal::new(Code::Unauthorized, "the session has ended; sign in again");
            }
            tokio::select! {
                biased;
                () = ended => {}
                () = clock::sleep(&*self.clock, super::REVOKED_WITHIN) => {}
            }
        }
    }

    async fn of_key(&self, key: &str) -> Result<Vec<Record>, Refusal> {
        let prefix = format!("{key}-");
        let request = ListRecords { kind: KIND, id_prefix: &prefix, after_id: None, limit: 2 * MAX_PER_KEY };
        Ok(self.store.list_records(request).await?)
    }

    /// A session as it is stored now, or was a moment ago; `None` when it has ended.
    async fn known(&self, id: &str) -> Result<Option<Remembered>, Refusal> {
        let now_ms = self.clock.now_ms();
        let known = {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            let is_fresh = |known: &&Remembered| now_ms.saturating_sub(known.read_at_ms) < REMEMBER_MS;
            remembered.get(id).filter(is_fresh).cloned()
        };
        let known = match known {
            Some(known) => known,
            None => {
                let Some(record) = self.store.get_record(KIND, id).await? else { return Ok(None) };
                let stored = decode(&record)?;
                let hash = URL_SAFE_NO_PAD.decode(&stored.hash).unwrap_or_default();
                let Ok(digest) = hash.try_into() else { return Ok(None) };
                let known = Remembered { digest, stored, read_at_ms: now_ms };
                let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
                remembered.put(id.to_owned(), known.clone());
                known
            }
        };
        let ends_at_ms = known.stored.created_at_ms.saturating_add(clock::duration_ms(MAX_AGE));
        Ok(Some(known).filter(|known| !is_over(Some(known.stored.expires_at_ms.min(ends_at_ms)), now_ms)))
    }

    fn take(&self, id: &str, now_ms: u64) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || Bucket::full(self.requests_per_second, now_ms);
        buckets.get_or_insert_mut_ref(id, full).take(self.requests_per_second, now_ms)
    }

    /// Writes down that a session is in use, now and then, without making the caller wait. One that was ended meanwhile stays
    /// ended: its record has to be there.
    fn renew(&self, id: &str, stored: &StoredSession, now_ms: u64) {
        let life_ms = clock::duration_ms(self.life);
        let expires_at_ms = stored.end_ms(now_ms, self.life);
        if expires_at_ms < stored.expires_at_ms.saturating_add(life_ms / RENEWALS) {
            return;
        }
        let renewed = StoredSession { expires_at_ms, ..stored.clone() };
        {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = remembered.get_mut(id) {
                known.stored = renewed.clone();
            }
        }
        let left = Duration::from_millis(expires_at_ms.saturating_sub(now_ms));
        let (store, id) = (self.store.clone(), id.to_owned());
        let Ok(body) = serde_json::to_vec(&renewed) else { return };
        tokio::spawn(async move {
            let renewed = async {
                let Some(record) = store.get_record(KIND, &id).await? else { return Ok(()) };
                let write = put(&id, body, Expect::Version(record.version), left);
                let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
                store.commit_records(batch).await.map(drop)
            };
            if let Err(error) = renewed.await {
                tracing::debug!(%error, "the use of a session could not be written down");
            }
        });
    }

    fn write(
        &self,
        id: &str,
        stored: &StoredSession,
        expect: Expect,
        life: Duration,
    ) -> Result<RecordWrite, Refusal> {
        let body = serde_json::to_vec(stored).map_err(unreadable)?;
        Ok(put(id, body, expect, life))
    }

    /// Has every session read again, by requests and by what is open.
    fn forget(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.ended.notify_waiters();
    }
}

/// The session that a request's cookies name, if they name one.
pub fn in_cookies(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// The cookie of a session, or with an empty value the end of it. It lasts as long as the browser is open: when a session
/// ends is the server's to say.
pub fn cookie(secret: &str, base: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    let age = if secret.is_empty() { "; Max-Age=0" } else { "" };
    format!("{COOKIE}={secret}; Path={base}; HttpOnly; SameSite=Strict{secure}{age}")
}

/// Whether a text has the form of a session's id.
pub fn is_session_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(key, session)| is_key_id(key) && is_key_id(session))
}

/// The id in the value of a cookie, if it has the form of one.
fn session_id(secret: &str) -> Option<&str> {
    let (id, rest) = secret.split_once('.')?;
    (is_session_id(id) && !rest.is_empty()).then_some(id)
}

fn put(id: &str, body: Vec<u8>, expect: Expect, life: Duration) -> RecordWrite {
    RecordWrite::Put {
        kind: KIND.to_owned(),
        id: id.to_owned(),
        expect,
        due_at_ms: None,
        time_to_live: Some(life),
        body: body.into(),
    }
}

fn delete(id: String, expect: Expect) -> RecordWrite {
    RecordWrite::Delete { kind: KIND.to_owned(), id, expect }
}

fn decode(record: &Record) -> Result<StoredSession, Refusal> {
    serde_json::from_slice(&record.body).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Refusal {
    tracing::error!(%error, "a stored session cannot be read or written");
    Refusal::new(Code::Internal, "a stored session cannot be read; the server's log has the reason")
}

fn shown(id: String, stored: &StoredSession) -> Session {
    Session {
        id,
        key: stored.key.clone(),
        created_at: timestamp(stored.created_at_ms),
        expires_at: timestamp(stored.expires_at_ms),
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_api::key::{CreateKey, Grant, Role};
    use segno_testkit::clock::VirtualClock;

    use super::*;

    const LIFE: Duration = Duration::from_secs(60 * 60);

    struct Desk {
        clock: Arc<VirtualClock>,
        keys: KeyStore,
        sessions: SessionStore,
        key: String,
    }

    async fn desk() -> Desk {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let keys = KeyStore::new(store.clone(), clock.clone(), None);
        let grants = vec![Grant { namespace: "shop".to_owned(), tenant: "eu".to_owned() }];
        let request = CreateKey { name: "me".to_owned(), role: Role::Viewer, grants, expires_at: None };
        let key = keys.create(request).await.unwrap().key.id;
        let sessions = SessionStore::new(store, clock.clone(), LIFE, None);
        Desk { clock, keys, sessions, key }
    }

    impl Desk {
        async fn status(&self, secret: &str) -> u16 {
            let verified = self.sessions.verify(secret, &self.keys).await;
            verified.map_or_else(|refusal| refusal.status().as_u16(), |_| 200)
        }
    }

    #[tokio::test]
    async fn a_session_is_its_key_and_ends_with_it() {
        let desk = desk().await;
        let made = desk.sessions.create((&desk.key, None), Vec::new()).await.unwrap();
        let caller = desk.sessions.verify(&made.secret, &desk.keys).await.unwrap();
        assert_eq!((caller.key_id(), caller.role()), (Some(desk.key.as_str()), Role::Viewer));
        assert_eq!(caller.session(), Some(made.session.id.as_str()));
        let forged = format!("{}x", made.secret);
        for bad in ["", &made.session.id, &forged, "x.y", &format!("{}.", made.session.id)] {
            assert_eq!(desk.status(bad).await, 401, "{bad}");
        }
        desk.keys.revoke(&desk.key).await.unwrap();
        assert_eq!(desk.status(&made.secret).await, 401);
    }

    #[tokio::test]
    async fn a_session_lasts_while_it_is_used_and_for_a_day_at_most() {
        let desk = desk().await;
        let used = desk.sessions.create((&desk.key, None), Vec::new()).await.unwrap();
        let idle = desk.sessions.create((&desk.key, None), Vec::new()).await.unwrap();
        let mut halves = 0;
        while desk.status(&used.secret).await == 200 {
            // The renewal is written in the background.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            desk.clock.advance(LIFE / 2);
            halves += 1;
            assert!(halves < 100, "it never ends");
            if halves == 2 {
                assert_eq!(desk.status(&idle.secret).await, 401);
            }
        }
        assert_eq!(halves, 48, "a day has so many half hours");
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_sessions_of_a_key_gives_way() {
        let desk = desk().await;
        let mut made = Vec::new();
        for _ in 0..=MAX_PER_KEY {
            desk.clock.advance(Duration::from_secs(1));
            made.push(desk.sessions.create((&desk.key, None), Vec::new()).await.unwrap());
        }
        assert_eq!(desk.status(&made[0].secret).await, 401);
        for session in &made[1..] {
            assert_eq!(desk.status(&session.secret).await, 200);
        }
        let page = desk.sessions.page(Some(&desk.key), None, 100).await.unwrap();
        assert_eq!(page.sessions.len(), MAX_PER_KEY);
        desk.sessions.end_all(&desk.key).await.unwrap();
        assert_eq!(desk.status(&made[1].secret).await, 401);
    }

    #[test]
    fn one_cookie_among_others_is_read() {
        let with = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::COOKIE, value.parse().unwrap());
            }
            in_cookies(&headers).map(str::to_owned)
        };
        assert_eq!(with(&["a=b; segno_session=x.y; c=d"]).as_deref(), Some("x.y"));
        assert_eq!(with(&["a=b", "segno_session=x.y"]).as_deref(), Some("x.y"));
        for none in [&["xsegno_session=x"][..], &["a=segno_session"], &[]] {
            assert_eq!(with(none), None, "{none:?}");
        }
    }
}
