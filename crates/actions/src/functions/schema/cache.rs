//! Compiled schemas of stored functions, kept between calls: bounded by number and by estimated bytes, least recently
//! used out. When it is full, the tenant that takes up the most gives way, so that no tenant evicts what others keep
//! within their share. An entry belongs to a tenant and to the bytes of a schema, so that a changed schema is another one.
//!
//! Callers that come at the same time compile once (single flight). A schema that cannot be compiled is kept as such.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::input::InputSchema;
use crate::functions::error::FunctionError;
use crate::functions::limits::{MAX_CACHED_SCHEMA_BYTES, MAX_CACHED_SCHEMA_ENTRY_BYTES, MAX_CACHED_SCHEMAS};
use crate::functions::names::Scope;
use crate::telemetry;

/// What an entry takes beside its schema, in bytes.
const ENTRY_BYTES: usize = 1024;

type Digest = [u8; 32];

/// How much is kept.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: usize,
    bytes: usize,
    entry_bytes: usize,
}

/// A schema that is compiled by the first caller while others wait for it.
#[derive(Default)]
struct Slot(OnceLock<Result<Arc<InputSchema>, FunctionError>>);

/// Compiled schemas by tenant and text.
pub(in crate::functions) struct SchemaCache {
    bounds: Bounds,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    shares: HashMap<Scope, Share>,
    entries: usize,
    bytes: usize,
    /// Uses so far: the time of the least recently used.
    uses: u64,
}

/// What one tenant has in it.
#[derive(Default)]
struct Share {
    entries: HashMap<Digest, Entry>,
    bytes: usize,
}

struct Entry {
    slot: Arc<Slot>,
    bytes: usize,
    used: u64,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::bounded(Bounds {
            entries: MAX_CACHED_SCHEMAS,
            bytes: MAX_CACHED_SCHEMA_BYTES,
            entry_bytes: MAX_CACHED_SCHEMA_ENTRY_BYTES,
        })
    }
}

impl SchemaCache {
    fn bounded(bounds: Bounds) -> Self {
        SchemaCache { bounds, table: Mutex::default() }
    }

    /// The compiled form of a tenant's schema. It runs on a thread of [`threads`](super::threads), which waits while
    /// another one compiles the same.
    ///
    /// # Errors
    /// Those of [`InputSchema::compile`].
    pub(in crate::functions) fn get(
        &self,
        scope: &Scope,
        schema: &Value,
    ) -> Result<Arc<InputSchema>, FunctionError> {
        self.get_or_compile(scope, schema, InputSchema::compile_here)
    }

    fn get_or_compile(
        &self,
        scope: &Scope,
        schema: &Value,
        compile: impl FnOnce(&Value) -> Result<InputSchema, FunctionError>,
    ) -> Result<Arc<InputSchema>, FunctionError> {
        let digest: Digest = Sha256::digest(schema.to_string().as_bytes()).into();
        let slot = self.lock().slot(scope, digest, self.bounds);
        let mut compiled_bytes = None;
        let result = slot.0.get_or_init(|| {
            metrics::counter!(telemetry::SCHEMAS_COMPILED).increment(1);
            let compiled = compile(schema).map(Arc::new);
            compiled_bytes = Some(compiled.as_ref().map_or(0, |schema| schema.estimated_bytes()));
            compiled
        });
        if let Some(bytes) = compiled_bytes {
            self.lock().weigh(scope, digest, Weighed { slot: &slot, bytes }, self.bounds);
        }
        result.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A compiled schema, and what it takes.
struct Weighed<'a> {
    slot: &'a Arc<Slot>,
    bytes: usize,
}

impl Table {
    /// The slot of a schema, a new one if there is none.
    fn slot(&mut self, scope: &Scope, digest: Digest, bounds: Bounds) -> Arc<Slot> {
        self.uses += 1;
        let used = self.uses;
        let known = self.shares.get_mut(scope).and_then(|share| share.entries.get_mut(&digest));
        if let Some(entry) = known {
            entry.used = used;
            return Arc::clone(&entry.slot);
        }
        let slot = Arc::new(Slot::default());
        let share = self.shares.entry(scope.clone()).or_default();
        share.entries.insert(digest, Entry { slot: Arc::clone(&slot), bytes: ENTRY_BYTES, used });
        share.bytes += ENTRY_BYTES;
        self.entries += 1;
        self.bytes += ENTRY_BYTES;
        self.shrink(bounds);
        slot
    }

    /// Notes what a compiled schema takes.
    fn weigh(&mut self, scope: &Scope, digest: Digest, weighed: Weighed<'_>, bounds: Bounds) {
        let Weighed { slot, bytes } = weighed;
        let Some(share) = self.shares.get_mut(scope) else { return };
        let entry = share.entries.get_mut(&digest);
        // It may have been evicted meanwhile, and another one of its text be compiled.
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.slot, slot)) else { return };
        entry.bytes += bytes;
        share.bytes += bytes;
        self.bytes += bytes;
        if bytes > bounds.entry_bytes {
            self.evict(scope, digest);
        }
        self.shrink(bounds);
    }

    fn shrink(&mut self, bounds: Bounds) {
        while self.bytes > bounds.bytes {
            let Some(scope) = self.largest(|share| share.bytes) else { return };
            self.evict_oldest(&scope);
        }
        while self.entries > bounds.entries {
            let Some(scope) = self.largest(|share| share.entries.len()) else { return };
            self.evict_oldest(&scope);
        }
    }

    /// The tenant that has the most of something.
    fn largest(&self, size: impl Fn(&Share) -> usize) -> Option<Scope> {
        self.shares.iter().max_by_key(|(scope, share)| (size(share), *scope)).map(|(scope, _)| scope.clone())
    }

    fn evict_oldest(&mut self, scope: &Scope) {
        let entries = self.shares.get(scope).map(|share| share.entries.iter());
        let oldest = entries.and_then(|entries| entries.min_by_key(|(_, entry)| entry.used));
        match oldest.map(|(digest, _)| *digest) {
            Some(digest) => self.evict(scope, digest),
            None => drop(self.shares.remove(scope)),
        }
    }

    fn evict(&mut self, scope: &Scope, digest: Digest) {
        let Some(share) = self.shares.get_mut(scope) else { return };
        let Some(entry) = share.entries.remove(&digest) else { return };
        share.bytes -= entry.bytes;
        self.bytes -= entry.bytes;
        self.entries -= 1;
        if share.entries.is_empty() {
            self.shares.remove(scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::threads::run_blocking;
    use super::*;

    fn scope(tenant: &str) -> Scope {
        Scope::new("n", tenant).unwrap()
    }

    fn cache(entries: usize, bytes: usize) -> SchemaCache {
        SchemaCache::bounded(Bounds { entries, bytes, entry_bytes: bytes })
    }

    /// A schema that differs from others by a number.
    fn numbered(number: usize) -> Value {
        json!({ "const": number })
    }

    /// Whether a schema had to be compiled.
    fn compiles(cache: &SchemaCache, tenant: &str, schema: &Value) -> bool {
        let compiled = Cell::new(false);
        let fetched = cache.get_or_compile(&scope(tenant), schema, |schema| {
            compiled.set(true);
            InputSchema::compile(schema)
        });
        fetched.unwrap();
        compiled.get()
    }

    #[test]
    fn a_schema_is_compiled_once_for_each_tenant() {
        let cache = cache(10, usize::MAX);
        assert!(compiles(&cache, "a", &numbered(1)));
        assert!(!compiles(&cache, "a", &numbered(1)));
        assert!(compiles(&cache, "b", &numbered(1)), "what a tenant keeps does not depend on others");
        assert!(!compiles(&cache, "b", &numbered(1)));
    }

    #[test]
    fn callers_at_the_same_time_compile_once() {
        let (cache, both, compiled) = (cache(10, usize::MAX), Barrier::new(8), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    both.wait();
                    let compile = |schema: &Value| {
                        compiled.fetch_add(1, Ordering::Relaxed);
                        InputSchema::compile(schema)
                    };
                    cache.get_or_compile(&scope("a"), &numbered(1), compile).unwrap();
                });
            }
        });
        assert_eq!(compiled.into_inner(), 1);
    }

    #[test]
    fn a_changed_schema_is_not_served_from_the_old_one() {
        let cache = SchemaCache::default();
        let fits = |schema: &Value, input: &Value| {
            let check = || cache.get(&scope("a"), schema).unwrap().violations(input).unwrap().is_empty();
            run_blocking(check).unwrap()
        };
        let (old, new) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        assert!(fits(&old, &json!("x")) && !fits(&old, &json!(1)));
        assert!(!fits(&new, &json!("x")) && fits(&new, &json!(1)));
        assert!(fits(&old, &json!("x")));
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_is_not_tried_again() {
        let (cache, compiled) = (cache(10, usize::MAX), Cell::new(0));
        for _ in 0..3 {
            let error = cache.get_or_compile(&scope("a"), &json!({ "type": "strnig" }), |schema| {
                compiled.set(compiled.get() + 1);
                InputSchema::compile(schema)
            });
            assert_eq!(error.unwrap_err().code(), "invalid-function");
        }
        assert_eq!(compiled.get(), 1);
    }

    #[test]
    fn the_least_recently_used_of_the_largest_share_is_evicted() {
        let cache = cache(4, usize::MAX);
        assert!(compiles(&cache, "b", &numbered(0)));
        for number in 0..3 {
            assert!(compiles(&cache, "a", &numbered(number)));
        }
        assert!(!compiles(&cache, "a", &numbered(0)), "used again, so that 1 is the oldest");
        for number in 3..100 {
            assert!(compiles(&cache, "a", &numbered(number)));
            assert!(cache.lock().entries <= 4);
            assert!(!compiles(&cache, "a", &numbered(0)));
        }
        assert!(compiles(&cache, "a", &numbered(1)));
        assert!(!compiles(&cache, "b", &numbered(0)), "no other tenant loses what is within its share");
    }

    #[test]
    fn bytes_are_bounded_and_what_is_too_large_alone_is_not_kept() {
        let patterns: Vec<Value> =
            (1..9).map(|n| json!({ "pattern": format!("^[a-z]{{1,{n}}}$") })).collect();
        let large = json!({ "anyOf": patterns });
        let bytes = InputSchema::compile(&large).unwrap().estimated_bytes();
        let small = InputSchema::compile(&numbered(1)).unwrap().estimated_bytes();
        assert!(small * 4 < bytes, "{small} {bytes}");
        let cache = cache(1_000, bytes - 1);
        assert!(compiles(&cache, "b", &numbered(1)));
        assert!(compiles(&cache, "a", &large) && compiles(&cache, "a", &large));
        assert!(!compiles(&cache, "b", &numbered(1)));
        let count = bytes / small + 10;
        for number in 0..count {
            assert!(compiles(&cache, "a", &numbered(number)));
            assert!(cache.lock().bytes < bytes);
        }
        assert!(cache.lock().entries < count);
        assert!(!compiles(&cache, "b", &numbered(1)));
        let table = cache.lock();
        assert_eq!(table.shares.values().map(|share| share.bytes).sum::<usize>(), table.bytes);
        assert_eq!(table.shares.values().map(|share| share.entries.len()).sum::<usize>(), table.entries);
    }
}
