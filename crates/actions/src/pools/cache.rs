//! Pools and their states as they were read a moment ago.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::duration_ms;

/// For so long a pool is taken to be as it was read: dispatching thousands of calls reads it once.
const CACHED_FOR: Duration = Duration::from_secs(1);

/// Most pools that are kept in memory.
const MAX_CACHED: usize = 1_024;

/// What was read a moment ago, by record id. Shared by clones.
pub(super) struct Cache<T>(Arc<Mutex<HashMap<String, (u64, T)>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache(Arc::default())
    }
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Cache(Arc::clone(&self.0))
    }
}

impl<T: Clone> Cache<T> {
    pub(super) fn get(&self, id: &str, now_ms: u64) -> Option<T> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.get(id).filter(|(until_ms, _)| *until_ms > now_ms).map(|(_, value)| value.clone())
    }

    pub(super) fn put(&self, id: String, value: T, now_ms: u64) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(id, (now_ms.saturating_add(duration_ms(CACHED_FOR)), value));
    }

    pub(super) fn remove(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
