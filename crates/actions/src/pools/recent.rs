//! A cache of what was read from the store a moment ago, by record id, bounded in number and bytes. Shared by clones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::duration_ms;

/// For so long a value is taken to be as it was read: dispatching thousands of calls reads it once.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Most values that are kept.
const MAX_VALUES: usize = 1_024;

/// Most bytes of values that are kept, as they are stored.
const MAX_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct Recent<T>(Arc<Mutex<Kept<T>>>);

struct Kept<T> {
    values: HashMap<String, Value<T>>,
    bytes: usize,
}

struct Value<T> {
    value: T,
    bytes: usize,
    until_ms: u64,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent(Arc::new(Mutex::new(Kept { values: HashMap::new(), bytes: 0 })))
    }
}

impl<T> Clone for Recent<T> {
    fn clone(&self) -> Self {
        Recent(Arc::clone(&self.0))
    }
}

impl<T: Clone> Recent<T> {
    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: &str, now_ms: u64) -> Option<T> {
        let kept = self.lock();
        kept.values.get(id).filter(|kept| kept.until_ms > now_ms).map(|kept| kept.value.clone())
    }

    /// Keeps a value that takes so many bytes in the store. One that is larger than all may be is not kept.
    pub(super) fn put(&self, id: String, value: T, bytes: usize, now_ms: u64) {
        let mut kept = self.lock();
        kept.remove(&id);
        if bytes > MAX_BYTES {
            return;
        }
        if kept.values.len() >= MAX_VALUES || kept.bytes + bytes > MAX_BYTES {
            (kept.values, kept.bytes) = (HashMap::new(), 0);
        }
        kept.bytes += bytes;
        let until_ms = now_ms.saturating_add(duration_ms(KEPT_FOR));
        kept.values.insert(id, Value { value, bytes, until_ms });
    }

    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }
}

impl<T> Kept<T> {
    fn remove(&mut self, id: &str) {
        if let Some(removed) = self.values.remove(id) {
            self.bytes -= removed.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_for_a_moment_and_never_too_many_bytes() {
        let recent = Recent::default();
        recent.put("a".to_owned(), 1, MAX_BYTES / 2, 0);
        recent.put("a".to_owned(), 2, MAX_BYTES / 2, 0);
        recent.put("b".to_owned(), 3, MAX_BYTES / 2, 0);
        assert_eq!(
            (recent.get("a", 999), recent.get("b", 999), recent.get("b", 1_000)),
            (Some(2), Some(3), None)
        );
        recent.put("c".to_owned(), 4, 1, 0);
        assert_eq!((recent.get("a", 0), recent.get("c", 0)), (None, Some(4)), "the others gave way");
        recent.put("c".to_owned(), 5, MAX_BYTES + 1, 0);
        assert_eq!(recent.get("c", 0), None);
        assert_eq!(recent.lock().bytes, 0);
        for number in 0..=MAX_VALUES {
            recent.put(number.to_string(), number, 1, 0);
        }
        let kept = recent.lock();
        assert_eq!((kept.values.len(), kept.bytes), (1, 1));
    }
}
