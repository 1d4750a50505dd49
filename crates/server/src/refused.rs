//! Refused requests that would have changed something, for the audit log: in which tenant they are entered, and how many.
//!
//! | the caller | entered |
//! |---|---|
//! | may enter the tenant that the request names | there |
//! | has a key, and may not, or the request names none that there can be | in the first tenant that the key is for, with what the request names: no tenant's data grows by what others send |
//! | has no valid key (401) | nowhere, because there is nothing to name it by: it is counted and logged |
//!
//! A flood of refusals does not fill the store: a key has [`MAX_ENTRIES_PER_MINUTE`], and the rest is counted.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use axum::http::request::Parts;
use lru::LruCache;

use crate::access::Caller;
use crate::app::App;
use crate::audit::Draft;
use crate::problem::Refusal;
use crate::scope::Scope;
use crate::telemetry::UNAUTHENTICATED;

/// Entries of one key about refused requests in one minute.
pub const MAX_ENTRIES_PER_MINUTE: u32 = 60;

/// Most keys whose entries are counted; the one that was refused longest ago is forgotten.
const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

const MINUTE_MS: u64 = 60_000;

/// The entries of one key in one minute.
struct Window {
    minute: u64,
    entries: u32,
}

/// How many entries each key still has.
pub struct RefusalBudget(Mutex<LruCache<String, Window>>);

impl Default for RefusalBudget {
    fn default() -> Self {
        RefusalBudget(Mutex::new(LruCache::new(MAX_KEYS)))
    }
}

impl RefusalBudget {
    /// Takes an entry, if the key has one left. All callers without a key share one budget.
    pub fn take(&self, key: Option<&str>, now_ms: u64) -> bool {
        let minute = now_ms / MINUTE_MS;
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = keys.get_or_insert_mut_ref(key.unwrap_or_default(), || Window { minute, entries: 0 });
        if window.minute != minute {
            *window = Window { minute, entries: 0 };
        }
        window.entries = window.entries.saturating_add(1);
        window.entries <= MAX_ENTRIES_PER_MINUTE
    }
}

/// Enters a request that was refused before the audit log knew its tenant. `named` is the tenant that it names, if that is
/// known from elsewhere than its query and path.
pub async fn note(app: &App, parts: &mut Parts, named: Option<Scope>, refusal: &Refusal) {
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else { return };
    if parts.method.is_safe() {
        return;
    }
    let named = match named {
        Some(scope) => Some(scope),
        None => Scope::addressed(parts).await.ok(),
    };
    let draft = match named {
        Some(scope) if caller.may_enter(&scope) => Draft::of(parts, scope),
        Some(scope) => Draft::of(parts, caller.home()).naming(&scope),
        None => Draft::of(parts, caller.home()),
    };
    app.audit.note_refused(&draft, refusal.status());
}

/// Counts a request whose caller is not known.
pub fn count_unauthenticated(app: &App, parts: &Parts, refusal: &Refusal) {
    metrics::counter!(UNAUTHENTICATED).increment(1);
    // As bounded as entries are: such requests cost their senders nothing.
    if app.audit.has_room_for(None) {
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        tracing::info!(method, path, reason = refusal.detail(), "a request without a valid key was refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_so_many_entries_a_minute() {
        let budget = RefusalBudget::default();
        let taken = |key, now_ms| (0..100).filter(|_| budget.take(key, now_ms)).count();
        assert_eq!(taken(Some("a"), 0), 60);
        assert_eq!(taken(Some("a"), MINUTE_MS - 1), 0);
        assert_eq!((taken(Some("b"), 0), taken(None, 0)), (60, 60));
        assert_eq!(taken(Some("a"), MINUTE_MS), 60);
    }
}
